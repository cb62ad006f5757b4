"""Messages as the manager has them, and as SRMP says them (MC-MQSRM 3.1.5.1.1 and 3.1.7.2.4)."""

from __future__ import annotations

from uuid import UUID

import msgspec

from lanner.model.codes import MessageClass
from lanner.model.errors import LannerError
from lanner.model.format_name import DirectName, MultipleName, parse_format_name
from lanner.model.message import (
    DEFAULT_PRIORITY,
    INFINITE,
    Acknowledgments,
    AuthenticationLevel,
    Delivery,
    Message,
    MessageSecurity,
    OrderReceipt,
    SoapParts,
    TransactionMarks,
)
from lanner.model.message_id import MessageId
from lanner.model.transfer import Sequence
from lanner.protocols.srmp import wire
from lanner.protocols.srmp.wire.queue_uri import format_name_of, is_http, uri_of

__all__ = ["CannotSayError", "from_message", "queue_names", "to_message"]

_ARRIVAL = Acknowledgments.POSITIVE_ARRIVAL
_RECEIPT_CLASSES = (
    MessageClass.ACK_RECEIVE,
    MessageClass.NACK_DELETED,
    MessageClass.NACK_QUEUE_DELETED,
    MessageClass.NACK_QUEUE_PURGED,
    MessageClass.NACK_RECEIVE_TIMEOUT,
    MessageClass.NACK_RECEIVE_REJECTED,
)


_NO_MSMQ = wire.Msmq(
    message_class=MessageClass.NORMAL.value,
    priority=DEFAULT_PRIORITY,
    body_type=0,
    source_qm=UUID(int=0),
    ttrq=wire.NEVER,
)
"""What a message without an Msmq element is taken to say (product behavior 12)."""


class CannotSayError(LannerError):
    """SRMP has no words for this message."""


# From the wire.


def to_message(
    srmp: wire.SrmpMessage,
    now: float,
    *,
    receipts_to: str = "",
    keep_envelope: bool = False,
    signature: wire.Signature | None = None,
) -> Message:
    """Make the message that an envelope stands for.

    ``receipts_to`` is where its stream's receipts go; ``signature`` is kept for whoever passes it on.
    """
    envelope = srmp.envelope
    path, msmq = envelope.path, envelope.msmq or _NO_MSMQ
    sent_at = envelope.properties.sent_at
    sent = float(sent_at) if sent_at is not None else now
    expires = msmq.ttrq if envelope.msmq is not None else envelope.properties.expires_at
    administration, acknowledgments = "", Acknowledgments.NONE
    if envelope.services is not None:
        administration, acknowledgments = _acknowledgments(envelope.services)
    return Message(
        body=srmp.body or b"",
        extension=srmp.extension or b"",
        label=path.label or "",
        id=path.id,
        delivery=Delivery.RECOVERABLE if envelope.is_durable else Delivery.EXPRESS,
        destination_queue=format_name_of(path.to) or path.to,
        response_queue=(format_name_of(path.via) or "") if path.via else "",
        administration_queue=administration,
        acknowledgments=acknowledgments,
        sent_time=sent,
        time_to_reach_queue=wire.span_until(expires, int(sent)),
        transaction=_transaction(envelope, receipts_to) if envelope.stream is not None else None,
        order_receipt=_order_receipt(envelope.stream_receipt),
        security=(
            _security(envelope, signature)
            if envelope.signature or msmq.provider or msmq.hash_algorithm
            else None
        ),
        soap=_soap(srmp) if keep_envelope else None,
        message_class=msmq.message_class,
        priority=msmq.priority,
        body_type=msmq.body_type,
        application_tag=msmq.app,
        correlation_id=msmq.correlation or _about(envelope),
        positive_journaling=msmq.journal,
        negative_journaling=msmq.dead_letter,
        tracing=msmq.trace,
        connector_type=msmq.connector_type,
        connector_queue_manager=msmq.eod.connector_id if msmq.eod else None,
        source_machine=msmq.source_qm if envelope.msmq is not None else None,
        destination_queues=queue_names(msmq.destination_mqf) if msmq.destination_mqf else "",
        administration_queues=queue_names(msmq.admin_mqf) if msmq.admin_mqf else "",
        response_queues=queue_names(msmq.response_mqf) if msmq.response_mqf else "",
    )


def queue_names(uris: tuple[str, ...]) -> str:
    """Make a multiple-element format name of what stands in an Mqf element."""
    return ",".join(name for uri in uris if (name := format_name_of(uri)))


def _acknowledgments(services: wire.Services) -> tuple[str, Acknowledgments]:
    wanted = Acknowledgments.NONE
    name = ""
    delivery, commitment = services.delivery_receipt_request, services.commitment_receipt_request
    if delivery is not None:
        wanted |= _ARRIVAL
        name = format_name_of(delivery.send_to) or name
    if commitment is not None:
        if commitment.positive_only:
            wanted |= Acknowledgments.POSITIVE_RECEIVE
        if commitment.negative_only:
            wanted |= Acknowledgments.NEGATIVE_RECEIVE
        name = format_name_of(commitment.send_to) or name
    return name, wanted


def _transaction(envelope: wire.Envelope, receipts_to: str) -> TransactionMarks:
    stream, msmq = envelope.stream, envelope.msmq
    assert stream is not None
    eod = msmq.eod if msmq is not None else None
    return TransactionMarks(
        first=eod.first if eod else False,
        last=eod.last if eod else False,
        stream=stream.stream_id.number,
        sequence=stream.current,
        previous=stream.previous,
        final_ack_required=msmq is not None and msmq.dead_letter,
        status_queue=format_name_of(receipts_to) or "",
    )


def _about(envelope: wire.Envelope) -> MessageId | None:
    """Which message a receipt is about, for the application that gets it."""
    receipt = envelope.delivery_receipt or envelope.commitment_receipt
    return receipt.id if receipt is not None else None


def _order_receipt(receipt: wire.StreamReceipt | None) -> OrderReceipt | None:
    if receipt is None:
        return None
    return OrderReceipt(
        machine=receipt.stream_id.queue_manager,
        stream=receipt.stream_id.number,
        sequence=receipt.last_ordinal,
    )


def _security(envelope: wire.Envelope, kept: wire.Signature | None) -> MessageSecurity:
    msmq = envelope.msmq
    provider = msmq.provider if msmq is not None else None
    return MessageSecurity(
        authentication_level=(
            AuthenticationLevel.XML_SIGNATURE if envelope.signature else AuthenticationLevel.NONE
        ),
        hash_algorithm=msmq.hash_algorithm if msmq is not None else 0,
        signature=msgspec.msgpack.encode(kept) if kept is not None else b"",
        provider_type=provider.type if provider else 0,
        provider_name=provider.name if provider else "",
    )


def _soap(srmp: wire.SrmpMessage) -> SoapParts:
    header, body = wire.split_envelope(srmp.raw_envelope)
    return SoapParts(envelope=srmp.raw_envelope.decode("utf-8", "replace"), header=header, body=body)


# To the wire.


def from_message(
    message: Message, *, place: Sequence | None = None, receipts_url: str = ""
) -> wire.SrmpMessage:
    """Put a message into SRMP's words.

    ``place`` is its place in a stream, ``receipts_url`` where the receipts of a stream go, which its first
    message says. Raises CannotSayError for what SRMP has no words for.
    """
    assert message.id is not None
    is_receipt = message.message_class != MessageClass.NORMAL
    envelope = wire.Envelope(
        path=wire.Path(
            action=wire.LABEL_PREFIX + message.label,
            to=uri_of(message.destination_queue),
            id=message.id,
            via=uri_of(message.response_queue) if message.response_queue and not is_receipt else None,
        ),
        properties=wire.Properties(expires_at=_expires_at(message), sent_at=int(message.sent_time)),
        services=None if is_receipt else _services(message, is_stream=place is not None),
        stream=_stream(message, place, receipts_url) if place is not None else None,
        delivery_receipt=_delivery_receipt(message),
        commitment_receipt=_commitment_receipt(message) if is_receipt else None,
        stream_receipt=_stream_receipt(message.order_receipt),
        # One that came without an Msmq element is passed on without (2.2.6, product behavior 12).
        msmq=_msmq(message) if message.source_machine is not None else None,
        signature=_signature(message.security),
    )
    if is_receipt and not (
        envelope.delivery_receipt or envelope.commitment_receipt or envelope.stream_receipt
    ):
        raise CannotSayError(
            f"SRMP has no receipt for class {message.message_class:#06x}",
            hint="only arrivals, receives and what happens in the destination queue are told over HTTP",
        )
    has_payload = not is_receipt
    return wire.SrmpMessage(
        envelope=envelope,
        body=message.body if has_payload else None,
        extension=message.extension if has_payload and message.extension else None,
    )


def _expires_at(message: Message) -> int:
    if message.time_to_reach_queue == INFINITE:
        return wire.NEVER
    return min(int(message.sent_time) + message.time_to_reach_queue, wire.NEVER)


def _services(message: Message, *, is_stream: bool) -> wire.Services | None:
    asked, administration = message.acknowledgments, uri_of(message.administration_queue)
    # Only HTTP can carry a receipt (2.2.5.2.2): an administration queue of another kind is told nothing.
    if not message.administration_queue or not is_http(administration):
        asked = Acknowledgments.NONE
    wants_positive = bool(asked & Acknowledgments.POSITIVE_RECEIVE)
    wants_negative = bool(asked & Acknowledgments.NEGATIVE_RECEIVE)
    is_durable = is_stream or message.is_recoverable
    if not (is_durable or asked):
        return None
    return wire.Services(
        durable=is_durable,
        delivery_receipt_request=(
            wire.DeliveryReceiptRequest(send_to=administration) if asked & _ARRIVAL else None
        ),
        commitment_receipt_request=(
            wire.CommitmentReceiptRequest(
                send_to=administration, positive_only=wants_positive, negative_only=wants_negative
            )
            if wants_positive or wants_negative
            else None
        ),
    )


def _stream(message: Message, place: Sequence, receipts_url: str) -> wire.Stream:
    assert message.source_machine is not None
    return wire.Stream(
        stream_id=wire.StreamId(message.source_machine, place.stream),
        current=place.number,
        previous=place.previous,
        start=wire.StreamStart(send_receipts_to=receipts_url) if place.number == 1 else None,
    )


def _delivery_receipt(message: Message) -> wire.DeliveryReceipt | None:
    if message.message_class != MessageClass.ACK_REACH_QUEUE or message.correlation_id is None:
        return None
    return wire.DeliveryReceipt(received_at=int(message.sent_time), id=message.correlation_id)


def _commitment_receipt(message: Message) -> wire.CommitmentReceipt | None:
    if message.message_class not in _RECEIPT_CLASSES or message.correlation_id is None:
        return None
    return wire.CommitmentReceipt(
        decided_at=int(message.sent_time),
        is_positive=message.message_class == MessageClass.ACK_RECEIVE,
        id=message.correlation_id,
    )


def _stream_receipt(receipt: OrderReceipt | None) -> wire.StreamReceipt | None:
    if receipt is None:
        return None
    return wire.StreamReceipt(
        stream_id=wire.StreamId(receipt.machine, receipt.stream), last_ordinal=receipt.sequence
    )


def _msmq(message: Message) -> wire.Msmq:
    assert message.source_machine is not None
    security, marks = message.security, message.transaction
    has_provider = security is not None and (security.provider_type or security.provider_name)
    has_eod = marks is not None and (marks.first or marks.last)
    return wire.Msmq(
        message_class=message.message_class,
        priority=message.priority,
        body_type=message.body_type,
        source_qm=message.source_machine,
        ttrq=_expires_at(message),
        journal=message.positive_journaling,
        dead_letter=message.negative_journaling,
        correlation=message.correlation_id,
        trace=message.tracing,
        connector_type=message.connector_type,
        app=message.application_tag,
        hash_algorithm=security.hash_algorithm if security is not None else 0,
        eod=_eod(message) if has_eod or message.connector_queue_manager else None,
        provider=(
            wire.Provider(type=security.provider_type, name=security.provider_name)
            if security is not None and has_provider
            else None
        ),
        destination_mqf=_uris(message.destination_queues),
        admin_mqf=_uris(message.administration_queues),
        response_mqf=_uris(message.response_queues),
    )


def _signature(security: MessageSecurity | None) -> wire.Signature | None:
    """The signature that a message came with, if it is only passing through."""
    if security is None or not security.signature:
        return None
    return msgspec.msgpack.decode(security.signature, type=wire.Signature)


def _eod(message: Message) -> wire.Eod:
    marks = message.transaction
    return wire.Eod(
        first=marks is not None and marks.first,
        last=marks is not None and marks.last,
        connector_id=message.connector_queue_manager,
    )


def _uris(names: str) -> tuple[str, ...]:
    """Say a multiple-element format name as URIs, those that HTTP can say."""
    if not names:
        return ()
    name = parse_format_name(names)
    elements = name.elements if isinstance(name, MultipleName) else (name,)
    return tuple(
        uri_of(str(element))
        for element in elements
        if isinstance(element, DirectName) and element.protocol.is_http
    )
