"""What happens to the messages of a transaction while it is open, and when it is aborted too often."""

from __future__ import annotations

import pytest
from tests.manager.conftest import (
    BOOKS,
    LEDGER,
    ORDERS,
    TRANSACTIONAL_DEAD_LETTER,
    Opener,
    bodies,
    classes,
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
    turn,
)

from lanner.manager import ManualClock, QueueManager
from lanner.manager.transactions import TransactionState
from lanner.model.codes import MessageClass
from lanner.model.errors import (
    QueueDeletedError,
)
from lanner.model.queue import QueueProperties

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
