"""Each rule of MC-MQSRM 3.1.5.1.6.1 that is about the signature itself, broken once."""

from __future__ import annotations

import base64
import hashlib
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import dsa, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.x509.oid import NameOID
from tests.protocols.srmp.wire.samples import DURABLE, QM

from lanner.model.codes import StatusCode
from lanner.protocols.srmp.signature import DSA, Digest, SignatureFault, sign, verify
from lanner.protocols.srmp.wire import (
    Reference,
    Signature,
    SrmpMessage,
    decode_request,
    encode_request,
)
from lanner.protocols.srmp.wire.signature_element import write_signed_info
from lanner.protocols.srmp.wire.values import write_base64

BOTH = frozenset(Digest)
KEY = dsa.generate_private_key(2048)
PUBLIC = KEY.public_key()
MESSAGE = msgspec.structs.replace(DURABLE, extension=b"more")


def _certificate(key: dsa.DSAPrivateKey | rsa.RSAPrivateKey) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sender")])
    now = datetime(2026, 1, 1, tzinfo=UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now)
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )


def _with(message: SrmpMessage, signature: Signature | None) -> SrmpMessage:
    envelope = msgspec.structs.replace(message.envelope, signature=signature)
    return msgspec.structs.replace(message, envelope=envelope)


def _signed(message: SrmpMessage = MESSAGE, digest: Digest = Digest.SHA1) -> SrmpMessage:
    return _with(message, sign(message, KEY, digest=digest))


def _changed(**changes: object) -> SrmpMessage:
    signature = _signed().envelope.signature
    assert signature is not None
    return _with(MESSAGE, msgspec.structs.replace(signature, **changes))


def _resigned(*references: Reference, message: SrmpMessage = MESSAGE) -> SrmpMessage:
    """A signature that is right, over references that are not."""
    signed_info = write_signed_info(DSA, references)
    whole = sign(MESSAGE, KEY)
    r, s = decode_dss_signature(KEY.sign(signed_info, hashes.SHA1()))
    value = write_base64(r.to_bytes(32, "big") + s.to_bytes(32, "big"))
    return _with(
        message,
        msgspec.structs.replace(whole, signed_info=signed_info, references=references, signature_value=value),
    )


def _reference(name: str, content: bytes, **changes: str | None) -> Reference:
    value = base64.b64encode(hashlib.sha1(content).digest()).decode()
    reference = Reference(uri=f"cid:{name}@{QM}", digest_method=Digest.SHA1, digest_value=value)
    return msgspec.structs.replace(reference, **changes)


BODY = _reference("body", b"First Message")
EXTENSION = _reference("extension", b"more")


def _refused(message: SrmpMessage, words: str, section: str = "3.1.5.1.6.1") -> None:
    with pytest.raises(SignatureFault, match=words) as caught:
        verify(message, PUBLIC, BOTH)
    assert caught.value.section == section
    assert caught.value.code is StatusCode.MQ_ERROR_MESSAGE_NOT_AUTHENTICATED
    assert section in str(caught.value)


@pytest.mark.parametrize("digest", list(Digest))
@pytest.mark.parametrize(("body", "extension"), [(b"a", b"b"), (b"a", None), (None, b"b"), (b"", None)])
def test_what_was_signed_is_accepted(digest: Digest, body: bytes | None, extension: bytes | None) -> None:
    message = _signed(msgspec.structs.replace(DURABLE, body=body, extension=extension), digest)
    verify(message, PUBLIC, [digest])
    verify(message, _certificate(KEY), BOTH)


def test_it_holds_over_the_wire() -> None:
    encoded = encode_request(_signed())
    decoded = decode_request(encoded.content_type.encode(), encoded.body)
    verify(decoded, PUBLIC, BOTH)
    assert decoded.envelope.signature is not None
    # And passed on by somebody else.
    encoded = encode_request(msgspec.structs.replace(decoded, raw_envelope=b""))
    verify(decode_request(encoded.content_type.encode(), encoded.body), PUBLIC, BOTH)


def test_lengths_are_those_of_the_text() -> None:
    signature = _signed().envelope.signature
    assert signature is not None
    assert len(signature.signature_value or "") == 88
    assert [len(reference.digest_value or "") for reference in signature.references] == [28, 28]
    assert [reference.uri for reference in signature.references] == [f"cid:body@{QM}", f"cid:extension@{QM}"]
    md5 = sign(MESSAGE, KEY, digest=Digest.MD5)
    assert [len(reference.digest_value or "") for reference in md5.references] == [24, 24]


def test_the_certificate_travels_if_asked() -> None:
    certificate = _certificate(KEY)
    key_info = sign(MESSAGE, KEY, certificate).key_info
    assert key_info is not None
    assert x509.load_der_x509_certificate(key_info.certificates[0]) == certificate
    assert sign(MESSAGE, KEY).key_info is None


def test_no_signature() -> None:
    _refused(_with(MESSAGE, None), "no Signature element")


def test_no_signed_info() -> None:
    _refused(_changed(signed_info=None), "no SignedInfo")


def test_no_signature_method() -> None:
    _refused(_changed(signature_method=None), "no SignatureMethod")


def test_another_signature_method() -> None:
    _refused(_changed(signature_method="http://www.w3.org/2000/02/xmldsig#rsa"), "signature method is not")
    _refused(_changed(signature_method=""), "signature method is not")


def test_no_reference() -> None:
    _refused(_resigned(), "no Reference element")


def test_three_references() -> None:
    _refused(_resigned(BODY, EXTENSION, BODY), "more than two")


def test_a_body_that_is_not_there() -> None:
    _refused(_resigned(BODY, message=msgspec.structs.replace(MESSAGE, body=None)), "names the body")


def test_an_extension_that_is_not_there() -> None:
    message = msgspec.structs.replace(MESSAGE, extension=None)
    _refused(_resigned(BODY, EXTENSION, message=message), "names the extension")


def test_the_body_twice() -> None:
    _refused(_resigned(BODY, BODY), "both References name the body")


def test_the_extension_twice() -> None:
    message = msgspec.structs.replace(MESSAGE, body=None)
    _refused(_resigned(EXTENSION, EXTENSION, message=message), "both References name the extension")


def test_no_digest_method() -> None:
    _refused(_resigned(_reference("body", b"", digest_method=None), EXTENSION), "no DigestMethod")


def test_another_digest_method() -> None:
    sha256 = "http://www.w3.org/2001/04/xmlenc#sha256"
    _refused(_resigned(_reference("body", b"", digest_method=sha256), EXTENSION), "neither SHA-1 nor MD5")


def test_no_digest_value() -> None:
    _refused(_resigned(BODY, _reference("extension", b"", digest_value=None)), "no DigestValue")


@pytest.mark.parametrize("digest", list(Digest))
def test_another_body(digest: Digest) -> None:
    _refused(msgspec.structs.replace(_signed(digest=digest), body=b"first message"), "the body is not what")


@pytest.mark.parametrize("digest", list(Digest))
def test_another_extension(digest: Digest) -> None:
    _refused(msgspec.structs.replace(_signed(digest=digest), extension=b""), "the extension is not what")


def test_no_signature_value() -> None:
    _refused(_changed(signature_value=None), "no SignatureValue")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("", "0 bits"),
        ("****", "not base64"),
        (write_base64(bytes(40)), "320 bits"),
        (write_base64(bytes(64)), "not the sender's"),
        (write_base64(b"\xff" * 64), "not the sender's"),
    ],
)
def test_another_signature_value(value: str, words: str) -> None:
    _refused(_changed(signature_value=value), words)


def test_another_signed_info() -> None:
    signature = _signed().envelope.signature
    assert signature is not None
    assert signature.signed_info is not None
    _refused(_changed(signed_info=signature.signed_info + b" "), "not the sender's")


def test_another_sender() -> None:
    parameters = KEY.parameters()
    other = parameters.generate_private_key()
    with pytest.raises(SignatureFault, match="not the sender's"):
        verify(_signed(), other.public_key(), BOTH)


def test_keys_of_other_kinds() -> None:
    with pytest.raises(SignatureFault, match="DSA key"):
        verify(_signed(), _certificate(rsa.generate_private_key(65537, 2048)), BOTH)
    small = dsa.generate_private_key(1024)
    with pytest.raises(SignatureFault, match="160 bits"):
        sign(MESSAGE, small)
    with pytest.raises(SignatureFault, match="160 bits"):
        verify(_signed(), small.public_key(), BOTH)


def test_broken_digests_are_trusted_only_where_asked() -> None:
    for allowed in ((), [Digest.MD5]):
        with pytest.raises(SignatureFault, match="SHA1 are not trusted") as caught:
            verify(_signed(), PUBLIC, allowed)
        assert caught.value.section == "2.2.7.1.2.1"


def test_every_part_must_be_signed() -> None:
    _refused(_resigned(BODY), "no Reference names the extension", "2.2.7.1.2")
    _refused(_resigned(EXTENSION), "no Reference names the body", "2.2.7.1.2")
    _refused(_resigned(BODY, _reference("other", b"")), "neither the body nor", "2.2.7.1.2")


def test_nothing_to_sign() -> None:
    with pytest.raises(SignatureFault, match="neither a body nor"):
        sign(msgspec.structs.replace(DURABLE, body=None), KEY)
