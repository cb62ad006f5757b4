"""What Kerberos says, in words; without Kerberos."""

from __future__ import annotations

from typing import Any

import pytest
from tests.protocols.rpc.echo import ECHO

from lanner.protocols.rpc.client_association import ClientAssociation
from lanner.protocols.rpc.errors import BindRefusedError
from lanner.protocols.rpc.interface import AuthLevel
from lanner.protocols.rpc.kerberos import NO_CREDENTIALS, KerberosCode, explained
from lanner.protocols.rpc.pdu import BindNak, RejectReason
from lanner.protocols.rpc.security import AuthType, SecurityContext


class GssError(Exception):
    """As the package gssapi raises it."""

    def __init__(self, minor: int, words: str, major: int = 13 << 16) -> None:
        super().__init__(f"Major ({major}): Unspecified GSS failure., Minor ({minor % (1 << 32)}): {words}")
        self.maj_code, self.min_code = major, minor % (1 << 32)


class WrappedError(Exception):
    """As pyspnego wraps it."""

    def __init__(self, base: GssError) -> None:
        super().__init__(f"SpnegoError (1): {base}, Context: Processing security token")
        self.base_error = base


class Krb5Error(Exception):
    """As the package krb5 raises it."""

    def __init__(self, code: int, words: str) -> None:
        super().__init__(f"{words} {code}")
        self.err_code = code


@pytest.mark.parametrize("code", KerberosCode)
def test_every_reason_is_told_with_the_librarys_sentence(code: KerberosCode) -> None:
    for error in (
        GssError(code, "a sentence"),
        WrappedError(GssError(code, "a sentence")),
        Krb5Error(code, "a sentence"),
    ):
        told = explained(error)
        assert told is not None
        assert told.message.endswith(": a sentence")
        assert "GSS" not in str(told)
        assert str(int(code)) not in str(told)


def test_the_numbers_are_mits() -> None:
    # As /usr/include/krb5/krb5.h has them.
    assert (KerberosCode.CLOCK_SKEW, KerberosCode.TICKET_EXPIRED) == (-1765328347, -1765328352)
    assert (KerberosCode.SERVER_UNKNOWN, KerberosCode.CLIENT_UNKNOWN) == (-1765328377, -1765328378)
    assert (KerberosCode.REALM_UNKNOWN, KerberosCode.KDC_UNREACHABLE) == (-1765328230, -1765328228)
    assert (KerberosCode.NO_CACHE, KerberosCode.CACHE_WITHOUT_TICKET) == (-1765328189, -1765328243)
    assert (KerberosCode.WRONG_PASSWORD, KerberosCode.REALM_WITHOUT_SERVER) == (-1765328360, -1765328164)


def test_no_credentials_are_no_ticket_whatever_the_reason() -> None:
    told = explained(GssError(1, "something else", NO_CREDENTIALS))
    assert str(told).startswith("there is no Kerberos ticket: something else (get one with kinit")


def test_another_reason_is_told_as_it_is() -> None:
    assert str(explained(GssError(1, "odd"))) == "the log-on with Kerberos failed: odd"


def test_other_errors_are_not_kerberos() -> None:
    assert explained(ValueError("x")) is None


class Refusing:
    """A proxy as GSS-API's is after it refused a ticket."""

    negotiated_protocol = "kerberos"

    @property
    def client_principal(self) -> str:
        raise AttributeError("Cannot read initiator_name from a security context")


def context(proxy: Any) -> SecurityContext:
    return SecurityContext(proxy, AuthType.KERBEROS, AuthLevel.PRIVACY, 1)


def test_who_was_refused_may_have_no_name() -> None:
    assert context(Refusing()).principal == ""


@pytest.mark.parametrize(
    ("reason", "hint"),
    [
        (RejectReason.INVALID_CHECKSUM, "its log says why"),
        (RejectReason.AUTHENTICATION_TYPE_NOT_RECOGNIZED, "not offered there"),
    ],
)
def test_a_server_that_refuses_is_told_with_what_to_look_at(reason: RejectReason, hint: str) -> None:
    association = ClientAssociation(ECHO, context(Refusing()))
    with pytest.raises(BindRefusedError, match=hint):
        association._refused(BindNak(call_id=1, reason=reason), b"")
