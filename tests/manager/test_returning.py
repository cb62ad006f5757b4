"""What a cancelled receiver gives back is there, also when the store cannot take it."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.manager.conftest import (
    BOTH_DELIVERIES,
    LEDGER,
    ORDERS,
    Make,
    Opener,
    check_nothing_lost,
    committing,
    contents,
    counts,
    durable,
    express,
    life,
    only_id,
    opened_for,
    paths,
    put,
    settle,
    started,
    stuck_writer,
    turn,
    until,
)

from lanner.manager import ManualClock, QueueManager
from lanner.model.errors import ReceiveTimeoutError, StoreError, StoreFullError
from lanner.model.queue import QueueAccess, QueueProperties
from lanner.store import Changes


class Disk:
    """A disk that lets so many groups of changes through, and then is full."""

    def __init__(self, manager: QueueManager) -> None:
        self._writer = manager.store._writer
        self._write = self._writer._write
        self.left: int | None = None
        self.error = sqlite3.SQLITE_FULL
        self._writer._write = self._try  # type: ignore[method-assign]

    def _try(self, group: list[Changes]) -> None:
        if self.left == 0:
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = self.error
            raise error
        if self.left is not None:
            self.left -= 1
        self._write(group)

    def free(self) -> None:
        self.left = None


@contextmanager
def cancelled_on_a_full_disk(manager: QueueManager) -> Iterator[Disk]:
    """Let a receive be stored, but not what gives its message back; the block begins the receive."""
    disk = Disk(manager)
    with stuck_writer(manager):
        yield disk
        disk.left = 1


async def cancel_one(manager: QueueManager, name: str) -> Disk:
    """Receive from a queue, be cancelled, and give the message back to a full disk."""
    with cancelled_on_a_full_disk(manager) as disk:
        receiving = await started(manager.receive(name, timeout=0))
        await committing(manager)
        receiving.cancel()
    await settle(manager)
    assert receiving.cancelled()
    return disk


async def test_a_message_that_cannot_be_written_is_back_all_the_same(
    opened: Opener, clock: ManualClock
) -> None:
    async with opened() as manager:
        await manager.create_queue(ORDERS)
        sent = await manager.send_many(ORDERS, [durable(b"one"), durable(b"two")])
        disk = await cancel_one(manager, ORDERS)
        assert manager.unwritten_messages == 1
        await check_nothing_lost(manager, ORDERS, [b"one", b"two"])
        assert [message.lookup_id for message in await contents(manager, ORDERS)] == list(sent.lookup_ids)
        await turn(manager, clock, 5)
        await check_nothing_lost(manager, ORDERS, [b"one", b"two"])
        disk.free()
        await turn(manager, clock, 1)
        assert manager.unwritten_messages == 0
        await check_nothing_lost(manager, ORDERS, [b"one", b"two"])
        assert [event for event, _ in await life(manager, sent.message_ids[0])] == [
            "sent",
            "received",
            "returned",
        ]
    async with opened() as manager:
        await check_nothing_lost(manager, ORDERS, [b"one", b"two"])
        assert (await manager.receive(ORDERS, timeout=0)).body == b"one"


async def test_the_stop_of_the_manager_is_the_last_try(opened: Opener) -> None:
    async with opened() as manager:
        await manager.create_queue(ORDERS)
        await manager.send(ORDERS, durable(b"one"))
        (await cancel_one(manager, ORDERS)).free()
    async with opened() as manager:
        await check_nothing_lost(manager, ORDERS, [b"one"])


async def test_a_receive_that_is_cancelled_when_the_manager_stops(opened: Opener) -> None:
    async with opened() as manager:
        await manager.create_queue(ORDERS)
        await manager.send(ORDERS, durable(b"one"))
        with stuck_writer(manager):
            receiving = await started(manager.receive(ORDERS, timeout=0))
            await committing(manager)
            receiving.cancel()
            closing = await started(manager.close())
        await closing
    async with opened() as manager:
        await check_nothing_lost(manager, ORDERS, [b"one"])


@pytest.mark.parametrize("how", ["transaction", "two phases"])
async def test_what_is_unfinished_when_the_manager_stops_is_written_too(opened: Opener, how: str) -> None:
    async with opened() as manager:
        await manager.create_queue(ORDERS)
        await manager.send(ORDERS, durable(b"one"))
        disk = await cancel_one(manager, ORDERS)
        handle = manager.open_queue(ORDERS, QueueAccess.RECEIVE)
        if how == "transaction":
            await manager.dequeue_message(handle, transaction=manager.create_transaction())
        else:
            await manager.dequeue_message_begin(handle)
        disk.free()
    async with opened() as manager:
        await check_nothing_lost(manager, ORDERS, [b"one"])


async def test_a_message_that_can_never_be_written_is_named(
    opened: Opener, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened() as manager:
        await manager.create_queue(ORDERS)
        await manager.send(ORDERS, durable(b"one"))
        with caplog.at_level(logging.ERROR):
            await cancel_one(manager, ORDERS)
            assert "are back, but could not be written" in caplog.text
            with pytest.raises(StoreFullError):
                await manager.close()
        assert "1 messages whose receivers were cancelled could not be written, and end" in caplog.text


async def test_a_disk_that_fails_for_good_takes_no_message_from_memory(
    opened: Opener, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened() as manager:
        await manager.create_queue(ORDERS)
        await manager.send(ORDERS, durable(b"one"))
        with cancelled_on_a_full_disk(manager) as disk:
            disk.error = sqlite3.SQLITE_IOERR
            receiving = await started(manager.receive(ORDERS, timeout=0))
            await committing(manager)
            receiving.cancel()
        await until(lambda: manager.unwritten_messages == 1)
        assert (await manager.receive(ORDERS, timeout=0)).body == b"one"
        with pytest.raises(StoreError):
            await manager.close()
        assert "are back, but could not be written" in caplog.text
        assert "end with this manager" not in caplog.text


async def test_who_waits_gets_a_message_that_is_in_memory_alone(manager: QueueManager, orders: str) -> None:
    await manager.send(orders, durable(b"one"))
    with cancelled_on_a_full_disk(manager) as disk:
        receiving = await started(manager.receive(orders))
        waiting = await started(manager.receive(orders))
        await committing(manager)
        receiving.cancel()
    assert (await waiting).body == b"one"
    disk.free()
    await check_nothing_lost(manager, orders, [])


async def test_what_was_received_from_memory_is_not_written(opened: Opener, clock: ManualClock) -> None:
    async with opened() as manager:
        await manager.create_queue(ORDERS)
        sent = await manager.send(ORDERS, durable(b"one"))
        disk = await cancel_one(manager, ORDERS)
        disk.free()
        assert (await manager.receive(ORDERS, timeout=0)).id == only_id(sent)
        await turn(manager, clock, 2)
        assert manager.unwritten_messages == 0
        assert manager.total_bytes == 0
    async with opened() as manager:
        await check_nothing_lost(manager, ORDERS, [])


@pytest.mark.parametrize("commit", [False, True])
async def test_a_transaction_takes_a_message_that_is_in_memory_alone(
    opened: Opener, clock: ManualClock, commit: bool
) -> None:
    left = [] if commit else [b"one"]
    async with opened() as manager:
        await manager.create_queue(LEDGER, QueueProperties(transactional=True))
        await put(manager, LEDGER, b"one")
        disk = await cancel_one(manager, LEDGER)
        transaction = manager.create_transaction()
        await manager.receive(LEDGER, timeout=0, transaction=transaction)
        disk.free()
        await turn(manager, clock, 2)
        assert counts(manager, LEDGER) == (1, 0)
        if commit:
            await manager.transaction_commit(transaction)
        else:
            await manager.transaction_abort(transaction)
        await turn(manager, clock, 2)
        assert manager.unwritten_messages == 0
        await check_nothing_lost(manager, LEDGER, left)
    async with opened() as manager:
        await check_nothing_lost(manager, LEDGER, left)
        assert [message.abort_count for message in await contents(manager, LEDGER)] == [1] * len(left)


async def test_a_batch_comes_back_whole(opened: Opener, clock: ManualClock) -> None:
    async with opened() as manager:
        await manager.create_queue(ORDERS)
        await manager.send_many(ORDERS, [durable(b"one"), express(b"two"), durable(b"three")])
        with cancelled_on_a_full_disk(manager) as disk, opened_for(manager, ORDERS) as handle:
            receiving = await started(manager.dequeue_messages(handle, 3))
            await committing(manager)
            receiving.cancel()
        await settle(manager)
        assert manager.unwritten_messages == 2
        await check_nothing_lost(manager, ORDERS, [b"one", b"two", b"three"])
        disk.free()
        await turn(manager, clock, 1)
        await check_nothing_lost(manager, ORDERS, [b"one", b"two", b"three"])
    async with opened() as manager:
        await check_nothing_lost(manager, ORDERS, [b"one", b"three"])


@BOTH_DELIVERIES
@pytest.mark.parametrize("name", [ORDERS, ORDERS + ";later"])
async def test_a_message_comes_back_from_the_journal(
    opened: Opener, clock: ManualClock, make: Make, name: str
) -> None:
    async with opened() as manager:
        await manager.create_queue(ORDERS, QueueProperties(journaling=True))
        # The durable one makes the receive wait for the disk.
        sent = await manager.send_many(ORDERS, [make(b"one"), durable(b"two")])
        if name != ORDERS:
            with opened_for(manager, ORDERS) as handle:
                for place in sent.lookup_ids:
                    await manager.move_message(handle, place, name)
        with cancelled_on_a_full_disk(manager) as disk, opened_for(manager, name) as handle:
            receiving = await started(manager.dequeue_messages(handle, 2))
            await committing(manager)
            receiving.cancel()
        await settle(manager)
        assert counts(manager, ORDERS + ";journal") == (0, 0)
        await check_nothing_lost(manager, name, [b"one", b"two"])
        disk.free()
        await turn(manager, clock, 1)
        assert manager.unwritten_messages == 0
        await check_nothing_lost(manager, name, [b"one", b"two"])
    async with opened() as manager:
        await check_nothing_lost(manager, name, [b"one", b"two"] if make is durable else [b"two"])
        assert counts(manager, ORDERS + ";journal") == (0, 0)


async def test_its_time_still_runs(opened: Opener, clock: ManualClock) -> None:
    async with opened() as manager:
        await manager.create_queue(ORDERS)
        await manager.send(ORDERS, durable(b"one", time_to_be_received=10))
        (await cancel_one(manager, ORDERS)).free()
        await turn(manager, clock, 9)
        await check_nothing_lost(manager, ORDERS, [b"one"])
        await turn(manager, clock, 2)
        await check_nothing_lost(manager, ORDERS, [])


@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize("how", ["purge", "delete", "move"])
async def test_what_is_in_memory_alone_is_like_any_other(
    opened: Opener, clock: ManualClock, how: str, written: bool
) -> None:
    async with opened() as manager:
        await manager.create_queue(ORDERS)
        sent = await manager.send(ORDERS, durable(b"one"))
        disk = await cancel_one(manager, ORDERS)
        disk.free()
        if written:
            # While it is written, which a stuck writer does not let end.
            with stuck_writer(manager):
                clock.advance(1)
                await committing(manager)
                doing = await started(ACTIONS[how](manager, sent.lookup_ids[0]))
            await doing
        else:
            await ACTIONS[how](manager, sent.lookup_ids[0])
        await turn(manager, clock, 3)
        assert manager.unwritten_messages == 0
        if how == "move":
            await check_nothing_lost(manager, ORDERS + ";later", [b"one"])
        assert (manager.total_bytes > 0) == (how == "move")
    async with opened() as manager:
        assert (manager.total_bytes > 0) == (how == "move")
        assert paths(manager) == ([] if how == "delete" else [ORDERS])


async def purge(manager: QueueManager, place: int) -> None:
    await manager.purge_queue(ORDERS)


async def delete(manager: QueueManager, place: int) -> None:
    await manager.delete_queue(ORDERS)


async def move(manager: QueueManager, place: int) -> None:
    with opened_for(manager, ORDERS) as handle:
        while not counts(manager, ORDERS)[1]:
            await settle(manager)
        await manager.move_message(handle, place, ORDERS + ";later")


Action = Callable[[QueueManager, int], Coroutine[Any, Any, None]]
ACTIONS: dict[str, Action] = {"purge": purge, "delete": delete, "move": move}


async def test_a_message_whose_queue_is_not_deleted_after_all_comes_back(
    opened: Opener, clock: ManualClock
) -> None:
    async with opened() as manager:
        await manager.create_queue(ORDERS)
        await manager.send(ORDERS, durable(b"one"))
        with cancelled_on_a_full_disk(manager) as disk:
            receiving = await started(manager.receive(ORDERS))
            await committing(manager)
            receiving.cancel()
            await started(manager.delete_queue(ORDERS))
        await settle(manager)
        with pytest.raises(ReceiveTimeoutError):
            await manager.receive(ORDERS, timeout=0)
        disk.free()
        await turn(manager, clock, 2)
        await check_nothing_lost(manager, ORDERS, [b"one"])
    async with opened() as manager:
        await check_nothing_lost(manager, ORDERS, [b"one"])
