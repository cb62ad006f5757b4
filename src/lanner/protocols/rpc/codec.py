"""PDUs as octets, and back. Both byte orders are read; little-endian is written."""

from __future__ import annotations

import struct
from collections.abc import Callable
from uuid import UUID

from lanner.protocols.rpc.errors import ProtocolError
from lanner.protocols.rpc.interface import InterfaceId
from lanner.protocols.rpc.pdu import (
    HEADER_SIZE,
    MAX_FRAGMENT,
    REQUEST_HEADER_SIZE,
    TRAILER_SIZE,
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
    Header,
    Orphaned,
    PduType,
    Request,
    Response,
    SecTrailer,
    Segments,
    Shutdown,
)

__all__ = ["decode", "encode", "read_header", "segments"]

MAX_TRANSFER_SYNTAXES = 16
"""Of one presentation context: three are known to exist."""

# Reading.


class _Reader:
    """Reads fields, aligned from the beginning of the PDU, and never past the end."""

    def __init__(self, data: bytes, position: int, end: int, big_endian: bool) -> None:
        self._data, self._position, self._end = data, position, end
        self._order = ">" if big_endian else "<"
        self._big_endian = big_endian

    @property
    def remaining(self) -> int:
        return self._end - self._position

    def take(self, size: int) -> bytes:
        if size > self.remaining:
            raise ProtocolError(f"a PDU ends {size - self.remaining} octets before its last field")
        taken = self._data[self._position : self._position + size]
        self._position += size
        return taken

    def numbers(self, form: str) -> tuple[int, ...]:
        return struct.unpack(self._order + form, self.take(struct.calcsize("=" + form)))

    def align(self, size: int) -> None:
        self.take(-self._position % size)

    def uuid(self) -> UUID:
        raw = self.take(16)
        return UUID(bytes=raw) if self._big_endian else UUID(bytes_le=raw)

    def syntax(self) -> InterfaceId:
        uuid = self.uuid()
        (version,) = self.numbers("I")
        return InterfaceId(uuid, version & 0xFFFF, version >> 16)

    def rest(self) -> bytes:
        return self.take(self.remaining)


def read_header(data: bytes) -> Header:
    """The first 16 octets; refuses another protocol version and lengths that cannot be."""
    if len(data) < HEADER_SIZE:
        raise ProtocolError(f"a header has {HEADER_SIZE} octets, not {len(data)}")
    major, minor, kind, flags = data[0], data[1], data[2], data[3]
    if (major, minor) != (5, 0):
        raise ProtocolError(f"protocol version {major}.{minor}, not 5.0 (MS-RPCE 3.3.1.5.1)")
    order = data[4] >> 4
    if order > 1:
        raise ProtocolError(f"data representation {data[4]:#04x} is unknown (C706 14.2.5)")
    length, auth_length, call_id = struct.unpack_from("<HHI" if order else ">HHI", data, 8)
    if length < HEADER_SIZE:
        raise ProtocolError(f"a fragment of {length} octets is shorter than its header")
    if auth_length and auth_length + TRAILER_SIZE + HEADER_SIZE > length:
        raise ProtocolError(f"a token of {auth_length} octets in a fragment of {length}")
    return Header(kind, Flags(flags), call_id, length, auth_length, not order)


def _body_end(header: Header) -> int:
    if not header.auth_length:
        return header.length
    return header.length - header.auth_length - TRAILER_SIZE


def _read_trailer(data: bytes, header: Header) -> SecTrailer | None:
    if not header.auth_length:
        return None
    start = _body_end(header)
    form = ">BBBBI" if header.big_endian else "<BBBBI"
    kind, level, pad, _, context_id = struct.unpack_from(form, data, start)
    return SecTrailer(kind, level, context_id, data[start + TRAILER_SIZE : header.length], pad)


def segments(data: bytes) -> Segments:
    """A request, response or fault with authentication, in its segments."""
    header = read_header(data)
    start = REQUEST_HEADER_SIZE
    if header.type == PduType.REQUEST and header.flags & Flags.OBJECT:
        start += 16
    elif header.type == PduType.FAULT:
        start += 8
    end = _body_end(header)
    if not header.auth_length or end < start or len(data) != header.length:
        raise ProtocolError("a PDU whose segments do not fit")
    middle = end + TRAILER_SIZE
    return Segments(data[:start], data[start:end], data[end:middle], data[middle:])


_Fields = dict[str, object]


def _read_bind(reader: _Reader, _: Header) -> _Fields:
    transmit, receive, group, count, *_rest = reader.numbers("HHIBBH")
    contexts = []
    for _index in range(count):
        identifier, transfers, _reserved = reader.numbers("HBB")
        if not 0 < transfers <= MAX_TRANSFER_SYNTAXES:
            raise ProtocolError(f"a presentation context with {transfers} transfer syntaxes")
        abstract = reader.syntax()
        syntaxes = tuple(reader.syntax() for _ in range(transfers))
        contexts.append(ContextElement(identifier, abstract, syntaxes))
    if not contexts:
        raise ProtocolError("no presentation context is asked for")
    return {"max_transmit": transmit, "max_receive": receive, "group": group, "contexts": tuple(contexts)}


def _read_bind_ack(reader: _Reader, _: Header) -> _Fields:
    transmit, receive, group, size = reader.numbers("HHIH")
    address = reader.take(size)
    reader.align(4)
    count, *_rest = reader.numbers("BBH")
    results = []
    for _index in range(count):
        result, reason = reader.numbers("HH")
        results.append(ContextResult(result, reason, reader.syntax()))
    return {
        "max_transmit": transmit,
        "max_receive": receive,
        "group": group,
        "secondary_address": address,
        "results": tuple(results),
    }


def _read_bind_nak(reader: _Reader, _: Header) -> _Fields:
    (reason,) = reader.numbers("H")
    versions: list[tuple[int, int]] = []
    if reader.remaining:  # what follows may be missing, and a signature may follow it (MS-RPCE 2.2.2.9)
        (count,) = reader.numbers("B")
        for _index in range(count):
            major, minor = reader.numbers("BB")
            versions.append((major, minor))
        reader.rest()
    return {"reason": reason, "versions": tuple(versions)}


def _read_auth3(reader: _Reader, header: Header) -> _Fields:
    if not header.auth_length:
        raise ProtocolError("rpc_auth_3 without a token")
    reader.rest()
    return {}


def _read_request(reader: _Reader, header: Header) -> _Fields:
    alloc_hint, context_id, opnum = reader.numbers("IHH")
    uuid = reader.uuid() if header.flags & Flags.OBJECT else None
    return {
        "alloc_hint": alloc_hint,
        "context_id": context_id,
        "opnum": opnum,
        "object_uuid": uuid,
        "stub": reader.rest(),
    }


def _read_response(reader: _Reader, _: Header) -> _Fields:
    alloc_hint, context_id, cancels, _reserved = reader.numbers("IHBB")
    return {
        "alloc_hint": alloc_hint,
        "context_id": context_id,
        "cancel_count": cancels,
        "stub": reader.rest(),
    }


def _read_fault(reader: _Reader, _: Header) -> _Fields:
    alloc_hint, context_id, cancels, _reserved, status = reader.numbers("IHBBI")
    reader.rest()
    return {"alloc_hint": alloc_hint, "context_id": context_id, "cancel_count": cancels, "status": status}


def _read_nothing(reader: _Reader, _: Header) -> _Fields:
    reader.rest()
    return {}


_READERS: dict[int, tuple[Callable[..., AnyPdu], Callable[[_Reader, Header], _Fields]]] = {
    PduType.BIND: (Bind, _read_bind),
    PduType.ALTER_CONTEXT: (AlterContext, _read_bind),
    PduType.BIND_ACK: (BindAck, _read_bind_ack),
    PduType.ALTER_CONTEXT_RESP: (AlterContextResponse, _read_bind_ack),
    PduType.BIND_NAK: (BindNak, _read_bind_nak),
    PduType.AUTH3: (Auth3, _read_auth3),
    PduType.REQUEST: (Request, _read_request),
    PduType.RESPONSE: (Response, _read_response),
    PduType.FAULT: (Fault, _read_fault),
    PduType.CANCEL: (Cancel, _read_nothing),
    PduType.ORPHANED: (Orphaned, _read_nothing),
    PduType.SHUTDOWN: (Shutdown, _read_nothing),
}


def decode(data: bytes) -> AnyPdu:
    """One whole PDU; anything else is a ProtocolError."""
    header = read_header(data)
    if len(data) != header.length:
        raise ProtocolError(f"a fragment says {header.length} octets and has {len(data)}")
    known = _READERS.get(header.type)
    if known is None:
        raise ProtocolError(f"PDU type {header.type} is unknown")
    make, read = known
    reader = _Reader(data, HEADER_SIZE, _body_end(header), header.big_endian)
    fields = read(reader, header)
    auth = _read_trailer(data, header)
    # Padding before the trailer of a bind is part of what nobody reads.
    return make(call_id=header.call_id, flags=header.flags, big_endian=header.big_endian, auth=auth, **fields)


# Writing.


def _syntax(syntax: InterfaceId) -> bytes:
    return syntax.uuid.bytes_le + struct.pack("<HH", syntax.major, syntax.minor)


def _write_bind(pdu: Bind) -> bytes:
    parts = [struct.pack("<HHIBBH", pdu.max_transmit, pdu.max_receive, pdu.group, len(pdu.contexts), 0, 0)]
    for context in pdu.contexts:
        parts.append(struct.pack("<HBB", context.id, len(context.transfers), 0) + _syntax(context.abstract))
        parts.extend(map(_syntax, context.transfers))
    return b"".join(parts)


def _write_bind_ack(pdu: BindAck) -> bytes:
    head = struct.pack("<HHIH", pdu.max_transmit, pdu.max_receive, pdu.group, len(pdu.secondary_address))
    head += pdu.secondary_address
    head += bytes(-len(head) % 4)
    results = [
        struct.pack("<HH", result.result, result.reason) + _syntax(result.transfer) for result in pdu.results
    ]
    return head + struct.pack("<BBH", len(results), 0, 0) + b"".join(results)


def _write_bind_nak(pdu: BindNak) -> bytes:
    versions = b"".join(bytes(version) for version in pdu.versions)
    body = struct.pack("<HB", pdu.reason, len(pdu.versions)) + versions
    return body + bytes(-len(body) % 4)


def _write_request(pdu: Request) -> bytes:
    uuid = pdu.object_uuid.bytes_le if pdu.object_uuid is not None else b""
    return struct.pack("<IHH", pdu.alloc_hint, pdu.context_id, pdu.opnum) + uuid + pdu.stub


def _write_response(pdu: Response) -> bytes:
    return struct.pack("<IHBB", pdu.alloc_hint, pdu.context_id, pdu.cancel_count, 0) + pdu.stub


def _write_fault(pdu: Fault) -> bytes:
    return struct.pack("<IHBBII", pdu.alloc_hint, pdu.context_id, pdu.cancel_count, 0, pdu.status, 0)


def _body_of(pdu: AnyPdu) -> tuple[PduType, bytes]:  # noqa: C901 - one line per type
    match pdu:
        case AlterContext():
            return PduType.ALTER_CONTEXT, _write_bind(pdu)
        case Bind():
            return PduType.BIND, _write_bind(pdu)
        case AlterContextResponse():
            return PduType.ALTER_CONTEXT_RESP, _write_bind_ack(pdu)
        case BindAck():
            return PduType.BIND_ACK, _write_bind_ack(pdu)
        case BindNak():
            return PduType.BIND_NAK, _write_bind_nak(pdu)
        case Auth3():
            return PduType.AUTH3, bytes(4)
        case Request():
            return PduType.REQUEST, _write_request(pdu)
        case Response():
            return PduType.RESPONSE, _write_response(pdu)
        case Fault():
            return PduType.FAULT, _write_fault(pdu)
        case Cancel():
            return PduType.CANCEL, b""
        case Orphaned():
            return PduType.ORPHANED, b""
        case Shutdown():
            return PduType.SHUTDOWN, b""


def encode(pdu: AnyPdu) -> bytes:
    """One PDU as octets.

    With ``auth``, a request's or response's stub must have its padding already, as ``pad_length`` says;
    everything else is padded to 4 here, which is what all peers do in binds.
    """
    kind, body = _body_of(pdu)
    flags = pdu.flags
    if isinstance(pdu, Request) and pdu.object_uuid is not None:
        flags |= Flags.OBJECT
    trailer = b""
    auth_length = 0
    if pdu.auth is not None:
        pad = pdu.auth.pad_length
        if not isinstance(pdu, Request | Response):
            pad = -len(body) % 4
            body += bytes(pad)
        auth_length = len(pdu.auth.token)
        trailer = struct.pack("<BBBBI", pdu.auth.type, pdu.auth.level, pad, 0, pdu.auth.context_id)
        trailer += pdu.auth.token
    length = HEADER_SIZE + len(body) + len(trailer)
    if length > MAX_FRAGMENT:
        raise ProtocolError(f"a PDU of {length} octets is longer than {MAX_FRAGMENT}")
    header = struct.pack(
        "<BBBB4sHHI", 5, 0, kind, int(flags), b"\x10\0\0\0", length, auth_length, pdu.call_id
    )
    return header + body + trailer
