"""Serving the API: uvicorn, with limits on what a client may send before it has said anything useful."""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from lanner.api.application import Application
from lanner.api.context import Api
from lanner.model.errors import StoreError

__all__ = ["ApiServer"]

log = logging.getLogger(__name__)

HEADER_SECONDS = 10.0
"""How long a client may take to send the head of a request."""

BODY_SECONDS = 30.0
"""How long a client may take to send each piece of a body."""

_TIMEOUT = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"

MAX_HEADER_BYTES = 32 * 1024
"""The head of a request: request line and headers."""

KEEP_ALIVE_SECONDS = 75
"""How long an idle connection is kept: longer than a client waits for a message."""

STOP_SECONDS = 5
"""How long requests may take to end when the manager stops."""

BACKLOG = 512


class LimitedProtocol(HttpToolsProtocol):
    """uvicorn's protocol with limits that it lacks: on the size of a head, and on the time for head and body.

    One timer per connection, which runs only while the client owes us the rest of a request: for a head from
    its first byte (for the first head from the connection on), for a body from each of its pieces.
    """

    def connection_made(self, transport: Any) -> None:
        """Expect a head."""
        super().connection_made(transport)
        self._head_bytes = 0
        self._in_head = True
        self._slow_timer: asyncio.TimerHandle | None = None
        self._expect_within(HEADER_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        """Expect nothing more."""
        self._expect_nothing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what came, and see what is missing."""
        if self._in_head:
            self._head_bytes += len(data)
        super().data_received(data)
        if not self._in_head:
            self._expect_within(BODY_SECONDS)
        elif not self._head_bytes:
            self._expect_nothing()
        elif self._head_bytes > MAX_HEADER_BYTES:
            log.warning(
                "a request's head was larger than %d bytes: the connection is closed", MAX_HEADER_BYTES
            )
            self.transport.close()
        elif self._slow_timer is None:
            self._expect_within(HEADER_SECONDS)

    def on_headers_complete(self) -> None:
        """The next thing to come is a body."""
        self._in_head = False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The next thing to come is a head, some time."""
        super().on_message_complete()
        self._in_head = True
        self._head_bytes = 0

    def _expect_within(self, seconds: float) -> None:
        self._expect_nothing()
        self._slow_timer = self.loop.call_later(seconds, self._close_slow)

    def _expect_nothing(self) -> None:
        if self._slow_timer is not None:
            self._slow_timer.cancel()
            self._slow_timer = None

    def _close_slow(self) -> None:
        if self.transport.is_closing():
            return
        log.info("a client took too long to send a request: the connection is closed")
        if not self._in_head:
            self.transport.write(_TIMEOUT)
        self.transport.close()


class ApiServer:
    """The listening API of one manager."""

    def __init__(self, api: Api, listen: str, port: int) -> None:
        self._socket = _bind(listen, port)
        config = uvicorn.Config(
            Application(api),
            http=LimitedProtocol,
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=STOP_SECONDS,
        )
        self._server = uvicorn.Server(config)
        self._task: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        """Where the API is."""
        host, port = self._socket.getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    async def start(self) -> None:
        """Begin to answer."""
        config = self._server.config
        if not config.loaded:
            config.load()
        self._server.lifespan = config.lifespan_class(config)
        await self._server.startup(sockets=[self._socket])
        self._task = asyncio.create_task(self._server.main_loop())

    async def stop(self) -> None:
        """Take no more requests, and let those under way end."""
        self._server.should_exit = True
        if self._task is not None:
            await self._task
            await self._server.shutdown(sockets=[self._socket])


def _bind(listen: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in listen else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((listen, port))
    except OSError as error:
        bound.close()
        raise StoreError(
            f"cannot listen on {listen}:{port}: {error.strerror}",
            hint="another program has the port: choose another with --api-port, or 0 for any",
        ) from error
    bound.listen(BACKLOG)
    bound.setblocking(False)
    return bound
