"""The states of a transaction, and how many and how large they may be."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from tests.manager.conftest import (
    bodies,
    counts,
    durable,
    opened_for,
    put,
    started,
    stuck_writer,
)

from lanner.manager import QueueManager, transactions, units
from lanner.manager.transactions import TransactionState
from lanner.model.errors import (
    TransactionSequenceError,
)
from lanner.model.queue import SeekAction


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
