"""LDAP's bytes: vectors written by hand after RFC 2251, round trips, and bytes that are none."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanner.directory.ldap import wire
from lanner.directory.ldap.ber import BerError, Reader, header_size, integer, octets, sequence, tagged
from lanner.directory.ldap.wire import AllOf, AnyOf, Equal, Kind, Present, Scope


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (wire.bind_simple(1, "cn=x", b"pw"), "30 12 020101 60 0d 020103 0404 636e3d78 8002 7077"),
        (
            wire.bind_sasl(2, "GSSAPI", b"\x01"),
            "30 17 020102 60 12 020103 0400 a30b 0406 475353415049 0401 01",
        ),
        (wire.unbind(3), "30 05 020103 4200"),
        (wire.delete(4, "cn=x"), "30 09 020104 4a04 636e3d78"),
        (
            wire.start_tls(5),
            "30 1d 020105 77 18 8016 312e332e362e312e342e312e313436362e3230303337",
        ),
        (
            wire.add(6, "x", {"a": (b"1", b"2")}),
            "30 17 020106 68 12 0401 78 300d 300b 0401 61 3106 0401 31 0401 32",
        ),
        (
            wire.modify(7, "x", {"a": ()}),
            "30 16 020107 66 11 0401 78 300c 300a 0a0102 3005 0401 61 3100",
        ),
        (
            wire.search(8, "x", Scope.SUBTREE, Equal("a", "b"), ["c"], time_limit=120),
            "30 24 020108 63 1f 0401 78 0a0102 0a0100 020100 020178 010100 a306 0401 61 0401 62 3003 0401 63",
        ),
    ],
)
def test_requests(made: bytes, expected: str) -> None:
    assert made.hex() == bytes.fromhex(expected).hex()


def test_filters_and_controls() -> None:
    both = AllOf((Present("a"), AnyOf((Equal("b", b"\xff"), Equal("c", "d")))))
    made = wire.search(1, "", Scope.BASE, both, [], controls=[wire.paging(500, b"ck"), wire.sd_flags(7)])
    nested = "a015 870161 a110 a306 040162 0401ff a306 040163 040164"
    assert bytes.fromhex(nested) in made
    assert bytes.fromhex("0101ff 040a 3008 020201f4 0402 636b") in made
    assert bytes.fromhex("010100 0405 3003 020107") in made


def test_an_entry() -> None:
    attributes = sequence(
        sequence(octets("cn"), sequence(octets("London"), tag=0x31)),
        sequence(octets("mSMQSites"), sequence(octets(b"\x00\x01"), octets(b"\xff"), tag=0x31)),
        sequence(octets("none"), sequence(tag=0x31)),
    )
    read = wire.decode(sequence(integer(9), sequence(octets("CN=x"), attributes, tag=0x64)))
    assert (read.message_id, read.kind, read.dn) == (9, Kind.ENTRY, "CN=x")
    assert read.attributes == {"cn": (b"London",), "mSMQSites": (b"\x00\x01", b"\xff"), "none": ()}


def test_the_end_of_a_page() -> None:
    value = sequence(integer(0), octets(b"next"))
    control = sequence(octets(wire.PAGED_RESULTS), octets(value))
    result = sequence(bytes.fromhex("0a0100"), octets(""), octets(""), tag=0x65)
    read = wire.decode(sequence(integer(3), result, sequence(control, tag=0xA0)))
    assert read.kind == Kind.SEARCH_DONE
    assert wire.read_cookie(read.controls[wire.PAGED_RESULTS]) == b"next"


def test_a_login_that_goes_on_and_a_refusal_with_a_referral() -> None:
    body = sequence(bytes.fromhex("0a010e"), octets(""), octets(""), octets(b"token", 0x87), tag=0x61)
    read = wire.decode(sequence(integer(1), body))
    assert (read.result.code, read.credentials) == (14, b"token")
    referral = sequence(octets("ldap://other"), tag=0xA3)
    body = sequence(bytes.fromhex("0a010a"), octets("DC=x"), octets("go there"), referral, tag=0x69)
    read = wire.decode(sequence(integer(1), body))
    assert (read.result.code, read.result.matched, read.result.diagnostics) == (10, "DC=x", "go there")


@given(st.integers(-(2**63), 2**63 - 1))
def test_numbers_round_trip(number: int) -> None:
    assert Reader(integer(number)).integer() == number


@given(st.binary(max_size=70_000))
def test_lengths_round_trip(content: bytes) -> None:
    made = tagged(4, content)
    assert len(made) == header_size(made[1]) + len(content)
    assert Reader(made).octets() == content
    for cut in {1, len(made) // 2, len(made) - 1} - {len(made)}:
        with pytest.raises(BerError):
            Reader(made[:cut]).octets()


@given(st.binary(max_size=400))
def test_any_bytes_are_a_message_or_an_error(data: bytes) -> None:
    for attempt in (data, sequence(integer(1), data), sequence(integer(1), tagged(0x64, data))):
        with suppress(BerError):
            wire.decode(attempt)


@pytest.mark.parametrize("text", ["30", "3080", "30850000000001", "1f8101", "300202", "3003 0201"])
def test_broken_headers(text: str) -> None:
    with pytest.raises(BerError):
        wire.decode(bytes.fromhex(text))
