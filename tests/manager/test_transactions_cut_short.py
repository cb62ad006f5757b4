"""Transactions that are cut short: cancelled callers, a manager that stops, a full disk."""

from __future__ import annotations

import asyncio

import pytest
from tests.manager.conftest import (
    LEDGER,
    ORDERS,
    TRANSACTIONAL_DEAD_LETTER,
    Opener,
    bodies,
    committing,
    contents,
    counts,
    durable,
    express,
    full_disk,
    opened_for,
    put,
    settle,
    started,
    stuck_reader,
    stuck_writer,
)

from lanner.manager import QueueManager
from lanner.manager.transactions import TransactionState
from lanner.model.errors import (
    QueueDeletedError,
    StoppedError,
    StoreFullError,
    TransactionSequenceError,
)
from lanner.model.queue import QueueAccess, QueueProperties


async def test_a_commit_whose_caller_is_cancelled_goes_on(manager: QueueManager, ledger: str) -> None:
    transaction = manager.create_transaction()
    await manager.send(ledger, durable(b"one"), transaction=transaction)
    with stuck_writer(manager):
        task = await started(manager.transaction_commit(transaction))
        await committing(manager)
        task.cancel()
        await asyncio.wait([task])
    await settle(manager)
    assert transaction.state is TransactionState.COMMITTED
    assert await bodies(manager, ledger) == [b"one"]


async def test_an_abort_whose_caller_is_cancelled_goes_on(manager: QueueManager, orders: str) -> None:
    await manager.send(orders, durable(b"one"))
    transaction = manager.create_transaction()
    await manager.receive(orders, timeout=0, transaction=transaction)
    with stuck_writer(manager):
        task = await started(manager.transaction_abort(transaction))
        task.cancel()
        await asyncio.wait([task])
    await settle(manager)
    assert [message.abort_count for message in await contents(manager, orders)] == [1]


async def test_a_move_whose_transaction_ends_meanwhile_leaves_the_message(opened: Opener) -> None:
    async with opened(cache_bytes=0) as manager:
        await manager.create_queue(LEDGER, QueueProperties(transactional=True))
        (place,) = await put(manager, LEDGER, b"one")
        transaction = manager.create_transaction()
        with opened_for(manager, LEDGER) as handle:
            with stuck_reader(manager):
                moving = await started(
                    manager.move_message(handle, place, LEDGER + ";later", transaction=transaction)
                )
                await manager.transaction_abort(transaction)
            with pytest.raises(TransactionSequenceError):
                await moving
        assert counts(manager, LEDGER) == (1, 1)
        assert manager.queue(LEDGER).subqueues == ()


async def test_a_stopped_manager_has_committed_nothing_that_was_open(opened: Opener) -> None:
    async with opened() as manager:
        await manager.create_queue(ORDERS)
        await manager.create_queue(LEDGER, QueueProperties(transactional=True))
        await manager.send(ORDERS, durable(b"one"))
        transaction = manager.create_transaction()
        await manager.receive(ORDERS, timeout=0, transaction=transaction)
        await manager.send(LEDGER, durable(b"two"), transaction=transaction)
        await manager.close()
        assert transaction.state is TransactionState.ABORTED
        with pytest.raises(StoppedError):
            await manager.transaction_commit(transaction)
        with pytest.raises(StoppedError):
            await manager.transaction_abort(transaction)
    async with opened() as manager:
        assert [(message.body, message.abort_count) for message in await contents(manager, ORDERS)] == [
            (b"one", 0)
        ]
        assert counts(manager, LEDGER) == (0, 0)


async def test_a_block_in_which_the_manager_stops_does_not_seem_to_be_committed(
    manager: QueueManager, ledger: str
) -> None:
    async def block() -> None:
        async with manager.transaction() as transaction:
            await manager.send(ledger, durable(b"one"), transaction=transaction)
            await manager.close()

    with pytest.raises(StoppedError):
        await block()


async def test_a_block_that_raises_when_the_manager_has_stopped_raises_that(manager: QueueManager) -> None:
    async def block() -> None:
        async with manager.transaction():
            await manager.close()
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        await block()


async def test_on_a_full_disk_a_commit_aborts(
    manager: QueueManager, orders: str, ledger: str, books: str
) -> None:
    (place,) = await put(manager, books, b"moved")
    await manager.send_many(orders, [durable(b"one"), express(b"two")])
    size = manager.total_bytes
    transaction = manager.create_transaction()
    async with full_disk(manager):
        for _ in range(2):
            await manager.receive(orders, timeout=0, transaction=transaction)
        await manager.send(ledger, durable(b"sent"), transaction=transaction)
        with opened_for(manager, books) as handle:
            await manager.move_message(handle, place, ledger + ";later", transaction=transaction)
        with pytest.raises(StoreFullError):
            await manager.transaction_commit(transaction)
        assert transaction.state is TransactionState.ABORTED
        assert await bodies(manager, orders) == [b"one", b"two"]
        assert (await bodies(manager, books), counts(manager, ledger)) == ([b"moved"], (0, 0))
        assert manager.queue(ledger).subqueues == ()
        assert manager.total_bytes == size
    async with manager.transaction() as transaction:
        await manager.receive(orders, timeout=0, transaction=transaction)
        await manager.send(ledger, durable(b"sent"), transaction=transaction)
    assert (await bodies(manager, orders), await bodies(manager, ledger)) == ([b"two"], [b"sent"])


async def test_on_a_full_disk_an_abort_gives_back_without_counting(manager: QueueManager) -> None:
    await manager.create_queue(ORDERS, QueueProperties(max_aborts=2))
    await manager.send_many(ORDERS, [durable(b"one"), express(b"two")])

    async def receive_and_abort() -> None:
        transaction = manager.create_transaction()
        with opened_for(manager, ORDERS) as handle:
            await manager.dequeue_messages(handle, 2, timeout=0, transaction=transaction)
        await manager.transaction_abort(transaction)

    async with full_disk(manager):
        with pytest.raises(StoreFullError):
            await receive_and_abort()
        assert [(message.body, message.abort_count) for message in await contents(manager, ORDERS)] == [
            (b"one", 0),
            (b"two", 0),
        ]
    await receive_and_abort()
    assert [(message.body, message.abort_count) for message in await contents(manager, ORDERS)] == [
        (b"one", 1),
        (b"two", 1),
    ]


async def test_on_a_full_disk_a_block_raises_what_it_raised(manager: QueueManager, orders: str) -> None:
    await manager.send(orders, durable(b"one"))

    async def block() -> None:
        async with manager.transaction() as transaction:
            await manager.receive(orders, timeout=0, transaction=transaction)
            raise ValueError("mine")

    async with full_disk(manager):
        with pytest.raises(ValueError, match="mine"):
            await block()
        assert await bodies(manager, orders) == [b"one"]


async def test_on_a_full_disk_poison_stays_where_it_is(manager: QueueManager) -> None:
    await manager.create_queue(ORDERS, QueueProperties(max_aborts=1))
    await manager.send(ORDERS, durable(b"bad"))
    transaction = manager.create_transaction()
    await manager.receive(ORDERS, timeout=0, transaction=transaction)
    async with full_disk(manager):
        with pytest.raises(StoreFullError):
            await manager.transaction_abort(transaction)
        assert manager.queue(ORDERS).subqueues == ()
        assert await bodies(manager, ORDERS) == [b"bad"]


async def test_a_handle_may_be_closed_before_the_transaction_ends(
    manager: QueueManager, orders: str, ledger: str
) -> None:
    await manager.send(orders, durable(b"one"))
    transaction = manager.create_transaction()
    with opened_for(manager, orders) as reader, opened_for(manager, ledger, QueueAccess.SEND) as sender:
        await manager.dequeue_message(reader, transaction=transaction)
        await manager.enqueue_message(sender, durable(b"two"), transaction=transaction)
    await manager.transaction_commit(transaction)
    assert (counts(manager, orders), await bodies(manager, ledger)) == ((0, 0), [b"two"])
    assert repr(transaction) == f"<Transaction {transaction.id} committed>"


@pytest.mark.parametrize("how", ["received", "moved"])
@pytest.mark.parametrize("commit", [False, True])
async def test_what_became_a_dead_letter_meanwhile_is_no_longer_the_transactions(
    manager: QueueManager, ledger: str, books: str, how: str, commit: bool
) -> None:
    sending, loser, holder = (manager.create_transaction() for _ in range(3))
    await manager.send(books, durable(negative_journaling=True), transaction=sending)
    (place,) = (await manager.transaction_commit(sending)).lookup_ids
    with opened_for(manager, books) as handle:
        if how == "received":
            await manager.dequeue_message(handle, timeout=0, transaction=loser)
        else:
            await manager.move_message(handle, place, ledger, transaction=loser)
    await manager.delete_queue(books)
    await manager.receive(TRANSACTIONAL_DEAD_LETTER, timeout=0, transaction=holder)
    if commit:
        with pytest.raises(QueueDeletedError):
            await manager.transaction_commit(loser)
    else:
        await manager.transaction_abort(loser)
    # It was locked again by the one who found it there, and stays so.
    assert counts(manager, TRANSACTIONAL_DEAD_LETTER) == (1, 0)
    await manager.transaction_abort(holder)
    assert [letter.abort_count for letter in await contents(manager, TRANSACTIONAL_DEAD_LETTER)] == [1]
