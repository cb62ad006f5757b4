"""An envelope from XML of any shape that the specification allows (MC-MQSRM 2.2.2 to 2.2.7).

Namespaces decide, not prefixes; children come in any order; white space around a value means nothing. What
is missing, doubled or malformed is a fault. What the samples of section 4 do against the text, and what does
no harm, is a deviation: accepted, and told to whoever examines the request.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar
from uuid import UUID

from lanner.model.message_id import MessageId
from lanner.protocols.srmp.wire import namespaces
from lanner.protocols.srmp.wire.dates import read_date
from lanner.protocols.srmp.wire.elements import (
    LABEL_PREFIX,
    NO_IDENTIFIER,
    CommitmentReceipt,
    CommitmentReceiptRequest,
    DeliveryReceipt,
    DeliveryReceiptRequest,
    Envelope,
    Path,
    Properties,
    Services,
    Stream,
    StreamId,
    StreamReceipt,
    StreamStart,
    UnknownHeader,
)
from lanner.protocols.srmp.wire.faults import FaultSink
from lanner.protocols.srmp.wire.msmq_reader import read_msmq
from lanner.protocols.srmp.wire.queue_uri import format_name_of, is_destination, is_http
from lanner.protocols.srmp.wire.reading import Children, read_children
from lanner.protocols.srmp.wire.signature_element import read_signature
from lanner.protocols.srmp.wire.values import read_message_id, read_number, read_stream_id
from lanner.protocols.srmp.wire.xml_reader import Node, parse_xml

__all__ = ["read_envelope", "read_envelope_tree"]

_T = TypeVar("_T")

_NO_STREAM = StreamId(UUID(int=0), 0)

_BLOCKS = {
    (namespaces.ROUTING, "path"): ("path", "2.2.4"),
    (namespaces.SRMP, "properties"): ("properties", "2.2.5.1"),
    (namespaces.SRMP, "services"): ("services", "2.2.5.2"),
    (namespaces.SRMP, "stream"): ("stream", "2.2.5.3"),
    # As the samples of section 4.4 write it.
    (namespaces.SRMP, "Stream"): ("stream", "2.2.5.3"),
    (namespaces.SRMP, "deliveryReceipt"): ("deliveryReceipt", "2.2.5.4"),
    (namespaces.SRMP, "commitmentReceipt"): ("commitmentReceipt", "2.2.5.5"),
    (namespaces.SRMP, "streamReceipt"): ("streamReceipt", "2.2.5.6"),
    (namespaces.MSMQ, "Msmq"): ("Msmq", "2.2.6"),
    (namespaces.SIGNATURE, "Signature"): ("Signature", "2.2.7"),
}
_MUST_BE_UNDERSTOOD = frozenset({"path", "properties", "services", "stream"})


def read_envelope(data: bytes, sink: FaultSink) -> Envelope:
    """Read an envelope's bytes. Raises WireFault if the XML is broken, else as the sink does."""
    return read_envelope_tree(parse_xml(data), data, sink)


def read_envelope_tree(root: Node, data: bytes, sink: FaultSink) -> Envelope:
    """Read an envelope that was parsed from ``data``."""
    blocks, unknown = _read_blocks(_find_header(root, sink), sink)
    msmq_node = blocks.get("Msmq")
    services = _optional(blocks, "services", _read_services, sink)
    stream = _optional(blocks, "stream", _read_stream, sink)
    envelope = Envelope(
        path=_read_path(blocks.get("path"), msmq_node is not None, sink),
        properties=_read_properties(blocks.get("properties"), sink),
        services=services,
        stream=stream,
        delivery_receipt=_optional(blocks, "deliveryReceipt", _read_delivery_receipt, sink),
        commitment_receipt=_optional(blocks, "commitmentReceipt", _read_commitment_receipt, sink),
        stream_receipt=_optional(blocks, "streamReceipt", _read_stream_receipt, sink),
        msmq=_optional(blocks, "Msmq", read_msmq, sink),
        signature=read_signature(blocks["Signature"], data, sink) if "Signature" in blocks else None,
        unknown=unknown,
    )
    _check_together(envelope, sink)
    return envelope


def _optional(
    blocks: dict[str, Node], name: str, read: Callable[[Node, FaultSink], _T], sink: FaultSink
) -> _T | None:
    node = blocks.get(name)
    return None if node is None else read(node, sink)


def _find_header(root: Node, sink: FaultSink) -> Node | None:
    if (root.namespace, root.name) != (namespaces.SOAP, "Envelope"):
        sink.fault("2.2.2", root.name, "the outermost element is not the SOAP Envelope")
        return None
    names = [child.name if child.namespace == namespaces.SOAP else "" for child in root.children]
    if not names or names[0] != "Header":
        sink.fault("2.2.2", "Header", "the first child of the Envelope is not the SOAP Header")
        return None
    if len(names) < 2 or names[1] != "Body":
        sink.fault("2.2.2", "Body", "the SOAP Body does not follow the Header")
    elif root.children[1].children or root.children[1].text.strip():
        sink.deviation("2.2.2", "Body", "the SOAP Body is not empty; what it holds is ignored")
    return root.children[0]


def _read_blocks(header: Node | None, sink: FaultSink) -> tuple[dict[str, Node], tuple[UnknownHeader, ...]]:
    """Sort the header's children into those of the protocol and the others."""
    blocks: dict[str, Node] = {}
    unknown = []
    for node in header.children if header is not None else ():
        must_understand = node.attribute("mustUnderstand", namespaces.SOAP)
        known = _BLOCKS.get((node.namespace, node.name))
        if known is None:
            # SOAP 1.1 has 0 and 1 alone; "true" is taken for 1, because ignoring it could lose what it asks.
            is_marked = must_understand in ("1", "true")
            unknown.append(UnknownHeader(namespace=node.namespace, name=node.name, must_understand=is_marked))
            continue
        name, section = known
        if name in blocks:
            sink.fault(section, name, "the element is there more than once")
        if name in _MUST_BE_UNDERSTOOD and must_understand != "1":
            sink.fault(section, name, 'the element is not marked mustUnderstand="1"')
        if node.name != name:
            sink.deviation(section, node.name, f"the element is called {name}")
        blocks[name] = node
    return blocks, tuple(unknown)


def _read_path(node: Node | None, has_msmq: bool, sink: FaultSink) -> Path:
    if node is None:
        sink.fault("2.2.4", "path", "the element is missing")
        return Path(action="", to="", id=NO_IDENTIFIER)
    children = read_children(node, namespaces.ROUTING, "2.2.4", sink)
    action = children.text("action", "2.2.4.1")
    if not action.startswith(LABEL_PREFIX):
        sink.deviation("2.2.4.1", "action", f"it does not begin with {LABEL_PREFIX}: there is no label")
    to = children.value("to", "2.2.4.2", str, "")
    if not is_destination(to):
        sink.fault("2.2.4.2", "to", "it does not begin with http://, https:// or MSMQ:MULTICAST=")
    if has_msmq:
        identifier: MessageId = children.value("id", "2.2.4.3", read_message_id, NO_IDENTIFIER)
    else:
        # Not looked at without an Msmq element, but it has to be there.
        children.text("id", "2.2.4.3")
        identifier = NO_IDENTIFIER
    return Path(action=action, to=to, id=identifier, via=_read_via(children, sink))


def _read_via(children: Children, sink: FaultSink) -> str | None:
    rev = children.get("rev")
    if rev is None:
        return None
    via = read_children(rev, namespaces.ROUTING, "2.2.4.4", sink).value("via", "2.2.4.4", str, "")
    if via and format_name_of(via) is None:
        sink.deviation("2.2.4.4", "via", "it begins with neither http://, https:// nor MSMQ:")
    return via or None


def _read_properties(node: Node | None, sink: FaultSink) -> Properties:
    if node is None:
        sink.fault("2.2.5.1", "properties", "the element is missing")
        return Properties(expires_at=0)
    children = read_children(node, namespaces.SRMP, "2.2.5.1", sink)
    return Properties(
        expires_at=children.value("expiresAt", "2.2.5.1.1", read_date, 0),
        sent_at=children.maybe("sentAt", "2.2.5.1.2", read_date),
    )


def _read_receipts_queue(children: Children, name: str, section: str, sink: FaultSink) -> str:
    uri = children.value(name, section, str, "")
    if not is_http(uri):
        sink.deviation(section, name, "it begins with neither http:// nor https://: nothing is sent there")
    return uri


def _read_services(node: Node, sink: FaultSink) -> Services:
    children = read_children(node, namespaces.SRMP, "2.2.5.2", sink)
    delivery, commitment = None, None
    request = children.get("deliveryReceiptRequest")
    if request is not None:
        inner = read_children(request, namespaces.SRMP, "2.2.5.2.2", sink)
        delivery = DeliveryReceiptRequest(send_to=_read_receipts_queue(inner, "sendTo", "2.2.5.2.2", sink))
    request = children.get("commitmentReceiptRequest")
    if request is not None:
        inner = read_children(request, namespaces.SRMP, "2.2.5.2.3", sink)
        commitment = CommitmentReceiptRequest(
            send_to=_read_receipts_queue(inner, "sendTo", "2.2.5.2.3", sink),
            positive_only="positiveOnly" in inner,
            negative_only="negativeOnly" in inner,
        )
    return Services(
        durable="durable" in children,
        delivery_receipt_request=delivery,
        commitment_receipt_request=commitment,
    )


def _read_stream(node: Node, sink: FaultSink) -> Stream:
    children = read_children(node, namespaces.SRMP, "2.2.5.3", sink)
    current = children.value("current", "2.2.5.3.2", read_number, 1)
    if current == 0:
        sink.fault("2.2.5.3.2", "current", "the first message of a stream has the number 1")
    start = None
    start_node = children.get("start")
    if start_node is not None:
        inner = read_children(start_node, namespaces.SRMP, "2.2.5.3.4", sink)
        start = StreamStart(
            send_receipts_to=_read_receipts_queue(inner, "sendReceiptsTo", "2.2.5.3.4", sink),
            expires_at=inner.maybe("expiresAt", "2.2.5.3.4", read_date),
        )
    if (start is None) is (current == 1):
        # Which message may begin a stream is the session's to judge: the first may have expired unsent.
        verb = "is missing in" if start is None else "stands in another than"
        sink.deviation("2.2.5.3.4", "start", f"it {verb} the first message of the stream")
    for name in ("end", "streamReceiptRequest"):
        if name in children:
            sink.deviation("2.2.5.3", name, "the element is not defined; it stands in the samples alone")
    return Stream(
        stream_id=children.value("streamId", "2.2.5.3.1", read_stream_id, _NO_STREAM),
        current=current,
        previous=children.maybe("previous", "2.2.5.3.3", read_number) or 0,
        start=start,
        end="end" in children,
        receipt_request="streamReceiptRequest" in children,
    )


def _read_delivery_receipt(node: Node, sink: FaultSink) -> DeliveryReceipt:
    children = read_children(node, namespaces.SRMP, "2.2.5.4", sink)
    return DeliveryReceipt(
        received_at=children.value("receivedAt", "2.2.5.4", read_date, 0),
        id=children.value("id", "2.2.5.4", read_message_id, NO_IDENTIFIER),
    )


def _read_commitment_receipt(node: Node, sink: FaultSink) -> CommitmentReceipt:
    children = read_children(node, namespaces.SRMP, "2.2.5.5", sink)
    return CommitmentReceipt(
        decided_at=children.value("decidedAt", "2.2.5.5", read_date, 0),
        is_positive=children.value("decision", "2.2.5.5", _read_decision, False),
        id=children.value("id", "2.2.5.5", read_message_id, NO_IDENTIFIER),
    )


def _read_decision(text: str) -> bool:
    if text not in ("positive", "negative"):
        raise ValueError("the decision is neither positive nor negative")
    return text == "positive"


def _read_stream_receipt(node: Node, sink: FaultSink) -> StreamReceipt:
    children = read_children(node, namespaces.SRMP, "2.2.5.6", sink)
    return StreamReceipt(
        stream_id=children.value("streamId", "2.2.5.6", read_stream_id, _NO_STREAM),
        last_ordinal=children.value("lastOrdinal", "2.2.5.6", read_number, 0),
    )


def _check_together(envelope: Envelope, sink: FaultSink) -> None:
    """Look at what one element demands of another."""
    if envelope.stream is not None:
        if envelope.msmq is None:
            sink.fault("2.2.5.3", "stream", "a stream message has an Msmq element; this one has none")
        if envelope.services is None or not envelope.services.durable:
            sink.deviation(
                "2.2.5.2.1", "durable", "it is missing in a stream message, which is durable anyway"
            )
    if envelope.msmq is None:
        sink.deviation("2.2.6", "Msmq", "the element is missing; defaults stand in for all it would say")
    elif envelope.path.id.lineage != envelope.msmq.source_qm:
        sink.deviation("2.2.4.3", "id", "its GUID is not that of SourceQmGuid")
