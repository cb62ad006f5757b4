"""What happens to a message: it is put in, taken, dropped or moved, and what follows from that.

Each method adds to a set of changes what has to become durable, and leaves the queues as they are
until that is so. A message that is on its way out is locked by the caller first, so that nobody else
takes it meanwhile; when the changes fail it is given its place back.

What follows, by where the message comes from and why it goes (MS-MQDMPR 3.1.1.12, MS-MQQB 3.1.7.15):

===================  ===================================  ======================================
it...                is kept in                           is told to the administration queue
===================  ===================================  ======================================
arrived              system journal, if positive source   ACK_REACH_QUEUE
                     journaling and sent from here
was received         the queue's journal, if it has one   ACK_RECEIVE
expired, was purged  a dead-letter queue, if negative     the reason
or rejected          source journaling and sent from here
===================  ===================================  ======================================
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from functools import partial

from msgspec.structs import replace

from lanner.manager.acknowledgments import Acknowledging
from lanner.manager.core import Core
from lanner.manager.events import MessageAvailable, MessageDeleted, OutgoingMessages
from lanner.manager.expiry import Expiry, expiry_in, expiry_reason
from lanner.manager.keeping import SYSTEM_JOURNAL, dead_letter_queue, has_room_to_keep
from lanner.manager.positions import Position, PositionState, index_row, lookup_identifier, position_of
from lanner.manager.queues import OutgoingQueue, Queue
from lanner.manager.recorder import history_row
from lanner.model.codes import MessageClass, describe_class
from lanner.model.errors import LannerError
from lanner.model.history import HistoryEvent
from lanner.model.log_fields import LogFields, about
from lanner.model.message import Delivery as Guarantee
from lanner.model.message import Message
from lanner.model.message_id import MessageId
from lanner.model.queue import QueueKind
from lanner.store import Changes
from lanner.store.codec import MessageFlags, content_record

__all__ = ["Delivery"]

log = logging.getLogger(__name__)

DROP_CHUNK = 500
"""Messages dropped by one set of changes when many go at once: their bodies are in memory meanwhile."""

_ACKNOWLEDGMENTS = MessageFlags.ACKNOWLEDGMENTS.value


class Delivery:
    """Puts messages into queues and takes them out again."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self.expiry = Expiry(core.clock, self._expire)
        self.acknowledging = Acknowledging(core, self.send_report)

    # In.

    def stamp_all(self, changes: Changes, queue: Queue, messages: Sequence[Message]) -> list[Message]:
        """Give messages that start here their identities, times and places."""
        core = self._core
        now = core.clock.time()
        lineage = core.machine_id
        prefix = lineage.bytes_le
        destination = core.queues.format_name(queue)
        first = core.take_numbers(changes, len(messages))
        return [
            replace(
                message,
                id=MessageId(prefix + (number & 0xFFFFFFFF).to_bytes(4, "little")),
                lookup_id=lookup_identifier(message.priority, number),
                source_machine=lineage,
                destination_queue=destination,
                sent_time=now,
                arrival_time=now,
                abort_count=0,
            )
            for number, message in enumerate(messages, first)
        ]

    def place(self, changes: Changes, message: Message) -> Message:
        """Give a message that has its identity already a place in a queue here."""
        number = self._core.take_numbers(changes, 1)
        return replace(
            message,
            lookup_id=lookup_identifier(message.priority, number),
            arrival_time=self._core.clock.time(),
            abort_count=0,
        )

    def arrive(
        self,
        changes: Changes,
        queue: Queue,
        messages: Sequence[Message],
        sizes: Sequence[int],
        *,
        event: HistoryEvent = HistoryEvent.SENT,
        reason: str | None = None,
        peer: str | None = None,
    ) -> None:
        """Put messages in, and do what their senders asked for on arrival. They were charged before."""
        self.put(changes, queue, messages, sizes, event, reason=reason, peer=peer)
        if isinstance(queue, OutgoingQueue):
            return
        for message in messages:
            if message.positive_journaling and message.source_machine == self._core.machine_id:
                self._keep_copy(changes, message)
            if message.acknowledgments and message.administration_queue:
                self.acknowledging.acknowledge(changes, message, MessageClass.ACK_REACH_QUEUE)

    def put(
        self,
        changes: Changes,
        queue: Queue,
        messages: Sequence[Message],
        sizes: Sequence[int],
        event: HistoryEvent,
        *,
        reason: str | None = None,
        peer: str | None = None,
        expires: Sequence[float | None] | None = None,
    ) -> None:
        """Put messages in, and nothing else. They were charged before.

        When they expire follows from what they say, unless it is told otherwise.
        """
        core = self._core
        now = core.clock.time()
        keep_body = core.settings.history_bodies
        if not queue.is_stored:
            core.store_queue(changes, queue)
        positions: list[Position] = []
        if expires is None:
            expires = [expiry_in(queue, message) for message in messages]
        for message, size, expiry in zip(messages, sizes, expires, strict=True):
            position = position_of(queue, message, size, expiry)
            positions.append(position)
            why = reason
            if message.delivery is Guarantee.RECOVERABLE:
                changes.messages.append(index_row(position, message.arrival_time))
                changes.contents.append(content_record(message))
            else:
                position.message = message
                why = reason or "express"
            body = message.body if keep_body else None
            changes.history.append(
                history_row(
                    now, event, queue.name, message, size, message.message_class, why, peer, None, body
                )
            )
        changes.on_applied.append(partial(self.appear, queue, positions, messages))
        changes.on_failed.append(partial(core.count_out, queue, sum(sizes)))

    # Out.

    def take(
        self,
        changes: Changes,
        taken: Iterable[tuple[Position, Message]],
        *,
        transaction_id: str | None = None,
    ) -> None:
        """An application receives messages."""
        now = self._core.clock.time()
        gone: list[Position] = []
        for position, message in taken:
            queue = position.queue
            changes.history.append(
                history_row(
                    now,
                    HistoryEvent.RECEIVED,
                    queue.name,
                    message,
                    position.size,
                    position.message_class,
                    None,
                    None,
                    transaction_id,
                )
            )
            journal = (queue.parent or queue).journal if queue.properties.journaling else None
            if journal is None or queue.is_read_only:
                gone.append(position)
            else:
                self._keep(changes, position, message, journal, HistoryEvent.JOURNALED)
            if position.flags & _ACKNOWLEDGMENTS and not self._has_ended(position, message):
                self.acknowledging.received(changes, queue, message)
            if message.transaction is not None:
                self.acknowledging.finally_(changes, queue, message, MessageClass.ACK_RECEIVE)
        self._delete(changes, gone, MessageClass.ACK_RECEIVE)

    def hand_over(
        self,
        changes: Changes,
        position: Position,
        message: Message,
        reason: MessageClass,
        peer: str,
        event: HistoryEvent,
    ) -> None:
        """Another queue manager has taken the message over: it leaves the outgoing queue.

        Positive source journaling keeps it (MC-MQSRM 3.1.5.2.2).
        """
        self.record(
            changes,
            event,
            position.queue.name,
            message,
            message_class=reason.value,
            peer=peer,
            size=position.size,
        )
        if message.positive_journaling and message.source_machine == self._core.machine_id:
            journal = self._core.queues.get(SYSTEM_JOURNAL)
            self._keep(changes, position, message, journal, HistoryEvent.JOURNALED, reason)
        else:
            self._delete(changes, [position], reason)

    def record(
        self,
        changes: Changes,
        event: HistoryEvent,
        queue: str,
        message: Message,
        *,
        reason: str | None = None,
        transaction_id: str | None = None,
        message_class: int | None = None,
        peer: str | None = None,
        size: int | None = None,
    ) -> None:
        """Write down what happened to a message that is, or is not, in a queue.

        ``size`` is for a message that was read without its body.
        """
        if message_class is None:
            message_class = message.message_class
        if size is None:
            size = message.size
        now = self._core.clock.time()
        changes.history.append(
            history_row(now, event, queue, message, size, message_class, reason, peer, transaction_id)
        )

    def drop(
        self,
        changes: Changes,
        position: Position,
        message: Message,
        event: HistoryEvent,
        reason: MessageClass,
        *,
        detail: str | None = None,
        peer: str | None = None,
        tell: bool = True,
    ) -> None:
        """The message goes without having been received. ``tell`` is whether the sender does not know yet."""
        queue = position.queue
        words = detail or describe_class(reason)
        self.record(
            changes,
            event,
            queue.name,
            message,
            reason=words,
            message_class=reason.value,
            peer=peer,
            size=position.size,
        )
        if self._has_ended(position, message):
            self._delete(changes, [position], reason)
            return
        if message.transaction is not None:
            self.acknowledging.finally_(changes, queue, message, reason)
        if tell and position.flags & _ACKNOWLEDGMENTS:
            self.acknowledging.acknowledge(changes, message, reason)
        if message.negative_journaling and message.source_machine == self._core.machine_id:
            dead_letters = dead_letter_queue(self._core, message, queue)
            self._keep(changes, position, message, dead_letters, HistoryEvent.DEAD_LETTERED, reason)
        else:
            self._delete(changes, [position], reason)

    def move(
        self,
        changes: Changes,
        position: Position,
        message: Message,
        target: Queue,
        *,
        transaction_id: str | None = None,
        reason: str | None = None,
    ) -> None:
        """Put the message into another queue of this machine."""
        came_from = position.queue.name
        self.record(
            changes,
            HistoryEvent.MOVED,
            target.name,
            message,
            reason=reason or f"from {came_from}",
            transaction_id=transaction_id,
        )
        self.relocate(changes, position, target, expires=position.expires)

    def release(self, position: Position) -> None:
        """Give a locked message its place back, unless it was purged or its time ran out meanwhile."""
        if position.state is PositionState.PURGE_PENDING:
            position.state = PositionState.LOCKED
            purge = self.drop_all([position], HistoryEvent.PURGED, MessageClass.NACK_QUEUE_PURGED)
            self._core.spawn(purge, partial(_about, [position]))
            return
        if position.state is not PositionState.LOCKED:
            return
        queue = position.queue
        queue.messages.unlock(position)
        self.expiry.check(position)
        self._announce(queue, position)

    def stop_expiry(self, changes: Changes, position: Position) -> None:
        """Let a message expire no more where it is."""
        if position.expires is None:
            return
        self.expiry.forget(position)
        position.expires = None
        self.update(changes, position, position.queue)

    def _expire(self, positions: list[Position]) -> None:
        for position in positions:
            position.queue.messages.lock(position)
        self._core.spawn(self._drop_expired(positions), partial(_about, positions))

    async def _drop_expired(self, positions: list[Position]) -> None:
        for start in range(0, len(positions), DROP_CHUNK):
            chunk = positions[start : start + DROP_CHUNK]
            try:
                await self.drop_all(chunk, HistoryEvent.EXPIRED)
            except LannerError as error:
                # They have their places back, and are tried again in a moment.
                log.warning("expired messages could not be dropped: %s", error, extra=_about(chunk))

    async def drop_all(
        self, positions: list[Position], event: HistoryEvent, reason: MessageClass | None = None
    ) -> None:
        """Drop messages that the caller has locked, together."""
        changes = Changes()
        try:
            messages = await self._core.load_all(positions)
        except BaseException:
            self._release_all(positions)
            raise
        for position, message in zip(positions, messages, strict=True):
            self.drop(changes, position, message, event, reason or expiry_reason(position.queue))
        await self._core.finish(changes)

    async def finish_purge(self, positions: list[Position]) -> None:
        """Drop messages that were locked when their queue was purged, and then the manager stopped.

        It ended what held them, so they go as when a transaction is aborted (3.1.4.5).
        """
        for start in range(0, len(positions), DROP_CHUNK):
            chunk = positions[start : start + DROP_CHUNK]
            try:
                await self.drop_all(chunk, HistoryEvent.PURGED, MessageClass.NACK_QUEUE_PURGED)
            except LannerError as error:
                # They are back in their queues. Their marks stay, and the next start tries again.
                log.warning("purged messages could not be dropped: %s", error, extra=_about(chunk))

    # What is told to others.

    def send_report(self, changes: Changes, queue: Queue, report: Message) -> None:
        """Send a message of the manager's own. Raises a LannerError where there is no room for it."""
        stamped = self.stamp_all(changes, queue, [report])[0]
        self._core.charge(queue, stamped.size)
        self.put(changes, queue, [stamped], [stamped.size], HistoryEvent.SENT)

    def _has_ended(self, position: Position, message: Message) -> bool:
        """Whether all has been told and kept: in a journal or dead-letter queue, also an application's."""
        queue = position.queue
        if queue.is_read_only:
            return True
        if not message.dead_letter_queue or message.source_machine != self._core.machine_id:
            return False
        is_dead = position.message_class >= MessageClass.NACK_BAD_DESTINATION_QUEUE
        own = self._core.queues.parse(message.dead_letter_queue)
        return is_dead and own.key == (queue.parent or queue).key

    # The pieces.

    def appear(self, queue: Queue, positions: list[Position], messages: Sequence[Message]) -> None:
        """Let messages be in a queue, and offer them to who waits. They were charged before."""
        add, keep = queue.messages.add, self._core.cache.put
        for position, message in zip(positions, messages, strict=True):
            add(position)
            if position.message is None:
                keep(message, position.size)
            if position.expires is not None:
                self.expiry.watch(position)
        if isinstance(queue, OutgoingQueue):
            self._core.events.publish(OutgoingMessages(queue))
        if queue.readers or self._core.events.wanted(MessageAvailable):
            for position in positions:
                self._offer(queue, position)

    def _announce(self, queue: Queue, position: Position) -> None:
        if isinstance(queue, OutgoingQueue):
            self._core.events.publish(OutgoingMessages(queue))
        self._offer(queue, position)

    def _offer(self, queue: Queue, position: Position) -> None:
        queue.readers.offer(position)
        events = self._core.events
        if events.wanted(MessageAvailable) and position.state is PositionState.AVAILABLE:
            events.publish(MessageAvailable(queue, position))

    def _delete(self, changes: Changes, positions: list[Position], reason: MessageClass) -> None:
        changes.deletes.extend([position.lookup_id for position in positions if position.message is None])
        changes.on_applied.append(partial(self._disappear, positions, reason))
        changes.on_failed.append(partial(self._release_all, positions))

    def _release_all(self, positions: list[Position]) -> None:
        for position in positions:
            self.release(position)

    def _disappear(self, positions: list[Position], reason: MessageClass) -> None:
        core = self._core
        is_wanted = core.events.wanted(MessageDeleted)
        for position in positions:
            queue = position.queue
            if position.state is PositionState.DELETED:
                continue
            queue.messages.remove(position)
            core.count_out(queue, position.size)
            core.cache.pop(position.lookup_id)
            self.expiry.forget(position)
            if queue.kind is QueueKind.SUBQUEUE:
                core.drop_idle_subqueue(queue)
            if is_wanted:
                core.events.publish(MessageDeleted(queue, position, reason.value))

    def _keep(
        self,
        changes: Changes,
        position: Position,
        message: Message,
        target: Queue,
        event: HistoryEvent,
        reason: MessageClass = MessageClass.ACK_RECEIVE,
    ) -> None:
        """Move a finished message into a journal or dead-letter queue, if that has room."""
        kept_class = reason.value if event is HistoryEvent.DEAD_LETTERED else position.message_class
        if not has_room_to_keep(self._core, target, position.size):
            self.record(
                changes,
                HistoryEvent.DISCARDED,
                target.name,
                message,
                reason=f"{target.name} is over its quota",
            )
            self._delete(changes, [position], reason)
            return
        self.record(
            changes,
            event,
            target.name,
            message,
            reason=describe_class(reason),
            message_class=kept_class,
            size=position.size,
        )
        self.relocate(changes, position, target, expires=None, message_class=kept_class, reason=reason)

    def _keep_copy(self, changes: Changes, message: Message) -> None:
        """Positive source journaling: a second copy with a place of its own."""
        journal = self._core.queues.get(SYSTEM_JOURNAL)
        if not has_room_to_keep(self._core, journal, message.size):
            self.record(
                changes, HistoryEvent.DISCARDED, journal.name, message, reason="the journal is over its quota"
            )
            return
        size = message.size
        self._core.count_in(journal, size)
        self.put(changes, journal, [self.place(changes, message)], [size], HistoryEvent.JOURNALED)

    def relocate(
        self,
        changes: Changes,
        position: Position,
        target: Queue,
        *,
        expires: float | None,
        message_class: int | None = None,
        reason: MessageClass = MessageClass.NORMAL,
    ) -> None:
        """Put a locked message into another queue of this machine, without a word about it."""
        if not target.is_stored:
            self._core.store_queue(changes, target)
        self._core.count_in(target, position.size)
        new_class = position.message_class if message_class is None else message_class
        self.update(changes, position, target, message_class=new_class, expires=expires)
        changes.on_applied.append(partial(self.settle_in, position, target, new_class, expires, reason))
        changes.on_failed.append(partial(self._core.count_out, target, position.size))
        changes.on_failed.append(partial(self._core.drop_idle_subqueue, target))
        changes.on_failed.append(partial(self.release, position))

    def update(
        self,
        changes: Changes,
        position: Position,
        queue: Queue,
        *,
        message_class: int | None = None,
        expires: float | None = None,
    ) -> None:
        """Write down where a message is now, and what is the matter with it."""
        if position.message is not None:
            return
        changes.updates.append(
            (
                queue.id,
                position.message_class if message_class is None else message_class,
                expires if queue is not position.queue else position.expires,
                position.aborts,
                position.lookup_id,
            )
        )

    def settle_in(
        self,
        position: Position,
        target: Queue,
        message_class: int,
        expires: float | None,
        reason: MessageClass = MessageClass.NORMAL,
    ) -> None:
        """Let a message be in another queue, where it has been counted in already."""
        source = position.queue
        source.messages.remove(position)
        self._core.count_out(source, position.size)
        self._core.cache.pop(position.lookup_id)
        is_watched = position.expires is not None
        if expires is None:
            self.expiry.forget(position)
        if self._core.events.wanted(MessageDeleted):
            self._core.events.publish(MessageDeleted(source, position, reason.value))
        position.queue = target
        position.message_class = message_class
        position.expires = expires
        if position.message is not None:
            position.message = replace(
                position.message, message_class=message_class, abort_count=position.aborts
            )
        target.messages.add(position)
        if is_watched:
            self.expiry.check(position)
        else:
            self.expiry.watch(position)
        self._core.drop_idle_subqueue(source)
        self._announce(target, position)


def _about(positions: list[Position]) -> LogFields:
    queues = {position.queue.name for position in positions}
    return about(queues=queues, messages=(position.id for position in positions))
