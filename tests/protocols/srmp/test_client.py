"""A connection whose other side answers oddly."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from lanner.model.transfer import ConnectionStatus
from lanner.protocols.srmp import client
from lanner.protocols.srmp.client import ConnectFailedError, Link, Reply, Target, connect

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


class Owner:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.packets: list[list[Reply]] = []
        self.reasons: list[str] = []
        self.told = asyncio.Event()

    @property
    def statuses(self) -> list[int]:
        return [reply.status for packet in self.packets for reply in packet]

    def replied(self, replies: list[Reply]) -> None:
        self.packets.append(replies)
        self.told.set()

    def lost(self, reason: str) -> None:
        self.reasons.append(reason)
        self.told.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(5):
            while not condition():
                self.told.clear()
                await self.told.wait()


@asynccontextmanager
async def talking_to(*pieces: bytes, is_closing: bool = False) -> AsyncIterator[tuple[Owner, Link]]:
    """Connect to a server that sends some pieces after the first request, one packet each."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.01)
        if is_closing:
            writer.close()
            return
        await reader.read()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    owner = Owner()
    link = await connect(Target("http", "127.0.0.1", port), owner, "", None)
    try:
        link.post(b"POST /msmq/q HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n", b"hi")
        yield owner, link
    finally:
        link.close()
        server.close()
        await server.wait_closed()


async def _statuses(*pieces: bytes, is_closing: bool = False) -> list[int]:
    async with talking_to(*pieces, is_closing=is_closing) as (owner, _):
        await owner.until(lambda: bool(owner.packets))
        return owner.statuses


async def test_an_answer() -> None:
    async with talking_to(OK) as (owner, _):
        await owner.until(lambda: bool(owner.packets))
        assert owner.packets == [[Reply(200, "OK")]]
        assert owner.reasons == []


async def test_several_answers_in_one_packet_are_told_together() -> None:
    async with talking_to(OK + b"HTTP/1.1 400 No\r\nContent-Length: 3\r\n\r\nwhy" + OK) as (owner, _):
        await owner.until(lambda: bool(owner.packets))
        assert owner.packets == [[Reply(200, "OK"), Reply(400, "why"), Reply(200, "OK")]]


async def test_an_answer_byte_by_byte() -> None:
    assert await _statuses(*[OK[at : at + 1] for at in range(len(OK))]) == [200]


async def test_go_on_is_no_answer() -> None:
    assert await _statuses(b"HTTP/1.1 100 Continue\r\n\r\n" + OK) == [200]


async def test_chunked() -> None:
    chunked = b"HTTP/1.1 500 X\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nfew\r\n1\r\n!\r\n0\r\n\r\n"
    async with talking_to(chunked) as (owner, _):
        await owner.until(lambda: bool(owner.packets))
        assert owner.packets == [[Reply(500, "few!")]]


async def test_the_last_answer_before_the_connection_is_closed() -> None:
    closing = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    async with talking_to(closing) as (owner, _):
        await owner.until(lambda: bool(owner.reasons))
        assert owner.statuses == [200]
        assert owner.reasons == ["the other side has closed the connection"]


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.0 200 OK\r\n\r\n",
        b"HTTP/1.0 200 OK\r\n\r\nsome words",
        b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nsome words",
    ],
)
async def test_an_answer_that_ends_with_the_connection(answer: bytes) -> None:
    async with talking_to(answer, is_closing=True) as (owner, _):
        await owner.until(lambda: bool(owner.reasons))
        assert owner.statuses == [200]
        assert len(owner.reasons) == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nha",
        b"HTTP/1.1 100 Continue\r\n\r\n",
    ],
)
async def test_half_an_answer_is_none(answer: bytes) -> None:
    async with talking_to(answer, is_closing=True) as (owner, _):
        await owner.until(lambda: bool(owner.reasons))
        assert owner.packets == []
        assert len(owner.reasons) == 1


@pytest.mark.parametrize(
    "garbage",
    [
        b"SSH-2.0-OpenSSH\r\n",
        b"\x16\x03\x01\x00",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 101 Switch\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nwhatever",
    ],
)
async def test_garbage(garbage: bytes) -> None:
    async with talking_to(garbage) as (owner, _):
        await owner.until(lambda: bool(owner.reasons))
        assert owner.packets == []
        assert len(owner.reasons) == 1


async def test_an_answer_before_garbage_counts() -> None:
    async with talking_to(OK + b"garbage garbage\r\n\r\n") as (owner, _):
        await owner.until(lambda: bool(owner.reasons))
        assert owner.statuses == [200]


async def test_an_answer_that_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "MAX_REPLY_BYTES", 1000)
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n"
    async with talking_to(head + b"x" * 2000) as (owner, _):
        await owner.until(lambda: bool(owner.reasons))
        assert owner.packets == []


async def test_a_long_reason_is_cut() -> None:
    head = b"HTTP/1.1 400 " + b"y" * 5000 + b"\r\nContent-Length: 2000\r\n\r\n"
    async with talking_to(head + b"x" * 2000) as (owner, _):
        await owner.until(lambda: bool(owner.packets))
        assert owner.packets[0][0].reason == "x" * client.REASON_LENGTH
    head = b"HTTP/1.1 400 " + b"y" * 5000 + b"\r\nContent-Length: 0\r\n\r\n"
    async with talking_to(head) as (owner, _):
        await owner.until(lambda: bool(owner.packets))
        assert set(owner.packets[0][0].reason) == {"y"}
        assert len(owner.packets[0][0].reason) <= 2 * client.REASON_LENGTH


async def test_whoever_closes_is_not_told() -> None:
    async with talking_to(OK) as (owner, link):
        link.close()
        await asyncio.sleep(0.05)
        assert (owner.packets, owner.reasons) == ([], [])


# Connecting.


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("no-such-host.invalid", ConnectionStatus.DNS_FAILURE),
        ("a..b", ConnectionStatus.DNS_FAILURE),
        ("a" * 70, ConnectionStatus.DNS_FAILURE),
    ],
)
async def test_hosts_that_are_not_there(host: str, status: ConnectionStatus) -> None:
    with pytest.raises(ConnectFailedError) as caught:
        await connect(Target("http", host, 80), Owner(), "", None)
    assert caught.value.status is status


async def test_nobody_listens() -> None:
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    with pytest.raises(ConnectFailedError) as caught:
        await connect(Target("http", "whatever", port), Owner(), "127.0.0.1", None)
    assert caught.value.status is ConnectionStatus.CONNECTION_REFUSED


async def test_nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "CONNECT_SECONDS", 0.05)
    loop = asyncio.get_running_loop()

    async def hang(*_: object, **__: object) -> None:
        await asyncio.sleep(10)

    monkeypatch.setattr(loop, "create_connection", hang)
    with pytest.raises(ConnectFailedError) as caught:
        await connect(Target("http", "host", 80), Owner(), "", None)
    assert caught.value.status is ConnectionStatus.SOCKET_CONNECT_FAILURE


@pytest.mark.parametrize(
    ("target", "text", "authority"),
    [
        (Target("http", "host", 80), "http://host:80", "host"),
        (Target("https", "host", 443), "https://host:443", "host"),
        (Target("https", "host", 80), "https://host:80", "host:80"),
        (Target("http", "::1", 8080), "http://[::1]:8080", "[::1]:8080"),
    ],
)
def test_targets(target: Target, text: str, authority: str) -> None:
    assert (str(target), target.authority) == (text, authority)
