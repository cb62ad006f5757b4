"""Listening: the socket, its connections, and the clock that ends the slow ones."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from email.utils import formatdate
from typing import Protocol

from lanner.http.connection import Connection
from lanner.http.limits import Limits
from lanner.http.messages import Request, Response
from lanner.model.errors import ListenError

__all__ = ["Handler", "HttpListener"]

log = logging.getLogger(__name__)

BACKLOG = 1024

SWEEP_SECONDS = 1.0
"""How often the deadlines of connections are looked at."""


class Handler(Protocol):
    """What answers requests."""

    def check_head(self, request: Request) -> Response | None:
        """Refuse a request by its head, before any of its body is read."""

    def refuse(self, status: int, reason: str) -> Response:
        """Put into words that the listener does not take a request, or could not answer it."""

    async def handle(self, request: Request) -> Response | None:
        """Answer; nothing where nobody waits for an answer."""


class HttpListener:
    """A bound socket, and the connections made to it."""

    def __init__(
        self,
        handler: Handler,
        listen: str,
        port: int,
        *,
        limits: Limits | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.handler = handler
        self.limits = limits or Limits()
        self.date = formatdate(usegmt=True).encode()
        self.loop: asyncio.AbstractEventLoop
        self._tls = tls
        self._socket = _bind(listen, port)
        self._connections: set[Connection] = set()
        self._server: asyncio.Server
        self._sweeper: asyncio.Task[None]

    @property
    def url(self) -> str:
        """Where it listens."""
        host, port = self._socket.getsockname()[:2]
        scheme = "https" if self._tls else "http"
        return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"

    @property
    def connection_count(self) -> int:
        """How many clients are connected."""
        return len(self._connections)

    async def start(self) -> None:
        """Begin to answer."""
        self.loop = asyncio.get_running_loop()
        self._server = await self.loop.create_server(
            lambda: Connection(self),
            sock=self._socket,
            backlog=BACKLOG,
            ssl=self._tls,
            ssl_handshake_timeout=self.limits.head_seconds if self._tls else None,
        )
        self._sweeper = asyncio.create_task(self._sweep(), name="http deadlines")

    async def stop(self) -> None:
        """Take no more requests, and let those under way end."""
        self._server.close()
        for connection in tuple(self._connections):
            connection.stop()
        await asyncio.gather(*(each.stopped(self.limits.stop_seconds) for each in tuple(self._connections)))
        self._sweeper.cancel()
        await asyncio.gather(self._sweeper, return_exceptions=True)

    def take(self, connection: Connection) -> bool:
        """Count a connection in, if there is room for it."""
        if len(self._connections) >= self.limits.connections:
            log.warning("there are %d connections already: one more was refused", len(self._connections))
            return False
        self._connections.add(connection)
        return True

    def drop(self, connection: Connection) -> None:
        """Count a connection out."""
        self._connections.discard(connection)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            self.date = formatdate(usegmt=True).encode()
            now = self.loop.time()
            for connection in tuple(self._connections):
                connection.check(now)


def _bind(listen: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in listen else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((listen, port))
    except OSError as error:
        bound.close()
        raise ListenError(
            f"cannot listen on {listen}:{port}: {error.strerror}",
            hint="another program has the port, or the address is not of this machine: choose another",
        ) from error
    bound.setblocking(False)
    return bound
