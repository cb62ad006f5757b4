"""Log-ons and the protection of PDUs, without an association."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest
import spnego
from hypothesis import given, settings
from hypothesis import strategies as st
from spnego import ContextReq
from tests.protocols.rpc.test_association import Users

from lanner.protocols.rpc import security as module
from lanner.protocols.rpc.credentials import Credentials, Mechanism
from lanner.protocols.rpc.errors import SecurityError
from lanner.protocols.rpc.interface import AuthLevel
from lanner.protocols.rpc.logons import Logons
from lanner.protocols.rpc.ntlm import NtlmAcceptor
from lanner.protocols.rpc.pdu import Segments
from lanner.protocols.rpc.security import Acceptor, AuthType, SecurityContext, initiate, protection_of

KINDS = {Mechanism.NTLM: AuthType.NTLM, Mechanism.SPNEGO: AuthType.SPNEGO}
PARTS = Segments(b"h" * 24, b"body" * 8, b"t" * 8, bytes(16))


def pair(
    level: AuthLevel = AuthLevel.PRIVACY, mechanism: Mechanism = Mechanism.NTLM, password: str = "secret"
) -> tuple[SecurityContext, SecurityContext]:
    """A client and a server that know each other."""
    client = initiate(Credentials("operator", password, mechanism), level, "lanner")
    server = Acceptor(Logons(Users(), lambda: 0.0), "lanner").begin(KINDS[mechanism], level, 1, "192.0.2.1")
    token = client.step(None)
    while token:
        answer = server.step(token)
        token = client.step(answer) if answer else b""
    assert client.is_complete
    assert server.is_complete
    return client, server


@pytest.mark.parametrize(("asked", "applied"), [(0, 2), (2, 2), (3, 5), (4, 5), (5, 5), (6, 6)])
def test_levels(asked: int, applied: int) -> None:
    assert protection_of(asked) == applied


@pytest.mark.parametrize("level", [1, 7, 255])
def test_levels_that_are_none(level: int) -> None:
    with pytest.raises(SecurityError):
        protection_of(level)


@pytest.mark.parametrize("mechanism", KINDS)
@pytest.mark.parametrize("level", [AuthLevel.INTEGRITY, AuthLevel.PRIVACY])
def test_what_goes_in_comes_out(level: AuthLevel, mechanism: Mechanism) -> None:
    client, server = pair(level, mechanism)
    for sender, receiver in ((client, server), (server, client), (server, client), (client, server)):
        data = sender.protect(PARTS)
        sent = Segments(data[:24], data[24:56], data[56:64], data[64:])
        assert (sent.body != PARTS.body) == (level == AuthLevel.PRIVACY)
        assert receiver.unprotect(sent) == PARTS.body


@pytest.mark.parametrize("level", [AuthLevel.INTEGRITY, AuthLevel.PRIVACY])
def test_the_same_octets_as_pyspnego(level: AuthLevel, monkeypatch: pytest.MonkeyPatch) -> None:
    """The short way of NTLM and the library's are one on the wire, whoever is at the other end."""
    for slow in (0, 1):
        contexts = pair(level)
        contexts[slow]._ntlm = None
        client, server = contexts
        for _ in range(3):
            for sender, receiver in ((client, server), (server, client)):
                data = sender.protect(PARTS)
                sent = Segments(data[:24], data[24:56], data[56:64], data[64:])
                assert receiver.unprotect(sent) == PARTS.body


@pytest.mark.parametrize("mechanism", KINDS)
def test_a_wrong_password(mechanism: Mechanism) -> None:
    with pytest.raises(SecurityError, match="wrong password"):
        pair(password="wrong", mechanism=mechanism)


def test_who_did_not_agree_to_sign_is_refused_at_a_level_that_signs() -> None:
    """Without the flag, signatures are a constant that anybody can write."""
    client = initiate(Credentials("operator", "secret", Mechanism.NTLM), AuthLevel.CONNECT, "lanner")
    server = Acceptor(Logons(Users(), lambda: 0.0), "lanner").begin(AuthType.NTLM, 5, 1, "192.0.2.1")
    token = client.step(server.step(client.step(None)))
    with pytest.raises(SecurityError, match="does not sign"):
        server.step(token)


def test_who_did_not_agree_to_seal_is_refused_at_a_level_that_seals() -> None:
    client = initiate(Credentials("operator", "secret", Mechanism.NTLM), AuthLevel.INTEGRITY, "lanner")
    server = Acceptor(Logons(Users(), lambda: 0.0), "lanner").begin(AuthType.NTLM, 6, 1, "192.0.2.1")
    token = client.step(server.step(client.step(None)))
    with pytest.raises(SecurityError, match="does not seal"):
        server.step(token)


def test_a_log_on_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_LEGS", 1)
    client = initiate(Credentials("operator", "secret", Mechanism.NTLM), AuthLevel.CONNECT, "lanner")
    server = Acceptor(Logons(Users(), lambda: 0.0), "lanner").begin(AuthType.NTLM, 6, 1, "192.0.2.1")
    server.step(client.step(None))
    with pytest.raises(SecurityError, match="legs"):
        server.step(b"x")


def test_unknown_providers() -> None:
    acceptor = Acceptor(Logons(Users(), lambda: 0.0), "lanner")
    assert [acceptor.recognizes(kind) for kind in (0, 9, 10, 16, 0x44, 0xFF)] == [
        False,
        True,
        True,
        False,
        False,
        False,
    ]
    with pytest.raises(SecurityError, match="unknown"):
        acceptor.begin(0x44, 6, 1, "192.0.2.1")


# NTLM itself.


def exchange(change: Callable[[bytes], bytes] = bytes, environment: str = "3") -> NtlmAcceptor:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LM_COMPAT_LEVEL", environment)
        client = spnego.client("operator", "secret", protocol="ntlm")
    server = NtlmAcceptor("LANNER", Users().nt_hash, ContextReq.default)
    challenge = server.step(client.step())
    token = client.step(challenge)
    assert token is not None
    assert server.step(change(token)) is None
    return server


def test_ntlm_of_the_library_as_the_client() -> None:
    server = exchange()
    assert server.complete
    assert server.client_principal == "operator"


def test_ntlm_version_1_is_not_taken() -> None:
    with pytest.raises(SecurityError, match="NTLMv1"):
        exchange(environment="2")


def test_weak_flags_are_refused() -> None:
    client = spnego.client("operator", "secret", protocol="ntlm")
    token = bytearray(client.step() or b"")
    token[14] &= ~0x08  # extended session security
    with pytest.raises(SecurityError, match="too weak"):
        NtlmAcceptor("LANNER", Users().nt_hash, ContextReq.default).step(bytes(token))


def test_the_mic_is_checked() -> None:
    def change(token: bytes) -> bytes:
        return token[:72] + bytes([token[72] ^ 1]) + token[73:]

    with pytest.raises(SecurityError, match="MIC"):
        exchange(change)


def test_the_proof_is_over_the_octets_as_they_came() -> None:
    """A reserved field that pyspnego would write as zero; a proof over what it read would not see this."""

    def change(token: bytes) -> bytes:
        at = int.from_bytes(token[24:28], "little") + 16 + 2
        return token[:at] + b"\1" + token[at + 1 :]

    with pytest.raises(SecurityError, match="wrong password"):
        exchange(change)


def test_nobody_logs_on_without_a_name() -> None:
    def change(token: bytes) -> bytes:
        return token[:36] + bytes(4) + token[40:]

    with pytest.raises(SecurityError, match="anonymous"):
        exchange(change)


@given(st.binary(max_size=300), st.booleans(), st.sampled_from(list(KINDS)))
@settings(max_examples=300, deadline=None)
def test_any_token_gives_a_security_error_or_goes_on(
    token: bytes, second: bool, mechanism: Mechanism
) -> None:
    server = Acceptor(Logons(Users(), lambda: 0.0), "lanner").begin(KINDS[mechanism], 6, 1, "192.0.2.1")
    if second:
        client = initiate(Credentials("operator", "secret", mechanism), AuthLevel.PRIVACY, "lanner")
        server.step(client.step(None))
    with contextlib.suppress(SecurityError):
        server.step(token)
    assert not server.is_complete
