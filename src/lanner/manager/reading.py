"""Reading messages: receive, peek, by cursor, by identifier, in two phases (MS-MQDMPR 3.1.7.1.10 to 15)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from functools import partial

from lanner.manager.core import Core
from lanner.manager.cursors import Cursor
from lanner.manager.delivery import Delivery
from lanner.manager.handles import OpenQueue
from lanner.manager.positions import Position, PositionState
from lanner.manager.queues import Queue
from lanner.manager.returning import Returning, Taken
from lanner.manager.transactions import Transaction
from lanner.manager.waiting import WaitingReader, Wanted
from lanner.model.codes import MessageClass
from lanner.model.errors import (
    InvalidPropertyError,
    LannerError,
    MessageLockedError,
    MessageNotFoundError,
    OperationCancelledError,
    QueueDeletedError,
    ReceiveTimeoutError,
    StaleHandleError,
    TransactionSequenceError,
)
from lanner.model.history import HistoryEvent
from lanner.model.message import Message
from lanner.model.queue import SeekAction
from lanner.store import Changes
from lanner.store.codec import MessageFlags

__all__ = ["Reading"]

MAX_BATCH = 10_000
"""Messages that one call can receive: their bodies are in memory together."""

_ANY = Wanted()


class Reading:
    """Finds messages, waits for them, and hands them out."""

    def __init__(self, core: Core, delivery: Delivery, returning: Returning) -> None:
        self._core = core
        self._delivery = delivery
        self._returning = returning

    # Receiving.

    async def receive(
        self,
        handle: OpenQueue,
        *,
        timeout: float | None,
        cursor: Cursor | None,
        transaction: Transaction | None,
        wanted: Wanted,
        tag: Hashable | None,
        two_phase: bool,
    ) -> Message:
        """Dequeue Message (3.1.7.1.10)."""
        queue = handle.for_receiving()
        if transaction is not None:
            transaction.check_active()
        if cursor is not None and not wanted.is_any:
            raise InvalidPropertyError("a cursor finds the next message, not one by its identifier")
        if cursor is not None:
            position = await self._next_by_cursor(
                handle, cursor, cursor.get_next_message_for_dequeue, timeout, tag, destructive=True
            )
        else:
            position = await self._next(handle, queue, timeout, wanted, tag)
        return await self._hand_out(handle, position, transaction, two_phase)

    async def receive_many(
        self, handle: OpenQueue, count: int, *, timeout: float | None, transaction: Transaction | None
    ) -> list[Message]:
        """Receive up to ``count`` messages together: those that are there, or the first that comes."""
        queue = handle.for_receiving()
        if not 1 <= count <= MAX_BATCH:
            raise InvalidPropertyError(f"{count} is not between 1 and {MAX_BATCH} messages")
        if transaction is not None:
            transaction.check_active()
        positions = queue.messages.available(count)
        for position in positions:
            queue.messages.lock(position)
        if not positions:
            positions = [await self._next(handle, queue, timeout, _ANY, None)]
        return await self._hand_out_all(positions, transaction)

    async def read_by_lookup(
        self,
        handle: OpenQueue,
        lookup_id: int,
        action: SeekAction,
        *,
        peek: bool,
        transaction: Transaction | None,
        two_phase: bool,
    ) -> Message:
        """Read Message By Lookup Identifier (3.1.7.1.13)."""
        queue = handle.for_peeking() if peek else handle.for_receiving()
        if transaction is not None:
            transaction.check_active()
        position = self._seek(queue, lookup_id, action, peek)
        if peek:
            return await self._core.load(position)
        queue.messages.lock(position)
        return await self._hand_out(handle, position, transaction, two_phase)

    async def end(self, handle: OpenQueue, message: Message, *, delete: bool) -> None:
        """Dequeue Message End (3.1.7.1.12)."""
        queue = handle.queue
        position = handle.begun.pop(message.lookup_id, None)
        if position is None or position.queue is not queue:
            raise TransactionSequenceError(
                "the message is not being received in two phases through this handle"
            )
        if not delete:
            self._delivery.release(position)
            return
        changes = Changes()
        if position.state is PositionState.PURGE_PENDING:
            self._delivery.drop(
                changes, position, message, HistoryEvent.PURGED, MessageClass.NACK_QUEUE_PURGED
            )
        else:
            self._delivery.take(changes, [(position, message)])
        await self._core.finish(changes)

    # Looking.

    async def peek(self, handle: OpenQueue, *, timeout: float | None, cursor: Cursor | None) -> Message:
        """Peek Message (3.1.7.1.15)."""
        queue = handle.for_peeking()
        if cursor is not None:
            position = await self._next_by_cursor(handle, cursor, cursor.get_message_for_peek, timeout)
        else:
            position = queue.messages.first(peek=True) or await self._wait(
                handle, queue, timeout, _ANY, None, False
            )
        return await self._core.load(position)

    async def peek_next(self, handle: OpenQueue, *, timeout: float | None, cursor: Cursor) -> Message:
        """Peek Next Message (3.1.7.1.14)."""
        handle.for_peeking()
        position = await self._next_by_cursor(handle, cursor, cursor.get_next_message_for_peek, timeout)
        return await self._core.load(position)

    async def browse(self, handle: OpenQueue, count: int, *, after: int, bodies: bool) -> list[Message]:
        """Look at up to ``count`` messages behind a place in the queue."""
        queue = handle.for_peeking()
        if not 1 <= count <= MAX_BATCH:
            raise InvalidPropertyError(f"{count} is not between 1 and {MAX_BATCH} messages")
        return await self._core.load_all(queue.messages.available(count, after), bodies=bodies)

    # Finding.

    async def _next(
        self, handle: OpenQueue, queue: Queue, timeout: float | None, wanted: Wanted, tag: Hashable | None
    ) -> Position:
        """Find the first message that will do and lock it, waiting for one if need be."""
        position = _first(queue, wanted)
        if position is None:
            return await self._wait(handle, queue, timeout, wanted, tag, True)
        queue.messages.lock(position)
        return position

    async def _next_by_cursor(
        self,
        handle: OpenQueue,
        cursor: Cursor,
        seek: Callable[[], Position | None],
        timeout: float | None,
        tag: Hashable | None = None,
        *,
        destructive: bool = False,
    ) -> Position:
        if cursor.handle is not handle:
            raise StaleHandleError("the cursor belongs to another handle", hint="open one on this handle")
        queue = handle.queue
        position = seek()
        if position is not None:
            if destructive:
                queue.messages.lock(position)
            return position
        try:
            position = await self._wait(handle, queue, timeout, _ANY, tag, destructive, cursor)
        except BaseException:
            cursor.wait_time_expired()
            raise
        cursor.message_available(position)
        return position

    async def _wait(
        self,
        handle: OpenQueue,
        queue: Queue,
        timeout: float | None,
        wanted: Wanted,
        tag: Hashable | None,
        destructive: bool,
        cursor: Cursor | None = None,
    ) -> Position:
        """Wait For New Message (3.1.7.3.1).

        Deviation: a receive by cursor that may not wait ends like every other read, with a time-out, where
        the text says that the message was not found.
        """
        if timeout is not None and timeout <= 0:
            raise ReceiveTimeoutError(f"there is no such message in {queue.name}")
        reader = WaitingReader(handle, wanted, destructive, tag, cursor)
        try:
            return await queue.readers.wait(reader, timeout, self._core.clock)
        except asyncio.CancelledError:
            # It may have been given a message in the moment before.
            if destructive and (position := reader.given()) is not None:
                self._delivery.release(position)
            raise

    def _seek(self, queue: Queue, lookup_id: int, action: SeekAction, peek: bool) -> Position:
        """Seek Available Message Position With Id (3.1.7.3.3).

        Deviation: the text looks for the message of the lookup identifier even for FIRST, LAST, NEXT and
        PREVIOUS; here these work from its place, also when it is gone.
        """
        messages = queue.messages
        match action:
            case SeekAction.CURRENT:
                return _current(queue, lookup_id, peek)
            case SeekAction.FIRST:
                position = messages.first(peek=peek)
            case SeekAction.LAST:
                position = messages.last(peek=peek)
            case SeekAction.NEXT:
                position = messages.after(lookup_id, peek=peek)
            case SeekAction.PREVIOUS:
                position = messages.before(lookup_id, peek=peek)
        if position is None:
            raise MessageNotFoundError(f"there is no {action.value} message in {queue.name}")
        return position

    # Handing out.

    async def _hand_out(
        self, handle: OpenQueue, position: Position, transaction: Transaction | None, two_phase: bool
    ) -> Message:
        if not two_phase:
            return (await self._hand_out_all([position], transaction))[0]
        queue = position.queue
        (message,) = await self._load_locked([position])
        if handle.is_closed:
            self._release(queue, [position])
            raise OperationCancelledError(f"the handle on {queue.name} was closed")
        handle.begun[position.lookup_id] = position
        return message

    async def _hand_out_all(
        self, positions: list[Position], transaction: Transaction | None
    ) -> list[Message]:
        queue = positions[0].queue
        messages = await self._load_locked(positions)
        try:
            if queue.is_deleted:
                raise QueueDeletedError(f"{queue.name} was deleted")
            if transaction is not None:
                # It may have ended while this receive waited.
                transaction.check_active()
                transaction.add_received(positions, messages)
                return messages
        except LannerError:
            self._release(queue, positions)
            raise
        changes = Changes()
        taken = [
            Taken(position, message, queue, position.expires)
            for position, message in zip(positions, messages, strict=True)
        ]
        self._delivery.take(changes, zip(positions, messages, strict=True))
        try:
            await self._core.finish(changes)
        except asyncio.CancelledError:
            # The commit goes on without the receiver, and would take the messages with it.
            self._undo_when_applied(changes, taken)
            raise
        return messages

    async def _load_locked(self, positions: list[Position]) -> list[Message]:
        queue = positions[0].queue
        try:
            return await self._core.load_all(positions)
        except BaseException:
            self._release(queue, positions)
            raise

    def _release(self, queue: Queue, positions: list[Position]) -> None:
        for position in positions:
            # Deleting the queue may have made it a dead letter meanwhile, which others may have locked.
            if position.queue is queue:
                self._delivery.release(position)

    def _undo_when_applied(self, changes: Changes, taken: list[Taken]) -> None:
        undo = partial(self._returning.undo, taken)
        if not changes.is_settled:
            changes.on_applied.append(undo)
        elif changes.error is None:
            undo()


def _first(queue: Queue, wanted: Wanted) -> Position | None:
    messages = queue.messages
    if wanted.is_any:
        return messages.first()
    if wanted.message_id is not None:
        found = messages.with_id(wanted.message_id)
    else:
        assert wanted.correlation_id is not None
        found = messages.with_correlation(wanted.correlation_id)
    available = [
        position
        for position in found
        if position.state is PositionState.AVAILABLE and wanted.matches(position)
    ]
    return min(available, key=lambda position: position.lookup_id, default=None)


def _current(queue: Queue, lookup_id: int, peek: bool) -> Position:
    position = queue.messages.get(lookup_id)
    if position is None:
        raise MessageNotFoundError(f"there is no message with lookup identifier {lookup_id} in {queue.name}")
    if position.state is PositionState.AVAILABLE:
        return position
    is_locked = position.state is PositionState.LOCKED
    if peek and is_locked and position.flags & MessageFlags.PEEK_WHEN_LOCKED:
        return position
    raise MessageLockedError(f"the message with lookup identifier {lookup_id} is being received by somebody")
