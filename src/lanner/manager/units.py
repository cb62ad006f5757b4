"""Doing whole operations: sends, moves and transactions, each as one set of changes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from lanner.manager.core import Core
from lanner.manager.delivery import Delivery
from lanner.manager.handles import OpenQueue
from lanner.manager.numbering import Numbering
from lanner.manager.outcomes import Outcome, Outcomes, check_key
from lanner.manager.positions import Position, PositionState
from lanner.manager.queues import OutgoingQueue, Queue
from lanner.manager.returning import Returning
from lanner.manager.sending import Accepted, Sending
from lanner.manager.transactions import Transaction, TransactionState
from lanner.model.errors import (
    InvalidPropertyError,
    MessageLockedError,
    MessageNotFoundError,
    QueueDeletedError,
    QuotaExceededError,
    TransactionSequenceError,
    TransactionUsageError,
)
from lanner.model.format_name import MulticastName
from lanner.model.message import Message
from lanner.store import Changes
from lanner.store.codec import MessageFlags

__all__ = ["Units"]

MAX_TRANSACTIONS = 10_000
"""Transactions open at once: each holds locks and messages in memory."""


class Units:
    """Begins, fills and ends units of work."""

    def __init__(
        self,
        core: Core,
        delivery: Delivery,
        returning: Returning,
        sending: Sending,
        outcomes: Outcomes,
        numbering: Numbering,
    ) -> None:
        self._core = core
        self._returning = returning
        self._numbering = numbering
        self._delivery = delivery
        self._sending = sending
        self._outcomes = outcomes
        self._open: dict[str, Transaction] = {}

    # Sending.

    async def send(
        self, handle: OpenQueue, messages: Sequence[Message], transaction: Transaction | None, key: str | None
    ) -> Outcome:
        """Send messages: in a transaction, under a key, or at once."""
        if transaction is not None:
            if key is not None:
                raise InvalidPropertyError("in a transaction the key is the transaction's, not the message's")
            return await self._send_in(transaction, handle, messages)
        if key is not None:
            return await self._outcomes.once(key, lambda: self._send_now(handle, messages, key))
        return await self._send_now(handle, messages, None)

    async def _send_now(self, handle: OpenQueue, messages: Sequence[Message], key: str | None) -> Outcome:
        changes = Changes()
        accepted = self._sending.accept(changes, handle, messages, None)
        self._sending.put(changes, accepted)
        outcome = _outcome(accepted)
        if key is not None:
            self._outcomes.remember(changes, key, outcome)
        await self._core.finish(changes)
        return outcome

    async def _send_in(
        self, transaction: Transaction, handle: OpenQueue, messages: Sequence[Message]
    ) -> Outcome:
        transaction.check_active()
        # What these changes would reserve, those of the commit reserve too.
        accepted = self._sending.accept(Changes(), handle, messages, transaction.id)
        transaction.add_sent(accepted)
        return _outcome(accepted)

    # Moving.

    async def move(
        self, handle: OpenQueue, lookup_id: int, target: Queue, transaction: Transaction | None
    ) -> None:
        """Move one message to another queue."""
        try:
            await self._move(handle, lookup_id, target, transaction)
        finally:
            # A subqueue that was made for a move that failed, or that only a commit will fill.
            self._core.drop_idle_subqueue(target)

    async def _move(
        self, handle: OpenQueue, lookup_id: int, target: Queue, transaction: Transaction | None
    ) -> None:
        queue = handle.for_receiving()
        if transaction is not None:
            transaction.check_active()
        position = queue.messages.get(lookup_id)
        if position is None:
            raise MessageNotFoundError(f"there is no message {lookup_id} in {queue.name}")
        if position.state is not PositionState.AVAILABLE:
            raise MessageLockedError(f"the message {lookup_id} is being received by somebody")
        self._check_move(position, target)
        queue.messages.lock(position)
        try:
            message = await self._core.load(position)
            target = self._core.standing(target)
            for other in (queue, target):
                if other.is_deleted:
                    raise QueueDeletedError(f"{other.name} was deleted")
            if transaction is not None:
                transaction.check_active()
                transaction.add_moved(position, message, target)
                return
        except BaseException:
            # Deleting its queue may have made it a dead letter meanwhile, which others may have locked.
            if position.queue is queue:
                self._delivery.release(position)
            raise
        changes = Changes()
        self._delivery.move(changes, position, message, target)
        await self._core.finish(changes)

    def _check_move(self, position: Position, target: Queue) -> None:
        if target is position.queue:
            raise InvalidPropertyError(f"the message is in {target.name} already")
        is_transactional = bool(position.flags & MessageFlags.TRANSACTIONAL)
        if is_transactional != target.properties.transactional:
            raise TransactionUsageError(
                f"the message and {target.name} disagree about being transactional",
                hint="receive it and send it again",
            )
        same_family = (target.parent or target) is (position.queue.parent or position.queue)
        if not same_family and not self._core.has_room(target, position.size):
            raise QuotaExceededError(f"{target.name} is full", of_queue=True)

    # Transactions.

    def begin(self, identifier: str | None, key: str | None) -> Transaction:
        """Create Transaction (3.1.7.1.8)."""
        if key is not None:
            check_key(key)
        if len(self._open) >= MAX_TRANSACTIONS:
            raise TransactionSequenceError(
                f"{MAX_TRANSACTIONS:,} transactions are open", hint="commit or abort some of them"
            )
        transaction = Transaction(identifier, key)
        if transaction.id in self._open:
            raise TransactionSequenceError(f"the transaction {transaction.id} is open already")
        self._open[transaction.id] = transaction
        return transaction

    async def commit(self, transaction: Transaction) -> Outcome:
        """Transaction Commit (3.1.4.4)."""
        if transaction.state is not TransactionState.ACTIVE:
            raise TransactionSequenceError(f"the transaction {transaction.id} is {transaction.state.value}")
        try:
            self._check_queues(transaction)
        except QueueDeletedError:
            await self.abort(transaction)
            raise
        transaction.state = TransactionState.COMMITTING
        if transaction.key is None:
            return await self._commit(transaction)
        return await asyncio.shield(self._core.begin(self._commit_once(transaction, transaction.key)))

    def _check_queues(self, transaction: Transaction) -> None:
        for queue in transaction.queues():
            # A subqueue that went because it was empty comes again.
            if (queue.parent or queue).is_deleted:
                raise QueueDeletedError(f"{queue.name} was deleted; the transaction is aborted")

    async def _commit_once(self, transaction: Transaction, key: str) -> Outcome:
        try:
            outcome = await self._outcomes.once(key, lambda: self._commit(transaction))
        except BaseException:
            if transaction.state is TransactionState.COMMITTING:
                self._undo(transaction)
                self._end(transaction, TransactionState.ABORTED)
            raise
        if outcome.is_replay:
            self._undo(transaction)
            transaction.is_replay = True
            self._end(transaction, TransactionState.COMMITTED)
        return outcome

    async def _commit(self, transaction: Transaction) -> Outcome:
        self._check_queues(transaction)
        changes = Changes()
        sent = [
            Accepted(queue, self._placed(changes, queue, messages), sizes)
            for queue, messages, sizes in transaction.marked()
        ]
        self._sending.put(changes, sent)
        received = [(position, message) for position, message, _ in transaction.received]
        self._delivery.take(changes, received, transaction_id=transaction.id)
        for position, message, _, target in transaction.moved:
            target = self._core.standing(target)
            self._delivery.move(changes, position, message, target, transaction_id=transaction.id)
        outcome = _outcome(sent)
        if transaction.key is not None:
            self._outcomes.remember(changes, transaction.key, outcome)
        changes.on_applied.append(lambda: self._end(transaction, TransactionState.COMMITTED))
        changes.on_failed.append(lambda: self._end(transaction, TransactionState.ABORTED))
        await self._core.finish(changes)
        return outcome

    def _placed(self, changes: Changes, queue: Queue, messages: Sequence[Message]) -> list[Message]:
        placed = [self._delivery.place(changes, message) for message in messages]
        if isinstance(queue, OutgoingQueue) and not isinstance(queue.destination, MulticastName):
            return self._numbering.number(changes, queue, placed)
        return placed

    async def abort(self, transaction: Transaction) -> None:
        """Transaction Abort (3.1.4.5)."""
        if transaction.state is not TransactionState.ACTIVE:
            raise TransactionSequenceError(f"the transaction {transaction.id} is {transaction.state.value}")
        self._end(transaction, TransactionState.ABORTED)
        self._sending.discard(transaction.sent)
        # What was in a queue that is being deleted goes with it.
        for position, _, queue, _ in transaction.moved:
            if not queue.is_deleted:
                self._delivery.release(position)
        changes = Changes()
        for position, message, queue in transaction.received:
            if not queue.is_deleted:
                self._returning.give_back(changes, position, message, transaction_id=transaction.id)
        await self._core.finish(changes)

    def abandon_all(self) -> None:
        """Abort everything without counting it: the manager stops, the messages are where they were."""
        for transaction in tuple(self._open.values()):
            if transaction.state is TransactionState.ACTIVE:
                self._end(transaction, TransactionState.ABORTED)

    def _undo(self, transaction: Transaction) -> None:
        self._sending.discard(transaction.sent)
        held = [(position, queue) for position, _, queue in transaction.received]
        held.extend((position, queue) for position, _, queue, _ in transaction.moved)
        for position, queue in held:
            if not queue.is_deleted:
                self._delivery.release(position)

    def _end(self, transaction: Transaction, state: TransactionState) -> None:
        transaction.state = state
        self._open.pop(transaction.id, None)


def _outcome(accepted: Sequence[Accepted]) -> Outcome:
    sent = [message for _, messages, _ in accepted for message in messages]
    return Outcome(
        message_ids=tuple([message.id for message in sent if message.id is not None]),
        lookup_ids=tuple([message.lookup_id for message in sent]),
    )
