"""Which LDAP servers to ask, how to log in, and how safely."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec

from lanner.directory.ldap.errors import InvalidLdapSettingsError

__all__ = ["LdapServer", "LdapSettings", "parse_url"]

LDAP_PORT = 389
LDAPS_PORT = 636

MAX_PASSWORD_BYTES = 4096
"""A longer file holds something else than a password."""

_HOST = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9._-]+))(?::(?P<port>\d{1,5}))?")
_FORM = "write it as ldaps://dc1.contoso.com,dc2.contoso.com/?DC=contoso,DC=com"


class LdapServer(msgspec.Struct, frozen=True):
    """A server by its name, which its certificate must have, and its port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class LdapSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[ldap]``: all that is needed to ask. ``check`` refuses what would not work or not be safe."""

    servers: tuple[str, ...] = ()
    """``host`` or ``host:port``, in the order in which they are tried."""
    base: str = ""
    """The domain's distinguished name; left out, it is the forest's root domain (MS-MQDSSM 2.2.1)."""
    user: str = ""
    """Who logs in: a distinguished name, or ``user@domain``."""
    password_file: str = ""
    """Its content, without the line's end, is the password. It is read at each login."""
    ca_file: str = ""
    """Certificates, in PEM, that may vouch for the servers; left out, the system's own."""
    gssapi: bool = False
    """Log in with a Kerberos ticket instead of a password."""
    start_tls: bool = False
    """TLS begins after connecting, on the port of plain LDAP."""
    plain: bool = False
    """No TLS: allowed with ``gssapi`` alone, which encrypts by itself."""
    connect_seconds: float = 10.0
    """How long a server may take to accept, shake hands and let us in; then the next is tried."""
    answer_seconds: float = 120.0
    """How long an answer, or a page of one, may take (MS-MQDSSM 3.1.6.15)."""
    page_size: int = 500
    """Entries per page. Servers commonly allow 1000."""

    @property
    def listed(self) -> tuple[LdapServer, ...]:
        """The servers with their ports."""
        port = LDAP_PORT if self.start_tls or self.plain else LDAPS_PORT
        return tuple(_server(text, port) for text in self.servers)

    def check(self) -> None:
        """Raise InvalidLdapSettingsError if nobody can be asked with these, or not safely."""
        if not self.listed:
            raise InvalidLdapSettingsError("no LDAP server is named", hint=_FORM)
        if self.plain and self.start_tls:
            raise InvalidLdapSettingsError("start_tls and plain exclude each other", hint="leave out plain")
        if self.plain and not self.gssapi:
            raise InvalidLdapSettingsError(
                "a password is never sent without TLS", hint="use ldaps://, or set start_tls or gssapi"
            )
        if self.gssapi and (self.user or self.password_file):
            raise InvalidLdapSettingsError(
                "with gssapi the Kerberos ticket says who we are", hint="leave out user and password_file"
            )
        if not self.gssapi and not (self.user and self.password_file):
            raise InvalidLdapSettingsError(
                "there is nobody to log in as", hint="set user and password_file, or gssapi"
            )
        if self.connect_seconds <= 0 or self.answer_seconds <= 0 or not 1 <= self.page_size <= 1000:
            raise InvalidLdapSettingsError(
                "time-outs are above zero, and pages have 1 to 1000 entries", hint="correct them"
            )

    def password(self) -> bytes:
        """The password as it is in its file now."""
        try:
            with Path(self.password_file).open("rb") as file:
                found = file.read(MAX_PASSWORD_BYTES + 1).rstrip(b"\r\n")
        except OSError as error:
            raise InvalidLdapSettingsError(
                f"the password file {self.password_file} cannot be read: {error.strerror or error}",
                hint="check the setting password_file",
            ) from None
        # A login with a name and no password succeeds as nobody at all (RFC 2251 4.2).
        if not found or len(found) > MAX_PASSWORD_BYTES:
            raise InvalidLdapSettingsError(
                f"the password file {self.password_file} is {'too long' if found else 'empty'}",
                hint="write the password into it, and nothing else",
            )
        return found


def parse_url(url: str, **others: Any) -> LdapSettings:
    """Read ``ldaps://host[,host2][:port]/?base``; with ``ldap://``, set ``start_tls`` or ``gssapi``.

    A port at the end is for every host that has none of its own.
    """
    scheme, separator, rest = url.partition("://")
    if not separator or scheme.lower() not in ("ldap", "ldaps"):
        raise InvalidLdapSettingsError(f"{url!r} is no LDAP URL", hint=_FORM)
    hosts, _, path = rest.partition("/")
    names = [name for name in hosts.split(",") if name]
    if names:
        port = _HOST.fullmatch(names[-1])
        if port is not None and port["port"]:
            names = [name if _has_port(name) else f"{name}:{port['port']}" for name in names]
    settings = LdapSettings(
        servers=tuple(names),
        base=unquote(path.removeprefix("?")),
        plain=scheme.lower() == "ldap" and not others.get("start_tls", False),
        **others,
    )
    settings.check()
    return settings


def _has_port(name: str) -> bool:
    found = _HOST.fullmatch(name)
    return found is not None and found["port"] is not None


def _server(text: str, port: int) -> LdapServer:
    found = _HOST.fullmatch(text)
    given = int(found["port"] or port) if found else 0
    if found is None or not 1 <= given <= 0xFFFF:
        raise InvalidLdapSettingsError(f"{text!r} is no LDAP server", hint="write host or host:port")
    return LdapServer(found["six"] or found["name"], given)
