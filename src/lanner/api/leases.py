"""Transactions of clients that may die: each has a lease, and is aborted when that runs out."""

from __future__ import annotations

import logging

from lanner.manager import Clock, QueueManager, Transaction
from lanner.manager.clock import Timer
from lanner.manager.transactions import TransactionState
from lanner.model.errors import LannerError, TransactionSequenceError
from lanner.model.log_fields import LogFields, about

__all__ = ["Leases"]

log = logging.getLogger(__name__)


class _Lease:
    def __init__(self, transaction: Transaction, owner: str, seconds: float) -> None:
        self.transaction = transaction
        self.owner = owner
        self.seconds = seconds
        self.timer: Timer | None = None


class Leases:
    """The open transactions of all clients."""

    def __init__(self, manager: QueueManager, clock: Clock) -> None:
        self._manager = manager
        self._clock = clock
        self._leases: dict[str, _Lease] = {}

    def begin(self, owner: str, seconds: float, key: str | None) -> Transaction:
        """Begin a transaction for a client."""
        transaction = self._manager.create_transaction(key=key)
        lease = self._leases[transaction.id] = _Lease(transaction, owner, seconds)
        self._renew(lease)
        return transaction

    def get(self, identifier: str, owner: str) -> Transaction:
        """Find a client's transaction, and renew its lease."""
        lease = self._leases.get(identifier)
        if lease is None or lease.owner != owner:
            raise TransactionSequenceError(
                f"there is no open transaction {identifier}",
                hint="it was ended, or its lease ran out and it was aborted: begin another",
            )
        self._renew(lease)
        return lease.transaction

    def end(self, identifier: str, owner: str) -> Transaction:
        """Take a transaction off its lease, to commit or abort it."""
        transaction = self.get(identifier, owner)
        timer = self._leases.pop(identifier).timer
        if timer is not None:
            timer.cancel()
        return transaction

    def _renew(self, lease: _Lease) -> None:
        if lease.timer is not None:
            lease.timer.cancel()
        deadline = self._clock.monotonic() + lease.seconds
        lease.timer = self._clock.call_at(deadline, lambda: self._expire(lease))

    def _expire(self, lease: _Lease) -> None:
        self._leases.pop(lease.transaction.id, None)
        self._manager.spawn(self._abort(lease.transaction))

    async def _abort(self, transaction: Transaction) -> None:
        if transaction.state is not TransactionState.ACTIVE:
            return
        log.warning(
            "the lease of transaction %s ran out: it is aborted",
            transaction.id,
            extra=_about(transaction),
        )
        try:
            await self._manager.transaction_abort(transaction)
        except LannerError as error:
            log.error(
                "the transaction %s could not be aborted: %s",
                transaction.id,
                error,
                extra=_about(transaction),
            )


def _about(transaction: Transaction) -> LogFields:
    return about(queues=(queue.name for queue in transaction.queues()), transaction=transaction.id)
