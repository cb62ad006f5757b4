"""What an SRMP message says, element by element (MC-MQSRM 2.2).

Every structure is frozen. Times are whole seconds since 1970 in UTC; :data:`NEVER` is how the
protocol writes "no end". Identifiers are the model's own: :class:`~lanner.model.message_id.MessageId`
for an ``<id>``, :class:`uuid.UUID` for a GUID string. An element that may be absent is ``None``, except
where absence and a zero or an empty list mean the same (3.1.7.2.4 writes none of them).

They are msgspec structs: making a Path costs 0.07 us, as a frozen dataclass with slots 0.7 us.
"""

from __future__ import annotations

from uuid import UUID

import msgspec

from lanner.model.message_id import MessageId

__all__ = [
    "Attachment",
    "CommitmentReceipt",
    "CommitmentReceiptRequest",
    "DeliveryReceipt",
    "DeliveryReceiptRequest",
    "EncodedRequest",
    "Envelope",
    "Eod",
    "KeyInfo",
    "Msmq",
    "Path",
    "Properties",
    "Provider",
    "Reference",
    "Services",
    "Signature",
    "SrmpMessage",
    "Stream",
    "StreamId",
    "StreamReceipt",
    "StreamStart",
    "UnknownHeader",
    "LABEL_PREFIX",
    "NEVER",
    "NO_IDENTIFIER",
    "STREAM_RECEIPT_ACTION",
]

NEVER = 0x7FFFFFFF
"""20380119T031407: the last second of a signed 32-bit clock, which stands for "no end"."""

NO_IDENTIFIER = MessageId.of(UUID(int=0), 1)
"""The identifier of a message without an Msmq element, whose own is not looked at (3.1.5.1.1)."""

LABEL_PREFIX = "MSMQ:"
"""What stands before the label in an action, and before a format name in a via (2.2.4.1, 2.2.4.4)."""

STREAM_RECEIPT_ACTION = "MSMQ:QM Ordering Ack"
"""The action of every stream receipt (2.2.4.1)."""


class Path(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The WS-Routing path: what the message is called, where it goes, who it is (2.2.4)."""

    action: str
    """The text of the element, with its "MSMQ:" if there is one."""
    to: str
    """The URI of the destination queue."""
    id: MessageId
    via: str | None = None
    """The URI of the response queue. An empty one means the same as none (2.2.4.4)."""

    @property
    def label(self) -> str | None:
        """The message's label; None where the action lacks its prefix (3.1.5.1.1)."""
        return self.action[len(LABEL_PREFIX) :] if self.action.startswith(LABEL_PREFIX) else None


class Properties(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """When the message was sent, and when it is worth nothing any more (2.2.5.1)."""

    expires_at: int
    sent_at: int | None = None


class DeliveryReceiptRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A receipt is asked for when the message is in its queue (2.2.5.2.2)."""

    send_to: str


class CommitmentReceiptRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A receipt is asked for when the message leaves its queue; neither flag: none is sent (2.2.5.2.3)."""

    send_to: str
    positive_only: bool = False
    negative_only: bool = False


class Services(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What the receiver is asked to guarantee and to report (2.2.5.2)."""

    durable: bool = False
    delivery_receipt_request: DeliveryReceiptRequest | None = None
    commitment_receipt_request: CommitmentReceiptRequest | None = None


class StreamId(msgspec.Struct, frozen=True, gc=False):
    """Which stream: the sending queue manager, and a number that only grows (2.2.5.3.1)."""

    queue_manager: UUID
    number: int
    """A timestamp in the high half, an ordinal in the low half."""

    def __str__(self) -> str:
        return f"uid:{self.queue_manager}\\{self.number}"


class StreamStart(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What the first message of a stream says beside itself (2.2.5.3.4)."""

    send_receipts_to: str
    expires_at: int | None = None
    """In the samples of section 4.4 alone; read and never sent."""


class Stream(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The message's place in a stream (2.2.5.3)."""

    stream_id: StreamId
    current: int
    previous: int = 0
    """The number of the message before, or 0 where it is not written."""
    start: StreamStart | None = None
    end: bool = False
    """In the samples of section 4.4 alone; read and never sent."""
    receipt_request: bool = False
    """In the samples of section 4.4 alone; read and never sent."""


class DeliveryReceipt(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The message named here was put in its queue (2.2.5.4)."""

    received_at: int
    id: MessageId


class CommitmentReceipt(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The message named here left its queue, one way or the other (2.2.5.5)."""

    decided_at: int
    is_positive: bool
    id: MessageId


class StreamReceipt(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Everything of the stream up to this number has arrived (2.2.5.6)."""

    stream_id: StreamId
    last_ordinal: int


class Eod(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The message's place in its transaction (2.2.6.11)."""

    first: bool = False
    last: bool = False
    connector_id: UUID | None = None


class Provider(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The cryptographic provider that signed the message (2.2.6.12)."""

    type: int = 0
    name: str = ""


class Msmq(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What MSMQ alone knows about a message, all 17 elements (2.2.6)."""

    message_class: int
    priority: int
    body_type: int
    source_qm: UUID
    ttrq: int
    """TTrq: when the message must have reached its queue. It beats ``Properties.expires_at``."""
    journal: bool = False
    dead_letter: bool = False
    correlation: MessageId | None = None
    trace: bool = False
    connector_type: UUID | None = None
    app: int = 0
    hash_algorithm: int = 0
    eod: Eod | None = None
    provider: Provider | None = None
    destination_mqf: tuple[str, ...] = ()
    admin_mqf: tuple[str, ...] = ()
    response_mqf: tuple[str, ...] = ()


class Reference(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One digest of one part of the message (2.2.7.1.2). What is missing is None."""

    uri: str
    digest_method: str | None = None
    """The Algorithm attribute of DigestMethod."""
    digest_value: str | None = None
    """The text of DigestValue, white space taken away: the check compares text (3.1.5.1.6.1)."""


class KeyInfo(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The certificates that travel with a signature, in DER. An element of XMLDSig, not of MC-MQSRM."""

    certificates: tuple[bytes, ...] = ()


class Signature(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The XML signature, whole or not: 3.1.5.1.6.1 judges what is missing (2.2.7)."""

    signed_info: bytes | None
    """The SignedInfo element, byte for byte as it stands in the envelope: what the signature is made over."""
    signature_method: str | None = None
    """The Algorithm attribute of SignatureMethod."""
    references: tuple[Reference, ...] = ()
    signature_value: str | None = None
    """Base64, white space taken away."""
    key_info: KeyInfo | None = None


class UnknownHeader(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A header block that this protocol does not define."""

    namespace: str
    name: str
    must_understand: bool = False


class Envelope(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The SOAP envelope and what its header holds (2.2.2)."""

    path: Path
    properties: Properties
    services: Services | None = None
    stream: Stream | None = None
    delivery_receipt: DeliveryReceipt | None = None
    commitment_receipt: CommitmentReceipt | None = None
    stream_receipt: StreamReceipt | None = None
    msmq: Msmq | None = None
    signature: Signature | None = None
    unknown: tuple[UnknownHeader, ...] = ()
    """Header blocks nobody here knows. One with ``must_understand`` is answered 400, by the session."""

    @property
    def is_durable(self) -> bool:
        """Whether the message survives a restart. A stream message does, said or not (2.2.5.2.1)."""
        return self.stream is not None or (self.services is not None and self.services.durable)

    @property
    def not_understood(self) -> UnknownHeader | None:
        """The first header block that must be understood and is not."""
        if not self.unknown:
            return None
        return next((header for header in self.unknown if header.must_understand), None)


class Attachment(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A MIME part that is neither envelope, body nor extension."""

    content_id: str
    content_type: str
    data: bytes


class SrmpMessage(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A whole message: the envelope and the payload beside it (2.2.2)."""

    envelope: Envelope
    body: bytes | None = None
    """The body part; None where there is none, as in every receipt."""
    extension: bytes | None = None
    content_suffix: str = ""
    """What stands behind ``body@`` and ``extension@`` in the parts' Content-Id: the GUID of a queue manager.
    Left empty, the source queue manager's is written."""
    attachments: tuple[Attachment, ...] = ()
    raw_envelope: bytes = b""
    """The envelope's bytes as they arrived; not looked at when sending."""


class EncodedRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A message ready to be posted."""

    content_type: str
    """The value of the Content-Type header."""
    body: bytes

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """The headers of the POST that the protocol asks for, less Host, which the endpoint knows."""
        return (
            ("Content-Type", self.content_type),
            ("Content-Length", str(len(self.body))),
            ("SOAPAction", '"MSMQMessage"'),
            ("Proxy-Accept", "NonInteractiveClient"),
        )
