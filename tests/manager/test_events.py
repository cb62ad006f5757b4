from __future__ import annotations

import logging

import pytest
from tests.manager.conftest import (
    BOTH_DELIVERIES,
    DEAD_LETTER,
    ELSEWHERE,
    ORDERS,
    Make,
    durable,
    full_disk,
    only_place,
    recorded,
    started,
    turn,
)

from lanner.manager import ManualClock, QueueManager
from lanner.manager.events import (
    ConnectionChanged,
    Event,
    Events,
    FlowControlChanged,
    MessageAvailable,
    MessageDeleted,
    OutgoingQueuePaused,
    OutgoingQueueResumed,
    QueueChanged,
    QueueCreated,
    QueueDeleted,
    Stopping,
)
from lanner.model.codes import MessageClass
from lanner.model.errors import StoreFullError
from lanner.model.queue import QueueProperties

# Subscribing.


def test_subscribers_are_called_in_the_order_of_subscription_with_their_kind_alone() -> None:
    events = Events()
    seen: list[tuple[str, Event]] = []
    events.subscribe(Stopping, lambda event: seen.append(("first", event)))
    events.subscribe(Stopping, lambda event: seen.append(("second", event)))
    events.subscribe(ConnectionChanged, lambda event: seen.append(("other", event)))
    event = Stopping()
    events.publish(event)
    assert seen == [("first", event), ("second", event)]


def test_an_ended_subscription_hears_nothing_more() -> None:
    events = Events()
    seen: list[Event] = []
    end = events.subscribe(Stopping, seen.append)
    assert events.wanted(Stopping)
    end()
    events.publish(Stopping())
    assert seen == []
    assert not events.wanted(Stopping)


def test_a_subscriber_may_end_its_subscription_while_it_is_called() -> None:
    events = Events()
    seen: list[str] = []

    def once(event: Stopping) -> None:
        seen.append("once")
        end()

    end = events.subscribe(Stopping, once)
    events.subscribe(Stopping, lambda event: seen.append("always"))
    events.publish(Stopping())
    events.publish(Stopping())
    assert seen == ["once", "always", "always"]


def test_a_subscriber_that_fails_is_logged_and_stops_nobody(caplog: pytest.LogCaptureFixture) -> None:
    events = Events()
    seen: list[Event] = []

    def fail(event: Stopping) -> None:
        raise RuntimeError("no")

    events.subscribe(Stopping, fail)
    events.subscribe(Stopping, seen.append)
    with caplog.at_level(logging.ERROR):
        events.publish(Stopping())
    assert len(seen) == 1
    assert "a subscriber of Stopping failed" in caplog.text


async def test_a_subscriber_that_fails_does_not_keep_a_message_from_its_receiver(
    manager: QueueManager, orders: str
) -> None:
    def fail(event: Event) -> None:
        raise RuntimeError("no")

    for kind in (MessageAvailable, MessageDeleted, QueueCreated):
        manager.events.subscribe(kind, fail)
    await manager.create_queue(r".\private$\another")
    await manager.send(orders, durable(b"one"))
    assert (await manager.receive(orders, timeout=0)).body == b"one"


# What is told about queues.


async def test_a_queue_is_created_changed_and_deleted(manager: QueueManager) -> None:
    seen = [recorded(manager, kind) for kind in (QueueCreated, QueueChanged, QueueDeleted)]
    await manager.create_queue(ORDERS)
    await manager.change_queue(ORDERS, QueueProperties(label="new"))
    await manager.delete_queue(ORDERS)
    assert [[event.queue.name for event in events] for events in seen] == [[ORDERS]] * 3


async def test_an_outgoing_queue_is_created_paused_and_resumed(manager: QueueManager) -> None:
    seen = [recorded(manager, kind) for kind in (QueueCreated, OutgoingQueuePaused, OutgoingQueueResumed)]
    await manager.send(ELSEWHERE, durable())
    await manager.send(ELSEWHERE, durable())
    await manager.pause_queue(ELSEWHERE)
    await manager.resume_queue(ELSEWHERE)
    assert [[event.queue.name for event in events] for events in seen] == [[ELSEWHERE]] * 3


async def test_what_was_not_stored_is_not_told(manager: QueueManager, orders: str) -> None:
    kinds = (QueueCreated, QueueChanged, MessageAvailable)
    seen = [recorded(manager, kind) for kind in kinds]
    async with full_disk(manager):
        with pytest.raises(StoreFullError):
            await manager.create_queue(r".\private$\another")
        with pytest.raises(StoreFullError):
            await manager.change_queue(orders, QueueProperties(label="x" * 100))
        with pytest.raises(StoreFullError):
            await manager.send(orders, durable(b"one"))
    assert seen == [[], [], []]


# What is told about messages.


@BOTH_DELIVERIES
async def test_a_message_comes_and_goes(manager: QueueManager, orders: str, make: Make) -> None:
    available, deleted = recorded(manager, MessageAvailable), recorded(manager, MessageDeleted)
    outcome = await manager.send(orders, make(b"one"))
    assert [(event.queue.name, event.position.lookup_id) for event in available] == [
        (orders, only_place(outcome))
    ]
    assert deleted == []
    await manager.receive(orders, timeout=0)
    assert [(event.queue.name, event.reason) for event in deleted] == [(orders, MessageClass.ACK_RECEIVE)]


async def test_a_message_is_told_to_be_there_when_its_transaction_is_committed(
    manager: QueueManager, ledger: str
) -> None:
    available = recorded(manager, MessageAvailable)
    transaction = manager.create_transaction()
    await manager.send(ledger, durable(), transaction=transaction)
    assert available == []
    await manager.transaction_commit(transaction)
    assert len(available) == 1
    transaction = manager.create_transaction()
    await manager.receive(ledger, timeout=0, transaction=transaction)
    await manager.transaction_abort(transaction)
    assert len(available) == 2


async def test_a_message_that_a_waiting_receiver_takes_is_not_offered_to_others(
    manager: QueueManager, orders: str
) -> None:
    available = recorded(manager, MessageAvailable)
    receiver = await started(manager.receive(orders))
    await manager.send(orders, durable(b"one"))
    assert (await receiver).body == b"one"
    assert available == []


async def test_why_a_message_went(manager: QueueManager, clock: ManualClock, orders: str) -> None:
    deleted, available = recorded(manager, MessageDeleted), recorded(manager, MessageAvailable)
    await manager.send(orders, durable(time_to_be_received=1, negative_journaling=True))
    await turn(manager, clock, 1)
    await manager.send(orders, durable())
    await manager.purge_queue(orders)
    await manager.send(orders, durable())
    await manager.delete_queue(orders)
    assert [event.reason for event in deleted] == [
        MessageClass.NACK_RECEIVE_TIMEOUT,
        MessageClass.NACK_QUEUE_PURGED,
        MessageClass.NACK_QUEUE_DELETED,
    ]
    assert [event.queue.name for event in available] == [orders, DEAD_LETTER, orders, orders]


# What is told about the manager.


async def test_the_connection_and_flow_control(manager: QueueManager) -> None:
    seen = recorded(manager, ConnectionChanged)
    throttled = recorded(manager, FlowControlChanged)
    states = [manager.is_online]
    for change in (manager.take_offline, manager.bring_online):
        change()
        states.append(manager.is_online)
    assert states == [True, False, True]
    manager.begin_flow_control()
    manager.end_flow_control()
    assert [event.online for event in seen] == [False, True]
    assert [event.throttled for event in throttled] == [True, False]


async def test_stopping_is_told_once_while_everything_still_works(manager: QueueManager, orders: str) -> None:
    lengths: list[int] = []
    manager.events.subscribe(Stopping, lambda event: lengths.append(len(manager.queues())))
    await manager.close()
    await manager.close()
    assert lengths == [5]
