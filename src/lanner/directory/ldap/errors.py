"""What an LDAP server's answer means to whoever asked (MS-MQDSSM 2.2.6)."""

from __future__ import annotations

from enum import IntEnum
from typing import NoReturn

from lanner.directory.base import (
    DirectoryError,
    DirectoryOffline,
    DirectoryOperationResult,
    InvalidDirectoryError,
    ObjectAlreadyExists,
    ObjectNotFound,
    ReadOnlyDirectory,
)
from lanner.directory.ldap.wire import Result

__all__ = [
    "AttributeNotFound",
    "InvalidLdapSettingsError",
    "LoginRefusedError",
    "MalformedEntryError",
    "ResultCode",
    "UntrustedServerError",
    "refuse",
]

_MAX_DIAGNOSTICS = 200
"""How much of a server's own words an error repeats."""


class ResultCode(IntEnum):
    """The result codes of LDAP that mean something of their own here (RFC 2251 4.1.10)."""

    SUCCESS = 0
    STRONGER_AUTH_REQUIRED = 8
    SASL_BIND_IN_PROGRESS = 14
    NO_SUCH_ATTRIBUTE = 16
    NO_SUCH_OBJECT = 32
    INVALID_CREDENTIALS = 49
    INSUFFICIENT_ACCESS_RIGHTS = 50
    BUSY = 51
    UNAVAILABLE = 52
    NOT_ALLOWED_ON_NON_LEAF = 66
    ENTRY_ALREADY_EXISTS = 68


class InvalidLdapSettingsError(DirectoryError):
    """Settings with which no server can be asked, or not safely."""


class LoginRefusedError(DirectoryError):
    """A server does not accept who we say we are."""


class UntrustedServerError(DirectoryOffline):
    """A server cannot show that it is the one meant."""


class AttributeNotFound(DirectoryError):  # noqa: N818  # the specification's own name
    """The object has no such attribute."""

    result = DirectoryOperationResult.ATTRIBUTE_NOT_FOUND


class MalformedEntryError(InvalidDirectoryError):
    """An entry with a value that cannot be understood: which entry, which attribute, what is wrong."""

    def __init__(self, dn: str, attribute: str, what: str) -> None:
        super().__init__(f"{dn}: {attribute}: {what}", hint="correct the entry in the directory")
        self.dn = dn
        self.attribute = attribute


_MEANINGS: dict[int, tuple[type[DirectoryError], str]] = {
    ResultCode.NO_SUCH_OBJECT: (ObjectNotFound, "it is not in the directory"),
    ResultCode.NO_SUCH_ATTRIBUTE: (AttributeNotFound, "it has no such attribute"),
    ResultCode.ENTRY_ALREADY_EXISTS: (ObjectAlreadyExists, "it is in the directory already"),
    ResultCode.INVALID_CREDENTIALS: (LoginRefusedError, "the user or the password is wrong"),
    ResultCode.STRONGER_AUTH_REQUIRED: (LoginRefusedError, "the server wants a stronger login"),
    ResultCode.INSUFFICIENT_ACCESS_RIGHTS: (ReadOnlyDirectory, "the server does not allow us to"),
    ResultCode.BUSY: (DirectoryOffline, "the server is busy"),
    ResultCode.UNAVAILABLE: (DirectoryOffline, "the server is going down"),
    ResultCode.NOT_ALLOWED_ON_NON_LEAF: (DirectoryError, "there are other objects under it"),
}


def refuse(what: str, result: Result) -> NoReturn:
    """Raise what a result other than success stands for; ``what`` was tried."""
    kind, meaning = _MEANINGS.get(result.code, (DirectoryError, f"LDAP result {result.code}"))
    words = " ".join(result.diagnostics.split())[:_MAX_DIAGNOSTICS]
    raise kind(f"{what}: {meaning}", hint=f"the server says: {words}" if words else "")
