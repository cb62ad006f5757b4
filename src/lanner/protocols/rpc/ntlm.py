"""NTLM on the accepting side, on top of pyspnego (MS-NLMP as pyspnego does it).

pyspnego's acceptor has three properties that do not fit here: it finds users in a file of passwords that an
environment variable names, it takes NTLMv1, and it computes the client's proof over the client's octets as it
would have written them itself, which differs from what Samba and others wrote. So the two steps that read
the client's messages are done here, over the octets as they came; keys, signing and sealing are pyspnego's.

This is the only module that touches what pyspnego does not promise: see the range in pyproject.toml.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Callable
from datetime import UTC, datetime

import spnego
from spnego import ContextReq, NTLMHash
from spnego._context import GSSMech
from spnego._negotiate import NegotiateProxy
from spnego._ntlm import NTLMProxy
from spnego._ntlm_raw.crypto import RC4Handle, ntowfv2, rc4k
from spnego._ntlm_raw.md4 import md4
from spnego._ntlm_raw.messages import (
    Authenticate,
    AvFlags,
    AvId,
    Challenge,
    FileTime,
    Negotiate,
    NegotiateFlags,
    NTClientChallengeV2,
    TargetInfo,
    Version,
)

from lanner.protocols.rpc.errors import SecurityError

__all__ = ["NtlmAcceptor", "NtlmSealer", "SpnegoAcceptor", "nt_hash"]

REQUIRED = NegotiateFlags.extended_session_security | NegotiateFlags.unicode | NegotiateFlags.key_128
"""What every client since Windows 2000 can; without it, keys are weak or text is in an unknown code page."""

PROOF_SIZE = 16
MIC_OFFSET = 72
"""Where the MIC is when flags and version stand before it; everybody who sends one sends a version."""

UNKNOWN_USER = os.urandom(16)
"""Somebody's hash whom nobody knows: an unknown user takes as long as a wrong password."""

_NOBODY = NTLMHash("nobody", nt_hash="0" * 32)


def nt_hash(password: str) -> bytes:
    """What is kept of a password."""
    return md4(password.encode("utf-16-le"))


class NtlmSealer:
    """Signs and seals with the keys of a log-on that is over, on either side (MS-NLMP 3.4.4.2).

    The same octets as pyspnego's `wrap_iov` and `sign`, at a third of their cost: every PDU comes by here.
    """

    def __init__(self, proxy: NTLMProxy) -> None:
        assert proxy._handle_out is not None
        assert proxy._handle_in is not None
        assert proxy._sign_key_out is not None
        assert proxy._sign_key_in is not None
        self._proxy = proxy
        self._out, self._in = proxy._handle_out, proxy._handle_in
        self._key_out, self._key_in = proxy._sign_key_out, proxy._sign_key_in
        self._seals_checksum = bool(proxy._context_attr & NegotiateFlags.key_exch)

    @classmethod
    def of(cls, proxy: spnego.ContextProxy) -> NtlmSealer | None:
        """For NTLM, plain or inside SPNEGO, with the kind of signature that everybody has."""
        if isinstance(proxy, NegotiateProxy):
            proxy = proxy._context
        if not isinstance(proxy, NTLMProxy):
            return None
        needed = NegotiateFlags.extended_session_security | NegotiateFlags.sign
        return cls(proxy) if proxy._context_attr & needed == needed else None

    def sign(self, signed: bytes) -> bytes:
        """The token of a PDU."""
        return self._token(self._out, self._key_out, self._proxy._seq_num_out, signed)

    def verify(self, signed: bytes, token: bytes) -> None:
        """Refuse a PDU whose token is not right, or that is not the next one."""
        expected = self._token(self._in, self._key_in, self._proxy._seq_num_in, signed)
        if not hmac.compare_digest(expected, token):
            raise SecurityError("a PDU is not what was sent: its signature is wrong")

    def seal(self, header: bytes, body: bytes, trailer: bytes) -> tuple[bytes, bytes]:
        """The body as it goes out, and the token."""
        sealed = self._out.update(body)
        return sealed, self.sign(header + body + trailer)

    def unseal(self, header: bytes, body: bytes, trailer: bytes, token: bytes) -> bytes:
        """The body as it was."""
        plain = self._in.update(body)
        self.verify(header + plain + trailer, token)
        return plain

    def _token(self, cipher: RC4Handle, key: bytes, number: int, signed: bytes) -> bytes:
        sequence = number.to_bytes(4, "little")
        checksum = hmac.digest(key, sequence + signed, "md5")[:8]
        if self._seals_checksum:
            checksum = cipher.update(checksum)
        return b"\1\0\0\0" + checksum + sequence


class NtlmAcceptor(NTLMProxy):
    """One log-on over NTLMv2."""

    def __init__(
        self,
        server_name: str,
        find: Callable[[str], bytes | None],
        context_req: ContextReq,
    ) -> None:
        # As an initiator, because an acceptor asks for the file of passwords.
        super().__init__(username=_NOBODY, context_req=context_req, usage="initiate")
        self.usage = "accept"
        self._credential = None
        self._server_name = server_name
        self._find = find
        self._negotiate_raw = b""
        self._challenge_raw = b""
        self._server_challenge = b""
        self.user = ""

    @property
    def client_principal(self) -> str | None:
        """Who logged on, or tried to."""
        return self.user or None

    @property
    def _requires_mech_list_mic(self) -> bool:
        # Who did not agree to sign cannot sign SPNEGO's list of mechanisms either (RFC 4178 5).
        return self._complete and self._mic_required and bool(self._context_attr & NegotiateFlags.sign)

    def _step_accept_negotiate(self, token: bytes) -> bytes:
        negotiate = Negotiate.unpack(token)
        if negotiate.flags & REQUIRED != REQUIRED:
            raise SecurityError(f"NTLM flags {negotiate.flags:#010x} are too weak")
        flags = negotiate.flags | (
            NegotiateFlags.request_target
            | NegotiateFlags.ntlm
            | NegotiateFlags.always_sign
            | NegotiateFlags.target_info
            | NegotiateFlags.target_type_server
            | NegotiateFlags.version
        )
        flags &= ~(NegotiateFlags.oem | NegotiateFlags.lm_key)
        info = TargetInfo()
        info[AvId.nb_domain_name] = self._server_name
        info[AvId.nb_computer_name] = self._server_name
        info[AvId.dns_computer_name] = self._server_name.lower()
        # With a timestamp in it, clients protect the whole exchange with a MIC.
        info[AvId.timestamp] = FileTime.from_datetime(datetime.now(UTC))
        self._server_challenge = os.urandom(8)
        challenge = Challenge(
            flags,
            self._server_challenge,
            target_name=self._server_name,
            target_info=info,
            version=Version.get_current(),
        ).pack()
        self._temp_negotiate = negotiate
        self._negotiate_raw, self._challenge_raw = token, challenge
        return challenge

    def _step_accept_authenticate(self, token: bytes, channel_bindings: object) -> None:  # noqa: ARG002
        auth = Authenticate.unpack(token, encoding="utf-16-le")
        self.user = auth.user_name or ""
        response = auth.nt_challenge_response or b""
        if not self.user:
            raise SecurityError("an anonymous log-on over NTLM")
        if len(response) < PROOF_SIZE + 28:
            raise SecurityError("NTLMv1 is not taken")
        known = self._find(self.user)
        key = ntowfv2(self.user, known or UNKNOWN_USER, auth.domain_name)
        proof = hmac.digest(key, self._server_challenge + response[PROOF_SIZE:], "md5")
        if not hmac.compare_digest(proof, response[:PROOF_SIZE]) or known is None:
            raise SecurityError("unknown user or wrong password")
        if auth.flags & REQUIRED != REQUIRED:
            raise SecurityError(f"NTLM flags {auth.flags:#010x} are too weak")
        session_key = hmac.digest(key, proof, "md5")
        protects = auth.flags & (NegotiateFlags.sign | NegotiateFlags.seal)
        if auth.flags & NegotiateFlags.key_exch and protects:
            encrypted = auth.encrypted_random_session_key or b""
            if len(encrypted) != 16:
                raise SecurityError("a session key that is none")
            session_key = rc4k(session_key, encrypted)
        pairs = NTClientChallengeV2.unpack(response[PROOF_SIZE:]).av_pairs
        if pairs.get(AvId.flags, 0) & AvFlags.mic:
            self._check_mic(token, session_key)
            self._mic_required = True
        self._session_key = session_key
        self._context_attr = auth.flags
        self._complete = True

    def _check_mic(self, token: bytes, session_key: bytes) -> None:
        zeroed = token[:MIC_OFFSET] + bytes(16) + token[MIC_OFFSET + 16 :]
        expected = hmac.digest(session_key, self._negotiate_raw + self._challenge_raw + zeroed, "md5")
        if not hmac.compare_digest(expected, token[MIC_OFFSET : MIC_OFFSET + 16]):
            raise SecurityError("the exchange was changed on its way: its MIC is wrong")


class SpnegoAcceptor(NegotiateProxy):
    """One log-on over SPNEGO, with what this server offers inside."""

    def __init__(self, makers: dict[str, Callable[[], spnego.ContextProxy]], context_req: ContextReq) -> None:
        super().__init__(context_req=context_req, usage="accept")
        self._makers = makers

    def _preferred_mech_list(self) -> list[GSSMech]:
        return [GSSMech[name] for name in self._makers]

    def _rebuild_context_list(
        self,
        mech_types: list[str] | None = None,
        channel_bindings: object = None,  # noqa: ARG002 - TCP has none
    ) -> list[str]:
        offered = mech_types or []
        self._available_contexts = {}
        for mech in self._preferred_mech_list():
            if any(self._is_same_mech(mech, oid) for oid in offered):
                context = self._makers[mech.name]()
                context._is_wrapped = True
                self._available_contexts[mech] = context
        if not self._available_contexts:
            raise SecurityError("SPNEGO without a mechanism that is known here")
        return super()._rebuild_context_list(mech_types)
