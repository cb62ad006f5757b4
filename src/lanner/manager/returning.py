"""Messages that come back: from a transaction that was aborted, or a receiver that was cancelled.

What a transaction holds is still in its queue, locked: an abort counts itself and unlocks it. A receive
outside of a transaction is different. Once its deletion is on its way to the disk, a receiver that is
cancelled cannot call it back; the message is put in again behind it. Where that cannot be stored, as on
a disk that has just become full, the message is in its queue all the same: in memory, where it can be
received like any other, and it is written as soon as the store takes it, at the latest when the manager
stops. Only then is there nothing left to do but to say so.

Decision: as for every receive outside of a transaction, a kill between the deletion and what undoes it
loses the message. Who cannot have that receives in a transaction, or in two phases (MS-MQDMPR 3.1.7.1.11).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from lanner.manager.clock import Timer
from lanner.manager.core import Core
from lanner.manager.delivery import Delivery
from lanner.manager.positions import Position, PositionState, index_row, position_of
from lanner.manager.queues import Queue
from lanner.model.codes import MessageClass
from lanner.model.errors import LannerError
from lanner.model.history import HistoryEvent
from lanner.model.log_fields import LogFields, about
from lanner.model.message import Message
from lanner.store import Changes
from lanner.store.changes import log_fields
from lanner.store.codec import content_record

__all__ = ["POISON", "Returning", "Taken"]

log = logging.getLogger(__name__)

POISON = "poison"

RETRY_DELAY = 1.0
"""Seconds until what could not be written is tried again."""

CANCELLED = "the receiver was cancelled"


class Taken(NamedTuple):
    """A message that was received, and what its place was like before."""

    position: Position
    message: Message
    queue: Queue
    expires: float | None
    """A message that an operator took back from a journal or dead-letter queue does not expire again."""


class Returning:
    """Gives messages their places back."""

    def __init__(self, core: Core, delivery: Delivery) -> None:
        self._core = core
        self._delivery = delivery
        self._unwritten: dict[Position, Message] = {}
        """Messages that are where the disk does not know of."""
        self._homeless: list[Taken] = []
        """Messages whose queue is being deleted: they go with it, or come back when that fails."""
        self._timer: Timer | None = None

    @property
    def unwritten_count(self) -> int:
        """How many messages would be lost if the manager were killed now."""
        return len(self._unwritten)

    # From a transaction.

    def give_back(
        self, changes: Changes, position: Position, message: Message, *, transaction_id: str | None
    ) -> None:
        """An aborted transaction returns the message: to its place, or to the poison subqueue."""
        delivery, queue = self._delivery, position.queue
        if position.state is PositionState.PURGE_PENDING:
            delivery.drop(changes, position, message, HistoryEvent.PURGED, MessageClass.NACK_QUEUE_PURGED)
            return
        position.aborts += 1
        changes.on_failed.append(partial(self._uncount_abort, position))
        delivery.record(
            changes,
            HistoryEvent.RETURNED,
            queue.name,
            message,
            reason=f"receive number {position.aborts} was aborted",
            transaction_id=transaction_id,
        )
        limit = queue.properties.max_aborts
        if limit and position.aborts >= limit and queue.parent is None and not queue.is_read_only:
            poison = self._core.subqueue(queue, POISON)
            delivery.move(
                changes, position, message, poison, reason=f"poison: {position.aborts} aborted receives"
            )
            return
        delivery.update(changes, position, position.queue)
        self._core.cache.pop(position.lookup_id)
        if position.message is not None:
            position.message = replace(position.message, abort_count=position.aborts)
        changes.on_applied.append(partial(delivery.release, position))
        changes.on_failed.append(partial(delivery.release, position))

    def _uncount_abort(self, position: Position) -> None:
        position.aborts -= 1
        if position.message is not None:
            position.message = replace(position.message, abort_count=position.aborts)

    # From a receiver that was cancelled.

    def undo(self, taken: Iterable[Taken]) -> None:
        """Undo a receive whose receiver was cancelled before it got the messages."""
        restored = Changes()
        for one in taken:
            self._restore(restored, one)
        self._core.spawn(self._store(restored), partial(log_fields, [restored]))

    async def _store(self, changes: Changes) -> None:
        try:
            await self._core.finish(changes)
        except LannerError as error:
            log.error(
                "messages whose receivers were cancelled are back, but could not be written: %s; "
                "this is tried again, and until it succeeds they are in memory alone",
                error,
                extra=log_fields([changes]),
            )

    def _restore(self, changes: Changes, one: Taken) -> None:
        position, message, _, expires = one
        queue = self._core.standing(one.queue)
        if queue.is_deleted:
            self._await_deletion(one)
            return
        if position.state is PositionState.DELETED:
            if position.queue is not one.queue:
                return  # somebody has received it from the journal
            self._core.count_in(queue, position.size)
            self._delivery.put(
                changes,
                queue,
                [message],
                [position.size],
                HistoryEvent.RETURNED,
                reason=CANCELLED,
                expires=[expires],
            )
        else:
            # It went into the queue's journal, and somebody may be taking it from there.
            if position.state is not PositionState.AVAILABLE:
                return
            position.queue.messages.lock(position)
            self._delivery.record(changes, HistoryEvent.RETURNED, queue.name, message, reason=CANCELLED)
            self._delivery.relocate(changes, position, queue, expires=expires)
        changes.on_failed.append(partial(self._return_unwritten, one))

    def _return_unwritten(self, one: Taken) -> None:
        """Put a message where it belongs, although the disk does not know."""
        position, message, _, expires = one
        queue = self._core.standing(one.queue)
        if queue.is_deleted:
            self._await_deletion(one)
            return
        if position.state is PositionState.DELETED:
            position = position_of(queue, message, position.size, expires)
            position.message = message
            self._core.count_in(queue, position.size)
            self._await_room(position, message)
            self._delivery.appear(queue, [position], [message])
        elif position.state is PositionState.AVAILABLE:
            # Its row says that it is in the journal: there it would be after a kill.
            self._core.count_in(queue, position.size)
            self._await_room(position, message)
            self._delivery.settle_in(position, queue, position.message_class, expires)

    # What could not be written.

    def _await_room(self, position: Position, message: Message) -> None:
        if message.is_recoverable:
            self._unwritten[position] = message
            self._set_timer()

    def _await_deletion(self, one: Taken) -> None:
        self._homeless.append(one)
        self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is None and self._core.is_running:
            deadline = self._core.clock.monotonic() + RETRY_DELAY
            self._timer = self._core.clock.call_at(deadline, self._retry)

    def _retry(self) -> None:
        self._timer = None
        self._core.spawn(self._try_again(), self._fields)

    async def _try_again(self) -> None:
        homeless, self._homeless = self._homeless, []
        if settled := [one for one in homeless if not self._has_gone(one.queue)]:
            self.undo(settled)
        await asyncio.gather(*[self._write(position) for position in tuple(self._unwritten)])
        if self._unwritten:
            self._set_timer()

    def _has_gone(self, queue: Queue) -> bool:
        """Whether the deletion of a queue has come to its end."""
        top = queue.parent or queue
        return self._core.queues.by_id().get(top.id) is not top

    async def _write(self, position: Position) -> None:
        """Write a message where it is now, which need not be where it came back to."""
        delivery, queue = self._delivery, position.queue
        if position.state is PositionState.DELETED:
            self._unwritten.pop(position, None)
            return
        if queue.is_deleted:
            return
        if position.state is PositionState.AVAILABLE:
            queue.messages.lock(position)  # what is being written must not change
        elif self._core.is_running or position.state is PositionState.PURGE_PENDING:
            return  # whoever holds it takes it, or gives it back
        changes = Changes()
        message = self._unwritten[position]
        delivery.record(changes, HistoryEvent.RETURNED, queue.name, message, reason=CANCELLED)
        if not queue.is_stored:
            self._core.store_queue(changes, queue)
        if position.message is None:
            delivery.update(changes, position, queue)
        else:
            changes.messages.append(index_row(position, message.arrival_time))
            changes.contents.append(content_record(position.message))
        changes.on_applied.append(partial(self._written, position))
        changes.on_failed.append(partial(delivery.release, position))
        with suppress(LannerError):  # it was said before, and is tried again
            await self._core.finish(changes)

    def _written(self, position: Position) -> None:
        self._unwritten.pop(position, None)
        position.message = None
        self._delivery.release(position)

    async def close(self) -> None:
        """Try a last time, after the manager has stopped all else."""
        if self._timer is not None:
            self._timer.cancel()
        with suppress(LannerError):
            await self._core.store.flush()  # receives that were cancelled in this moment
        await self._core.settle()
        await self._try_again()
        await self._core.settle()
        if self._unwritten:
            log.error(
                "%d messages whose receivers were cancelled could not be written, and end with this manager",
                len(self._unwritten),
                extra=self._fields(),
            )

    def _fields(self) -> LogFields:
        queues = {position.queue.name for position in self._unwritten}
        return about(queues=queues, messages=(position.id for position in self._unwritten))
