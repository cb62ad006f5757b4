"""PDUs: vectors both ways, both byte orders, cut short anywhere, and anything at all."""

from __future__ import annotations

import contextlib
import tracemalloc
from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lanner.protocols.rpc.codec import decode, encode, read_header, segments
from lanner.protocols.rpc.errors import ProtocolError
from lanner.protocols.rpc.framing import Framer
from lanner.protocols.rpc.interface import InterfaceId
from lanner.protocols.rpc.pdu import (
    NDR20,
    AlterContext,
    AlterContextResponse,
    AnyPdu,
    Auth3,
    Bind,
    BindAck,
    BindNak,
    Cancel,
    ContextElement,
    ContextResult,
    Fault,
    Flags,
    Orphaned,
    Request,
    Response,
    SecTrailer,
    Shutdown,
)

MAPPER = InterfaceId(UUID("e1af8308-5d1f-11c9-91a4-08002b14a0fa"), 3, 0)
NDR_OCTETS = "045d888aeb1cc9119fe808002b10486002000000"
MAPPER_OCTETS = "0883afe11f5dc91191a408002b14a0fa03000000"
OBJECT = UUID("01234567-89ab-cdef-0123-456789abcdef")
TRAILER = SecTrailer(type=10, level=6, context_id=79231, token=b"T" * 16)

VECTORS: list[tuple[str, AnyPdu, str]] = [
    (
        "bind, as captures of the endpoint mapper show it",
        Bind(
            call_id=1,
            max_transmit=4280,
            max_receive=4280,
            contexts=(ContextElement(0, MAPPER, (NDR20,)),),
        ),
        "05000b03100000004800000001000000"
        + "b810b81000000000"
        + "01000000"
        + "00000100"
        + MAPPER_OCTETS
        + NDR_OCTETS,
    ),
    (
        "bind_ack",
        BindAck(
            call_id=1,
            max_transmit=5840,
            max_receive=5840,
            group=0x53F0,
            secondary_address=b"135\0",
            results=(ContextResult(0, 0, NDR20),),
        ),
        "05000c03100000003c00000001000000"
        + "d016d016f0530000"
        + "0400313335000000"
        + "01000000"
        + "00000000"
        + NDR_OCTETS,
    ),
    (
        "bind_nak",
        BindNak(call_id=2, reason=8),
        "05000d03100000001800000002000000" + "0800010500000000"[:16],
    ),
    (
        "auth3",
        Auth3(call_id=3, auth=SecTrailer(10, 5, 1, b"tokn")),
        "05001003100000002000040003000000" + "00000000" + "0a05000001000000" + "746f6b6e",
    ),
    (
        "request",
        Request(call_id=4, alloc_hint=3, context_id=1, opnum=2, stub=b"abc"),
        "05000003100000001b00000004000000" + "0300000001000200" + "616263",
    ),
    (
        "request with an object",
        Request(
            call_id=4,
            flags=Flags.FIRST | Flags.LAST | Flags.OBJECT,
            alloc_hint=1,
            object_uuid=OBJECT,
            stub=b"a",
        ),
        "05000083100000002900000004000000" + "0100000000000000" + "67452301ab89efcd0123456789abcdef" + "61",
    ),
    (
        "response",
        Response(call_id=4, alloc_hint=2, context_id=1, stub=b"ok"),
        "05000203100000001a00000004000000" + "0200000001000000" + "6f6b",
    ),
    (
        "fault",
        Fault(call_id=4, alloc_hint=32, context_id=1, status=0x1C010002),
        "05000303100000002000000004000000" + "2000000001000000" + "0200011c00000000",
    ),
    ("cancel", Cancel(call_id=5), "05001203100000001000000005000000"),
    ("orphaned", Orphaned(call_id=6), "05001303100000001000000006000000"),
    ("shutdown", Shutdown(call_id=0), "05001103100000001000000000000000"),
]

MORE: list[AnyPdu] = [
    AlterContext(
        call_id=7, group=9, contexts=(ContextElement(1, MAPPER), ContextElement(2, MAPPER)), auth=TRAILER
    ),
    AlterContextResponse(
        call_id=7, group=9, results=(ContextResult(2, 1), ContextResult(3, 3)), auth=TRAILER
    ),
    BindAck(call_id=7, secondary_address=b"49152\0", results=(), auth=TRAILER),
    Request(call_id=8, flags=Flags.FIRST, stub=bytes(32), auth=replace(TRAILER, pad_length=9)),
    Response(call_id=8, flags=Flags.LAST, stub=bytes(16), auth=TRAILER),
]

ALL = [pytest.param(pdu, id=type(pdu).__name__) for pdu in [pdu for _, pdu, _ in VECTORS] + MORE]


def norm(pdu: AnyPdu) -> AnyPdu:
    """Padding is what the writer makes of it."""
    if pdu.auth is None or isinstance(pdu, Request | Response):
        return pdu
    return replace(pdu, auth=replace(pdu.auth, pad_length=0))


@pytest.mark.parametrize(("pdu", "octets"), [pytest.param(p, o, id=name) for name, p, o in VECTORS])
def test_vectors_both_ways(pdu: AnyPdu, octets: str) -> None:
    assert encode(pdu).hex() == octets
    assert decode(bytes.fromhex(octets)) == pdu


@pytest.mark.parametrize("pdu", ALL)
def test_read_whole_by_octet_and_with_more_behind(pdu: AnyPdu) -> None:
    data = encode(pdu)
    assert norm(decode(data)) == pdu
    framer = Framer()
    found = [each for octet in data for each in framer.feed(bytes([octet]))]
    assert found == [data]
    framer = Framer()
    assert framer.feed(data + data + data[:7]) == [data, data]
    assert framer.is_waiting
    assert framer.held == 7
    with pytest.raises(ProtocolError):
        decode(data + b"\0")


@pytest.mark.parametrize("pdu", ALL)
def test_cut_short_anywhere(pdu: AnyPdu) -> None:
    data = encode(pdu)
    for cut in range(len(data)):
        with pytest.raises(ProtocolError):
            decode(data[:cut])
        # The same with a length that says so; what is variable at the end may then be shorter.
        if cut >= 16:
            shorter = data[:8] + cut.to_bytes(2, "little") + data[10:cut]
            try:
                decode(shorter)
            except ProtocolError:
                continue
            assert isinstance(pdu, Request | Response | BindNak | Cancel | Fault | Auth3 | BindAck)


def swapped(data: bytes) -> bytes:
    """A request or fault in the other byte order."""
    parts = [data[:4], b"\0\0\0\0", data[9:7:-1], data[11:9:-1], data[15:11:-1]]
    parts += [data[19:15:-1], data[21:19:-1], data[23:21:-1]]
    return b"".join(parts) + data[24:]


def test_big_endian() -> None:
    request = Request(call_id=0x01020304, alloc_hint=3, context_id=0x0506, opnum=0x0708, stub=b"abc")
    assert decode(swapped(encode(request))) == replace(request, big_endian=True)
    bind = (
        "05000b03000000000048000000000001" + "10b810b800000000" + "01000000" + "00000100"
        "e1af83085d1f11c991a408002b14a0fa" + "00000003" + "8a885d041ceb11c99fe808002b104860" + "00000002"
    )
    read = decode(bytes.fromhex(bind))
    assert isinstance(read, Bind)
    assert read.contexts == (ContextElement(0, MAPPER, (NDR20,)),)
    assert read.big_endian
    trailer = bytes.fromhex(
        "05001003000000000020000400000003" + "00000000" + "0a050000" + "00000001" + "746f6b6e"
    )
    assert decode(trailer).auth == SecTrailer(10, 5, 1, b"tokn")


@pytest.mark.parametrize(
    ("octets", "why"),
    [
        ("04000b03100000001000000001000000", "version 4.0"),
        ("05010b03100000001000000001000000", "version 5.1"),
        ("05000b03200000001000000001000000", "data representation"),
        ("05000b03100000000f00000001000000", "shorter than its header"),
        ("05000b03100000001000010001000000", "a token of 1 octets"),
        ("05000b0310000000100009ff01000000", "a token of"),
        ("05000903100000001000000001000000", "type 9"),
        ("05000b03100000001c00000001000000" + "b810b810000000000000" + "0000", "no presentation context"),
        ("05001003100000001400000001000000" + "00000000", "without a token"),
    ],
)
def test_what_is_refused(octets: str, why: str) -> None:
    with pytest.raises(ProtocolError, match=why):
        decode(bytes.fromhex(octets))


def test_the_segments_that_are_protected() -> None:
    request = Request(call_id=1, stub=b"s" * 16, object_uuid=OBJECT, auth=TRAILER)
    parts = segments(encode(request))
    assert [len(parts.header), parts.body, len(parts.trailer), parts.token] == [40, b"s" * 16, 8, b"T" * 16]
    parts = segments(encode(Response(call_id=1, stub=b"", auth=TRAILER)))
    assert [len(parts.header), parts.body] == [24, b""]
    with pytest.raises(ProtocolError):
        segments(encode(Request(call_id=1)))


def test_too_long_to_be_written() -> None:
    with pytest.raises(ProtocolError, match="longer than"):
        encode(Response(call_id=1, stub=bytes(65_535)))


@given(st.binary(max_size=200))
@settings(max_examples=500, deadline=None)
def test_any_octets_are_a_pdu_or_a_protocol_error(data: bytes) -> None:
    with contextlib.suppress(ProtocolError):
        decode(data)
    framer = Framer()
    with contextlib.suppress(ProtocolError):
        framer.feed(data)
    assert framer.held <= len(data)


@given(
    st.sampled_from([encode(each.values[0]) for each in ALL]),  # type: ignore[arg-type]
    st.lists(st.tuples(st.integers(0, 150), st.integers(0, 255)), max_size=6),
)
@settings(max_examples=1_000, deadline=None)
def test_pdus_with_a_few_wrong_octets(data: bytes, changes: list[tuple[int, int]]) -> None:
    changed = bytearray(data)
    for at, value in changes:
        changed[at % len(changed)] = value
    try:
        pdu = decode(bytes(changed))
        segments(bytes(changed))
        assert read_header(bytes(changed)).call_id == pdu.call_id
    except ProtocolError:
        pass


def test_no_room_is_made_for_what_is_only_claimed() -> None:
    header = bytes.fromhex("05000003100000" + "00ffffffff" + "01000000")
    tracemalloc.start()
    try:
        for _ in range(100):
            framer = Framer()
            with pytest.raises(ProtocolError):
                framer.feed(header)
            assert Framer().feed(bytes.fromhex("0500000310000000ffff000001000000")) == []
        assert tracemalloc.get_traced_memory()[1] < 64 * 1024
    finally:
        tracemalloc.stop()
