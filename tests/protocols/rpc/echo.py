"""An interface that does nothing but answer, for tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID

from lanner.protocols.rpc.accounts import UserFile
from lanner.protocols.rpc.endpoint import RpcEndpoint, RpcSettings
from lanner.protocols.rpc.errors import FaultStatus, RpcFault
from lanner.protocols.rpc.interface import CallContext, InterfaceId, RpcInterface
from lanner.protocols.rpc.ndr import NdrReader, NdrWriter
from lanner.protocols.rpc.ntlm import nt_hash
from lanner.protocols.rpc.verification import check_trailer

ECHO = InterfaceId(UUID("0b1a6bd4-2e4b-4a3a-9d3c-6d2f0b0a7c11"), 1, 0)
SECOND = InterfaceId(UUID("0b1a6bd4-2e4b-4a3a-9d3c-6d2f0b0a7c12"), 2, 1)
USER, PASSWORD = "operator", "correct horse"
GUEST, GUEST_PASSWORD = "guest", "battery staple"

OP_ECHO, OP_MANY, OP_FAULT, OP_WHO, OP_SLEEP, OP_NDR, OP_DEFECT = range(7)


async def echo(_: CallContext, stub: bytes) -> bytes:
    return stub


async def many(context: CallContext, stub: bytes) -> bytes:
    """So many octets."""
    count = NdrReader(stub, context.big_endian).u32()
    return bytes(index % 251 for index in range(count))


async def fault(context: CallContext, stub: bytes) -> bytes:
    raise RpcFault(NdrReader(stub, context.big_endian).u32())


async def who(context: CallContext, _: bytes) -> bytes:
    caller = context.caller
    text = f"{caller.user}|{int(caller.level)}|{caller.mechanism}|{context.object_uuid}"
    return text.encode("utf-8")


async def sleep(_: CallContext, __: bytes) -> bytes:
    await asyncio.sleep(60)
    raise AssertionError


async def ndr(context: CallContext, stub: bytes) -> bytes:
    """A string and back."""
    reader = NdrReader(stub, context.big_endian)
    text = reader.wide_string(limit=100, field="text")
    check_trailer(context, reader.tolerate_trailer())
    writer = NdrWriter()
    writer.wide_string(text[::-1])
    return writer.getvalue()


async def defect(_: CallContext, __: bytes) -> bytes:
    raise ZeroDivisionError


OPERATIONS = {
    OP_ECHO: echo,
    OP_MANY: many,
    OP_FAULT: fault,
    OP_WHO: who,
    OP_SLEEP: sleep,
    OP_NDR: ndr,
    OP_DEFECT: defect,
}


def echo_interface() -> RpcInterface:
    return RpcInterface(ECHO.uuid, ECHO.major, ECHO.minor, OPERATIONS, annotation="echo")


def second_interface() -> RpcInterface:
    return RpcInterface(SECOND.uuid, SECOND.major, SECOND.minor, {0: echo}, annotation="second")


def users_file(directory: Path) -> Path:
    path = directory / "users"
    users = UserFile(path)
    users.set(USER, nt_hash(PASSWORD))
    users.set(GUEST, nt_hash(GUEST_PASSWORD))
    return path


def settings(directory: Path, **changes: object) -> RpcSettings:
    values: dict[str, object] = {"users_file": users_file(directory), "administrators": (USER,)}
    values.update(changes)
    return RpcSettings(**values)  # type: ignore[arg-type]


@asynccontextmanager
async def serving(directory: Path, **changes: object) -> AsyncIterator[RpcEndpoint]:
    """An endpoint with both interfaces on free ports of loopback."""
    endpoint = RpcEndpoint(
        (echo_interface(), second_interface()),
        settings(directory, **changes),
        "127.0.0.1",
        server_name="LANNER",
        port=0,
        mapper_port=0,
    )
    await endpoint.start()
    try:
        yield endpoint
    finally:
        await endpoint.stop()


__all__ = ["ECHO", "FaultStatus", "serving"]
