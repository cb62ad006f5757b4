"""Units of work over several queues (MS-MQDMPR 3.1.1.13, 3.1.1.14, 3.1.4.3 to 3.1.4.5).

===========  ==========================================  =======================================
state        what is in it                               next
===========  ==========================================  =======================================
ACTIVE       sent messages, charged but in no queue;     commit: COMMITTING; abort: ABORTED
             received and moved ones, locked
COMMITTING   handed to the store as one set of changes   COMMITTED, or ABORTED if the store fails
COMMITTED    all of it is true                           -
ABORTED      none of it is                               -
===========  ==========================================  =======================================
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple
from uuid import uuid4

from msgspec.structs import replace

from lanner.manager.positions import Position
from lanner.manager.queues import Queue
from lanner.manager.sending import Accepted
from lanner.model.errors import TransactionSequenceError
from lanner.model.message import Message

__all__ = ["Moved", "Received", "Transaction", "TransactionState"]

MAX_OPERATIONS = 100_000
"""Operations in one transaction: all of them are in memory until it ends."""


class TransactionState(Enum):
    """Where a transaction stands."""

    ACTIVE = "active"
    COMMITTING = "committing"
    COMMITTED = "committed"
    ABORTED = "aborted"


class Received(NamedTuple):
    """A message that the transaction takes."""

    position: Position
    message: Message
    queue: Queue
    """Where it was locked: when that is deleted, the position may belong to a dead-letter queue."""


class Moved(NamedTuple):
    """A message that the transaction moves."""

    position: Position
    message: Message
    queue: Queue
    """Where it was locked."""
    target: Queue


class Transaction:
    """One unit of work. Made by ``create_transaction``, ended by commit or abort."""

    def __init__(self, identifier: str | None = None, key: str | None = None) -> None:
        self.id = identifier or str(uuid4())
        self.key = key
        self.state = TransactionState.ACTIVE
        self.sent: list[Accepted] = []
        self.received: list[Received] = []
        self.moved: list[Moved] = []
        self.operations = 0
        self.is_replay = False
        """Whether the commit found that this key's transaction had been committed before."""

    def __repr__(self) -> str:
        return f"<Transaction {self.id} {self.state.value}>"

    def check_active(self) -> None:
        """Refuse work in a transaction that has ended, or has grown beyond reason."""
        if self.state is not TransactionState.ACTIVE:
            raise TransactionSequenceError(f"the transaction {self.id} is {self.state.value}")
        if self.operations >= MAX_OPERATIONS:
            raise TransactionSequenceError(
                f"the transaction {self.id} has {MAX_OPERATIONS:,} operations",
                hint="commit it, begin another",
            )

    def add_received(self, positions: Sequence[Position], messages: Sequence[Message]) -> None:
        """Note messages that were locked for this transaction."""
        queues = [position.queue for position in positions]
        self.received.extend(map(Received, positions, messages, queues))
        self.operations += len(positions)

    def add_sent(self, accepted: Sequence[Accepted]) -> None:
        """Note messages that are sent when this transaction is committed."""
        self.sent.extend(accepted)
        self.operations += sum(len(messages) for _, messages, _ in accepted)

    def add_moved(self, position: Position, message: Message, target: Queue) -> None:
        """Note a message that was locked to be moved."""
        self.moved.append(Moved(position, message, position.queue, target))
        self.operations += 1

    def queues(self) -> set[Queue]:
        """Every queue that the commit will change."""
        queues = {queue for queue, _, _ in self.sent}
        queues.update(received.queue for received in self.received)
        for moved in self.moved:
            queues.update((moved.queue, moved.target))
        return queues

    def marked(self) -> list[Accepted]:
        """The sent messages by queue, with the first and the last to each queue marked (3.1.4.3).

        Decision: the marks are given for each destination, where the receiver can make use of them.
        """
        together: dict[Queue, Accepted] = {}
        for queue, messages, sizes in self.sent:
            known = together.setdefault(queue, Accepted(queue, [], []))
            known.messages.extend(messages)
            known.sizes.extend(sizes)
        for _, messages, _ in together.values():
            if messages:
                messages[0] = _mark(messages[0], first=True)
                messages[-1] = _mark(messages[-1], last=True)
        return list(together.values())


def _mark(message: Message, *, first: bool = False, last: bool = False) -> Message:
    marks = message.transaction
    assert marks is not None
    return replace(message, transaction=replace(marks, first=marks.first or first, last=marks.last or last))
