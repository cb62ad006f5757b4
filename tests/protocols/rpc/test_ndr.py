"""NDR 2.0: what is aligned where, and what is refused."""

from __future__ import annotations

import tracemalloc
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lanner.protocols.rpc.ndr import NULL_HANDLE, ContextHandle, NdrError, NdrReader, NdrWriter

GUID = UUID("01234567-89ab-cdef-0123-456789abcdef")

PRIMITIVES = [
    ("u8", 0xFE, "fe"),
    ("u16", 0x1234, "3412"),
    ("i16", -2, "feff"),
    ("u32", 0x12345678, "78563412"),
    ("i32", -2, "feffffff"),
    ("u64", 0x0102030405060708, "0807060504030201"),
    ("i64", -2, "feffffffffffffff"),
    ("enum16", 7, "0700"),
    ("guid", GUID, "67452301ab89efcd0123456789abcdef"),
]


@pytest.mark.parametrize(("name", "value", "octets"), PRIMITIVES)
def test_primitives_both_ways(name: str, value: object, octets: str) -> None:
    writer = NdrWriter()
    getattr(writer, name)(value)
    assert writer.getvalue().hex() == octets
    reader = NdrReader(bytes.fromhex(octets))
    assert getattr(reader, name)() == value
    reader.finish()
    big = NdrWriter(big_endian=True)
    getattr(big, name)(value)
    assert getattr(NdrReader(big.getvalue(), big_endian=True), name)() == value
    for cut in range(len(octets) // 2):
        with pytest.raises(NdrError):
            getattr(NdrReader(bytes.fromhex(octets)[:cut]), name)()


def test_everything_is_aligned_to_its_size() -> None:
    writer = NdrWriter()
    for name, value in (("u8", 1), ("u16", 2), ("u8", 3), ("u32", 4), ("u8", 5), ("u64", 6)):
        getattr(writer, name)(value)
    assert writer.getvalue().hex() == "0100020003000000" + "0400000005000000" + "0600000000000000"
    reader = NdrReader(writer.getvalue())
    assert [reader.u8(), reader.u16(), reader.u8(), reader.u32(), reader.u8(), reader.u64()] == [*range(1, 7)]


def test_a_union_arm_takes_its_own_alignment() -> None:
    """MGMT_OBJECT of MS-MQMR: enum at 0, tag at 2, arm at 4; PROPVARIANT: a short at 10, a hyper at 16."""
    writer = NdrWriter()
    writer.enum16(2)
    writer.enum16(2)
    writer.pointer()
    assert writer.getvalue().hex() == "0200020000000200"
    writer = NdrWriter()
    writer.align(8)
    writer.u8(18)
    writer.octets(bytes(7))
    writer.u16(18)
    writer.u16(0xAAAA)
    assert writer.position == 12
    writer = NdrWriter()
    writer.octets(bytes(8))
    writer.u16(21)
    writer.u64(1)
    assert writer.position == 24


def test_strings() -> None:
    writer = NdrWriter()
    writer.wide_string("ab")
    assert writer.getvalue().hex() == "030000000000000003000000" + "610062000000"
    assert NdrReader(writer.getvalue()).wide_string(limit=2) == "ab"
    with pytest.raises(NdrError, match="more than 2"):
        NdrReader(writer.getvalue()).wide_string(limit=1)
    writer = NdrWriter(big_endian=True)
    writer.wide_string("\U0001f985")
    assert NdrReader(writer.getvalue(), big_endian=True).wide_string(limit=2) == "\U0001f985"
    writer = NdrWriter()
    writer.ascii_string("ab")
    assert writer.getvalue().hex() == "030000000000000003000000" + "616200"
    assert NdrReader(writer.getvalue()).ascii_string(limit=2) == "ab"


@pytest.mark.parametrize(
    ("octets", "why"),
    [
        ("020000000000000002000000" + "61006200", "no closing null"),
        ("020000000000000000000000", "no closing null"),
        ("020000000100000001000000" + "0000", "begins at element 1"),
        ("010000000000000002000000" + "61000000", "room for 1"),
        ("ffffffff00000000ffffffff", "more than"),
        ("030000000000000003000000" + "610000000000", "before its closing null"),
        ("020000000000000002000000" + "00d80000", "no UTF-16"),
        ("020000000000000002000000" + "6100", "needs 4 octets"),
    ],
)
def test_strings_that_are_refused(octets: str, why: str) -> None:
    with pytest.raises(NdrError, match=why):
        NdrReader(bytes.fromhex(octets)).wide_string(limit=100)


def test_null_with_a_count() -> None:
    assert NdrReader(bytes(4)).pointer_for(0) == 0
    with pytest.raises(NdrError, match="NULL with a count of 3"):
        NdrReader(bytes(4)).pointer_for(3)
    with pytest.raises(NdrError, match="must not be"):
        NdrReader(bytes(4)).reference()
    assert int(NdrError.status) == 0x6F7


def test_arrays() -> None:
    reader = NdrReader(bytes.fromhex("02000000" + "0100" + "0200"))
    assert reader.conformant_array(reader.u16, limit=2, item_size=2) == [1, 2]
    reader = NdrReader(bytes.fromhex("05000000" + "00000000" + "02000000" + "0102"))
    assert reader.varying_array(reader.u8, limit=5) == [1, 2]
    reader = NdrReader(bytes.fromhex("02000000" + "aabb"))
    assert reader.conformant_bytes(limit=2, expected=2) == b"\xaa\xbb"


@pytest.mark.parametrize(
    ("limit", "expected", "size", "why"),
    [(2, None, 1, "more than 2"), (9, 4, 1, "says 4"), (9, 3, 2, "are left")],
)
def test_counts_that_are_refused(limit: int, expected: int | None, size: int, why: str) -> None:
    with pytest.raises(NdrError, match=why):
        NdrReader(bytes.fromhex("03000000" + "010203")).conformance(
            limit=limit, expected=expected, item_size=size
        )


def test_ranges_and_enumerations() -> None:
    reader = NdrReader(bytes.fromhex("00800000"))
    with pytest.raises(NdrError, match="32767"):
        reader.enum16()
    assert reader.ranged(5, 0, 5, "x") == 5
    with pytest.raises(NdrError, match="not 0 to 5"):
        reader.ranged(6, 0, 5, "x")
    with pytest.raises(NdrError):
        NdrWriter().u16(70_000)
    with pytest.raises(NdrError):
        NdrWriter().enum16(0x8000)


def test_pointees_follow_depth_first() -> None:
    """An array of pointers to structures with pointers of their own: C706 14.3.12.3."""
    writer = NdrWriter()

    def structure(number: int) -> None:
        writer.u32(number)
        writer.pointer()
        writer.defer(lambda: writer.u32(number * 10))

    writer.conformance(2)
    for number in (1, 2):
        writer.pointer()
        writer.defer(lambda number=number: structure(number))  # type: ignore[misc]
    writer.resolve()
    data = writer.getvalue()
    assert data.hex() == (
        "02000000" + "00000200" + "04000200" + "01000000" + "08000200" + "0a000000"
        "02000000" + "0c000200" + "14000000"
    )
    reader = NdrReader(data)
    read: list[int] = []

    def read_structure() -> None:
        read.append(reader.u32())
        assert reader.pointer()
        reader.defer(lambda: read.append(reader.u32()))

    for _ in range(reader.conformance(limit=2)):
        assert reader.pointer()
        reader.defer(read_structure)
    with pytest.raises(NdrError, match="was not read"):
        reader.finish()
    reader.resolve()
    reader.finish()
    assert read == [1, 10, 2, 20]


def test_pointers_do_not_nest_for_ever() -> None:
    reader = NdrReader(b"")

    def again() -> None:
        reader.defer(again)

    reader.defer(again)
    with pytest.raises(NdrError, match="deeper"):
        reader.resolve()


def test_handles() -> None:
    handle = ContextHandle(0, GUID)
    writer = NdrWriter()
    writer.context_handle(handle)
    writer.context_handle(NULL_HANDLE)
    reader = NdrReader(writer.getvalue())
    assert reader.context_handle() == handle
    assert reader.context_handle().is_null
    assert not handle.is_null


def test_what_follows_is_refused_unless_it_is_tolerated() -> None:
    reader = NdrReader(b"\1\2\3")
    reader.u8()
    with pytest.raises(NdrError, match="2 octets follow"):
        reader.finish()
    assert reader.tolerate_trailer() == b"\2\3"
    reader.finish()


READS = (
    lambda reader: reader.u8(),
    lambda reader: reader.u32(),
    lambda reader: reader.u64(),
    lambda reader: reader.guid(),
    lambda reader: reader.context_handle(),
    lambda reader: reader.wide_string(limit=1_000_000),
    lambda reader: reader.ascii_string(limit=1_000_000),
    lambda reader: reader.conformant_bytes(limit=1_000_000),
    lambda reader: reader.conformant_array(reader.u32, limit=1_000_000, item_size=4),
    lambda reader: reader.varying_array(reader.u16, limit=1_000_000, item_size=2),
    lambda reader: reader.pointer_for(1),
    lambda reader: reader.enum16(),
)


@given(st.binary(max_size=300), st.lists(st.sampled_from(READS), max_size=8), st.booleans())
@settings(max_examples=500, deadline=None)
def test_any_octets_give_values_or_an_ndr_error(data: bytes, reads: list[object], big_endian: bool) -> None:
    reader = NdrReader(data, big_endian)
    try:
        for read in reads:
            read(reader)  # type: ignore[operator]
        reader.finish()
    except NdrError:
        pass
    assert reader.position <= len(data)


@pytest.mark.parametrize("read", READS[5:10])
def test_no_room_is_made_for_what_is_only_claimed(read: object) -> None:
    claims = [b"\xff\xff\x0f\x00\0\0\0\0\xff\xff\x0f\x00", b"\x40\x42\x0f\x00\0\0\0\0\x40\x42\x0f\x00"]
    tracemalloc.start()
    try:
        for claim in claims:
            with pytest.raises(NdrError):
                read(NdrReader(claim))  # type: ignore[operator]
        assert tracemalloc.get_traced_memory()[1] < 64 * 1024
    finally:
        tracemalloc.stop()


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=50), st.booleans())
def test_text_comes_back(text: str, big_endian: bool) -> None:
    writer = NdrWriter(big_endian)
    writer.wide_string(text)
    assert NdrReader(writer.getvalue(), big_endian).wide_string(limit=200) == text
