"""Who signs: our own key, and the certificates whose signatures are believed (MC-MQSRM 3.1.5.1.6.1).

The text takes the key from a certificate that comes with the message by other ways. Here an administrator
lists the certificates that are believed; one that comes with a message (KeyInfo) says which of them it is.
"""

from __future__ import annotations

from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.dsa import DSAPrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from lanner.model.errors import InvalidPropertyError
from lanner.protocols.srmp import wire
from lanner.protocols.srmp.settings import SrmpSettings
from lanner.protocols.srmp.signature import Digest, SignatureFault, sign, verify

__all__ = ["Signers"]

MAX_TRUSTED = 100
"""Without a KeyInfo a signature is tried with each of them."""

_RULES = "3.1.5.1.6.1"


class Signers:
    """Signs what goes out, and checks what comes in."""

    def __init__(
        self,
        trusted: tuple[x509.Certificate, ...] = (),
        key: DSAPrivateKey | None = None,
        certificate: x509.Certificate | None = None,
        *,
        weak_digests: bool = False,
    ) -> None:
        self._trusted = {each.public_bytes(Encoding.DER): each for each in trusted}
        self._key = key
        self._certificate = certificate
        self._digests = tuple(Digest) if weak_digests else ()

    @classmethod
    def load(cls, settings: SrmpSettings) -> Signers:
        """Read the files that the settings name."""
        trusted = _certificates(settings.trusted_senders, "srmp.trusted_senders")
        if len(trusted) > MAX_TRUSTED:
            raise InvalidPropertyError(
                f"srmp.trusted_senders has {len(trusted)} certificates; the limit is {MAX_TRUSTED}"
            )
        own = _certificates(settings.signing_certificate, "srmp.signing_certificate")
        return cls(
            tuple(trusted),
            _key(settings.signing_key),
            own[0] if own else None,
            weak_digests=settings.weak_digests,
        )

    def authenticate(self, message: wire.SrmpMessage) -> bytes:
        """Check the signature of a message, and return the certificate of its signer.

        Raises SignatureFault.
        """
        signature = message.envelope.signature
        named = signature.key_info.certificates if signature is not None and signature.key_info else ()
        candidates = [der for der in self._trusted if not named or der in named]
        if signature is not None and not candidates:
            raise SignatureFault(
                _RULES, "nobody whose signature is believed has signed it (srmp.trusted_senders)"
            )
        problem = SignatureFault(_RULES, "there is no Signature element")
        for der in candidates:
            try:
                verify(message, self._trusted[der], self._digests)
            except SignatureFault as fault:
                problem = fault
            else:
                return der
        raise problem

    def sign(self, message: wire.SrmpMessage) -> wire.Signature:
        """Sign a message whose sender asks for it. Raises SignatureFault."""
        if self._key is None:
            raise SignatureFault("2.2.7", "there is no key to sign it with (srmp.signing_key)")
        return sign(message, self._key, self._certificate)


def _certificates(file: str, setting: str) -> list[x509.Certificate]:
    if not file:
        return []
    try:
        return x509.load_pem_x509_certificates(Path(file).read_bytes())
    except (OSError, ValueError) as error:
        raise InvalidPropertyError(f"{setting}: {file} cannot be read: {_words(error)}") from error


def _key(file: str) -> DSAPrivateKey | None:
    if not file:
        return None
    try:
        key = load_pem_private_key(Path(file).read_bytes(), password=None)
    except (OSError, ValueError, TypeError) as error:
        raise InvalidPropertyError(f"srmp.signing_key: {file} cannot be read: {_words(error)}") from error
    if not isinstance(key, DSAPrivateKey):
        raise InvalidPropertyError(f"srmp.signing_key: {file} is no DSA key")
    return key


def _words(error: Exception) -> str:
    return (error.strerror or "") if isinstance(error, OSError) else str(error).partition("\n")[0]
