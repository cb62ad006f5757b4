"""A receive that is cancelled gives its message back, whenever it happens."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest
from tests.manager.conftest import (
    BOTH_DELIVERIES,
    DEAD_LETTER,
    ORDERS,
    Make,
    Opener,
    bodies,
    check_nothing_lost,
    committing,
    contents,
    counts,
    durable,
    express,
    full_disk,
    let_run,
    life,
    only_id,
    only_place,
    opened_for,
    settle,
    started,
    stuck_reader,
    stuck_writer,
    turn,
)

from lanner.manager import ManualClock, QueueManager, expiry
from lanner.manager.events import MessageDeleted
from lanner.model.queue import QueueProperties

T = TypeVar("T")


async def cancel(task: asyncio.Task[T]) -> None:
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


@pytest.mark.parametrize("turns", range(12))
@BOTH_DELIVERIES
async def test_a_receive_that_is_cancelled_at_any_step_loses_nothing(
    opened: Opener, make: Make, turns: int
) -> None:
    async with opened(cache_bytes=0) as manager:
        await manager.create_queue(ORDERS)
        await manager.send_many(ORDERS, [make(b"one"), make(b"two")])
        receiving = asyncio.ensure_future(manager.receive(ORDERS))
        await let_run(turns)
        receiving.cancel()
        await asyncio.wait([receiving])
        left = [b"one", b"two"] if receiving.cancelled() else [b"two"]
        await check_nothing_lost(manager, ORDERS, left)


@pytest.mark.parametrize("journaling", [False, True])
@pytest.mark.parametrize("name", [ORDERS, ORDERS + ";later"])
async def test_a_receive_that_is_cancelled_while_it_commits_gives_the_message_back(
    opened: Opener, journaling: bool, name: str
) -> None:
    async with opened() as manager:
        await manager.create_queue(ORDERS, QueueProperties(journaling=journaling))
        sent = await manager.send(ORDERS, durable(b"one"))
        if name != ORDERS:
            with opened_for(manager, ORDERS) as handle:
                await manager.move_message(handle, only_place(sent), name)
        with stuck_writer(manager):
            receiving = await started(manager.receive(name))
            await committing(manager)
            await cancel(receiving)
        await settle(manager)
        (message,) = await contents(manager, name)
        assert (message.body, message.lookup_id, message.id) == (b"one", only_place(sent), only_id(sent))
        assert counts(manager, ORDERS + ";journal") == (0, 0)
        assert [event for event, _ in await life(manager, only_id(sent))][-1] == "returned"
        assert manager.total_bytes == message.size
    async with opened() as manager:
        assert await bodies(manager, name) == [b"one"]


async def test_a_receive_that_is_cancelled_when_it_has_committed_gives_the_message_back(
    manager: QueueManager, orders: str
) -> None:
    await manager.send(orders, durable(b"one"))
    receiving = asyncio.ensure_future(manager.receive(orders))

    def cancel_it(event: MessageDeleted) -> None:
        receiving.cancel()

    manager.events.subscribe(MessageDeleted, cancel_it)
    await asyncio.wait([receiving])
    assert receiving.cancelled()
    await check_nothing_lost(manager, orders, [b"one"])


async def test_a_message_that_a_cancelled_receive_gives_back_goes_to_who_waits(
    manager: QueueManager, orders: str
) -> None:
    await manager.send(orders, durable(b"one"))
    with stuck_writer(manager):
        receiving = await started(manager.receive(orders))
        waiting = await started(manager.receive(orders))
        await cancel(receiving)
    assert (await waiting).body == b"one"


async def test_a_receive_of_many_that_is_cancelled_gives_all_of_them_back(
    manager: QueueManager, orders: str
) -> None:
    await manager.send_many(orders, [durable(b"one"), express(b"two"), durable(b"three")])
    with opened_for(manager, orders) as handle, stuck_writer(manager):
        receiving = await started(manager.dequeue_messages(handle, 3))
        await cancel(receiving)
    await check_nothing_lost(manager, orders, [b"one", b"two", b"three"])


async def test_a_receive_that_is_cancelled_while_it_reads_gives_the_message_back(opened: Opener) -> None:
    async with opened(cache_bytes=0) as manager:
        await manager.create_queue(ORDERS)
        place = only_place(await manager.send(ORDERS, durable(b"one")))
        transaction = manager.create_transaction()
        with opened_for(manager, ORDERS) as handle, stuck_reader(manager):
            reads: list[Coroutine[Any, Any, object]] = [
                manager.dequeue_message(handle),
                manager.dequeue_messages(handle, 3),
                manager.dequeue_message(handle, transaction=transaction),
                manager.dequeue_message_begin(handle),
                manager.read_message_by_lookup_identifier(handle, place),
                manager.move_message(handle, place, ORDERS + ";later"),
            ]
            for read in reads:
                task = await started(read)
                assert counts(manager, ORDERS) == (1, 0)
                await cancel(task)
                assert counts(manager, ORDERS) == (1, 1)
        assert manager.queue(ORDERS).subqueues == ()
        await manager.transaction_abort(transaction)
        await check_nothing_lost(manager, ORDERS, [b"one"])


@pytest.mark.parametrize("tidied", [False, True])
async def test_the_time_of_a_message_that_comes_back_from_the_journal_still_runs(
    manager: QueueManager, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, tidied: bool
) -> None:
    if tidied:
        monkeypatch.setattr(expiry, "MIN_REMAINS", 0)
    await manager.create_queue(ORDERS, QueueProperties(journaling=True))
    await manager.send(ORDERS, durable(b"one", time_to_be_received=10))
    with stuck_writer(manager):
        receiving = await started(manager.receive(ORDERS))
        await cancel(receiving)
    await settle(manager)
    assert counts(manager, ORDERS) == (1, 1)
    await turn(manager, clock, 10)
    assert counts(manager, ORDERS) == (0, 0)


@pytest.mark.parametrize("journaling", [False, True])
async def test_a_message_without_a_time_any_more_has_none_when_it_comes_back(
    manager: QueueManager, clock: ManualClock, journaling: bool
) -> None:
    await manager.create_queue(ORDERS, QueueProperties(journaling=journaling))
    sent = await manager.send(ORDERS, durable(b"one", time_to_be_received=1, negative_journaling=True))
    await turn(manager, clock, 2)
    with opened_for(manager, DEAD_LETTER) as handle:
        await manager.move_message(handle, only_place(sent), ORDERS)
    with stuck_writer(manager):
        receiving = await started(manager.receive(ORDERS))
        await committing(manager)
        await cancel(receiving)
    await settle(manager)
    await turn(manager, clock, 10)
    await check_nothing_lost(manager, ORDERS, [b"one"])


async def test_a_receive_that_is_cancelled_when_it_was_journaled_takes_the_message_back_from_there(
    manager: QueueManager,
) -> None:
    await manager.create_queue(ORDERS, QueueProperties(journaling=True))
    await manager.send(ORDERS, durable(b"one"))
    receiving = asyncio.ensure_future(manager.receive(ORDERS))

    def cancel_it(event: MessageDeleted) -> None:
        receiving.cancel()

    manager.events.subscribe(MessageDeleted, cancel_it)
    await asyncio.wait([receiving])
    assert receiving.cancelled()
    await check_nothing_lost(manager, ORDERS, [b"one"])


async def test_a_message_that_would_come_back_to_a_deleted_queue_goes_with_it(opened: Opener) -> None:
    async with opened() as manager:
        await manager.create_queue(ORDERS)
        await manager.send(ORDERS, durable(b"one"))
        with stuck_writer(manager):
            receiving = await started(manager.receive(ORDERS))
            receiving.cancel()
            deleting = await started(manager.delete_queue(ORDERS))
        await deleting
        await settle(manager)
        assert manager.total_bytes == 0
    async with opened() as manager:
        assert manager.total_bytes == 0


async def test_a_cancelled_receive_that_was_not_stored_gives_the_message_back_once(
    manager: QueueManager, orders: str
) -> None:
    sent = await manager.send(orders, durable(b"one"))
    async with full_disk(manager):
        with stuck_writer(manager):
            receiving = await started(manager.receive(orders))
            receiving.cancel()
        await asyncio.wait([receiving])
        await settle(manager)
        assert await bodies(manager, orders) == [b"one"]
    await check_nothing_lost(manager, orders, [b"one"])
    assert await life(manager, only_id(sent)) == [("sent", orders)]
