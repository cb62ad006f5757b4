"""One request over HTTP: encode, send, try again where that is safe, decode or raise."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any, NamedTuple, TypeVar

import aiohttp
import msgspec

from lanner.client.address import Address
from lanner.model import errors
from lanner.schema.base import ErrorAnswer, In

__all__ = ["Transport"]

T = TypeVar("T", bound=msgspec.Struct)

CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 30.0
"""How long an answer may take beyond what the request itself asks to wait for."""

FIRST_PAUSE = 0.05
LONGEST_PAUSE = 2.0
"""Seconds between two attempts: doubled from the first to the longest."""

MAX_CONNECTIONS = 1000
CHUNK_BYTES = 64 * 1024

MSGPACK = "application/msgpack"
OK = 200
UNAUTHORIZED = 401

_ERRORS: dict[str, type[errors.LannerError]] = {
    name.removesuffix("Error"): getattr(errors, name) for name in errors.__all__
}

_encoder = msgspec.msgpack.Encoder()


class _Response(NamedTuple):
    status: int
    content_type: str
    content: bytes


class Transport:
    """Connections to one API. ``patience`` is how many seconds it waits for a manager that is away."""

    def __init__(self, address: Address, patience: float) -> None:
        self._address = address
        self._patience = patience
        self._opened: aiohttp.ClientSession | None = None

    @property
    def _session(self) -> aiohttp.ClientSession:
        # Made at first use, on the loop that uses it.
        if self._opened is None:
            self._opened = aiohttp.ClientSession(
                base_url=self._address.url,
                headers={"authorization": f"Bearer {self._address.token}"},
                connector=aiohttp.TCPConnector(limit=MAX_CONNECTIONS),
            )
        return self._opened

    async def close(self) -> None:
        """Close all connections."""
        if self._opened is not None:
            await self._opened.close()

    async def call(
        self,
        method: str,
        path: str,
        request: In,
        answer: type[T],
        *,
        wait: float = 0.0,
        repeatable: bool = False,
    ) -> T:
        """Make a request. A ``repeatable`` one does no harm when it arrives twice."""
        deadline = time.monotonic() + self._patience
        pause = FIRST_PAUSE
        while True:
            try:
                response = await self._attempt(method, path, request, wait)
                break
            except (aiohttp.ClientError, TimeoutError) as error:
                # Nothing was sent when there was no connection; else the request may have been done.
                safe = repeatable or isinstance(error, aiohttp.ClientConnectorError)
                if not safe or time.monotonic() + pause > deadline:
                    raise self._away(error) from error
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
        if response.status != OK:
            raise _error(response)
        return _decode(response, answer)

    async def stream(self, path: str, request: In) -> AsyncIterator[bytes]:
        """Read an answer that comes in pieces."""
        try:
            async with self._session.get(path, **self._options("GET", request, 0.0)) as response:
                if response.status != OK:
                    raise _error(await _whole(response))
                async for piece in response.content.iter_chunked(CHUNK_BYTES):
                    yield piece
        except (aiohttp.ClientError, TimeoutError) as error:
            raise self._away(error) from error

    async def _attempt(self, method: str, path: str, request: In, wait: float) -> _Response:
        async with self._session.request(method, path, **self._options(method, request, wait)) as response:
            return await _whole(response)

    def _options(self, method: str, request: In, wait: float) -> dict[str, Any]:
        timeout = aiohttp.ClientTimeout(sock_connect=CONNECT_SECONDS, sock_read=ANSWER_SECONDS + wait)
        if method in ("GET", "DELETE"):
            fields = msgspec.to_builtins(request, str_keys=True)
            query = {name: _query_text(value) for name, value in fields.items() if value is not None}
            return {"params": query, "timeout": timeout}
        return {"data": _encoder.encode(request), "headers": {"content-type": MSGPACK}, "timeout": timeout}

    def _away(self, error: Exception) -> errors.ConnectionFailedError:
        return errors.ConnectionFailedError(
            f"the queue manager at {self._address.url} does not answer ({type(error).__name__})",
            hint="see whether it is running: lanner serve",
        )


async def _whole(response: aiohttp.ClientResponse) -> _Response:
    return _Response(response.status, response.headers.get("content-type", ""), await response.read())


def _query_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _decode(response: _Response, kind: type[T]) -> T:
    if response.content_type == MSGPACK:
        return msgspec.msgpack.decode(response.content, type=kind)
    return msgspec.json.decode(response.content, type=kind)


def _error(response: _Response) -> errors.LannerError:
    try:
        answer = _decode(response, ErrorAnswer)
    except msgspec.MsgspecError:
        return errors.LannerError(f"the queue manager answered with status {response.status}")
    if response.status == UNAUTHORIZED:
        return errors.AccessDeniedError("the queue manager does not know this token", hint="check --token")
    kind = _ERRORS.get(answer.error, errors.LannerError)
    if kind is errors.QuotaExceededError:
        return errors.QuotaExceededError(answer.message, of_queue=True, hint=answer.hint)
    return kind(answer.message, hint=answer.hint)
