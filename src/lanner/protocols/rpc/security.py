"""Security contexts: log-ons, and the protection of PDUs (MS-RPCE 3.3.1.5.2), through pyspnego.

What a level protects, with header signing (3.3.1.5.2.2):

    level       header      body        sec_trailer
    CONNECT     -           -           -
    INTEGRITY   signed      signed      signed
    PRIVACY     signed      sealed      signed

Without header signing only the body is protected. NTLM always signs the whole PDU, whatever was negotiated:
that is what Samba, impacket and the servers they talk to do on the wire.
CALL and PACKET are raised to INTEGRITY, the next level that is supported (2.2.1.1.8).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

import spnego
from spnego import ContextProxy, ContextReq
from spnego.exceptions import SpnegoError
from spnego.iov import BufferType

from lanner.protocols.rpc.credentials import Credentials, Mechanism
from lanner.protocols.rpc.errors import SecurityError
from lanner.protocols.rpc.interface import AuthLevel, Caller
from lanner.protocols.rpc.kerberos import explained, has_kerberos, tell_failures_at_once
from lanner.protocols.rpc.logons import Logons
from lanner.protocols.rpc.ntlm import NtlmAcceptor, NtlmSealer, SpnegoAcceptor, nt_hash
from lanner.protocols.rpc.pdu import Segments

__all__ = ["Acceptor", "AuthType", "SecurityContext", "initiate"]

NTLM_TOKEN = 16
"""A signature of NTLM."""

KERBEROS_MIC = 28
"""A MIC of Kerberos with AES and SHA-1 (RFC 4121 4.2.6.1, RFC 3962)."""

MAX_LEGS = 8
"""Tokens from the peer until a log-on must be over; SPNEGO with NTLM needs three."""


class AuthType(IntEnum):
    """Security providers (MS-RPCE 2.2.1.1.7)."""

    NONE = 0x00
    SPNEGO = 0x09
    NTLM = 0x0A
    KERBEROS = 0x10
    DEFAULT = 0xFF


def protection_of(level: int) -> AuthLevel:
    """The level that is applied for one that is asked for."""
    try:
        asked = AuthLevel(level)
    except ValueError:
        raise SecurityError(f"authentication level {level} is unknown") from None
    if asked == AuthLevel.NONE:
        raise SecurityError("a log-on at the level of none")
    if asked in (AuthLevel.CALL, AuthLevel.PACKET):
        return AuthLevel.INTEGRITY
    return AuthLevel.CONNECT if asked == AuthLevel.DEFAULT else asked


def _requirements(level: AuthLevel) -> ContextReq:
    """What the provider must be able to do at a level (3.3.1.5.2.2)."""
    requirements = ContextReq.dce_style | ContextReq.mutual_auth
    if level >= AuthLevel.INTEGRITY:
        requirements |= ContextReq.integrity | ContextReq.replay_detect | ContextReq.sequence_detect
    if level >= AuthLevel.PRIVACY:
        requirements |= ContextReq.confidentiality
    return requirements


class SecurityContext:
    """One security context of an association, on either side."""

    def __init__(self, proxy: ContextProxy, kind: int, level: int, context_id: int) -> None:
        self.kind = kind
        self.level = level
        self.context_id = context_id
        self.protection = protection_of(level)
        self.signs_header = False
        self._proxy = proxy
        self._ntlm: NtlmSealer | None = None
        self._mechanism = ""
        self._mic_length = KERBEROS_MIC
        self._legs = 0

    @property
    def is_complete(self) -> bool:
        """Whether the log-on is over and succeeded."""
        return self._proxy.complete

    @property
    def mechanism(self) -> str:
        """`ntlm` or `kerberos`."""
        return self._mechanism or self._proxy.negotiated_protocol or ""

    @property
    def principal(self) -> str:
        """Who logged on, or tried to; nobody where the peer has not said it."""
        try:
            return self._proxy.client_principal or ""
        except AttributeError:
            return ""  # GSS-API names nobody before a ticket was good

    def step(self, token: bytes | None) -> bytes:
        """Take a token of the peer; says what goes back, perhaps nothing."""
        self._legs += 1
        if self._legs > MAX_LEGS:
            raise SecurityError(f"a log-on of more than {MAX_LEGS} legs")
        try:
            answer = self._proxy.step(token)
        except SecurityError:
            raise
        except SpnegoError as error:
            raise explained(error) or SecurityError(f"the log-on failed: {error.message}") from error
        except Exception as error:
            # Libraries raise what they like at octets that are no token.
            raise SecurityError(f"a token that is none: {type(error).__name__}: {error}") from error
        if self.is_complete:
            self._check_capabilities()
            self._mechanism = self._proxy.negotiated_protocol or ""
            self._ntlm = NtlmSealer.of(self._proxy)
        return answer or b""

    def _check_capabilities(self) -> None:
        # A provider that was not asked to sign makes signatures that prove nothing.
        got = self._proxy.context_attr
        if self.protection >= AuthLevel.INTEGRITY and not got & ContextReq.integrity:
            raise SecurityError("the peer does not sign, and the level needs it")
        if self.protection >= AuthLevel.PRIVACY and not got & ContextReq.confidentiality:
            raise SecurityError("the peer does not seal, and the level needs it")

    @property
    def token_length(self) -> int:
        """Octets of the token of a protected PDU; none where nothing is protected."""
        if self.protection < AuthLevel.INTEGRITY:
            return 0
        if self.mechanism != "kerberos":
            return NTLM_TOKEN
        if self.protection == AuthLevel.PRIVACY:
            return self._proxy.query_message_sizes().header
        return self._mic_length

    @property
    def _whole(self) -> bool:
        return self.signs_header or self.mechanism != "kerberos"

    def protect(self, parts: Segments) -> bytes:
        """The PDU as it goes out; its token is replaced."""
        try:
            if self._ntlm is not None and self.protection == AuthLevel.PRIVACY:
                body, token = self._ntlm.seal(parts.header, parts.body, parts.trailer)
            elif self._ntlm is not None:
                body, token = parts.body, self._ntlm.sign(self._signed(parts))
            elif self.protection == AuthLevel.PRIVACY:
                body, token = self._seal(parts)
            else:
                body, token = parts.body, self._proxy.sign(self._signed(parts))
        except SpnegoError as error:
            raise SecurityError(f"a PDU cannot be protected: {error.message}") from error
        if len(token) != len(parts.token):
            raise SecurityError(f"a token of {len(token)} octets where {len(parts.token)} were promised")
        return b"".join((parts.header, body, parts.trailer, token))

    def unprotect(self, parts: Segments) -> bytes:
        """The body of a PDU that came in, checked and plain."""
        if self._ntlm is not None and self.protection == AuthLevel.PRIVACY:
            return self._ntlm.unseal(parts.header, parts.body, parts.trailer, parts.token)
        if self._ntlm is not None and self.protection >= AuthLevel.INTEGRITY:
            self._ntlm.verify(self._signed(parts), parts.token)
            return parts.body
        try:
            if self.protection == AuthLevel.PRIVACY:
                return self._unseal(parts)
            if self.protection >= AuthLevel.INTEGRITY:
                self._proxy.verify(self._signed(parts), parts.token)
                self._mic_length = len(parts.token)  # the same key makes ours
        except SpnegoError as error:
            raise SecurityError(f"a PDU is not what was sent: {error.message}") from error
        except Exception as error:
            raise SecurityError(f"a token that is none: {type(error).__name__}: {error}") from error
        return parts.body

    def _signed(self, parts: Segments) -> bytes:
        return parts.header + parts.body + parts.trailer if self._whole else parts.body

    def _seal(self, parts: Segments) -> tuple[bytes, bytes]:
        if self._whole:
            result = self._proxy.wrap_iov(
                [
                    (BufferType.sign_only, parts.header),
                    (BufferType.data, parts.body),
                    (BufferType.sign_only, parts.trailer),
                    BufferType.header,
                ]
            )
            return result.buffers[1].data or b"", result.buffers[3].data or b""
        result = self._proxy.wrap_iov([(BufferType.data, parts.body), BufferType.header])
        return result.buffers[0].data or b"", result.buffers[1].data or b""

    def _unseal(self, parts: Segments) -> bytes:
        if self._whole:
            result = self._proxy.unwrap_iov(
                [
                    (BufferType.sign_only, parts.header),
                    (BufferType.data, parts.body),
                    (BufferType.sign_only, parts.trailer),
                    (BufferType.header, parts.token),
                ]
            )
            return result.buffers[1].data or b""
        result = self._proxy.unwrap_iov([(BufferType.data, parts.body), (BufferType.header, parts.token)])
        return result.buffers[0].data or b""


class Acceptor:
    """Makes security contexts for log-ons that begin: the table of security providers (MS-RPCE 3.1.3.1.1)."""

    def __init__(self, logons: Logons, server_name: str, *, kerberos: bool = False) -> None:
        self._logons = logons
        self._server_name = server_name.upper()[:15]
        self._kerberos = kerberos
        if kerberos:
            tell_failures_at_once()

    def recognizes(self, kind: int) -> bool:
        """Whether this provider is in the table."""
        if kind == AuthType.KERBEROS:
            return self._kerberos
        return kind in (AuthType.NTLM, AuthType.SPNEGO)

    def begin(self, kind: int, level: int, context_id: int, source: str) -> SecurityContext:
        """A log-on begins."""
        requirements = _requirements(protection_of(level))

        def ntlm() -> ContextProxy:
            return NtlmAcceptor(self._server_name, lambda user: self._logons.find(user, source), requirements)

        def kerberos() -> ContextProxy:
            return spnego.server(protocol="kerberos", context_req=requirements)

        makers: dict[str, Callable[[], ContextProxy]] = {"ntlm": ntlm}
        if self._kerberos:
            makers = {"kerberos": kerberos, "ntlm": ntlm}
        if kind == AuthType.NTLM:
            proxy = ntlm()
        elif kind == AuthType.SPNEGO:
            # DCE style asks for a signature over the list of mechanisms; at CONNECT nobody can sign.
            signs = bool(requirements & ContextReq.integrity)
            proxy = SpnegoAcceptor(makers, requirements if signs else ContextReq.none)
        elif kind == AuthType.KERBEROS and self._kerberos:
            proxy = kerberos()
        else:
            raise SecurityError(f"security provider {kind} is unknown")
        return SecurityContext(proxy, kind, level, context_id)

    def failed(self, context: SecurityContext, source: str, reason: str) -> None:
        """A log-on failed."""
        self._logons.failed(context.principal, source, reason)

    def caller(self, context: SecurityContext) -> Caller:
        """Who logged on."""
        user, _, realm = context.principal.partition("@")
        if context.mechanism != "kerberos":
            user, realm = context.principal, ""
        return Caller(
            user=user,
            domain=realm or self._server_name,
            is_authenticated=True,
            is_administrator=self._logons.accounts.is_administrator(user, realm),
            level=context.protection,
            mechanism=context.mechanism,
        )


_KINDS = {
    Mechanism.NTLM: (AuthType.NTLM, "ntlm"),
    Mechanism.SPNEGO: (AuthType.SPNEGO, "negotiate"),
    Mechanism.KERBEROS: (AuthType.KERBEROS, "kerberos"),
}


def initiate(credentials: Credentials, level: AuthLevel, host: str, context_id: int = 1) -> SecurityContext:
    """Begin to log on as a client."""
    kind, protocol = _KINDS[credentials.mechanism]
    if credentials.mechanism == Mechanism.KERBEROS and not has_kerberos():
        raise SecurityError("Kerberos is not installed", hint="pip install 'lanner[kerberos]'")
    # CALL and PACKET go out as the level that is applied (2.2.1.1.8).
    applied = protection_of(level)
    requirements = _requirements(applied)
    if applied < AuthLevel.PRIVACY:
        # MIT Kerberos offers to seal unless told not to, and Samba takes the offer for the level.
        requirements |= ContextReq.no_integrity
    user: str | spnego.NTLMHash | None = credentials.user or None
    password: str | None = credentials.password or None
    has_realm = "@" in credentials.user
    if (
        password
        and credentials.user
        and (kind == AuthType.NTLM or not (has_realm or kind == AuthType.KERBEROS))
    ):
        # Without a realm there is no Kerberos, and the search for one in DNS may take many seconds.
        user, password = spnego.NTLMHash(credentials.user, nt_hash=nt_hash(password).hex()), None
    try:
        proxy = spnego.client(
            user,
            password,
            hostname=credentials.target or host,
            service=credentials.service,
            protocol=protocol,
            context_req=requirements,
        )
    except SpnegoError as error:
        raise explained(error) or SecurityError(f"the log-on cannot begin: {error.message}") from error
    except Exception as error:
        # A ticket for a password comes from another library, whose errors pyspnego lets through.
        known = explained(error)
        if known is None:
            raise
        raise known from error
    return SecurityContext(proxy, kind, applied, context_id)
