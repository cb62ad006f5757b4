"""What becomes of a message that was sent (MC-MQSRM 3.1.7.2.5, 3.1.5.1.8, 3.1.5.1.9).

============================  ======================================================================
it is                         then
============================  ======================================================================
answered 200, of no stream    it was handed over, and leaves the queue
answered 200, of our stream   it waits for a stream receipt
answered 400, or unspeakable  it is given up: dead-lettered or dropped
covered by a stream receipt   it leaves the queue; with negative journaling it waits for a final receipt
told of by a final receipt    it leaves the queue, or is given up
============================  ======================================================================

A receipt may come at any time: before the answer, twice, or after a restart when the message is about to be
sent again. So messages may be gone whenever something was waited for.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable

import msgspec

from lanner.manager.positions import Position, PositionState
from lanner.manager.queues import OutgoingQueue
from lanner.manager.transfers import Transfers
from lanner.model.codes import MessageClass, describe_class
from lanner.model.errors import LannerError, MessageNotFoundError
from lanner.model.history import HistoryEvent
from lanner.model.log_fields import about
from lanner.model.message import Message
from lanner.model.message_id import MessageId
from lanner.protocols.srmp.client import Reply
from lanner.protocols.srmp.line import Line, Sent
from lanner.protocols.srmp.outgoing_stream import SCOPE, SentStream
from lanner.store import Changes

__all__ = ["Settling"]

log = logging.getLogger(__name__)

RECEIPT_CHUNK = 1_000
"""Messages that one set of changes lets go when a receipt covers many."""

REFUSALS = frozenset((400, 413, 414, 431))
"""Answers after which sending the same message again is of no use."""

_NEGATIVE_EVENTS = {
    MessageClass.NACK_RECEIVE_TIMEOUT.value: HistoryEvent.EXPIRED,
    MessageClass.NACK_QUEUE_PURGED.value: HistoryEvent.PURGED,
    MessageClass.NACK_QUEUE_DELETED.value: HistoryEvent.DELETED,
    MessageClass.NACK_DELETED.value: HistoryEvent.DELETED,
}


class Settling:
    """Lets the messages of one outgoing queue go."""

    def __init__(
        self, queue: OutgoingQueue, transfers: Transfers, stream: SentStream, peer: Callable[[], str]
    ) -> None:
        self._queue = queue
        self._transfers = transfers
        self._stream = stream
        self._peer = peer
        self._concluding: dict[int, asyncio.Event] = {}
        """Messages that a final receipt is about to let go."""

    def is_gone(self, position: Position) -> bool:
        """Whether a message has left the queue meanwhile: deleted, or kept elsewhere."""
        return position.state is PositionState.DELETED or position.queue is not self._queue

    async def load(self, positions: list[Position], *, bodies: bool = True) -> list[Message]:
        """Read messages; none of them, if a final receipt has let one of them go meanwhile."""
        try:
            return await self._transfers.load(positions, bodies=bodies)
        except MessageNotFoundError:
            for position in positions:
                if self.is_gone(position) or position.lookup_id in self._concluding:
                    return []
            raise

    # Messages that are not sent.

    async def drop_expired(self, position: Position, message: Message) -> None:
        """Checking for Message Expiration (3.1.7.2.1)."""
        changes = Changes()
        self._transfers.give_up(
            changes, position, message, MessageClass.NACK_REACH_QUEUE_TIMEOUT, event=HistoryEvent.EXPIRED
        )
        await self._transfers.finish(changes)

    async def refuse(self, position: Position, message: Message, reason: str) -> None:
        """SRMP cannot say this message."""
        log.warning("%s cannot be sent: %s", message.id, reason, extra=self._about(message))
        changes = Changes()
        refusal = MessageClass.NACK_BAD_DESTINATION_QUEUE
        self._transfers.give_up(changes, position, message, refusal, detail=reason)
        await self._transfers.finish(changes)

    async def settle_arrived(
        self, pairs: Iterable[tuple[Position, Message]]
    ) -> list[tuple[Position, Message]]:
        """Let go what has arrived: a restart or a resend came between. Returns the others."""
        arrived, others = [], []
        for position, message in pairs:
            number = None if self.is_gone(position) else self._arrived_number(message)
            if number is None:
                others.append((position, message))
            else:
                arrived.append((position, message, number))
        if arrived:
            await self._settle(arrived)
        return others

    def _arrived_number(self, message: Message) -> int | None:
        if message.transaction is None or not self._transfers.is_own(message):
            return None
        place = self._transfers.place_of(self._queue, message)
        return place.number if self._stream.has_arrived(place) else None

    # Answers (3.1.7.2.5).

    def settle_answers(self, line: Line, replies: list[Reply]) -> Reply | None:
        """Messages were taken over there, or refused. Returns the answer after which nothing can be sent."""
        changes = Changes()
        failure: Reply | None = None
        for reply in replies:
            if not line.unanswered:
                failure = Reply(reply.status, "it answers what it was not asked")
                break
            if reply.status not in REFUSALS and not 200 <= reply.status < 300:
                failure = reply
                break
            self._settle_answer(changes, line.take_answered(), reply)
        if changes.is_durable() or changes.history or changes.on_applied:
            self._transfers.spawn(self._finish(changes))
        return failure

    def _settle_answer(self, changes: Changes, sent: Sent, reply: Reply) -> None:
        if self.is_gone(sent.position):
            return  # its queue was deleted, or it is known already what became of it
        peer = self._peer()
        if reply.status in REFUSALS:
            detail = f"it was answered {reply.status}: {reply.reason}"
            log.warning("%s: %s", sent.message.id, detail, extra=self._about(sent.message))
            refusal = MessageClass.NACK_BAD_DESTINATION_QUEUE
            self._transfers.give_up(changes, sent.position, sent.message, refusal, detail=detail, peer=peer)
            if sent.place is not None:
                # What was sent behind it names it as the one before, which it will never be.
                self._stream.must_resend = True
        elif sent.place is None:
            self._transfers.hand_over(changes, sent.position, sent.message, peer)
        elif not self._stream.answered(sent.place, sent.position):
            self._settle_acknowledged(changes, sent.position, sent.message, sent.place.number)

    async def _finish(self, changes: Changes) -> None:
        try:
            await self._transfers.finish(changes)
        except LannerError as error:
            # They have their places back, and are sent again: the receiver knows them.
            log.warning("what %s has sent could not be settled: %s", self._queue.name, error)

    # Stream receipts (3.1.5.1.8).

    async def settle_covered(self, covered: list[tuple[int, Position]]) -> None:
        """Let messages go that a receipt covers."""
        settled = 0
        try:
            while settled < max(len(covered), 1):
                await self._settle_chunk(covered[settled : settled + RECEIPT_CHUNK])
                settled += RECEIPT_CHUNK
        finally:
            # Where that fails they get their places back, and are settled when it is their turn to be sent.
            self._transfers.release([position for _, position in covered[settled:]])

    async def _settle_chunk(self, covered: list[tuple[int, Position]]) -> None:
        covered = [(number, position) for number, position in covered if not self.is_gone(position)]
        messages = await self.load([position for _, position in covered], bodies=False)
        while len(messages) != len(covered):
            covered = [(number, position) for number, position in covered if not self.is_gone(position)]
            messages = await self.load([position for _, position in covered], bodies=False)
        await self._settle(
            [
                (position, message, number)
                for (number, position), message in zip(covered, messages, strict=True)
                if not self.is_gone(position)
            ]
        )

    async def settle_one(self, position: Position, message: Message, number: int) -> None:
        """Let a message go that has arrived."""
        await self._settle([(position, message, number)])

    async def _settle(self, arrived: list[tuple[Position, Message, int]]) -> None:
        changes = Changes()
        changes.state.append((SCOPE, str(self._queue.id), msgspec.msgpack.encode(self._stream.progress)))
        for position, message, number in arrived:
            self._settle_acknowledged(changes, position, message, number)
        await self._transfers.finish(changes)
        self._stream.show()

    def _settle_acknowledged(
        self, changes: Changes, position: Position, message: Message, number: int
    ) -> None:
        marks = message.transaction
        if marks is not None and marks.final_ack_required:
            self._stream.keep_unread(number, position)
            self._transfers.keep_until_received(changes, position)
            return
        self._hand_over(changes, position, message, MessageClass.ORDER_ACK)

    def _hand_over(
        self, changes: Changes, position: Position, message: Message, reason: MessageClass
    ) -> None:
        self._transfers.hand_over(
            changes, position, message, self._peer(), reason=reason, event=HistoryEvent.ACKNOWLEDGED
        )

    # Final receipts (3.1.5.1.9).

    async def conclude(
        self, stream: int, number: int, message_class: int, identifier: MessageId | None
    ) -> bool:
        """It is told what became of a message. Says whether there was such a message.

        The message may be anywhere in the queue: waiting for this, or after a restart not sent again yet.
        """
        while (position := await self._find(stream, number, identifier)) is not None:
            under_way = self._concluding.get(position.lookup_id)
            if under_way is None:
                break
            await under_way.wait()  # a copy of the receipt came before, and may fail
        else:
            return False
        ended = self._concluding[position.lookup_id] = asyncio.Event()
        try:
            return await self._conclude(position, message_class)
        finally:
            del self._concluding[position.lookup_id]
            ended.set()

    async def _conclude(self, position: Position, message_class: int) -> bool:
        messages = await self.load([position], bodies=False)
        if not messages or self.is_gone(position):
            return False
        [message] = messages
        if position.state is PositionState.AVAILABLE:
            self._queue.messages.lock(position)
        changes = Changes()
        if message_class == MessageClass.ACK_RECEIVE:
            self._hand_over(changes, position, message, MessageClass.ACK_RECEIVE)
        else:
            self._give_up(changes, position, message, MessageClass(message_class))
        await self._transfers.finish(changes)
        self._stream.forget(self._transfers.place_of(self._queue, message))
        return True

    def _give_up(self, changes: Changes, position: Position, message: Message, reason: MessageClass) -> None:
        self._transfers.give_up(
            changes,
            position,
            message,
            reason,
            event=_NEGATIVE_EVENTS.get(reason.value, HistoryEvent.REJECTED),
            detail=f"told by the receiver: {describe_class(reason)}",
            peer=self._peer(),
            tell=False,
        )

    async def _find(self, stream: int, number: int, identifier: MessageId | None) -> Position | None:
        """The message that a receipt is about: by its identifier, which stays the same, or by its number."""
        if identifier is not None:
            found = self._queue.messages.with_id(identifier)
            return next((position for position in found if not self.is_gone(position)), None)
        moved = self._queue.stream.resets.get(stream)
        if moved is not None:
            # It arrived under a number that a stream had before it was begun anew.
            stream, number = moved[0], number - moved[1]
        known = self._stream.find(stream, number)
        if known is not None and not self.is_gone(known):
            return known
        async for position, message in self._transfers.places(self._queue):
            place = self._transfers.place_of(self._queue, message)
            if (stream, number) == (place.stream, place.number):
                return None if self.is_gone(position) else position
        return None

    def _about(self, message: Message) -> dict[str, object]:
        return about(queues=[self._queue.name], messages=[message.id])
