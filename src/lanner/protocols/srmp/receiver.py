"""What becomes of a message that comes in, step by step (MC-MQSRM 3.1.5.1).

==========================  ==============================================================  =======
step                        when not                                                        answer
==========================  ==============================================================  =======
it can be read              3.1.5.1.2; a header that must be understood is understood       400
it is for this machine      3.1.5.1.3; or we pass messages on, to where it or a             400
                            redirection says
the queue is there, and     3.1.5.1.3                                                       400
takes such messages
it is of a known type       3.1.5.1.5                                                       400
everyone may send there     3.1.5.1.12                                                      400
it is next in its stream    3.1.5.1.6.3; ignored                                            200
its signature is right      3.1.5.1.6.1                                                     400
it was not here before      3.1.5.1.11; ignored                                             200
its time has not run out    discarded; a negative receipt goes out if it was asked for      200
there is room for it        3.1.5.1.12; the sender keeps it                                 500
it is safe                  the sender keeps it                                             500
==========================  ==============================================================  =======

200 goes out when a durable message is on the disk. Everything that is not taken in is logged and in the
history, with the reason. Where the text says to disregard a message and not what to answer, the answer is one
after which the sender still knows about it (decisions 3, 4, 10 and 11 of docs/conformance.md).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple, Protocol
from uuid import UUID

import msgspec
from msgspec.structs import replace

from lanner.manager.queues import Queue
from lanner.manager.transfers import Transfers
from lanner.model.codes import MessageClass
from lanner.model.errors import (
    InvalidNameError,
    LannerError,
    QuotaExceededError,
    StoppedError,
    StoreError,
)
from lanner.model.format_name import DirectName
from lanner.model.history import HistoryEvent
from lanner.model.log_fields import about
from lanner.model.message import Message, MessageSecurity
from lanner.model.message_id import MessageId
from lanner.protocols.srmp import wire
from lanner.protocols.srmp.destinations import Destinations
from lanner.protocols.srmp.duplicates import SeenMessages, copy_for
from lanner.protocols.srmp.incoming import SCOPE as STREAM_SCOPE
from lanner.protocols.srmp.incoming import IncomingStream, StreamState, Verdict
from lanner.protocols.srmp.mapping import to_message
from lanner.protocols.srmp.message_type import MessageType, identify
from lanner.protocols.srmp.redirection import Redirections
from lanner.protocols.srmp.settings import SrmpSettings
from lanner.protocols.srmp.signature import SignatureFault
from lanner.protocols.srmp.signers import Signers
from lanner.store import Changes

__all__ = ["Answer", "Receiver", "ReceiptHandler"]

log = logging.getLogger(__name__)

SEEN_SCOPE = "srmp.seen"

MAX_STREAMS = 10_000
"""Streams that are remembered: a sender is known by a number that it makes up itself."""

MAX_STREAM_AGE = 30 * 86_400.0
"""Seconds after which a stream that nobody has used makes room for another."""


class Answer(NamedTuple):
    """What is said to the sender."""

    status: int
    reason: str = ""


OK = Answer(200)


class ReceiptHandler(Protocol):
    """The sending side, which the receipts are for."""

    async def take_receipt(self, receipt: Message, peer: str) -> None:
        """A stream receipt, final or not, has come in; return when what follows from it is durable."""


class _Refused(Exception):  # noqa: N818 - not an error of ours
    """The message is not taken in."""

    def __init__(self, answer: Answer, event: HistoryEvent = HistoryEvent.REJECTED) -> None:
        super().__init__(answer.reason)
        self.answer = answer
        self.event = event


class Receiver:
    """Judges every message that comes in, and puts the good ones into their queues."""

    def __init__(
        self,
        transfers: Transfers,
        settings: SrmpSettings,
        receipts: ReceiptHandler,
        signers: Signers,
        redirections: Callable[[], Redirections],
    ) -> None:
        self._transfers = transfers
        self._settings = settings
        self._receipts = receipts
        self._signers = signers
        self._destinations = Destinations(transfers, redirections)
        self._clock = transfers.clock
        self._seen = SeenMessages({}, 0)
        self._pending: dict[MessageId, Changes] = {}
        """Messages that are on their way to the disk."""
        self._streams: dict[tuple[UUID, int], IncomingStream] = {}

    async def load(self) -> None:
        """Remember what was known before the restart (3.1.3)."""
        self._seen = SeenMessages(await self._transfers.state(SEEN_SCOPE), self._clock.time())
        self._load_streams(await self._transfers.state(STREAM_SCOPE))

    def stop(self) -> None:
        """Send no more receipts."""
        for stream in self._streams.values():
            stream.stop()

    async def receive(self, content_type: bytes, body: bytes, peer: str, our_address: str = "") -> Answer:
        """Take a message in, and say what to answer."""
        try:
            srmp = wire.decode_request(content_type, body)
        except wire.WireFault as fault:
            return self._refuse_unread(fault, peer)
        del body  # the message has its own: a large one is not to be kept twice
        try:
            return await self._receive(srmp, peer, our_address)
        except _Refused as refusal:
            return self._refuse(srmp, refusal.answer, peer, refusal.event)
        except (QuotaExceededError, StoreError, StoppedError) as error:
            return self._refuse(srmp, Answer(500, error.message), peer)
        except LannerError as error:
            return self._refuse(srmp, Answer(400, str(error)), peer)

    async def _receive(self, srmp: wire.SrmpMessage, peer: str, our_address: str) -> Answer:
        envelope = srmp.envelope
        unknown = envelope.not_understood
        if unknown is not None:
            raise _Refused(Answer(400, f"the header {unknown.name} must be understood, and is not"))
        kind = identify(envelope)
        if kind is None:
            raise _Refused(Answer(400, "it is of no known type (3.1.5.1.5)"))
        try:
            destination = self._destinations.find(envelope.path.to, our_address)
        except InvalidNameError as error:
            raise _Refused(Answer(400, f"the destination is no queue's name: {error}")) from error
        if not destination.is_local:
            if not (self._settings.forward or destination.is_redirected):
                host = destination.name.host
                raise _Refused(Answer(400, f"{host} is another machine, and nothing is passed on from here"))
            return await self._forward(srmp, destination.name, peer)
        if kind.is_stream_receipt:
            await self._receipts.take_receipt(to_message(srmp, self._clock.time()), peer)
            return OK
        queue = destination.queue
        if queue is None:
            raise _Refused(Answer(400, f"there is no queue {destination.name}"))
        if envelope.stream is not None and not queue.properties.transactional:
            raise _Refused(Answer(400, f"{queue.name} is not transactional, and the message is of a stream"))
        if envelope.stream is None and queue.properties.transactional:
            raise _Refused(Answer(400, f"{queue.name} is transactional, and the message is of no stream"))
        return await self._deliver(srmp, kind, queue, peer)

    # Passing on (3.1.5.1.3).

    async def _forward(self, srmp: wire.SrmpMessage, name: DirectName, peer: str) -> Answer:
        """Transparent store-and-forward: pass on what came, as it came (decision 14)."""
        start = srmp.envelope.stream.start if srmp.envelope.stream is not None else None
        message = to_message(
            srmp,
            self._clock.time(),
            receipts_to=start.send_receipts_to if start is not None else "",
            signature=srmp.envelope.signature,
        )
        changes = Changes()
        self._transfers.forward(changes, name, replace(message, destination_queue=str(name)), peer)
        await self._transfers.finish(changes)
        return OK

    # What it is.

    async def _deliver(self, srmp: wire.SrmpMessage, kind: MessageType, queue: Queue, peer: str) -> Answer:
        envelope = srmp.envelope
        now = self._clock.time()
        self._destinations.check_access(queue)
        stream = self._stream(srmp, queue) if envelope.stream is not None else None
        receipts_to = ""
        if stream is not None and envelope.stream is not None:
            verdict = stream.judge(envelope.stream)
            if verdict is not Verdict.ACCEPTED:
                if verdict is Verdict.DUPLICATE:
                    await stream.until_safe()
                return self._ignore(srmp, queue, verdict, peer)
            start = envelope.stream.start
            receipts_to = start.send_receipts_to if start is not None else stream.state.receipts_to
        message = to_message(srmp, now, receipts_to=receipts_to, keep_envelope=self._settings.keep_envelope)
        if kind is MessageType.USER:
            message = self._authenticated(srmp, message, queue)
        if stream is not None:
            return await self._put_in_stream(srmp, message, queue, stream, peer)
        return await self._put(message, queue, peer)

    def _authenticated(self, srmp: wire.SrmpMessage, message: Message, queue: Queue) -> Message:
        if srmp.envelope.signature is None and not queue.properties.authentication:
            return message
        try:
            certificate = self._signers.authenticate(srmp)
        except SignatureFault as fault:
            raise _Refused(Answer(400, str(fault))) from fault
        security = message.security or MessageSecurity()
        return replace(
            message, security=replace(security, authenticated=True, sender_certificate=certificate)
        )

    def _is_expired(self, message: Message) -> bool:
        expiry = message.transit_expiry()
        return expiry is not None and expiry < self._clock.time()

    # Regular and durable messages (3.1.5.1.6.2).

    async def _put(self, message: Message, queue: Queue, peer: str) -> Answer:
        identifier = message.id
        assert identifier is not None
        now = self._clock.time()
        copy = copy_for(identifier, queue.id)
        if identifier != wire.NO_IDENTIFIER and self._seen.is_known(copy, now):
            # Also a copy that came too late: the first was not, and a negative receipt would be wrong.
            return await self._answer_duplicate(message, queue, peer)
        if self._is_expired(message):
            return await self._discard_expired(Changes(), message, queue, peer)
        changes = Changes()
        self._transfers.accept(changes, queue, message, peer)
        if identifier == wire.NO_IDENTIFIER:
            await self._transfers.finish(changes)
            return OK
        row = (SEEN_SCOPE, *self._seen.add(copy, now))
        changes.on_failed.append(lambda: self._seen.forget(copy))
        if not message.is_recoverable:
            # An express message does not wait for the disk, and neither does what is known of it.
            await self._transfers.finish(changes)
            changes = Changes()
            changes.state.append(row)
            self._transfers.submit(changes)
            return OK
        changes.state.append(row)
        self._pending[copy] = changes
        # Whoever waits may go away before it is known how it ends.
        for callbacks in (changes.on_applied, changes.on_failed):
            callbacks.append(partial(self._pending.__delitem__, copy))
        await self._transfers.finish(changes)
        return OK

    async def _answer_duplicate(self, message: Message, queue: Queue, peer: str) -> Answer:
        """Say of a copy what is said of the first: nothing before that is safe."""
        assert message.id is not None
        first = self._pending.get(copy_for(message.id, queue.id))
        if first is not None:
            settled = asyncio.Event()
            first.on_applied.append(settled.set)
            first.on_failed.append(settled.set)
            await settled.wait()
            if first.error is not None:
                raise first.error
        self._note(HistoryEvent.DUPLICATE, queue.name, message, "it came before", peer)
        return OK

    async def _discard_expired(self, changes: Changes, message: Message, queue: Queue, peer: str) -> Answer:
        """The time to reach the queue has run out on the way (decision 3)."""
        reason = MessageClass.NACK_REACH_QUEUE_TIMEOUT
        self._transfers.record(
            changes,
            HistoryEvent.EXPIRED,
            queue.name,
            message,
            reason="its time to reach the queue had run out when it came",
            peer=peer,
            message_class=reason.value,
        )
        self._transfers.report_expired(changes, queue, message)
        await self._transfers.finish(changes)
        return OK

    # Stream messages (3.1.5.1.6.3).

    async def _put_in_stream(
        self, srmp: wire.SrmpMessage, message: Message, queue: Queue, stream: IncomingStream, peer: str
    ) -> Answer:
        place = srmp.envelope.stream
        identifier = message.id
        assert place is not None
        assert identifier is not None
        now = self._clock.time()
        changes = stream.changes
        copy = copy_for(identifier, queue.id)
        # Messages without an identifier are not copies of each other (3.1.5.1.11): their numbers tell.
        is_named = identifier != wire.NO_IDENTIFIER
        if is_named and self._seen.is_known(copy, now):
            # Its place in the stream is taken all the same, or nothing behind it would be accepted.
            self._transfers.record(
                changes, HistoryEvent.DUPLICATE, queue.name, message, reason="it came before", peer=peer
            )
        elif self._is_expired(message):
            self._transfers.record(
                changes, HistoryEvent.EXPIRED, queue.name, message, reason="its time had run out", peer=peer
            )
            self._transfers.report_expired(changes, queue, message)
        else:
            self._transfers.accept(changes, queue, message, peer)
            if is_named:
                changes.state.append((SEEN_SCOPE, *self._seen.add(copy, now)))
                changes.on_failed.append(lambda: self._seen.forget(copy))
        await stream.advance(place, message.destination_queue)
        return OK

    def _ignore(self, srmp: wire.SrmpMessage, queue: Queue, verdict: Verdict, peer: str) -> Answer:
        message = to_message(srmp, self._clock.time())
        if verdict is Verdict.DUPLICATE:
            self._note(HistoryEvent.DUPLICATE, queue.name, message, "it came before", peer)
        else:
            self._note(HistoryEvent.REJECTED, queue.name, message, "it is not next in its stream", peer)
        return OK

    def _stream(self, srmp: wire.SrmpMessage, queue: Queue) -> IncomingStream:
        assert srmp.envelope.stream is not None
        sender = srmp.envelope.stream.stream_id.queue_manager
        known = self._streams.get((sender, queue.id))
        if known is not None and known.queue is queue:
            return known
        if len(self._streams) >= MAX_STREAMS:
            self._forget_oldest()
        stream = IncomingStream(self._transfers, self._settings, sender, queue)
        self._streams[sender, queue.id] = stream
        return stream

    def _forget_oldest(self) -> None:
        key, oldest = min(self._streams.items(), key=lambda item: item[1].state.last_access)
        if oldest.state.last_access > self._clock.time() - MAX_STREAM_AGE:
            raise _Refused(Answer(500, f"{MAX_STREAMS:,} streams are being followed already"))
        oldest.stop()
        oldest.queue.incoming_transfers.pop(oldest.sender, None)
        del self._streams[key]
        changes = Changes()
        changes.state_deletes.append((STREAM_SCOPE, oldest.key))
        self._transfers.submit(changes)

    def _load_streams(self, stored: Mapping[str, bytes]) -> None:
        gone = Changes()
        for key, value in stored.items():
            sender, _, queue_id = key.partition("/")
            queue = self._transfers.queue_by_id(int(queue_id))
            if queue is None:
                gone.state_deletes.append((STREAM_SCOPE, key))
                continue
            state = msgspec.msgpack.decode(value, type=StreamState)
            stream = IncomingStream(self._transfers, self._settings, UUID(sender), queue, state)
            self._streams[stream.sender, queue.id] = stream
        if gone.state_deletes:
            self._transfers.submit(gone)

    # What is not taken in.

    def _refuse(
        self, srmp: wire.SrmpMessage, answer: Answer, peer: str, event: HistoryEvent = HistoryEvent.REJECTED
    ) -> Answer:
        message = to_message(srmp, self._clock.time())
        log.warning(
            "a message from %s was refused with %d: %s",
            peer,
            answer.status,
            answer.reason,
            extra=about(queues=[srmp.envelope.path.to], messages=[message.id]),
        )
        self._note(event, srmp.envelope.path.to, message, answer.reason, peer)
        return answer

    def _refuse_unread(self, fault: wire.WireFault, peer: str) -> Answer:
        log.warning("a request from %s was refused with 400: %s", peer, fault)
        message = Message(id=wire.NO_IDENTIFIER)
        self._note(HistoryEvent.REJECTED, "", message, str(fault), peer)
        return Answer(400, str(fault))

    def _note(self, event: HistoryEvent, queue: str, message: Message, reason: str, peer: str) -> None:
        changes = Changes()
        self._transfers.record(changes, event, queue, message, reason=reason, peer=peer)
        self._transfers.submit(changes)
