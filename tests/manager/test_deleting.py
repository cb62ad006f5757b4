"""Deleting and purging queues."""

from __future__ import annotations

import asyncio

import pytest
from tests.manager.conftest import (
    BOTH_DELIVERIES,
    DEAD_LETTER,
    ELSEWHERE,
    ORDERS,
    OTHER,
    Make,
    Opener,
    bodies,
    committing,
    counts,
    durable,
    express,
    let_run,
    life,
    only_id,
    only_place,
    opened_for,
    paths,
    settle,
    started,
    stuck_writer,
)

from lanner.manager import QueueManager
from lanner.model.errors import (
    QueueDeletedError,
    QueueExistsError,
    QueueNotFoundError,
    ReceiveTimeoutError,
    UnsupportedOperationError,
)
from lanner.model.queue import (
    QueueAccess,
    QueueProperties,
)

# Deleting.


async def test_a_deleted_queue_is_gone_with_its_journal_and_subqueues(
    manager: QueueManager, other: str
) -> None:
    await manager.create_queue(ORDERS, QueueProperties(journaling=True))
    await manager.send_many(ORDERS, [durable(b"journaled"), durable(b"moved"), express(b"left")])
    await manager.receive(ORDERS, timeout=0)
    with opened_for(manager, ORDERS) as handle:
        moved = await manager.peek_message(handle)
        await manager.move_message(handle, moved.lookup_id, ORDERS + ";later")
    await manager.delete_queue(ORDERS)
    assert paths(manager) == [other]
    for name in (ORDERS, ORDERS + ";journal", ORDERS + ";later"):
        with pytest.raises(QueueNotFoundError):
            manager.queue(name)
    assert manager.total_bytes == 0


async def test_a_deleted_queue_leaves_nothing_in_the_store(opened: Opener) -> None:
    async with opened() as manager:
        await manager.create_queue(ORDERS)
        await manager.send(ORDERS, durable())
        await manager.delete_queue(ORDERS)
    async with opened() as manager:
        assert paths(manager) == []
        assert manager.total_bytes == 0
        await manager.create_queue(ORDERS)
        assert counts(manager, ORDERS) == (0, 0)


async def test_what_happened_to_the_messages_of_a_deleted_queue(manager: QueueManager, orders: str) -> None:
    sent = await manager.send(orders, durable())
    await manager.delete_queue(orders)
    assert await life(manager, only_id(sent)) == [("sent", orders), ("deleted", orders)]


async def test_handles_on_a_deleted_queue_say_so(manager: QueueManager, orders: str) -> None:
    with (
        opened_for(manager, orders) as reader,
        opened_for(manager, orders, QueueAccess.SEND) as sender,
        opened_for(manager, orders + ";later") as subqueue,
    ):
        waiting = await started(manager.dequeue_message(reader))
        await manager.delete_queue(orders)
        with pytest.raises(QueueDeletedError):
            await waiting
        with pytest.raises(QueueDeletedError):
            await manager.enqueue_message(sender, durable())
        for handle in (reader, subqueue):
            with pytest.raises(QueueDeletedError):
                await manager.dequeue_message(handle, timeout=0)


async def test_a_queue_deleted_twice_at_once_is_deleted_once(manager: QueueManager, orders: str) -> None:
    await manager.send(orders, durable())
    results = await asyncio.gather(
        manager.delete_queue(orders), manager.delete_queue(orders), return_exceptions=True
    )
    assert [type(result) for result in results] == [type(None), QueueNotFoundError]


async def test_a_queue_that_is_being_deleted_takes_nothing_in(opened: Opener) -> None:
    async with opened() as manager:
        await manager.create_queue(ORDERS)
        await manager.create_queue(OTHER)
        sent = await manager.send(OTHER, durable(b"here"))
        await manager.send(ORDERS, durable(b"there"))
        queue = manager._core.queues.get(ORDERS)
        deleting = await started(manager.delete_queue(ORDERS))
        with pytest.raises(QueueDeletedError):
            await manager.deliver_message(queue, durable(id=only_id(sent)), peer="10.0.0.2")
        with pytest.raises(QueueNotFoundError):
            await manager.send(ORDERS, durable())
        with pytest.raises(QueueNotFoundError), opened_for(manager, OTHER) as handle:
            await manager.move_message(handle, only_place(sent), ORDERS)
        with pytest.raises(QueueNotFoundError):
            await manager.change_queue(ORDERS, QueueProperties(label="x"))
        with pytest.raises(QueueNotFoundError), opened_for(manager, ORDERS + ";later"):
            pass
        with pytest.raises(QueueExistsError):
            await manager.create_queue(ORDERS)
        await deleting
        assert await bodies(manager, OTHER) == [b"here"]
    async with opened() as manager:
        assert paths(manager) == [OTHER]


async def test_deleting_a_queue_whose_messages_name_it_as_their_dead_letter_queue_ends(
    manager: QueueManager, orders: str
) -> None:
    await manager.send(orders, durable(b"one", negative_journaling=True, dead_letter_queue=orders))
    await manager.delete_queue(orders)
    assert await bodies(manager, DEAD_LETTER) == [b"one"]
    assert paths(manager) == []


async def test_journals_and_subqueues_are_not_deleted_alone(manager: QueueManager, orders: str) -> None:
    with opened_for(manager, orders + ";later"):
        for name in (orders + ";journal", orders + ";later"):
            with pytest.raises(UnsupportedOperationError):
                await manager.delete_queue(name)


async def test_an_outgoing_queue_can_be_deleted(manager: QueueManager) -> None:
    await manager.send(ELSEWHERE, durable(negative_journaling=True))
    await manager.delete_queue(ELSEWHERE)
    assert manager.outgoing_queues() == []
    assert counts(manager, DEAD_LETTER) == (1, 1)


# Purging.


@BOTH_DELIVERIES
async def test_purging_drops_everything_and_says_how_much(
    manager: QueueManager, orders: str, make: Make
) -> None:
    sent = [await manager.send(orders, make(b"%d" % number)) for number in range(3)]
    assert await manager.purge_queue(orders) == 3
    assert counts(manager, orders) == (0, 0)
    assert manager.total_bytes == 0
    assert await life(manager, only_id(sent[1])) == [("sent", orders), ("purged", orders)]
    assert await manager.purge_queue(orders) == 0


async def test_purging_drops_more_than_fits_into_one_set_of_changes(
    manager: QueueManager, orders: str
) -> None:
    await manager.send_many(orders, [durable()] * 1201)
    assert await manager.purge_queue(orders) == 1201
    assert manager.total_bytes == 0


async def test_purging_leaves_the_journal_and_the_subqueues(manager: QueueManager) -> None:
    await manager.create_queue(ORDERS, QueueProperties(journaling=True))
    await manager.send_many(ORDERS, [durable(b"journaled"), durable(b"moved"), durable(b"purged")])
    await manager.receive(ORDERS, timeout=0)
    with opened_for(manager, ORDERS) as handle:
        moved = await manager.peek_message(handle)
        await manager.move_message(handle, moved.lookup_id, ORDERS + ";later")
    assert await manager.purge_queue(ORDERS) == 1
    assert await bodies(manager, ORDERS + ";journal") == [b"journaled"]
    assert await bodies(manager, ORDERS + ";later") == [b"moved"]
    assert await manager.purge_queue(ORDERS + ";journal") == 1
    assert await manager.purge_queue(ORDERS + ";later") == 1
    assert manager.queue(ORDERS).subqueues == ()
    assert manager.total_bytes == 0


async def test_what_comes_while_a_queue_is_purged_stays(manager: QueueManager, orders: str) -> None:
    await manager.send_many(orders, [durable(b"old")] * 600)
    purging = await started(manager.purge_queue(orders))
    await manager.send(orders, durable(b"new"))
    assert await purging == 600
    assert await bodies(manager, orders) == [b"new"]


async def test_what_is_being_purged_is_not_received(manager: QueueManager, orders: str) -> None:
    sent = await manager.send(orders, durable(b"one"))
    with stuck_writer(manager):
        purging = await started(manager.purge_queue(orders))
        await committing(manager)
        with pytest.raises(ReceiveTimeoutError):
            await manager.receive(orders, timeout=0)
    assert await purging == 1
    assert await life(manager, only_id(sent)) == [("sent", orders), ("purged", orders)]


async def test_purging_an_applications_dead_letter_queue_empties_it(
    manager: QueueManager, orders: str, other: str
) -> None:
    await manager.send(orders, durable(negative_journaling=True, dead_letter_queue=other))
    await manager.purge_queue(orders)
    assert counts(manager, other) == (1, 1)
    await manager.purge_queue(other)
    assert counts(manager, other) == (0, 0)
    assert counts(manager, DEAD_LETTER) == (0, 0)


async def test_a_cancelled_purge_locks_nothing_away(opened: Opener) -> None:
    async with opened(cache_bytes=0) as manager:
        await manager.create_queue(ORDERS)
        await manager.send_many(ORDERS, [durable(b"one"), durable(b"two")])
        for turns in range(4):
            purging = asyncio.ensure_future(manager.purge_queue(ORDERS))
            await let_run(turns)
            purging.cancel()
            await asyncio.wait([purging])
            await settle(manager)
            messages, available = counts(manager, ORDERS)
            assert messages == available
