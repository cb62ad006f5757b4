"""The Signature element: its parts, and the bytes that are signed (MC-MQSRM 2.2.7, 3.1.7.2.4).

A signature is made over the SignedInfo element exactly as it stands in the envelope, from its ``<`` to its
last ``>``; a digest over the bytes of the MIME part that the reference names. The text knows no canonical
form. Whether a signature is whole and right is judged elsewhere (3.1.5.1.6.1); what is refused here is what
cannot be told apart: an element that may stand once and stands twice.
"""

from __future__ import annotations

from lanner.protocols.srmp.wire.elements import KeyInfo, Reference, Signature
from lanner.protocols.srmp.wire.escaping import escape
from lanner.protocols.srmp.wire.faults import FaultSink, WireFault
from lanner.protocols.srmp.wire.namespaces import SIGNATURE
from lanner.protocols.srmp.wire.reading import Children, read_children
from lanner.protocols.srmp.wire.values import read_base64, write_base64
from lanner.protocols.srmp.wire.xml_reader import Node

__all__ = ["read_signature", "write_signature", "write_signed_info"]


def read_signature(node: Node, data: bytes, sink: FaultSink) -> Signature:
    """Read a Signature element that was parsed from ``data``."""
    children = read_children(node, SIGNATURE, "2.2.7", sink)
    value = children.maybe("SignatureValue", "2.2.7.2", _without_space)
    _check_presence(children, "SignatureValue", "2.2.7.2", sink)
    _check_presence(children, "SignedInfo", "2.2.7.1", sink)
    info = children.get("SignedInfo")
    if info is None:
        return Signature(signed_info=None, signature_value=value, key_info=_read_key_info(children, sink))
    methods = read_children(info, SIGNATURE, "2.2.7.1", sink, repeatable="Reference")
    _check_presence(methods, "SignatureMethod", "2.2.7.1.1", sink)
    return Signature(
        signed_info=data[info.start : info.end],
        signature_method=_algorithm(methods.get("SignatureMethod")),
        references=tuple(
            _read_reference(child, sink)
            for child in info.children
            if (child.namespace, child.name) == (SIGNATURE, "Reference")
        ),
        signature_value=value,
        key_info=_read_key_info(children, sink),
    )


def _without_space(text: str) -> str:
    return "".join(text.split())


def _algorithm(node: Node | None) -> str | None:
    return None if node is None else node.attribute("Algorithm") or ""


def _check_presence(children: Children, name: str, section: str, sink: FaultSink) -> None:
    if name not in children:
        # No fault of form: a queue that asks for no signature takes the message (3.1.5.1.6.1).
        sink.deviation(section, name, "the element is missing: the signature cannot be right")


def _read_reference(node: Node, sink: FaultSink) -> Reference:
    children = read_children(node, SIGNATURE, "2.2.7.1.2", sink)
    _check_presence(children, "DigestMethod", "2.2.7.1.2.1", sink)
    _check_presence(children, "DigestValue", "2.2.7.1.2.2", sink)
    return Reference(
        uri=node.attribute("URI") or "",
        digest_method=_algorithm(children.get("DigestMethod")),
        digest_value=children.maybe("DigestValue", "2.2.7.1.2.2", _without_space),
    )


def _read_key_info(children: Children, sink: FaultSink) -> KeyInfo | None:
    node = children.get("KeyInfo")
    if node is None:
        return None
    certificates = []
    for x509_data in node.children:
        for child in x509_data.children:
            if (child.namespace, child.name) == (SIGNATURE, "X509Certificate"):
                try:
                    certificates.append(read_base64(child.text))
                except ValueError as error:
                    sink.fault("2.2.7", "X509Certificate", str(error))
    return KeyInfo(certificates=tuple(certificates))


def write_signed_info(signature_method: str, references: tuple[Reference, ...]) -> bytes:
    """Write the SignedInfo element: the bytes to sign."""
    pieces = [f'<SignedInfo><SignatureMethod Algorithm="{signature_method}"></SignatureMethod>']
    for reference in references:
        pieces.append(
            f'<Reference URI="{escape(reference.uri, "2.2.7.1.2", "Reference")}">'
            f'<DigestMethod Algorithm="{reference.digest_method}"></DigestMethod>'
            f"<DigestValue>{reference.digest_value}</DigestValue></Reference>"
        )
    pieces.append("</SignedInfo>")
    return "".join(pieces).encode("utf-8")


def write_signature(signature: Signature) -> str:
    """Write the Signature element. Its SignedInfo goes out byte for byte, or the signature would break."""
    pieces = [f'<Signature xmlns="{SIGNATURE}">']
    if signature.signed_info is not None:
        if not signature.signed_info.startswith(b"<SignedInfo"):
            # Its prefix was declared in the envelope it came in, which is not the one it goes out in.
            raise WireFault("2.2.7.1", "SignedInfo", "it has a prefix that the new envelope does not declare")
        pieces.append(signature.signed_info.decode("utf-8"))
    if signature.signature_value is not None:
        value = escape(signature.signature_value, "2.2.7.2", "SignatureValue")
        pieces.append(f"<SignatureValue>{value}</SignatureValue>")
    if signature.key_info is not None:
        pieces.append("<KeyInfo><X509Data>")
        for certificate in signature.key_info.certificates:
            pieces.append(f"<X509Certificate>{write_base64(certificate)}</X509Certificate>")
        pieces.append("</X509Data></KeyInfo>")
    pieces.append("</Signature>")
    return "".join(pieces)
