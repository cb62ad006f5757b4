"""The listener: who is dropped, what is refused, and that nobody starves."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.protocols.rpc.echo import (
    ECHO,
    OP_DEFECT,
    OP_ECHO,
    OP_FAULT,
    OP_MANY,
    OP_NDR,
    OP_SLEEP,
    PASSWORD,
    USER,
    serving,
)

from lanner.protocols.rpc import server as module
from lanner.protocols.rpc.client import RpcClient
from lanner.protocols.rpc.codec import decode, encode
from lanner.protocols.rpc.credentials import Credentials, Mechanism
from lanner.protocols.rpc.endpoint import RpcEndpoint
from lanner.protocols.rpc.errors import FaultStatus, RpcConnectionError, RpcError, RpcFault
from lanner.protocols.rpc.interface import AuthLevel
from lanner.protocols.rpc.limits import Limits
from lanner.protocols.rpc.pdu import AnyPdu, Bind, BindAck, ContextElement, Flags, Orphaned, Request

CREDENTIALS = Credentials(USER, PASSWORD, Mechanism.NTLM)
BIND = Bind(call_id=1, max_transmit=5840, max_receive=5840, contexts=(ContextElement(0, ECHO),))


@pytest.fixture(autouse=True)
def _ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TICK_SECONDS", 0.05)


async def connect(endpoint: RpcEndpoint, **options: Any) -> RpcClient:
    options.setdefault("credentials", CREDENTIALS)
    return await RpcClient.connect("127.0.0.1", ECHO, port=endpoint.server.port, **options)


async def raw(endpoint: RpcEndpoint) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", endpoint.server.port)


async def eventually(condition: Callable[[], bool], seconds: float = 5.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it does not happen"
        await asyncio.sleep(0.02)


async def is_dropped(reader: asyncio.StreamReader) -> None:
    with contextlib.suppress(ConnectionError):
        assert await asyncio.wait_for(reader.read(), 5) is not None


async def read_pdu(reader: asyncio.StreamReader) -> AnyPdu:
    head = await asyncio.wait_for(reader.readexactly(16), 5)
    return decode(head + await reader.readexactly(int.from_bytes(head[8:10], "little") - 16))


async def test_faults(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with serving(tmp_path) as endpoint, await connect(endpoint) as client:
        for opnum, stub, status in (
            (OP_FAULT, b"\x34\x12\0\0", 0x1234),
            (OP_FAULT, b"\x05\0\0\xc0", FaultStatus.UNSPECIFIED),
            (OP_FAULT, b"\0\0\0\0", FaultStatus.UNSPECIFIED),
            (OP_NDR, b"\1", FaultStatus.BAD_STUB_DATA),
            (OP_DEFECT, b"", FaultStatus.UNSPECIFIED),
            (99, b"", FaultStatus.OPERATION_RANGE),
        ):
            with pytest.raises(RpcFault) as caught:
                await client.call(opnum, stub)
            assert caught.value.status == status
        assert await client.call(OP_ECHO, b"alive") == b"alive"
    assert "ZeroDivisionError" in caplog.text


async def test_an_operation_that_takes_too_long(tmp_path: Path) -> None:
    limits = Limits(call_seconds=0.1)
    async with serving(tmp_path, limits=limits) as endpoint, await connect(endpoint) as client:
        with pytest.raises(RpcFault) as caught:
            await client.call(OP_SLEEP, b"")
        assert caught.value.status == FaultStatus.CANCELLED


async def test_a_client_that_gives_up_ends_the_operation(tmp_path: Path) -> None:
    async with serving(tmp_path) as endpoint, await connect(endpoint) as client:
        with pytest.raises(RpcConnectionError, match="not answered"):
            await client.call(OP_SLEEP, b"", timeout=0.1)
        await eventually(lambda: endpoint.server.calls == 0)
        assert await client.call(OP_ECHO, b"alive") == b"alive"
        task = asyncio.create_task(client.call(OP_SLEEP, b""))
        await eventually(lambda: endpoint.server.calls == 1)
        task.cancel()
        await eventually(lambda: endpoint.server.calls == 0)
        assert await client.call(OP_ECHO, b"alive") == b"alive"


async def test_a_client_that_hangs_up_ends_the_operation(tmp_path: Path) -> None:
    async with serving(tmp_path) as endpoint:
        client = await connect(endpoint)
        task = asyncio.create_task(client.call(OP_SLEEP, b""))
        await eventually(lambda: endpoint.server.calls == 1)
        await client.close()
        with pytest.raises(RpcConnectionError):
            await task
        await eventually(lambda: endpoint.server.calls == 0 and endpoint.server.associations == 0)
        assert endpoint.server.groups == 0
        assert endpoint.server.held == 0


async def test_calls_of_everybody_are_limited(tmp_path: Path) -> None:
    async with serving(tmp_path, limits=Limits(calls=3)) as endpoint, await connect(endpoint) as client:
        tasks = [asyncio.create_task(client.call(OP_SLEEP, b"")) for _ in range(3)]
        await eventually(lambda: endpoint.server.calls == 3)
        with pytest.raises(RpcFault) as caught:
            await client.call(OP_ECHO, b"x")
        assert caught.value.status == FaultStatus.SERVER_BUSY
        for task in tasks:
            task.cancel()
        await eventually(lambda: endpoint.server.calls == 0)
        assert await client.call(OP_ECHO, b"x") == b"x"


# Who is dropped.


@pytest.mark.parametrize("sent", [b"", b"\5\0\x0b", encode(BIND)[:-1]])
async def test_half_open_and_slow_binds(tmp_path: Path, sent: bytes) -> None:
    async with serving(tmp_path, limits=Limits(setup_seconds=0.2)) as endpoint:
        reader, writer = await raw(endpoint)
        writer.write(sent)
        await is_dropped(reader)
        await eventually(lambda: endpoint.server.associations == 0)
        writer.close()


async def test_one_octet_at_a_time_does_not_help(tmp_path: Path) -> None:
    async with serving(tmp_path, limits=Limits(fragment_seconds=0.3)) as endpoint:
        reader, writer = await raw(endpoint)
        writer.write(encode(BIND))
        assert isinstance(await read_pdu(reader), BindAck)
        began = time.monotonic()
        with contextlib.suppress(ConnectionError):
            for octet in encode(Request(call_id=2, stub=bytes(200))):
                writer.write(bytes([octet]))
                await writer.drain()
                await asyncio.sleep(0.02)
        await is_dropped(reader)
        assert time.monotonic() - began < 3
        writer.close()


async def test_a_request_without_an_end(tmp_path: Path) -> None:
    limits = Limits(request_seconds=0.3)
    async with serving(tmp_path, limits=limits, anonymous_loopback=True) as endpoint:
        reader, writer = await raw(endpoint)
        writer.write(encode(BIND))
        await read_pdu(reader)
        flags = Flags.FIRST
        began = time.monotonic()
        with contextlib.suppress(ConnectionError):
            while time.monotonic() - began < 3:
                writer.write(encode(Request(call_id=2, flags=flags, stub=bytes(100))))
                await writer.drain()
                flags = Flags.NONE
                await asyncio.sleep(0.02)
        assert time.monotonic() - began < 3
        await eventually(lambda: endpoint.server.held == 0)
        writer.close()


async def test_answers_that_are_not_read(tmp_path: Path) -> None:
    limits = Limits(write_seconds=0.3, unsent=64 * 1024)
    async with serving(tmp_path, limits=limits, anonymous_loopback=True) as endpoint:
        connection = socket.create_connection(("127.0.0.1", endpoint.server.port))
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(connection, encode(BIND))
        many = Request(call_id=2, opnum=OP_MANY, stub=(20_000_000).to_bytes(4, "little"))
        await asyncio.sleep(0.1)
        await loop.sock_sendall(connection, encode(many))
        await eventually(lambda: endpoint.server.associations == 0, 15)
        connection.close()


async def test_idle_associations(tmp_path: Path) -> None:
    limits = Limits(anonymous_idle_seconds=0.2, idle_seconds=1.0)
    async with serving(tmp_path, limits=limits) as endpoint, await connect(endpoint) as client:
        reader, writer = await raw(endpoint)
        writer.write(encode(BIND))
        assert isinstance(await read_pdu(reader), BindAck)
        await is_dropped(reader)
        assert await client.call(OP_ECHO, b"alive") == b"alive"
        await eventually(lambda: not client.is_open)
        with pytest.raises(RpcConnectionError):
            await client.call(OP_ECHO, b"late")
        writer.close()


async def test_what_is_no_rpc_at_all(tmp_path: Path) -> None:
    async with serving(tmp_path) as endpoint:
        for octets in (
            b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
            bytes(100),
            b"\5\0\0\3\x10\0\0\0\xff\xff\xff\xff" + bytes(9),
        ):
            reader, writer = await raw(endpoint)
            writer.write(octets)
            await is_dropped(reader)
            writer.close()
        await eventually(lambda: endpoint.server.associations == 0)


# Floods.


async def test_associations_of_one_source_are_limited(tmp_path: Path) -> None:
    async with serving(tmp_path, limits=Limits(per_source=3)) as endpoint:
        clients = [await connect(endpoint) for _ in range(3)]
        with pytest.raises(RpcError):
            await connect(endpoint)
        assert endpoint.server.refused == 1
        await clients.pop().close()
        await eventually(lambda: endpoint.server.associations == 2)
        clients.append(await connect(endpoint))
        for client in clients:
            assert await client.call(OP_ECHO, b"x") == b"x"
            await client.close()


async def test_connections_of_one_source_have_a_rate(tmp_path: Path) -> None:
    async with serving(tmp_path, limits=Limits(accepts=5, accept_seconds=0.2)) as endpoint:
        for _ in range(5):
            await (await connect(endpoint)).close()
        with pytest.raises(RpcError):
            await connect(endpoint)
        await asyncio.sleep(0.3)
        await (await connect(endpoint)).close()


async def test_the_anonymous_give_way_to_who_logs_on(tmp_path: Path) -> None:
    async with serving(tmp_path, limits=Limits(associations=4)) as endpoint:
        strangers = []
        for _ in range(4):
            reader, writer = await raw(endpoint)
            writer.write(encode(BIND))
            await read_pdu(reader)
            strangers.append(writer)
        clients = [await connect(endpoint) for _ in range(4)]
        for client in clients:
            assert await client.call(OP_ECHO, b"x") == b"x"
        # Who has logged on gives way to nobody.
        with pytest.raises(RpcError):
            await connect(endpoint)
        for client in clients:
            await client.close()
        for writer in strangers:
            writer.close()


async def test_half_open_connections_push_each_other_out(tmp_path: Path) -> None:
    async with serving(tmp_path, limits=Limits(unready=5)) as endpoint:
        writers = [(await raw(endpoint))[1] for _ in range(20)]
        async with await connect(endpoint) as client:
            assert await client.call(OP_ECHO, b"x") == b"x"
            await eventually(lambda: endpoint.server.associations <= 6)
        for writer in writers:
            writer.close()


async def test_a_flood_of_binds_starves_nobody(tmp_path: Path) -> None:
    """Wrong log-ons without end beside an administrator who works, and the loop that carries messages."""
    limits = Limits(accepts=1_000_000)
    async with serving(tmp_path, limits=limits) as endpoint, await connect(endpoint) as client:
        stop = asyncio.Event()

        async def flood() -> int:
            count = 0
            bad = Credentials(USER, "wrong", Mechanism.NTLM)
            while not stop.is_set():
                with contextlib.suppress(RpcError, OSError):
                    async with await connect(endpoint, credentials=bad, timeout=5) as attacker:
                        count += 1
                        await attacker.call(OP_ECHO, b"x")
            return count

        attackers = [asyncio.create_task(flood()) for _ in range(10)]
        await asyncio.sleep(0.2)
        slowest = 0.0
        for _ in range(100):
            began = time.monotonic()
            assert await client.call(OP_ECHO, b"work") == b"work"
            slowest = max(slowest, time.monotonic() - began)
            await asyncio.sleep(0.005)
        stop.set()
        assert sum(await asyncio.gather(*attackers)) > 50
        assert slowest < 0.5
        assert endpoint.logons.failures > 50


async def test_200_associations_at_once(tmp_path: Path) -> None:
    async with serving(tmp_path) as endpoint:
        clients = await asyncio.gather(*(connect(endpoint) for _ in range(200)))
        counts = [0] * len(clients)
        deadline = time.monotonic() + 2

        async def work(index: int) -> None:
            while time.monotonic() < deadline:
                assert await clients[index].call(OP_ECHO, b"x" * 100) == b"x" * 100
                counts[index] += 1

        await asyncio.gather(*(work(index) for index in range(len(clients))))
        assert min(counts) > 0
        assert min(counts) * 3 >= max(counts)
        for client in clients:
            await client.close()
        await eventually(lambda: endpoint.server.associations == 0)


async def test_orphaned_before_it_began(tmp_path: Path) -> None:
    async with serving(tmp_path, anonymous_loopback=True) as endpoint:
        reader, writer = await raw(endpoint)
        writer.write(encode(BIND) + encode(Request(call_id=2, opnum=OP_SLEEP)) + encode(Orphaned(call_id=2)))
        assert isinstance(await read_pdu(reader), BindAck)
        await eventually(lambda: endpoint.server.calls == 0)
        writer.close()


async def test_levels_of_the_client(tmp_path: Path) -> None:
    async with serving(tmp_path) as endpoint:
        for level in (
            AuthLevel.CONNECT,
            AuthLevel.CALL,
            AuthLevel.PACKET,
            AuthLevel.INTEGRITY,
            AuthLevel.PRIVACY,
        ):
            async with await connect(endpoint, level=level) as client:
                assert await client.call(OP_ECHO, bytes(20_000)) == bytes(20_000)
