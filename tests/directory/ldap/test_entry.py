"""Values of entries: what they should be, and every way in which they are not."""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanner.directory.ldap.entry import MAX_OCTETS, MAX_TEXT, MAX_VALUES, Entry
from lanner.directory.ldap.errors import MalformedEntryError


def entry(*values: bytes, name: str = "x") -> Entry:
    return Entry("CN=e,DC=t", {name: values})


def test_names_have_no_case() -> None:
    assert entry(b"1", name="MSMQCost").integer("mSMQCost") == 1


@pytest.mark.parametrize(
    ("value", "expected"), [(b"TRUE", True), (b"false", False), (b"1", True), (b"0", False)]
)
def test_booleans(value: bytes, expected: bool) -> None:
    assert entry(value).boolean("x") is expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [(b"20261115113832.0Z", 1794742712), (b"20261115113832Z", 1794742712), (b"19700101000000.0Z", 0)],
)
def test_times(value: bytes, expected: int) -> None:
    assert entry(value).time("x") == expected


def test_identifiers_are_little_endian() -> None:
    data = bytes.fromhex("4ed189ac0b70534d8096d3b503c8b2a6")
    assert entry(data).guid("x") == UUID("ac89d14e-700b-4d53-8096-d3b503c8b2a6")


def test_numbers() -> None:
    assert entry(b"-1").unsigned("x", 7) == 0xFFFFFFFF
    assert entry(b"4294967295").unsigned("x", 7) == 0xFFFFFFFF
    assert entry().unsigned("x", 7) == 7
    assert entry(b"-5").integer("x") == -5


@pytest.mark.parametrize(
    ("read", "values"),
    [
        ("boolean", [b"maybe"]),
        ("boolean", [b""]),
        ("integer", [b""]),
        ("integer", [b"1.5"]),
        ("integer", [b"--1"]),
        ("integer", [b"4294967296"]),
        ("integer", [b"-2147483649"]),
        ("integer", [b"9" * 400]),
        ("guid", [b"short"]),
        ("guid", [bytes(17)]),
        ("guids", [bytes(16), b""]),
        ("time", []),
        ("time", [b"yesterday"]),
        ("time", [b"20261315113832.0Z"]),
        ("time", [b"\xff\xfe"]),
        ("text", [b"\xff"]),
        ("text", [b"a", b"b"]),
        ("text", [b"a" * (MAX_TEXT + 1)]),
        ("texts", [b"a", b"\xc3"]),
        ("octets", [bytes(MAX_OCTETS + 1)]),
        ("values", [b"%d" % number for number in range(MAX_VALUES + 1)]),
    ],
)
def test_malformed_values_name_entry_and_attribute(read: str, values: list[bytes]) -> None:
    with pytest.raises(MalformedEntryError, match="CN=e,DC=t: x: ") as raised:
        getattr(entry(*values), read)("x")
    assert (raised.value.dn, raised.value.attribute) == ("CN=e,DC=t", "x")


def test_values_that_the_server_did_not_send() -> None:
    cut = Entry("CN=e", {"mSMQSites": (), "mSMQSites;range=0-1499": (bytes(16),)})
    with pytest.raises(MalformedEntryError, match="mSMQSites"):
        cut.guids("mSMQSites")


def test_an_entry_must_have_an_identifier() -> None:
    with pytest.raises(MalformedEntryError, match="objectGUID: is missing"):
        entry().identifier()


@given(st.lists(st.binary(max_size=40), max_size=3))
def test_any_value_is_read_or_named(values: list[bytes]) -> None:
    readers: list[Any] = [
        getattr(entry(*values), name) for name in ("boolean", "integer", "guid", "guids", "time")
    ]
    for read in (*readers, entry(*values).text, entry(*values).texts):
        with suppress(MalformedEntryError):
            read("x")
