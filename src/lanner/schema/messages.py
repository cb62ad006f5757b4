"""Messages as they go over the API."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from msgspec import Meta, field

from lanner.model.codes import describe_class
from lanner.model.message import (
    DEFAULT_PRIORITY,
    DEFAULT_TIME_TO_REACH_QUEUE,
    INFINITE,
    Acknowledgments,
    AuthenticationLevel,
    Delivery,
    Message,
    MessageSecurity,
)
from lanner.model.message_id import MessageId
from lanner.schema.base import MAX_BATCH, Count, In, Key, LookupId, Out, QueueName, UInt32, Wait

AckName = Literal[
    "arrival", "receive", "nack-arrival", "nack-receive", "full-arrival", "full-receive", "nack"
]

ACKNOWLEDGMENTS: dict[str, Acknowledgments] = {
    "arrival": Acknowledgments.POSITIVE_ARRIVAL,
    "receive": Acknowledgments.POSITIVE_RECEIVE,
    "nack-arrival": Acknowledgments.NEGATIVE_ARRIVAL,
    "nack-receive": Acknowledgments.NEGATIVE_RECEIVE,
    "full-arrival": Acknowledgments.FULL_REACH_QUEUE,
    "full-receive": Acknowledgments.FULL_RECEIVE,
    "nack": Acknowledgments.NACK_RECEIVE,
}
_SINGLE_ACKNOWLEDGMENTS = ("arrival", "receive", "nack-arrival", "nack-receive")


class MessageIn(In, frozen=True, kw_only=True):
    """A message to send."""

    body: bytes = b""
    body_type: UInt32 = 0
    extension: bytes = b""
    label: Annotated[str, Meta(max_length=249)] = ""
    application_tag: UInt32 = 0
    correlation_id: str = ""
    priority: Annotated[int, Meta(ge=0, le=7)] = DEFAULT_PRIORITY
    durable: bool = False
    message_class: Annotated[int, Meta(ge=0, le=0xFFFF)] = field(name="class", default=0)
    time_to_reach_queue: UInt32 = DEFAULT_TIME_TO_REACH_QUEUE
    time_to_be_received: UInt32 = INFINITE
    acknowledgments: tuple[AckName, ...] = ()
    administration_queue: str = ""
    response_queue: str = ""
    journal: bool = False
    dead_letter: bool = False
    dead_letter_queue: str = ""
    tracing: bool = False
    allow_peek_when_locked: bool = False
    sign: bool = False
    """Sign it on its way to another machine over HTTP."""

    def to_message(self) -> Message:
        """Make the message that the manager takes."""
        wanted = Acknowledgments.NONE
        for name in self.acknowledgments:
            wanted |= ACKNOWLEDGMENTS[name]
        return Message(
            body=self.body,
            body_type=self.body_type,
            extension=self.extension,
            label=self.label,
            application_tag=self.application_tag,
            correlation_id=MessageId.parse(self.correlation_id) if self.correlation_id else None,
            priority=self.priority,
            delivery=Delivery.RECOVERABLE if self.durable else Delivery.EXPRESS,
            message_class=self.message_class,
            time_to_reach_queue=self.time_to_reach_queue,
            time_to_be_received=self.time_to_be_received,
            acknowledgments=wanted,
            administration_queue=self.administration_queue,
            response_queue=self.response_queue,
            positive_journaling=self.journal,
            negative_journaling=self.dead_letter,
            dead_letter_queue=self.dead_letter_queue,
            tracing=self.tracing,
            allow_peek_when_locked=self.allow_peek_when_locked,
            security=_SIGNED if self.sign else None,
        )


_SIGNED = MessageSecurity(authentication_level=AuthenticationLevel.XML_SIGNATURE)


class MessageOut(Out, frozen=True, kw_only=True):
    """A message that was received or looked at."""

    id: str
    lookup_id: int
    label: str
    priority: int
    message_class: int = field(name="class")
    class_text: str
    """What the class means."""
    body: bytes
    body_type: int
    extension: bytes
    size: int
    durable: bool
    transactional: bool
    correlation_id: str
    application_tag: int
    destination_queue: str
    administration_queue: str
    response_queue: str
    dead_letter_queue: str
    acknowledgments: tuple[str, ...]
    journal: bool
    dead_letter: bool
    time_to_reach_queue: int
    time_to_be_received: int
    sent_time: float
    arrival_time: float
    source_machine: UUID | None
    aborts: int
    transaction_id: str
    first_in_transaction: bool
    last_in_transaction: bool
    authenticated: bool
    """Whether it was signed by somebody whose signature is believed."""

    @classmethod
    def of(cls, message: Message) -> MessageOut:
        """Show a message."""
        marks = message.transaction
        return cls(
            id=str(message.id),
            lookup_id=message.lookup_id,
            label=message.label,
            priority=message.priority,
            message_class=message.message_class,
            class_text=describe_class(message.message_class),
            body=message.body,
            body_type=message.body_type,
            extension=message.extension,
            size=message.size,
            durable=message.is_recoverable,
            transactional=marks is not None,
            correlation_id=str(message.correlation_id) if message.correlation_id else "",
            application_tag=message.application_tag,
            destination_queue=message.destination_queue,
            administration_queue=message.administration_queue,
            response_queue=message.response_queue,
            dead_letter_queue=message.dead_letter_queue,
            acknowledgments=_acknowledgment_names(message.acknowledgments),
            journal=message.positive_journaling,
            dead_letter=message.negative_journaling,
            time_to_reach_queue=message.time_to_reach_queue,
            time_to_be_received=message.time_to_be_received,
            sent_time=message.sent_time,
            arrival_time=message.arrival_time,
            source_machine=message.source_machine,
            aborts=message.abort_count,
            transaction_id=marks.id if marks else "",
            first_in_transaction=bool(marks and marks.first),
            last_in_transaction=bool(marks and marks.last),
            authenticated=bool(message.security and message.security.authenticated),
        )


def _acknowledgment_names(wanted: Acknowledgments) -> tuple[str, ...]:
    return tuple(name for name in _SINGLE_ACKNOWLEDGMENTS if wanted & ACKNOWLEDGMENTS[name])


class SendRequest(In, frozen=True, kw_only=True):
    """Messages to send together."""

    queue: QueueName
    messages: Annotated[tuple[MessageIn, ...], Meta(min_length=1, max_length=MAX_BATCH)]
    transaction: str | None = None
    transactional: bool = False
    """Send them in a transaction of their own."""
    key: Key | None = None
    """The same key again adds nothing and gives the first answer."""


class SendAnswer(Out, frozen=True, kw_only=True):
    """What was sent."""

    ids: tuple[str, ...]
    lookup_ids: tuple[int, ...]
    replayed: bool


class ReceiveRequest(In, frozen=True, kw_only=True):
    """Which messages to receive, and how long to wait for one."""

    queue: QueueName
    count: Count = 1
    wait: Wait = 0.0
    transaction: str | None = None
    message_id: str | None = None
    correlation_id: str | None = None
    lookup_id: LookupId | None = None
    action: Literal["current", "next", "previous", "first", "last"] = "current"
    """Which message is meant, counted from ``lookup_id``."""
    exclusive: bool = False
    """Refuse if others have the queue open to read it, and keep them out as long as this request lasts."""


class PeekRequest(In, frozen=True, kw_only=True):
    """Which messages to look at."""

    queue: QueueName
    count: Count = 1
    wait: Wait = 0.0
    after: Annotated[int, Meta(ge=-1, le=(1 << 63) - 1)] = -1
    """Begin behind this lookup identifier."""
    bodies: bool = True


class MessagesAnswer(Out, frozen=True, kw_only=True):
    """Messages; none when none came in time."""

    messages: tuple[MessageOut, ...]


class MoveRequest(In, frozen=True, kw_only=True):
    """One message to move."""

    queue: QueueName
    lookup_id: LookupId
    target: QueueName
    transaction: str | None = None
