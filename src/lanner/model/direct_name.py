"""Direct format names: an address and a queue there, without a directory (MS-MQMQ 2.1.2)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import unquote

from lanner.model.errors import InvalidNameError
from lanner.model.format_name_kinds import MAX_PORT, SingleQueueName
from lanner.model.names import (
    MAX_COMPUTER_LENGTH,
    QueueKind,
    QueuePart,
    QueueSuffix,
    canonical_host,
    check_computer,
    check_part,
    check_queue,
    is_address,
    machine_queue_suffix,
    quote,
    read_queue_part,
)

__all__ = ["BAD_ESCAPE", "DirectName", "DirectProtocol", "read_direct_name"]


class DirectProtocol(StrEnum):
    """How to reach the computer that a direct name names."""

    TCP = "TCP"
    OS = "OS"
    HTTP = "HTTP"
    HTTPS = "HTTPS"
    IPX = "IPX"

    @property
    def is_http(self) -> bool:
        """Whether names of this protocol are URLs."""
        return self in _DEFAULT_PORTS


_DEFAULT_PORTS = {DirectProtocol.HTTP: 80, DirectProtocol.HTTPS: 443}

_BACKSLASH = "\\"
_VIRTUAL_DIRECTORY = "msmq"
_VIRTUAL_DIRECTORY_AND_SEPARATOR = re.compile(rf"{_VIRTUAL_DIRECTORY}[/\\]", re.IGNORECASE)
_HTTP_SEPARATOR = re.compile(r"[/\\]")
_PORT = re.compile(r"[0-9]{1,5}")
# The characters of a URL's host (RFC 3986) that need no escape and mean nothing else in a name.
_ILLEGAL_IN_HTTP_HOST = re.compile(r"[^A-Za-z0-9._~!$&'()*+-]")
_IPX_ADDRESS = re.compile(r"[0-9A-Fa-f]{8}:[0-9A-Fa-f]{12}")

# A percent sign that escapes nothing.
BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_QUERY_OR_FRAGMENT = re.compile(r"[?#]")
# Of the characters that a queue's name can have, those that a URL reads as something else.
_HTTP_ESCAPES = str.maketrans({character: f"%{ord(character):02X}" for character in "%/?#"})


@dataclass(frozen=True, slots=True, eq=False)
class DirectName(SingleQueueName):
    """A queue at an address (MS-MQMQ 2.1.2).

    ``queue`` is empty for the computer's own journal and dead-letter queues: there the suffix says which.
    ``port`` is for HTTP and HTTPS alone, and None where it is the protocol's default.
    """

    protocol: DirectProtocol
    host: str
    queue: str = ""
    is_private: bool = False
    port: int | None = None

    def __post_init__(self) -> None:
        _check_host(self.protocol, self.host)
        _check_port(self.protocol, self.port)
        self._check_queue()
        # One spelling for one address, or equal names would differ.
        object.__setattr__(self, "host", canonical_host(self.host))
        if self.port == _DEFAULT_PORTS.get(self.protocol):
            object.__setattr__(self, "port", None)

    def _check_queue(self) -> None:
        if self.queue:
            check_queue(self.kind, self.queue)
            self._check_suffix(QueueSuffix.JOURNAL)
            return
        if self.is_private or not self.suffix.is_read_only:
            raise InvalidNameError("the queue name is empty")
        self._check_suffix(self.suffix)

    @property
    def kind(self) -> QueueKind:
        """Whether this is a public queue, a private one, or one of the computer's own."""
        if not self.queue:
            return QueueKind.SYSTEM
        return QueueKind.PRIVATE if self.is_private else QueueKind.PUBLIC

    @property
    def effective_port(self) -> int | None:
        """The port to connect to over HTTP or HTTPS; None for the protocols whose names have no port."""
        return self.port or _DEFAULT_PORTS.get(self.protocol)

    def __str__(self) -> str:
        if self.protocol.is_http:
            address = f"//{self._authority()}/{_VIRTUAL_DIRECTORY}"
            return f"DIRECT={self.protocol}:{address}/{self._queue_text('/', _escape)}"
        return f"DIRECT={self.protocol}:{self.host}\\{self._queue_text(_BACKSLASH, str)}"

    def _queue_text(self, separator: str, encode: Callable[[str], str]) -> str:
        if self.kind is QueueKind.SYSTEM:
            return f"SYSTEM${self._suffix_text()}"
        marker = f"private${separator}" if self.is_private else ""
        return f"{marker}{encode(self.queue)}{self._suffix_text(encode)}"

    def _authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port is None else f"{host}:{self.port}"


def _check_host(protocol: DirectProtocol, host: str) -> None:
    if protocol is DirectProtocol.IPX:
        if not _IPX_ADDRESS.fullmatch(host):
            raise InvalidNameError(
                f"the IPX address {quote(host)} is not 8 hexadecimal digits, ':' and 12 hexadecimal digits"
            )
    elif protocol.is_http:
        _check_http_host(host)
    else:
        check_computer(host)
        if protocol is DirectProtocol.TCP and not is_address(host):
            raise InvalidNameError(f"after TCP: an IP address must stand, not {quote(host)}")


def _check_http_host(host: str) -> None:
    # A zone ("%eth0") means something on one computer alone, and a URL has no plain way to write it.
    if ":" in host and "%" not in host and is_address(host):
        return
    check_part("host name", host, MAX_COMPUTER_LENGTH, _ILLEGAL_IN_HTTP_HOST)
    if host == ".":
        raise InvalidNameError("the host name '.' means the local computer in path names, not in URLs")


def _check_port(protocol: DirectProtocol, port: int | None) -> None:
    if port is None:
        return
    if not protocol.is_http:
        raise InvalidNameError(f"a name with {protocol} has no port")
    if not 1 <= port <= MAX_PORT:
        raise InvalidNameError(f"the port {port} is not between 1 and {MAX_PORT}")


def _escape(text: str) -> str:
    return text.translate(_HTTP_ESCAPES)


def read_direct_name(text: str) -> DirectName:
    """Read what follows ``DIRECT=``."""
    word, colon, rest = text.partition(":")
    try:
        protocol = DirectProtocol(word.upper())
    except ValueError:
        raise InvalidNameError(_no_protocol(word if colon else "")) from None
    if protocol.is_http:
        return _read_http_name(protocol, rest)
    host, backslash, path = rest.partition(_BACKSLASH)
    if not backslash:
        raise InvalidNameError(f"there is no backslash and queue name after the address {quote(host)}")
    part = read_queue_part([segment.split(";") for segment in path.split(_BACKSLASH)])
    return _direct_name(protocol, host, None, part)


def _no_protocol(word: str) -> str:
    known = ", ".join(f"{protocol}:" for protocol in DirectProtocol)
    found = f"{quote(word + ':')} is none of them" if word else "there is none"
    return f"after DIRECT= a protocol must stand, one of {known}; {found}"


def _direct_name(protocol: DirectProtocol, host: str, port: int | None, part: QueuePart) -> DirectName:
    queue, suffix = part.queue, part.suffix
    if part.kind is QueueKind.SYSTEM:
        suffix = _read_machine_queue(part)
        queue = ""
    elif not queue:
        # The value would take "\\;JOURNAL" for the computer's own journal.
        raise InvalidNameError("the queue name is empty")
    return DirectName(
        protocol,
        host,
        queue,
        is_private=part.kind is QueueKind.PRIVATE,
        port=port,
        subqueue=part.subqueue,
        suffix=suffix,
    )


def _read_machine_queue(part: QueuePart) -> QueueSuffix:
    suffix = machine_queue_suffix(part.queue)
    if suffix is QueueSuffix.NONE:
        raise InvalidNameError(
            f"after system$; JOURNAL, DEADLETTER or DEADXACT must stand, not {quote(part.queue)}"
        )
    if part.suffix is not QueueSuffix.NONE:
        raise InvalidNameError(f"the computer's {suffix.name} has no journal of its own")
    return suffix


def _read_http_name(protocol: DirectProtocol, text: str) -> DirectName:
    if not text.startswith("//"):
        raise InvalidNameError(f"after {protocol}: two slashes and a host must stand")
    authority, _, path = text[2:].partition("/")
    host, port = _read_authority(authority)
    directory = _VIRTUAL_DIRECTORY_AND_SEPARATOR.match(path)
    if not directory:
        raise InvalidNameError(
            f"after the host {quote(authority)} '/{_VIRTUAL_DIRECTORY}/' must stand, not {quote('/' + path)}"
        )
    path = path[directory.end() :]
    if found := _QUERY_OR_FRAGMENT.search(path):
        raise InvalidNameError(f"the queue's path {quote(path)} has {found[0]!r}: a name ends before that")
    # What an escape stands for is never a separator, so it is resolved after the split.
    segments = [[_unescape(piece) for piece in segment.split(";")] for segment in _HTTP_SEPARATOR.split(path)]
    return _direct_name(protocol, host, port, read_queue_part(segments))


def _read_authority(text: str) -> tuple[str, int | None]:
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        if not bracket or rest[:1] not in ("", ":"):
            raise InvalidNameError(f"the host {quote(text)} is not an IPv6 address in brackets and a port")
        if ":" not in host:
            raise InvalidNameError(f"the brackets in {quote(text)} do not hold an IPv6 address")
        port = rest[1:]
    else:
        host, _, port = text.partition(":")
    # MS-MQMQ 2.1.2 lets the digits after the colon be missing, as RFC 3986 does.
    if port and not _PORT.fullmatch(port):
        raise InvalidNameError(f"the port {quote(port)} is not a number between 1 and {MAX_PORT}")
    return host, int(port) if port else None


def _unescape(text: str) -> str:
    if found := BAD_ESCAPE.search(text):
        raise InvalidNameError(
            f"{quote(text)} has '%' at position {found.start() + 1} without two hexadecimal digits after it"
        )
    # What is no UTF-8 becomes a character that no part of a name allows.
    return unquote(text, errors="replace")
