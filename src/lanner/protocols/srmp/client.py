"""One connection to another machine, over which messages are posted (MC-MQSRM 3.1.7.2.5, 3.1.7.9).

Requests are pipelined: several are on their way before the first is answered, and answers come in the order
of the requests (RFC 9112 9.3.2). One connection keeps the order of the queue, and a receiver that commits
several messages at once can do so.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol, cast

import httptools

from lanner.model.errors import LannerError
from lanner.model.transfer import ConnectionStatus

__all__ = ["ConnectFailedError", "Connector", "Link", "LinkOwner", "Reply", "Target", "connect"]

CONNECT_SECONDS = 20.0
"""How long a connection may take to be made, TLS and all."""

MAX_REPLY_BYTES = 64 * 1024
"""The body of an answer: nobody reads more of it than a reason."""

REASON_LENGTH = 300
"""Characters of an answer's body that are kept as the reason."""

_ERRORS = {
    errno.ECONNREFUSED: ConnectionStatus.CONNECTION_REFUSED,
    errno.EMFILE: ConnectionStatus.LOW_RESOURCE,
    errno.ENFILE: ConnectionStatus.LOW_RESOURCE,
    errno.ENOBUFS: ConnectionStatus.LOW_RESOURCE,
    errno.ENOMEM: ConnectionStatus.LOW_RESOURCE,
    errno.EADDRNOTAVAIL: ConnectionStatus.SOCKET_BIND_FAILURE,
}


class Target(NamedTuple):
    """Where to connect."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    @property
    def authority(self) -> str:
        """What stands in the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        is_default = self.port == (443 if self.scheme == "https" else 80)
        return host if is_default else f"{host}:{self.port}"


class Reply(NamedTuple):
    """The answer to one request."""

    status: int
    reason: str


class ConnectFailedError(LannerError):
    """A connection could not be made."""

    def __init__(self, status: ConnectionStatus, detail: str) -> None:
        super().__init__(detail)
        self.status = status


class LinkOwner(Protocol):
    """Who is told what happens on a connection."""

    def replied(self, replies: list[Reply]) -> None:
        """Answers have come, to the oldest requests first."""

    def lost(self, reason: str) -> None:
        """The connection is gone."""


class Link(Protocol):
    """A connection that is there."""

    @property
    def peer(self) -> str:
        """The address at its other end."""

    def post(self, head: bytes, body: bytes) -> None:
        """Send one request."""

    def close(self) -> None:
        """End it; nobody is told."""


Connector = Callable[[Target, LinkOwner], Awaitable[Link]]
"""Makes a connection, or raises ConnectFailedError."""


async def connect(target: Target, owner: LinkOwner, address: str, tls: ssl.SSLContext | None) -> Link:
    """Make a connection. ``address`` is where the target's host is, if the resolver does not know it."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            _, link = await loop.create_connection(
                lambda: _HttpLink(owner),
                address or target.host,
                target.port,
                ssl=tls if target.scheme == "https" else None,
                server_hostname=target.host if target.scheme == "https" else None,
            )
    except TimeoutError as error:
        detail = f"no connection within {CONNECT_SECONDS:.0f} seconds"
        raise ConnectFailedError(ConnectionStatus.SOCKET_CONNECT_FAILURE, detail) from error
    except ssl.SSLCertVerificationError as error:
        detail = f"the certificate is not valid: {error.verify_message}"
        raise ConnectFailedError(ConnectionStatus.CERTIFICATE_VALIDATION_FAILURE, detail) from error
    except socket.gaierror as error:
        detail = f"{target.host} is not known: {error.strerror}"
        raise ConnectFailedError(ConnectionStatus.DNS_FAILURE, detail) from error
    except UnicodeError as error:
        # A host name that DNS could not have, such as one with an empty label.
        detail = f"{target.host} is no name of a host: {error}"
        raise ConnectFailedError(ConnectionStatus.DNS_FAILURE, detail) from error
    except OSError as error:
        status = _ERRORS.get(error.errno or 0, ConnectionStatus.SOCKET_CONNECT_FAILURE)
        raise ConnectFailedError(status, _words(error, is_secure=tls is not None)) from error
    return link


def _words(error: OSError, *, is_secure: bool) -> str:
    if is_secure and isinstance(error, ssl.SSLError | ConnectionResetError):
        reason = getattr(error, "reason", None) or "connection closed"
        return f"TLS failed ({reason.lower().replace('_', ' ')}): does it speak HTTPS, with TLS 1.2 or newer?"
    return error.strerror or str(error) or "the other side has closed the connection"


class _HttpLink(asyncio.Protocol):
    """Writes requests, and reads the answers to them."""

    def __init__(self, owner: LinkOwner) -> None:
        self._owner: LinkOwner | None = owner
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport
        self._replies: list[Reply] = []
        self._body = b""
        self._body_bytes = 0
        self._phrase = ""
        self._is_last = False
        self._has_length = False
        self._ends_with_connection = False
        """Whether the answer that is coming has no length: it ends where the connection does."""

    # Link.

    @property
    def peer(self) -> str:
        """The address at its other end."""
        name = self._transport.get_extra_info("peername")
        return str(name[0]) if name else ""

    def post(self, head: bytes, body: bytes) -> None:
        """Send one request."""
        self._transport.write(head)
        self._transport.write(body)

    def close(self) -> None:
        """End it; nobody is told."""
        self._owner = None
        self._transport.abort()

    # The transport's side.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is there."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is of no class of asyncio

    def data_received(self, data: bytes) -> None:
        """Take what came, and hand on the answers that are whole."""
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._hand_on()
            self._lose(f"the answer is not HTTP: {error}")
            return
        self._hand_on()
        if self._is_last:
            self._lose("the other side has closed the connection")

    def connection_lost(self, exc: Exception | None) -> None:
        """The other side has closed it, or the network has."""
        if exc is None and self._ends_with_connection and self._owner is not None:
            self.on_message_complete()
            self._hand_on()
        self._lose(str(exc) if exc else "the other side has closed the connection")

    def _hand_on(self) -> None:
        if self._replies and self._owner is not None:
            replies, self._replies = self._replies, []
            self._owner.replied(replies)

    def _lose(self, reason: str) -> None:
        owner, self._owner = self._owner, None
        self._transport.abort()
        if owner is not None:
            owner.lost(reason)

    # The parser's side.

    def on_message_begin(self) -> None:
        """An answer begins."""
        self._body = b""
        self._body_bytes = 0
        self._phrase = ""
        self._has_length = False
        self._ends_with_connection = False

    def on_header(self, name: bytes, _: bytes) -> None:
        """A header: only how the answer ends is of interest."""
        if name.lower() in (b"content-length", b"transfer-encoding"):
            self._has_length = True

    def on_headers_complete(self) -> None:
        """The head of an answer is whole."""
        has_body = self._parser.get_status_code() >= 200
        self._ends_with_connection = has_body and not self._has_length

    def on_status(self, status: bytes) -> None:
        """A piece of the words behind the number."""
        if len(self._phrase) < REASON_LENGTH:
            self._phrase += status[:REASON_LENGTH].decode("latin-1")

    def on_body(self, body: bytes) -> None:
        """A piece of what the other side has to say."""
        self._body_bytes += len(body)
        if self._body_bytes > MAX_REPLY_BYTES:
            raise ValueError("the answer is too long")
        if len(self._body) < REASON_LENGTH:
            self._body += body

    def on_message_complete(self) -> None:
        """An answer is whole."""
        self._ends_with_connection = False
        status = self._parser.get_status_code()
        if status < 200:
            return  # "go on", to a request that has gone on already
        words = self._body[:REASON_LENGTH].decode("utf-8", "replace").strip()
        self._replies.append(Reply(status, words or self._phrase))
        self._is_last = not self._parser.should_keep_alive()
