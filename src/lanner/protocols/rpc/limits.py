"""What a listener for RPC takes, and for how long."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Limits"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Every number has its reason beside it; tests turn them down."""

    associations: int = 1_024
    """At once: a file descriptor and about 100 KB each with its log-on."""
    per_source: int = 512
    """Of one address, so that nobody takes all."""
    unready: int = 256
    """Associations at once that have not finished their bind and log-on; beyond, the oldest is dropped."""
    accepts: int = 400
    """Connections of one address in a burst: 200 clients of one machine that begin together, twice."""
    accept_seconds: float = 0.01
    """After this time, one more: 100 a second. A log-on takes about a millisecond of the loop."""
    setup_seconds: float = 15.0
    """From the connection to the end of bind and log-on. Administrators' networks are not that slow."""
    fragment_seconds: float = 15.0
    """From the first octet of a PDU to its last."""
    request_seconds: float = 60.0
    """From the first fragment of a request to its last: 4 MB at 70 KB a second."""
    idle_seconds: float = 1_800.0
    """An association without calls; clients reconnect by themselves."""
    anonymous_idle_seconds: float = 60.0
    """The same, when nobody has logged on: whoever asks the endpoint mapper asks once."""
    write_seconds: float = 30.0
    """How long a client may leave its answers unread."""
    calls: int = 512
    """Calls at once, of everybody; beyond, clients are told that the server is busy."""
    call_seconds: float = 120.0
    """How long an operation may take."""
    received: int = 32 * 1024 * 1024
    """Octets of requests at once, of everybody: eight of the largest."""
    unsent: int = 256 * 1024
    """Octets of answers that wait for one client before nothing more is read from it."""
