"""Redirections and resets while messages are on their way."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from lanner.config import load_config
from lanner.model.message import Delivery, Message
from lanner.model.queue import OutgoingState
from lanner.protocols.srmp.endpoint import SrmpEndpoint
from lanner.protocols.srmp.redirection import Redirection, RedirectionKind, Redirections
from lanner.service import Service, running

SECONDS = 5.0
"""Less than the retransmission timer takes: who waited for that would be too late."""


class Sink:
    """Answers every POST with 200, and keeps what was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.connections = 0

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                length = int(head.partition("Content-Length: ")[2].partition("\r\n")[0])
                await reader.readexactly(length)
                self.asked.append(head.partition("\r\n")[0])
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(SECONDS):
        while not condition():  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.01)


@pytest.fixture
async def sink() -> AsyncIterator[Sink]:
    sink = Sink()
    await sink.start()
    yield sink
    await sink.stop()


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    flags = {
        "manager.data": str(tmp_path / "data"),
        "manager.name": "LON-1",
        "api.port": 0,
        "network.srmp_port": 0,
        "network.names": {"paris": "127.0.0.1"},
    }
    async with running(load_config(environment={}, flags=flags)) as (service, _):
        yield service


def srmp_of(service: Service) -> SrmpEndpoint:
    [endpoint] = service.protocols
    assert isinstance(endpoint, SrmpEndpoint)
    return endpoint


async def test_a_queue_that_waits_for_a_dead_host_goes_on_through_another(
    service: Service, sink: Sink
) -> None:
    far = "DIRECT=HTTP://paris:9/msmq/private$/orders"
    await service.manager.send(far, Message(body=b"x", delivery=Delivery.RECOVERABLE))
    await until(lambda: service.manager.queue(far).state is OutgoingState.INACTIVE)
    await srmp_of(service).change_redirections(
        lambda known: known.adding(
            RedirectionKind.OUTBOUND, "http://paris:9/*", f"http://127.0.0.1:{sink.port}/"
        )
    )
    await until(lambda: service.manager.queue(far).messages == 0)
    assert sink.asked == ["POST /msmq/private$/orders HTTP/1.1"]


async def test_a_host_that_says_nothing_is_not_waited_for_once_there_is_another(
    service: Service, sink: Sink
) -> None:
    """It lets TLS wait for half an hour, if need be."""
    came, ended = asyncio.Event(), asyncio.Event()

    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.set()
        with contextlib.suppress(ConnectionError):
            while await reader.read(1_000):
                pass
        ended.set()
        writer.close()

    silent = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    far = f"DIRECT=HTTPS://paris:{port}/msmq/private$/orders"
    await service.manager.send(far, Message(body=b"x", delivery=Delivery.RECOVERABLE))
    async with asyncio.timeout(SECONDS):
        await came.wait()
    assert service.manager.queue(far).state is OutgoingState.WAITING
    redirection = Redirection(from_=f"https://paris:{port}/*", to=f"http://127.0.0.1:{sink.port}/")
    await srmp_of(service).redirect(Redirections(outbound=(redirection,)))
    await until(lambda: service.manager.queue(far).messages == 0)
    assert len(sink.asked) == 1
    async with asyncio.timeout(SECONDS):
        await ended.wait()
    silent.close()


async def test_a_connection_to_the_host_before_is_not_used_any_more(service: Service, sink: Sink) -> None:
    other = Sink()
    await other.start()
    far = f"DIRECT=HTTP://paris:{sink.port}/msmq/private$/orders"
    near = f"DIRECT=HTTP://paris:{sink.port}/msmq/private$/near"
    for name in (far, near):
        await service.manager.send(name, Message(body=b"x"))
        await until(lambda name=name: service.manager.queue(name).messages == 0)  # type: ignore[misc]
    redirection = Redirection(from_=f"http://paris:{sink.port}/*", to=f"http://127.0.0.1:{other.port}/")
    exception = f"http://paris:{sink.port}/msmq/private$/near"
    await srmp_of(service).redirect(Redirections(outbound=(redirection,), outbound_exceptions=(exception,)))
    for name in (far, near):
        await service.manager.send(name, Message(body=b"x"))
        await until(lambda name=name: service.manager.queue(name).messages == 0)  # type: ignore[misc]
    assert (len(sink.asked), len(other.asked)) == (3, 1)
    assert sink.connections == 2  # the exception's connection stayed
    await other.stop()


async def test_a_paused_queue_stays_paused(service: Service, sink: Sink) -> None:
    far = f"DIRECT=HTTP://paris:{sink.port}/msmq/private$/orders"
    await service.manager.send(far, Message(body=b"x"))
    await until(lambda: service.manager.queue(far).messages == 0)
    await service.manager.pause_queue(far)
    await service.manager.send(far, Message(body=b"x"))
    redirection = Redirection(from_=f"http://paris:{sink.port}/*", to=f"http://127.0.0.1:{sink.port}/")
    await srmp_of(service).redirect(Redirections(outbound=(redirection,)))
    await asyncio.sleep(0.1)
    assert service.manager.queue(far).state is OutgoingState.ON_HOLD
    assert len(sink.asked) == 1
