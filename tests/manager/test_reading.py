"""Receiving, peeking, browsing: the order, and by identifier."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any
from uuid import uuid4

import pytest
from tests.manager.conftest import (
    BOTH_DELIVERIES,
    ELSEWHERE,
    NUMBERS,
    ORDERS,
    Make,
    Opener,
    bodies,
    check_nothing_lost,
    counts,
    durable,
    express,
    five,
    full_disk,
    history,
    let_run,
    life,
    only_id,
    only_place,
    opened_for,
    started,
    stuck_reader,
)

from lanner.manager import ManualClock, QueueManager
from lanner.model.errors import (
    InvalidPropertyError,
    QueueDeletedError,
    ReceiveTimeoutError,
    StoppedError,
    StoreFullError,
    TransactionSequenceError,
)
from lanner.model.message import Message
from lanner.model.message_id import MessageId
from lanner.model.queue import QueueAccess

# The order.


async def test_a_higher_priority_is_received_first_and_then_the_earlier_arrival(
    manager: QueueManager, orders: str
) -> None:
    for number, priority in enumerate((3, 0, 7, 3, 7, 0)):
        make = durable if number % 2 else express
        await manager.send(orders, make(b"%d" % number, priority=priority))
    expected = [b"2", b"4", b"0", b"3", b"1", b"5"]
    assert await bodies(manager, orders) == expected
    assert [(await manager.receive(orders, timeout=0)).body for _ in range(6)] == expected


async def test_a_restart_keeps_the_order(opened: Opener) -> None:
    async with opened() as manager:
        await manager.create_queue(ORDERS)
        for number, priority in enumerate((3, 0, 7, 3)):
            await manager.send(ORDERS, durable(b"%d" % number, priority=priority))
    async with opened() as manager:
        await manager.send_many(ORDERS, [durable(b"4", priority=7), durable(b"5")])
        assert await bodies(manager, ORDERS) == [b"2", b"4", b"0", b"3", b"5", b"1"]


# Receiving and peeking.


@BOTH_DELIVERIES
async def test_a_message_is_received_once(manager: QueueManager, orders: str, make: Make) -> None:
    outcome = await manager.send(orders, make(b"one"))
    assert (await manager.receive(orders, timeout=0)).body == b"one"
    with pytest.raises(ReceiveTimeoutError):
        await manager.receive(orders, timeout=0)
    assert manager.total_bytes == 0
    assert await life(manager, only_id(outcome)) == [("sent", orders), ("received", orders)]


@BOTH_DELIVERIES
async def test_a_peek_consumes_nothing(manager: QueueManager, orders: str, make: Make) -> None:
    await manager.send(orders, make(b"one"))
    peeked = await manager.peek(orders, timeout=0)
    assert peeked == await manager.peek(orders, timeout=0) == await manager.receive(orders, timeout=0)
    assert [row.event for row in await history(manager)] == ["sent", "received"]


async def test_receivers_at_once_get_different_messages(manager: QueueManager, orders: str) -> None:
    await five(manager, orders)
    received = await asyncio.gather(*(manager.receive(orders, timeout=0) for _ in range(5)))
    assert [message.body for message in received] == NUMBERS


async def test_several_messages_are_received_together(manager: QueueManager, orders: str) -> None:
    await five(manager, orders)
    with opened_for(manager, orders) as handle:
        assert [message.body for message in await manager.dequeue_messages(handle, 3)] == NUMBERS[:3]
        assert [message.body for message in await manager.dequeue_messages(handle, 9)] == NUMBERS[3:]
        with pytest.raises(ReceiveTimeoutError):
            await manager.dequeue_messages(handle, 9, timeout=0)
        waiting = await started(manager.dequeue_messages(handle, 9))
        await manager.send_many(orders, [durable(b"a"), durable(b"b")])
        assert [message.body for message in await waiting] == [b"a"]


@pytest.mark.parametrize("count", [0, -1, 10_001])
async def test_how_many_can_be_read_together(manager: QueueManager, orders: str, count: int) -> None:
    with opened_for(manager, orders) as handle:
        with pytest.raises(InvalidPropertyError, match="between 1 and 10000"):
            await manager.dequeue_messages(handle, count, timeout=0)
        with pytest.raises(InvalidPropertyError, match="between 1 and 10000"):
            await manager.browse_messages(handle, count)


async def test_browsing_goes_on_behind_a_place(manager: QueueManager, orders: str) -> None:
    places = await five(manager, orders)
    with opened_for(manager, orders, QueueAccess.PEEK) as handle:
        first = await manager.browse_messages(handle, 2)
        rest = await manager.browse_messages(handle, 9, after=first[-1].lookup_id)
        assert tuple(message.lookup_id for message in first + rest) == places
        assert await manager.browse_messages(handle, 9, after=places[-1]) == []


async def test_browsing_from_the_disk_can_leave_bodies_out(opened: Opener) -> None:
    async with opened(cache_bytes=0) as manager:
        await manager.create_queue(ORDERS)
        await manager.send(ORDERS, durable(b"body", label="label", extension=b"more"))
        with opened_for(manager, ORDERS, QueueAccess.PEEK) as handle:
            (bare,) = await manager.browse_messages(handle, 9, bodies=False)
            (whole,) = await manager.browse_messages(handle, 9)
    assert (bare.body, bare.extension, bare.label) == (b"", b"", "label")
    assert (whole.body, whole.extension) == (b"body", b"more")


async def test_a_received_message_is_recorded(manager: QueueManager, clock: ManualClock, orders: str) -> None:
    message = durable(b"12345", label="one", priority=5, message_class=0x123)
    outcome = await manager.send(orders, message)
    clock.advance(7)
    await manager.receive(orders, timeout=0)
    row = (await history(manager))[-1]
    assert (row.event, row.queue, row.time) == ("received", orders, clock.time())
    assert (row.message_id, row.lookup_id) == (str(only_id(outcome)), only_place(outcome))
    assert (row.label, row.size, row.priority, row.message_class) == ("one", message.size, 5, 0x123)
    assert (row.reason, row.transaction_id, row.peer) == (None, None, None)


async def test_an_outgoing_queue_is_read_by_an_administrator(manager: QueueManager) -> None:
    await manager.send(ELSEWHERE, durable(b"one"))
    with opened_for(manager, ELSEWHERE, QueueAccess.RECEIVE_ADMIN) as handle:
        assert (await manager.peek_message(handle)).body == b"one"
        assert (await manager.dequeue_message(handle, timeout=0)).body == b"one"
    assert counts(manager, ELSEWHERE) == (0, 0)


# By identifier.


async def test_a_message_is_received_by_its_identifier(manager: QueueManager, orders: str) -> None:
    outcome = await manager.send_many(orders, [durable(body) for body in NUMBERS])
    with opened_for(manager, orders) as handle:
        wanted = outcome.message_ids[3]
        assert (await manager.dequeue_message(handle, timeout=0, message_id=wanted)).body == b"3"
        for missing in (wanted, MessageId.of(uuid4(), 1)):
            with pytest.raises(ReceiveTimeoutError):
                await manager.dequeue_message(handle, timeout=0, message_id=missing)
    assert await bodies(manager, orders) == [b"0", b"1", b"2", b"4"]


async def test_the_first_message_of_a_correlation_is_received(manager: QueueManager, orders: str) -> None:
    mine, other = MessageId.of(uuid4(), 1), MessageId.of(uuid4(), 2)
    await manager.send(orders, durable(b"other", correlation_id=other, priority=7))
    await manager.send(orders, durable(b"late", correlation_id=mine, priority=0))
    last = await manager.send(orders, express(b"first", correlation_id=mine))
    await manager.send(orders, durable(b"none"))
    with opened_for(manager, orders) as handle:
        first = await manager.dequeue_message(handle, timeout=0, correlation_id=mine)
        assert first.body == b"first"
        with pytest.raises(ReceiveTimeoutError):
            await manager.dequeue_message(handle, timeout=0, correlation_id=mine, message_id=only_id(last))
        assert (await manager.dequeue_message(handle, timeout=0, correlation_id=mine)).body == b"late"
        with pytest.raises(ReceiveTimeoutError):
            await manager.dequeue_message(handle, timeout=0, correlation_id=mine)
    assert await bodies(manager, orders) == [b"other", b"none"]


async def test_a_reader_waits_for_the_message_it_wants_and_lets_others_pass(
    manager: QueueManager, orders: str
) -> None:
    correlation = MessageId.of(uuid4(), 1)
    with opened_for(manager, orders) as handle:
        picky = await started(manager.dequeue_message(handle, correlation_id=correlation))
        await manager.send(orders, durable(b"other"))
        await let_run()
        assert not picky.done()
        await manager.send(orders, durable(b"wanted", correlation_id=correlation))
        assert (await picky).body == b"wanted"
    assert await bodies(manager, orders) == [b"other"]


async def test_a_message_that_is_being_received_is_not_found_by_its_identifier(
    manager: QueueManager, orders: str
) -> None:
    outcome = await manager.send(orders, durable(b"one"))
    with opened_for(manager, orders) as handle:
        message = await manager.dequeue_message_begin(handle)
        with pytest.raises(ReceiveTimeoutError):
            await manager.dequeue_message(handle, timeout=0, message_id=only_id(outcome))
        await manager.dequeue_message_end(handle, message, delete=False)
        received = await manager.dequeue_message(handle, timeout=0, message_id=only_id(outcome))
        assert received.body == b"one"


# Other ends of a receive.


async def test_a_receive_that_loads_while_its_queue_is_deleted_fails(opened: Opener) -> None:
    async with opened(cache_bytes=0) as manager:
        await manager.create_queue(ORDERS)
        await manager.send(ORDERS, durable(b"one"))
        with opened_for(manager, ORDERS) as handle:
            with stuck_reader(manager):
                receiving = await started(manager.dequeue_message(handle))
                deleting = await started(manager.delete_queue(ORDERS))
            with pytest.raises(QueueDeletedError):
                await receiving
            await deleting
        assert manager.total_bytes == 0


async def test_a_receive_that_loads_while_its_transaction_ends_gives_the_message_back(opened: Opener) -> None:
    async with opened(cache_bytes=0) as manager:
        await manager.create_queue(ORDERS)
        await manager.send(ORDERS, durable(b"one"))
        transaction = manager.create_transaction()
        with stuck_reader(manager):
            receiving = await started(manager.receive(ORDERS, transaction=transaction))
            await manager.transaction_commit(transaction)
        with pytest.raises(TransactionSequenceError):
            await receiving
        await check_nothing_lost(manager, ORDERS, [b"one"])


async def test_a_receive_that_loads_while_the_manager_stops_gets_the_message_or_leaves_it(
    opened: Opener,
) -> None:
    async with opened(cache_bytes=0) as manager:
        await manager.create_queue(ORDERS)
        await manager.send(ORDERS, durable(b"one"))
        with stuck_reader(manager):
            receiving = await started(manager.receive(ORDERS))
            closing = await started(manager.close())
        (result,) = await asyncio.wait_for(asyncio.gather(receiving, return_exceptions=True), 5)
        await closing
    async with opened() as manager:
        left = await bodies(manager, ORDERS)
    if isinstance(result, StoppedError):
        assert left == [b"one"]
    else:
        assert isinstance(result, Message)
        assert left == []


async def test_on_a_full_disk_a_received_message_stays(manager: QueueManager, orders: str) -> None:
    await manager.send_many(orders, [durable(b"one"), durable(b"two")])
    with opened_for(manager, orders) as handle:
        message = await manager.dequeue_message_begin(handle)
        async with full_disk(manager):
            reads: list[Coroutine[Any, Any, object]] = [
                manager.dequeue_message_end(handle, message, delete=True),
                manager.receive(orders, timeout=0),
                manager.dequeue_messages(handle, 5, timeout=0),
            ]
            for read in reads:
                with pytest.raises(StoreFullError):
                    await read
                assert await bodies(manager, orders) == [b"one", b"two"]
            with pytest.raises(StoreFullError):
                await manager.move_message(handle, message.lookup_id, orders + ";later")
            assert manager.queue(orders).subqueues == ()
            assert (await manager.peek_message(handle)).body == b"one"
        assert (await manager.dequeue_message(handle, timeout=0)).body == b"one"
    await check_nothing_lost(manager, orders, [b"two"])
