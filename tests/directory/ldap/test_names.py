"""Distinguished names, and the names of queues in them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanner.directory.base import InvalidDirectoryError
from lanner.directory.ldap import dn
from lanner.directory.ldap.queue_names import hash_string, restored_name, stored_name

QUEUE_NAMES = st.text(
    st.characters(min_codepoint=0x21, max_codepoint=0x7E, exclude_characters='\\;+,"'),
    min_size=1,
    max_size=124,
)


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=80))
def test_any_name_goes_into_a_distinguished_name_and_comes_out(name: str) -> None:
    made = dn.child(name, "CN=Sites,DC=test")
    assert dn.value(made) == name
    assert dn.parent(made) == "CN=Sites,DC=test"
    assert dn.key(made)[1:] == dn.key("cn=sites, dc=TEST")


def test_parts_with_escapes() -> None:
    assert dn.parts(r"CN=a\,b\2Bc\C3\A9 , OU=\ x\ ,DC=t") == [("CN", "a,b+cé"), ("OU", " x "), ("DC", "t")]


@pytest.mark.parametrize("text", ["", "CN", "CN=a,b", "=a", "CN=a\\", r"CN=\ff", "CN=" + "a" * 9000])
def test_what_is_no_distinguished_name(text: str) -> None:
    with pytest.raises(InvalidDirectoryError):
        dn.parts(text)


def test_too_short_a_name() -> None:
    with pytest.raises(InvalidDirectoryError, match="too short"):
        dn.value("CN=a", 1)
    with pytest.raises(InvalidDirectoryError, match="nothing above"):
        dn.parent("CN=a")


# Queues. The hash is a CRC of UTF-16 with the polynomial of the specification's table.


def test_the_hash_by_hand() -> None:
    # One character takes two steps through the table of 2.2.5: entries 0 and 0x61 = 97.
    assert hash_string("a") == hash_string("A") == "3f590a6e"
    # The next, 0x0062: entry 0x6e = 110 gives 0x248abb42, then 0x42 ^ 0x62 = 32 gives the rest.
    assert (0x3F590A6E >> 8) ^ 0x24B5E248 == 0x248ABB42
    assert hash_string("ab") == f"{(0x248ABB42 >> 8) ^ 0x6B68AC19:08x}"
    # A character with a high byte, 0x0100: entry 1, then 0x45 = 69.
    assert hash_string("\u0101") == f"{((0x82E0FE45 >> 8) ^ _SPEC[0x44]):08x}"


_SPEC = {0x44: 0xB0D4E1A8}
"""Entry 68 of the table: (0x45 ^ 0x01)."""


def test_short_names_stay_whole() -> None:
    assert stored_name("a" * 63) == ("a" * 63, "")
    # Each mark counts twice (3.1.6.1.2.5).
    assert stored_name("=" * 31) == ("=" * 31, "")
    assert stored_name("=" * 32).extension


def test_long_names_are_split() -> None:
    name = "x" * 55 + "y" * 20
    found = stored_name(name)
    assert found.common_name == "x" * 55 + "-" + hash_string(name)
    assert len(found.common_name) == 64
    assert found.extension == "y" * 20
    assert stored_name(name + "z").common_name != found.common_name


@given(QUEUE_NAMES)
def test_names_round_trip(name: str) -> None:
    found = stored_name(name)
    assert len(found.common_name) <= 64
    assert restored_name(*found) == name
