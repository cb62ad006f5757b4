"""What a queue looks like from outside: a snapshot to show, compare and serialize."""

from __future__ import annotations

from uuid import UUID

import msgspec

from lanner.manager.naming import QueueTable
from lanner.manager.queues import OutgoingQueue, Queue
from lanner.model.queue import OutgoingState, QueueKind, QueueProperties
from lanner.model.security import describe
from lanner.model.transfer import Connection, IncomingTransfer, OutgoingTransfer

__all__ = ["QueueInfo", "describe_queue"]


MAX_SHOWN_STREAMS = 1_000
"""Streams into a queue that are shown: how many there are is up to their senders."""


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
    last_failure: str = ""
    """For an outgoing queue: why the latest attempts to connect failed, if they did."""
    next_hops: tuple[str, ...] = ()
    """For an outgoing queue: where its messages go first."""
    connections: tuple[Connection, ...] = ()
    """For an outgoing queue that is shown alone: the latest attempts to connect, the newest last."""
    transfer: OutgoingTransfer | None = None
    """For an outgoing queue that is shown alone: how far its stream has got, if there is one."""
    incoming: tuple[IncomingTransfer, ...] = ()
    """For a local queue that is shown alone: the streams that come in, the one used last first."""


def describe_queue(queue: Queue, table: QueueTable, *, is_alone: bool = False) -> QueueInfo:
    """Take a snapshot. One that is shown alone is shown with all its connections and streams."""
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
        last_failure=str(outgoing.last_failure or "") if outgoing else "",
        next_hops=outgoing.next_hops if outgoing else (),
        connections=tuple(outgoing.connections) if outgoing and is_alone else (),
        transfer=_transfer(outgoing) if outgoing and is_alone else None,
        incoming=_incoming(queue) if is_alone else (),
    )


def _transfer(queue: OutgoingQueue) -> OutgoingTransfer | None:
    transfer = queue.transfer
    return msgspec.structs.replace(transfer) if transfer != OutgoingTransfer() else None


def _incoming(queue: Queue) -> tuple[IncomingTransfer, ...]:
    streams = sorted(queue.incoming_transfers.values(), key=lambda stream: stream.last_access, reverse=True)
    return tuple(streams[:MAX_SHOWN_STREAMS])
