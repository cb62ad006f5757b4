"""What Kerberos says when a log-on fails, in words for whoever has to do something about it.

MIT Kerberos tells its reason as the minor status of a GSS-API error, or as an error of its own where a
password is turned into a ticket. Both have the same numbers: those of the protocol are RFC 4120 7.5.9's,
counted from BASE.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
from enum import IntEnum
from typing import Any

from lanner.protocols.rpc.errors import SecurityError

__all__ = ["KerberosCode", "explained", "has_kerberos", "keytab_problem", "tell_failures_at_once"]

BASE = -1765328384
"""ERROR_TABLE_BASE_krb5."""

NO_CREDENTIALS = 7 << 16
"""GSS_S_NO_CRED (RFC 2744 3.9.1)."""


class KerberosCode(IntEnum):
    """The reasons that somebody can do something about."""

    CLIENT_UNKNOWN = BASE + 6
    """KDC_ERR_C_PRINCIPAL_UNKNOWN."""
    SERVER_UNKNOWN = BASE + 7
    """KDC_ERR_S_PRINCIPAL_UNKNOWN."""
    CLIENT_REVOKED = BASE + 18
    """KDC_ERR_CLIENT_REVOKED."""
    PASSWORD_EXPIRED = BASE + 23
    """KDC_ERR_KEY_EXPIRED."""
    WRONG_PASSWORD = BASE + 24
    """KDC_ERR_PREAUTH_FAILED."""
    TICKET_EXPIRED = BASE + 32
    """KRB_AP_ERR_TKT_EXPIRED."""
    CLOCK_SKEW = BASE + 37
    """KRB_AP_ERR_SKEW."""
    CACHE_WITHOUT_TICKET = BASE + 141
    """KRB5_CC_NOTFOUND."""
    REALM_UNKNOWN = BASE + 154
    """KRB5_REALM_UNKNOWN."""
    KDC_UNREACHABLE = BASE + 156
    """KRB5_KDC_UNREACH."""
    NO_CACHE = BASE + 195
    """KRB5_FCC_NOFILE."""
    REALM_WITHOUT_SERVER = BASE + 220
    """KRB5_REALM_CANT_RESOLVE."""


_GET_A_TICKET = "get one with kinit, or give user and password"
_WHICH_REALM = "is the realm right, and in capitals? krb5.conf says who serves it"

_WORDS: dict[int, tuple[str, str]] = {
    KerberosCode.CLIENT_UNKNOWN: (
        "Kerberos does not know the user",
        "is it user@REALM, and the right realm?",
    ),
    KerberosCode.SERVER_UNKNOWN: (
        "Kerberos does not know the server by this name",
        "connect to the name that is in its principal, or give that name with --target",
    ),
    KerberosCode.CLIENT_REVOKED: ("the user is locked or disabled", ""),
    KerberosCode.PASSWORD_EXPIRED: ("the password has expired", "set another one with kpasswd"),
    KerberosCode.WRONG_PASSWORD: ("Kerberos does not take the password", "is it the right one?"),
    KerberosCode.TICKET_EXPIRED: ("the Kerberos ticket has expired", "get a new one with kinit"),
    KerberosCode.CLOCK_SKEW: (
        "the clocks differ by more than Kerberos allows",
        "set the clocks; 5 minutes are allowed",
    ),
    KerberosCode.CACHE_WITHOUT_TICKET: ("there is no Kerberos ticket", _GET_A_TICKET),
    KerberosCode.NO_CACHE: ("there is no Kerberos ticket", _GET_A_TICKET),
    KerberosCode.REALM_UNKNOWN: ("Kerberos does not know the realm", _WHICH_REALM),
    KerberosCode.REALM_WITHOUT_SERVER: ("Kerberos does not know the realm", _WHICH_REALM),
    KerberosCode.KDC_UNREACHABLE: (
        "no Kerberos server can be reached",
        "does krb5.conf name the right one, and is it up?",
    ),
}

_MINOR = re.compile(r"Minor \(\d+\): (.*?)(?:, Context: .*)?$", re.DOTALL)
_TRAILING_CODE = re.compile(r" -?\d+$")


def has_kerberos() -> bool:
    """Whether the extra is installed."""
    return importlib.util.find_spec("gssapi") is not None and importlib.util.find_spec("krb5") is not None


def explained(error: BaseException) -> SecurityError | None:
    """What a failure of Kerberos means; nothing for a failure of something else."""
    told = getattr(error, "base_error", None) or error  # pyspnego keeps what it wraps
    code = _code(told)
    if code is None:
        return None
    said = _said(told)
    if code not in _WORDS and getattr(told, "maj_code", 0) == NO_CREDENTIALS:
        code = KerberosCode.CACHE_WITHOUT_TICKET
    if code not in _WORDS:
        return SecurityError(f"the log-on with Kerberos failed: {said}")
    words, hint = _WORDS[code]
    return SecurityError(f"{words}: {said}", hint=hint)


def keytab_problem() -> str:
    """Why tickets for this machine could not be read; nothing if they can."""
    gssapi = _gssapi()
    try:
        gssapi.Credentials(usage="accept", mechs=[gssapi.MechType.kerberos])
    except gssapi.exceptions.GSSError as error:
        return _said(error)
    return ""


def tell_failures_at_once() -> None:
    """Let GSS-API raise where a ticket is not taken.

    It holds such errors back until its context is used again, and pyspnego's next question to the context
    fails in another way: the log would not have the reason. The token that it would give instead is for
    protocols that have room for it, which a bind_nak has not.
    """
    _gssapi().SecurityContext.__DEFER_STEP_ERRORS__ = False


def _gssapi() -> Any:
    """The library, which is there with the extra alone."""
    return importlib.import_module("gssapi")


def _code(error: BaseException) -> int | None:
    """The number of the reason. GSS-API has it as 32 bits without a sign."""
    number = getattr(error, "min_code", None)
    if number is None:
        number = getattr(error, "err_code", None)  # Krb5Error's, which is no GSS-API error
    if not isinstance(number, int):
        return None
    return number - (1 << 32) if number >= 1 << 31 else number


def _said(error: BaseException) -> str:
    """The library's own sentence, which names the realm, the principal or the cache."""
    text = str(error)
    found = _MINOR.search(text)
    return found[1] if found else _TRAILING_CODE.sub("", text)
