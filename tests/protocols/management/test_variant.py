"""PROPVARIANT on the wire: every arm, both ways and in both byte orders (MS-MQMQ 2.2.13)."""

from __future__ import annotations

import contextlib
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanner.protocols.management.variant import (
    EMPTY,
    NULL,
    VECTOR,
    Variant,
    VariantType,
    read_variants,
    type_name,
    write_variants,
)
from lanner.protocols.rpc.ndr import NdrError, NdrReader, NdrWriter

GUID = UUID("e6eaba61-d1c6-11db-baac-0003ff4e2d22")
T = VariantType


def encoded(*variants: Variant, big_endian: bool = False) -> bytes:
    writer = NdrWriter(big_endian)
    write_variants(writer, variants)
    return writer.getvalue()


def decoded(stub: bytes, count: int = 1, *, big_endian: bool = False) -> list[Variant]:
    reader = NdrReader(stub, big_endian)
    found = read_variants(reader, count, "apVar")
    reader.finish()
    return found


ARMS = [
    EMPTY,
    NULL,
    Variant(T.I1, -1),
    Variant(T.UI1, 200),
    Variant(T.I2, -2),
    Variant(T.UI2, 60_000),
    Variant(T.I4, -3),
    Variant(T.UI4, 4_000_000_000),
    Variant(T.I8, -(2**62)),
    Variant(T.UI8, 2**63),
    Variant(T.BOOL, True),
    Variant(T.BOOL, False),
    Variant(T.CLSID, GUID),
    Variant(T.CLSID, None),
    Variant(T.BLOB, b"sixteen octets..."),
    Variant(T.BLOB, b""),
    Variant(T.LPWSTR, "CONNECTED"),
    Variant(T.LPWSTR, ""),
    Variant(T.LPWSTR, None),
    Variant(VECTOR | T.UI1, [1, 2, 255]),
    Variant(VECTOR | T.UI2, [1, 65_535]),
    Variant(VECTOR | T.I4, [-1, 0, 1]),
    Variant(VECTOR | T.UI4, [0, 4_294_967_295]),
    Variant(VECTOR | T.UI8, [2**64 - 1]),
    Variant(VECTOR | T.CLSID, [GUID, UUID(int=0)]),
    Variant(VECTOR | T.LPWSTR, ["one", "", "three"]),
    Variant(VECTOR | T.LPWSTR, [None, "a"]),
    Variant(VECTOR | T.LPWSTR, []),
    Variant(VECTOR | T.VARIANT, []),
    Variant(VECTOR | T.VARIANT, [Variant(VECTOR | T.LPWSTR, ["a"]), Variant(VECTOR | T.VARIANT, [NULL])]),
]


@pytest.mark.parametrize("big_endian", [False, True], ids=["little", "big"])
@pytest.mark.parametrize("variant", ARMS, ids=str)
def test_every_arm_both_ways(variant: Variant, big_endian: bool) -> None:
    stub = encoded(variant, big_endian=big_endian)
    assert decoded(stub, big_endian=big_endian) == [variant]


def test_all_arms_in_one_array() -> None:
    assert decoded(encoded(*ARMS), len(ARMS)) == ARMS


@pytest.mark.parametrize("variant", ARMS, ids=str)
def test_what_is_cut_off_is_refused_wherever_it_ends(variant: Variant) -> None:
    stub = encoded(variant)
    for end in range(len(stub)):
        with pytest.raises(NdrError):
            decoded(stub[:end])


@pytest.mark.parametrize(
    ("variant", "offset"),
    [
        (Variant(T.UI1, 0x5A), 10),
        (Variant(T.UI2, 0x5A5A), 10),
        (Variant(T.UI4, 0x5A5A5A5A), 12),
        (Variant(T.UI8, 0x5A5A5A5A5A5A5A5A), 16),
    ],
    ids=str,
)
def test_an_arm_has_its_own_alignment(variant: Variant, offset: int) -> None:
    stub = encoded(variant)
    assert stub[:4] == b"\x01\0\0\0", "the array's count"
    structure = stub[8:]
    assert structure[:2] == structure[8:10] == int(variant.type).to_bytes(2, "little")
    assert structure[offset:] == b"\x5a" * (len(structure) - offset)


def test_the_octets_of_a_string() -> None:
    assert encoded(Variant(T.LPWSTR, "A")).hex(" ", 4) == (
        "01000000 00000000 1f000000 00000000 1f000000 00000200 02000000 00000000 02000000 41000000"
    )


def test_pointees_follow_the_array_in_order_each_with_its_own() -> None:
    inner = Variant(VECTOR | T.LPWSTR, ["b1", "b2"])
    stub = encoded(Variant(T.LPWSTR, "a"), inner, Variant(T.LPWSTR, "c"))
    places = [stub.index(text.encode("utf-16-le")) for text in ("a", "b1", "b2", "c")]
    assert places == sorted(places)


def _broken(at: int, value: bytes, variant: Variant) -> bytes:
    stub = bytearray(encoded(variant))
    stub[at : at + len(value)] = value
    return bytes(stub)


@pytest.mark.parametrize(
    ("stub", "told"),
    [
        (_broken(8, b"\x1f\x00", NULL), "its union of"),
        (_broken(8, b"\x05\x00", Variant(T.UI4, 1)), "its union of"),
        (encoded(NULL, NULL), "its count says 1"),
        (_broken(0, b"\xff\xff\xff\xff", NULL), "its count says"),
        (_broken(24, b"\0\0\0\0", Variant(VECTOR | T.UI4, [1])), "NULL with a count of 1"),
        (_broken(24, b"\0\0\0\0", Variant(T.BLOB, b"1")), "NULL with a count of 1"),
        (_broken(20, b"\x02\0\0\0", Variant(VECTOR | T.UI4, [1])), "its count says 2"),
        (_broken(18, b"\x01\x00", Variant(T.BOOL, True)), "neither VARIANT_TRUE"),
        (_broken(36, b"A\0", Variant(T.LPWSTR, "")), "no closing null"),
    ],
)
def test_what_breaks_the_interface_is_refused(stub: bytes, told: str) -> None:
    with pytest.raises(NdrError, match=told):
        decoded(stub)


def test_an_unknown_type_is_refused_both_ways() -> None:
    stub = bytearray(encoded(NULL))
    stub[8:10] = stub[16:18] = b"\x05\0"
    with pytest.raises(NdrError, match="no type of a variant"):
        decoded(bytes(stub))
    for kind in (5, VECTOR | T.I2, T.VARIANT):
        with pytest.raises(NdrError, match="no type of a variant"):
            encoded(Variant(kind, 1))


@pytest.mark.parametrize("variant", [Variant(T.I1, 128), Variant(T.UI4, -1), Variant(T.UI8, 2**64)], ids=str)
def test_a_value_that_does_not_fit_is_refused(variant: Variant) -> None:
    with pytest.raises(NdrError):
        encoded(variant)


def test_a_claimed_count_reserves_nothing() -> None:
    stub = _broken(20, b"\xff\xff\xff\x7f", Variant(VECTOR | T.UI4, [1]))
    stub = stub[:28] + b"\xff\xff\xff\x7f" + stub[32:]
    with pytest.raises(NdrError, match="more than"):
        decoded(stub)


def test_nesting_ends_somewhere() -> None:
    variant = NULL
    for _ in range(100):
        variant = Variant(VECTOR | T.VARIANT, [variant])
    with pytest.raises(NdrError, match="deeper"):
        decoded(encoded(variant))


def test_names_of_types() -> None:
    assert [type_name(each) for each in (1, VECTOR | 31, 0x7777)] == [
        "VT_NULL",
        "VT_VECTOR|VT_LPWSTR",
        "0x7777",
    ]


_texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
_leaves: list[st.SearchStrategy[Any]] = [
    st.just(NULL),
    st.builds(Variant, st.just(int(T.UI4)), st.integers(0, 2**32 - 1)),
    st.builds(Variant, st.just(int(T.I8)), st.integers(-(2**63), 2**63 - 1)),
    st.builds(Variant, st.just(int(T.UI1)), st.integers(0, 255)),
    st.builds(Variant, st.just(int(T.BLOB)), st.binary(max_size=40)),
    st.builds(Variant, st.just(int(T.LPWSTR)), st.none() | _texts),
    st.builds(Variant, st.just(VECTOR | T.LPWSTR), st.lists(_texts, max_size=5)),
    st.builds(Variant, st.just(VECTOR | T.UI8), st.lists(st.integers(0, 2**64 - 1), max_size=5)),
]
_variants = st.recursive(
    st.one_of(_leaves),
    lambda inner: st.builds(Variant, st.just(VECTOR | T.VARIANT), st.lists(inner, max_size=4)),
    max_leaves=12,
)


@given(st.lists(_variants, max_size=6), st.booleans())
def test_what_is_written_is_read(variants: list[Variant], big_endian: bool) -> None:
    stub = encoded(*variants, big_endian=big_endian)
    assert decoded(stub, len(variants), big_endian=big_endian) == variants


@given(st.binary(max_size=200), st.booleans())
def test_noise_is_refused_with_the_documented_error(noise: bytes, big_endian: bool) -> None:
    with contextlib.suppress(NdrError):
        decoded(noise, 2, big_endian=big_endian)


@given(st.lists(_variants, min_size=1, max_size=3), st.data())
def test_damage_is_refused_with_the_documented_error(variants: list[Variant], data: st.DataObject) -> None:
    stub = bytearray(encoded(*variants))
    stub[data.draw(st.integers(0, len(stub) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(NdrError):
        decoded(bytes(stub), len(variants))
