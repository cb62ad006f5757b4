"""Streams that come in: which message is next, and when the sender is told (MC-MQSRM 3.1.5.1.6.3, 3.1.6.3).

One stream for each sender and destination queue. A message of it is

============  ==========================================================================================
accepted      as the first (``start``, number 1) of a stream that is newer than the last one
accepted      as the next: the stream is the current one, its number is greater than the last that came, and
              that one, or an earlier one, is the one before it
a duplicate   if it is from an older stream, or has a number that came already
out of order  otherwise
============  ==========================================================================================

Deviations. The text compares stream identifiers for equality alone, so that a late copy of an old first
message would begin an old stream again; they only grow, so the greater one is the newer one. The text ignores
duplicates; here they let the receipt go out again, or a receipt that was lost would never be replaced and
the sender would resend for ever.

Messages of a stream are committed in batches, one batch at a time: while one is on its way to the disk, what
comes is put into the next. So each batch stands on one that is safe, and where one fails everything behind
it is refused too.
"""

from __future__ import annotations

import asyncio
import enum
import logging
from uuid import UUID

import msgspec

from lanner.manager import Clock, Timer
from lanner.manager.acknowledgments import ORDER_ACK_LABEL
from lanner.manager.queues import Queue
from lanner.manager.transfers import Transfers
from lanner.model.codes import MessageClass
from lanner.model.errors import LannerError
from lanner.model.log_fields import about
from lanner.model.message import Message, OrderReceipt
from lanner.model.transfer import IncomingTransfer
from lanner.protocols.srmp import wire
from lanner.protocols.srmp.settings import SrmpSettings
from lanner.protocols.srmp.wire.queue_uri import format_name_of
from lanner.store import Changes

__all__ = ["IncomingStream", "StreamState", "Verdict"]

log = logging.getLogger(__name__)

SCOPE = "srmp.in"


class Verdict(enum.Enum):
    """What a message of a stream is."""

    ACCEPTED = enum.auto()
    DUPLICATE = enum.auto()
    OUT_OF_ORDER = enum.auto()


class StreamState(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What must be remembered of a stream (3.1.1.1.6)."""

    stream: int = 0
    number: int = 0
    """The last message that came."""
    receipts_to: str = ""
    """Kept, or a receiver that was restarted could not acknowledge any more."""
    acknowledged: int = 0
    """The last number that a receipt has told."""
    last_access: float = 0.0
    format_name: str = ""

    def judge(self, stream: wire.Stream) -> Verdict:
        """Say what a message is, by the table above."""
        identifier, number = stream.stream_id.number, stream.current
        if identifier > self.stream:
            is_first = stream.start is not None and number == 1
            return Verdict.ACCEPTED if is_first else Verdict.OUT_OF_ORDER
        if identifier < self.stream or number <= self.number:
            return Verdict.DUPLICATE
        # Where it is not written, the message before has the number before (3.1.1.2).
        previous = stream.previous or number - 1
        return Verdict.ACCEPTED if previous <= self.number else Verdict.OUT_OF_ORDER

    def after(self, stream: wire.Stream, now: float, format_name: str) -> StreamState:
        """What is to be remembered once a message was accepted."""
        is_new = stream.stream_id.number != self.stream
        return StreamState(
            stream.stream_id.number,
            stream.current,
            stream.start.send_receipts_to if stream.start is not None else self.receipts_to,
            0 if is_new else self.acknowledged,
            now,
            format_name,
        )


class _Batch:
    """Messages that become durable together."""

    def __init__(self) -> None:
        self.changes = Changes()
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # Whoever waits may be gone when it fails.
        self.done.add_done_callback(lambda done: done.exception())


class IncomingStream:
    """One sender's stream to one queue."""

    def __init__(
        self,
        transfers: Transfers,
        settings: SrmpSettings,
        sender: UUID,
        queue: Queue,
        state: StreamState | None = None,
    ) -> None:
        self._transfers = transfers
        self._settings = settings
        self._clock: Clock = transfers.clock
        self.sender = sender
        self.queue = queue
        self.state = state or StreamState()
        """With what is on its way to the disk."""
        self._durable = self.state
        self._batch: _Batch | None = None
        self._committing: _Batch | None = None
        self._rejections = 0
        self._unacknowledged_since: float | None = None
        self._timer: Timer | None = None
        if self.state.stream:
            self._show(self.state.last_access)
        if self.state.acknowledged < self.state.number:
            self._schedule_receipt()

    @property
    def key(self) -> str:
        """Under which the state is stored."""
        return f"{self.sender}/{self.queue.id}"

    # Messages.

    def judge(self, stream: wire.Stream) -> Verdict:
        """Say what a message is, and count those that are not accepted."""
        verdict = self.state.judge(stream)
        if verdict is not Verdict.ACCEPTED:
            self._rejections += 1
            self._show()
        if verdict is Verdict.DUPLICATE and stream.stream_id.number == self._durable.stream:
            self._schedule_receipt()
        return verdict

    @property
    def changes(self) -> Changes:
        """Where the next message of the stream is put."""
        if self._batch is None:
            self._batch = _Batch()
        return self._batch.changes

    async def advance(self, stream: wire.Stream, format_name: str) -> None:
        """A message was put into :attr:`changes`: return when it is durable."""
        assert self._batch is not None
        self.state = self.state.after(stream, self._clock.time(), format_name)
        self._rejections = 0
        done = self._batch.done
        if self._committing is None:
            self._committing = self._batch
            self._transfers.spawn(self._commit_batches())
        await asyncio.shield(done)

    async def until_safe(self) -> None:
        """Return when everything that has come so far is durable: a copy is not told so before the first."""
        latest = self._batch or self._committing
        if latest is not None and self._committing is not None:
            await asyncio.shield(latest.done)

    async def _commit_batches(self) -> None:
        try:
            while self._batch is not None:
                batch, self._batch = self._batch, None
                self._committing = batch
                state = self.state
                batch.changes.state.append((SCOPE, self.key, msgspec.msgpack.encode(state)))
                try:
                    await self._transfers.finish(batch.changes)
                except LannerError as error:
                    self._fail(batch, error)
                else:
                    self._durable = state
                    self._show()
                    self._schedule_receipt()
                    batch.done.set_result(None)
        finally:
            self._committing = None

    def _fail(self, batch: _Batch, error: LannerError) -> None:
        self.state = self._durable
        batch.done.set_exception(error)
        if self._batch is not None:
            # What came meanwhile stands on what has just failed.
            self._transfers.abandon(self._batch.changes)
            self._batch.done.set_exception(error)
            self._batch = None

    def _show(self, last_access: float | None = None) -> None:
        self.queue.incoming_transfers[self.sender] = IncomingTransfer(
            format_name=self._durable.format_name,
            sender=self.sender,
            stream=self._durable.stream,
            number=self._durable.number,
            last_access=self._clock.time() if last_access is None else last_access,
            rejections=self._rejections,
        )

    # Receipts.

    def _schedule_receipt(self) -> None:
        """Start the coalescing timer anew, but do not let it run longer than its limit (3.1.5.1.6.3)."""
        now = self._clock.monotonic()
        if self._unacknowledged_since is None:
            self._unacknowledged_since = now
        limit = self._unacknowledged_since + self._settings.coalescing_limit
        self.stop()
        self._timer = self._clock.call_at(min(now + self._settings.coalescing, limit), self._send_receipt)

    def _send_receipt(self) -> None:
        """Acknowledge everything up to the last message that is safe (3.1.6.3).

        Each message was accepted because the one before it had been: what came is one run, linked by
        ``previous``, and its end is the last one.
        """
        self._timer = None
        self._unacknowledged_since = None
        state = self._durable
        target = format_name_of(state.receipts_to)
        if not state.stream or target is None:
            return
        changes = Changes()
        receipt = Message(
            message_class=MessageClass.ORDER_ACK.value,
            label=ORDER_ACK_LABEL,
            order_receipt=OrderReceipt(machine=self.sender, stream=state.stream, sequence=state.number),
        )
        self._transfers.tell(changes, target, receipt)
        self._transfers.spawn(self._finish_receipt(changes, state))

    async def _finish_receipt(self, changes: Changes, state: StreamState) -> None:
        try:
            await self._transfers.finish(changes)
        except LannerError as error:
            # The sender sends again what is not acknowledged, and that lets the receipt go again.
            log.warning("a stream receipt was not sent: %s", error, extra=about(queues=[self.queue.name]))
            return
        if state.acknowledged == state.number:
            return
        told = msgspec.structs.replace(self._durable, acknowledged=state.number)
        if self._durable.stream == state.stream and self._committing is None and self._batch is None:
            self._durable = self.state = told
            kept = Changes()
            kept.state.append((SCOPE, self.key, msgspec.msgpack.encode(told)))
            self._transfers.submit(kept)

    def stop(self) -> None:
        """Send no receipt."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
