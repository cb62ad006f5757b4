"""One request over HTTP: encode, send, try again where that is safe, decode or raise."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

import httpx
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

MSGPACK = "application/msgpack"

_ERRORS: dict[str, type[errors.LannerError]] = {
    name.removesuffix("Error"): getattr(errors, name) for name in errors.__all__
}

_encoder = msgspec.msgpack.Encoder()


class Transport:
    """Connections to one API. ``patience`` is how many seconds it waits for a manager that is away."""

    def __init__(self, address: Address, patience: float) -> None:
        self._address = address
        self._patience = patience
        self._http = httpx.AsyncClient(
            base_url=address.url,
            headers={"authorization": f"Bearer {address.token}"},
            timeout=httpx.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS),
            limits=httpx.Limits(max_connections=MAX_CONNECTIONS, max_keepalive_connections=MAX_CONNECTIONS),
            trust_env=False,
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

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
        response = await self._attempt(self._request(method, path, request, wait), repeatable)
        if response.status_code != httpx.codes.OK:
            raise _error(response)
        if response.headers.get("content-type") == MSGPACK:
            return msgspec.msgpack.decode(response.content, type=answer)
        return msgspec.json.decode(response.content, type=answer)

    @asynccontextmanager
    async def stream(self, path: str, request: In) -> AsyncIterator[httpx.Response]:
        """Read an answer that comes in pieces."""
        try:
            response = await self._http.send(self._request("GET", path, request, 0.0), stream=True)
        except httpx.TransportError as error:
            raise self._away(error) from error
        try:
            if response.status_code != httpx.codes.OK:
                await response.aread()
                raise _error(response)
            yield response
        finally:
            await response.aclose()

    def _request(self, method: str, path: str, request: In, wait: float) -> httpx.Request:
        timeout = httpx.Timeout(ANSWER_SECONDS + wait, connect=CONNECT_SECONDS)
        if method in ("GET", "DELETE"):
            fields = msgspec.to_builtins(request, str_keys=True)
            query = {name: _query_text(value) for name, value in fields.items() if value is not None}
            return self._http.build_request(method, path, params=query, timeout=timeout)
        return self._http.build_request(
            method,
            path,
            content=_encoder.encode(request),
            headers={"content-type": MSGPACK},
            timeout=timeout,
        )

    async def _attempt(self, request: httpx.Request, repeatable: bool) -> httpx.Response:
        deadline = time.monotonic() + self._patience
        pause = FIRST_PAUSE
        while True:
            try:
                return await self._http.send(request)
            except httpx.TransportError as error:
                # Nothing was sent when there was no connection; else the request may have been done.
                safe = repeatable or isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
                if not safe or time.monotonic() + pause > deadline:
                    raise self._away(error) from error
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _away(self, error: httpx.TransportError) -> errors.ConnectionFailedError:
        return errors.ConnectionFailedError(
            f"the queue manager at {self._address.url} does not answer ({type(error).__name__})",
            hint="see whether it is running: lanner serve",
        )


def _query_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _error(response: httpx.Response) -> errors.LannerError:
    try:
        if response.headers.get("content-type") == MSGPACK:
            answer = msgspec.msgpack.decode(response.content, type=ErrorAnswer)
        else:
            answer = msgspec.json.decode(response.content, type=ErrorAnswer)
    except msgspec.MsgspecError:
        return errors.LannerError(f"the queue manager answered with status {response.status_code}")
    if response.status_code == httpx.codes.UNAUTHORIZED:
        return errors.AccessDeniedError("the queue manager does not know this token", hint="check --token")
    kind = _ERRORS.get(answer.error, errors.LannerError)
    if kind is errors.QuotaExceededError:
        return errors.QuotaExceededError(answer.message, of_queue=True, hint=answer.hint)
    return kind(answer.message, hint=answer.hint)
