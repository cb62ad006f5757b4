"""The XML signature of a message, made and checked (MC-MQSRM 2.2.7, 3.1.5.1.6.1, 3.1.7.2.4).

Pure functions: who must sign, and whose key is whose, is decided elsewhere. A digest is taken of the bytes of
the body and of the extension; the signature is DSA with SHA-1 (2.2.7.2) over the bytes of the SignedInfo
element. It is 512 bits long: r and s with 32 bytes each, so the key's q has 256 bits.

SHA-1 and MD5 are the only digests the protocol has, and both are broken. So whoever checks says which of
them to trust; by default none, and every signature is refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from enum import StrEnum

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.dsa import DSAPrivateKey, DSAPublicKey
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import Certificate

from lanner.model.codes import StatusCode
from lanner.model.errors import LannerError
from lanner.protocols.srmp.wire.elements import KeyInfo, Reference, Signature, SrmpMessage
from lanner.protocols.srmp.wire.signature_element import write_signed_info
from lanner.protocols.srmp.wire.values import read_base64, write_base64

__all__ = ["DSA", "Digest", "SignatureFault", "sign", "verify"]

DSA = "http://www.w3.org/2000/02/xmldsig#dsa"
"""The one signature method there is (2.2.7.1.1)."""

_BODY = "cid:body"
_EXTENSION = "cid:extension"
_HALF = 32
"""Bytes of r, and of s."""

_RULES = "3.1.5.1.6.1"


class Digest(StrEnum):
    """What a digest can be made with (2.2.7.1.2.1)."""

    SHA1 = "http://www.w3.org/2000/02/xmldsig#sha1"
    MD5 = "http://www.w3.org/2000/02/xmldsig#md5"


class SignatureFault(LannerError):  # noqa: N818 - a fault of the peer, not of ours
    """The signature is missing, not whole, or wrong. ``section`` is the section of MC-MQSRM that says so."""

    code = StatusCode.MQ_ERROR_MESSAGE_NOT_AUTHENTICATED

    def __init__(self, section: str, reason: str) -> None:
        super().__init__(reason)
        self.section = section
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.reason} (MC-MQSRM {self.section})"


def sign(
    message: SrmpMessage,
    private_key: DSAPrivateKey,
    certificate: Certificate | None = None,
    digest: Digest = Digest.SHA1,
) -> Signature:
    """Sign the body and the extension of a message, for its envelope.

    The certificate travels with the signature if it is given; 3.1.7.2.4 sends none. Raises SignatureFault for
    a message with nothing to sign, or a key of the wrong size.
    """
    _check_key(private_key.public_key())
    suffix = message.content_suffix
    if not suffix and message.envelope.msmq is not None:
        suffix = str(message.envelope.msmq.source_qm)
    references = tuple(
        Reference(uri=f"{name}@{suffix}", digest_method=digest, digest_value=_digest(digest, content))
        for name, content in ((_BODY, message.body), (_EXTENSION, message.extension))
        if content is not None
    )
    if not references:
        raise SignatureFault("2.2.7.1.2", "the message has neither a body nor an extension to sign")
    signed_info = write_signed_info(DSA, references)
    r, s = decode_dss_signature(private_key.sign(signed_info, hashes.SHA1()))  # noqa: S303 - 2.2.7.2
    key_info = None
    if certificate is not None:
        key_info = KeyInfo(certificates=(certificate.public_bytes(Encoding.DER),))
    return Signature(
        signed_info=signed_info,
        signature_method=DSA,
        references=references,
        signature_value=write_base64(r.to_bytes(_HALF, "big") + s.to_bytes(_HALF, "big")),
        key_info=key_info,
    )


def verify(
    message: SrmpMessage, key: Certificate | DSAPublicKey, allowed_digests: Collection[Digest] = ()
) -> None:
    """Check the signature of a message against the sender's key. Raises SignatureFault."""
    signature = message.envelope.signature
    if signature is None:
        raise SignatureFault(_RULES, "there is no Signature element")
    if signature.signed_info is None:
        raise SignatureFault(_RULES, "there is no SignedInfo element")
    if signature.signature_method is None:
        raise SignatureFault(_RULES, "there is no SignatureMethod element")
    if signature.signature_method != DSA:
        raise SignatureFault(_RULES, f"the signature method is not {DSA}")
    _check_references(signature.references, message)
    for reference in signature.references:
        _check_digest(reference, message, allowed_digests)
    if signature.signature_value is None:
        raise SignatureFault(_RULES, "there is no SignatureValue element")
    _check_value(signature.signature_value, signature.signed_info, _public_key(key))


def _check_references(references: tuple[Reference, ...], message: SrmpMessage) -> None:
    if not references:
        raise SignatureFault(_RULES, "there is no Reference element")
    if len(references) > 2:
        raise SignatureFault(_RULES, "there are more than two Reference elements")
    bodies = sum(reference.uri.startswith(_BODY) for reference in references)
    extensions = sum(reference.uri.startswith(_EXTENSION) for reference in references)
    if bodies + extensions != len(references):
        raise SignatureFault("2.2.7.1.2", "a Reference names neither the body nor the extension")
    for name, count, content in (
        ("body", bodies, message.body),
        ("extension", extensions, message.extension),
    ):
        if count > 1:
            raise SignatureFault(_RULES, f"both References name the {name}")
        if count and content is None:
            raise SignatureFault(_RULES, f"a Reference names the {name}, and the message has none")
        if not count and content is not None:
            # 3.1.5.1.6.1 does not ask, but 2.2.7.1.2 demands it: else anybody could add an unsigned part.
            raise SignatureFault("2.2.7.1.2", f"no Reference names the {name} that the message has")


def _check_digest(reference: Reference, message: SrmpMessage, allowed: Collection[Digest]) -> None:
    if reference.digest_method is None:
        raise SignatureFault(_RULES, "there is no DigestMethod element")
    try:
        digest = Digest(reference.digest_method)
    except ValueError:
        raise SignatureFault(_RULES, "the digest method is neither SHA-1 nor MD5") from None
    if digest not in allowed:
        raise SignatureFault(
            "2.2.7.1.2.1", f"digests made with {digest.name} are not trusted here (srmp.weak_digests)"
        )
    if reference.digest_value is None:
        raise SignatureFault(_RULES, "there is no DigestValue element")
    is_body = reference.uri.startswith(_BODY)
    content = (message.body if is_body else message.extension) or b""
    if _digest(digest, content) != reference.digest_value:
        raise SignatureFault(_RULES, f"the {'body' if is_body else 'extension'} is not what was signed")


def _digest(digest: Digest, content: bytes) -> str:
    name = "sha1" if digest is Digest.SHA1 else "md5"
    return write_base64(hashlib.new(name, content, usedforsecurity=False).digest())


def _public_key(key: Certificate | DSAPublicKey) -> DSAPublicKey:
    public_key = key.public_key() if isinstance(key, Certificate) else key
    if not isinstance(public_key, DSAPublicKey):
        raise SignatureFault(_RULES, "the sender's certificate does not hold a DSA key")
    return public_key


def _check_key(key: DSAPublicKey) -> None:
    bits = key.parameters().parameter_numbers().q.bit_length()
    if bits != 8 * _HALF:
        raise SignatureFault(_RULES, f"the key's q has {bits} bits; a 512-bit signature needs {8 * _HALF}")


def _check_value(value: str, signed_info: bytes, key: DSAPublicKey) -> None:
    _check_key(key)
    try:
        raw = read_base64(value)
    except ValueError:
        raise SignatureFault(_RULES, "the SignatureValue is not base64") from None
    if len(raw) != 2 * _HALF:
        raise SignatureFault(_RULES, f"the signature has {8 * len(raw)} bits and not 512")
    r, s = int.from_bytes(raw[:_HALF], "big"), int.from_bytes(raw[_HALF:], "big")
    try:
        key.verify(encode_dss_signature(r, s), signed_info, hashes.SHA1())  # noqa: S303 - 2.2.7.2
    except InvalidSignature:
        raise SignatureFault(_RULES, "the signature is not the sender's") from None
