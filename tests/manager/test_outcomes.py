"""Keys: the same send or transaction twice is done once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from tests.manager.conftest import (
    BOTH_DELIVERIES,
    LEDGER,
    ORDERS,
    OTHER,
    Make,
    Opener,
    bodies,
    committing,
    counts,
    durable,
    full_disk,
    opened_for,
    settle,
    started,
    stuck_reader,
    stuck_writer,
)

from lanner.manager import ManualClock, Outcome, QueueManager, Transaction
from lanner.manager.transactions import TransactionState
from lanner.model.errors import (
    InvalidPropertyError,
    QueueDeletedError,
    QuotaExceededError,
    StoreFullError,
    TransactionUsageError,
)
from lanner.model.queue import QueueProperties

Work = Callable[[], Coroutine[Any, Any, Outcome]]


async def transfer(manager: QueueManager, key: str | None) -> tuple[Transaction, Outcome]:
    """Move money, so to speak: take from one queue, put into another."""
    transaction = manager.create_transaction(key=key)
    await manager.receive(ORDERS, timeout=0, transaction=transaction)
    await manager.send(LEDGER, durable(b"booked"), transaction=transaction)
    return transaction, await manager.transaction_commit(transaction)


@pytest.fixture
async def queues(manager: QueueManager, orders: str, ledger: str) -> None:
    await manager.send_many(orders, [durable(b"one"), durable(b"two")])


# Sending with a key.


@BOTH_DELIVERIES
async def test_a_second_send_with_the_same_key_adds_nothing(
    manager: QueueManager, orders: str, make: Make
) -> None:
    first = await manager.send(orders, make(b"one"), key="k")
    second = await manager.send(orders, make(b"other"), key="k")
    assert not first.is_replay
    assert second == Outcome(first.message_ids, first.lookup_ids, is_replay=True)
    assert await bodies(manager, orders) == [b"one"]
    await manager.send(orders, make(b"two"), key="K")
    assert counts(manager, orders) == (2, 2)


async def test_a_key_is_remembered_when_its_message_is_gone(manager: QueueManager, orders: str) -> None:
    await manager.send(orders, durable(b"one"), key="k")
    await manager.receive(orders, timeout=0)
    assert (await manager.send(orders, durable(b"one"), key="k")).is_replay
    assert counts(manager, orders) == (0, 0)


async def test_a_key_is_remembered_over_a_restart(opened: Opener) -> None:
    async with opened() as manager:
        await manager.create_queue(ORDERS)
        first = await manager.send_many(ORDERS, [durable(b"one"), durable(b"two")], key="k")
    async with opened() as manager:
        again = await manager.send_many(ORDERS, [durable(b"one"), durable(b"two")], key="k")
        assert again == Outcome(first.message_ids, first.lookup_ids, is_replay=True)
        assert await bodies(manager, ORDERS) == [b"one", b"two"]


async def test_many_at_once_with_one_key_send_once(manager: QueueManager, orders: str) -> None:
    outcomes = await asyncio.gather(*(manager.send(orders, durable(b"one"), key="k") for _ in range(5)))
    assert sorted(outcome.is_replay for outcome in outcomes) == [False, True, True, True, True]
    assert len({outcome.message_ids for outcome in outcomes}) == 1
    assert await bodies(manager, orders) == [b"one"]


async def test_when_the_first_fails_the_second_tries(manager: QueueManager, orders: str) -> None:
    await manager.create_queue(OTHER, QueueProperties(quota=0))
    with stuck_reader(manager):
        first = await started(manager.send(OTHER, durable(b"no room"), key="k"))
        second = await started(manager.send(orders, durable(b"room"), key="k"))
        third = await started(manager.send(orders, durable(b"late"), key="k"))
    with pytest.raises(QuotaExceededError):
        await first
    assert not (await second).is_replay
    assert (await third).is_replay
    assert await bodies(manager, orders) == [b"room"]


async def test_a_send_that_failed_is_not_remembered(manager: QueueManager, orders: str) -> None:
    await manager.create_queue(LEDGER, QueueProperties(transactional=True))
    with pytest.raises(TransactionUsageError):
        await manager.send(LEDGER, durable(), key="k")
    assert not (await manager.send(orders, durable(b"one"), key="k")).is_replay


@pytest.mark.parametrize("key", ["", "x" * 513])
async def test_a_key_that_cannot_be_kept_is_refused(manager: QueueManager, orders: str, key: str) -> None:
    with pytest.raises(InvalidPropertyError, match="1 to 512 characters"):
        await manager.send(orders, durable(), key=key)
    with pytest.raises(InvalidPropertyError, match="1 to 512 characters"):
        manager.create_transaction(key=key)
    assert counts(manager, orders) == (0, 0)


async def test_the_longest_key_is_taken(manager: QueueManager, orders: str) -> None:
    for _ in range(2):
        await manager.send(orders, durable(), key="x" * 512)
    assert counts(manager, orders) == (1, 1)


# Cancelled in between.


@pytest.mark.parametrize("turns", range(8))
async def test_a_send_that_is_cancelled_at_any_step_and_tried_again_is_done_once(
    manager: QueueManager, orders: str, turns: int
) -> None:
    first = asyncio.ensure_future(manager.send(orders, durable(b"one"), key="k"))
    for _ in range(turns):
        await asyncio.sleep(0)
    first.cancel()
    await manager.send(orders, durable(b"one"), key="k")
    await settle(manager)
    assert await bodies(manager, orders) == [b"one"]
    await manager.send(orders, durable(b"two"))


async def test_who_tries_again_while_the_first_is_being_stored_waits_for_it(
    manager: QueueManager, orders: str
) -> None:
    with stuck_writer(manager):
        first = await started(manager.send(orders, durable(b"one"), key="k"))
        await committing(manager)
        first.cancel()
        second = await started(manager.send(orders, durable(b"one"), key="k"))
        assert not second.done()
    assert (await second).is_replay
    assert await bodies(manager, orders) == [b"one"]
    await manager.send(orders, durable(b"two"), key="another")


async def test_a_commit_whose_caller_is_cancelled_is_remembered(manager: QueueManager, queues: None) -> None:
    with stuck_writer(manager):
        first = await started(transfer(manager, "k"))
        await committing(manager)
        first.cancel()
        await asyncio.wait([first])
    transaction, outcome = await transfer(manager, "k")
    assert outcome.is_replay
    assert transaction.is_replay
    assert await bodies(manager, ORDERS) == [b"two"]
    assert await bodies(manager, LEDGER) == [b"booked"]


async def test_a_commit_that_is_cancelled_before_its_key_was_looked_up_locks_nothing_away(
    manager: QueueManager, queues: None
) -> None:
    with stuck_reader(manager):
        first = await started(transfer(manager, "k"))
        first.cancel()
        await asyncio.wait([first])
    await settle(manager)
    await transfer(manager, "k")
    assert await bodies(manager, ORDERS) == [b"two"]
    assert counts(manager, ORDERS) == (1, 1)
    assert await bodies(manager, LEDGER) == [b"booked"]


# Transactions with a key.


async def test_a_second_transaction_with_the_same_key_does_nothing(
    manager: QueueManager, queues: None
) -> None:
    first, done = await transfer(manager, "k")
    second, again = await transfer(manager, "k")
    assert (first.state, second.state) == (TransactionState.COMMITTED, TransactionState.COMMITTED)
    assert (first.is_replay, second.is_replay) == (False, True)
    assert again == Outcome(done.message_ids, done.lookup_ids, is_replay=True)
    assert await bodies(manager, ORDERS) == [b"two"]
    assert await bodies(manager, LEDGER) == [b"booked"]
    assert manager.total_bytes == manager.queue(ORDERS).bytes + manager.queue(LEDGER).bytes


async def test_what_a_second_transaction_with_the_same_key_moved_is_back(
    manager: QueueManager, ledger: str
) -> None:
    async with manager.transaction(key="k") as transaction:
        await manager.send(ledger, durable(b"one"), transaction=transaction)
    with opened_for(manager, ledger) as handle:
        async with manager.transaction(key="k") as transaction:
            place = (await manager.peek_message(handle)).lookup_id
            await manager.move_message(handle, place, ledger + ";later", transaction=transaction)
            assert counts(manager, ledger) == (1, 0)
    assert (counts(manager, ledger), manager.queue(ledger).subqueues) == ((1, 1), ())


async def test_a_block_with_a_key_that_was_used_says_so(manager: QueueManager, ledger: str) -> None:
    for is_replay in (False, True):
        async with manager.transaction(key="k") as transaction:
            await manager.send(ledger, durable(b"one"), transaction=transaction)
        assert transaction.is_replay == is_replay
    assert await bodies(manager, ledger) == [b"one"]


async def test_a_transactions_key_is_remembered_over_a_restart(opened: Opener) -> None:
    async with opened() as manager:
        await manager.create_queue(LEDGER, QueueProperties(transactional=True))
        async with manager.transaction(key="k") as transaction:
            await manager.send(LEDGER, durable(b"one"), transaction=transaction)
    async with opened() as manager:
        async with manager.transaction(key="k") as transaction:
            await manager.send(LEDGER, durable(b"one"), transaction=transaction)
        assert transaction.is_replay
        assert await bodies(manager, LEDGER) == [b"one"]


async def test_two_transactions_at_once_with_one_key(manager: QueueManager, queues: None) -> None:
    results = await asyncio.gather(transfer(manager, "k"), transfer(manager, "k"))
    assert sorted(outcome.is_replay for _, outcome in results) == [False, True]
    assert counts(manager, ORDERS) == (1, 1)
    assert await bodies(manager, LEDGER) == [b"booked"]


async def test_an_aborted_transaction_does_not_use_its_key_up(manager: QueueManager, queues: None) -> None:
    transaction = manager.create_transaction(key="k")
    await manager.send(LEDGER, durable(b"never"), transaction=transaction)
    await manager.transaction_abort(transaction)
    _, outcome = await transfer(manager, "k")
    assert not outcome.is_replay


async def test_a_queue_that_is_deleted_while_the_key_is_looked_up_aborts_the_commit(
    manager: QueueManager, queues: None
) -> None:
    transaction = manager.create_transaction("mine", key="k")
    await manager.receive(ORDERS, timeout=0, transaction=transaction)
    await manager.send(LEDGER, durable(b"booked"), transaction=transaction)
    with stuck_reader(manager):
        task = await started(manager.transaction_commit(transaction))
        queue = manager._core.queues.get(LEDGER)
        queue.is_deleted = True
    with pytest.raises(QueueDeletedError):
        await task
    queue.is_deleted = False
    assert transaction.state is TransactionState.ABORTED
    assert manager.create_transaction("mine").state is TransactionState.ACTIVE
    assert counts(manager, ORDERS) == (2, 2)
    assert not (await transfer(manager, "k"))[1].is_replay


# A full disk.


async def test_on_a_full_disk_no_key_is_used_up(manager: QueueManager, queues: None, other: str) -> None:
    async with full_disk(manager):
        with pytest.raises(StoreFullError):
            await manager.send(other, durable(b"one"), key="s")
        with pytest.raises(StoreFullError):
            await transfer(manager, "t")
        assert counts(manager, ORDERS) == (2, 2)
    assert not (await manager.send(other, durable(b"one"), key="s")).is_replay
    assert not (await transfer(manager, "t"))[1].is_replay
    assert (await bodies(manager, other), await bodies(manager, LEDGER)) == ([b"one"], [b"booked"])


async def test_keys_are_forgotten_when_they_are_old(opened: Opener, clock: ManualClock) -> None:
    async with opened(outcome_age=100.0) as manager:
        await manager.create_queue(ORDERS)
        await manager.send(ORDERS, durable(), key="old")
        clock.advance(60)
        await manager.send(ORDERS, durable(), key="young")
        clock.advance(60)
        await manager._maintenance.run()
        assert not (await manager.send(ORDERS, durable(), key="old")).is_replay
        assert (await manager.send(ORDERS, durable(), key="young")).is_replay
