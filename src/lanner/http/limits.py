"""What a client may do, and for how long."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Limits"]


@dataclass(frozen=True)
class Limits:
    """The limits of one listener. Times are looked at once a second."""

    head_bytes: int = 32 * 1024
    """Request line and headers: a token, a content type and whatever a proxy adds."""
    headers: int = 100
    """How many headers: each becomes an entry of a dictionary."""
    body_bytes: int = 64 * 1024 * 1024
    """A body: it is in memory as a whole before it is looked at."""
    pipelined: int = 8
    """Requests that may wait behind the one that is being answered, before no more is read."""
    concurrent: int = 1
    """Requests of one connection that are handled at a time. They begin, and are answered, in their order."""
    connections: int = 8192
    """Connections at a time: each costs a descriptor and some kilobytes."""
    head_seconds: float = 10.0
    """How long a head may take, from its first byte; the first head from the connection on."""
    progress_seconds: float = 30.0
    """A body, or the reading of an answer, must move by `progress_bytes` in every such span."""
    progress_bytes: int = 16 * 1024
    """Half a kilobyte a second: less is a client that holds a connection for its own sake."""
    idle_seconds: float = 75.0
    """How long a connection is kept without a request: longer than a client waits for a message."""
    linger_seconds: float = 2.0
    """How long a refused client may go on sending, so that it reads the refusal and not a reset."""
    linger_bytes: int = 1024 * 1024
    """What is read and thrown away in that time."""
    stop_seconds: float = 5.0
    """How long requests may take to end when the listener stops."""
