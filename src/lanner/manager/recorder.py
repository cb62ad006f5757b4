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
    *,
    reason: str | None = None,
    peer: str | None = None,
    transaction_id: str | None = None,
    message_class: int | None = None,
    body: bytes | None = None,
) -> HistoryRow:
    """Make one row; the writer fills in the LSN."""
    marks = message.transaction
    return HistoryRow(
        0,
        now,
        event.value,
        queue,
        str(message.id),
        message.lookup_id,
        message.message_class if message_class is None else message_class,
        message.priority,
        message.label or None,
        message.size,
        message.destination_queue or None,
        message.administration_queue or None,
        message.response_queue or None,
        (marks.stream or None) if marks else None,
        (marks.sequence or None) if marks else None,
        marks.previous if marks and marks.sequence else None,
        transaction_id or (marks.id if marks else None),
        reason,
        peer,
        body,
    )
