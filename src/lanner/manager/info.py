"""What a queue looks like from outside: a snapshot to show, compare and serialize."""

from __future__ import annotations

from uuid import UUID

import msgspec

from lanner.manager.naming import QueueTable
from lanner.manager.queues import OutgoingQueue, Queue
from lanner.model.queue import OutgoingState, QueueKind, QueueProperties
from lanner.model.security import describe

__all__ = ["QueueInfo", "describe_queue"]


class QueueInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One queue at one moment."""

    path: str
    """The path name with ``.`` for the computer; for an outgoing queue its format name."""
    format_name: str
    kind: QueueKind
    identifier: UUID
    properties: QueueProperties
    created: float
    modified: float
    messages: int
    bytes: int
    available_messages: int
    """Those that no transaction or receive in progress holds."""
    journal_messages: int = 0
    journal_bytes: int = 0
    subqueues: tuple[str, ...] = ()
    open_handles: int = 0
    waiting_readers: int = 0
    security: str = ""
    """The security descriptor as SDDL."""
    access: tuple[str, ...] = ()
    """Who may do what, in words."""
    state: OutgoingState | None = None
    """For an outgoing queue: how it stands with its destination."""
    explanation: str = ""
    """For an outgoing queue: the state in words."""


def describe_queue(queue: Queue, table: QueueTable) -> QueueInfo:
    """Take a snapshot."""
    journal = queue.journal
    outgoing = queue if isinstance(queue, OutgoingQueue) else None
    return QueueInfo(
        path=queue.name,
        format_name=table.format_name(queue),
        kind=queue.kind,
        identifier=queue.record.identifier,
        properties=queue.properties,
        created=queue.record.created,
        modified=queue.record.modified,
        messages=len(queue.messages),
        bytes=queue.messages.bytes,
        available_messages=queue.messages.available_count,
        journal_messages=len(journal.messages) if journal else 0,
        journal_bytes=journal.messages.bytes if journal else 0,
        subqueues=tuple(sorted(sub.path.subqueue for sub in queue.subqueues.values())),
        open_handles=len(queue.handles),
        waiting_readers=len(queue.readers),
        security=queue.security.to_sddl() if queue.security else "",
        access=tuple(describe(queue.security)) if queue.security else (),
        state=outgoing.state if outgoing else None,
        explanation=outgoing.explain() if outgoing else "",
    )
