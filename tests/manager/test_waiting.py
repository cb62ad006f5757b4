from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest
from tests.manager.conftest import (
    BOTH_DELIVERIES,
    ELSEWHERE,
    Make,
    bodies,
    counts,
    durable,
    express,
    let_run,
    only_id,
    opened_for,
    settle,
    started,
    turn,
)

from lanner.manager import ManualClock, QueueManager
from lanner.model.errors import (
    LannerError,
    OperationCancelledError,
    QueueDeletedError,
    ReceiveTimeoutError,
    StoppedError,
    TransactionSequenceError,
)
from lanner.model.message import Message
from lanner.model.message_id import MessageId
from lanner.model.queue import QueueAccess

# Served in order.


@BOTH_DELIVERIES
async def test_waiting_receivers_are_served_in_the_order_in_which_they_came(
    manager: QueueManager, orders: str, make: Make
) -> None:
    waiting = [await started(manager.receive(orders)) for _ in range(3)]
    assert manager.queue(orders).waiting_readers == 3
    await manager.send_many(orders, [make(b"%d" % number) for number in range(3)])
    assert [(await task).body for task in waiting] == [b"0", b"1", b"2"]
    assert manager.queue(orders).waiting_readers == 0


async def test_one_message_wakes_one_receiver(manager: QueueManager, orders: str) -> None:
    first, second = [await started(manager.receive(orders)) for _ in range(2)]
    await manager.send(orders, durable(b"one"))
    assert (await first).body == b"one"
    await let_run()
    assert not second.done()
    await manager.send(orders, durable(b"two"))
    assert (await second).body == b"two"


@BOTH_DELIVERIES
async def test_those_who_peek_see_the_message_that_a_receiver_behind_them_takes(
    manager: QueueManager, orders: str, make: Make
) -> None:
    peekers = [await started(manager.peek(orders)) for _ in range(2)]
    receiver = await started(manager.receive(orders))
    late = await started(manager.peek(orders))
    await manager.send(orders, make(b"one"))
    assert [(await task).body for task in (*peekers, receiver)] == [b"one"] * 3
    await let_run()
    assert not late.done()
    await manager.send(orders, make(b"two"))
    assert (await late).body == b"two"
    assert await bodies(manager, orders) == [b"two"]


async def test_a_message_that_comes_back_goes_to_who_waits(manager: QueueManager, orders: str) -> None:
    await manager.send(orders, durable(b"one"))
    transaction = manager.create_transaction()
    await manager.receive(orders, transaction=transaction)
    waiting = await started(manager.receive(orders))
    await manager.transaction_abort(transaction)
    assert (await waiting).body == b"one"


async def test_who_waits_for_an_identifier_lets_all_others_pass(manager: QueueManager, orders: str) -> None:
    correlation = MessageId.of(uuid4(), 1)
    with opened_for(manager, orders) as handle:
        picky = await started(manager.dequeue_message(handle, correlation_id=correlation))
        plain = await started(manager.dequeue_message(handle))
        await manager.send(orders, durable(b"plain"))
        assert (await plain).body == b"plain"
        await manager.send(orders, durable(b"wanted", correlation_id=correlation))
        assert (await picky).body == b"wanted"


async def test_who_waits_for_one_identifier_and_correlation_needs_both(
    manager: QueueManager, orders: str
) -> None:
    correlation = MessageId.of(uuid4(), 1)
    outcome = await manager.send(orders, durable(b"one", correlation_id=correlation))
    with opened_for(manager, orders) as handle:
        message = await manager.dequeue_message_begin(handle)
        wrong = await started(
            manager.dequeue_message(handle, message_id=MessageId.of(uuid4(), 2), correlation_id=correlation)
        )
        right = await started(
            manager.dequeue_message(handle, message_id=only_id(outcome), correlation_id=correlation)
        )
        await manager.dequeue_message_end(handle, message, delete=False)
        assert (await right).body == b"one"
        assert not wrong.done()
        wrong.cancel()


async def test_a_waiting_receive_takes_part_in_its_transaction(manager: QueueManager, orders: str) -> None:
    transaction = manager.create_transaction()
    waiting = await started(manager.receive(orders, transaction=transaction))
    await manager.send(orders, durable(b"one"))
    assert (await waiting).body == b"one"
    assert counts(manager, orders) == (1, 0)
    await manager.transaction_abort(transaction)
    assert counts(manager, orders) == (1, 1)


@pytest.mark.parametrize("commit", [False, True])
async def test_a_message_for_a_transaction_that_has_ended_meanwhile_stays(
    manager: QueueManager, orders: str, commit: bool
) -> None:
    transaction = manager.create_transaction()
    waiting = await started(manager.receive(orders, transaction=transaction))
    if commit:
        await manager.transaction_commit(transaction)
    else:
        await manager.transaction_abort(transaction)
    await manager.send(orders, durable(b"one"))
    with pytest.raises(TransactionSequenceError):
        await waiting
    assert counts(manager, orders) == (1, 1)


async def test_nobody_waits_for_a_transaction_that_has_ended(manager: QueueManager, orders: str) -> None:
    transaction = manager.create_transaction()
    await manager.transaction_commit(transaction)
    with opened_for(manager, orders) as handle:
        for read in (
            manager.dequeue_message(handle, transaction=transaction),
            manager.dequeue_messages(handle, 2, transaction=transaction),
        ):
            with pytest.raises(TransactionSequenceError):
                await asyncio.wait_for(read, 5)


# Time-outs.


@pytest.mark.parametrize("timeout", [0, -1])
async def test_who_may_not_wait_is_told_at_once(manager: QueueManager, orders: str, timeout: float) -> None:
    with opened_for(manager, orders) as handle:
        for read in (
            manager.dequeue_message(handle, timeout=timeout),
            manager.dequeue_message_begin(handle, timeout=timeout),
            manager.peek_message(handle, timeout=timeout),
        ):
            with pytest.raises(ReceiveTimeoutError):
                await read


async def test_a_wait_ends_when_its_time_is_over_and_not_before(
    manager: QueueManager, clock: ManualClock, orders: str
) -> None:
    receiver = await started(manager.receive(orders, timeout=5))
    peeker = await started(manager.peek(orders, timeout=7))
    await turn(manager, clock, 4.99)
    assert not receiver.done()
    await turn(manager, clock, 0.01)
    with pytest.raises(ReceiveTimeoutError, match="in time"):
        await receiver
    assert not peeker.done()
    await turn(manager, clock, 2)
    with pytest.raises(ReceiveTimeoutError):
        await peeker
    assert manager.queue(orders).waiting_readers == 0


@pytest.mark.parametrize("seconds", [86_400.0, -86_400.0])
async def test_a_wait_does_not_care_about_the_wall_clock(
    manager: QueueManager, clock: ManualClock, orders: str, seconds: float
) -> None:
    receiver = await started(manager.receive(orders, timeout=5))
    clock.jump(seconds)
    await turn(manager, clock, 4)
    assert not receiver.done()
    await turn(manager, clock, 1)
    with pytest.raises(ReceiveTimeoutError):
        await receiver


async def test_who_waits_without_a_time_waits_for_ever(
    manager: QueueManager, clock: ManualClock, orders: str
) -> None:
    receiver = await started(manager.receive(orders))
    await turn(manager, clock, 1e9)
    assert not receiver.done()
    await manager.send(orders, express(b"at last"))
    assert (await receiver).body == b"at last"


async def test_a_message_does_not_go_to_a_reader_whose_time_is_over(
    manager: QueueManager, clock: ManualClock, orders: str
) -> None:
    late = await started(manager.receive(orders, timeout=5))
    clock.advance(5)
    await manager.send(orders, express(b"one"))
    with pytest.raises(ReceiveTimeoutError):
        await late
    assert await bodies(manager, orders) == [b"one"]


async def test_who_was_served_does_not_time_out_later(
    manager: QueueManager, clock: ManualClock, orders: str
) -> None:
    receiver = await started(manager.receive(orders, timeout=5))
    await manager.send(orders, express(b"one"))
    clock.advance(10)
    assert (await receiver).body == b"one"


# Cancelling.


async def test_a_wait_is_cancelled_by_its_tag(manager: QueueManager, orders: str, other: str) -> None:
    with opened_for(manager, orders) as handle, opened_for(manager, other) as elsewhere:
        mine = await started(manager.dequeue_message(handle, tag="mine"))
        begun = await started(manager.dequeue_message_begin(handle, tag=("begun", 1)))
        plain = await started(manager.dequeue_message(handle))
        far = await started(manager.dequeue_message(elsewhere, tag="mine"))
        assert manager.cancel_waiting_message_read_request(orders, "mine")
        assert manager.cancel_waiting_message_read_request(orders, ("begun", 1))
        for cancelled in (mine, begun):
            with pytest.raises(OperationCancelledError):
                await cancelled
        for unknown in ("mine", "other", None):
            assert not manager.cancel_waiting_message_read_request(orders, unknown)
        await let_run()
        assert not plain.done()
        assert not far.done()
        await manager.send(orders, durable(b"one"))
        assert (await plain).body == b"one"
        far.cancel()


async def test_a_tagged_read_that_was_served_cannot_be_cancelled(manager: QueueManager, orders: str) -> None:
    with opened_for(manager, orders) as handle:
        receiver = await started(manager.dequeue_message(handle, tag=1))
        await manager.send(orders, durable(b"one"))
        assert not manager.cancel_waiting_message_read_request(orders, 1)
        assert (await receiver).body == b"one"


async def test_a_cancelled_task_no_longer_waits(manager: QueueManager, orders: str) -> None:
    receiver = await started(manager.receive(orders))
    receiver.cancel()
    await asyncio.wait([receiver])
    assert manager.queue(orders).waiting_readers == 0
    await manager.send(orders, durable(b"one"))
    assert await bodies(manager, orders) == [b"one"]


async def given_in_this_moment(manager: QueueManager, name: str) -> list[asyncio.Task[Message]]:
    """Two waiting receivers, the first of which was given a message and has not woken up yet."""
    await manager.send(name, express(b"so that numbers are reserved and nobody has to wait for the disk"))
    await manager.receive(name)
    tasks = [await started(manager.receive(name)) for _ in range(2)]
    await manager.send(name, express(b"one"))
    assert counts(manager, name) == (1, 0)
    return tasks


async def test_a_task_that_is_cancelled_when_it_is_given_a_message_passes_it_on(
    manager: QueueManager, orders: str
) -> None:
    first, second = await given_in_this_moment(manager, orders)
    first.cancel()
    assert (await second).body == b"one"
    assert first.cancelled()


async def test_a_message_that_was_purged_in_that_moment_does_not_come_back(
    manager: QueueManager, orders: str
) -> None:
    first, second = await given_in_this_moment(manager, orders)
    first.cancel()
    second.cancel()
    await manager.purge_queue(orders)
    await settle(manager)
    assert counts(manager, orders) == (0, 0)


async def test_who_peeks_and_is_cancelled_in_that_moment_gives_nothing_back(
    manager: QueueManager, orders: str
) -> None:
    await manager.send(orders, express())
    await manager.receive(orders)
    peeker = await started(manager.peek(orders))
    transaction = manager.create_transaction()
    receiver = await started(manager.receive(orders, transaction=transaction))
    await manager.send(orders, express(b"one"))
    peeker.cancel()
    assert (await receiver).body == b"one"
    assert counts(manager, orders) == (1, 0)


async def test_a_message_that_nobody_takes_in_that_moment_stays(manager: QueueManager, orders: str) -> None:
    first, second = await given_in_this_moment(manager, orders)
    second.cancel()
    first.cancel()
    await settle(manager)
    assert await bodies(manager, orders) == [b"one"]


@pytest.mark.parametrize("how", ["close", "delete", "stop"])
async def test_what_ends_all_waits(manager: QueueManager, orders: str, how: str) -> None:
    handle = manager.open_queue(orders, QueueAccess.RECEIVE)
    cursor = manager.open_cursor(handle)
    waits = [
        await started(manager.dequeue_message(handle)),
        await started(manager.dequeue_message_begin(handle, tag=1)),
        await started(manager.peek_message(handle, cursor=cursor)),
    ]
    errors: dict[str, type[LannerError]] = {
        "close": OperationCancelledError,
        "delete": QueueDeletedError,
        "stop": StoppedError,
    }
    if how == "close":
        manager.close_queue(handle)
    elif how == "delete":
        await manager.delete_queue(orders)
    else:
        await manager.close()
    for task in waits:
        with pytest.raises(errors[how]):
            await task


async def test_an_administrator_can_wait_at_an_outgoing_queue(manager: QueueManager, far: str) -> None:
    with opened_for(manager, far, QueueAccess.PEEK_ADMIN) as handle:
        waiting = await started(manager.peek_message(handle))
        await manager.send(ELSEWHERE, durable(b"one"))
        assert (await waiting).body == b"one"
