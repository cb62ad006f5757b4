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
    TRANSACTIONAL_DEAD_LETTER,
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

from lanner.manager import ManualClock, QueueManager, Transaction, transactions, units
from lanner.manager.transactions import TransactionState
from lanner.model.codes import MessageClass
from lanner.model.errors import (
    InvalidPropertyError,
    MessageLockedError,
    QueueDeletedError,
    ReceiveTimeoutError,
    StoppedError,
    StoreFullError,
    TransactionSequenceError,
)
from lanner.model.queue import QueueAccess, QueueProperties, SeekAction

BOOKS = r".\private$\books"
TWO = r"DIRECT=OS:here\private$\ledger,DIRECT=OS:here\private$\books"


@pytest.fixture
async def books(manager: QueueManager) -> str:
    """Another transactional queue."""
    return (await manager.create_queue(BOOKS, QueueProperties(transactional=True))).path


async def put(manager: QueueManager, name: str, *texts: bytes) -> tuple[int, ...]:
    """Send messages to a transactional queue, and say where they are."""
    async with manager.transaction() as transaction:
        await manager.send_many(name, [durable(text) for text in texts], transaction=transaction)
    return tuple(message.lookup_id for message in await contents(manager, name))[-len(texts) :]


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


# What happens to its messages meanwhile.


async def test_a_message_that_was_purged_meanwhile_is_received_by_a_commit(
    manager: QueueManager, orders: str
) -> None:
    sent = await manager.send(orders, durable())
    transaction = manager.create_transaction()
    await manager.receive(orders, timeout=0, transaction=transaction)
    assert await manager.purge_queue(orders) == 0
    await manager.transaction_commit(transaction)
    assert await life(manager, only_id(sent)) == [("sent", orders), ("received", orders)]
    assert counts(manager, orders) == (0, 0)


@pytest.mark.parametrize("how", ["receive", "move"])
async def test_a_message_that_was_purged_meanwhile_does_not_come_back(
    manager: QueueManager, ledger: str, how: str
) -> None:
    transaction = manager.create_transaction()
    await manager.send(ledger, durable(negative_journaling=True), transaction=transaction)
    await manager.transaction_commit(transaction)
    transaction = manager.create_transaction()
    with opened_for(manager, ledger) as handle:
        message = await manager.peek_message(handle)
        if how == "receive":
            await manager.dequeue_message(handle, transaction=transaction)
        else:
            await manager.move_message(handle, message.lookup_id, ledger + ";later", transaction=transaction)
    await manager.purge_queue(ledger)
    await manager.transaction_abort(transaction)
    await settle(manager)
    assert counts(manager, ledger) == (0, 0)
    assert await classes(manager, TRANSACTIONAL_DEAD_LETTER) == [MessageClass.NACK_QUEUE_PURGED]


@pytest.mark.parametrize("how", ["sent", "received", "moved from", "moved to"])
async def test_a_queue_that_is_deleted_meanwhile_aborts_the_commit(opened: Opener, how: str) -> None:
    async with opened() as manager:
        for name in (LEDGER, BOOKS):
            await manager.create_queue(name, QueueProperties(transactional=True))
        (place,) = await put(manager, LEDGER if how != "moved to" else BOOKS, b"one")
        transaction = manager.create_transaction()
        await manager.send(BOOKS, durable(b"two"), transaction=transaction)
        if how == "sent":
            await manager.send(LEDGER, durable(b"three"), transaction=transaction)
        elif how == "received":
            await manager.receive(LEDGER, timeout=0, transaction=transaction)
        else:
            source, target = (LEDGER, BOOKS) if how == "moved from" else (BOOKS, LEDGER)
            with opened_for(manager, source) as handle:
                await manager.move_message(handle, place, target, transaction=transaction)
        await manager.delete_queue(LEDGER)
        with pytest.raises(QueueDeletedError, match="the transaction is aborted"):
            await manager.transaction_commit(transaction)
        assert transaction.state is TransactionState.ABORTED
        left = [b"one"] if how == "moved to" else []
        assert await bodies(manager, BOOKS) == left
        assert manager.total_bytes == manager.queue(BOOKS).bytes
    async with opened() as manager:
        assert await bodies(manager, BOOKS) == left


async def test_a_queue_that_is_deleted_meanwhile_does_not_disturb_the_abort(
    manager: QueueManager, ledger: str, orders: str
) -> None:
    await put(manager, ledger, b"one")
    await manager.send(orders, durable(b"two"))
    transaction = manager.create_transaction()
    await manager.receive(ledger, timeout=0, transaction=transaction)
    await manager.receive(orders, timeout=0, transaction=transaction)
    await manager.send(ledger, durable(b"three"), transaction=transaction)
    await manager.delete_queue(ledger)
    await manager.transaction_abort(transaction)
    assert await bodies(manager, orders) == [b"two"]
    assert manager.total_bytes == manager.queue(orders).bytes


@pytest.mark.parametrize("commit", [False, True])
async def test_a_message_whose_time_runs_out_meanwhile(
    manager: QueueManager, clock: ManualClock, orders: str, commit: bool
) -> None:
    sent = await manager.send(orders, durable(time_to_be_received=5))
    transaction = manager.create_transaction()
    await manager.receive(orders, timeout=0, transaction=transaction)
    await turn(manager, clock, 10)
    assert counts(manager, orders) == (1, 0)
    if commit:
        await manager.transaction_commit(transaction)
    else:
        await manager.transaction_abort(transaction)
        await turn(manager, clock, 1)
    assert counts(manager, orders) == (0, 0)
    last = [event for event, _ in await life(manager, only_id(sent))][-1]
    assert last == ("received" if commit else "expired")


# Poison.


async def test_a_message_that_is_aborted_too_often_moves_to_the_poison_subqueue(
    manager: QueueManager,
) -> None:
    await manager.create_queue(ORDERS, QueueProperties(max_aborts=2))
    sent = await manager.send_many(ORDERS, [durable(b"bad"), durable(b"good")])
    for _ in range(2):
        assert manager.queue(ORDERS).subqueues == ()
        transaction = manager.create_transaction("mine")
        assert (await manager.receive(ORDERS, timeout=0, transaction=transaction)).body == b"bad"
        await manager.transaction_abort(transaction)
    assert await bodies(manager, ORDERS) == [b"good"]
    (poison,) = await contents(manager, ORDERS + ";poison")
    assert (poison.body, poison.abort_count, poison.id) == (b"bad", 2, sent.message_ids[0])
    row = (await history(manager))[-1]
    assert (row.event, row.queue, row.reason) == (
        "moved",
        ORDERS + ";poison",
        "poison: 2 aborted receives",
    )


async def test_what_is_in_the_poison_subqueue_stays_there(manager: QueueManager) -> None:
    await manager.create_queue(ORDERS, QueueProperties(max_aborts=1))
    await manager.send(ORDERS, express(b"bad"))
    for name in (ORDERS, ORDERS + ";poison", ORDERS + ";poison"):
        transaction = manager.create_transaction()
        await manager.receive(name, timeout=0, transaction=transaction)
        await manager.transaction_abort(transaction)
    (poison,) = await contents(manager, ORDERS + ";poison")
    assert poison.abort_count == 3
    assert [row.event for row in await history(manager)].count("moved") == 1


async def test_poison_survives_a_restart_and_can_be_moved_back(opened: Opener) -> None:
    async with opened() as manager:
        await manager.create_queue(ORDERS, QueueProperties(max_aborts=1))
        sent = await manager.send(ORDERS, durable(b"bad"))
        transaction = manager.create_transaction()
        await manager.receive(ORDERS, timeout=0, transaction=transaction)
        await manager.transaction_abort(transaction)
    async with opened() as manager:
        assert manager.queue(ORDERS).subqueues == ("poison",)
        with opened_for(manager, ORDERS + ";poison") as handle:
            await manager.move_message(handle, only_place(sent), ORDERS)
        assert manager.queue(ORDERS).subqueues == ()
        assert await bodies(manager, ORDERS) == [b"bad"]


# States and limits.


@pytest.mark.parametrize("commit", [False, True])
async def test_a_transaction_that_has_ended_takes_nothing_more(
    manager: QueueManager, ledger: str, commit: bool
) -> None:
    places = await put(manager, ledger, b"one")
    transaction = manager.create_transaction()
    end = manager.transaction_commit if commit else manager.transaction_abort
    await end(transaction)
    with opened_for(manager, ledger) as handle:
        refused: list[Coroutine[Any, Any, object]] = [
            manager.send(ledger, durable(), transaction=transaction),
            manager.dequeue_message(handle, timeout=0, transaction=transaction),
            manager.dequeue_messages(handle, 2, timeout=0, transaction=transaction),
            manager.read_message_by_lookup_identifier(handle, 0, SeekAction.FIRST, transaction=transaction),
            manager.move_message(handle, places[0], ledger + ";later", transaction=transaction),
            manager.transaction_commit(transaction),
            manager.transaction_abort(transaction),
        ]
        for work in refused:
            with pytest.raises(TransactionSequenceError):
                await work
    assert counts(manager, ledger) == (1, 1)


async def test_a_transaction_that_is_being_committed_is_committed_once(
    manager: QueueManager, ledger: str
) -> None:
    transaction = manager.create_transaction()
    await manager.send(ledger, durable(b"one"), transaction=transaction)
    with stuck_writer(manager):
        committed = await started(manager.transaction_commit(transaction))
        assert transaction.state is TransactionState.COMMITTING
        for again in (manager.transaction_commit(transaction), manager.transaction_abort(transaction)):
            with pytest.raises(TransactionSequenceError, match="committing"):
                await again
    await committed
    assert await bodies(manager, ledger) == [b"one"]


async def test_an_identifier_is_used_by_one_open_transaction(manager: QueueManager) -> None:
    first = manager.create_transaction("mine")
    with pytest.raises(TransactionSequenceError, match="open already"):
        manager.create_transaction("mine")
    await manager.transaction_abort(first)
    assert manager.create_transaction("mine").id == "mine"
    assert manager.create_transaction().id != manager.create_transaction().id


async def test_how_many_transactions_can_be_open(
    manager: QueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(units, "MAX_TRANSACTIONS", 2)
    first, _ = manager.create_transaction(), manager.create_transaction()
    with pytest.raises(TransactionSequenceError, match="2 transactions are open"):
        manager.create_transaction()
    await manager.transaction_commit(first)
    manager.create_transaction()


@pytest.mark.parametrize("how", ["send", "receive", "move"])
async def test_how_much_one_transaction_can_do(
    manager: QueueManager, ledger: str, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    places = await put(manager, ledger, b"one", b"two")
    monkeypatch.setattr(transactions, "MAX_OPERATIONS", 2)
    transaction = manager.create_transaction()
    with opened_for(manager, ledger) as handle:
        for place in places:
            if how == "send":
                await manager.send(ledger, durable(), transaction=transaction)
            elif how == "receive":
                await manager.dequeue_message(handle, transaction=transaction)
            else:
                await manager.move_message(handle, place, ledger + ";later", transaction=transaction)
    with pytest.raises(TransactionSequenceError, match="2 operations"):
        await manager.send(ledger, durable(), transaction=transaction)
    await manager.transaction_commit(transaction)
    assert counts(manager, ledger)[0] == (4 if how == "send" else 0)


async def test_transactions_at_once_do_not_get_each_others_messages(
    manager: QueueManager, orders: str
) -> None:
    await manager.send_many(orders, [durable(b"one"), durable(b"two")])
    first, second = manager.create_transaction(), manager.create_transaction()
    one = await manager.receive(orders, timeout=0, transaction=first)
    two = await manager.receive(orders, timeout=0, transaction=second)
    assert (one.body, two.body) == (b"one", b"two")
    await asyncio.gather(manager.transaction_abort(first), manager.transaction_commit(second))
    assert await bodies(manager, orders) == [b"one"]


# Cancelled, stopped, full.


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
