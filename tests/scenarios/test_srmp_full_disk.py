"""A disk that is full for a while, on either side: messages wait, and arrive once."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.scenarios.srmp_machines import Machine

from lanner.model.message import Delivery, Message

COUNT = 400
BODY = b"x" * 2_000


@pytest.fixture
async def machines(tmp_path: Path) -> AsyncIterator[tuple[Machine, Machine]]:
    sender, receiver = Machine(tmp_path, "alpha"), Machine(tmp_path, "beta")
    await sender.start()
    await receiver.start()
    yield sender, receiver
    await sender.stop()
    await receiver.stop()


async def limit_pages(machine: Machine, *, full: bool) -> None:
    """Make SQLite believe that the disk is full, or that there is room again."""
    pages = 1 if full else 1_000_000
    writer = machine.manager.store._writer
    await writer.call(lambda connection: connection.execute(f"PRAGMA max_page_count = {pages}").fetchall())


def messages(first: int, count: int) -> list[Message]:
    return [
        Message(label=str(number), body=BODY, delivery=Delivery.RECOVERABLE)
        for number in range(first, first + count)
    ]


def check(labels: list[str], *, is_stream: bool) -> None:
    """All of them came once; those of a stream in order, which others need not keep when some are refused."""
    numbers = [int(label) for label in labels]
    assert (numbers if is_stream else sorted(numbers)) == list(range(COUNT))


async def send(sender: Machine, address: str, *, is_stream: bool) -> None:
    for first in range(0, COUNT, 50):
        if is_stream:
            await sender.send_stream(address, *messages(first, 50))
        else:
            await sender.manager.send_many(address, messages(first, 50))


@pytest.mark.parametrize("is_stream", [False, True])
async def test_the_receivers_disk_is_full(machines: tuple[Machine, Machine], is_stream: bool) -> None:
    sender, receiver = machines
    queue = await receiver.create("orders", transactional=is_stream)
    address = receiver.address("orders")
    await limit_pages(receiver, full=True)
    await send(sender, address, is_stream=is_stream)
    await sender.until(lambda: "500" in sender.manager.queue(address).explanation)
    arrived = receiver.count(queue)
    assert arrived < COUNT
    await asyncio.sleep(0.5)
    assert receiver.count(queue) < COUNT
    await limit_pages(receiver, full=False)
    await receiver.until_count(queue, COUNT)
    check(await receiver.labels(queue), is_stream=is_stream)
    await sender.until_count(address, 0)


@pytest.mark.parametrize("is_stream", [False, True])
async def test_both_disks_are_full_now_and_then(machines: tuple[Machine, Machine], is_stream: bool) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    sender, receiver = machines
    queue = await receiver.create("orders", transactional=is_stream)
    address = receiver.address("orders")
    await send(sender, address, is_stream=is_stream)
    for _ in range(12):
        victim = chance.choice(machines)
        await limit_pages(victim, full=True)
        await asyncio.sleep(chance.uniform(0, 0.2))
        await limit_pages(victim, full=False)
        await asyncio.sleep(chance.uniform(0, 0.1))
    await receiver.until_count(queue, COUNT)
    check(await receiver.labels(queue), is_stream=is_stream)
    await sender.until_count(address, 0)
