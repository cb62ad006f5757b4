"""The HTTP listener: what it takes, in which order it answers, and whom it cuts off."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace

import pytest

from lanner.http import HttpListener, Limits, Request, Response
from lanner.http import listener as listener_module
from lanner.model.errors import ListenError

Answer = Callable[[Request], Awaitable[Response | None]]

SMALL = Limits(
    head_bytes=1000,
    headers=10,
    body_bytes=100_000,
    pipelined=2,
    connections=3,
    head_seconds=0.2,
    progress_seconds=0.2,
    progress_bytes=1000,
    idle_seconds=0.3,
    linger_seconds=0.2,
    linger_bytes=200_000,
    stop_seconds=0.3,
)


def _post(body: bytes = b"", *headers: bytes, target: bytes = b"/") -> bytes:
    lines = [b"POST " + target + b" HTTP/1.1", b"Host: x", *headers, b"Content-Length: %d" % len(body)]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


class _Handler:
    """Answers as a test says, by default with what it was sent."""

    def __init__(self, answer: Answer | None = None) -> None:
        self.answer = answer
        self.bodies: list[bytes] = []

    def check_head(self, request: Request) -> Response | None:
        return Response(401, b"who are you?\n") if request.target == b"/closed" else None

    def refuse(self, status: int, reason: str) -> Response:
        return Response(status, reason.encode())

    async def handle(self, request: Request) -> Response | None:
        self.bodies.append(request.body)
        if self.answer is not None:
            return await self.answer(request)
        return Response(200, request.method + b" " + request.target + b" " + request.body)


@pytest.fixture(autouse=True)
def _fast_sweeps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener_module, "SWEEP_SECONDS", 0.02)


@contextlib.asynccontextmanager
async def _listening(
    answer: Answer | None = None, limits: Limits = SMALL
) -> AsyncIterator[tuple[_Handler, HttpListener]]:
    handler = _Handler(answer)
    listener = HttpListener(handler, "127.0.0.1", 0, limits=limits)
    await listener.start()
    try:
        yield handler, listener
    finally:
        await listener.stop()


async def _connect(listener: HttpListener) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    port = int(listener.url.rpartition(":")[2])
    return await asyncio.open_connection("127.0.0.1", port)


async def _talk(listener: HttpListener, said: bytes) -> bytes:
    """Say something, and hear everything until the other side closes."""
    reader, writer = await _connect(listener)
    writer.write(said)
    try:
        return await asyncio.wait_for(reader.read(), 5)
    finally:
        writer.close()


def _statuses(answer: bytes) -> list[int]:
    return [int(part[:3]) for part in answer.split(b"HTTP/1.1 ")[1:]]


async def test_requests_of_one_connection_are_answered_in_their_order() -> None:
    async def slower_for_the_first(request: Request) -> Response:
        await asyncio.sleep(0.05 if request.body == b"1" else 0)
        return Response(200, b"<" + request.body + b">")

    async with _listening(slower_for_the_first) as (_, listener):
        said = b"".join(_post(b"%d" % n) for n in range(1, 8))
        heard = await _talk(listener, said)
    assert _statuses(heard) == [200] * 7
    assert [heard.index(b"<%d>" % n) for n in range(1, 8)] == sorted(
        heard.index(b"<%d>" % n) for n in range(1, 8)
    )


@pytest.mark.parametrize("step", [1, 2, 7])
async def test_a_request_may_come_in_any_pieces(step: int) -> None:
    async with _listening() as (handler, listener):
        reader, writer = await _connect(listener)
        said = _post(b"in pieces", b"Connection: close")
        for start in range(0, len(said), step):
            writer.write(said[start : start + step])
            await writer.drain()
        heard = await asyncio.wait_for(reader.read(), 5)
        writer.close()
    assert handler.bodies == [b"in pieces"]
    assert heard.endswith(b"POST / in pieces")
    assert b"connection: close" in heard


async def test_a_chunked_body_is_put_together() -> None:
    async with _listening() as (handler, listener):
        heard = await _talk(
            listener,
            b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
            b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
        )
    assert handler.bodies == [b"abcde"]
    assert _statuses(heard) == [200]


async def test_a_client_that_asks_is_told_to_go_on() -> None:
    async with _listening() as (handler, listener):
        reader, writer = await _connect(listener)
        said = _post(b"body", b"Expect: 100-continue", b"Connection: close")
        writer.write(said[:-4])
        assert await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 5) == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(said[-4:])
        heard = await asyncio.wait_for(reader.read(), 5)
        writer.close()
    assert handler.bodies == [b"body"]
    assert _statuses(heard) == [200]


async def test_a_head_that_is_refused_gets_no_continue_and_no_body_is_read() -> None:
    async with _listening() as (handler, listener):
        said = _post(b"x" * 50_000, b"Expect: 100-continue", target=b"/closed")
        heard = await _talk(listener, said)
    assert _statuses(heard) == [401]
    assert handler.bodies == []


async def test_http_1_0_ends_with_its_answer() -> None:
    async with _listening() as (_, listener):
        heard = await _talk(listener, b"GET /old HTTP/1.0\r\n\r\n")
    assert heard.endswith(b"GET /old ")


async def test_an_answer_to_head_has_no_body() -> None:
    async with _listening() as (_, listener):
        heard = await _talk(listener, b"HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert heard.endswith(b"\r\n\r\n")
    assert b"content-length: 7" in heard


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
        (b"GET / HTTP/9.9\r\n\r\n", 400),
        (b"GET  / \r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 5\r\n\r\nabcde", 400),
        (
            b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            400,
        ),
        (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999999\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length : 3\r\n\r\nabc", 400),
        (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc", 400),
        (b"POST / HTTP/1.1\r\nHost: x\r\nX: a\x00b\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400),
        (_post(b"body", b"Connection: upgrade", b"Upgrade: h2c"), 400),
        (b"GET / HTTP/1.1\r\n" + b"".join(b"X-%d: 1\r\n" % n for n in range(11)) + b"\r\n", 431),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 1100 + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 1100, 431),
        (b"GET /" + b"x" * 1100 + b" HTTP/1.1\r\n\r\n", 414),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100001\r\n\r\n", 413),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n186a1\r\n" + b"x" * 100_001, 413),
    ],
)
async def test_what_is_no_good_request_is_refused_and_the_connection_closed(said: bytes, status: int) -> None:
    async with _listening() as (handler, listener):
        heard = await _talk(listener, said)
    assert _statuses(heard) == [status]
    assert b"connection: close" in heard
    assert handler.bodies == []


async def test_an_offer_to_speak_another_protocol_is_ignored() -> None:
    async with _listening() as (handler, listener):
        heard = await _talk(listener, _post(b"", b"Connection: upgrade", b"Upgrade: h2c") + _post(b"after"))
    assert handler.bodies == [b""]
    assert _statuses(heard) == [200]


async def test_good_requests_before_a_bad_one_are_answered_and_nothing_after_it() -> None:
    async with _listening() as (handler, listener):
        heard = await _talk(listener, _post(b"good") + b"nonsense\r\n\r\n" + _post(b"smuggled"))
    assert handler.bodies == [b"good"]
    assert _statuses(heard) == [200, 400]


async def test_a_refused_client_that_keeps_sending_can_read_why() -> None:
    async with _listening() as (_, listener):
        heard = await _talk(listener, _post(b"x" * 150_000))
    assert _statuses(heard) == [413]


@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\nHost:"])
async def test_a_head_that_does_not_come_is_not_waited_for(said: bytes) -> None:
    async with _listening() as (_, listener):
        assert await _talk(listener, said) == b""


async def test_a_body_that_does_not_come_is_not_waited_for() -> None:
    async with _listening() as (handler, listener):
        heard = await _talk(listener, _post(b"x" * 100)[:-50])
    assert _statuses(heard) == [408]
    assert handler.bodies == []


async def test_a_body_in_drops_is_cut_off_and_a_steady_one_is_not() -> None:
    async with _listening() as (handler, listener):
        for size, expected in ((10, [408]), (4000, [200])):
            reader, writer = await _connect(listener)
            hearing = asyncio.create_task(reader.read())
            writer.write(_post(b"x" * (size * 10), b"Connection: close")[: -size * 10])
            for _ in range(10):
                if not hearing.done():
                    writer.write(b"x" * size)
                    await asyncio.sleep(0.05)
            assert _statuses(await asyncio.wait_for(hearing, 5)) == expected
            writer.close()
    assert [len(body) for body in handler.bodies] == [40_000]


async def test_an_idle_connection_is_closed() -> None:
    async with _listening() as (_, listener):
        heard = await _talk(listener, _post())
    assert _statuses(heard) == [200]


async def _until(is_so: Callable[[], bool]) -> None:
    for _ in range(500):
        if is_so():
            return
        await asyncio.sleep(0.01)
    pytest.fail("it did not happen within 5 seconds")


def _reads_nothing(port: int) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", port))
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.sendall(_post())
    return client


@pytest.mark.parametrize("in_pieces", [True, False])
async def test_a_client_that_does_not_read_its_answer_is_cut_off(in_pieces: bool) -> None:
    ended = asyncio.Event()

    async def pieces() -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"x" * 100_000
        finally:
            ended.set()

    async def endless(_: Request) -> Response:
        return Response(200, pieces=pieces()) if in_pieces else Response(200, b"x" * 50_000_000)

    async with _listening(endless) as (_, listener):
        client = _reads_nothing(int(listener.url.rpartition(":")[2]))
        await _until(lambda: listener.connection_count == 1)
        await _until(lambda: listener.connection_count == 0)
        client.close()
        if in_pieces:
            await asyncio.wait_for(ended.wait(), 5)


async def test_a_client_that_reads_slowly_but_steadily_gets_everything() -> None:
    async def large(_: Request) -> Response:
        return Response(200, b"x" * 20_000_000, close=True)

    async with _listening(large) as (_, listener):
        reader, writer = await _connect(listener)
        writer.write(_post())
        size = 0
        while piece := await reader.read(1_000_000):
            size += len(piece)
            await asyncio.sleep(0.02)
        writer.close()
    assert size > 20_000_000


async def test_an_answer_in_pieces_that_fails_has_no_end() -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"first"
        raise RuntimeError("no second")

    async def failing(_: Request) -> Response:
        return Response(200, pieces=pieces())

    async with _listening(failing) as (_, listener):
        reader, writer = await _connect(listener)
        writer.write(_post())
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await reader.readuntil(b"0\r\n\r\n")
        writer.close()


async def test_a_handler_that_fails_is_answered_without_a_word_of_how() -> None:
    async def failing(_: Request) -> Response:
        raise RuntimeError("secret")

    async with _listening(failing) as (_, listener):
        heard = await _talk(listener, _post())
    assert _statuses(heard) == [500]
    assert b"secret" not in heard


async def test_a_handler_learns_that_its_client_has_gone() -> None:
    was_told = asyncio.Event()

    async def waiting(request: Request) -> None:
        await request.gone()
        was_told.set()

    async with _listening(waiting) as (_, listener):
        _, writer = await _connect(listener)
        writer.write(_post())
        await asyncio.sleep(0.05)
        writer.close()
        await asyncio.wait_for(was_told.wait(), 5)


async def test_more_connections_than_there_may_be_are_closed() -> None:
    async with _listening() as (_, listener):
        kept = [await _connect(listener) for _ in range(3)]
        assert await _talk(listener, _post()) == b""
        for _, writer in kept:
            writer.close()


async def test_a_stop_lets_answers_end_and_cuts_what_does_not() -> None:
    async def slow(request: Request) -> Response:
        await asyncio.sleep(float(request.body))
        return Response(200, b"done")

    async with _listening(slow) as (_, listener):
        reader, writer = await _connect(listener)
        endless_reader, endless = await _connect(listener)
        idle_reader, idle = await _connect(listener)
        writer.write(_post(b"0.1"))
        endless.write(_post(b"60"))
        await asyncio.sleep(0.05)
        async with asyncio.timeout(2):
            await listener.stop()
            assert (await reader.read()).endswith(b"done")
            assert await endless_reader.read() == b""
            assert await idle_reader.read() == b""
        for each in (writer, endless, idle):
            each.close()


async def test_a_port_that_is_taken_is_said_with_what_to_do() -> None:
    async with _listening() as (handler, listener):
        with pytest.raises(ListenError, match="another program has the port"):
            HttpListener(handler, "127.0.0.1", int(listener.url.rpartition(":")[2]))


async def test_requests_may_be_handled_together_and_are_answered_in_their_order() -> None:
    begun: list[bytes] = []
    may_end = asyncio.Event()

    async def together(request: Request) -> Response:
        begun.append(request.body)
        if len(begun) == 4:
            may_end.set()
        await may_end.wait()
        return Response(200, b"<" + request.body + b">")

    async with _listening(together, replace(SMALL, concurrent=4, pipelined=8)) as (_, listener):
        said = b"".join(_post(b"%d" % n) for n in range(1, 8))
        heard = await _talk(listener, said)
    assert begun == [b"%d" % n for n in range(1, 8)]
    places = [heard.index(b"<%d>" % n) for n in range(1, 8)]
    assert places == sorted(places)


async def test_no_more_than_the_limit_are_handled_together() -> None:
    at_once = most = 0

    async def counted(_: Request) -> Response:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0.01)
        at_once -= 1
        return Response(200)

    async with _listening(counted, replace(SMALL, concurrent=3, pipelined=8)) as (handler, listener):
        heard = await _talk(listener, b"".join(_post(b"%d" % n) for n in range(20)))
    assert _statuses(heard) == [200] * 20
    assert len(handler.bodies) == 20
    assert most == 3


async def test_a_stop_waits_for_the_work_of_a_client_that_has_gone() -> None:
    ended: list[str] = []

    async def slow(_: Request) -> Response:
        try:
            await asyncio.sleep(0.15)
            ended.append("done")
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise
        return Response(200)

    async with _listening(slow) as (_, listener):
        _, writer = await _connect(listener)
        writer.write(_post())
        await asyncio.sleep(0.05)
        writer.close()
        await asyncio.sleep(0.05)
        await listener.stop()
    assert ended == ["done"]
