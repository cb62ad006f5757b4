"""Two queue managers with a bad network between them are killed with -9 at random, and nothing is lost.

Messages go one way and receipts the other, each through a proxy that cuts, delays, swallows and repeats.
Shown: messages of a stream arrive exactly once and in order, durable ones all arrive, and the sender lets go
of everything in the end.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.scenarios.lossy_proxy import CALM, LossyProxy, Weather
from tests.scenarios.srmp_process import SrmpProcess

from lanner.client import AsyncClient
from lanner.schema.messages import MessageIn

STREAM = r".\private$\stream"
DURABLE = r".\private$\durable"
MAX_TRANSACTION = 150
ARRIVAL_SECONDS = 60.0


class World:
    """A sender, a receiver, and the way between them."""

    def __init__(self, directory: Path, seed: int, weather: Weather | None = None) -> None:
        self.chance = random.Random(seed)
        self.sender = SrmpProcess(directory / "sender", "sender")
        self.receiver = SrmpProcess(directory / "receiver", "receiver")
        self.there = LossyProxy(self.receiver.port, seed + 1, weather)
        self.back = LossyProxy(self.sender.port, seed + 2, weather)
        self.pause = 0.0
        """Seconds between two transactions, at most."""
        self._there_port = 0

    async def start(self) -> None:
        self._there_port = await self.there.start()
        back = await self.back.start()
        self.sender.configure(f"http://127.0.0.1:{back}")
        self.receiver.configure(f"http://127.0.0.1:{self._there_port}")
        await asyncio.gather(self.sender.start(), self.receiver.start())
        async with self.receiver.client() as client:
            await client.create_queue(STREAM, transactional=True)
            await client.create_queue(DURABLE)

    async def stop(self) -> None:
        for process in (self.sender, self.receiver):
            process.end()
        await self.there.stop()
        await self.back.stop()

    def address(self, queue: str) -> str:
        """What the sender calls a queue of the receiver."""
        name = queue.rpartition("\\")[2]
        return f"DIRECT=HTTP://127.0.0.1:{self._there_port}/msmq/private$/{name}"

    # Sending.

    async def send_stream(self, first: int, last: int, *, dead_letter: bool = False) -> None:
        """Send in transactions of random sizes; each under a key, so that it is repeated safely."""
        async with self.sender.client() as client:
            while first < last:
                size = min(self.chance.randint(1, MAX_TRANSACTION), last - first)
                messages = [self._message(number, dead_letter) for number in range(first, first + size)]
                await client.send_many(
                    self.address(STREAM), messages, key=f"stream {first}", transactional=True
                )
                first += size
                await asyncio.sleep(self.chance.uniform(0, self.pause))

    async def send_durable(self, count: int) -> None:
        async with self.sender.client() as client:
            for first in range(0, count, 20):
                messages = [self._message(number) for number in range(first, min(first + 20, count))]
                await client.send_many(self.address(DURABLE), messages, key=f"durable {first}")
                await asyncio.sleep(self.chance.uniform(0, self.pause))

    def _message(self, number: int, dead_letter: bool = False) -> MessageIn:
        return MessageIn(
            body=b"x" * self.chance.choice((0, 10, 100, 1000)),
            label=str(number),
            durable=True,
            dead_letter=dead_letter,
        )

    # Killing.

    async def kill(self, kills: int) -> None:
        for _ in range(kills):
            await asyncio.sleep(self.chance.uniform(0.2, 1.2))
            victims = self.chance.choice(
                ([self.sender], [self.receiver], [self.receiver], [self.sender, self.receiver])
            )
            for victim in victims:
                victim.kill()
            await asyncio.sleep(self.chance.choice((0, 0, 0.3)))
            for victim in victims:
                await victim.start()

    # What came of it.

    async def arrived(self, queue: str) -> list[int]:
        async with self.receiver.client() as client:
            return [int(message.label) async for message in client.browse(queue, bodies=False)]

    async def settle(self, stream: int, durable: int, sent: tuple[str, ...] = (STREAM, DURABLE)) -> None:
        """Wait until everything is there, and the sender knows it."""
        deadline = time.monotonic() + ARRIVAL_SECONDS
        async with self.receiver.client() as receiver, self.sender.client() as sender:
            while not await self._is_settled(receiver, sender, stream, durable, sent):
                assert time.monotonic() < deadline, await self.state()
                await asyncio.sleep(0.1)

    async def _is_settled(
        self, receiver: AsyncClient, sender: AsyncClient, stream: int, durable: int, sent: tuple[str, ...]
    ) -> bool:
        counts = [(await receiver.queue(queue)).messages for queue in (STREAM, DURABLE)]
        left = [(await sender.queue(self.address(queue))).messages for queue in sent]
        return counts[0] >= stream and counts[1] >= durable and not any(left)

    async def state(self) -> str:
        """For whoever has to find out why it does not end."""
        lines = [f"there {dict(self.there.met)}, back {dict(self.back.met)}"]
        async with self.receiver.client() as receiver, self.sender.client() as sender:
            for queue in (STREAM, DURABLE):
                lines.append(f"receiver {queue}: {(await receiver.queue(queue)).messages}")
                with contextlib.suppress(Exception):
                    lines.append(f"sender: {await sender.queue(self.address(queue))}")
        for process in (self.sender, self.receiver):
            lines.append(f"{process.name}: " + "\n".join(process.log.read_text().splitlines()[-15:]))
        return "\n".join(lines)

    def check_logs(self) -> None:
        assert self.sender.complaints() == []
        assert self.receiver.complaints() == []


@contextlib.asynccontextmanager
async def world(directory: Path, weather: Weather | None = None) -> AsyncIterator[World]:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    made = World(directory, seed, weather)
    try:
        await made.start()
        yield made
    finally:
        await made.stop()


async def proof(directory: Path, kills: int, stream: int, durable: int, pause: float = 0.0) -> None:
    async with world(directory) as made:
        made.pause = pause
        await asyncio.gather(made.send_stream(0, stream), made.send_durable(durable), made.kill(kills))
        made.there.calm_down()
        made.back.calm_down()
        await made.settle(stream, durable)
        assert await made.arrived(STREAM) == list(range(stream))
        there = Counter(await made.arrived(DURABLE))
        print(f"{there.total() - len(there)} durable messages twice; {made.there.met}; {made.back.met}")
        assert set(there) == set(range(durable))
        made.check_logs()


async def test_a_stream_arrives_once_and_in_order_whatever_is_killed(tmp_path: Path) -> None:
    await proof(tmp_path, kills=5, stream=10_000, durable=2_000)


@pytest.mark.soak
async def test_the_same_over_many_kills(tmp_path: Path) -> None:
    # The pause spreads the messages over the time that so many kills take.
    await proof(tmp_path, kills=200, stream=40_000, durable=10_000, pause=1.0)


async def test_a_receiver_that_is_down_while_everything_is_sent(tmp_path: Path) -> None:
    async with world(tmp_path, CALM) as made:
        made.receiver.kill()
        await made.send_stream(0, 2_000)
        await made.send_durable(500)
        async with made.sender.client() as client:
            assert (await client.queue(made.address(STREAM))).messages == 2_000
        made.sender.kill()
        await made.sender.start()
        await made.receiver.start()
        await made.settle(2_000, 500)
        assert await made.arrived(STREAM) == list(range(2_000))
        assert sorted(await made.arrived(DURABLE)) == list(range(500))
        made.check_logs()


async def test_what_has_arrived_stays_when_the_sender_dies_for_ever(tmp_path: Path) -> None:
    async with world(tmp_path, Weather(largest_cut=50_000)) as made:
        sending = asyncio.create_task(made.send_stream(0, 3_000))
        while len(await made.arrived(STREAM)) < 300:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        made.sender.kill()
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        await asyncio.sleep(1)  # receipts find nobody
        before = await made.arrived(STREAM)
        made.receiver.kill()
        await made.receiver.start()
        assert await made.arrived(STREAM) == before == list(range(len(before)))
        made.check_logs()


async def test_what_became_of_each_message_is_told_to_its_sender(tmp_path: Path) -> None:
    """Messages with negative journaling stay with their sender until they are received."""
    async with world(tmp_path, Weather(largest_cut=20_000)) as made:
        total = 1_500
        received: list[int] = []

        async def receive() -> None:
            async with made.receiver.client() as client:
                while len(received) < total:
                    messages = await client.receive(STREAM, count=20, wait=1.0)
                    received.extend(int(message.label) for message in messages)

        async def kill_sender() -> None:
            for _ in range(3):
                await asyncio.sleep(made.chance.uniform(0.2, 1.0))
                made.sender.kill()
                await made.sender.start()

        await asyncio.gather(made.send_stream(0, total, dead_letter=True), receive(), kill_sender())
        assert received == list(range(total))
        made.there.calm_down()
        made.back.calm_down()
        await made.settle(0, 0, sent=(STREAM,))
        async with made.sender.client() as client:
            assert await client.dead_letters() == ()
        made.check_logs()
