"""A TCP proxy that does to HTTP what bad networks do: cut, delay, swallow, repeat, and lose answers.

What happens to a connection is decided when it is made, by a seeded generator: the same seed gives the same
fates in the same order, whatever the timing.
"""

from __future__ import annotations

import asyncio
import enum
import random
import re
from collections import Counter
from collections.abc import Coroutine
from dataclasses import dataclass

CHUNK = 64 * 1024
CONNECT_SECONDS = 5.0

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


class Fate(enum.Enum):
    """What becomes of a connection."""

    CLEAN = "passes everything on"
    CUT_REQUEST = "is cut within what the client sends"
    CUT_ANSWER = "is cut within what the server sends"
    ANSWER_LOST = "is cut when requests have arrived, before they are answered"
    HALF_OPEN = "stays open, and everything is swallowed from some byte on"
    DELAYED = "is slow"


@dataclass(frozen=True)
class Weather:
    """How bad it is."""

    weights: tuple[float, ...] = (3, 3, 3, 3, 1, 1)
    """How often each fate is met, in the order of :class:`Fate`."""
    largest_cut: int = 150_000
    """Bytes that pass at most before something happens; small numbers are as likely as large ones."""
    longest_delay: float = 0.05
    duplicates: float = 0.02
    """The share of requests that come a second time, on another connection."""
    latest_duplicate: float = 1.5
    """Seconds until the second one comes, at most."""


CALM = Weather(weights=(1, 0, 0, 0, 0, 0), duplicates=0.0)


class RequestSplitter:
    """Cuts a stream of bytes into whole HTTP requests."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        """Take bytes; gives the requests that are whole now."""
        self._rest += data
        whole = []
        while (end := self._rest.find(b"\r\n\r\n")) >= 0:
            found = _LENGTH.search(self._rest, 0, end)
            size = end + 4 + (int(found[1]) if found else 0)
            if len(self._rest) < size:
                break
            whole.append(self._rest[:size])
            self._rest = self._rest[size:]
        return whole


class _Passage:
    """One connection through the proxy."""

    def __init__(self, proxy: LossyProxy, fate: Fate, seed: int) -> None:
        self._proxy = proxy
        self._fate = fate
        self._chance = random.Random(seed)
        weather = proxy.weather
        self._left = int(weather.largest_cut ** self._chance.random())
        """Bytes until it happens."""
        self._splitter = RequestSplitter()
        self._is_swallowing = False

    async def carry(
        self,
        client: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        server: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        tasks = [
            asyncio.create_task(self._requests(client[0], server[1])),
            asyncio.create_task(self._answers(server[0], client[1])),
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for writer in (client[1], server[1]):
                writer.transport.abort()

    async def _requests(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(CHUNK):
            for request in self._splitter.feed(data):
                if self._chance.random() < self._proxy.weather.duplicates:
                    self._proxy.repeat(request, self._chance.random())
            data = await self._weathered(data, Fate.CUT_REQUEST)
            if not self._is_swallowing:
                sink.write(data)
                await sink.drain()
            if self._is_over(Fate.CUT_REQUEST):
                await asyncio.sleep(0)  # let the last bytes go
                return

    async def _answers(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(CHUNK):
            data = await self._weathered(data, Fate.CUT_ANSWER)
            if self._fate is Fate.ANSWER_LOST and self._left <= 0:
                return
            if not self._is_swallowing:
                sink.write(data)
                await sink.drain()
            if self._is_over(Fate.CUT_ANSWER):
                return

    async def _weathered(self, data: bytes, cut: Fate) -> bytes:
        """What is left of some bytes that pass in one direction."""
        if self._fate is Fate.DELAYED:
            await asyncio.sleep(self._chance.random() * self._proxy.weather.longest_delay)
        elif self._fate is Fate.HALF_OPEN:
            self._left -= len(data)
            self._is_swallowing = self._left <= 0
        elif self._fate is Fate.ANSWER_LOST:
            self._left -= len(data)
        elif self._fate is cut:
            data = data[: self._left]
            self._left -= len(data)
        return data

    def _is_over(self, cut: Fate) -> bool:
        return self._fate is cut and self._left <= 0


class LossyProxy:
    """Stands before one server. ``met`` counts what happened."""

    def __init__(self, target: int, seed: int, weather: Weather | None = None) -> None:
        self._target = target
        self._chance = random.Random(seed)
        self.weather = weather or Weather()
        self.met: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server

    async def start(self, port: int = 0) -> int:
        """Listen; gives the port."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", port, limit=CHUNK)
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """End all connections."""
        self._server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def calm_down(self) -> None:
        """Pass everything on from now on, and end what is half open."""
        self.weather = CALM
        for task in tuple(self._tasks):
            task.cancel()

    def repeat(self, request: bytes, when: float) -> None:
        """Send a request to the server once more, some time later, and throw the answer away."""
        self.met["repeated"] += 1
        self._spawn(self._repeat(request, when * self.weather.latest_duplicate))

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _repeat(self, request: bytes, seconds: float) -> None:
        await asyncio.sleep(seconds)
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            return
        try:
            writer.write(request)
            async with asyncio.timeout(CONNECT_SECONDS):
                await reader.readuntil(b"\r\n\r\n")
        except (OSError, EOFError, TimeoutError):
            pass
        finally:
            writer.transport.abort()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Drawn before anything is waited for: the order of connections alone decides.
        fate = self._chance.choices(tuple(Fate), self.weather.weights)[0]
        passage = _Passage(self, fate, self._chance.getrandbits(32))
        self._spawn(self._serve(passage, fate, reader, writer))

    async def _serve(
        self,
        passage: _Passage,
        fate: Fate,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        try:
            server = await asyncio.open_connection("127.0.0.1", self._target, limit=CHUNK)
        except OSError:
            self.met["refused"] += 1
            writer.transport.abort()
            return
        self.met[fate.name] += 1
        await passage.carry((reader, writer), server)
