"""A request and its response."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["Request", "Response"]


class Request:
    """One request, as it was sent. Header names are in lower case; repeated headers are joined by commas."""

    __slots__ = (
        "body",
        "gone",
        "headers",
        "keep_alive",
        "method",
        "our_address",
        "peer",
        "state",
        "target",
        "version",
    )

    def __init__(
        self,
        method: bytes,
        target: bytes,
        version: str,
        headers: dict[bytes, bytes],
        peer: str,
        our_address: str,
        gone: Callable[[], asyncio.Future[None]],
    ) -> None:
        self.method = method
        self.target = target
        self.version = version
        self.headers = headers
        self.peer = peer
        """The address of the other side."""
        self.our_address = our_address
        """The address at which it has reached us."""
        self.gone = gone
        """Gives a future that ends when the client goes away."""
        self.body = b""
        self.keep_alive = True
        self.state: Any = None
        """What the handler found out from the head, for itself."""

    def take_body(self) -> bytes:
        """Give the body away, so that it is gone from memory as soon as nobody needs it."""
        body, self.body = self.body, b""
        return body


@dataclass(frozen=True, slots=True)
class Response:
    """What goes back: a body as a whole, or pieces as they come."""

    status: int
    body: bytes = b""
    content_type: bytes = b"text/plain"
    headers: tuple[tuple[bytes, bytes], ...] = ()
    pieces: AsyncIterator[bytes] | None = None
    close: bool = False
    """Whether the connection ends with this response."""
