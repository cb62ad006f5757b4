from __future__ import annotations

import msgspec
import pytest
from tests.protocols.srmp.wire.samples import DURABLE

from lanner.protocols.srmp.wire import (
    Envelope,
    KeyInfo,
    Reference,
    Signature,
    WireFault,
    decode_request,
    encode_request,
)
from lanner.protocols.srmp.wire.envelope_reader import read_envelope
from lanner.protocols.srmp.wire.envelope_writer import write_envelope
from lanner.protocols.srmp.wire.faults import RAISE, FaultCollector
from lanner.protocols.srmp.wire.signature_element import write_signed_info

DSA = "http://www.w3.org/2000/02/xmldsig#dsa"
SHA1 = "http://www.w3.org/2000/02/xmldsig#sha1"
REFERENCES = (
    Reference(uri="cid:body@f6a3323c-7c7b-4a5f-b0ed-b3f63a200893", digest_method=SHA1, digest_value="XU9y"),
    Reference(uri="cid:extension@x", digest_method=SHA1, digest_value="AAAA"),
)
SIGNED_INFO = (
    b'<SignedInfo><SignatureMethod Algorithm="http://www.w3.org/2000/02/xmldsig#dsa"></SignatureMethod>'
    b'<Reference URI="cid:body@f6a3323c-7c7b-4a5f-b0ed-b3f63a200893">'
    b'<DigestMethod Algorithm="http://www.w3.org/2000/02/xmldsig#sha1"></DigestMethod>'
    b"<DigestValue>XU9y</DigestValue></Reference>"
    b'<Reference URI="cid:extension@x">'
    b'<DigestMethod Algorithm="http://www.w3.org/2000/02/xmldsig#sha1"></DigestMethod>'
    b"<DigestValue>AAAA</DigestValue></Reference></SignedInfo>"
)
SIGNATURE = Signature(
    signed_info=SIGNED_INFO,
    signature_method=DSA,
    references=REFERENCES,
    signature_value="ZxvF",
    key_info=KeyInfo(certificates=(b"one", b"two")),
)


def _with(signature: Signature) -> Envelope:
    return msgspec.structs.replace(DURABLE.envelope, signature=signature)


def _read(element: str) -> Signature:
    text = write_envelope(DURABLE.envelope).replace("</se:Header>", element + "</se:Header>")
    signature = read_envelope(text.encode(), RAISE).signature
    assert signature is not None
    return signature


def test_the_bytes_to_sign() -> None:
    assert write_signed_info(DSA, REFERENCES) == SIGNED_INFO


def test_round_trip() -> None:
    for signature in (SIGNATURE, msgspec.structs.replace(SIGNATURE, key_info=None)):
        message = msgspec.structs.replace(DURABLE, envelope=_with(signature))
        encoded = encode_request(message)
        decoded = decode_request(encoded.content_type.encode(), encoded.body)
        assert decoded.envelope.signature == signature


def test_it_stands_last_in_the_header() -> None:
    text = write_envelope(_with(SIGNATURE))
    assert '</Msmq><Signature xmlns="http://www.w3.org/2000/02/xmldsig#"><SignedInfo>' in text
    assert "</SignedInfo><SignatureValue>ZxvF</SignatureValue><KeyInfo>" in text
    assert text.endswith("</Signature></se:Header><se:Body></se:Body></se:Envelope>")


def test_signed_bytes_are_those_that_came() -> None:
    info = (
        "<ds:SignedInfo >\n <ds:SignatureMethod Algorithm='a&amp;b'/><!-- \u20ac --><ds:Reference URI=\"u\">"
        "<ds:DigestMethod/><ds:DigestValue> AA\r\nAA </ds:DigestValue></ds:Reference></ds:SignedInfo\n>"
    )
    signature = _read(
        f'<ds:Signature xmlns:ds="http://www.w3.org/2000/02/xmldsig#">{info}'
        "<ds:SignatureValue>\r\nZx\r\nvF\r\n</ds:SignatureValue></ds:Signature>"
    )
    assert signature == Signature(
        signed_info=info.encode(),
        signature_method="a&b",
        references=(Reference(uri="u", digest_method="", digest_value="AAAA"),),
        signature_value="ZxvF",
    )
    # Sent on, its prefix would mean nothing.
    with pytest.raises(WireFault, match="prefix"):
        write_envelope(_with(signature))


def test_what_is_missing_is_none() -> None:
    opening = '<Signature xmlns="http://www.w3.org/2000/02/xmldsig#">'
    assert _read(opening + "</Signature>") == Signature(signed_info=None)
    assert _read(opening + "<SignedInfo/></Signature>") == Signature(signed_info=b"<SignedInfo/>")
    signature = _read(opening + "<SignedInfo><Reference/></SignedInfo></Signature>")
    assert signature.references == (Reference(uri=""),)


def test_what_is_missing_is_told() -> None:
    sink = FaultCollector()
    element = '<Signature xmlns="http://www.w3.org/2000/02/xmldsig#"><SignedInfo><Reference/></SignedInfo></Signature>'
    text = write_envelope(DURABLE.envelope).replace("</se:Header>", element + "</se:Header>")
    read_envelope(text.encode(), sink)
    assert [fault.section for fault in sink.faults] == ["2.2.7.2", "2.2.7.1.1", "2.2.7.1.2.1", "2.2.7.1.2.2"]
    assert sink.is_acceptable


@pytest.mark.parametrize(
    "inside",
    [
        "<SignedInfo/><SignedInfo/>",
        "<SignatureValue>a</SignatureValue><SignatureValue>b</SignatureValue>",
        "<SignedInfo><SignatureMethod/><SignatureMethod/></SignedInfo>",
        "<SignedInfo><Reference><DigestMethod/><DigestMethod/></Reference></SignedInfo>",
        "<SignedInfo><Reference><DigestValue/><DigestValue/></Reference></SignedInfo>",
        "<KeyInfo><X509Data><X509Certificate>*</X509Certificate></X509Data></KeyInfo>",
    ],
)
def test_what_cannot_be_told_apart_is_refused(inside: str) -> None:
    with pytest.raises(WireFault) as caught:
        _read(f'<Signature xmlns="http://www.w3.org/2000/02/xmldsig#">{inside}</Signature>')
    assert caught.value.section.startswith("2.2.7")


def test_another_namespace_is_an_unknown_block() -> None:
    text = write_envelope(DURABLE.envelope).replace(
        "</se:Header>", '<Signature xmlns="http://www.w3.org/2000/09/xmldsig#"/></se:Header>'
    )
    envelope = read_envelope(text.encode(), RAISE)
    assert envelope.signature is None
    assert [header.name for header in envelope.unknown] == ["Signature"]


def test_a_value_cannot_break_out_of_its_element() -> None:
    text = write_envelope(_with(msgspec.structs.replace(SIGNATURE, signature_value="</SignatureValue><x/>")))
    assert "<SignatureValue>&lt;/SignatureValue&gt;&lt;x/&gt;</SignatureValue>" in text
