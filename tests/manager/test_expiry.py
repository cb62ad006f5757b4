from __future__ import annotations

import pytest
from tests.manager.conftest import (
    BOTH_DELIVERIES,
    DEAD_LETTER,
    ELSEWHERE,
    ORDERS,
    Make,
    Opener,
    bodies,
    classes,
    counts,
    durable,
    express,
    full_disk,
    life,
    only_id,
    only_place,
    opened_for,
    settle,
    turn,
)

from lanner.manager import ManualClock, QueueManager, expiry
from lanner.manager.delivery import DROP_CHUNK
from lanner.model.codes import MessageClass
from lanner.model.errors import ReceiveTimeoutError
from lanner.model.message import INFINITE
from lanner.model.queue import QueueProperties

HOUR = 3600.0


# In the queue it was sent to.


@BOTH_DELIVERIES
async def test_a_message_expires_when_its_time_to_be_received_is_over_and_not_before(
    manager: QueueManager, clock: ManualClock, orders: str, make: Make
) -> None:
    sent = await manager.send(orders, make(time_to_be_received=10))
    await turn(manager, clock, 9.99)
    assert counts(manager, orders) == (1, 1)
    await turn(manager, clock, 0.01)
    assert (counts(manager, orders), manager.total_bytes) == ((0, 0), 0)
    assert await life(manager, only_id(sent)) == [("sent", orders), ("expired", orders)]
    with pytest.raises(ReceiveTimeoutError):
        await manager.receive(orders, timeout=0)


async def test_a_message_without_a_time_stays(manager: QueueManager, clock: ManualClock, orders: str) -> None:
    await manager.send(orders, durable(time_to_be_received=INFINITE))
    await turn(manager, clock, 1e9)
    assert counts(manager, orders) == (1, 1)


async def test_a_message_that_has_arrived_has_reached_its_queue(
    manager: QueueManager, clock: ManualClock, orders: str
) -> None:
    await manager.send(orders, durable(time_to_reach_queue=1))
    await turn(manager, clock, 100)
    assert counts(manager, orders) == (1, 1)


async def test_a_message_without_any_time_at_all_expires_at_once(
    manager: QueueManager, clock: ManualClock, orders: str
) -> None:
    await manager.send(orders, durable(time_to_be_received=0, negative_journaling=True))
    await turn(manager, clock, 0)
    assert counts(manager, orders) == (0, 0)
    assert await classes(manager, DEAD_LETTER) == [MessageClass.NACK_RECEIVE_TIMEOUT]


async def test_each_message_expires_at_its_own_time(
    manager: QueueManager, clock: ManualClock, orders: str
) -> None:
    for seconds in (30, 10, 20, 10):
        await manager.send(orders, express(b"%d" % seconds, time_to_be_received=seconds))
    left = []
    for _ in range(3):
        await turn(manager, clock, 10)
        left.append(await bodies(manager, orders))
    assert left == [[b"30", b"20"], [b"30"], []]


async def test_a_message_that_was_received_does_not_expire_later(
    manager: QueueManager, clock: ManualClock, orders: str
) -> None:
    sent = await manager.send(orders, durable(time_to_be_received=10, negative_journaling=True))
    await manager.receive(orders, timeout=0)
    await turn(manager, clock, 20)
    assert [event for event, _ in await life(manager, only_id(sent))] == ["sent", "received"]


async def test_a_moved_message_keeps_its_time(
    manager: QueueManager, clock: ManualClock, orders: str, other: str
) -> None:
    sent = await manager.send(orders, durable(time_to_be_received=10))
    with opened_for(manager, orders) as handle:
        await manager.move_message(handle, only_place(sent), other)
    await turn(manager, clock, 9)
    assert counts(manager, other) == (1, 1)
    await turn(manager, clock, 1)
    assert await life(manager, only_id(sent)) == [
        ("sent", orders),
        ("moved", other),
        ("expired", other),
    ]


async def test_a_message_whose_time_runs_out_while_it_is_moved_expires_where_it_arrives(
    manager: QueueManager, clock: ManualClock
) -> None:
    await manager.create_queue(ORDERS, QueueProperties(transactional=True))
    async with manager.transaction() as transaction:
        await manager.send(ORDERS, durable(time_to_be_received=10), transaction=transaction)
    transaction = manager.create_transaction()
    with opened_for(manager, ORDERS) as handle:
        message = await manager.peek_message(handle)
        await manager.move_message(handle, message.lookup_id, ORDERS + ";later", transaction=transaction)
    await turn(manager, clock, 20)
    await manager.transaction_commit(transaction)
    assert counts(manager, ORDERS + ";later") == (1, 1)
    await turn(manager, clock, 1)
    assert manager.queue(ORDERS).subqueues == ()


async def test_a_message_whose_time_ran_out_while_it_was_locked_goes_soon_after_it_comes_back(
    manager: QueueManager, clock: ManualClock, orders: str
) -> None:
    await manager.send(orders, durable(time_to_be_received=10))
    with opened_for(manager, orders) as handle:
        message = await manager.dequeue_message_begin(handle)
        await turn(manager, clock, 20)
        assert counts(manager, orders) == (1, 0)
        await manager.dequeue_message_end(handle, message, delete=False)
    await turn(manager, clock, expiry.RETRY_DELAY)
    assert counts(manager, orders) == (0, 0)


async def test_a_message_that_comes_back_in_time_expires_in_time(
    manager: QueueManager, clock: ManualClock, orders: str
) -> None:
    await manager.send(orders, durable(time_to_be_received=10))
    with opened_for(manager, orders) as handle:
        message = await manager.dequeue_message_begin(handle)
        await turn(manager, clock, 9)
        await manager.dequeue_message_end(handle, message, delete=False)
    assert counts(manager, orders) == (1, 1)
    await turn(manager, clock, 1)
    assert counts(manager, orders) == (0, 0)


# On the way.


@pytest.mark.parametrize(
    ("to_reach", "to_receive", "time"), [(10, INFINITE, 10), (INFINITE, 10, 10), (20, 10, 10)]
)
async def test_on_its_way_a_message_expires_when_either_time_is_over(
    manager: QueueManager, clock: ManualClock, to_reach: int, to_receive: int, time: float
) -> None:
    await manager.send(
        ELSEWHERE,
        durable(time_to_reach_queue=to_reach, time_to_be_received=to_receive, negative_journaling=True),
    )
    await turn(manager, clock, time - 0.01)
    assert counts(manager, ELSEWHERE) == (1, 1)
    await turn(manager, clock, 0.01)
    assert counts(manager, ELSEWHERE) == (0, 0)
    assert await classes(manager, DEAD_LETTER) == [MessageClass.NACK_REACH_QUEUE_TIMEOUT]


async def test_on_its_way_a_message_has_four_days_unless_it_says_otherwise(
    manager: QueueManager, clock: ManualClock
) -> None:
    await manager.send(ELSEWHERE, durable())
    await turn(manager, clock, 4 * 24 * HOUR - 1)
    assert counts(manager, ELSEWHERE) == (1, 1)
    await turn(manager, clock, 1)
    assert counts(manager, ELSEWHERE) == (0, 0)


async def test_on_its_way_a_message_may_take_for_ever(manager: QueueManager, clock: ManualClock) -> None:
    await manager.send(ELSEWHERE, durable(time_to_reach_queue=INFINITE))
    await turn(manager, clock, 1e9)
    assert counts(manager, ELSEWHERE) == (1, 1)


async def test_a_paused_queue_does_not_stop_the_time(manager: QueueManager, clock: ManualClock) -> None:
    await manager.send(ELSEWHERE, durable(time_to_reach_queue=10))
    await manager.pause_queue(ELSEWHERE)
    await turn(manager, clock, 10)
    assert counts(manager, ELSEWHERE) == (0, 0)


# A clock that jumps.


@pytest.mark.parametrize("jump", [24 * HOUR, -24 * HOUR])
async def test_setting_the_clock_expires_nothing_early_and_nothing_late(
    manager: QueueManager, clock: ManualClock, orders: str, jump: float
) -> None:
    await manager.send(orders, durable(b"before", time_to_be_received=100))
    clock.jump(jump)
    await manager.send(orders, durable(b"after", time_to_be_received=100))
    await turn(manager, clock, 99)
    assert await bodies(manager, orders) == [b"before", b"after"]
    await turn(manager, clock, 1)
    assert await bodies(manager, orders) == []


async def test_setting_the_clock_back_loses_no_order(
    manager: QueueManager, clock: ManualClock, orders: str
) -> None:
    await manager.send(orders, durable(b"first"))
    clock.jump(-24 * HOUR)
    await manager.send(orders, durable(b"second"))
    assert [(await manager.receive(orders, timeout=0)).body for _ in range(2)] == [b"first", b"second"]


# Over a restart.


async def test_what_expired_while_the_manager_was_stopped_goes_when_it_starts(
    opened: Opener, clock: ManualClock
) -> None:
    async with opened() as manager:
        await manager.create_queue(ORDERS)
        await manager.send(ORDERS, durable(b"short", time_to_be_received=10, negative_journaling=True))
        await manager.send(ORDERS, durable(b"long", time_to_be_received=100))
    clock.advance(20)
    async with opened() as manager:
        await turn(manager, clock, 0)
        assert await bodies(manager, ORDERS) == [b"long"]
        assert await classes(manager, DEAD_LETTER) == [MessageClass.NACK_RECEIVE_TIMEOUT]
        await turn(manager, clock, 80)
        assert await bodies(manager, ORDERS) == []


async def test_a_stopped_manager_expires_nothing(opened: Opener, clock: ManualClock) -> None:
    async with opened() as manager:
        await manager.create_queue(ORDERS)
        await manager.send(ORDERS, durable(b"one", time_to_be_received=10))
        await manager.close()
        clock.advance(20)


async def test_what_has_begun_to_expire_when_the_manager_stops_is_brought_to_its_end(
    opened: Opener, clock: ManualClock
) -> None:
    async with opened() as manager:
        await manager.create_queue(ORDERS)
        await manager.send(ORDERS, durable(time_to_be_received=10, negative_journaling=True))
        clock.advance(10)
    async with opened() as manager:
        assert (counts(manager, ORDERS), counts(manager, DEAD_LETTER)) == ((0, 0), (1, 1))


# Many of them.


async def test_many_expire_together(manager: QueueManager, clock: ManualClock, orders: str) -> None:
    count = DROP_CHUNK + 1
    await manager.send_many(orders, [durable(time_to_be_received=10)] * count)
    assert counts(manager, orders) == (count, count)
    await turn(manager, clock, 10)
    assert (counts(manager, orders), manager.total_bytes) == ((0, 0), 0)


async def test_the_remains_of_received_messages_are_tidied_up(
    manager: QueueManager, clock: ManualClock, orders: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expiry, "MIN_REMAINS", 10)
    watch = manager._delivery.expiry
    await manager.send_many(orders, [express(b"%d" % number, time_to_be_received=10) for number in range(30)])
    with opened_for(manager, orders) as handle:
        await manager.dequeue_messages(handle, 25)
    assert len(watch._deadlines) < 20
    await turn(manager, clock, 9)
    assert counts(manager, orders) == (5, 5)
    await turn(manager, clock, 1)
    assert counts(manager, orders) == (0, 0)


# A full disk.


async def test_on_a_full_disk_messages_stay_until_there_is_room_again(
    manager: QueueManager, clock: ManualClock, orders: str
) -> None:
    count = DROP_CHUNK + 1
    await manager.send_many(orders, [durable(time_to_be_received=10)] * count)
    async with full_disk(manager):
        await turn(manager, clock, 10)
        assert counts(manager, orders) == (count, count)
    await turn(manager, clock, expiry.RETRY_DELAY)
    assert counts(manager, orders) == (0, 0)
    await settle(manager)
    assert manager.total_bytes == 0
