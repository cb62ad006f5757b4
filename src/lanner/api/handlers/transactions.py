"""Transactions with a lease."""

from __future__ import annotations

from lanner.api.context import Api
from lanner.api.convert import send_answer
from lanner.api.tokens import Caller
from lanner.schema.base import DoneAnswer
from lanner.schema.messages import SendAnswer
from lanner.schema.transactions import BeginRequest, TransactionAnswer, TransactionRequest

__all__ = ["abort", "begin", "commit", "renew"]


async def begin(api: Api, caller: Caller, request: BeginRequest) -> TransactionAnswer:
    """Begin a transaction."""
    seconds = request.lease or api.lease
    transaction = api.leases.begin(caller.name, seconds, request.key)
    return TransactionAnswer(transaction=transaction.id, lease=seconds)


async def renew(api: Api, caller: Caller, request: TransactionRequest) -> DoneAnswer:
    """Say that the client is alive: the lease begins anew."""
    api.leases.get(request.transaction, caller.name)
    return DoneAnswer()


async def commit(api: Api, caller: Caller, request: TransactionRequest) -> SendAnswer:
    """Commit a transaction; the answer names what it sent."""
    transaction = api.leases.end(request.transaction, caller.name)
    return send_answer(await api.manager.transaction_commit(transaction))


async def abort(api: Api, caller: Caller, request: TransactionRequest) -> DoneAnswer:
    """Abort a transaction."""
    await api.manager.transaction_abort(api.leases.end(request.transaction, caller.name))
    return DoneAnswer()
