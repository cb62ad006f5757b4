"""The API behind the HTTP listener: find the endpoint, check the token, read, do, answer.

Written without a framework, because all paths are fixed and all bodies are msgspec structs: one would cost
more than the rest of a durable send (docs/architecture.md has what was measured).
"""

from __future__ import annotations

import asyncio
import http
import logging
import secrets
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from lanner.api.context import Api, Endpoint, Stream
from lanner.api.endpoints import ENDPOINTS
from lanner.api.openapi import openapi_document
from lanner.api.tokens import Caller
from lanner.http import Request, Response
from lanner.model import errors
from lanner.schema.base import ErrorAnswer

__all__ = ["Application"]

log = logging.getLogger(__name__)

MAX_QUERY_BYTES = 8 * 1024

JSON = b"application/json"
MSGPACK = b"application/msgpack"

_LIVE = b"/health/live"
_HEALTH = (_LIVE, b"/health/ready")
_OPENAPI = b"/openapi.json"

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
        self._routes: dict[bytes, dict[bytes, Endpoint]] = {}
        for endpoint in ENDPOINTS:
            methods = self._routes.setdefault(endpoint.path.encode(), {})
            methods[endpoint.method.encode()] = endpoint
        self._decoders = {
            (endpoint.request, codec): kind(endpoint.request).decode
            for endpoint in ENDPOINTS
            for codec, kind in (
                (_JSON_CODEC, msgspec.json.Decoder),
                (_MSGPACK_CODEC, msgspec.msgpack.Decoder),
            )
        }

    def check_head(self, request: Request) -> Response | None:
        """Know who asks for what before a body is read."""
        path = request.target.partition(b"?")[0]
        if path in _HEALTH:
            return None
        try:
            caller = self._authenticate(request.headers)
            if path == _OPENAPI and request.method == b"GET":
                request.state = (None, caller)
                return None
            endpoint = self._find(path, request.method)
            if endpoint.right is not None:
                caller.check(endpoint.right)
        except _RefusedError as refusal:
            return _reply(refusal.status, _codec_of(request), refusal.answer)
        except errors.LannerError as error:
            return _reply(_status_of(error), _codec_of(request), _error_answer(error))
        request.state = (endpoint, caller)
        return None

    def refuse(self, status: int, reason: str) -> Response:
        """What the listener does not take, in the API's own form."""
        name = http.HTTPStatus(status).phrase.title().replace(" ", "")
        return _reply(status, _JSON_CODEC, ErrorAnswer(error=name, message=reason))

    async def handle(self, request: Request) -> Response | None:
        """Answer one request."""
        if request.state is None:
            return self._health(request.target)
        codec = _codec_of(request)
        try:
            answer = await self._answer(request, codec)
        except _RefusedError as refusal:
            return _reply(refusal.status, codec, refusal.answer)
        except errors.LannerError as error:
            return _reply(_status_of(error), codec, _error_answer(error))
        except Exception as error:
            # What went wrong is for the log, where it was for the log of a developer; the client gets a
            # number to look for.
            reference = secrets.token_hex(4)
            log.error(
                "a request failed: %s (reference %s)", type(error).__name__, reference, extra=_where(request)
            )
            log.debug("reference %s", reference, exc_info=error)
            answer = ErrorAnswer(error="Internal", message=f"something went wrong (reference {reference})")
            return _reply(500, codec, answer)
        if answer is None:
            return None
        if isinstance(answer, Stream):
            return Response(200, content_type=answer.content_type.encode(), pieces=answer.pieces)
        return _reply(200, codec, answer)

    async def _answer(self, request: Request, codec: _Codec) -> msgspec.Struct | Stream | None:
        endpoint: Endpoint | None
        endpoint, caller = request.state
        if endpoint is None:
            return _Document(openapi_document(ENDPOINTS))
        if endpoint.method in ("GET", "DELETE"):
            asked = _from_query(endpoint, request.target.partition(b"?")[2])
        else:
            asked = self._from_body(endpoint, codec, request.body)
        if not endpoint.waits:
            return await endpoint.handler(self._api, caller, asked)
        return await _unless_gone(endpoint.handler(self._api, caller, asked), request.gone())

    def _authenticate(self, headers: dict[bytes, bytes]) -> Caller:
        scheme, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        caller = self._api.tokens.authenticate(token.strip()) if scheme.lower() == "bearer" else None
        if caller is None:
            raise _RefusedError(
                401, "a valid token is needed", error="Unauthorized", hint="Authorization: Bearer TOKEN"
            )
        return caller

    def _find(self, path: bytes, method: bytes) -> Endpoint:
        methods = self._routes.get(path)
        if methods is None:
            raise _RefusedError(
                404, "there is no such path", error="NotFound", hint=f"see {_OPENAPI.decode()}"
            )
        endpoint = methods.get(method)
        if endpoint is None:
            allowed = b", ".join(methods).decode()
            raise _RefusedError(405, f"only {allowed} here", error="MethodNotAllowed")
        return endpoint

    def _from_body(self, endpoint: Endpoint, codec: _Codec, body: bytes) -> Any:
        try:
            return self._decoders[endpoint.request, codec](body or b"{}" if codec is _JSON_CODEC else body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise _RefusedError(400, str(error)) from error

    def _health(self, path: bytes) -> Response:
        is_ready = path.startswith(_LIVE) or self._api.manager.is_running
        return Response(200, b"ok\n") if is_ready else Response(503, b"stopping\n")


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


async def _unless_gone(
    work: Awaitable[msgspec.Struct | Stream], gone: asyncio.Future[None]
) -> msgspec.Struct | Stream | None:
    """Do work that may wait for a message, but not for a client that has gone away.

    Cancelling it gives back what it may have been given in that moment.
    """
    working = asyncio.ensure_future(work)
    try:
        await asyncio.wait((working, gone), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return await working
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        return None
    finally:
        working.cancel()


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


def _where(request: Request) -> dict[str, str]:
    path = request.target.partition(b"?")[0]
    return {"method": request.method.decode("latin-1"), "path": path.decode("latin-1")}


def _codec_of(request: Request) -> _Codec:
    return _MSGPACK_CODEC if request.headers.get(b"content-type") == MSGPACK else _JSON_CODEC


def _reply(status: int, codec: _Codec, answer: msgspec.Struct) -> Response:
    if isinstance(answer, _Document):
        return Response(status, answer.data, JSON)
    return Response(status, codec.encode(answer), codec.content_type)
