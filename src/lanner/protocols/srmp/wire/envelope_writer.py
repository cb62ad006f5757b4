"""An envelope as text: each element where MC-MQSRM 3.1.7.2.4 puts it, and no white space between them.

3.1.7.2.4 gives receipts no place; they stand before the Msmq element, as in the samples of section 4.
:mod:`lanner.protocols.srmp.wire.envelope_expression` reads exactly this shape: change both or neither.
"""

from __future__ import annotations

from lanner.protocols.srmp.wire import namespaces
from lanner.protocols.srmp.wire.dates import write_date
from lanner.protocols.srmp.wire.elements import Envelope, Msmq, Path, Properties, Services, Stream
from lanner.protocols.srmp.wire.escaping import escape
from lanner.protocols.srmp.wire.faults import WireFault
from lanner.protocols.srmp.wire.queue_uri import is_destination
from lanner.protocols.srmp.wire.signature_element import write_signature
from lanner.protocols.srmp.wire.values import write_base64, write_message_id

__all__ = ["write_envelope"]

_OPENING = (
    f'<se:Envelope xmlns:se="{namespaces.SOAP}" xmlns="{namespaces.SRMP}">'
    f'<se:Header><path xmlns="{namespaces.ROUTING}" se:mustUnderstand="1">'
)
_CLOSING = "</se:Header><se:Body></se:Body></se:Envelope>"


def write_envelope(envelope: Envelope) -> str:
    """Write an envelope. Unknown header blocks are not passed on: nobody here can vouch for them.

    Raises WireFault for what cannot be written.
    """
    pieces = [_OPENING, _write_path(envelope.path), _write_properties(envelope.properties)]
    if envelope.services is not None:
        pieces.append(_write_services(envelope.services))
    if envelope.stream is not None:
        pieces.append(_write_stream(envelope.stream))
    if (
        envelope.delivery_receipt is not None
        or envelope.commitment_receipt is not None
        or envelope.stream_receipt is not None
    ):
        pieces.append(_write_receipts(envelope))
    if envelope.msmq is not None:
        pieces.append(_write_msmq(envelope.msmq))
    if envelope.signature is not None:
        pieces.append(write_signature(envelope.signature))
    pieces.append(_CLOSING)
    return "".join(pieces)


def _write_path(path: Path) -> str:
    if not is_destination(path.to):
        raise WireFault("2.2.4.2", "to", "it does not begin with http://, https:// or MSMQ:MULTICAST=")
    rev = ""
    if path.via:
        rev = f"<rev><via>{escape(path.via, '2.2.4.4', 'via')}</via></rev>"
    return (
        f"<action>{escape(path.action, '2.2.4.1', 'action')}</action>"
        f"<to>{escape(path.to, '2.2.4.2', 'to')}</to>"
        f"<id>{write_message_id(path.id)}</id>{rev}</path>"
    )


def _write_properties(properties: Properties) -> str:
    sent_at = "" if properties.sent_at is None else f"<sentAt>{write_date(properties.sent_at)}</sentAt>"
    return (
        f'<properties se:mustUnderstand="1"><expiresAt>{write_date(properties.expires_at)}</expiresAt>'
        f"{sent_at}</properties>"
    )


def _write_services(services: Services) -> str:
    delivery, commitment = "", ""
    if services.delivery_receipt_request is not None:
        send_to = escape(services.delivery_receipt_request.send_to, "2.2.5.2.2", "sendTo")
        delivery = f"<deliveryReceiptRequest><sendTo>{send_to}</sendTo></deliveryReceiptRequest>"
    request = services.commitment_receipt_request
    if request is not None:
        send_to = escape(request.send_to, "2.2.5.2.3", "sendTo")
        commitment = (
            f"<commitmentReceiptRequest><sendTo>{send_to}</sendTo>"
            f"{'<positiveOnly/>' if request.positive_only else ''}"
            f"{'<negativeOnly/>' if request.negative_only else ''}</commitmentReceiptRequest>"
        )
    return (
        f'<services se:mustUnderstand="1">{"<durable/>" if services.durable else ""}'
        f"{delivery}{commitment}</services>"
    )


def _write_stream(stream: Stream) -> str:
    start = ""
    if stream.start is not None:
        send_to = escape(stream.start.send_receipts_to, "2.2.5.3.4", "sendReceiptsTo")
        start = f"<start><sendReceiptsTo>{send_to}</sendReceiptsTo></start>"
    previous = f"<previous>{stream.previous}</previous>" if stream.previous else ""
    return (
        f'<stream se:mustUnderstand="1"><streamId>{stream.stream_id}</streamId>'
        f"<current>{stream.current}</current>{previous}{start}</stream>"
    )


def _write_receipts(envelope: Envelope) -> str:
    text = ""
    if envelope.delivery_receipt is not None:
        delivery = envelope.delivery_receipt
        text += (
            f"<deliveryReceipt><receivedAt>{write_date(delivery.received_at)}</receivedAt>"
            f"<id>{write_message_id(delivery.id)}</id></deliveryReceipt>"
        )
    if envelope.stream_receipt is not None:
        stream = envelope.stream_receipt
        text += (
            f"<streamReceipt><streamId>{stream.stream_id}</streamId>"
            f"<lastOrdinal>{stream.last_ordinal}</lastOrdinal></streamReceipt>"
        )
    if envelope.commitment_receipt is not None:
        commitment = envelope.commitment_receipt
        text += (
            f"<commitmentReceipt><decidedAt>{write_date(commitment.decided_at)}</decidedAt>"
            f"<decision>{'positive' if commitment.is_positive else 'negative'}</decision>"
            f"<id>{write_message_id(commitment.id)}</id></commitmentReceipt>"
        )
    return text


def _write_msmq(msmq: Msmq) -> str:
    correlation, hash_algorithm, mark = "", "", ""
    if msmq.journal:
        mark = "<Journal/>"
    if msmq.dead_letter:
        mark += "<DeadLetter/>"
    if msmq.correlation is not None:
        correlation = f"<Correlation>{write_base64(msmq.correlation)}</Correlation>"
    if msmq.hash_algorithm:
        hash_algorithm = f"<HashAlgorithm>{msmq.hash_algorithm}</HashAlgorithm>"
    connector = f"<ConnectorType>{msmq.connector_type}</ConnectorType>" if msmq.connector_type else ""
    return (
        f'<Msmq xmlns="{namespaces.MSMQ}"><Class>{msmq.message_class}</Class>'
        f"<Priority>{msmq.priority}</Priority>{mark}{correlation}{'<Trace/>' if msmq.trace else ''}"
        f"{connector}{f'<App>{msmq.app}</App>' if msmq.app else ''}<BodyType>{msmq.body_type}</BodyType>"
        f"{hash_algorithm}{_write_transaction_and_provider(msmq)}"
        f"<SourceQmGuid>{msmq.source_qm}</SourceQmGuid>{_write_lists(msmq)}"
        f"<TTrq>{write_date(msmq.ttrq)}</TTrq></Msmq>"
    )


def _write_transaction_and_provider(msmq: Msmq) -> str:
    text = ""
    eod = msmq.eod
    if eod is not None:
        connector = f"<ConnectorId>{eod.connector_id}</ConnectorId>" if eod.connector_id else ""
        text = f"<Eod>{'<First/>' if eod.first else ''}{'<Last/>' if eod.last else ''}{connector}</Eod>"
    if msmq.provider is not None:
        # 2.2.6.12 demands both elements; 3.1.7.2.4 would leave out what is zero or empty.
        name = escape(msmq.provider.name, "2.2.6.12", "Name")
        text += f"<Provider><Type>{msmq.provider.type}</Type><Name>{name}</Name></Provider>"
    return text


def _write_lists(msmq: Msmq) -> str:
    if not (msmq.destination_mqf or msmq.admin_mqf or msmq.response_mqf):
        return ""
    return (
        _write_list(msmq.destination_mqf, "2.2.6.14", "DestinationMqf")
        + _write_list(msmq.admin_mqf, "2.2.6.15", "AdminMqf")
        + _write_list(msmq.response_mqf, "2.2.6.16", "ResponseMqf")
    )


def _write_list(names: tuple[str, ...], section: str, element: str) -> str:
    if not names:
        return ""
    for name in names:
        if len(name.split()) != 1:
            raise WireFault(
                section, element, f"a name in the list is empty or has white space in it: {name!r}"
            )
    return f"<{element}>{escape(' '.join(names), section, element)} </{element}>"
