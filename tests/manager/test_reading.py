from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar
from uuid import uuid4

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
    classes,
    committing,
    contents,
    counts,
    durable,
    express,
    full_disk,
    history,
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
from lanner.model.codes import MessageClass
from lanner.model.errors import (
    InvalidPropertyError,
    LannerError,
    MessageLockedError,
    MessageNotFoundError,
    QueueDeletedError,
    QueueNotFoundError,
    QuotaExceededError,
    ReceiveTimeoutError,
    StoppedError,
    StoreFullError,
    TransactionSequenceError,
    TransactionUsageError,
    UnsupportedOperationError,
)
from lanner.model.message import Message
from lanner.model.message_id import MessageId
from lanner.model.queue import QueueAccess, QueueProperties, SeekAction

T = TypeVar("T")

NUMBERS = [b"0", b"1", b"2", b"3", b"4"]


async def five(manager: QueueManager, name: str) -> tuple[int, ...]:
    """Send five messages, and say where they are."""
    return (await manager.send_many(name, [durable(body) for body in NUMBERS])).lookup_ids


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


# By lookup identifier.


@pytest.mark.parametrize("peek", [False, True])
@pytest.mark.parametrize(
    ("action", "place", "found"),
    [
        (SeekAction.CURRENT, 2, b"2"),
        (SeekAction.FIRST, 2, b"0"),
        (SeekAction.LAST, 2, b"4"),
        (SeekAction.NEXT, 2, b"3"),
        (SeekAction.PREVIOUS, 2, b"1"),
        (SeekAction.NEXT, 4, None),
        (SeekAction.PREVIOUS, 0, None),
    ],
)
async def test_a_message_is_read_by_its_place(
    manager: QueueManager, orders: str, peek: bool, action: SeekAction, place: int, found: bytes | None
) -> None:
    places = await five(manager, orders)
    with opened_for(manager, orders) as handle:
        work = manager.read_message_by_lookup_identifier(handle, places[place], action, peek=peek)
        if found is None:
            with pytest.raises(MessageNotFoundError):
                await work
        else:
            assert (await work).body == found
    left = NUMBERS if peek or found is None else [body for body in NUMBERS if body != found]
    assert await bodies(manager, orders) == left


@pytest.mark.parametrize("peek", [False, True])
@pytest.mark.parametrize(
    ("action", "found"),
    [
        (SeekAction.CURRENT, None),
        (SeekAction.FIRST, b"0"),
        (SeekAction.LAST, b"4"),
        (SeekAction.NEXT, b"3"),
        (SeekAction.PREVIOUS, b"1"),
    ],
)
async def test_the_place_of_a_message_that_is_gone_still_counts(
    manager: QueueManager, orders: str, peek: bool, action: SeekAction, found: bytes | None
) -> None:
    places = await five(manager, orders)
    with opened_for(manager, orders) as handle:
        await manager.read_message_by_lookup_identifier(handle, places[2])
        work = manager.read_message_by_lookup_identifier(handle, places[2], action, peek=peek)
        if found is None:
            with pytest.raises(MessageNotFoundError, match=str(places[2])):
                await work
        else:
            assert (await work).body == found


@pytest.mark.parametrize("peek", [False, True])
@pytest.mark.parametrize(
    ("action", "start", "found"),
    [
        (SeekAction.CURRENT, 2, MessageLockedError),
        (SeekAction.FIRST, 2, b"1"),
        (SeekAction.LAST, 2, b"3"),
        (SeekAction.NEXT, 1, b"3"),
        (SeekAction.PREVIOUS, 3, b"1"),
    ],
)
async def test_a_locked_message_is_passed_over(
    manager: QueueManager,
    orders: str,
    peek: bool,
    action: SeekAction,
    start: int,
    found: bytes | type[LannerError],
) -> None:
    places = await five(manager, orders)
    with opened_for(manager, orders) as handle:
        async with manager.transaction() as transaction:
            for place in (0, 2, 4):
                await manager.read_message_by_lookup_identifier(
                    handle, places[place], transaction=transaction
                )
            work = manager.read_message_by_lookup_identifier(handle, places[start], action, peek=peek)
            if isinstance(found, bytes):
                assert (await work).body == found
            else:
                with pytest.raises(found):
                    await work


@BOTH_DELIVERIES
@pytest.mark.parametrize(
    ("action", "start", "found"),
    [
        (SeekAction.CURRENT, 1, b"1"),
        (SeekAction.FIRST, 2, b"1"),
        (SeekAction.LAST, 0, b"1"),
        (SeekAction.NEXT, 0, b"1"),
        (SeekAction.PREVIOUS, 2, b"1"),
    ],
)
async def test_a_locked_message_whose_sender_allows_it_can_be_peeked_at_and_not_taken(
    manager: QueueManager, orders: str, make: Make, action: SeekAction, start: int, found: bytes
) -> None:
    messages = [make(b"%d" % number, allow_peek_when_locked=number == 1) for number in range(3)]
    places = (await manager.send_many(orders, messages)).lookup_ids
    with opened_for(manager, orders) as handle:
        async with manager.transaction() as transaction:
            for place in places:
                await manager.read_message_by_lookup_identifier(handle, place, transaction=transaction)
            peeked = await manager.read_message_by_lookup_identifier(handle, places[start], action, peek=True)
            assert peeked.body == found
            with pytest.raises((MessageLockedError, MessageNotFoundError)):
                await manager.read_message_by_lookup_identifier(handle, places[start], action)
            assert (await manager.peek_message(handle, timeout=0)).body == b"1"
            cursor = manager.open_cursor(handle)
            assert (await manager.peek_message(handle, timeout=0, cursor=cursor)).body == b"1"
        with pytest.raises(ReceiveTimeoutError):
            await manager.peek_message(handle, timeout=0)


async def test_a_purged_message_cannot_be_peeked_at_while_it_is_locked(
    manager: QueueManager, orders: str
) -> None:
    outcome = await manager.send(orders, durable(allow_peek_when_locked=True))
    with opened_for(manager, orders) as handle:
        async with manager.transaction() as transaction:
            await manager.dequeue_message(handle, transaction=transaction)
            await manager.purge_queue(orders)
            with pytest.raises(ReceiveTimeoutError):
                await manager.peek_message(handle, timeout=0)
            with pytest.raises(LannerError):
                await manager.read_message_by_lookup_identifier(handle, only_place(outcome), peek=True)


async def test_an_empty_queue_has_no_place(manager: QueueManager, orders: str) -> None:
    with opened_for(manager, orders) as handle:
        for action in SeekAction:
            with pytest.raises(MessageNotFoundError):
                await manager.read_message_by_lookup_identifier(handle, 1, action)


async def test_a_message_is_read_by_its_place_in_a_transaction(manager: QueueManager, orders: str) -> None:
    places = await five(manager, orders)
    with opened_for(manager, orders) as handle:
        transaction = manager.create_transaction()
        await manager.read_message_by_lookup_identifier(handle, places[1], transaction=transaction)
        assert counts(manager, orders) == (5, 4)
        await manager.transaction_commit(transaction)
    assert await bodies(manager, orders) == [b"0", b"2", b"3", b"4"]


# In two phases.


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


# Moving.


@BOTH_DELIVERIES
async def test_a_moved_message_keeps_its_identity_and_its_place(
    manager: QueueManager, orders: str, other: str, make: Make
) -> None:
    sent = await manager.send(orders, make(b"old"))
    await manager.send(other, make(b"young"))
    with opened_for(manager, orders) as handle:
        await manager.move_message(handle, only_place(sent), other)
    assert counts(manager, orders) == (0, 0)
    assert await bodies(manager, other) == [b"old", b"young"]
    moved = await manager.receive(other, timeout=0)
    assert (moved.id, moved.lookup_id) == (only_id(sent), only_place(sent))
    assert manager.total_bytes == manager.queue(other).bytes
    row = (await history(manager))[2]
    assert (row.event, row.queue, row.reason) == ("moved", other, f"from {orders}")


async def test_what_cannot_be_moved(manager: QueueManager, orders: str, ledger: str) -> None:
    place = only_place(await manager.send(orders, durable(b"one")))
    await manager.send(ELSEWHERE, durable())
    with opened_for(manager, orders) as handle:
        refusals: list[tuple[int, str, type[LannerError]]] = [
            (place, orders, InvalidPropertyError),
            (place, ledger, TransactionUsageError),
            (place, orders + ";journal", UnsupportedOperationError),
            (place, DEAD_LETTER, UnsupportedOperationError),
            (place, ELSEWHERE, UnsupportedOperationError),
            (place, OTHER, QueueNotFoundError),
            (place + 1, orders + ";later", MessageNotFoundError),
        ]
        for lookup_id, target, error in refusals:
            with pytest.raises(error):
                await manager.move_message(handle, lookup_id, target)
        await manager.dequeue_message_begin(handle)
        with pytest.raises(MessageLockedError):
            await manager.move_message(handle, place, orders + ";later")
    assert counts(manager, orders) == (1, 0)
    assert manager.queue(orders).subqueues == ()


async def test_a_full_queue_takes_no_moved_message_but_its_own_subqueue_does(
    manager: QueueManager, orders: str
) -> None:
    await manager.create_queue(OTHER, QueueProperties(quota=1))
    inside = await manager.send(OTHER, durable(b"x" * 800))
    outside = await manager.send(orders, durable(b"y" * 800))
    with opened_for(manager, orders) as handle, pytest.raises(QuotaExceededError):
        await manager.move_message(handle, only_place(outside), OTHER)
    with opened_for(manager, OTHER) as handle:
        await manager.move_message(handle, only_place(inside), OTHER + ";later")
    assert (counts(manager, orders), counts(manager, OTHER + ";later")) == ((1, 1), (1, 1))
    with opened_for(manager, OTHER + ";later") as handle:
        await manager.move_message(handle, only_place(inside), OTHER)
    assert counts(manager, OTHER) == (1, 1)


@pytest.mark.parametrize("deleted", [ORDERS, OTHER])
async def test_a_message_is_not_moved_from_or_to_a_queue_that_is_deleted_meanwhile(
    opened: Opener, deleted: str
) -> None:
    async with opened(cache_bytes=0) as manager:
        for name in (ORDERS, OTHER):
            await manager.create_queue(name)
        place = only_place(await manager.send(ORDERS, durable(b"one")))
        with opened_for(manager, ORDERS) as handle:
            with stuck_reader(manager):
                moving = await started(manager.move_message(handle, place, OTHER))
                deleting = await started(manager.delete_queue(deleted))
            with pytest.raises(QueueDeletedError):
                await moving
            await deleting
    async with opened() as manager:
        left = ORDERS if deleted == OTHER else OTHER
        assert counts(manager, left) == ((1, 1) if left == ORDERS else (0, 0))


# A receive that is cancelled.


async def cancel(task: asyncio.Task[T]) -> None:
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


async def check_nothing_lost(manager: QueueManager, name: str, expected: list[bytes]) -> None:
    await settle(manager)
    assert await bodies(manager, name) == expected
    assert counts(manager, name) == (len(expected), len(expected))
    assert manager.total_bytes == sum(message.size for message in await contents(manager, name))


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
