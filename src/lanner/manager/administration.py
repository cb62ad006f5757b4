"""Creating, changing, deleting and purging queues (MS-MQDMPR 3.1.7.1.3, 4 and 7)."""

from __future__ import annotations

from functools import partial
from uuid import uuid4

from lanner.manager.core import Core
from lanner.manager.delivery import DROP_CHUNK, Delivery
from lanner.manager.events import (
    Event,
    OutgoingQueuePaused,
    OutgoingQueueResumed,
    QueueChanged,
    QueueCreated,
    QueueDeleted,
    StreamResendWanted,
)
from lanner.manager.naming import AnyName
from lanner.manager.positions import PositionState
from lanner.manager.queues import OutgoingQueue, Queue, QueueRecord, attach, family
from lanner.model.codes import MessageClass
from lanner.model.errors import (
    InvalidNameError,
    InvalidPropertyError,
    QueueDeletedError,
    QueueExistsError,
    UnsupportedOperationError,
)
from lanner.model.history import HistoryEvent
from lanner.model.names import QueueKind as PathKind
from lanner.model.path_name import PathName, parse_path_name
from lanner.model.queue import OutgoingState, QueueKind, QueueProperties
from lanner.model.security import SecurityDescriptor, default_queue_descriptor
from lanner.store import Changes

__all__ = ["Administration", "SYSTEM_QUEUES"]

SYSTEM_QUEUES = (
    (r".\system$;journal", False),
    (r".\system$;deadletter", False),
    (r".\system$;deadxact", True),
    (r".\private$\order_queue$", False),
)
"""Made with the store; whether each is transactional."""


class Administration:
    """What an administrator does to queues."""

    def __init__(self, core: Core, delivery: Delivery) -> None:
        self._core = core
        self._delivery = delivery

    async def create(
        self, name: str | PathName, properties: QueueProperties, security: SecurityDescriptor | None
    ) -> Queue:
        """Create Queue (3.1.7.1.3)."""
        path = self._own_path(name)
        if path.subqueue or path.journal or path.kind is PathKind.SYSTEM:
            raise InvalidNameError(
                f"{path} is a journal, subqueue or system queue",
                hint="create the queue itself: these come with it",
            )
        properties.check()
        if self._core.queues.is_taken(path):
            raise QueueExistsError(
                f"there is a queue {path} already", hint="change it, or choose another name"
            )
        kind = QueueKind.PRIVATE if path.is_private else QueueKind.PUBLIC
        queue = self._make(path, kind, properties, security or default_queue_descriptor())
        changes = Changes()
        for member in family(queue):
            self._core.store_queue(changes, member)
            # Known at once, so that a second create of the same name fails; gone again if the disk is full.
            self._core.queues.add(member)
            changes.on_failed.append(partial(self._core.queues.remove, member))
        changes.on_applied.append(lambda: self._core.events.publish(QueueCreated(queue)))
        await self._core.finish(changes)
        return queue

    async def create_system_queues(self) -> None:
        """Make the queues that every manager has (3.1.3), where they are not there yet."""
        changes = Changes()
        for name, transactional in SYSTEM_QUEUES:
            path = parse_path_name(name)
            if self._core.queues.find(path) is None:
                properties = QueueProperties(transactional=transactional)
                queue = self._make(path, QueueKind.SYSTEM, properties, default_queue_descriptor())
                self._core.store_queue(changes, queue)
                self._core.queues.add(queue)
        await self._core.finish(changes)

    async def change(
        self, queue: Queue, properties: QueueProperties | None, security: SecurityDescriptor | None
    ) -> None:
        """Give a queue other properties or another security descriptor."""
        self._check_own(queue, "changed")
        old_record, old_security = queue.record, queue.security
        properties = properties if properties is not None else old_record.properties
        properties.check()
        if properties.transactional != old_record.properties.transactional:
            raise InvalidPropertyError(
                f"whether {queue.name} is transactional cannot be changed",
                hint="create another queue and move the messages",
            )
        queue.record = QueueRecord(
            identifier=old_record.identifier,
            number=old_record.number,
            created=old_record.created,
            modified=self._core.clock.time(),
            properties=properties,
        )
        queue.security = security or old_security
        changes = Changes()
        self._core.store_queue(changes, queue)

        def undo() -> None:
            queue.record, queue.security = old_record, old_security

        changes.on_failed.append(undo)
        changes.on_applied.append(lambda: self._core.events.publish(QueueChanged(queue)))
        await self._core.finish(changes)

    async def delete(self, queue: Queue) -> None:
        """Delete Queue (3.1.7.1.4): its messages go with the reason NACK_QUEUE_DELETED."""
        if queue.kind is QueueKind.SYSTEM or queue.parent is not None:
            raise UnsupportedOperationError(f"{queue.name} cannot be deleted: it belongs to the manager")
        if queue.is_deleted:
            raise QueueDeletedError(f"{queue.name} is being deleted already")
        members = list(family(queue))
        for member in members:
            member.is_deleted = True
            member.readers.cancel(QueueDeletedError(f"{queue.name} was deleted"))
        try:
            # What was sent before is on its way in; after this commit it is there, and nothing more comes.
            await self._core.store.commit(Changes())
            for member in members:
                await self._drop_everything(member)
        except BaseException:
            _undelete(members)
            raise
        changes = Changes()
        changes.queue_deletes.extend((member.id,) for member in members)
        changes.on_applied.extend(partial(self._core.queues.remove, member) for member in members)
        changes.on_applied.append(lambda: self._core.events.publish(QueueDeleted(queue)))
        changes.on_failed.append(partial(_undelete, members))
        await self._core.store.commit(changes)

    async def purge(self, queue: Queue) -> int:
        """Purge Queue (3.1.7.1.7): drop what is available, mark what is locked. Says how many went."""
        dropped = 0
        # What comes in meanwhile was not meant: stop after as many as there are now.
        left = queue.messages.available_count
        await self._mark_purged(queue)
        while positions := queue.messages.available(min(DROP_CHUNK, left)):
            for position in positions:
                queue.messages.lock(position)
            await self._delivery.drop_all(positions, HistoryEvent.PURGED, MessageClass.NACK_QUEUE_PURGED)
            dropped += len(positions)
            left -= len(positions)
        return dropped

    async def _mark_purged(self, queue: Queue) -> None:
        """Mark what is locked. The state of a recoverable message is persistent (3.1.1.11), so is this."""
        locked = [position for position in queue.messages if position.state is PositionState.LOCKED]
        if not locked:
            return
        changes = Changes()
        for position in locked:
            queue.messages.mark_purged(position)
            if position.message is None:
                changes.purged.append((position.lookup_id, queue.id))
        changes.on_failed.extend(partial(queue.messages.unmark_purged, position) for position in locked)
        await self._core.finish(changes)

    async def pause(self, queue: Queue) -> None:
        """Pause Queue (3.1.7.2.3)."""
        outgoing = _outgoing(queue)
        await self._set_on_hold(outgoing, True, OutgoingQueuePaused(outgoing))

    async def resume(self, queue: Queue) -> None:
        """Resume Queue (3.1.7.2.4)."""
        outgoing = _outgoing(queue)
        await self._set_on_hold(outgoing, False, OutgoingQueueResumed(outgoing))

    def resend(self, queue: Queue) -> None:
        """Resend Transactional Sequence (MS-MQMR 3.1.4.2): the protocol that serves the queue does it."""
        self._core.events.publish(StreamResendWanted(_outgoing(queue)))

    async def _set_on_hold(self, queue: OutgoingQueue, on_hold: bool, event: Event) -> None:
        # Deviation: the text lets a restart forget the pause; here an operator's decision holds.
        old_record = queue.record
        queue.record = QueueRecord(
            identifier=queue.record.identifier,
            created=queue.record.created,
            modified=self._core.clock.time(),
            on_hold=on_hold,
        )
        changes = Changes()
        self._core.store_queue(changes, queue)

        def apply() -> None:
            queue.state = OutgoingState.ON_HOLD if on_hold else OutgoingState.INACTIVE
            self._core.events.publish(event)

        changes.on_applied.append(apply)
        changes.on_failed.append(lambda: setattr(queue, "record", old_record))
        await self._core.finish(changes)

    async def _drop_everything(self, queue: Queue) -> None:
        while positions := queue.messages.available(DROP_CHUNK):
            for position in positions:
                queue.messages.lock(position)
            await self._delivery.drop_all(positions, HistoryEvent.DELETED, MessageClass.NACK_QUEUE_DELETED)
        # What a transaction or a receive in two phases still holds goes as if that had been taken back.
        locked = list(queue.messages)
        for handle in queue.handles:
            handle.begun.clear()
        if locked:
            await self._delivery.drop_all(locked, HistoryEvent.DELETED, MessageClass.NACK_QUEUE_DELETED)

    def _make(
        self, path: PathName, kind: QueueKind, properties: QueueProperties, security: SecurityDescriptor
    ) -> Queue:
        now = self._core.clock.time()
        queues = self._core.queues
        number = queues.next_private_number() if path.is_private else 0
        record = QueueRecord(
            identifier=uuid4(), number=number, created=now, modified=now, properties=properties
        )
        queue = Queue(queues.next_id(), kind, path, record, security)
        if kind is not QueueKind.SYSTEM:
            journal_record = QueueRecord(identifier=uuid4(), created=now, modified=now)
            journal_path = PathName(path.computer, path.queue, path.kind, journal=True)
            attach(
                Queue(queues.next_id(), QueueKind.JOURNAL, journal_path, journal_record, None, queue), queue
            )
        return queue

    def _own_path(self, name: AnyName) -> PathName:
        parsed = self._core.queues.parse(name)
        if isinstance(parsed, PathName):
            return parsed
        raise InvalidNameError(
            f"{name} is not a path name on this machine",
            hint=r"write it as .\private$\name",
        )

    @staticmethod
    def _check_own(queue: Queue, what: str) -> None:
        if queue.parent is not None or isinstance(queue, OutgoingQueue):
            raise UnsupportedOperationError(f"{queue.name} cannot be {what}: it has no properties of its own")


def _undelete(members: list[Queue]) -> None:
    for member in members:
        member.is_deleted = False


def _outgoing(queue: Queue) -> OutgoingQueue:
    if not isinstance(queue, OutgoingQueue):
        raise UnsupportedOperationError(
            f"{queue.name} is not an outgoing queue",
            hint="only outgoing queues are paused, resumed and sent again",
        )
    return queue
