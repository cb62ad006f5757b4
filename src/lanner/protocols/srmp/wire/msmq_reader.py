"""The Msmq element and its 17 children (MC-MQSRM 2.2.6)."""

from __future__ import annotations

from uuid import UUID

from lanner.protocols.srmp.wire.dates import read_date
from lanner.protocols.srmp.wire.elements import Eod, Msmq, Provider
from lanner.protocols.srmp.wire.faults import FaultSink
from lanner.protocols.srmp.wire.namespaces import MSMQ
from lanner.protocols.srmp.wire.reading import Children, read_children
from lanner.protocols.srmp.wire.values import (
    MAX_UINT16,
    MAX_UINT32,
    read_correlation,
    read_guid,
    read_names,
    read_number,
)
from lanner.protocols.srmp.wire.xml_reader import Node

__all__ = ["HIGHEST_PRIORITY", "read_msmq"]

HIGHEST_PRIORITY = 7

_NO_GUID = UUID(int=0)


def _read_class(text: str) -> int:
    return read_number(text, MAX_UINT16)


def _read_priority(text: str) -> int:
    return read_number(text, HIGHEST_PRIORITY)


def _read_uint32(text: str) -> int:
    # The text has xs:unsignedLong, but the attributes behind are of 32 bits (MS-MQDMPR 3.1.1.12).
    return read_number(text, MAX_UINT32)


def read_msmq(node: Node, sink: FaultSink) -> Msmq:
    """Read an Msmq element."""
    children = read_children(node, MSMQ, "2.2.6", sink)
    return Msmq(
        message_class=children.value("Class", "2.2.6.1", _read_class, 0),
        priority=children.value("Priority", "2.2.6.2", _read_priority, 0),
        journal="Journal" in children,
        dead_letter="DeadLetter" in children,
        correlation=children.maybe("Correlation", "2.2.6.5", read_correlation),
        trace="Trace" in children,
        connector_type=children.maybe("ConnectorType", "2.2.6.7", read_guid),
        app=children.maybe("App", "2.2.6.8", _read_uint32) or 0,
        body_type=children.value("BodyType", "2.2.6.9", _read_uint32, 0),
        hash_algorithm=children.maybe("HashAlgorithm", "2.2.6.10", _read_uint32) or 0,
        eod=_read_eod(children, sink),
        provider=_read_provider(children, sink),
        source_qm=children.value("SourceQmGuid", "2.2.6.13", read_guid, _NO_GUID),
        destination_mqf=children.maybe("DestinationMqf", "2.2.6.14", read_names) or (),
        admin_mqf=children.maybe("AdminMqf", "2.2.6.15", read_names) or (),
        response_mqf=children.maybe("ResponseMqf", "2.2.6.16", read_names) or (),
        ttrq=children.value("TTrq", "2.2.6.17", read_date, 0),
    )


def _read_eod(children: Children, sink: FaultSink) -> Eod | None:
    node = children.get("Eod")
    if node is None:
        return None
    inner = read_children(node, MSMQ, "2.2.6.11", sink)
    return Eod(
        first="First" in inner,
        last="Last" in inner,
        connector_id=inner.maybe("ConnectorId", "2.2.6.11", read_guid),
    )


def _read_provider(children: Children, sink: FaultSink) -> Provider | None:
    node = children.get("Provider")
    if node is None:
        return None
    inner = read_children(node, MSMQ, "2.2.6.12", sink)
    for name in ("Type", "Name"):
        if name not in inner:
            # 2.2.6.12 demands both, 3.1.7.2.4 writes either alone.
            sink.deviation("2.2.6.12", name, "the element is missing in Provider")
    return Provider(
        type=inner.maybe("Type", "2.2.6.12", _read_uint32) or 0,
        name=inner.text("Name", "2.2.6.12") if "Name" in inner else "",
    )
