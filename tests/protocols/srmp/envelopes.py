"""Messages as another queue manager would send them, each field at will."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from msgspec.structs import replace

from lanner.model.codes import MessageClass
from lanner.model.message_id import MessageId
from lanner.protocols.srmp import wire

HERE = "here"
SENDER = UUID("caf195ea-615c-4264-ae08-11a4e60194c0")
NOW = 1_700_000_000
"""When the clock of the tests begins."""

ORDERS = f"http://{HERE}/msmq/private$/orders"
LEDGER = f"http://{HERE}/msmq/private$/ledger"
ADMINISTRATION = "http://there/msmq/private$/admin"
RECEIPTS = "http://there/MSMQ/PRIVATE$/order_queue$"
STREAM = NOW << 32 | 1


def message(
    number: int = 1, to: str = ORDERS, body: bytes | None = b"hello", **msmq: Any
) -> wire.SrmpMessage:
    """A durable user message."""
    fields = {
        "message_class": MessageClass.NORMAL.value,
        "priority": 3,
        "body_type": 0,
        "source_qm": SENDER,
        "ttrq": wire.NEVER,
        **msmq,
    }
    return wire.SrmpMessage(
        envelope=wire.Envelope(
            path=wire.Path(action="MSMQ:label", to=to, id=MessageId.of(SENDER, number)),
            properties=wire.Properties(expires_at=fields["ttrq"], sent_at=NOW),
            services=wire.Services(durable=True),
            msmq=wire.Msmq(**fields),
        ),
        body=body,
    )


def changed(srmp: wire.SrmpMessage, **envelope: Any) -> wire.SrmpMessage:
    """The same with other parts of the envelope."""
    return replace(srmp, envelope=replace(srmp.envelope, **envelope))


def asking(
    srmp: wire.SrmpMessage, *, delivery: bool = False, positive: bool = False, negative: bool = False
) -> wire.SrmpMessage:
    """The same, with receipts asked for."""
    services = wire.Services(
        durable=True,
        delivery_receipt_request=wire.DeliveryReceiptRequest(send_to=ADMINISTRATION) if delivery else None,
        commitment_receipt_request=wire.CommitmentReceiptRequest(
            send_to=ADMINISTRATION, positive_only=positive, negative_only=negative
        ),
    )
    return changed(srmp, services=services)


def place(
    current: int, previous: int | None = None, stream: int = STREAM, sender: UUID = SENDER
) -> wire.Stream:
    """A place in a stream; the first message says where receipts go."""
    return wire.Stream(
        stream_id=wire.StreamId(sender, stream),
        current=current,
        previous=current - 1 if previous is None else previous,
        start=wire.StreamStart(send_receipts_to=RECEIPTS) if current == 1 else None,
    )


def streamed(
    current: int, previous: int | None = None, stream: int = STREAM, **msmq: Any
) -> wire.SrmpMessage:
    """A message of a stream. Its identifier follows from its place."""
    number = (stream - STREAM) * 10_000 + current
    body = b"%d" % current
    return changed(message(number, LEDGER, body, **msmq), stream=place(current, previous, stream))


def receipt(
    message_class: MessageClass,
    *,
    delivery: bool = False,
    decision: bool | None = None,
    stream: int = 0,
    ordinal: int = 0,
    machine: UUID = SENDER,
    to: str = ORDERS,
    number: int = 77,
    action: str = "MSMQ:label",
) -> wire.SrmpMessage:
    """A receipt of any kind, whole or not."""
    about = MessageId.of(SENDER, 5)
    made = message(number, to, None, message_class=message_class.value)
    return changed(
        made,
        path=replace(made.envelope.path, action=action),
        delivery_receipt=wire.DeliveryReceipt(received_at=NOW, id=about) if delivery else None,
        commitment_receipt=(
            wire.CommitmentReceipt(decided_at=NOW, is_positive=decision, id=about)
            if decision is not None
            else None
        ),
        stream_receipt=(
            wire.StreamReceipt(stream_id=wire.StreamId(machine, stream), last_ordinal=ordinal)
            if stream
            else None
        ),
    )
