"""The header and the body of an envelope, as they stand in it (MC-MQSRM 3.1.5.1.1).

An application may ask for them (SoapHeader and SoapBody, MS-MQDMPR 3.1.1.12). Few do, so they are cut out of
the envelope when somebody asks, and not from every message that arrives.
"""

from __future__ import annotations

from lanner.protocols.srmp.wire.faults import WireFault
from lanner.protocols.srmp.wire.namespaces import SOAP
from lanner.protocols.srmp.wire.xml_reader import parse_xml

__all__ = ["split_envelope"]


def split_envelope(raw_envelope: bytes) -> tuple[str, str]:
    """Return the SOAP Header and the SOAP Body of an envelope, tags and all. Raises WireFault."""
    children = parse_xml(raw_envelope).children[:2]
    if [(child.namespace, child.name) for child in children] != [(SOAP, "Header"), (SOAP, "Body")]:
        raise WireFault("2.2.2", "Envelope", "it does not hold a Header and a Body, in this order")
    header, body = (raw_envelope[child.start : child.end].decode("utf-8") for child in children)
    return header, body
