"""LDAP version 3 as bytes: the requests that a directory of queues needs, and every answer (RFC 2251 4).

No state, no clock, no I/O. Searches never follow aliases, and give all values of the attributes asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from lanner.directory.ldap.ber import (
    SET,
    Reader,
    boolean,
    enumerated,
    integer,
    octets,
    sequence,
    tagged,
)

__all__ = [
    "PAGED_RESULTS",
    "SD_FLAGS",
    "START_TLS",
    "AllOf",
    "AnyOf",
    "Attributes",
    "Control",
    "Equal",
    "Filter",
    "Kind",
    "Present",
    "Response",
    "Result",
    "Scope",
    "add",
    "bind_sasl",
    "bind_simple",
    "decode",
    "delete",
    "modify",
    "paging",
    "read_cookie",
    "sd_flags",
    "search",
    "start_tls",
    "unbind",
]

START_TLS = "1.3.6.1.4.1.1466.20037"
PAGED_RESULTS = "1.2.840.113556.1.4.319"
SD_FLAGS = "1.2.840.113556.1.4.801"

_VERSION = 3
_NEVER_DEREFERENCE = 0
_REPLACE = 2
_CONTROLS = 0xA0
_REFERRAL = 0xA3
_SERVER_CREDENTIALS = 0x87

Attributes = Mapping[str, Sequence[bytes]]
"""Names and values; a name without values takes the attribute away in a modification."""


class Scope(IntEnum):
    """How deep a search goes."""

    BASE = 0
    ONE_LEVEL = 1
    SUBTREE = 2


class Kind(IntEnum):
    """The answers, by their tags."""

    BIND = 0x61
    ENTRY = 0x64
    SEARCH_DONE = 0x65
    MODIFY = 0x67
    ADD = 0x69
    DELETE = 0x6B
    REFERENCE = 0x73
    EXTENDED = 0x78


@dataclass(frozen=True, slots=True)
class Equal:
    """An attribute has this value."""

    attribute: str
    value: bytes | str


@dataclass(frozen=True, slots=True)
class Present:
    """An attribute has any value."""

    attribute: str


@dataclass(frozen=True, slots=True)
class AllOf:
    """Every one of these."""

    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one of these."""

    parts: tuple[Filter, ...]


Filter = Equal | Present | AllOf | AnyOf


@dataclass(frozen=True, slots=True)
class Control:
    """What else a server shall heed."""

    kind: str
    value: bytes
    critical: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """How an operation ended."""

    code: int
    matched: str = ""
    diagnostics: str = ""


@dataclass(frozen=True, slots=True)
class Response:
    """An answer: a result, or an entry of a search."""

    message_id: int
    kind: int
    result: Result = Result(0)
    credentials: bytes = b""
    dn: str = ""
    attributes: Mapping[str, tuple[bytes, ...]] = field(default_factory=dict)
    controls: Mapping[str, bytes] = field(default_factory=dict)


def bind_simple(message_id: int, name: str, password: bytes) -> bytes:
    """Log in with a name and a password."""
    return _message(message_id, 0x60, integer(_VERSION), octets(name), octets(password, 0x80))


def bind_sasl(message_id: int, mechanism: str, credentials: bytes) -> bytes:
    """One step of a login by SASL."""
    step = sequence(octets(mechanism), octets(credentials), tag=0xA3)
    return _message(message_id, 0x60, integer(_VERSION), octets(""), step)


def unbind(message_id: int) -> bytes:
    """Say good-bye."""
    return sequence(integer(message_id), tagged(0x42, b""))


def start_tls(message_id: int) -> bytes:
    """Ask for TLS on this connection."""
    return _message(message_id, 0x77, octets(START_TLS, 0x80))


def search(
    message_id: int,
    base: str,
    scope: Scope,
    wanted: Filter,
    attributes: Sequence[str],
    *,
    time_limit: int = 0,
    controls: Sequence[Control] = (),
) -> bytes:
    """Look for entries."""
    return _message(
        message_id,
        0x63,
        octets(base),
        enumerated(scope),
        enumerated(_NEVER_DEREFERENCE),
        integer(0),
        integer(time_limit),
        boolean(False),
        _filter(wanted),
        sequence(*map(octets, attributes)),
        controls=controls,
    )


def add(message_id: int, dn: str, attributes: Attributes) -> bytes:
    """Make an entry."""
    listed = (sequence(octets(name), _values(values)) for name, values in attributes.items())
    return _message(message_id, 0x68, octets(dn), sequence(*listed))


def modify(message_id: int, dn: str, attributes: Attributes) -> bytes:
    """Replace attributes of an entry (MS-MQDSSM 3.1.6.16)."""
    changes = (
        sequence(enumerated(_REPLACE), sequence(octets(name), _values(values)))
        for name, values in attributes.items()
    )
    return _message(message_id, 0x66, octets(dn), sequence(*changes))


def delete(message_id: int, dn: str) -> bytes:
    """Take an entry away."""
    return sequence(integer(message_id), octets(dn, 0x4A))


def paging(size: int, cookie: bytes) -> Control:
    """Ask for a page of a search's entries (RFC 2696)."""
    return Control(PAGED_RESULTS, sequence(integer(size), octets(cookie)), critical=True)


def read_cookie(value: bytes) -> bytes:
    """The cookie for the next page; none means that there is none."""
    content = Reader(value).expect(0x30)
    content.integer()
    return content.octets()


def sd_flags(flags: int) -> Control:
    """Say which parts of security descriptors are wanted; all of them only administrators may read."""
    return Control(SD_FLAGS, sequence(integer(flags)))


def decode(data: bytes) -> Response:
    """Read one whole message. Raises BerError."""
    message = Reader(data).expect(0x30)
    message_id = message.integer()
    kind, content = message.next()
    controls = _read_controls(message) if message.peek() == _CONTROLS else {}
    if kind == Kind.ENTRY:
        dn = content.text()
        return Response(message_id, kind, dn=dn, attributes=_read_attributes(content), controls=controls)
    if kind == Kind.REFERENCE:
        return Response(message_id, kind)
    result = Result(content.integer(0x0A), content.text(), content.text())
    if content.peek() == _REFERRAL:
        content.next()
    credentials = content.octets(_SERVER_CREDENTIALS) if content.peek() == _SERVER_CREDENTIALS else b""
    return Response(message_id, kind, result, credentials, controls=controls)


def _message(message_id: int, tag: int, *parts: bytes, controls: Sequence[Control] = ()) -> bytes:
    listed = (sequence(octets(one.kind), boolean(one.critical), octets(one.value)) for one in controls)
    after = sequence(*listed, tag=_CONTROLS) if controls else b""
    return sequence(integer(message_id), sequence(*parts, tag=tag), after)


def _values(values: Sequence[bytes]) -> bytes:
    return sequence(*map(octets, values), tag=SET)


def _filter(wanted: Filter) -> bytes:
    match wanted:
        case Equal(attribute, value):
            return sequence(octets(attribute), octets(value), tag=0xA3)
        case Present(attribute):
            return octets(attribute, 0x87)
        case AllOf(parts):
            return sequence(*map(_filter, parts), tag=0xA0)
        case AnyOf(parts):
            return sequence(*map(_filter, parts), tag=0xA1)


def _read_attributes(content: Reader) -> dict[str, tuple[bytes, ...]]:
    attributes: dict[str, tuple[bytes, ...]] = {}
    listed = content.expect(0x30)
    while not listed.at_end:
        one = listed.expect(0x30)
        name = one.text()
        values = one.expect(SET)
        found = []
        while not values.at_end:
            found.append(values.octets())
        attributes[name] = tuple(found)
    return attributes


def _read_controls(message: Reader) -> dict[str, bytes]:
    controls: dict[str, bytes] = {}
    listed = message.expect(_CONTROLS)
    while not listed.at_end:
        one = listed.expect(0x30)
        kind = one.text()
        if one.peek() == 0x01:
            one.next()
        controls[kind] = b"" if one.at_end else one.octets()
    return controls
