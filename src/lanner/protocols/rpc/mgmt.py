"""The management interface that every RPC server has (C706 appendix Q, MS-RPCE 2.2.1.3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import UUID

from lanner.protocols.rpc.errors import FaultStatus
from lanner.protocols.rpc.interface import Access, CallContext, InterfaceId, RpcInterface
from lanner.protocols.rpc.ndr import NdrReader, NdrWriter
from lanner.protocols.rpc.verification import check_trailer

__all__ = ["MGMT", "mgmt_interface"]

MGMT = InterfaceId(UUID("afa8bd80-7d8a-11c9-bef4-08002b102989"), 1, 0)

MAX_STATISTICS = 50
"""What a client may ask for (MS-RPCE 2.2.1.3.2)."""

MAX_PRINCIPAL = 4_096
"""Octets of a principal's name (MS-RPCE 2.2.1.3.4)."""

MAX_MGMT_REQUEST = 1_024
"""Two numbers and a trailer: anybody may ask."""

BINDING_HAS_NO_AUTH = 0x6D2
"""RPC_S_BINDING_HAS_NO_AUTH: no principal name is told."""


def mgmt_interface(
    interfaces: Callable[[], Sequence[InterfaceId]], statistics: Callable[[], Sequence[int]]
) -> RpcInterface:
    """The interface. Anybody may ask what is offered; nobody may stop the server with it."""

    async def inquire_interfaces(_: CallContext, __: bytes) -> bytes:
        writer = NdrWriter()
        offered = interfaces()
        writer.pointer()
        writer.conformance(len(offered))
        writer.u32(len(offered))
        for _each in offered:
            writer.pointer()
        for each in offered:
            writer.guid(each.uuid)
            writer.u16(each.major)
            writer.u16(each.minor)
        writer.u32(0)
        return writer.getvalue()

    async def inquire_statistics(context: CallContext, stub: bytes) -> bytes:
        reader = NdrReader(stub, context.big_endian)
        asked = reader.ranged(reader.u32("count"), 0, MAX_STATISTICS, "count")
        check_trailer(context, reader.tolerate_trailer())
        values = [value & 0xFFFF_FFFF for value in statistics()][:asked]
        writer = NdrWriter()
        writer.u32(len(values))
        writer.conformance(len(values))
        for value in values:
            writer.u32(value)
        writer.u32(0)
        return writer.getvalue()

    async def is_listening(_: CallContext, __: bytes) -> bytes:
        writer = NdrWriter()
        writer.u32(0)
        writer.u32(1)
        return writer.getvalue()

    async def stop_listening(_: CallContext, __: bytes) -> bytes:
        writer = NdrWriter()
        writer.u32(FaultStatus.ACCESS_DENIED)
        return writer.getvalue()

    async def inquire_principal(context: CallContext, stub: bytes) -> bytes:
        reader = NdrReader(stub, context.big_endian)
        reader.u32("authn_proto")
        size = reader.ranged(reader.u32("princ_name_size"), 0, MAX_PRINCIPAL, "princ_name_size")
        check_trailer(context, reader.tolerate_trailer())
        writer = NdrWriter()
        writer.conformance(size)
        text = b"\0" if size else b""
        writer.variance(len(text))
        writer.octets(text)
        writer.u32(BINDING_HAS_NO_AUTH)
        return writer.getvalue()

    return RpcInterface(
        MGMT.uuid,
        MGMT.major,
        MGMT.minor,
        {
            0: inquire_interfaces,
            1: inquire_statistics,
            2: is_listening,
            3: stop_listening,
            4: inquire_principal,
        },
        access=Access.EVERYBODY,
        max_request=MAX_MGMT_REQUEST,
    )
