"""The API as an ASGI application: find the endpoint, check the token, read, do, answer.

Written against ASGI itself, because all paths are fixed and all bodies are msgspec structs: a framework
between would cost more than the rest of a durable send (measured: 46 us a request like this, 67 with
Starlette, 109 with Litestar, 152 with FastAPI).
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from lanner.api.context import Api, Endpoint, Stream
from lanner.api.endpoints import ENDPOINTS
from lanner.api.openapi import openapi_document
from lanner.api.tokens import Caller
from lanner.model import errors
from lanner.schema.base import ErrorAnswer

__all__ = ["Application"]

log = logging.getLogger(__name__)

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

MAX_BODY_BYTES = 64 * 1024 * 1024
"""A request: a batch of some messages of 4 MB in base64. More is sent in several."""

DRAINED_BYTES = 1024 * 1024
"""What is read and thrown away of a body that is too large, before the connection is closed."""

MAX_QUERY_BYTES = 8 * 1024

JSON = b"application/json"
MSGPACK = b"application/msgpack"

_HEALTH = ("/health/live", "/health/ready")
_OPENAPI = "/openapi.json"

_STATUS: tuple[tuple[type[errors.LannerError], int], ...] = (
    (errors.QueueNotFoundError, 404),
    (errors.MessageNotFoundError, 404),
    (errors.AccessDeniedError, 403),
    (errors.QueueExistsError, 409),
    (errors.QueueDeletedError, 409),
    (errors.SharingViolationError, 409),
    (errors.MessageLockedError, 409),
    (errors.TransactionSequenceError, 409),
    (errors.TransactionUsageError, 409),
    (errors.MessageTooLargeError, 413),
    (errors.QuotaExceededError, 507),
    (errors.StoreFullError, 507),
    (errors.StoppedError, 503),
    (errors.StoreError, 503),
)


class _RefusedError(Exception):
    """The request is answered with an error before any handler sees it."""

    def __init__(self, status: int, message: str, *, error: str = "BadRequest", hint: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.answer = ErrorAnswer(error=error, message=message, hint=hint)


class _Codec:
    """JSON or MessagePack, as the client says."""

    def __init__(
        self, content_type: bytes, encode: Callable[[object], bytes], decode: Callable[..., Any]
    ) -> None:
        self.content_type = content_type
        self.encode = encode
        self.decode = decode


_JSON_CODEC = _Codec(JSON, msgspec.json.Encoder().encode, msgspec.json.decode)
_MSGPACK_CODEC = _Codec(MSGPACK, msgspec.msgpack.Encoder().encode, msgspec.msgpack.decode)


class Application:
    """Answers requests for one :class:`Api`."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._routes: dict[str, dict[str, Endpoint]] = {}
        for endpoint in ENDPOINTS:
            self._routes.setdefault(endpoint.path, {})[endpoint.method] = endpoint
        self._decoders = {
            (endpoint.request, codec): kind(endpoint.request).decode
            for endpoint in ENDPOINTS
            for codec, kind in (
                (_JSON_CODEC, msgspec.json.Decoder),
                (_MSGPACK_CODEC, msgspec.msgpack.Decoder),
            )
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        headers: dict[bytes, bytes] = dict(scope["headers"])
        codec = _MSGPACK_CODEC if headers.get(b"content-type") == MSGPACK else _JSON_CODEC
        try:
            if scope["path"] in _HEALTH:
                await self._health(scope["path"], send)
                return
            answer = await self._answer(scope, headers, codec, receive)
        except _RefusedError as refusal:
            await _reply(send, refusal.status, codec, refusal.answer)
        except errors.LannerError as error:
            await _reply(send, _status_of(error), codec, _error_answer(error))
        except Exception as error:
            # What went wrong is for the log, where it was for the log of a developer; the client gets a
            # number to look for.
            reference = secrets.token_hex(4)
            log.error(
                "a request failed: %s (reference %s)", type(error).__name__, reference, extra=_where(scope)
            )
            log.debug("reference %s", reference, exc_info=error)
            answer = ErrorAnswer(error="Internal", message=f"something went wrong (reference {reference})")
            await _reply(send, 500, codec, answer)
        else:
            if isinstance(answer, Stream):
                await _stream(send, answer)
            elif answer is not None:
                await _reply(send, 200, codec, answer)

    async def _answer(
        self, scope: Scope, headers: dict[bytes, bytes], codec: _Codec, receive: Receive
    ) -> msgspec.Struct | Stream | None:
        caller = self._authenticate(headers)
        if scope["path"] == _OPENAPI and scope["method"] == "GET":
            return _Document(openapi_document(ENDPOINTS))
        endpoint = self._find(scope)
        caller.check(endpoint.right)
        if endpoint.method in ("GET", "DELETE"):
            request = _from_query(endpoint, scope["query_string"])
        else:
            request = await self._from_body(endpoint, headers, codec, receive)
        if not endpoint.waits:
            return await endpoint.handler(self._api, caller, request)
        return await _unless_gone(endpoint.handler(self._api, caller, request), receive)

    def _authenticate(self, headers: dict[bytes, bytes]) -> Caller:
        scheme, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        caller = self._api.tokens.authenticate(token.strip()) if scheme.lower() == "bearer" else None
        if caller is None:
            raise _RefusedError(
                401, "a valid token is needed", error="Unauthorized", hint="Authorization: Bearer TOKEN"
            )
        return caller

    def _find(self, scope: Scope) -> Endpoint:
        methods = self._routes.get(scope["path"])
        if methods is None:
            raise _RefusedError(404, "there is no such path", error="NotFound", hint=f"see {_OPENAPI}")
        endpoint = methods.get(scope["method"])
        if endpoint is None:
            raise _RefusedError(405, f"only {', '.join(methods)} here", error="MethodNotAllowed")
        return endpoint

    async def _from_body(
        self, endpoint: Endpoint, headers: dict[bytes, bytes], codec: _Codec, receive: Receive
    ) -> Any:
        body = await _read_body(headers, receive)
        try:
            return self._decoders[endpoint.request, codec](body or b"{}" if codec is _JSON_CODEC else body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise _RefusedError(400, str(error)) from error

    async def _health(self, path: str, send: Send) -> None:
        ready = path == "/health/live" or self._api.manager.is_running
        body = b"ok\n" if ready else b"stopping\n"
        await _send_all(send, 200 if ready else 503, b"text/plain", body)


class _Document(msgspec.Struct):
    """A document that is JSON already."""

    data: bytes


def _from_query(endpoint: Endpoint, query: bytes) -> Any:
    if len(query) > MAX_QUERY_BYTES:
        raise _RefusedError(414, f"the query is longer than {MAX_QUERY_BYTES:,} bytes")
    try:
        fields = dict(parse_qsl(query.decode("ascii"), keep_blank_values=True, strict_parsing=bool(query)))
        return msgspec.convert(fields, endpoint.request, strict=False)
    except (ValueError, msgspec.ValidationError) as error:
        raise _RefusedError(400, f"the query cannot be read: {error}") from error


async def _read_body(headers: dict[bytes, bytes], receive: Receive) -> bytes:
    announced = headers.get(b"content-length", b"0")
    is_too_large = announced.isdigit() and int(announced) > MAX_BODY_BYTES
    pieces: list[bytes] = []
    size = 0
    more = True
    while not is_too_large:
        piece, more = await _read_piece(receive)
        size += len(piece)
        is_too_large = size > MAX_BODY_BYTES
        pieces.append(piece)
        if not more and not is_too_large:
            return pieces[0] if len(pieces) == 1 else b"".join(pieces)
    # A client that is still sending would not read the answer: take in a little more of it.
    drained = 0
    while more and drained < DRAINED_BYTES:
        piece, more = await _read_piece(receive)
        drained += len(piece)
    raise _RefusedError(413, f"the body is larger than {MAX_BODY_BYTES:,} bytes", error="TooLarge")


async def _read_piece(receive: Receive) -> tuple[bytes, bool]:
    event = await receive()
    if event["type"] == "http.disconnect":
        raise _RefusedError(400, "the client went away")
    return event.get("body", b""), bool(event.get("more_body"))


async def _unless_gone(
    work: Awaitable[msgspec.Struct | Stream], receive: Receive
) -> msgspec.Struct | Stream | None:
    """Do work that may wait for a message, but not for a client that has gone away.

    Cancelling it gives back what it may have been given in that moment.
    """
    working = asyncio.ensure_future(work)
    watching = asyncio.ensure_future(receive())
    try:
        await asyncio.wait((working, watching), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return await working
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        return None
    finally:
        working.cancel()
        watching.cancel()


def _status_of(error: errors.LannerError) -> int:
    for kind, status in _STATUS:
        if isinstance(error, kind):
            return status
    return 400


def _error_answer(error: errors.LannerError) -> ErrorAnswer:
    if isinstance(error, errors.StoreError) and not isinstance(error, errors.StoreFullError):
        # Where the files are is nobody's business but the log's.
        log.error("the store failed: %s", error.__cause__ or type(error).__name__)
        return ErrorAnswer(error=_name(error), message="the store failed; see the log", code=error.code)
    if isinstance(error, errors.StoreFullError):
        return ErrorAnswer(
            error=_name(error),
            message="the disk is full",
            hint="free some space and try again",
            code=error.code,
        )
    return ErrorAnswer(error=_name(error), message=error.message, hint=error.hint, code=error.code)


def _name(error: errors.LannerError) -> str:
    return type(error).__name__.removesuffix("Error")


def _where(scope: Scope) -> dict[str, str]:
    return {"method": scope["method"], "path": scope["path"]}


async def _reply(send: Send, status: int, codec: _Codec, answer: msgspec.Struct) -> None:
    if isinstance(answer, _Document):
        await _send_all(send, status, JSON, answer.data)
    else:
        await _send_all(send, status, codec.content_type, codec.encode(answer))


async def _send_all(send: Send, status: int, content_type: bytes, body: bytes) -> None:
    headers = [(b"content-type", content_type), (b"content-length", str(len(body)).encode())]
    if status in (401, 413):
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _stream(send: Send, answer: Stream) -> None:
    headers = [(b"content-type", answer.content_type.encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    async for piece in answer.pieces:
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
