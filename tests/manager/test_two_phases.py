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
    check_nothing_lost,
    classes,
    contents,
    counts,
    durable,
    full_disk,
    life,
    only_id,
    only_place,
    opened_for,
    settle,
    started,
    stuck_reader,
)

from lanner.manager import QueueManager
from lanner.model.codes import MessageClass
from lanner.model.errors import (
    OperationCancelledError,
    QueueDeletedError,
    StoreFullError,
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


# The handle that began it.


@BOTH_DELIVERIES
async def test_closing_the_handle_gives_the_messages_their_places_back(
    manager: QueueManager, orders: str, make: Make
) -> None:
    sent = await manager.send_many(orders, [make(b"one"), make(b"two"), make(b"three")])
    with opened_for(manager, orders) as handle:
        for body in (b"one", b"two"):
            assert (await manager.dequeue_message_begin(handle)).body == body
        assert counts(manager, orders) == (3, 1)
    await check_nothing_lost(manager, orders, [b"one", b"two", b"three"])
    assert [message.lookup_id for message in await contents(manager, orders)] == list(sent.lookup_ids)
    assert [message.abort_count for message in await contents(manager, orders)] == [0, 0, 0]


async def test_closing_the_handle_leaves_alone_what_others_hold(manager: QueueManager, orders: str) -> None:
    await manager.send_many(orders, [durable(b"one"), durable(b"two"), durable(b"three")])
    with opened_for(manager, orders) as handle:
        with opened_for(manager, orders) as other:
            message = await manager.dequeue_message_begin(handle)
            await manager.dequeue_message_begin(other)
        assert await bodies(manager, orders) == [b"two", b"three"]
        await manager.dequeue_message_end(handle, message, delete=True)
        transaction = manager.create_transaction()
        await manager.dequeue_message(handle, transaction=transaction)
    assert await bodies(manager, orders) == [b"three"]
    await manager.transaction_commit(transaction)
    await check_nothing_lost(manager, orders, [b"three"])


async def test_closing_the_handle_gives_what_it_held_to_who_waits(manager: QueueManager, orders: str) -> None:
    await manager.send(orders, durable(b"one"))
    with opened_for(manager, orders) as handle:
        await manager.dequeue_message_begin(handle)
        waiting = await started(manager.receive(orders))
    assert (await waiting).body == b"one"


@pytest.mark.parametrize("delete", [False, True])
async def test_only_the_handle_that_began_a_receive_ends_it(
    manager: QueueManager, orders: str, delete: bool
) -> None:
    await manager.send(orders, durable(b"one"))
    with opened_for(manager, orders) as handle, opened_for(manager, orders) as other:
        message = await manager.dequeue_message_begin(handle)
        with pytest.raises(TransactionSequenceError, match="through this handle"):
            await manager.dequeue_message_end(other, message, delete=delete)
        assert counts(manager, orders) == (1, 0)
        await manager.dequeue_message_end(handle, message, delete=delete)
    assert counts(manager, orders) == ((0, 0) if delete else (1, 1))


@pytest.mark.parametrize("delete", [False, True])
async def test_what_a_transaction_holds_is_not_ended_in_two_phases(
    manager: QueueManager, orders: str, delete: bool
) -> None:
    await manager.send(orders, durable(b"one"))
    transaction = manager.create_transaction()
    with opened_for(manager, orders) as handle:
        message = await manager.dequeue_message(handle, transaction=transaction)
        with pytest.raises(TransactionSequenceError):
            await manager.dequeue_message_end(handle, message, delete=delete)
    assert counts(manager, orders) == (1, 0)
    await manager.transaction_abort(transaction)
    await check_nothing_lost(manager, orders, [b"one"])


async def test_a_handle_that_is_closed_while_its_receive_is_begun(opened: Opener) -> None:
    async with opened(cache_bytes=0) as manager:
        await manager.create_queue(ORDERS)
        await manager.send(ORDERS, durable(b"one"))
        with stuck_reader(manager), opened_for(manager, ORDERS) as handle:
            beginning = await started(manager.dequeue_message_begin(handle))
        with pytest.raises(OperationCancelledError, match="was closed"):
            await beginning
        await check_nothing_lost(manager, ORDERS, [b"one"])


async def test_closing_the_last_handle_on_a_subqueue_leaves_what_comes_back(
    manager: QueueManager, orders: str
) -> None:
    place = only_place(await manager.send(orders, durable(b"one")))
    with opened_for(manager, orders) as handle:
        await manager.move_message(handle, place, orders + ";later")
    with opened_for(manager, orders + ";later") as handle:
        await manager.dequeue_message_begin(handle)
    await check_nothing_lost(manager, orders + ";later", [b"one"])


async def test_a_receive_whose_end_is_not_stored_is_ended(manager: QueueManager, orders: str) -> None:
    await manager.send(orders, durable(b"one"))
    with opened_for(manager, orders) as handle:
        message = await manager.dequeue_message_begin(handle)
        async with full_disk(manager):
            with pytest.raises(StoreFullError):
                await manager.dequeue_message_end(handle, message, delete=True)
        again = await manager.dequeue_message_begin(handle)
        await manager.dequeue_message_end(handle, again, delete=True)
    await check_nothing_lost(manager, orders, [])


async def test_a_queue_that_is_not_deleted_after_all_has_ended_its_receives(
    manager: QueueManager, orders: str
) -> None:
    await manager.send(orders, durable(b"one"))
    with opened_for(manager, orders) as handle:
        message = await manager.dequeue_message_begin(handle)
        async with full_disk(manager):
            with pytest.raises(StoreFullError):
                await manager.delete_queue(orders)
        transaction = manager.create_transaction()
        await manager.receive(orders, timeout=0, transaction=transaction)
        with pytest.raises(TransactionSequenceError):
            await manager.dequeue_message_end(handle, message, delete=False)
    assert counts(manager, orders) == (1, 0)
    await manager.transaction_abort(transaction)
    await check_nothing_lost(manager, orders, [b"one"])


async def test_a_dead_letter_of_a_deleted_queue_does_not_belong_to_the_old_handle(
    manager: QueueManager, orders: str
) -> None:
    await manager.send(orders, durable(b"one", negative_journaling=True))
    with opened_for(manager, orders) as handle:
        await manager.dequeue_message_begin(handle)
        await manager.delete_queue(orders)
        transaction = manager.create_transaction()
        await manager.receive(DEAD_LETTER, timeout=0, transaction=transaction)
    assert counts(manager, DEAD_LETTER) == (1, 0)
    await manager.transaction_commit(transaction)
