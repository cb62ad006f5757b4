"""Transactions: all or nothing, and what one sends, receives and moves."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from tests.manager.conftest import (
    BOTH_DELIVERIES,
    ELSEWHERE,
    LEDGER,
    ORDERS,
    Make,
    Opener,
    bodies,
    contents,
    counts,
    durable,
    express,
    history,
    life,
    only_id,
    only_place,
    opened_for,
    put,
    settle,
    started,
)

from lanner.manager import QueueManager, Transaction
from lanner.manager.transactions import TransactionState
from lanner.model.errors import (
    InvalidPropertyError,
    MessageLockedError,
    ReceiveTimeoutError,
)
from lanner.model.queue import QueueProperties

TWO = r"DIRECT=OS:here\private$\ledger,DIRECT=OS:here\private$\books"


# All or nothing.


async def test_a_commit_makes_everything_true_together(
    manager: QueueManager, orders: str, ledger: str, books: str
) -> None:
    await manager.send(orders, durable(b"request"))
    transaction = manager.create_transaction()
    request = await manager.receive(orders, timeout=0, transaction=transaction)
    assert request.body == b"request"
    await manager.send(ledger, durable(b"debit"), transaction=transaction)
    await manager.send(books, durable(b"credit"), transaction=transaction)
    await manager.send(ELSEWHERE, durable(b"reply"), transaction=transaction)
    assert counts(manager, orders) == (1, 0)
    assert [counts(manager, name) for name in (ledger, books, ELSEWHERE)] == [(0, 0)] * 3
    outcome = await manager.transaction_commit(transaction)
    assert len(outcome.message_ids) == 3
    assert counts(manager, orders) == (0, 0)
    assert [await bodies(manager, name) for name in (ledger, books, ELSEWHERE)] == [
        [b"debit"],
        [b"credit"],
        [b"reply"],
    ]


async def test_an_abort_undoes_everything_together(
    manager: QueueManager, orders: str, ledger: str, books: str
) -> None:
    await manager.send_many(orders, [durable(b"one"), express(b"two"), durable(b"three")])
    (place,) = await put(manager, books, b"moved")
    size = manager.total_bytes
    transaction = manager.create_transaction()
    for _ in range(2):
        await manager.receive(orders, timeout=0, transaction=transaction)
    await manager.send(ledger, durable(b"never"), transaction=transaction)
    with opened_for(manager, books) as handle:
        await manager.move_message(handle, place, ledger, transaction=transaction)
    await manager.transaction_abort(transaction)
    assert await bodies(manager, orders) == [b"one", b"two", b"three"]
    assert await bodies(manager, books) == [b"moved"]
    assert counts(manager, ledger) == (0, 0)
    assert manager.total_bytes == size


async def test_a_block_commits_at_its_end(manager: QueueManager, ledger: str) -> None:
    async with manager.transaction() as transaction:
        await manager.send(ledger, durable(b"one"), transaction=transaction)
    assert transaction.state is TransactionState.COMMITTED
    assert await bodies(manager, ledger) == [b"one"]


@pytest.mark.parametrize("error", [ValueError("no"), asyncio.CancelledError()])
async def test_a_block_that_raises_aborts(manager: QueueManager, ledger: str, error: BaseException) -> None:
    await put(manager, ledger, b"one")
    seen: list[Transaction] = []

    async def block() -> None:
        async with manager.transaction() as transaction:
            seen.append(transaction)
            await manager.receive(ledger, timeout=0, transaction=transaction)
            await manager.send(ledger, durable(b"two"), transaction=transaction)
            raise error

    with pytest.raises(type(error)):
        await block()
    assert seen[0].state is TransactionState.ABORTED
    assert await bodies(manager, ledger) == [b"one"]


@pytest.mark.parametrize("commit", [False, True])
async def test_a_transaction_may_be_ended_within_its_block(
    manager: QueueManager, ledger: str, commit: bool
) -> None:
    async with manager.transaction() as transaction:
        await manager.send(ledger, durable(b"one"), transaction=transaction)
        if commit:
            await manager.transaction_commit(transaction)
        else:
            await manager.transaction_abort(transaction)
    assert counts(manager, ledger) == ((1, 1) if commit else (0, 0))


async def test_an_empty_transaction_can_be_committed_and_aborted(manager: QueueManager) -> None:
    assert (await manager.transaction_commit(manager.create_transaction())).message_ids == ()
    await manager.transaction_abort(manager.create_transaction())
    assert await history(manager) == []


# What a transaction sends.


async def test_messages_of_a_transaction_have_one_priority_and_are_durable(opened: Opener) -> None:
    async with opened() as manager:
        await manager.create_queue(LEDGER, QueueProperties(transactional=True))
        async with manager.transaction() as transaction:
            for number, priority in enumerate((3, 7, 0)):
                await manager.send(
                    LEDGER, express(b"%d" % number, priority=priority), transaction=transaction
                )
    async with opened() as manager:
        messages = await contents(manager, LEDGER)
        assert [message.body for message in messages] == [b"0", b"1", b"2"]
        assert {message.priority for message in messages} == {0}
        assert all(message.is_recoverable for message in messages)


async def test_the_first_and_the_last_message_to_each_queue_are_marked(
    manager: QueueManager, ledger: str, books: str
) -> None:
    transaction = manager.create_transaction("mine")
    await manager.send(ledger, durable(b"0"), transaction=transaction)
    await manager.send(books, durable(b"only"), transaction=transaction)
    await manager.send_many(ledger, [durable(b"1"), durable(b"2")], transaction=transaction)
    await manager.transaction_commit(transaction)

    async def marks(name: str) -> list[tuple[str, bool, bool]]:
        found = [message.transaction for message in await contents(manager, name)]
        return [(mark.id, mark.first, mark.last) for mark in found if mark is not None]

    assert await marks(ledger) == [("mine", True, False), ("mine", False, False), ("mine", False, True)]
    assert await marks(books) == [("mine", True, True)]


async def test_messages_are_where_they_came_when_they_were_committed(
    manager: QueueManager, ledger: str
) -> None:
    slow, quick = manager.create_transaction(), manager.create_transaction()
    first = await manager.send(ledger, durable(b"slow"), transaction=slow)
    await manager.send(ledger, durable(b"quick"), transaction=quick)
    await manager.transaction_commit(quick)
    outcome = await manager.transaction_commit(slow)
    assert await bodies(manager, ledger) == [b"quick", b"slow"]
    assert outcome.message_ids == first.message_ids
    assert (await contents(manager, ledger))[1].lookup_id == only_place(outcome)


async def test_several_queues_at_once_in_a_transaction(
    manager: QueueManager, ledger: str, books: str
) -> None:
    async with manager.transaction() as transaction:
        await manager.send(TWO, durable(b"one"), transaction=transaction)
    (first,), (second,) = await contents(manager, ledger), await contents(manager, books)
    assert (first.id, first.body) == (second.id, second.body)
    assert first.transaction == second.transaction


async def test_who_waits_is_served_when_the_transaction_is_committed(
    manager: QueueManager, ledger: str
) -> None:
    waiting = await started(manager.receive(ledger))
    transaction = manager.create_transaction()
    await manager.send(ledger, durable(b"one"), transaction=transaction)
    await settle(manager)
    assert not waiting.done()
    await manager.transaction_commit(transaction)
    assert (await waiting).body == b"one"


async def test_the_key_of_a_message_in_a_transaction_is_the_transactions(
    manager: QueueManager, ledger: str
) -> None:
    transaction = manager.create_transaction()
    with pytest.raises(InvalidPropertyError):
        await manager.send(ledger, durable(), transaction=transaction, key="k")


# What a transaction receives.


@BOTH_DELIVERIES
async def test_a_received_message_is_invisible_until_the_transaction_ends(
    manager: QueueManager, orders: str, make: Make
) -> None:
    sent = await manager.send(orders, make(b"one"))
    transaction = manager.create_transaction()
    await manager.receive(orders, timeout=0, transaction=transaction)
    with opened_for(manager, orders) as handle:
        invisible: list[Coroutine[Any, Any, object]] = [
            manager.dequeue_message(handle, timeout=0),
            manager.peek_message(handle, timeout=0),
            manager.dequeue_message(handle, timeout=0, message_id=only_id(sent)),
            manager.dequeue_message(handle, timeout=0, transaction=transaction),
        ]
        for read in invisible:
            with pytest.raises(ReceiveTimeoutError):
                await read
        with pytest.raises(MessageLockedError):
            await manager.read_message_by_lookup_identifier(handle, only_place(sent))
        assert await manager.browse_messages(handle, 9) == []
    assert manager.queue(orders).bytes == make(b"one").size
    await manager.transaction_commit(transaction)
    assert (counts(manager, orders), manager.total_bytes) == ((0, 0), 0)


@BOTH_DELIVERIES
async def test_an_aborted_receive_returns_the_message_to_its_place_and_is_counted(
    manager: QueueManager, orders: str, make: Make
) -> None:
    sent = await manager.send_many(orders, [make(b"%d" % number) for number in range(3)])
    for aborts in range(3):
        transaction = manager.create_transaction(f"t{aborts}")
        message = await manager.receive(orders, timeout=0, transaction=transaction)
        assert (message.body, message.abort_count) == (b"0", aborts)
        await manager.transaction_abort(transaction)
    assert [(message.body, message.abort_count) for message in await contents(manager, orders)] == [
        (b"0", 3),
        (b"1", 0),
        (b"2", 0),
    ]
    rows = [row for row in await history(manager) if row.message_id == str(sent.message_ids[0])]
    assert [(row.event, row.transaction_id, row.reason) for row in rows[1:]] == [
        ("returned", "t0", "receive number 1 was aborted"),
        ("returned", "t1", "receive number 2 was aborted"),
        ("returned", "t2", "receive number 3 was aborted"),
    ]


async def test_the_count_survives_a_restart(opened: Opener) -> None:
    async with opened() as manager:
        await manager.create_queue(ORDERS)
        await manager.send(ORDERS, durable())
        transaction = manager.create_transaction()
        await manager.receive(ORDERS, timeout=0, transaction=transaction)
        await manager.transaction_abort(transaction)
    async with opened() as manager:
        assert (await manager.receive(ORDERS, timeout=0)).abort_count == 1


async def test_many_messages_are_received_in_one_transaction(manager: QueueManager, orders: str) -> None:
    await manager.send_many(orders, [durable(b"%d" % number) for number in range(5)])
    transaction = manager.create_transaction()
    with opened_for(manager, orders) as handle:
        assert len(await manager.dequeue_messages(handle, 3, transaction=transaction)) == 3
    assert counts(manager, orders) == (5, 2)
    await manager.transaction_commit(transaction)
    assert await bodies(manager, orders) == [b"3", b"4"]


async def test_a_receive_in_a_transaction_is_recorded_when_it_is_committed(
    manager: QueueManager, orders: str
) -> None:
    sent = await manager.send(orders, durable())
    transaction = manager.create_transaction("mine")
    await manager.receive(orders, timeout=0, transaction=transaction)
    assert await life(manager, only_id(sent)) == [("sent", orders)]
    await manager.transaction_commit(transaction)
    row = (await history(manager))[-1]
    assert (row.event, row.queue, row.transaction_id) == ("received", orders, "mine")


# What a transaction moves.


async def test_a_message_is_moved_when_the_transaction_is_committed(
    manager: QueueManager, ledger: str, books: str
) -> None:
    (place,) = await put(manager, ledger, b"one")
    transaction = manager.create_transaction("mine")
    with opened_for(manager, ledger) as handle:
        await manager.move_message(handle, place, books, transaction=transaction)
        with pytest.raises(MessageLockedError):
            await manager.move_message(handle, place, books)
    assert (counts(manager, ledger), counts(manager, books)) == ((1, 0), (0, 0))
    await manager.transaction_commit(transaction)
    assert (counts(manager, ledger), await bodies(manager, books)) == ((0, 0), [b"one"])
    row = (await history(manager))[-1]
    assert (row.event, row.queue, row.reason) == ("moved", books, f"from {ledger}")
    assert row.transaction_id == "mine"


async def test_a_subqueue_is_there_from_the_commit_on(manager: QueueManager, ledger: str) -> None:
    (place,) = await put(manager, ledger, b"one")
    transaction = manager.create_transaction()
    with opened_for(manager, ledger) as handle:
        await manager.move_message(handle, place, ledger + ";later", transaction=transaction)
    with opened_for(manager, ledger + ";later"):
        pass
    assert manager.queue(ledger).subqueues == ()
    await manager.transaction_commit(transaction)
    assert await bodies(manager, ledger + ";later") == [b"one"]


async def test_an_aborted_move_leaves_no_subqueue_and_is_not_counted(
    manager: QueueManager, ledger: str
) -> None:
    (place,) = await put(manager, ledger, b"one")
    transaction = manager.create_transaction()
    with opened_for(manager, ledger) as handle:
        await manager.move_message(handle, place, ledger + ";later", transaction=transaction)
    await manager.transaction_abort(transaction)
    assert manager.queue(ledger).subqueues == ()
    assert [message.abort_count for message in await contents(manager, ledger)] == [0]
