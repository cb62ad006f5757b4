"""One outgoing queue over SRMP: when it connects, sends and waits (MC-MQSRM 3.1.7, 3.1.6).

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
any           pause                    on hold       close or stop connecting (3.1.7.4)
on hold       resume                   disconnected  and on, if there are messages (3.1.7.5)
============  =======================  ============  ============================================

The connection itself is in ``line.py``, what becomes of a message that was sent in ``settling.py``, and how
far the queue's stream has got in ``outgoing_stream.py``.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from lanner.manager.positions import Position
from lanner.manager.queues import OutgoingQueue
from lanner.manager.transfers import Transfers
from lanner.model.errors import LannerError
from lanner.model.format_name import DirectName
from lanner.model.log_fields import about
from lanner.model.message import Message
from lanner.model.message_id import MessageId
from lanner.model.queue import OutgoingState
from lanner.model.transfer import ConnectionStatus
from lanner.protocols.srmp.client import ConnectFailedError, Connector, Reply
from lanner.protocols.srmp.deadlines import Deadlines
from lanner.protocols.srmp.line import Line
from lanner.protocols.srmp.outgoing_stream import SCOPE, SentStream, StreamProgress
from lanner.protocols.srmp.posting import Poster
from lanner.protocols.srmp.settings import SrmpSettings
from lanner.protocols.srmp.settling import Settling
from lanner.store import Changes

__all__ = ["OutgoingSession", "Services"]

log = logging.getLogger(__name__)

TAKEN_AT_ONCE = 64
"""Messages that are read from the store at once."""


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
        self._line = Line(queue, services.connector, services.transfers.clock)
        self._is_pumping = False
        self._is_stopped = False
        self._is_resetting = False
        self._rewinds = 0
        """How often messages were given their places back: what was taken before is not next any more."""
        self._stream = SentStream(
            queue,
            services.transfers,
            services.settings.resend,
            self._deadlines,
            self,
            progress or StreamProgress(),
        )
        self._settling = Settling(queue, services.transfers, self._stream, lambda: self.peer)
        queue.served_by = "SRMP"
        self._set_state(OutgoingState.DISCONNECTED)
        self._deadlines.set(self._clean_up, self._settings.cleanup)

    @property
    def stream(self) -> int:
        """The identifier of the stream that is being sent, or will be."""
        return self._stream.identifier

    def owns(self, stream: int) -> bool:
        """Whether a stream is the one that is being sent, or was begun anew as this one."""
        return bool(stream) and (stream == self.stream or stream in self.queue.stream.resets)

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to send, to wait for or to remember."""
        return not (self.queue.messages or self._line.unanswered or self._stream or self._line.is_open)

    # What the stream wants to know.

    @property
    def is_held(self) -> bool:
        """Whether nothing may be sent: the queue is paused, or the manager offline."""
        return self.queue.is_on_hold or not self._services.is_online()

    @property
    def has_unanswered(self) -> bool:
        """Whether something is on its way."""
        return self._line.unanswered > 0

    @property
    def peer(self) -> str:
        """Where messages are sent."""
        return str(self._line.target)

    def rewind(self, positions: list[Position]) -> None:
        """Give messages their places back: they are next, and not what was taken to be sent."""
        self._rewinds += 1
        self._transfers.release(positions)

    # Events.

    def wake(self) -> None:
        """There may be something to send."""
        if self._is_pumping or not self._may_send():
            return
        if self.queue.messages.available_count and self._has_room():
            self._is_pumping = True
            self._transfers.spawn(self._pump())

    def pause(self) -> None:
        """Pause Queue (3.1.7.4), or the manager is taken offline."""
        self._hang_up()
        self._stream.stop_timer()
        self._deadlines.clear(self._retry)
        self._set_state(OutgoingState.DISCONNECTED)

    def resume(self) -> None:
        """Resume Queue (3.1.7.5)."""
        self._set_state(OutgoingState.DISCONNECTED)
        self._stream.await_receipts()
        self.wake()

    def resend(self) -> None:
        """Send everything again now that waits for a receipt: an administrator says so (MS-MQMR 3.1.4.2).

        The interval does not grow by that. What is paused or offline stays so.
        """
        if self.is_held or self._is_stopped or self._is_resetting:
            return
        if self.queue.state is OutgoingState.INACTIVE:
            self._deadlines.clear(self._retry)
            self._set_state(OutgoingState.DISCONNECTED)
        self._stream.resend("an administrator asked for a resend")
        self.wake()

    def stop(self) -> None:
        """End: the messages are where they were."""
        self._is_stopped = True
        self._deadlines.stop()
        self._line.close()

    async def acknowledge(self, number: int, stream: int = 0) -> None:
        """Stream Receipt Message Processing (3.1.5.1.8): everything up to a number has arrived."""
        covered = self._stream.acknowledge(number, stream)
        if covered is not None:
            await self._settling.settle_covered(covered)
            self.wake()

    async def conclude(
        self, number: int, message_class: int, stream: int = 0, identifier: MessageId | None = None
    ) -> bool:
        """Final Stream Receipt Message Processing (3.1.5.1.9). Says whether there was such a message."""
        return await self._settling.conclude(stream or self.stream, number, message_class, identifier)

    async def reset(self) -> int:
        """Begin a new stream with what waits, because an administrator says so."""
        self._is_resetting = True  # nothing is sent in between
        try:
            self._hang_up()
            count = await self._stream.reset()
        finally:
            self._is_resetting = False
        self._set_state(OutgoingState.DISCONNECTED)
        self.wake()
        return count

    # Sending.

    def _has_room(self) -> bool:
        # Before a stream is sent again, what is on its way is waited for: nothing behind it would be taken.
        if self._stream.must_resend:
            return False
        return self._line.unanswered < self._settings.in_flight and not self._line.is_full

    async def _pump(self) -> None:
        try:
            while self._may_send() and self._has_room():
                room = min(self._settings.in_flight - self._line.unanswered, TAKEN_AT_ONCE)
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
            messages = deque(await self._settling.load(positions))
            if not messages:
                self._rewinds += 1  # one of them is gone: the others are taken once more
            else:
                pairs = await self._settling.settle_arrived(zip(positions, messages, strict=True))
                unsent = deque(position for position, _ in pairs)
                messages = deque(message for _, message in pairs)
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

    async def _send(self, position: Position, message: Message, rewinds: int) -> bool:
        """Send User Message (3.1.7.2). Says whether it is dealt with: it may not be its turn any more."""
        place = None
        if self._settling.is_gone(position):
            return True
        if position.expires is not None and position.expires < self._transfers.clock.time():
            await self._settling.drop_expired(position, message)
            return True
        if message.transaction is not None and self._transfers.is_own(message):
            place = await self._stream.place(message)
            if self._stream.has_arrived(place):
                # It was not let go yet: a restart came between.
                await self._settling.settle_one(position, message, place.number)
                return True
        if not self._line.is_open or rewinds != self._rewinds:
            return False
        try:
            head, body = self._services.poster.request(message, place, self._line.target)
        except LannerError as error:
            await self._settling.refuse(position, message, str(error))
            return True
        self._line.post(head, body, position, message, place)
        if place is not None:
            self._stream.sent(place)
        if not self._deadlines.is_set(self._time_out):
            self._deadlines.set(self._time_out, self._patience())
        return True

    # The connection.

    async def _connect(self) -> bool:
        """Establish Transport Connection (3.1.7.9). Says whether messages can be sent."""
        if self._line.is_open:
            return True
        if not self._may_send():
            return False
        self._set_state(OutgoingState.WAITING)
        try:
            if not await self._line.connect(self._services.poster.target(self.queue), self):
                return False  # hung up meanwhile
        except ConnectFailedError as error:
            self._fail(error.status, error.message)
            return False
        if not self._may_send():
            self._line.close()
            return False
        self._set_state(OutgoingState.CONNECTED)
        self._deadlines.set(self._clean_up, self._settings.cleanup)
        return True

    def lost(self, reason: str) -> None:
        """The connection is gone."""
        if self._line.is_connecting:
            # It was closed in the moment in which it was made.
            self._fail(ConnectionStatus.SOCKET_CONNECT_FAILURE, reason)
            return
        self._line.lost()
        if self._line.unanswered and not self._line.has_answered:
            self._fail(ConnectionStatus.SOCKET_SEND_FAILURE, reason)
            return
        if self._line.unanswered:
            self._give_back()
        self._set_state(OutgoingState.DISCONNECTED)
        self.wake()

    def _fail(self, status: ConnectionStatus, detail: str) -> None:
        """Nothing can be sent at the moment: try again when the retransmission timer fires."""
        name, seconds = self.queue.name, self._settings.retransmission
        log.info("%s: %s; next attempt in %g s", name, detail, seconds, extra=about(queues=[name]))
        self._line.remember(status, detail)
        self._hang_up()
        self._stream.stop_timer()
        self._set_state(OutgoingState.INACTIVE)
        self._deadlines.set(self._retry, seconds)

    def _hang_up(self) -> None:
        self._line.close()
        self._give_back()

    def _give_back(self) -> None:
        """What was not answered is sent again."""
        self._deadlines.clear(self._time_out)
        self._stream.step_back()
        self.rewind(self._line.take_unanswered())
        self._stream.send_again()

    def _retry(self) -> None:
        """Retransmission Timer (3.1.6.1)."""
        if self.queue.state is not OutgoingState.INACTIVE:
            return
        self._set_state(OutgoingState.DISCONNECTED)
        self._stream.await_receipts()
        self.wake()

    def _patience(self) -> float:
        return self._line.patience(self._settings.response_timeout)

    def _time_out(self) -> None:
        if self._line.unanswered:
            detail = f"no answer within {self._patience():g} seconds"
            self._fail(ConnectionStatus.UNKNOWN_FAILURE, detail)

    def _clean_up(self) -> None:
        """Session Cleanup Timer (3.1.6.4)."""
        is_at_rest = self.queue.state in (OutgoingState.CONNECTED, OutgoingState.DISCONNECTED)
        if self._line.unanswered or self._is_pumping or not is_at_rest:
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
        self._line.has_answered = True
        failure = self._settling.settle_answers(self._line, replies)
        self._stream.await_receipts()
        self._deadlines.set(self._clean_up, self._settings.cleanup)
        if failure is not None:
            detail = f"it answered {failure.status}: {failure.reason}"
            self._fail(ConnectionStatus.CONNECTION_NOT_READY, detail)
            return
        if self._line.unanswered:
            self._deadlines.set(self._time_out, self._patience())
        else:
            self._deadlines.clear(self._time_out)
            self._stream.send_again()
        self.wake()

    def _set_state(self, state: OutgoingState) -> None:
        self._transfers.set_state(self.queue, state)
