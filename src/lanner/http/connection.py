"""One connection: bytes to requests, responses to bytes, and the limits on both.

A connection is in one phase at a time:

    IDLE --first byte--> HEAD --head read--> BODY --all read--> ANSWERING --answered--> IDLE
    HEAD, BODY, ANSWERING --refused--> LINGERING --> CLOSING
    IDLE, ANSWERING --close--> CLOSING

What a client sends while its last request is being answered waits, and once `Limits.pipelined` requests
wait nothing more is read. The phases that depend on the client have a deadline, which the listener looks
at once a second (`check`): no timer is made or cancelled for a request.
"""

from __future__ import annotations

import asyncio
import enum
import itertools
import logging
import math
from collections import deque
from http import HTTPStatus
from typing import TYPE_CHECKING, cast

import httptools

from lanner.http.messages import Request, Response

if TYPE_CHECKING:
    from lanner.http.listener import HttpListener

__all__ = ["Connection"]

log = logging.getLogger(__name__)

NEVER = math.inf

JOINED_BYTES = 64 * 1024
"""Up to this size a response is written as one piece: copying it is cheaper than a second write."""

_STATUS_LINES = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus
}
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Phase(enum.Enum):
    """What the connection waits for."""

    IDLE = enum.auto()
    HEAD = enum.auto()
    BODY = enum.auto()
    ANSWERING = enum.auto()
    LINGERING = enum.auto()
    CLOSING = enum.auto()


class Connection(asyncio.Protocol):
    """Serves one client."""

    def __init__(self, listener: HttpListener) -> None:
        self._listener = listener
        self._limits = listener.limits
        self._handler = listener.handler
        self._loop = listener.loop
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport
        self._peer = ""
        self._our_address = ""
        self._phase = Phase.HEAD
        self._deadline = NEVER
        self._write_deadline = NEVER
        self._mark = 0
        self._write_mark = 0
        self._received = 0
        self._head_bytes = 0
        self._target = b""
        self._headers: dict[bytes, bytes] = {}
        self._pieces: list[bytes] = []
        self._body_bytes = 0
        self._reading: Request | None = None
        self._refusal: Response | None = None
        self._waiting: deque[Request] = deque()
        self._handling: dict[Request, asyncio.Task[Response | None]] = {}
        """Requests behind the first that are being handled already."""
        self._task: asyncio.Task[None] | None = None
        self._is_paused = False
        self._is_stopping = False
        self._can_write: asyncio.Future[None] | None = None
        self._gone: asyncio.Future[None] | None = None

    # The transport's side.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Expect a head."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is of no class of asyncio
        peer = transport.get_extra_info("peername")
        self._peer = peer[0] if isinstance(peer, tuple) else ""
        ours = transport.get_extra_info("sockname")
        self._our_address = ours[0] if isinstance(ours, tuple) else ""
        if not self._listener.take(self):
            self._close()
            return
        self._enter(Phase.HEAD, self._limits.head_seconds)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Nobody is there any more."""
        self._phase = Phase.CLOSING
        self._waiting.clear()
        if self._gone is not None and not self._gone.done():
            self._gone.set_result(None)
        self._let_write()
        if self._task is None:
            self._listener.drop(self)

    def data_received(self, data: bytes) -> None:
        """Take what came, and see what is missing."""
        self._received += len(data)
        if self._phase is Phase.LINGERING:
            if self._received - self._mark > self._limits.linger_bytes:
                self._close()
            return
        if self._phase is Phase.CLOSING or self._refusal is not None:
            return
        if self._phase is Phase.IDLE:
            self._enter(Phase.HEAD, self._limits.head_seconds)
        if self._reading is None:
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._ignore_upgrade()
        except httptools.HttpParserError as error:
            self._refuse(400, f"this is no HTTP request: {error}")
        if self._refusal is None and self._reading is None and self._head_bytes > self._limits.head_bytes:
            self._refuse(431, "the head of the request is too large")
        self._go_on()

    def _ignore_upgrade(self) -> None:
        """Do without another protocol (RFC 9110 7.8), as far as the parser goes: it reads no body then."""
        headers = self._headers
        if headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers:
            self._waiting.pop()
            self._refuse(400, "no other protocol is spoken here: send it without Upgrade")
        else:
            self._waiting[-1].keep_alive = False

    def eof_received(self) -> bool:
        """The client has said all it will say: it does not wait for an answer."""
        return False

    def pause_writing(self) -> None:
        """The client does not read as fast as it is sent to."""
        self._write_deadline = self._loop.time() + self._limits.progress_seconds
        self._write_mark = self._transport.get_write_buffer_size()
        if self._can_write is None:
            self._can_write = self._loop.create_future()

    def resume_writing(self) -> None:
        """It has caught up."""
        self._write_deadline = NEVER
        self._let_write()

    # The parser's side.

    def on_message_begin(self) -> None:
        """A request begins: forget the one before."""
        self._target = b""
        self._headers = {}
        self._pieces = []
        self._body_bytes = 0

    def on_url(self, url: bytes) -> None:
        """A piece of what is asked for."""
        self._target += url
        if len(self._target) > self._limits.head_bytes:
            self._refuse(414, "the request's target is too long")

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header."""
        name = name.lower()
        headers = self._headers
        if name in headers:
            if name == b"host":
                self._refuse(400, "a request has one Host")
            value = headers[name] + b", " + value
        elif len(headers) >= self._limits.headers:
            self._refuse(431, "too many headers")
            return
        headers[name] = value

    def on_headers_complete(self) -> None:
        """The head is whole: the handler may refuse it before a body is read."""
        if self._refusal is not None:
            return
        parser = self._parser
        request = Request(
            parser.get_method(),
            self._target,
            parser.get_http_version(),
            self._headers,
            self._peer,
            self._our_address,
            self._when_gone,
        )
        self._reading = request
        announced = self._headers.get(b"content-length", b"0")
        if sum(map(len, self._headers.values())) > self._limits.head_bytes:
            self._refuse(431, "the head of the request is too large")
        elif announced.isdigit() and int(announced) > self._limits.body_bytes:
            self._refuse_size()
        else:
            refusal = self._handler.check_head(request)
            if refusal is not None:
                self._refusal = refusal
            elif b"expect" in self._headers and self._task is None:
                self._transport.write(_CONTINUE)

    def on_body(self, body: bytes) -> None:
        """A piece of a body."""
        if self._refusal is not None:
            return
        self._body_bytes += len(body)
        if self._body_bytes > self._limits.body_bytes:
            self._refuse_size()
        else:
            self._pieces.append(body)

    def on_message_complete(self) -> None:
        """The request is whole."""
        request = self._reading
        self._reading = None
        self._head_bytes = 0
        if request is None or self._refusal is not None:
            return
        pieces = self._pieces
        if pieces:
            request.body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
            self._pieces = []
        request.keep_alive = self._parser.should_keep_alive()
        self._waiting.append(request)

    # Answering.

    def _go_on(self) -> None:
        if self._task is not None:
            self._begin_more()
            if len(self._waiting) >= self._limits.pipelined:
                self._pause_reading()
        elif self._waiting:
            self._phase = Phase.ANSWERING
            self._deadline = NEVER
            self._task = self._loop.create_task(self._answer_waiting())
            self._begin_more(1)
        elif self._refusal is not None:
            self._answer_refusal(self._refusal)
        elif self._reading is not None and self._phase is not Phase.BODY:
            self._enter(Phase.BODY, self._limits.progress_seconds)

    def _begin_more(self, first: int = 0) -> None:
        """Begin with requests before those before them are answered, as far as that is allowed."""
        for request in itertools.islice(self._waiting, first, first + self._limits.concurrent - 1):
            if request not in self._handling:
                self._handling[request] = self._loop.create_task(self._handle(request))

    async def _answer_waiting(self) -> None:
        try:
            while self._waiting:
                request = self._waiting.popleft()
                begun = self._handling.pop(request, None)
                self._begin_more()
                response = await (self._handle(request) if begun is None else begun)
                await self._answer(request, response)
                if len(self._waiting) < self._limits.pipelined:
                    self._resume_reading()
                if not request.keep_alive:
                    self._waiting.clear()
                    self._close()
            if self._handling:
                # Nobody waits for these any more, but what they do they do to its end.
                await asyncio.gather(*self._handling.values())
                self._handling.clear()
        finally:
            self._task = None
            if self._transport.is_closing() and self._phase is Phase.CLOSING:
                self._listener.drop(self)
        if self._phase is Phase.CLOSING:
            return
        if self._reading is None and self._head_bytes == 0:
            self._enter(Phase.IDLE, self._limits.idle_seconds)
        elif self._reading is None:
            self._enter(Phase.HEAD, self._limits.head_seconds)
        self._go_on()

    async def _handle(self, request: Request) -> Response | None:
        try:
            return await self._handler.handle(request)
        except Exception as error:
            log.error("a request failed: %s", type(error).__name__)
            log.debug("how it failed", exc_info=error)
            request.keep_alive = False
            return self._handler.refuse(500, "something went wrong; see the log")

    async def _answer(self, request: Request, response: Response | None) -> None:
        if response is None or self._phase is Phase.CLOSING:
            return
        if response.close:
            request.keep_alive = False
        if response.pieces is None:
            self._write(response, request.keep_alive, is_head=request.method == b"HEAD")
        else:
            await self._write_pieces(response, request)
        if self._can_write is not None:
            await self._can_write

    def _write(self, response: Response, keep_alive: bool, *, is_head: bool = False) -> None:
        length = b"content-length: %d\r\n" % len(response.body)
        head = self._head(response, length, keep_alive)
        if is_head:
            self._transport.write(head)
        elif len(response.body) <= JOINED_BYTES:
            self._transport.write(head + response.body)
        else:
            self._transport.write(head)
            self._transport.write(response.body)

    async def _write_pieces(self, response: Response, request: Request) -> None:
        assert response.pieces is not None
        is_chunked = request.version == "1.1"
        if not is_chunked:
            request.keep_alive = False
        length = b"transfer-encoding: chunked\r\n" if is_chunked else b""
        self._transport.write(self._head(response, length, request.keep_alive))
        try:
            async for piece in response.pieces:
                if piece:
                    self._transport.write(b"%x\r\n%b\r\n" % (len(piece), piece) if is_chunked else piece)
                if self._can_write is not None:
                    await self._can_write
                if self._phase is Phase.CLOSING:
                    return
        except Exception as error:
            # The head is gone already: only a missing end can tell the client that this is not all.
            log.error("an answer in pieces failed: %s", type(error).__name__)
            log.debug("how it failed", exc_info=error)
            self._transport.abort()
            return
        if is_chunked:
            self._transport.write(b"0\r\n\r\n")

    def _head(self, response: Response, length: bytes, keep_alive: bool) -> bytes:
        extra = b"".join([b"%b: %b\r\n" % header for header in response.headers])
        return b"%bdate: %b\r\ncontent-type: %b\r\n%b%b%b\r\n" % (
            _STATUS_LINES[response.status],
            self._listener.date,
            response.content_type,
            length,
            extra,
            b"" if keep_alive else b"connection: close\r\n",
        )

    # Refusing and closing.

    def _refuse_size(self) -> None:
        self._refuse(413, f"the body is larger than {self._limits.body_bytes:,} bytes")

    def _refuse(self, status: int, reason: str) -> None:
        if self._refusal is None:
            self._refusal = self._handler.refuse(status, reason)

    def _answer_refusal(self, refusal: Response) -> None:
        log.info("a request from %s was refused: %d", self._peer, refusal.status)
        self._write(refusal, keep_alive=False)
        self._mark = self._received
        self._enter(Phase.LINGERING, self._limits.linger_seconds)
        if self._transport.can_write_eof():
            self._transport.write_eof()

    def _close(self) -> None:
        """Close once all is written, but do not wait for ever for a client that does not read it."""
        self._enter(Phase.CLOSING, self._limits.progress_seconds)
        self._transport.close()

    def _pause_reading(self) -> None:
        if not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()

    def _resume_reading(self) -> None:
        if self._is_paused and not self._is_stopping:
            self._is_paused = False
            self._transport.resume_reading()

    def _let_write(self) -> None:
        if self._can_write is not None:
            if not self._can_write.done():
                self._can_write.set_result(None)
            self._can_write = None

    def _when_gone(self) -> asyncio.Future[None]:
        if self._gone is None:
            self._gone = self._loop.create_future()
            if self._phase is Phase.CLOSING:
                self._gone.set_result(None)
        return self._gone

    # Time.

    def _enter(self, phase: Phase, seconds: float) -> None:
        self._phase = phase
        self._deadline = self._loop.time() + seconds
        if phase is Phase.BODY:
            self._mark = self._received

    def check(self, now: float) -> None:
        """End what has taken too long."""
        if now >= self._write_deadline:
            self._check_reader(now)
        if now < self._deadline:
            return
        if self._phase is Phase.BODY:
            self._check_body(now)
        elif self._phase is Phase.HEAD:
            log.info("a client at %s took too long to send a request: the connection is closed", self._peer)
            self._close()
        elif self._phase is Phase.CLOSING:
            self._transport.abort()
        else:
            self._close()

    def _check_body(self, now: float) -> None:
        if self._received - self._mark >= self._limits.progress_bytes:
            self._mark = self._received
            self._deadline = now + self._limits.progress_seconds
            return
        log.info("a client at %s took too long to send a body: the connection is closed", self._peer)
        self._refuse(408, "the body did not come in time")
        self._go_on()

    def _check_reader(self, now: float) -> None:
        left = self._transport.get_write_buffer_size()
        if self._write_mark - left >= self._limits.progress_bytes:
            self._write_mark = left
            self._write_deadline = now + self._limits.progress_seconds
            return
        log.warning("a client at %s does not read its answer: the connection is closed", self._peer)
        self._transport.abort()

    def stop(self) -> None:
        """Finish what is being answered, and close."""
        self._is_stopping = True
        self._waiting.clear()
        if self._task is None:
            self._close()
        else:
            self._pause_reading()

    async def stopped(self, seconds: float) -> None:
        """Wait until the answer under way has gone out; end it when it takes longer."""
        task = self._task
        if task is not None:
            await asyncio.wait((task,), timeout=seconds)
            tasks = (task, *self._handling.values())
            for each in tasks:
                each.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        self._transport.close()
