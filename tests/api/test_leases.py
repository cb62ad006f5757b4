"""Leases: what is logged when one runs out."""

from __future__ import annotations

import logging

import pytest
from tests.api.served import Served

from lanner.manager import QueueManager, Transaction
from lanner.model.errors import StoreFullError


async def _abandon(served: Served, queue: str) -> str:
    """Receive in a transaction, and let its lease end; waits until the message is back."""
    await served.ask("POST", "/v1/messages/send", queue=queue, messages=[{"body": ""}])
    transaction = (await served.ask("POST", "/v1/transactions", lease=0.1))["transaction"]
    await served.ask("POST", "/v1/messages/receive", queue=queue, transaction=transaction)
    await served.ask("POST", "/v1/messages/receive", queue=queue, wait=1)
    return str(transaction)


async def test_a_lease_that_ran_out_is_logged_with_its_queue(
    served: Served, queue: str, caplog: pytest.LogCaptureFixture
) -> None:
    transaction = await _abandon(served, queue)
    [record] = [record for record in caplog.records if "ran out" in record.getMessage()]
    assert {"transaction": transaction, "queue": queue}.items() <= record.__dict__.items()


async def test_an_abort_that_fails_is_logged_with_its_queue(
    served: Served, queue: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(manager: QueueManager, transaction: Transaction) -> None:
        raise StoreFullError("the disk is full")

    monkeypatch.setattr(QueueManager, "transaction_abort", fail)
    transaction = await _abandon(served, queue)
    [record] = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert "could not be aborted: the disk is full" in record.getMessage()
    assert {"transaction": transaction, "queue": queue}.items() <= record.__dict__.items()
