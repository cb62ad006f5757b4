"""The index of a queue: one small object per message, in the order of the queue.

The order is the lookup identifier's (MS-MQDMPR 3.1.7.1.9): 7 less the priority in the high byte,
the manager's sequential number below. So a place in the queue is a number, the next message is the
next greater number, and a cursor stays valid when the message it stood on is gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import TYPE_CHECKING

import msgspec
from sortedcontainers import SortedList

from lanner.model.message import Message
from lanner.model.message_id import MessageId
from lanner.store.codec import MessageFlags, MessageRow, flags_of

if TYPE_CHECKING:
    from lanner.manager.queues import Queue

__all__ = [
    "MessageList",
    "Position",
    "PositionState",
    "index_row",
    "lookup_identifier",
    "position_of",
    "priority_of",
]

_SEQUENCE_BITS = 56

END = 1 << 63
"""Greater than every lookup identifier."""

PEEK_WHEN_LOCKED = MessageFlags.PEEK_WHEN_LOCKED.value
TRANSACTIONAL = MessageFlags.TRANSACTIONAL.value


def lookup_identifier(priority: int, sequential: int) -> int:
    """Combine priority and sequential number into a lookup identifier.

    Deviation: MS-MQDMPR 3.1.7.1.9 sets the high byte for transactional messages alone, which would
    let the identifier of a message with a higher priority contradict its place in the queue.
    """
    return ((7 - priority) << _SEQUENCE_BITS) | sequential


def priority_of(lookup_id: int) -> int:
    """Take the priority out of a lookup identifier."""
    return 7 - (lookup_id >> _SEQUENCE_BITS)


class PositionState(IntEnum):
    """MS-MQDMPR 3.1.1.11."""

    AVAILABLE = 0
    LOCKED = 1
    PURGE_PENDING = 2
    DELETED = 3


class Position(msgspec.Struct, gc=False, eq=False):
    """A message's place in a queue (MS-MQDMPR 3.1.1.11), without the message itself.

    A struct that the garbage collector does not visit: with a million of them, each collection would
    take a tenth of a second. ``MessageList.clear`` breaks the circle with the queue.
    """

    lookup_id: int
    queue: Queue
    id: MessageId
    correlation: MessageId | None
    size: int
    message_class: int
    flags: int
    expires: float | None
    aborts: int
    message: Message | None = None
    """Set for express messages, which are nowhere else."""
    state: PositionState = PositionState.AVAILABLE


class _IdentifierIndex:
    """Positions by an identifier that is nearly always unique: one needs no container of its own."""

    def __init__(self) -> None:
        self._found: dict[MessageId, Position | dict[int, Position]] = {}

    def add(self, identifier: MessageId, position: Position) -> None:
        known = self._found.get(identifier)
        if known is None:
            self._found[identifier] = position
        elif isinstance(known, dict):
            known[position.lookup_id] = position
        else:
            self._found[identifier] = {known.lookup_id: known, position.lookup_id: position}

    def discard(self, identifier: MessageId, position: Position) -> None:
        known = self._found.get(identifier)
        if isinstance(known, dict):
            known.pop(position.lookup_id, None)
            if known:
                return
        self._found.pop(identifier, None)

    def find(self, identifier: MessageId) -> list[Position]:
        known = self._found.get(identifier)
        if known is None:
            return []
        return list(known.values()) if isinstance(known, dict) else [known]


class MessageList:
    """The positions of one queue: all of them by number and by message, the available ones in order."""

    def __init__(self) -> None:
        self.bytes = 0
        """What is in the queue and on its way into it; kept by whoever charges the quotas."""
        self.transactional_count = 0
        self._positions: dict[int, Position] = {}
        self._available: SortedList[int] = SortedList()
        self._locked_visible: SortedList[int] = SortedList()
        """Locked messages that can be peeked at all the same."""
        self._by_id: _IdentifierIndex | None = None
        """Made when somebody first asks for a message by its identifier: most queues never need it."""
        self._by_correlation = _IdentifierIndex()

    def __len__(self) -> int:
        return len(self._positions)

    def __iter__(self) -> Iterator[Position]:
        """All positions, locked ones too, in the order of the queue."""
        for lookup_id in sorted(self._positions):
            position = self._positions.get(lookup_id)
            if position is not None:
                yield position

    @property
    def available_count(self) -> int:
        """How many messages could be received now."""
        return len(self._available)

    def load(self, positions: Iterable[Position]) -> None:
        """Fill an empty list with positions in ascending order, faster than one by one."""
        for position in positions:
            self._positions[position.lookup_id] = position
            self._index(position)
            if position.flags & TRANSACTIONAL:
                self.transactional_count += 1
        self._available.update(self._positions)

    def clear(self) -> None:
        """Forget everything: the manager ends."""
        self._positions.clear()
        self.transactional_count = 0
        self._available.clear()
        self._locked_visible.clear()
        self._by_id = None
        self._by_correlation = _IdentifierIndex()

    def add(self, position: Position) -> None:
        """Put an available position in its place."""
        lookup_id = position.lookup_id
        self._positions[lookup_id] = position
        position.state = PositionState.AVAILABLE
        self._available.add(lookup_id)
        if position.flags & TRANSACTIONAL:
            self.transactional_count += 1
        if self._by_id is not None or position.correlation is not None:
            self._index(position)

    def lock(self, position: Position) -> None:
        """Make a message invisible to others, unless its sender allows to peek at it meanwhile."""
        position.state = PositionState.LOCKED
        self._available.remove(position.lookup_id)
        if position.flags & PEEK_WHEN_LOCKED:
            self._locked_visible.add(position.lookup_id)

    def unlock(self, position: Position) -> None:
        """Give a locked message its place back."""
        position.state = PositionState.AVAILABLE
        self._available.add(position.lookup_id)
        self._locked_visible.discard(position.lookup_id)

    def mark_purged(self, position: Position) -> None:
        """Let a locked message go when it comes back; nobody sees it any more."""
        position.state = PositionState.PURGE_PENDING
        self._locked_visible.discard(position.lookup_id)

    def unmark_purged(self, position: Position) -> None:
        """Let a locked message be as before: the mark could not be stored."""
        if position.state is not PositionState.PURGE_PENDING:
            return
        position.state = PositionState.LOCKED
        if position.flags & PEEK_WHEN_LOCKED:
            self._locked_visible.add(position.lookup_id)

    def remove(self, position: Position) -> None:
        """Take a message out."""
        if position.state is PositionState.AVAILABLE:
            self._available.remove(position.lookup_id)
        self._locked_visible.discard(position.lookup_id)
        position.state = PositionState.DELETED
        del self._positions[position.lookup_id]
        if position.flags & TRANSACTIONAL:
            self.transactional_count -= 1
        if self._by_id is not None:
            self._by_id.discard(position.id, position)
        if position.correlation is not None:
            self._by_correlation.discard(position.correlation, position)

    def get(self, lookup_id: int) -> Position | None:
        """Find a position by lookup identifier, whatever its state."""
        return self._positions.get(lookup_id)

    def first(self, *, peek: bool = False) -> Position | None:
        """The first available message; for a peek, also one that is locked and may be seen."""
        return self.after(-1, peek=peek)

    def last(self, *, peek: bool = False) -> Position | None:
        """The last available message."""
        return self.before(END, peek=peek)

    def after(self, lookup_id: int, *, peek: bool = False) -> Position | None:
        """The first available message behind a place in the queue."""
        found = _next(self._available, lookup_id)
        if peek and self._locked_visible:
            found = min(found, _next(self._locked_visible, lookup_id))
        return self._positions.get(found)

    def before(self, lookup_id: int, *, peek: bool = False) -> Position | None:
        """The last available message before a place in the queue."""
        found = _previous(self._available, lookup_id)
        if peek and self._locked_visible:
            found = max(found, _previous(self._locked_visible, lookup_id))
        return self._positions.get(found)

    def available(self, limit: int, after: int = -1) -> list[Position]:
        """Up to ``limit`` available messages in order, from behind a place in the queue."""
        start = self._available.bisect_right(after)
        return [self._positions[lookup_id] for lookup_id in self._available[start : start + limit]]

    def with_id(self, identifier: MessageId) -> list[Position]:
        """The positions that hold this message: usually one, more after a fan-out into one queue."""
        if self._by_id is None:
            self._by_id = _IdentifierIndex()
            for position in self._positions.values():
                self._by_id.add(position.id, position)
        return self._by_id.find(identifier)

    def with_correlation(self, identifier: MessageId) -> list[Position]:
        """The positions of the messages correlated with this one, in the order of arrival."""
        return self._by_correlation.find(identifier)

    def _index(self, position: Position) -> None:
        if self._by_id is not None:
            self._by_id.add(position.id, position)
        if position.correlation is not None:
            self._by_correlation.add(position.correlation, position)


def _next(places: SortedList[int], place: int) -> int:
    index = places.bisect_right(place)
    return places[index] if index < len(places) else END


def _previous(places: SortedList[int], place: int) -> int:
    index = places.bisect_left(place)
    return places[index - 1] if index else -1


def position_of(queue: Queue, message: Message, size: int, expires: float | None) -> Position:
    """Make the place of a message in a queue."""
    assert message.id is not None
    return Position(
        message.lookup_id,
        queue,
        message.id,
        message.correlation_id,
        size,
        message.message_class,
        flags_of(message),
        expires,
        message.abort_count,
    )


def index_row(position: Position, arrived: float) -> MessageRow:
    """Make the row of the store's index."""
    return (
        position.lookup_id,
        position.queue.id,
        position.id,
        position.correlation,
        position.size,
        position.message_class,
        position.flags,
        arrived,
        position.expires,
        position.aborts,
    )
