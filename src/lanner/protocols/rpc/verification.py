"""The verification trailer: what a client repeats of its headers behind a stub (MS-RPCE 2.2.2.13)."""

from __future__ import annotations

import struct
from uuid import UUID

from lanner.protocols.rpc.errors import FaultStatus, NdrError, RpcFault
from lanner.protocols.rpc.interface import CallContext, InterfaceId
from lanner.protocols.rpc.pdu import NDR20, PduType

__all__ = ["check_trailer"]

SIGNATURE = bytes.fromhex("8ae3137102f43671")
BITMASK, PRESENTATION, HEADER = 1, 2, 3
COMMAND_MASK, END, MUST_PROCESS = 0x3FFF, 0x4000, 0x8000


def check_trailer(context: CallContext, rest: bytes) -> None:
    """Look at what follows a stub: ``check_trailer(context, reader.tolerate_trailer())``.

    Anything may follow, and padding may stand before the trailer. But what a trailer repeats must be so, and
    a command that must be processed and is not known is refused with status 5.
    """
    position = rest.find(SIGNATURE)
    if position < 0:
        return
    position += len(SIGNATURE)
    is_last = False
    while not is_last:
        if position + 4 > len(rest):
            raise NdrError("a verification trailer without an end")
        command, length = struct.unpack_from("<HH", rest, position)
        body = rest[position + 4 : position + 4 + length]
        if length % 4 or len(body) != length:
            raise NdrError("a verification trailer that does not fit")
        _check(context, command, body)
        position += 4 + length
        is_last = bool(command & END)


def _check(context: CallContext, command: int, body: bytes) -> None:
    kind = command & COMMAND_MASK
    if kind == PRESENTATION:
        if len(body) != 40 or (_syntax(body[:20]), _syntax(body[20:])) != (context.interface, NDR20):
            raise RpcFault(FaultStatus.ACCESS_DENIED, "the trailer is of another interface")
    elif kind == HEADER:
        if len(body) != 16:
            raise NdrError("a header of another size in the verification trailer")
        packet_type, _, _, _, call_id, _, opnum = struct.unpack("<BBH4sIHH", body)
        if (packet_type, call_id, opnum) != (PduType.REQUEST, context.call_id, context.opnum):
            raise RpcFault(FaultStatus.ACCESS_DENIED, "the trailer is of another request")
    elif kind != BITMASK and command & MUST_PROCESS:
        raise RpcFault(FaultStatus.ACCESS_DENIED, f"command {kind} of a verification trailer is not known")


def _syntax(octets: bytes) -> InterfaceId:
    major, minor = struct.unpack_from("<HH", octets, 16)
    return InterfaceId(UUID(bytes_le=octets[:16]), major, minor)
