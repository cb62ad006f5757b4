"""A receive in two phases: begun, and then ended or taken back."""

from __future__ import annotations

import pytest
from tests.manager.conftest import (
    BOTH_DELIVERIES,
    DEAD_LETTER,
    ORDERS,
    Make,
    Opener,
    bodies,
    classes,
    counts,
    durable,
    life,
    only_id,
    opened_for,
    settle,
    started,
)

from lanner.manager import QueueManager
from lanner.model.codes import MessageClass
from lanner.model.errors import (
    QueueDeletedError,
    TransactionSequenceError,
)
from lanner.model.message import Message


@BOTH_DELIVERIES
async def test_a_message_is_locked_until_its_receive_is_ended(
    manager: QueueManager, orders: str, make: Make
) -> None:
    await manager.send_many(orders, [make(b"one"), make(b"two")])
    with opened_for(manager, orders) as handle:
        message = await manager.dequeue_message_begin(handle, timeout=0)
        assert message.body == b"one"
        assert counts(manager, orders) == (2, 1)
        assert (await manager.peek_message(handle)).body == b"two"
        await manager.dequeue_message_end(handle, message, delete=False)
        assert await bodies(manager, orders) == [b"one", b"two"]
        message = await manager.dequeue_message_begin(handle, timeout=0)
        await manager.dequeue_message_end(handle, message, delete=True)
    assert await bodies(manager, orders) == [b"two"]


@pytest.mark.parametrize("delete", [False, True])
async def test_only_a_receive_that_was_begun_can_be_ended(
    manager: QueueManager, orders: str, delete: bool
) -> None:
    await manager.send(orders, durable(b"one"))
    with opened_for(manager, orders) as handle:
        for message in (await manager.peek_message(handle), Message(lookup_id=99)):
            with pytest.raises(TransactionSequenceError):
                await manager.dequeue_message_end(handle, message, delete=delete)
        message = await manager.dequeue_message_begin(handle)
        await manager.dequeue_message_end(handle, message, delete=delete)
        with pytest.raises(TransactionSequenceError):
            await manager.dequeue_message_end(handle, message, delete=delete)
    assert counts(manager, orders) == ((0, 0) if delete else (1, 1))


async def test_a_message_that_comes_back_is_given_to_who_waits(manager: QueueManager, orders: str) -> None:
    await manager.send(orders, durable(b"one"))
    with opened_for(manager, orders) as handle:
        message = await manager.dequeue_message_begin(handle)
        waiting = await started(manager.receive(orders))
        await manager.dequeue_message_end(handle, message, delete=False)
        assert (await waiting).body == b"one"


@pytest.mark.parametrize("delete", [False, True])
async def test_a_message_that_was_purged_meanwhile_goes_as_purged(
    manager: QueueManager, orders: str, delete: bool
) -> None:
    outcome = await manager.send(orders, durable(b"one", negative_journaling=True))
    with opened_for(manager, orders) as handle:
        message = await manager.dequeue_message_begin(handle)
        assert await manager.purge_queue(orders) == 0
        assert counts(manager, orders) == (1, 0)
        await manager.dequeue_message_end(handle, message, delete=delete)
        await settle(manager)
    assert counts(manager, orders) == (0, 0)
    assert await classes(manager, DEAD_LETTER) == [MessageClass.NACK_QUEUE_PURGED]
    assert [event for event, _ in await life(manager, only_id(outcome))] == [
        "sent",
        "purged",
        "dead-lettered",
    ]


async def test_a_message_in_two_phases_goes_with_its_queue(manager: QueueManager, orders: str) -> None:
    await manager.send(orders, durable(b"one"))
    with opened_for(manager, orders) as handle:
        message = await manager.dequeue_message_begin(handle)
        await manager.delete_queue(orders)
        with pytest.raises(QueueDeletedError):
            await manager.dequeue_message_end(handle, message, delete=False)
    assert manager.total_bytes == 0


async def test_a_restart_ends_what_was_begun(opened: Opener) -> None:
    async with opened() as manager:
        await manager.create_queue(ORDERS)
        await manager.send(ORDERS, durable(b"one"))
        with opened_for(manager, ORDERS) as handle:
            await manager.dequeue_message_begin(handle)
    async with opened() as manager:
        assert await bodies(manager, ORDERS) == [b"one"]
