"""Logging in with a Kerberos ticket: SASL's mechanism GSSAPI (RFC 4752), by pyspnego.

Without TLS every message after the login is encrypted by the ticket's session key; with TLS it is not
done twice, and the login is bound to the server's certificate instead.
"""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any

from lanner.directory.ldap.errors import InvalidLdapSettingsError, LoginRefusedError

__all__ = ["MECHANISM", "KerberosLogin"]

MECHANISM = "GSSAPI"

_NO_LAYER, _ENCRYPTED = 1, 4
_MAX_RECEIVED = 0xFFFFFF
"""What we take in one piece: the most that the three bytes of the offer can say."""
_OFFER_LENGTH = 4


class KerberosLogin:
    """One login. ``step`` answers what the server says; then ``wrap`` and ``unwrap`` carry messages."""

    def __init__(self, host: str, certificate: bytes | None) -> None:
        """Begin for a host; ``certificate`` is what it showed for TLS, or none without TLS."""
        try:
            import spnego
            from spnego.channel_bindings import GssChannelBindings
            from spnego.exceptions import SpnegoError
        except ImportError:
            raise _missing() from None
        self._refused: tuple[type[Exception], ...] = (SpnegoError, OSError, ValueError)
        flags = spnego.ContextReq.mutual_auth | spnego.ContextReq.sequence_detect
        bindings = None
        self._has_tls = certificate is not None
        if certificate is not None:
            digest = hashlib.sha256(certificate).digest()
            bindings = GssChannelBindings(application_data=b"tls-server-end-point:" + digest)
        else:
            flags |= spnego.ContextReq.confidentiality | spnego.ContextReq.integrity
        try:
            self._context: Any = spnego.client(
                hostname=host,
                service="ldap",
                protocol="kerberos",
                context_req=flags,
                channel_bindings=bindings,
            )
        except ImportError:  # pyspnego is there, and what it needs for Kerberos is not
            raise _missing() from None
        except self._refused as error:
            raise self._refusal(error) from None
        self._finished = False
        self.encrypts = False
        """Whether messages go through ``wrap`` and ``unwrap`` from now on."""
        self.max_sent = _MAX_RECEIVED
        """The most that the server takes in one piece."""

    async def step(self, token: bytes | None) -> bytes:
        """The next thing to say. It may ask a Kerberos server, so it is done on a thread."""
        try:
            if not self._context.complete:
                return await asyncio.to_thread(self._context.step, token) or b""
            if self._finished:
                raise LoginRefusedError("the server goes on with a login that is finished")
            return self._choose_layer(token or b"")
        except self._refused as error:
            raise self._refusal(error) from None

    def wrap(self, message: bytes) -> bytes:
        """Encrypt."""
        return bytes(self._context.wrap(message, encrypt=True).data)

    def unwrap(self, piece: bytes) -> bytes:
        """Decrypt."""
        try:
            found = self._context.unwrap(piece)
        except self._refused as error:
            raise LoginRefusedError(f"a message is not what the server encrypted: {error}") from None
        if self.encrypts and not found.encrypted:
            raise LoginRefusedError("the server answers in the open")
        return bytes(found.data)

    def _choose_layer(self, token: bytes) -> bytes:
        """Answer the server's offer of layers, which is encrypted itself (RFC 4752 3.1)."""
        offer = self.unwrap(token)
        wanted = _NO_LAYER if self._has_tls else _ENCRYPTED
        if len(offer) != _OFFER_LENGTH or not offer[0] & wanted:
            raise LoginRefusedError("the server does not encrypt with Kerberos", hint="use ldaps:// with it")
        self._finished = True
        self.encrypts = not self._has_tls
        self.max_sent = int.from_bytes(offer[1:], "big") or _MAX_RECEIVED
        received = _MAX_RECEIVED if self.encrypts else 0
        answer = bytes((wanted,)) + received.to_bytes(3, "big")
        return bytes(self._context.wrap(answer, encrypt=False).data)

    @staticmethod
    def _refusal(error: BaseException) -> LoginRefusedError:
        words = " ".join(str(error).split())[:200]
        return LoginRefusedError(f"Kerberos gives no ticket: {words}", hint="run kinit, and check krb5.conf")


def _missing() -> InvalidLdapSettingsError:
    return InvalidLdapSettingsError(
        "logging in with Kerberos needs pyspnego and gssapi", hint="pip install 'lanner[kerberos]'"
    )
