"""One outgoing queue over SRMP: its connection, what is on its way, and its stream (MC-MQSRM 3.1.7, 3.1.6).

States of the queue (MS-MQDMPR 3.1.1.3), and what moves them:

============  =======================  ============  ============================================
from          event                    to            and
============  =======================  ============  ============================================
disconnected  there are messages       waiting       connect (3.1.7.9)
waiting       connected                connected     send (3.1.7.2)
waiting       not connected            inactive      retransmission timer
connected     5xx, time-out, or lost   inactive      what was not answered is sent again later
              while something is sent                (3.1.7.2.5); retransmission timer
connected     lost after an answer     disconnected  and on at once: some servers close connections
connected     idle                     disconnected  session cleanup timer (3.1.6.4)
disconnected  idle and empty           gone          likewise: the next message makes a new queue
inactive      retransmission timer     disconnected  and on, if there are messages (3.1.6.1)
any           pause                    on hold       close; nothing is sent (3.1.7.4)
on hold       resume                   disconnected  and on, if there are messages (3.1.7.5)
============  =======================  ============  ============================================

A message leaves the queue when it is answered 200, a refused one (400) is dead-lettered or dropped. A message
of our own stream stays: until a stream receipt covers it, and with negative journaling until a final receipt
says what became of it. When no receipt comes, everything that waits for one is sent again (3.1.6.2).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from lanner.manager.positions import Position, PositionState
from lanner.manager.queues import OutgoingQueue
from lanner.manager.transfers import Transfers
from lanner.model.codes import MessageClass, describe_class
from lanner.model.errors import LannerError, MessageNotFoundError
from lanner.model.format_name import DirectName
from lanner.model.history import HistoryEvent
from lanner.model.log_fields import about
from lanner.model.message import Message
from lanner.model.message_id import MessageId
from lanner.model.queue import OutgoingState
from lanner.model.transfer import Connection, ConnectionStatus, Sequence
from lanner.protocols.srmp.client import ConnectFailedError, Connector, Link, Reply, Target
from lanner.protocols.srmp.deadlines import Deadlines
from lanner.protocols.srmp.posting import Poster
from lanner.protocols.srmp.settings import SrmpSettings
from lanner.store import Changes

__all__ = ["SCOPE", "OutgoingSession", "StreamProgress"]

log = logging.getLogger(__name__)

SCOPE = "srmp.out"

TAKEN_AT_ONCE = 64
"""Messages that are read from the store at once."""

IN_FLIGHT_BYTES = 2 * 1024 * 1024
"""Bytes on their way before no more is sent, one message apart: they are all in memory."""

SLOWEST_LINK = 32 * 1024
"""Bytes a second that any network carries: an answer is waited for from when the message can be there."""

NO_RECEIPT = "no stream receipt came in time"

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


class StreamProgress(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What must be remembered of a stream that goes out (3.1.1.1.6)."""

    stream: int = 0
    acknowledged: int = 0


class _Sent(NamedTuple):
    """A message that is on its way and not answered yet."""

    position: Position
    message: Message
    place: Sequence | None
    """Its place in our own stream."""
    size: int


@dataclass(frozen=True)
class Services:
    """What all sessions share."""

    transfers: Transfers
    settings: SrmpSettings
    connector: Connector
    poster: Poster
    is_online: Callable[[], bool]


class OutgoingSession:
    """Sends what is in one outgoing queue."""

    def __init__(
        self, queue: OutgoingQueue, services: Services, progress: StreamProgress | None = None
    ) -> None:
        assert isinstance(queue.destination, DirectName)
        self.queue = queue
        self._services = services
        self._transfers = services.transfers
        self._settings = services.settings
        self._deadlines = Deadlines(services.transfers.clock)
        self._link: Link | None = None
        self._target: Target | None = None
        self._sent: deque[_Sent] = deque()
        self._sent_bytes = 0
        self._has_answered = False
        """Whether the connection has brought an answer yet."""
        self._is_pumping = False
        self._is_stopped = False
        self._concluding: dict[int, asyncio.Event] = {}
        """Messages that a final receipt is about to let go."""
        self._is_resetting = False
        self._rewinds = 0
        """How often messages were given their places back: what was taken before is not next any more."""
        progress = progress or StreamProgress()
        self._stream = progress.stream
        self._acknowledged = progress.acknowledged
        self._tail = progress.acknowledged
        """The number of the last message of the stream that was sent, or acknowledged."""
        self._reached = queue.stream.identifier, queue.stream.sequence
        """The stream, and the last number of it that was ever sent: before a restart that may be any."""
        self._waiting: dict[int, Position] = {}
        """By number: arrived, as the 200 says, and not yet acknowledged by a receipt."""
        self._unread: dict[int, Position] = {}
        """By number: acknowledged, and not yet known what became of them."""
        self._resend_index = 0
        self._must_resend = False
        self._resend_reason = NO_RECEIPT
        queue.served_by = "SRMP"
        self._set_state(OutgoingState.DISCONNECTED)
        self._deadlines.set(self._clean_up, self._settings.cleanup)

    @property
    def stream(self) -> int:
        """The identifier of the stream that is being sent, or will be."""
        return self._stream or self.queue.stream.identifier

    def owns(self, stream: int) -> bool:
        """Whether a stream is the one that is being sent, or was begun anew as this one."""
        return bool(stream) and (stream == self.stream or stream in self.queue.stream.resets)

    # Events.

    def wake(self) -> None:
        """There may be something to send."""
        state = self.queue.state
        if self._is_pumping or self._is_stopped or self._is_resetting or not self._services.is_online():
            return
        if state in (OutgoingState.ON_HOLD, OutgoingState.INACTIVE):
            return
        if self.queue.messages.available_count and self._has_room():
            self._is_pumping = True
            self._transfers.spawn(self._pump())

    def pause(self) -> None:
        """Pause Queue (3.1.7.4), or the manager is taken offline."""
        self._hang_up()
        self._deadlines.clear(self._resend)
        self._deadlines.clear(self._retry)
        self._set_state(OutgoingState.DISCONNECTED)

    def resume(self) -> None:
        """Resume Queue (3.1.7.5)."""
        self._set_state(OutgoingState.DISCONNECTED)
        self._await_receipts()
        self.wake()

    def resend(self) -> None:
        """Send everything again now that waits for a receipt: an administrator says so (MS-MQMR 3.1.4.2).

        The interval does not grow by that. What is paused or offline stays so.
        """
        is_held = self.queue.is_on_hold or not self._services.is_online()
        if is_held or self._is_stopped or self._is_resetting:
            return
        if self.queue.state is OutgoingState.INACTIVE:
            self._deadlines.clear(self._retry)
            self._set_state(OutgoingState.DISCONNECTED)
        if self._waiting:
            self._resend_waiting("an administrator asked for a resend")
        self.wake()

    def stop(self) -> None:
        """End: the messages are where they were."""
        self._is_stopped = True
        self._deadlines.stop()
        if self._link is not None:
            self._link.close()
            self._link = None

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to send, to wait for or to remember."""
        return not (self.queue.messages or self._sent or self._waiting or self._unread or self._link)

    # Sending.

    def _has_room(self) -> bool:
        # Before a stream is sent again, what is on its way is waited for: nothing behind it would be taken.
        if self._must_resend:
            return False
        return len(self._sent) < self._settings.in_flight and self._sent_bytes < IN_FLIGHT_BYTES

    async def _pump(self) -> None:
        try:
            while self._may_send() and self._has_room():
                room = min(self._settings.in_flight - len(self._sent), TAKEN_AT_ONCE)
                positions = self._transfers.take(self.queue, room)
                if not positions:
                    break
                rewinds = self._rewinds
                if not await self._send_all(positions) and rewinds == self._rewinds:
                    break
        finally:
            self._is_pumping = False

    def _may_send(self) -> bool:
        is_held = self.queue.state in (OutgoingState.ON_HOLD, OutgoingState.INACTIVE)
        return not (is_held or self._is_stopped or self._is_resetting) and self._services.is_online()

    async def _send_all(self, positions: list[Position]) -> bool:
        """Send messages that were taken; those that are not sent get their places back."""
        unsent = deque(positions)
        rewinds = self._rewinds
        try:
            messages = deque(await self._load(positions))
            if not messages:
                self._rewinds += 1  # one of them is gone: the others are taken once more
            elif arrived := self._arrived(unsent, messages):
                await self._settle(arrived)
                kept = {position.lookup_id for position, _, _ in arrived}
                messages = deque(
                    message
                    for position, message in zip(unsent, messages, strict=True)
                    if position.lookup_id not in kept
                )
                unsent = deque(position for position in unsent if position.lookup_id not in kept)
            # Whatever is waited for, something that comes before these may have been given back meanwhile.
            while unsent and await self._connect() and rewinds == self._rewinds:
                if not await self._send(unsent[0], messages[0], rewinds):
                    continue
                unsent.popleft()
                messages.popleft()
                if not self._has_room():
                    break
        except LannerError as error:
            log.warning(
                "sending from %s failed: %s", self.queue.name, error, extra=about(queues=[self.queue.name])
            )
            self._fail(ConnectionStatus.UNKNOWN_FAILURE, error.message)
        finally:
            # Also after a defect of ours: they must not stay locked.
            self._transfers.release(unsent)
        return not unsent

    def _arrived(
        self, positions: Iterable[Position], messages: Iterable[Message]
    ) -> list[tuple[Position, Message, int]]:
        """What receipts have told of and was not let go yet: a restart or a resend came between."""
        arrived = []
        for position, message in zip(positions, messages, strict=True):
            if message.transaction is None or self._is_gone(position) or not self._transfers.is_own(message):
                continue
            place = self._transfers.place_of(self.queue, message)
            if place.stream == self._stream and place.number <= self._acknowledged:
                arrived.append((position, message, place.number))
        return arrived

    async def _send(self, position: Position, message: Message, rewinds: int) -> bool:
        """Send User Message (3.1.7.2). Says whether it is dealt with: it may not be its turn any more."""
        place = None
        if self._is_gone(position):
            return True
        if self._has_expired(position):
            await self._drop_expired(position, message)
            return True
        if message.transaction is not None and self._transfers.is_own(message):
            place = await self._place(message)
            if place.number <= self._acknowledged:
                # It has arrived, and was not let go yet: a restart came between.
                await self._settle([(position, message, place.number)])
                return True
        if self._link is None or rewinds != self._rewinds:
            return False
        try:
            head, body = self._services.poster.request(message, place, self._target)
        except LannerError as error:
            await self._refuse(position, message, str(error))
            return True
        self._link.post(head, body)
        self._sent.append(_Sent(position, message, place, len(body)))
        self._sent_bytes += len(body)
        if place is not None:
            self._tail = place.number
            self._reached = max(self._reached, (place.stream, place.number))
        if not self._deadlines.is_set(self._time_out):
            self._deadlines.set(self._time_out, self._patience())
        return True

    def _is_gone(self, position: Position) -> bool:
        """Whether a message has left the queue meanwhile: deleted, or kept elsewhere."""
        return position.state is PositionState.DELETED or position.queue is not self.queue

    async def _place(self, message: Message) -> Sequence:
        """Where the message stands in the stream, with the number of the last one before it that was sent."""
        place = self._transfers.place_of(self.queue, message)
        if place.stream != self._stream:
            self._stream, self._acknowledged, self._tail = place.stream, 0, 0
        if self._tail == 0 and place.number > 1:
            # The first message is gone, and no receiver takes a stream without it (3.1.5.1.6.3): what is left
            # becomes a stream of its own. Receivers know by their identifiers what may have arrived already.
            await self._begin_anew(place.number)
            place = self._transfers.place_of(self.queue, message)
        return Sequence(place.stream, place.number, self._tail)

    async def _begin_anew(self, first: int) -> None:
        """Let the stream begin anew with one of its messages. Those before it have arrived, or are gone."""
        await self._transfers.reset_stream(self.queue, first)
        self._stream = self.queue.stream.identifier
        self._acknowledged = self._tail = 0
        self._unread = {number - first + 1: position for number, position in self._unread.items()}

    def _has_expired(self, position: Position) -> bool:
        return position.expires is not None and position.expires < self._transfers.clock.time()

    async def _drop_expired(self, position: Position, message: Message) -> None:
        """Checking for Message Expiration (3.1.7.2.1)."""
        changes = Changes()
        self._transfers.give_up(
            changes, position, message, MessageClass.NACK_REACH_QUEUE_TIMEOUT, event=HistoryEvent.EXPIRED
        )
        await self._transfers.finish(changes)

    async def _refuse(self, position: Position, message: Message, reason: str) -> None:
        """SRMP cannot say this message."""
        log.warning("%s cannot be sent: %s", message.id, reason, extra=_about(self.queue, message))
        changes = Changes()
        refusal = MessageClass.NACK_BAD_DESTINATION_QUEUE
        self._transfers.give_up(changes, position, message, refusal, detail=reason)
        await self._transfers.finish(changes)

    # The connection.

    async def _connect(self) -> bool:
        """Establish Transport Connection (3.1.7.9). Says whether messages can be sent."""
        if self._link is not None:
            return True
        if not self._may_send():
            return False
        self._target = self._services.poster.target(self.queue)
        self._set_state(OutgoingState.WAITING)
        self._remember(ConnectionStatus.IN_PROCESS)
        self._has_answered = False
        try:
            link = await self._services.connector(self._target, self)
        except ConnectFailedError as error:
            self._fail(error.status, error.message)
            return False
        if not self._may_send():
            link.close()
            return False
        self._link = link
        self.queue.peer = link.peer
        self._set_state(OutgoingState.CONNECTED)
        self._remember(ConnectionStatus.ESTABLISHED)
        self._deadlines.set(self._clean_up, self._settings.cleanup)
        return True

    def lost(self, reason: str) -> None:
        """The connection is gone."""
        self._link = None
        if not self._sent:
            self._set_state(OutgoingState.DISCONNECTED)
            self.wake()
        elif self._has_answered:
            self._give_back()
            self._set_state(OutgoingState.DISCONNECTED)
            self.wake()
        else:
            self._fail(ConnectionStatus.SOCKET_SEND_FAILURE, reason)

    def _fail(self, status: ConnectionStatus, detail: str) -> None:
        """Nothing can be sent at the moment: try again when the retransmission timer fires."""
        name = self.queue.name
        log.info(
            "%s: %s; next attempt in %g s",
            name,
            detail,
            self._settings.retransmission,
            extra=about(queues=[name]),
        )
        self._remember(status, detail)
        self._hang_up()
        self._deadlines.clear(self._resend)
        self._set_state(OutgoingState.INACTIVE)
        self._deadlines.set(self._retry, self._settings.retransmission)

    def _hang_up(self) -> None:
        self._deadlines.clear(self._time_out)
        if self._link is not None:
            self._link.close()
            self._link = None
        self._give_back()

    def _give_back(self) -> None:
        """What was not answered is sent again."""
        self._deadlines.clear(self._time_out)
        unanswered = [sent.position for sent in self._sent]
        self._sent.clear()
        self._sent_bytes = 0
        self._rewinds += 1
        # Those of the stream that were answered keep their places before them.
        self._tail = next(reversed(self._waiting), self._acknowledged)
        self._transfers.release(unanswered)
        if self._must_resend:
            self._send_again()

    def _retry(self) -> None:
        """Retransmission Timer (3.1.6.1)."""
        if self.queue.state is not OutgoingState.INACTIVE:
            return
        self._set_state(OutgoingState.DISCONNECTED)
        self._await_receipts()
        self.wake()

    def _patience(self) -> float:
        """Seconds in which the oldest message that was sent has to be answered."""
        return self._settings.response_timeout + self._sent[0].size // SLOWEST_LINK

    def _time_out(self) -> None:
        if self._sent:
            detail = f"no answer within {self._patience():g} seconds"
            self._fail(ConnectionStatus.UNKNOWN_FAILURE, detail)

    def _clean_up(self) -> None:
        """Session Cleanup Timer (3.1.6.4)."""
        is_at_rest = self.queue.state in (OutgoingState.CONNECTED, OutgoingState.DISCONNECTED)
        if self._sent or self._is_pumping or not is_at_rest:
            self._deadlines.set(self._clean_up, self._settings.cleanup)
            return
        self._hang_up()
        self._set_state(OutgoingState.DISCONNECTED)
        self._deadlines.set(self._clean_up, self._settings.cleanup)
        if self.is_idle:
            changes = Changes()
            changes.state_deletes.append((SCOPE, str(self.queue.id)))
            self._transfers.forget_idle(self.queue, changes)

    # Answers.

    def replied(self, replies: list[Reply]) -> None:
        """Sending the Message (3.1.7.2.5): the reaction to each answer."""
        self._has_answered = True
        changes = Changes()
        failure: Reply | None = None
        for reply in replies:
            if not self._sent:
                failure = Reply(reply.status, "it answers what it was not asked")
                break
            if reply.status not in REFUSALS and not 200 <= reply.status < 300:
                failure = reply
                break
            sent = self._sent.popleft()
            self._sent_bytes -= sent.size
            self._settle_answer(changes, sent, reply)
        self._finish(changes)
        self._await_receipts()
        self._deadlines.set(self._clean_up, self._settings.cleanup)
        if failure is not None:
            self._fail(
                ConnectionStatus.CONNECTION_NOT_READY, f"it answered {failure.status}: {failure.reason}"
            )
            return
        if self._sent:
            self._deadlines.set(self._time_out, self._patience())
        else:
            self._deadlines.clear(self._time_out)
            if self._must_resend:
                self._send_again()
        self.wake()

    def _settle_answer(self, changes: Changes, sent: _Sent, reply: Reply) -> None:
        peer = str(self._target)
        if self._is_gone(sent.position):
            return  # its queue was deleted, or it is known already what became of it
        if reply.status in REFUSALS:
            detail = f"it was answered {reply.status}: {reply.reason}"
            log.warning("%s: %s", sent.message.id, detail, extra=_about(self.queue, sent.message))
            refusal = MessageClass.NACK_BAD_DESTINATION_QUEUE
            self._transfers.give_up(changes, sent.position, sent.message, refusal, detail=detail, peer=peer)
            # What was sent behind it names it as the one before, which it will never be.
            self._must_resend = self._must_resend or sent.place is not None
        elif sent.place is None:
            self._transfers.hand_over(changes, sent.position, sent.message, peer)
        elif sent.place.stream == self._stream and sent.place.number > self._acknowledged:
            self._waiting[sent.place.number] = sent.position
        else:
            self._settle_acknowledged(changes, sent.position, sent.message, sent.place.number)

    def _finish(self, changes: Changes) -> None:
        if changes.is_durable() or changes.history or changes.on_applied:
            self._transfers.spawn(self._finish_quietly(changes))

    async def _finish_quietly(self, changes: Changes) -> None:
        try:
            await self._transfers.finish(changes)
        except LannerError as error:
            # They have their places back, and are sent again: the receiver knows them.
            log.warning("what %s has sent could not be settled: %s", self.queue.name, error)

    # The stream.

    def _await_receipts(self) -> None:
        """Stream Receipt Wait Timer (3.1.2.2)."""
        is_held = self.queue.is_on_hold or not self._services.is_online()
        if self._waiting and not is_held and not self._deadlines.is_set(self._resend):
            self._deadlines.set(self._resend, self._resend_interval())
        self._show()

    def _resend_interval(self) -> float:
        table = self._settings.resend
        return table[min(self._resend_index, len(table) - 1)]

    def _resend(self) -> None:
        """No receipt has come in time: send everything again that waits for one (3.1.6.2)."""
        if self._waiting:
            self._resend_index += 1
            self._resend_waiting(NO_RECEIPT)

    def _resend_waiting(self, reason: str) -> None:
        self.queue.transfer.resends += 1
        self._resend_reason = reason
        log.info(
            "%s: %s for %d messages of its stream; they are sent again",
            self.queue.name,
            reason,
            len(self._waiting),
            extra=about(queues=[self.queue.name]),
        )
        if self._sent:
            self._must_resend = True
        else:
            self._send_again()
        self._deadlines.set(self._resend, self._resend_interval())
        self.wake()

    def _send_again(self) -> None:
        self._must_resend = False
        positions = [position for _, position in sorted(self._waiting.items())]
        self._waiting.clear()
        self._rewinds += 1
        self._tail = self._acknowledged
        self._note_resent(positions)
        self._transfers.release(positions)

    def _note_resent(self, positions: list[Position]) -> None:
        changes = Changes()
        for position in positions:
            if position.state is not PositionState.DELETED:
                message = Message(
                    id=position.id, lookup_id=position.lookup_id, destination_queue=self.queue.name
                )
                self._transfers.record(
                    changes,
                    HistoryEvent.RETRANSMITTED,
                    self.queue.name,
                    message,
                    reason=self._resend_reason,
                    peer=str(self._target),
                )
        self._transfers.submit(changes)

    async def acknowledge(self, number: int, stream: int = 0) -> None:
        """Stream Receipt Message Processing (3.1.5.1.8): everything up to a number has arrived."""
        self._stream = self.stream  # known before the first message is sent, if a restart came between
        if stream and stream != self._stream:
            return  # of a stream that was begun anew
        if (self._stream, number) > self._reached:
            sent = self._reached[1]
            log.warning("%s: a receipt for %d, and only %d were sent", self.queue.name, number, sent)
            return
        transfer, clock = self.queue.transfer, self._transfers.clock
        transfer.last_acknowledgment_time = clock.time()
        transfer.last_acknowledgment_count += 1
        if number <= self._acknowledged:
            return
        self._acknowledged = number
        self._tail = max(self._tail, number)
        self._resend_index = 0
        self._deadlines.clear(self._resend)
        covered = [(each, self._waiting.pop(each)) for each in sorted(self._waiting) if each <= number]
        self._await_receipts()
        settled = 0
        try:
            while settled < max(len(covered), 1):
                await self._settle_covered(covered[settled : settled + RECEIPT_CHUNK])
                settled += RECEIPT_CHUNK
        finally:
            # Where that fails they get their places back, and are settled when it is their turn to be sent.
            self._transfers.release([position for _, position in covered[settled:]])
        self.wake()

    async def _settle_covered(self, covered: list[tuple[int, Position]]) -> None:
        covered = [(number, position) for number, position in covered if not self._is_gone(position)]
        messages = await self._load([position for _, position in covered], bodies=False)
        while len(messages) != len(covered):
            covered = [(number, position) for number, position in covered if not self._is_gone(position)]
            messages = await self._load([position for _, position in covered], bodies=False)
        await self._settle(
            [
                (position, message, number)
                for (number, position), message in zip(covered, messages, strict=True)
                if not self._is_gone(position)
            ]
        )

    async def _settle(self, arrived: list[tuple[Position, Message, int]]) -> None:
        changes = Changes()
        progress = StreamProgress(self._stream, self._acknowledged)
        changes.state.append((SCOPE, str(self.queue.id), msgspec.msgpack.encode(progress)))
        for position, message, number in arrived:
            self._settle_acknowledged(changes, position, message, number)
        await self._transfers.finish(changes)
        self._show()

    def _settle_acknowledged(
        self, changes: Changes, position: Position, message: Message, number: int
    ) -> None:
        marks = message.transaction
        if marks is not None and marks.final_ack_required:
            self._unread[number] = position
            self._transfers.keep_until_received(changes, position)
            return
        self._transfers.hand_over(
            changes,
            position,
            message,
            str(self._target),
            reason=MessageClass.ORDER_ACK,
            event=HistoryEvent.ACKNOWLEDGED,
        )

    async def conclude(
        self, number: int, message_class: int, stream: int = 0, identifier: MessageId | None = None
    ) -> bool:
        """Final Stream Receipt Message Processing (3.1.5.1.9). Says whether there was such a message.

        The message may be anywhere in the queue: waiting for this, or after a restart not sent again yet.
        """
        while (position := await self._find(stream or self.stream, number, identifier)) is not None:
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
        messages = await self._load([position], bodies=False)
        if not messages or self._is_gone(position):
            return False
        [message] = messages
        if position.state is PositionState.AVAILABLE:
            self.queue.messages.lock(position)
        changes = Changes()
        if message_class == MessageClass.ACK_RECEIVE:
            self._transfers.hand_over(
                changes,
                position,
                message,
                str(self._target),
                reason=MessageClass.ACK_RECEIVE,
                event=HistoryEvent.ACKNOWLEDGED,
            )
        else:
            reason = MessageClass(message_class)
            self._transfers.give_up(
                changes,
                position,
                message,
                reason,
                event=_NEGATIVE_EVENTS.get(message_class, HistoryEvent.REJECTED),
                detail=f"told by the receiver: {describe_class(reason)}",
                peer=str(self._target),
                tell=False,
            )
        await self._transfers.finish(changes)
        place = self._transfers.place_of(self.queue, message)
        if place.stream == self._stream:
            self._unread.pop(place.number, None)
            self._waiting.pop(place.number, None)
        self._show()
        return True

    async def _find(self, stream: int, number: int, identifier: MessageId | None) -> Position | None:
        """The message that a receipt is about: by its identifier, which stays the same, or by its number."""
        if identifier is not None:
            found = self.queue.messages.with_id(identifier)
            return next((position for position in found if not self._is_gone(position)), None)
        moved = self.queue.stream.resets.get(stream)
        if moved is not None:
            # It arrived under a number that a stream had before it was begun anew.
            stream, number = moved[0], number - moved[1]
        known = self._unread.get(number) or self._waiting.get(number)
        if stream == self._stream and known is not None and not self._is_gone(known):
            return known
        async for position, message in self._transfers.places(self.queue):
            place = self._transfers.place_of(self.queue, message)
            if (stream, number) == (place.stream, place.number):
                return None if self._is_gone(position) else position
        return None

    async def _load(self, positions: list[Position], *, bodies: bool = True) -> list[Message]:
        """Read messages; none of them, if a final receipt has let one of them go meanwhile."""
        try:
            return await self._transfers.load(positions, bodies=bodies)
        except MessageNotFoundError:
            for position in positions:
                if self._is_gone(position) or position.lookup_id in self._concluding:
                    return []
            raise

    async def reset(self) -> int:
        """Begin a new stream with what waits, because an administrator says so."""
        self._is_resetting = True  # nothing is sent in between
        try:
            count = await self._reset()
        finally:
            self._is_resetting = False
        self._set_state(OutgoingState.DISCONNECTED)
        self.wake()
        return count

    async def _reset(self) -> int:
        self._hang_up()
        self._deadlines.clear(self._resend)
        waiting = [position for _, position in sorted(self._waiting.items())]
        self._waiting.clear()
        self._transfers.release(waiting)
        first, count = 0, 0
        async for _, message in self._transfers.places(self.queue):
            place = self._transfers.place_of(self.queue, message)
            # What has arrived, and is not received yet, stays what it is.
            if place.number > (self._acknowledged if place.stream == self._stream else 0):
                first, count = first or place.number, count + 1
        if first:
            await self._begin_anew(first)
        return count

    # What is shown.

    def _set_state(self, state: OutgoingState) -> None:
        self._transfers.set_state(self.queue, state)

    def _remember(self, status: ConnectionStatus, detail: str = "") -> None:
        connections = self.queue.connections
        if connections and connections[-1].status is ConnectionStatus.IN_PROCESS:
            connections.pop()
        now = self._transfers.clock.time()
        connections.append(Connection(status=status, time=now, address=str(self._target), detail=detail))

    def _show(self) -> None:
        transfer = self.queue.transfer
        stream, tail = self._stream, self._tail
        # Answers come in the order of the numbers.
        first = next(iter(self._waiting), 0)
        last = next(reversed(self._waiting), 0)
        transfer.first_unacknowledged = Sequence(stream, first, first - 1) if first else None
        transfer.last_unacknowledged = Sequence(stream, last, last - 1) if last else None
        acknowledged = self._acknowledged
        transfer.last_acknowledged = (
            Sequence(stream, acknowledged, max(0, acknowledged - 1)) if stream else None
        )
        transfer.next_sequence = Sequence(stream, tail + 1, tail) if stream else None
        transfer.unacknowledged = len(self._waiting)
        transfer.unread = len(self._unread)
        transfer.resend_interval = self._resend_interval()
        left = self._deadlines.seconds_left(self._resend)
        transfer.resend_time = 0.0 if left is None else self._transfers.clock.time() + left


def _about(queue: OutgoingQueue, message: Message) -> dict[str, object]:
    return about(queues=[queue.name], messages=[message.id])
