"""The stream that an outgoing queue sends: how far it has got (MC-MQSRM 3.1.1.1.6, 3.1.7.2.3, 3.1.6.2).

All transactional messages of the queue that come from this machine are one stream, numbered when they were
queued (``manager/numbering.py``). A message of it is

===========  ======================================  =================================================
it is        since                                   until
===========  ======================================  =================================================
queued       it was numbered                         it is sent, in the order of the numbers
on its way   it was posted                           an answer; without one it is queued again
waiting      it was answered 200                     a stream receipt; without one it is queued again
unread       a receipt, with negative journaling     a final receipt
gone         a receipt, a final receipt, a refusal
===========  ======================================  =================================================

Two numbers say how far it is. Up to *acknowledged* everything has arrived: it only grows, and is all that is
kept over a restart. The *tail* is the last number that was sent: the next message names it as the one before,
so that a gap is bridged. The tail goes back when messages are queued again.

When no receipt comes, everything that waits is queued again, but not before all that is on its way is
answered: a receiver takes nothing whose message before is missing. A stream whose first message is gone is
taken by no receiver; what is left of it begins a new one.

A stream that was forgotten is not begun anew from here. A queue that was deleted and made again at the
receiver waits for the first message, which was acknowledged long ago; all others it answers 200 and ignores.
From here that looks the same as a receiver that has taken everything and whose receipts do not get through:
the answers are the same, and whatever else it could say would take the way that is blocked. For that one a
new stream is only safe as long as it knows the identifiers: half an hour, or 10,000 messages of all its
senders. Neither can be seen from here, and messages may wait longer: no timer runs while a queue is paused.
Nor does the new queue know what the old one had taken. So exactly once would be lost, and an administrator
has to look: log, history and ``lanner why`` say how, when so many time-outs have passed without a receipt.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence as Table
from typing import Protocol

import msgspec

from lanner.manager.positions import Position, PositionState
from lanner.manager.queues import OutgoingQueue
from lanner.manager.transfers import Transfers
from lanner.model.history import HistoryEvent
from lanner.model.log_fields import about
from lanner.model.message import Message
from lanner.model.transfer import Sequence
from lanner.protocols.srmp.deadlines import Deadlines
from lanner.store import Changes

__all__ = ["SCOPE", "SentStream", "StreamOwner", "StreamProgress"]

log = logging.getLogger(__name__)

SCOPE = "srmp.out"

NO_RECEIPT = "no stream receipt came in time"
FORGOTTEN = f"{NO_RECEIPT}, again and again: the destination may have forgotten the stream"


class StreamProgress(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What must be remembered of a stream that goes out (3.1.1.1.6)."""

    stream: int = 0
    acknowledged: int = 0


class StreamOwner(Protocol):
    """The session, as its stream sees it."""

    @property
    def is_held(self) -> bool:
        """Whether nothing may be sent: the queue is paused, or the manager offline."""

    @property
    def has_unanswered(self) -> bool:
        """Whether something is on its way."""

    @property
    def peer(self) -> str:
        """Where messages are sent."""

    def rewind(self, positions: list[Position]) -> None:
        """Give messages their places back: they are next, and not what was taken to be sent."""

    def wake(self) -> None:
        """There may be something to send."""


class SentStream:
    """The stream of one outgoing queue."""

    def __init__(
        self,
        queue: OutgoingQueue,
        transfers: Transfers,
        intervals: Table[float],
        deadlines: Deadlines,
        owner: StreamOwner,
        progress: StreamProgress,
    ) -> None:
        self._queue = queue
        self._transfers = transfers
        self._intervals = intervals
        self._deadlines = deadlines
        self._owner = owner
        self._stream = progress.stream
        self._acknowledged = self._tail = progress.acknowledged
        self._reached = max(
            (queue.stream.identifier, queue.stream.sequence), (progress.stream, progress.acknowledged)
        )
        """The stream, and the last number of it that was ever sent: before a restart that may be any.

        A queue that is empty after a restart knows of no stream; what was acknowledged was sent all the same.
        """
        self._waiting: dict[int, Position] = {}
        """By number: arrived, as the 200 says, and not yet acknowledged by a receipt."""
        self._unread: dict[int, Position] = {}
        """By number: acknowledged, and not yet known what became of them."""
        self._resend_index = 0
        self._resend_reason = NO_RECEIPT
        self.must_resend = False
        """Whether all that waits is sent again as soon as nothing is on its way."""

    def __bool__(self) -> bool:
        return bool(self._waiting or self._unread)

    @property
    def identifier(self) -> int:
        """The identifier of the stream that is being sent, or will be."""
        return self._stream or self._queue.stream.identifier

    @property
    def progress(self) -> StreamProgress:
        """What must be remembered."""
        return StreamProgress(self._stream, self._acknowledged)

    def has_arrived(self, place: Sequence) -> bool:
        """Whether a receipt has told of a message."""
        return place.stream == self._stream and place.number <= self._acknowledged

    def find(self, stream: int, number: int) -> Position | None:
        """A message that waits for a receipt of either kind."""
        return (self._unread.get(number) or self._waiting.get(number)) if stream == self._stream else None

    # Sending.

    async def place(self, message: Message) -> Sequence:
        """Where the message stands in the stream, with the number of the last one before it that was sent."""
        place = self._transfers.place_of(self._queue, message)
        if place.stream != self._stream:
            self._begin(place.stream)
        if self._tail == 0 and place.number > 1:
            # The first message is gone, and no receiver takes a stream without it (3.1.5.1.6.3): what is left
            # becomes a stream of its own. Receivers know by their identifiers what may have arrived already.
            await self._begin_anew(place.number)
            place = self._transfers.place_of(self._queue, message)
        return Sequence(place.stream, place.number, self._tail)

    def sent(self, place: Sequence) -> None:
        """A message was posted."""
        self._tail = place.number
        self._reached = max(self._reached, (place.stream, place.number))

    def answered(self, place: Sequence, position: Position) -> bool:
        """A message was answered 200. Says whether a receipt has yet to come."""
        is_waiting = place.stream == self._stream and place.number > self._acknowledged
        if is_waiting:
            self._waiting[place.number] = position
        return is_waiting

    def step_back(self) -> None:
        """What was not answered is queued again; those that were answered keep their places before it."""
        self._tail = next(reversed(self._waiting), self._acknowledged)

    # Receipts.

    def await_receipts(self) -> None:
        """Stream Receipt Wait Timer (3.1.2.2)."""
        if self._waiting and not self._owner.is_held and not self._deadlines.is_set(self._time_out):
            self._deadlines.set(self._time_out, self._interval())
        self.show()

    def stop_timer(self) -> None:
        """Nothing is sent for a while, so no receipt is waited for."""
        self._deadlines.clear(self._time_out)

    def acknowledge(self, number: int, stream: int) -> list[tuple[int, Position]] | None:
        """A receipt: everything up to a number has arrived (3.1.5.1.8).

        Returns what was waiting for it, by number; None if it says nothing new.
        """
        self._stream = self.identifier  # known before the first message is sent, if a restart came between
        if stream and stream != self._stream:
            return None  # of a stream that was begun anew
        if (self._stream, number) > self._reached:
            sent = self._reached[1]
            log.warning("%s: a receipt for %d, and only %d were sent", self._queue.name, number, sent)
            return None
        transfer = self._queue.transfer
        transfer.last_acknowledgment_time = self._transfers.clock.time()
        transfer.last_acknowledgment_count += 1
        if number <= self._acknowledged:
            return None
        self._acknowledged = number
        self._tail = max(self._tail, number)
        self._resend_index = 0
        self.stop_timer()
        covered = [(each, self._waiting.pop(each)) for each in sorted(self._waiting) if each <= number]
        self.await_receipts()
        return covered

    def keep_unread(self, number: int, position: Position) -> None:
        """A message has arrived, and a final receipt will say what became of it."""
        self._unread[number] = position

    def forget(self, place: Sequence) -> None:
        """It is known what became of a message."""
        if place.stream == self._stream:
            self._unread.pop(place.number, None)
            self._waiting.pop(place.number, None)
        self.show()

    # Sending again.

    def _interval(self) -> float:
        return self._intervals[min(self._resend_index, len(self._intervals) - 1)]

    def _time_out(self) -> None:
        """No receipt has come in time: send everything again that waits for one (3.1.6.2)."""
        if not self._waiting:
            return
        self._resend_index += 1
        self.show()
        if not self._queue.transfer.may_be_forgotten:
            self._resend(NO_RECEIPT)
            return
        name = self._queue.name
        log.warning(
            "%s: no receipt came for messages that were sent %d times; see there whether they were taken: "
            "if not, begin a new stream (lanner srmp reset '%s'); if so, see that receipts get through",
            name,
            self._resend_index,
            name,
            extra=about(queues=[name]),
        )
        self._resend(FORGOTTEN)

    def resend(self, reason: str) -> None:
        """Send everything again that waits for a receipt. The interval does not grow by that."""
        if self._waiting:
            self._resend(reason)

    def _resend(self, reason: str) -> None:
        self._queue.transfer.resends += 1
        self._resend_reason = reason
        log.info(
            "%s: %s for %d messages of its stream; they are sent again",
            self._queue.name,
            reason,
            len(self._waiting),
            extra=about(queues=[self._queue.name]),
        )
        self.must_resend = True
        if not self._owner.has_unanswered:
            self.send_again()
        self._deadlines.set(self._time_out, self._interval())
        self._owner.wake()

    def send_again(self) -> None:
        """Queue everything again that waits for a receipt, if that is due: nothing is on its way."""
        if not self.must_resend:
            return
        self.must_resend = False
        positions = self._take_waiting()
        self._tail = self._acknowledged
        self._note_resent(positions)
        self._owner.rewind(positions)

    def _take_waiting(self) -> list[Position]:
        positions = [position for _, position in sorted(self._waiting.items())]
        self._waiting.clear()
        return positions

    def _note_resent(self, positions: list[Position]) -> None:
        name, changes = self._queue.name, Changes()
        for position in positions:
            if position.state is not PositionState.DELETED:
                message = Message(id=position.id, lookup_id=position.lookup_id, destination_queue=name)
                self._transfers.record(
                    changes,
                    HistoryEvent.RETRANSMITTED,
                    name,
                    message,
                    reason=self._resend_reason,
                    peer=self._owner.peer,
                )
        self._transfers.submit(changes)

    # Beginning anew.

    async def reset(self) -> int:
        """Begin a new stream with what has not arrived. Says how many messages that is."""
        self.stop_timer()
        self._transfers.release(self._take_waiting())
        first, count = 0, 0
        async for _, message in self._transfers.places(self._queue):
            place = self._transfers.place_of(self._queue, message)
            # What has arrived, and is not received yet, stays what it is.
            if place.number > (self._acknowledged if place.stream == self._stream else 0):
                first, count = first or place.number, count + 1
        if first:
            await self._begin_anew(first)
        return count

    async def _begin_anew(self, first: int) -> None:
        """Let the stream begin anew with one of its messages. Those before it have arrived, or are gone."""
        await self._transfers.reset_stream(self._queue, first)
        self._begin(self._queue.stream.identifier)
        self._unread = {number - first + 1: position for number, position in self._unread.items()}

    def _begin(self, stream: int) -> None:
        self._stream = stream
        self._acknowledged = self._tail = 0
        self._resend_index = 0  # what another stream has waited for in vain says nothing of this one

    # What is shown.

    def show(self) -> None:
        """Tell administrators (OutgoingTransferInfo, MS-MQDMPR 3.1.1.4)."""
        transfer = self._queue.transfer
        stream, tail, acknowledged = self._stream, self._tail, self._acknowledged
        # Answers come in the order of the numbers.
        first = next(iter(self._waiting), 0)
        last = next(reversed(self._waiting), 0)
        transfer.first_unacknowledged = Sequence(stream, first, first - 1) if first else None
        transfer.last_unacknowledged = Sequence(stream, last, last - 1) if last else None
        transfer.last_acknowledged = (
            Sequence(stream, acknowledged, max(0, acknowledged - 1)) if stream else None
        )
        transfer.next_sequence = Sequence(stream, tail + 1, tail) if stream else None
        transfer.unacknowledged = len(self._waiting)
        transfer.unread = len(self._unread)
        transfer.fruitless_resends = self._resend_index
        transfer.resend_interval = self._interval()
        left = self._deadlines.seconds_left(self._time_out)
        transfer.resend_time = 0.0 if left is None else self._transfers.clock.time() + left
