"""Making history rows."""

from __future__ import annotations

from lanner.model.history import HistoryEvent, HistoryRow
from lanner.model.message import Message

__all__ = ["history_row"]


def history_row(
    now: float,
    event: HistoryEvent,
    queue: str,
    message: Message,
    size: int,
    message_class: int,
    reason: str | None = None,
    peer: str | None = None,
    transaction_id: str | None = None,
    body: bytes | None = None,
) -> HistoryRow:
    """Make one row; the writer fills in the LSN."""
    stream = sequence = previous = None
    marks = message.transaction
    if marks is not None:
        transaction_id = transaction_id or marks.id
        if marks.stream:
            stream, sequence, previous = marks.stream, marks.sequence, marks.previous
    return HistoryRow(
        0,
        now,
        event.value,
        queue,
        str(message.id),
        message.lookup_id,
        message_class,
        message.priority,
        message.label or None,
        size,
        message.destination_queue or None,
        message.administration_queue or None,
        message.response_queue or None,
        stream,
        sequence,
        previous,
        transaction_id,
        reason,
        peer,
        body,
    )
