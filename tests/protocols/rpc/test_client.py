"""The client: finding the port, calls at once, and servers that are not what they should be."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID

import pytest
from tests.protocols.rpc.echo import ECHO, GUEST, GUEST_PASSWORD, OP_ECHO, OP_WHO, PASSWORD, USER, serving

from lanner.protocols.rpc.client import RpcClient, find_port
from lanner.protocols.rpc.credentials import Credentials, Mechanism
from lanner.protocols.rpc.errors import (
    BindRefusedError,
    FaultStatus,
    ProtocolError,
    RpcConnectionError,
    RpcError,
    RpcFault,
    SecurityError,
)
from lanner.protocols.rpc.interface import InterfaceId

UNKNOWN = InterfaceId(UUID(int=77), 1, 0)
HERE = "127.0.0.1"


@asynccontextmanager
async def imposter(
    behave: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncIterator[int]:
    server = await asyncio.start_server(behave, HERE, 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def test_through_the_endpoint_mapper(tmp_path: Path) -> None:
    async with serving(tmp_path) as endpoint:
        assert endpoint.mapper is not None
        port = endpoint.mapper.port
        assert await find_port(HERE, ECHO, mapper_port=port) == endpoint.server.port
        with pytest.raises(BindRefusedError, match="does not offer"):
            await find_port(HERE, UNKNOWN, mapper_port=port)
        client = await RpcClient.connect(
            HERE, ECHO, mapper_port=port, credentials=Credentials(f"LANNER\\{USER}", PASSWORD)
        )
        async with client:
            assert await client.call(OP_WHO, b"") == b"operator|6|ntlm|None"
            uuid = UUID(int=5)
            assert await client.call(OP_WHO, b"", object_uuid=uuid) == f"operator|6|ntlm|{uuid}".encode()


async def test_calls_at_once_keep_apart(tmp_path: Path) -> None:
    async with serving(tmp_path) as endpoint:
        client = await RpcClient.connect(
            HERE, ECHO, port=endpoint.server.port, credentials=Credentials(USER, PASSWORD, Mechanism.NTLM)
        )
        async with client:
            stubs = [bytes([number]) * number * 700 for number in range(30)]
            assert await asyncio.gather(*(client.call(OP_ECHO, stub) for stub in stubs)) == stubs


@pytest.mark.parametrize("mechanism", [Mechanism.NTLM, Mechanism.SPNEGO])
async def test_who_may_not(tmp_path: Path, mechanism: Mechanism) -> None:
    async with serving(tmp_path) as endpoint:
        port = endpoint.server.port

        async def try_wrong() -> None:
            wrong = Credentials(USER, "wrong", mechanism)
            async with await RpcClient.connect(HERE, ECHO, port=port, credentials=wrong) as client:
                await client.call(OP_ECHO, b"")

        with pytest.raises(RpcError, match="access denied"):
            await try_wrong()
        guest = Credentials(GUEST, GUEST_PASSWORD, mechanism)
        async with await RpcClient.connect(HERE, ECHO, port=port, credentials=guest) as client:
            with pytest.raises(RpcFault) as caught:
                await client.call(OP_ECHO, b"")
            assert caught.value.status == FaultStatus.ACCESS_DENIED
        async with await RpcClient.connect(HERE, ECHO, port=port) as client:
            with pytest.raises(RpcFault, match="access denied"):
                await client.call(OP_ECHO, b"")


async def test_an_unknown_interface(tmp_path: Path) -> None:
    async with serving(tmp_path) as endpoint:
        with pytest.raises(BindRefusedError, match="does not offer"):
            await RpcClient.connect(HERE, UNKNOWN, port=endpoint.server.port)


async def test_nobody_is_there() -> None:
    with pytest.raises(RpcConnectionError, match="cannot be reached"):
        await RpcClient.connect(HERE, ECHO, port=1)


async def test_a_server_that_says_nothing() -> None:
    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with imposter(behave) as port:
        with pytest.raises(RpcConnectionError, match="did not answer"):
            await RpcClient.connect(HERE, ECHO, port=port, timeout=0.2)


async def test_a_server_that_hangs_up() -> None:
    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.close()

    async with imposter(behave) as port:
        with pytest.raises(RpcConnectionError, match="hung up"):
            await RpcClient.connect(HERE, ECHO, port=port)


async def test_a_server_that_speaks_something_else() -> None:
    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.write(b"220 smtp.example.org ready\r\n")
        await reader.read()
        writer.close()

    async with imposter(behave) as port:
        with pytest.raises(ProtocolError, match="version"):
            await RpcClient.connect(HERE, ECHO, port=port)


async def test_after_close(tmp_path: Path) -> None:
    async with serving(tmp_path) as endpoint:
        client = await RpcClient.connect(HERE, ECHO, port=endpoint.server.port)
        await client.close()
        await client.close()
        assert not client.is_open
        with pytest.raises(RpcConnectionError, match="closed"):
            await client.call(OP_ECHO, b"")


async def test_kerberos_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lanner.protocols.rpc.security.has_kerberos", lambda: False)
    with pytest.raises(SecurityError, match="lanner\\[kerberos\\]"):
        await RpcClient.connect(HERE, ECHO, port=1, credentials=Credentials("x", "y", Mechanism.KERBEROS))


def test_a_password_is_not_shown() -> None:
    assert "secret" not in repr(Credentials("user", "secret"))
