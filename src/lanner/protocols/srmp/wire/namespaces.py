"""The XML namespaces of the protocol (MC-MQSRM 2.2.3, 2.2.7)."""

from __future__ import annotations

__all__ = ["MSMQ", "ROUTING", "SIGNATURE", "SOAP", "SRMP"]

SOAP = "http://schemas.xmlsoap.org/soap/envelope/"
ROUTING = "http://schemas.xmlsoap.org/rp/"
SRMP = "http://schemas.xmlsoap.org/srmp/"
MSMQ = "msmq.namespace.xml"
SIGNATURE = "http://www.w3.org/2000/02/xmldsig#"
