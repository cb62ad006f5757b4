"""What the tests of the manager share: a manager on a clock turned by hand, and short ways to use it."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import pytest

from lanner.manager import ManagerSettings, ManualClock, OpenQueue, Outcome, QueueManager
from lanner.manager.events import Event
from lanner.model.history import HistoryRow
from lanner.model.message import Delivery, Message
from lanner.model.message_id import MessageId
from lanner.model.queue import QueueAccess, QueueKind, QueueProperties, ShareMode
from lanner.model.security import SecurityDescriptor, Token

T = TypeVar("T")

NAME = "here"
ALIASES = ("here.example.com", "10.0.0.1", "fe80:0:0:0:0:0:0:1")

ORDERS = r".\private$\orders"
OTHER = r".\private$\other"
LEDGER = r".\private$\ledger"
"""A transactional queue, made by the fixture of that name."""
BOOKS = r".\private$\books"
"""Another one."""

SYSTEM_JOURNAL = r".\system$;journal"
DEAD_LETTER = r".\system$;deadletter"
TRANSACTIONAL_DEAD_LETTER = r".\system$;deadxact"
ELSEWHERE = r"DIRECT=OS:elsewhere\private$\far"

Opener: TypeAlias = Callable[..., AbstractAsyncContextManager[QueueManager]]
Make: TypeAlias = Callable[..., Message]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def opened(tmp_path: Path, clock: ManualClock) -> Opener:
    """Opens the manager of the test for a ``with`` block: the same one, each time."""

    @asynccontextmanager
    async def open_manager(**settings: Any) -> AsyncIterator[QueueManager]:
        chosen = ManagerSettings(**{"aliases": ALIASES, **settings})
        async with await QueueManager.open(
            tmp_path / "store", name=NAME, settings=chosen, clock=clock
        ) as manager:
            yield manager

    return open_manager


@pytest.fixture
async def manager(opened: Opener) -> AsyncIterator[QueueManager]:
    async with opened() as manager:
        yield manager


@pytest.fixture
async def orders(manager: QueueManager) -> str:
    """An ordinary queue."""
    return (await manager.create_queue(ORDERS)).path


@pytest.fixture
async def other(manager: QueueManager) -> str:
    """Another ordinary queue."""
    return (await manager.create_queue(OTHER)).path


@pytest.fixture
async def ledger(manager: QueueManager) -> str:
    """A transactional queue."""
    return (await manager.create_queue(LEDGER, QueueProperties(transactional=True))).path


@pytest.fixture
async def books(manager: QueueManager) -> str:
    """Another transactional queue."""
    return (await manager.create_queue(BOOKS, QueueProperties(transactional=True))).path


@pytest.fixture
def far(manager: QueueManager) -> str:
    """An outgoing queue."""
    with opened_for(manager, ELSEWHERE, QueueAccess.SEND):
        return ELSEWHERE


# Messages.


def durable(body: bytes = b"", **attributes: Any) -> Message:
    """A message that survives a restart."""
    return Message(body=body, delivery=Delivery.RECOVERABLE, **attributes)


def express(body: bytes = b"", **attributes: Any) -> Message:
    """A message that is in memory alone."""
    return Message(body=body, **attributes)


BOTH_DELIVERIES = pytest.mark.parametrize("make", [express, durable], ids=["express", "durable"])
"""For what must not depend on where a message is kept."""


def only_id(outcome: Outcome) -> MessageId:
    (message_id,) = outcome.message_ids
    return message_id


def only_place(outcome: Outcome) -> int:
    (lookup_id,) = outcome.lookup_ids
    return lookup_id


NUMBERS = [b"0", b"1", b"2", b"3", b"4"]


async def five(manager: QueueManager, name: str) -> tuple[int, ...]:
    """Send five messages, and say where they are."""
    return (await manager.send_many(name, [durable(body) for body in NUMBERS])).lookup_ids


async def put(manager: QueueManager, name: str, *texts: bytes) -> tuple[int, ...]:
    """Send messages to a transactional queue, and say where they are."""
    async with manager.transaction() as transaction:
        await manager.send_many(name, [durable(text) for text in texts], transaction=transaction)
    return tuple(message.lookup_id for message in await contents(manager, name))[-len(texts) :]


# Queues.

DESCRIPTOR = SecurityDescriptor.from_sddl("O:BAD:(A;;0x2;;;WD)")


def paths(manager: QueueManager) -> list[str]:
    """The queues that are not the manager's own."""
    return [info.path for info in manager.queues() if info.kind is not QueueKind.SYSTEM]


@contextmanager
def opened_for(
    manager: QueueManager,
    name: str,
    access: QueueAccess = QueueAccess.RECEIVE,
    *,
    share: ShareMode = ShareMode.DENY_NONE,
    token: Token | None = None,
) -> Iterator[OpenQueue]:
    """Have a queue open for a while."""
    handle = manager.open_queue(name, access, share=share, token=token)
    try:
        yield handle
    finally:
        manager.close_queue(handle)


async def contents(manager: QueueManager, name: str) -> list[Message]:
    """Everything that could be received from a queue, in order."""
    access = QueueAccess.PEEK_ADMIN if name.startswith("DIRECT=") else QueueAccess.PEEK
    with opened_for(manager, name, access) as handle:
        return await manager.browse_messages(handle, 10_000)


async def bodies(manager: QueueManager, name: str) -> list[bytes]:
    return [message.body for message in await contents(manager, name)]


async def classes(manager: QueueManager, name: str) -> list[int]:
    return [message.message_class for message in await contents(manager, name)]


def counts(manager: QueueManager, name: str) -> tuple[int, int]:
    """How many messages are in a queue, and how many of them could be received."""
    info = manager.queue(name)
    return info.messages, info.available_messages


async def check_nothing_lost(manager: QueueManager, name: str, expected: list[bytes]) -> None:
    await settle(manager)
    assert await bodies(manager, name) == expected
    assert counts(manager, name) == (len(expected), len(expected))
    assert manager.total_bytes == sum(message.size for message in await contents(manager, name))


# The course of things.


async def let_run(turns: int = 10) -> None:
    """Let the event loop turn, so that tasks get as far as they can without the store."""
    for _ in range(turns):
        await asyncio.sleep(0)


async def started(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Begin something that waits."""
    task = asyncio.get_running_loop().create_task(work)
    await let_run()
    return task


async def until(condition: Callable[[], bool]) -> None:
    """Wait for the store's threads to get somewhere."""
    while not condition():  # noqa: ASYNC110  # another thread rings no bell here
        await asyncio.sleep(0.001)


async def committing(manager: QueueManager) -> None:
    """Wait until somebody waits for the writer."""
    await until(lambda: manager.store.backlog_rows > 0)


async def settle(manager: QueueManager) -> None:
    """Wait until everything that was begun beside the test has ended."""
    for _ in range(3):
        await manager._core.settle()
        await manager.store._writer.call(lambda _: None)


async def turn(manager: QueueManager, clock: ManualClock, seconds: float) -> None:
    """Let time pass, and wait for what comes of it."""
    clock.advance(seconds)
    await settle(manager)


async def history(manager: QueueManager) -> list[HistoryRow]:
    """The whole history."""
    await settle(manager)
    return await manager.history.rows(1, manager.history.last_lsn)


async def life(manager: QueueManager, message_id: MessageId) -> list[tuple[str, str]]:
    """What happened to one message, and where."""
    return [(row.event, row.queue) for row in await history(manager) if row.message_id == str(message_id)]


def recorded(manager: QueueManager, kind: type[Event]) -> list[Any]:
    """A list that grows with each event of a kind."""
    seen: list[Any] = []
    manager.events.subscribe(kind, seen.append)
    return seen


@contextmanager
def stuck_writer(manager: QueueManager) -> Iterator[None]:
    """Let nothing become durable for a while."""
    gate = threading.Event()
    manager.store._writer.call(lambda _: gate.wait(10))
    try:
        yield
    finally:
        gate.set()


@contextmanager
def stuck_reader(manager: QueueManager) -> Iterator[None]:
    """Let nothing be read from the disk for a while."""
    gate = threading.Event()
    manager.store._reader.submit(gate.wait, 10)
    try:
        yield
    finally:
        gate.set()


# A full disk.

_FAR = 4_000_000_000_000_000_000
"""A key behind every real one."""

_FILLERS = {
    ("segment", "id"): "INSERT INTO segment VALUES (:key, zeroblob(:size))",
    ("history", "first"): "INSERT INTO history VALUES (:key, 0, zeroblob(:size))",
    ("queue", "id"): "INSERT INTO queue VALUES (:key, '', '', NULL, zeroblob(:size), NULL)",
    ("message", "lookup"): "INSERT INTO message VALUES (:key, 0, zeroblob(:size), 0,0,0,0,0,0,0,0,0,0)",
}
"""For each table and its key: what puts a row of some size behind the others."""


def _fill(connection: sqlite3.Connection) -> None:
    """Let no row of any size find room: neither in a new page nor at the end of a used one."""
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages}")
    keys = itertools.count(_FAR)
    for insert in _FILLERS.values():
        for size in (100_000, 3000, 300, 30, 0):
            with contextlib.suppress(sqlite3.OperationalError):
                for key in keys:
                    connection.execute(insert, {"key": key, "size": size})


def _clear(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA max_page_count = 1073741823")
    for table, key in _FILLERS:
        connection.execute(f"DELETE FROM {table} WHERE {key} >= {_FAR}")


@asynccontextmanager
async def full_disk(manager: QueueManager) -> AsyncIterator[None]:
    """Have no room on the disk for a while."""
    await settle(manager)
    await manager.store._writer.call(_fill)
    try:
        yield
    finally:
        await manager.store._writer.call(_clear)
