"""What every part of the manager shares: the store, the clock, the queues, the quotas, the numbers."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID, uuid4

from lanner.manager.clock import Clock
from lanner.manager.events import Events, QueueCreated
from lanner.manager.naming import AnyName, QueueTable
from lanner.manager.positions import Position
from lanner.manager.queues import KILOBYTE, OutgoingQueue, Queue, QueueRecord, attach
from lanner.manager.settings import ManagerSettings
from lanner.model.errors import (
    MessageNotFoundError,
    QueueDeletedError,
    QueueNotFoundError,
    QuotaExceededError,
    StoppedError,
    UnsupportedOperationError,
)
from lanner.model.format_name import (
    ConnectorName,
    DistributionListName,
    FormatName,
    MachineName,
    MultipleName,
    PublicName,
)
from lanner.model.log_fields import LogFields
from lanner.model.message import INFINITE, Message
from lanner.model.path_name import PathName
from lanner.model.queue import QueueKind
from lanner.store import Changes, Store

if TYPE_CHECKING:
    from lanner.manager.enterprise import EnterpriseView

__all__ = ["Core"]

log = logging.getLogger(__name__)

T = TypeVar("T")

SEQUENTIAL_BLOCK = 1 << 16
"""Numbers reserved in the store at once. A restart skips what is left of a block, and a message identifier
has 32 bits for its number: they last for 65,536 restarts."""

MAX_BACKLOG_ROWS = 50_000
"""History rows of express messages that may wait for the writer before senders wait with them."""


MAX_OUTGOING_QUEUES = 10_000
"""Peers can make them, with the queues that they want receipts in."""


class MessageCache:
    """The messages that were sent last, so that receiving them soon needs no read."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._bytes = 0
        self._messages: OrderedDict[int, Message] = OrderedDict()

    def put(self, message: Message, size: int) -> None:
        """Remember a message, and forget the oldest beyond the limit."""
        self._messages[message.lookup_id] = message
        self._bytes += size
        while self._bytes > self._limit:
            _, oldest = self._messages.popitem(last=False)
            self._bytes -= oldest.size

    def get(self, lookup_id: int) -> Message | None:
        """Find a message."""
        return self._messages.get(lookup_id)

    def pop(self, lookup_id: int) -> None:
        """Forget a message that is gone or has changed."""
        message = self._messages.pop(lookup_id, None)
        if message is not None:
            self._bytes -= message.size


class Core:
    """The state of a running manager. Everything in it belongs to the event loop."""

    def __init__(self, store: Store, settings: ManagerSettings, clock: Clock) -> None:
        self.store = store
        self.settings = settings
        self.clock = clock
        self.queues = QueueTable(store.identity.name, store.identity.identifier, settings.aliases)
        self.events = Events()
        self.cache = MessageCache(settings.cache_bytes)
        self.total_bytes = 0
        """What counts against the manager's quota."""
        self.is_throttled = False
        self.is_running = True
        self.enterprise: EnterpriseView | None = None
        """The directory, where there is one."""
        self._next_sequential = store.sequential
        self._reserved_sequential = store.sequential
        self._durable_sequential = store.sequential
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def machine_id(self) -> UUID:
        """The manager's own identifier."""
        return self.queues.machine_id

    def check_running(self) -> None:
        """Refuse work after the end."""
        if not self.is_running:
            raise StoppedError("the queue manager is stopped", hint="open it again")

    def spawn(self, work: Coroutine[None, None, None], fields: Callable[[], LogFields] = dict) -> None:
        """Do something beside the caller; :meth:`settle` waits for it.

        A failure is logged with these fields. They are made then, as they may be long.
        """
        self.begin(work).add_done_callback(partial(_log_failure, fields))

    def begin(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Do something to its end, whatever becomes of the caller; :meth:`settle` waits for it."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    async def settle(self) -> None:
        """Wait for everything that was spawned."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # the caller may be gone

    # Numbers.

    def take_numbers(self, changes: Changes, count: int) -> int:
        """Give out numbers (SequentialID), reserving a block ahead in the store. Returns the first."""
        first = self._next_sequential
        self._next_sequential += count
        if self._next_sequential > self._durable_sequential:
            self._reserve(changes)
        return first

    def _reserve(self, changes: Changes) -> None:
        # Until a reservation is known to be durable all changes carry it: any of them may be the first kept.
        if self._next_sequential > self._reserved_sequential:
            self._reserved_sequential = self._next_sequential + SEQUENTIAL_BLOCK
        row = ("sequential", self._reserved_sequential)
        if row not in changes.meta:
            changes.meta.append(row)
            changes.on_applied.append(partial(self._rely_on_reservation, self._reserved_sequential))

    def _rely_on_reservation(self, reserved: int) -> None:
        self._durable_sequential = max(self._durable_sequential, reserved)

    # Quotas.

    def charge(self, queue: Queue, size: int) -> None:
        """Count a message in, or refuse it (MS-MQDMPR 3.1.7.1.9)."""
        if self.is_throttled:
            raise QuotaExceededError("the queue manager takes in nothing at the moment", of_queue=False)
        if self.total_bytes + size > self.settings.quota * KILOBYTE and self.settings.quota != INFINITE:
            raise QuotaExceededError(
                f"all queues hold {self.total_bytes:,} bytes; the quota is {self.settings.quota:,} KB",
                of_queue=False,
                hint="receive or purge messages, or raise the quota",
            )
        if not self.has_room(queue, size):
            raise QuotaExceededError(
                f"{queue.name} holds {queue.bytes_with_subqueues():,} bytes; "
                f"its quota is {queue.properties.quota:,} KB",
                of_queue=True,
                hint="receive or purge messages, or raise the queue's quota",
            )
        self.count_in(queue, size)

    def has_room(self, queue: Queue, size: int) -> bool:
        """Whether a queue's own quota admits a message."""
        quota = queue.quota_bytes()
        return quota is None or queue.bytes_with_subqueues() + size <= quota

    def count_in(self, queue: Queue, size: int) -> None:
        """Count a message in, unconditionally."""
        queue.messages.bytes += size
        self.total_bytes += size

    def count_out(self, queue: Queue, size: int) -> None:
        """Count a message out."""
        queue.messages.bytes -= size
        self.total_bytes -= size

    # Queues.

    def target(self, name: AnyName) -> Queue:
        """Find the queue that a message to this name goes into, making an outgoing one if need be."""
        parsed = self.queues.parse(name)
        queue = self.queues.find(parsed) or self.public_here(parsed)
        if queue is not None:
            return queue
        if isinstance(parsed, PathName) or self.queues.names_local_queue(parsed):
            raise self.queues.not_found(parsed)
        if isinstance(parsed, MachineName):
            raise UnsupportedOperationError(f"{parsed} cannot be sent to")
        if parsed.is_read_only or parsed.subqueue:
            raise UnsupportedOperationError(f"{parsed} is a journal, dead-letter queue or subqueue elsewhere")
        if isinstance(parsed, ConnectorName):
            raise QueueNotFoundError(f"there is no connector for {parsed} on this machine")
        if isinstance(parsed, DistributionListName):
            raise UnsupportedOperationError(f"{parsed} cannot be resolved: distribution lists are not read")
        if isinstance(parsed, MultipleName):
            raise UnsupportedOperationError(f"{parsed} names several queues where one is needed")
        if self.queues.outgoing_count >= MAX_OUTGOING_QUEUES:
            raise QuotaExceededError(
                f"there are {MAX_OUTGOING_QUEUES:,} outgoing queues already",
                of_queue=False,
                hint="delete those that lead nowhere",
            )
        now = self.clock.time()
        record = QueueRecord(identifier=uuid4(), created=now, modified=now)
        outgoing = OutgoingQueue(self.queues.next_id(), parsed, record)
        if isinstance(parsed, PublicName):
            outgoing.next_hops = self.resolve_public(parsed)
        self.queues.add(outgoing)
        self.events.publish(QueueCreated(outgoing))
        return outgoing

    def public_here(self, name: FormatName | PathName) -> Queue | None:
        """A public queue of this machine whose identifier only the directory knows."""
        if not isinstance(name, PublicName) or self.enterprise is None:
            return None
        found = self.enterprise.find_queue(name)
        if found is None or not self.enterprise.is_here(found):
            return None
        return self.queues.get(self.enterprise.local_path(found))

    def resolve_public(self, name: PublicName) -> tuple[str, ...]:
        """Where a message to a public queue elsewhere goes next."""
        if self.enterprise is None or self.enterprise.map is None:
            raise UnsupportedOperationError(
                f"{name} cannot be resolved: no directory is configured", hint="set directory.file"
            )
        found = self.enterprise.find_queue(name)
        if found is None:
            raise QueueNotFoundError(f"the directory has no public queue {name}")
        return self.enterprise.hops_to(found)

    def subqueue(self, queue: Queue, name: str) -> Queue:
        """Find or make a subqueue; it is there as long as something is in it or has it open."""
        known = queue.subqueues.get(name.casefold())
        if known is not None:
            return known
        if queue.is_deleted:
            raise QueueDeletedError(f"{queue.name} was deleted")
        now = self.clock.time()
        path = replace(queue.path, subqueue=name)
        record = QueueRecord(identifier=uuid4(), created=now, modified=now)
        subqueue = Queue(self.queues.next_id(), QueueKind.SUBQUEUE, path, record, None, queue)
        attach(subqueue, queue)
        self.queues.add(subqueue)
        return subqueue

    def standing(self, queue: Queue) -> Queue:
        """The queue itself; for a subqueue that went because it was empty, the one of its name now."""
        parent = queue.parent
        if queue.is_deleted and queue.kind is QueueKind.SUBQUEUE and parent and not parent.is_deleted:
            return self.subqueue(parent, queue.path.subqueue)
        return queue

    def drop_idle_subqueue(self, queue: Queue) -> None:
        """Let a subqueue go that nothing is in, nothing is on its way to, and nobody has open."""
        if queue.kind is not QueueKind.SUBQUEUE or queue.is_deleted:
            return
        if queue.messages or queue.messages.bytes or queue.handles:
            return
        assert queue.parent is not None
        queue.is_deleted = True
        key = queue.path.subqueue.casefold()
        if queue.parent.subqueues.get(key) is queue:
            del queue.parent.subqueues[key]
        self.queues.remove(queue)
        if queue.is_stored and self.is_running:
            changes = Changes()
            changes.queue_deletes.append((queue.id,))
            self.store.submit(changes)

    def store_queue(self, changes: Changes, queue: Queue) -> None:
        """Put a queue's row into the changes."""
        changes.queues.append(queue.row())
        if not queue.is_stored:
            changes.on_applied.append(lambda: setattr(queue, "is_stored", True))

    # Messages.

    async def load(self, position: Position) -> Message:
        """Read the message at a position."""
        return (await self.load_all((position,)))[0]

    async def load_all(self, positions: Sequence[Position], *, bodies: bool = True) -> list[Message]:
        """Read the messages at positions, with one query for those that are not in memory."""
        messages = [position.message or self.cache.get(position.lookup_id) for position in positions]
        missing = [
            position.lookup_id
            for position, message in zip(positions, messages, strict=True)
            if message is None
        ]
        if missing:
            found = await self.store.messages(missing, bodies=bodies)
            messages = [
                message or found.get(position.lookup_id)
                for position, message in zip(positions, messages, strict=True)
            ]
        complete = [message for message in messages if message is not None]
        if len(complete) != len(positions):
            raise MessageNotFoundError("the message was removed while it was being read")
        return complete

    # Ending an operation.

    async def finish(self, changes: Changes) -> None:
        """Make an operation's changes true. Express messages do not wait for the disk."""
        if changes.is_durable() or self.store.backlog_rows > MAX_BACKLOG_ROWS:
            await self.store.commit(changes)
            return
        applied, changes.on_applied, changes.on_failed = changes.on_applied, [], []
        for callback in applied:
            callback()
        if changes.history:
            self.store.submit(changes)


def _log_failure(fields: Callable[[], LogFields], task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        log.error("background work failed", exc_info=task.exception(), extra=fields())
