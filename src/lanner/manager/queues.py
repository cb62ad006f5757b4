"""Queues as they live in a running manager (MS-MQDMPR 3.1.1.2 and 3.1.1.3)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING
from uuid import UUID

import msgspec

from lanner.manager.positions import MessageList
from lanner.manager.waiting import WaitingReaders
from lanner.model.format_name import FormatName, parse_format_name
from lanner.model.message import INFINITE
from lanner.model.path_name import PathName, parse_path_name
from lanner.model.queue import OutgoingState, QueueKind, QueueProperties
from lanner.model.security import SecurityDescriptor
from lanner.model.transfer import Connection, ConnectionStatus, IncomingTransfer, OutgoingTransfer
from lanner.store.changes import QueueRow

if TYPE_CHECKING:
    from lanner.manager.handles import OpenQueue

__all__ = ["OutgoingQueue", "Queue", "QueueRecord", "queue_from_row"]

KILOBYTE = 1024

MAX_CONNECTIONS = 16
"""Attempts to connect that are remembered."""


class QueueRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the store keeps of a queue beside its name and security descriptor."""

    identifier: UUID
    number: int = 0
    """PrivateQueueNumber, for private queues."""
    created: float = 0.0
    modified: float = 0.0
    properties: QueueProperties = QueueProperties()
    on_hold: bool = False
    """Whether an outgoing queue is paused."""


class Queue:
    """One queue: what it is, and what is in it."""

    def __init__(
        self,
        queue_id: int,
        kind: QueueKind,
        path: PathName | None,
        record: QueueRecord,
        security: SecurityDescriptor | None,
        parent: Queue | None = None,
    ) -> None:
        self.id = queue_id
        self.kind = kind
        self._path = path
        self.record = record
        self.security = security
        self.parent = parent
        self.journal: Queue | None = None
        self.subqueues: dict[str, Queue] = {}
        self.messages = MessageList()
        self.handles: set[OpenQueue] = set()
        self.readers = WaitingReaders(self)
        self.name = self._name()
        """What the queue is called in the store, the history and messages to people."""
        self.key = self.name.casefold()
        """The name in the spelling to compare by."""
        self.is_read_only = kind in (QueueKind.JOURNAL, QueueKind.SYSTEM)
        """Whether only the manager itself puts messages in. What is in there has ended already:
        no more journaling, acknowledging or expiring."""
        self.is_deleted = False
        self.is_stored = False
        """Whether the store has its row: until then, whoever puts a message in puts the row in too."""
        self.incoming_transfers: dict[UUID, IncomingTransfer] = {}
        """The streams that come in, by their sender."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    @property
    def path(self) -> PathName:
        """The path name, with ``.`` for the computer. Outgoing queues have none."""
        assert self._path is not None
        return self._path

    @property
    def properties(self) -> QueueProperties:
        """What an administrator has set. A journal and a subqueue follow their queue."""
        return self.record.properties if self.parent is None else self.parent.properties

    def quota_bytes(self) -> int | None:
        """How many bytes may be in the queue, if that is limited."""
        limit = self.properties.journal_quota if self.kind is QueueKind.JOURNAL else self.properties.quota
        return None if limit == INFINITE else limit * KILOBYTE

    def bytes_with_subqueues(self) -> int:
        """What counts against the quota: a queue and its subqueues share one."""
        top = self.parent if self.kind is QueueKind.SUBQUEUE and self.parent is not None else self
        return top.messages.bytes + sum(sub.messages.bytes for sub in top.subqueues.values())

    def _name(self) -> str:
        return str(self.path)

    def row(self) -> QueueRow:
        """What the store keeps."""
        return (
            self.id,
            self.kind.value,
            self.name,
            self.parent.id if self.parent is not None else None,
            msgspec.json.encode(self.record),
            self.security.to_bytes() if self.security is not None else None,
        )


class OutgoingStream:
    """Which numbers the transactional messages of an outgoing queue get next (MC-MQSRM 3.1.1.2)."""

    __slots__ = ("identifier", "pending", "resets", "sequence")

    def __init__(self) -> None:
        self.identifier = 0
        self.sequence = 0
        """The number of the last message."""
        self.pending = 0
        """Messages that have their numbers and are not in the queue yet."""
        self.resets: dict[int, tuple[int, int]] = {}
        """Streams that were begun anew: the one they became, and what it takes off their numbers."""


class OutgoingQueue(Queue):
    """Messages on their way to another machine."""

    def __init__(self, queue_id: int, destination: FormatName, record: QueueRecord) -> None:
        self.destination = destination
        super().__init__(queue_id, QueueKind.OUTGOING, None, record, None)
        self.state = OutgoingState.ON_HOLD if record.on_hold else OutgoingState.INACTIVE
        self.next_hops: tuple[str, ...] = ()
        self.peer = ""
        """The address that it is connected to, or was last."""
        self.served_by: str | None = None
        """The protocol that takes messages from here; None says that nothing does."""
        self.connections: deque[Connection] = deque(maxlen=MAX_CONNECTIONS)
        """The latest attempts to connect, the newest last."""
        self.transfer = OutgoingTransfer()
        self.stream = OutgoingStream()

    def _name(self) -> str:
        return str(self.destination)

    @property
    def is_on_hold(self) -> bool:
        """Whether an administrator has paused it."""
        return self.state is OutgoingState.ON_HOLD

    @property
    def last_failure(self) -> Connection | None:
        """The last attempt to connect that failed, if none has succeeded since."""
        for connection in reversed(self.connections):
            if connection.status.is_failure:
                return connection
            if connection.status is ConnectionStatus.ESTABLISHED:
                break
        return None

    def explain(self) -> str:
        """Say in words how it stands with the destination."""
        if self.is_on_hold:
            return "paused: resume it to let messages leave"
        if self.served_by is None:
            return "inactive: no protocol that serves this kind of name is running, so messages wait here"
        words = f"{self.state.value}, served by {self.served_by}"
        failure = self.last_failure
        return words if failure is None else f"{words}; the last attempt failed: {failure}"


def queue_from_row(row: QueueRow, known: dict[int, Queue]) -> Queue:
    """Bring a queue back from the store."""
    queue_id, kind_text, name, parent_id, record_json, security = row
    kind = QueueKind(kind_text)
    record = msgspec.json.decode(record_json, type=QueueRecord)
    if kind is QueueKind.OUTGOING:
        return OutgoingQueue(queue_id, parse_format_name(name), record)
    descriptor = SecurityDescriptor.from_bytes(security) if security is not None else None
    parent = known[parent_id] if parent_id is not None else None
    queue = Queue(queue_id, kind, parse_path_name(name), record, descriptor, parent)
    if parent is not None:
        attach(queue, parent)
    return queue


def attach(queue: Queue, parent: Queue) -> None:
    """Tie a journal or subqueue to its queue."""
    if queue.kind is QueueKind.JOURNAL:
        parent.journal = queue
    else:
        parent.subqueues[queue.path.subqueue.casefold()] = queue


def family(queue: Queue) -> Iterator[Queue]:
    """A queue with its subqueues and journal."""
    yield queue
    yield from tuple(queue.subqueues.values())
    if queue.journal is not None:
        yield queue.journal
