"""What the history records: one row per change in a message's life."""

from __future__ import annotations

from enum import StrEnum

import msgspec

__all__ = ["HISTORY_COLUMNS", "HistoryEvent", "HistoryRow"]


class HistoryEvent(StrEnum):
    """What happened to the message. New ones may be added; none changes its meaning."""

    SENT = "sent"
    """Accepted from a local application into ``queue``. If that queue is local, it has thereby arrived."""
    ARRIVED = "arrived"
    """Accepted from ``peer`` into a queue of this manager, its destination or one on the way."""
    RECEIVED = "received"
    """Taken out by an application."""
    RETURNED = "returned"
    """Put back in its place because the receiving transaction was aborted."""
    MOVED = "moved"
    """Put into ``queue``; ``reason`` names the queue it came from."""
    JOURNALED = "journaled"
    """Put, or copied, into a journal."""
    EXPIRED = "expired"
    """Deleted because its time ran out."""
    PURGED = "purged"
    """Deleted with everything else in its queue."""
    DELETED = "deleted"
    """Deleted because its queue was, or by an administrator."""
    DEAD_LETTERED = "dead-lettered"
    """Put into a dead-letter queue; ``class`` says why."""
    REJECTED = "rejected"
    """Not taken in, or not wanted by the receiver; ``reason`` says why."""
    DUPLICATE = "duplicate"
    """Not taken in because it was there already."""
    DISCARDED = "discarded"
    """Not kept where it was asked to be kept, as a journal over its quota."""
    TRANSMITTED = "transmitted"
    """Handed to ``peer``, which has taken it over."""
    RETRANSMITTED = "retransmitted"
    """Handed to ``peer`` again."""
    ACKNOWLEDGED = "acknowledged"
    """A receipt or acknowledgment about it came in; ``class`` says which."""


class HistoryRow(msgspec.Struct, array_like=True, gc=False):
    """One row. ``lsn`` is 0 until the writer gives it out; nothing changes after that."""

    lsn: int
    time: float
    event: str
    queue: str
    message_id: str
    lookup_id: int
    message_class: int
    priority: int
    label: str | None
    size: int
    destination: str | None
    administration: str | None
    response: str | None
    stream: int | None
    sequence: int | None
    previous: int | None
    transaction_id: str | None
    reason: str | None
    peer: str | None
    body: bytes | None


HISTORY_COLUMNS = HistoryRow.__struct_fields__
