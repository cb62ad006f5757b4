"""A message that was locked when its queue was purged does not come back, also not after a restart.

MS-MQDMPR 3.1.1.11: the state of a recoverable message's position is persistent, and PurgePending is one.
"""

from __future__ import annotations

import sqlite3

import pytest
from tests.manager.conftest import (
    DEAD_LETTER,
    LEDGER,
    ORDERS,
    TRANSACTIONAL_DEAD_LETTER,
    Opener,
    bodies,
    check_nothing_lost,
    classes,
    counts,
    durable,
    express,
    life,
    only_id,
    only_place,
    opened_for,
    settle,
    started,
    stuck_writer,
)

from lanner.manager import QueueManager
from lanner.manager.delivery import Delivery
from lanner.model.codes import MessageClass
from lanner.model.errors import StoreFullError
from lanner.model.queue import QueueAccess, QueueProperties
from lanner.store import Changes


@pytest.mark.parametrize("how", ["two phases", "transaction", "move"])
async def test_the_mark_survives_a_restart(opened: Opener, how: str) -> None:
    async with opened() as manager:
        await manager.create_queue(ORDERS)
        sent = await manager.send(ORDERS, durable(b"one", negative_journaling=True))
        handle = manager.open_queue(ORDERS, QueueAccess.RECEIVE)
        if how == "two phases":
            await manager.dequeue_message_begin(handle)
        elif how == "transaction":
            await manager.dequeue_message(handle, transaction=manager.create_transaction())
        else:
            transaction = manager.create_transaction()
            await manager.move_message(handle, only_place(sent), ORDERS + ";later", transaction=transaction)
        await manager.purge_queue(ORDERS)
        await manager.send(ORDERS, durable(b"two"))
    for _ in range(2):
        async with opened() as manager:
            assert await bodies(manager, ORDERS) == [b"two"]
            assert counts(manager, ORDERS) == (1, 1)
            assert await classes(manager, DEAD_LETTER) == [MessageClass.NACK_QUEUE_PURGED]
            assert [event for event, _ in await life(manager, only_id(sent))] == [
                "sent",
                "purged",
                "dead-lettered",
            ]


async def test_a_transactional_message(opened: Opener) -> None:
    async with opened() as manager:
        await manager.create_queue(LEDGER, QueueProperties(transactional=True))
        async with manager.transaction() as transaction:
            await manager.send(LEDGER, durable(negative_journaling=True), transaction=transaction)
        await manager.receive(LEDGER, timeout=0, transaction=manager.create_transaction())
        await manager.purge_queue(LEDGER)
    async with opened() as manager:
        assert counts(manager, LEDGER) == (0, 0)
        assert await classes(manager, TRANSACTIONAL_DEAD_LETTER) == [MessageClass.NACK_QUEUE_PURGED]


async def test_what_was_moved_all_the_same_stays_where_it_is(opened: Opener) -> None:
    async with opened() as manager:
        await manager.create_queue(ORDERS)
        place = only_place(await manager.send(ORDERS, durable(b"one")))
        async with manager.transaction() as transaction:
            with opened_for(manager, ORDERS) as handle:
                await manager.move_message(handle, place, ORDERS + ";later", transaction=transaction)
            await manager.purge_queue(ORDERS)
    async with opened() as manager:
        await check_nothing_lost(manager, ORDERS + ";later", [b"one"])


@pytest.mark.parametrize("purged_first", [False, True])
async def test_what_was_journaled_all_the_same_stays_in_the_journal(
    opened: Opener, purged_first: bool
) -> None:
    async with opened() as manager:
        await manager.create_queue(ORDERS, QueueProperties(journaling=True))
        await manager.send(ORDERS, durable(b"one"))
        transaction = manager.create_transaction()
        await manager.receive(ORDERS, timeout=0, transaction=transaction)
        with stuck_writer(manager):
            if purged_first:
                purging = await started(manager.purge_queue(ORDERS))
                receiving = await started(manager.transaction_commit(transaction))
            else:
                receiving = await started(manager.transaction_commit(transaction))
                purging = await started(manager.purge_queue(ORDERS))
        await receiving
        await purging
        await settle(manager)
    async with opened() as manager:
        await check_nothing_lost(manager, ORDERS + ";journal", [b"one"])


async def test_what_was_received_all_the_same_leaves_nothing(opened: Opener) -> None:
    async with opened() as manager:
        await manager.create_queue(ORDERS)
        await manager.send_many(ORDERS, [durable(b"one"), express(b"two")])
        with opened_for(manager, ORDERS) as handle:
            messages = [await manager.dequeue_message_begin(handle) for _ in range(2)]
            await manager.purge_queue(ORDERS)
            for message in messages:
                await manager.dequeue_message_end(handle, message, delete=True)
        await check_nothing_lost(manager, ORDERS, [])
    async with opened() as manager:
        await check_nothing_lost(manager, ORDERS, [])


async def test_a_mark_that_cannot_be_stored_is_taken_back(
    manager: QueueManager, orders: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await manager.send(orders, durable(b"one", allow_peek_when_locked=True))
    with opened_for(manager, orders) as handle:
        message = await manager.dequeue_message_begin(handle)
        with monkeypatch.context() as patched:
            patched.setattr(manager.store._writer, "_write", refuse)
            with pytest.raises(StoreFullError):
                await manager.purge_queue(orders)
        assert (await manager.peek_message(handle, timeout=0)).body == b"one"
        await manager.dequeue_message_end(handle, message, delete=False)
    await check_nothing_lost(manager, orders, [b"one"])


async def test_a_purge_that_a_full_disk_keeps_from_its_end_is_tried_again_at_the_next_start(
    opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened() as manager:
        await manager.create_queue(ORDERS)
        await manager.send(ORDERS, durable(b"one"))
        await manager.receive(ORDERS, timeout=0, transaction=manager.create_transaction())
        await manager.purge_queue(ORDERS)
    with monkeypatch.context() as patched:
        patched.setattr(Delivery, "drop_all", full)
        async with opened() as manager:
            assert counts(manager, ORDERS)[0] == 1
    async with opened() as manager:
        await check_nothing_lost(manager, ORDERS, [])


def refuse(group: list[Changes]) -> None:
    error = sqlite3.OperationalError("database or disk is full")
    error.sqlite_errorcode = sqlite3.SQLITE_FULL
    raise error


async def full(*_: object) -> None:
    raise StoreFullError("the disk is full")
