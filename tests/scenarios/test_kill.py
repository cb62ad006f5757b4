"""A queue manager that is killed in the midst of its work loses nothing that it has acknowledged.

A worker (kill_worker) opens a manager and works under load; it is killed with SIGKILL at a random moment,
at work or while it opens the store, again and again on the same directory, so that damage would add up.
After a kill the directory is opened here, or a copy of it, so that the next worker finds it as the kill
left it, and held against the ledger, which says what must be true. Beside that: the file is whole, no
content is lost or left over, LSNs are dense, and the bytes that count against quotas are those of the
messages that are there.
"""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.scenarios.kill_worker import Journal, Worker
from tests.scenarios.ledger import Ledger

from lanner.manager import ManualClock, QueueManager
from lanner.model.queue import QueueAccess
from lanner.store import Changes

WORKER = Path(__file__).with_name("kill_worker.py")

WORK_SECONDS = (0.02, 0.4)
"""Between the moment before the store is opened and the kill."""
OPEN_SECONDS = (0.0, 0.015)
"""The same where opening is to be hit."""


class Victim:
    """One directory, its workers, and what is known about it."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.directory = directory
        self.store = directory / "store"
        self.ledger = Ledger()
        self.rng = random.Random(seed)
        self.generation = 0
        self.reached_work = 0

    def kill(self, seconds: tuple[float, float]) -> None:
        """Start a worker, kill it, and read its journal."""
        self.generation += 1
        journal = self.directory / f"journal{self.generation}"
        config = self.directory / "config.json"
        done = sorted(key for key, first in self.ledger.keys.items() if first.is_done)
        settings = {
            "directory": str(self.store),
            "journal": str(journal),
            "generation": self.generation,
            "seed": self.rng.random(),
            "confirmed": self.ledger.last_lsn,
            "retries": self.ledger.retries(self.rng.sample(done, min(3, len(done)))),
        }
        config.write_text(json.dumps(settings))
        run_and_kill(config, self.directory / "stderr", self.rng.uniform(*seconds))
        self.reached_work += self.ledger.read_journal(journal)
        journal.unlink(missing_ok=True)

    def check(self, *, in_place: bool) -> None:
        """Open the directory, or a copy of it, and see whether everything is as it must be."""
        store = self.store
        if not in_place:
            store = self.directory / "copy"
            shutil.copytree(self.store, store)
        asyncio.run(check(store, self.ledger))
        if not in_place:
            shutil.rmtree(store)

    def run(self, kills: int) -> None:
        for number in range(kills):
            self.kill(OPEN_SECONDS if number % 4 == 3 else WORK_SECONDS)
            if number % 3:
                self.check(in_place=number % 5 == 0)
        self.kill(WORK_SECONDS)
        self.check(in_place=True)


def run_and_kill(config: Path, stderr: Path, seconds: float) -> None:
    with stderr.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, str(WORKER), str(config)], bufsize=0, stdout=subprocess.PIPE, stderr=errors
        )
    try:
        assert process.stdout is not None
        process.stdout.read(1)
        time.sleep(seconds)
        ended_by_itself = process.poll() is not None
    finally:
        process.kill()
        process.communicate()
    assert not ended_by_itself, stderr.read_text()
    assert not stderr.read_text(), f"the manager complained:\n{stderr.read_text()}"


async def check(store: Path, ledger: Ledger) -> None:
    # The clock stands still: nothing expires while somebody looks.
    async with await QueueManager.open(store, name="victim", clock=ManualClock()) as manager:
        await read_history(manager, ledger)
        ledger.check_operations()
        names = set(queue_names(manager))
        total = 0
        for name in sorted(names):
            total += await check_queue(manager, name, ledger)
        assert manager.total_bytes == total
        ledger.check_queues(names)
        ledger.check_coins()
        await manager.store.read(check_store)


async def read_history(manager: QueueManager, ledger: Ledger) -> None:
    history = manager.history
    assert await history.first_lsn() <= ledger.last_lsn + 1
    while ledger.last_lsn < history.last_lsn:
        ledger.read_history(await history.rows(ledger.last_lsn + 1, history.last_lsn))


def queue_names(manager: QueueManager) -> Iterator[str]:
    for info in manager.queues():
        yield info.path
        yield from (f"{info.path};{subqueue}" for subqueue in info.subqueues)
        if "private$" in info.path and not info.path.endswith("order_queue$"):
            yield f"{info.path};journal"


async def check_queue(manager: QueueManager, name: str, ledger: Ledger) -> int:
    """Hold one queue against the ledger. Says how many bytes it has."""
    info = manager.queue(name)
    handle = manager.open_queue(name, QueueAccess.PEEK)
    messages = await manager.browse_messages(handle, 10_000)
    manager.close_queue(handle)
    ledger.check_queue(name, messages)
    assert (info.messages, info.bytes) == (len(messages), sum(message.size for message in messages)), name
    return info.bytes


def check_store(connection: sqlite3.Connection) -> None:
    """The file itself is whole, and holds each content that is needed and no other."""
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    for query in (
        "SELECT id FROM segment WHERE id NOT IN (SELECT segment FROM message)",
        "SELECT lookup FROM message WHERE segment NOT IN (SELECT id FROM segment)",
        "SELECT lookup FROM message WHERE queue NOT IN (SELECT id FROM queue)",
        "SELECT path FROM queue GROUP BY path HAVING count(*) > 1",
    ):
        assert connection.execute(query).fetchall() == [], query


def hunt(directory: Path, kills: int) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    victim = Victim(directory, seed)
    victim.run(kills)
    ledger = victim.ledger
    print(f"{victim.reached_work} of {kills + 1} workers got to work; {ledger.last_lsn} changes, all there")
    assert victim.reached_work > kills / 3


def test_nothing_is_lost_by_kills(tmp_path: Path) -> None:
    hunt(tmp_path, 20)


def test_a_kill_while_the_store_is_made_leaves_one_that_opens(tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    for number in range(8):
        victim = Victim(tmp_path / str(number), seed + number)
        victim.directory.mkdir()
        victim.kill(OPEN_SECONDS)
        victim.check(in_place=True)


async def test_memory_and_disk_agree_when_everything_under_way_is_cancelled(tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    ledger = Ledger()
    for generation in range(1, 4):
        journal = tmp_path / f"journal{generation}"
        async with await QueueManager.open(tmp_path / "store", name="victim") as manager:
            worker = Worker(manager, Journal(str(journal), generation), random.Random(seed + generation))
            await worker.prepare(ledger.last_lsn, [])
            load = asyncio.ensure_future(worker.work())
            await asyncio.sleep(1)
            load.cancel()
            await asyncio.gather(load, return_exceptions=True)
            await abort_everything(manager)
            left = await available(manager)
        ledger.read_journal(journal)
        await check(tmp_path / "store", ledger)
        async with await QueueManager.open(tmp_path / "store", clock=ManualClock()) as manager:
            assert await available(manager) == left


async def abort_everything(manager: QueueManager) -> None:
    manager._delivery.expiry.stop()  # nothing goes by itself any more
    await come_to_rest(manager)
    for transaction in tuple(manager._units._open.values()):
        await manager.transaction_abort(transaction)
    await come_to_rest(manager)


async def come_to_rest(manager: QueueManager) -> None:
    for _ in range(3):
        await manager._core.settle()
        await manager.store.commit(Changes())


async def available(manager: QueueManager) -> dict[str, list[int]]:
    """Where every message lies that survives a restart. There must be none that anybody holds."""
    places: dict[str, list[int]] = {}
    for name in queue_names(manager):
        info = manager.queue(name)
        handle = manager.open_queue(name, QueueAccess.PEEK)
        messages = await manager.browse_messages(handle, 10_000, bodies=False)
        manager.close_queue(handle)
        assert info.messages == info.available_messages == len(messages), name
        recoverable = [message.lookup_id for message in messages if message.is_recoverable]
        if recoverable:
            places[name] = recoverable
    return places


@pytest.mark.soak
def test_nothing_is_lost_by_hundreds_of_kills(tmp_path: Path) -> None:
    hunt(tmp_path, 500)
