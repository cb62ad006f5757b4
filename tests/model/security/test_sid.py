from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanner.model.errors import InvalidSecurityDescriptorError
from lanner.model.security import ADMINISTRATORS, ANONYMOUS, AUTHENTICATED_USERS, EVERYONE, Sid

DOMAIN = Sid.parse("S-1-5-21-1-2-3")

sids = st.builds(
    Sid,
    st.integers(0, 2**48 - 1) | st.integers(0, 20),
    st.lists(st.integers(0, 2**32 - 1), max_size=15).map(tuple),
)

VECTORS = [
    ("S-1-1-0", "010100000000000100000000"),
    ("S-1-5-7", "010100000000000507000000"),
    ("S-1-5-32-544", "01020000000000052000000020020000"),
    ("S-1-5-21-1-2-3-513", "01050000000000051500000001000000020000000300000001020000"),
    ("S-1-5", "0100000000000005"),
    ("S-1-0x123456789ABC-4294967295", "0101123456789abcffffffff"),
]


@pytest.mark.parametrize(("text", "packet"), VECTORS)
def test_vectors_both_ways(text: str, packet: str) -> None:
    sid = Sid.parse(text)
    data = bytes.fromhex(packet)
    assert str(sid) == text
    assert sid.to_bytes() == data
    assert Sid.from_bytes(data) == sid


@pytest.mark.parametrize("packet", [packet for _, packet in VECTORS])
def test_a_cut_or_longer_packet_is_refused(packet: str) -> None:
    data = bytes.fromhex(packet)
    for size in range(len(data)):
        with pytest.raises(InvalidSecurityDescriptorError):
            Sid.from_bytes(data[:size])
    with pytest.raises(InvalidSecurityDescriptorError, match="4 bytes follow"):
        Sid.from_bytes(data + bytes(4))


@given(sids)
def test_round_trips(sid: Sid) -> None:
    assert Sid.parse(str(sid)) == sid
    assert Sid.from_bytes(sid.to_bytes()) == sid


@given(st.binary(max_size=80))
def test_random_bytes_raise_one_error_alone(data: bytes) -> None:
    with suppress(InvalidSecurityDescriptorError):
        assert Sid.from_bytes(data).to_bytes() == data


@given(st.text(max_size=40) | st.from_regex(r"S-1-[0-9x-]{0,30}"))
def test_random_text_raises_one_error_alone(text: str) -> None:
    with suppress(InvalidSecurityDescriptorError):
        assert Sid.parse(str(Sid.parse(text))) == Sid.parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "S-1-",
        "S-2-5-7",
        "S-1-5-",
        "S-1-5-07",
        "S-1-5-4294967296",
        "S-1-4294967296-1",
        "S-1-0x5-7",
        "S-1-5-7 ",
        "S-1-5-\N{ARABIC-INDIC DIGIT SEVEN}",
        "S-1-5" + "-1" * 16,
        "S-1-5-" + "9" * 5000,
    ],
)
def test_what_is_no_sid(text: str) -> None:
    with pytest.raises(InvalidSecurityDescriptorError):
        Sid.parse(text)


@pytest.mark.parametrize("packet", ["020100000000000100000000", "0110" + "00" * 6 + "00" * 64])
def test_revision_and_count_are_checked(packet: str) -> None:
    with pytest.raises(InvalidSecurityDescriptorError):
        Sid.from_bytes(bytes.fromhex(packet))


@pytest.mark.parametrize(("authority", "subauthorities"), [(-1, ()), (2**48, ()), (5, (2**32,)), (5, (-1,))])
def test_numbers_out_of_range_are_refused(authority: int, subauthorities: tuple[int, ...]) -> None:
    with pytest.raises(InvalidSecurityDescriptorError):
        Sid(authority, subauthorities)


def test_lower_case_is_the_same_sid() -> None:
    assert Sid.parse("s-1-0X123456789abc-1") == Sid(0x123456789ABC, (1,))


@pytest.mark.parametrize(
    ("alias", "sid"),
    [
        ("WD", "S-1-1-0"), ("AN", "S-1-5-7"), ("AU", "S-1-5-11"), ("BA", "S-1-5-32-544"),
        ("BU", "S-1-5-32-545"), ("BG", "S-1-5-32-546"), ("SY", "S-1-5-18"), ("LS", "S-1-5-19"),
        ("NS", "S-1-5-20"), ("CO", "S-1-3-0"), ("CG", "S-1-3-1"), ("OW", "S-1-3-4"),
        ("NU", "S-1-5-2"), ("IU", "S-1-5-4"), ("SU", "S-1-5-6"),
        ("PS", "S-1-5-10"), ("SI", "S-1-16-16384"), ("UD", "S-1-5-84-0-0-0-0-0"),
    ],
)  # fmt: skip
def test_aliases_both_ways(alias: str, sid: str) -> None:
    assert str(Sid.from_alias(alias)) == sid
    assert Sid.parse(sid).alias == alias
    assert Sid.from_alias(alias.lower()).alias == alias


# The grammar of MS-DTYP 2.5.1.1 lists these.
ALL_ALIASES = [
    "DA", "DG", "DU", "ED", "DD", "DC", "BA", "BG", "BU", "LA", "LG", "AO", "BO", "PO", "SO", "AU",
    "PS", "CO", "CG", "SY", "PU", "WD", "RE", "IU", "NU", "SU", "RC", "WR", "AN", "SA", "CA", "RS",
    "EA", "PA", "RU", "LS", "NS", "RD", "NO", "MU", "LU", "IS", "CY", "OW", "ER", "RO", "CD", "AC",
    "RA", "ES", "MS", "UD", "HA", "CN", "AA", "RM", "LW", "ME", "MP", "HI", "SI",
]  # fmt: skip


def test_every_alias_of_the_grammar_is_known_and_means_one_account() -> None:
    assert len({Sid.from_alias(alias, DOMAIN) for alias in ALL_ALIASES}) == len(ALL_ALIASES) == 61


@pytest.mark.parametrize(("alias", "rid"), [("DA", 512), ("DU", 513), ("LA", 500), ("RS", 553)])
def test_an_alias_may_need_a_domain(alias: str, rid: int) -> None:
    assert str(Sid.from_alias(alias, DOMAIN)) == f"S-1-5-21-1-2-3-{rid}"
    with pytest.raises(InvalidSecurityDescriptorError, match="no domain is given"):
        Sid.from_alias(alias)


@pytest.mark.parametrize("alias", ["", "QQ", "Everyone", "\N{LATIN SMALL LETTER LONG S}y"])
def test_an_unknown_alias_is_refused(alias: str) -> None:
    with pytest.raises(InvalidSecurityDescriptorError, match="names no account"):
        Sid.from_alias(alias)


def test_names_for_people() -> None:
    assert EVERYONE.display_name == "Everyone"
    assert ANONYMOUS.display_name == "Anonymous logon"
    assert ADMINISTRATORS.display_name == "Administrators"
    assert AUTHENTICATED_USERS.display_name == "Authenticated users"
    assert DOMAIN.child(1001).display_name == "S-1-5-21-1-2-3-1001"
    assert DOMAIN.alias == ""


def test_guests() -> None:
    assert DOMAIN.child(501).is_guest
    assert not DOMAIN.child(500).is_guest
    assert not DOMAIN.is_guest
    assert not Sid.parse("S-1-5-22-1-2-3-501").is_guest
    assert not Sid.parse("S-1-5").is_guest
