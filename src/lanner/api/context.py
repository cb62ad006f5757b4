"""What every handler works with."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec

from lanner.api.leases import Leases
from lanner.api.tokens import Caller, Right, Tokens
from lanner.manager import Clock, QueueManager
from lanner.protocols.discovery.endpoint import DiscoveryEndpoint
from lanner.protocols.srmp.endpoint import SrmpEndpoint
from lanner.schema.base import In

__all__ = ["Api", "Endpoint", "Handler", "Stream"]


@dataclass
class Api:
    """One manager behind one API."""

    manager: QueueManager
    tokens: Tokens
    clock: Clock
    data: Path
    lease: float
    srmp: SrmpEndpoint | None = None
    """SRMP, where it is spoken."""
    discovery: DiscoveryEndpoint | None = None
    """Discovery, where there is a directory."""
    leases: Leases = field(init=False)

    def __post_init__(self) -> None:
        self.leases = Leases(self.manager, self.clock)

    def found_by_discovery(self) -> tuple[tuple[str, ...], tuple[UUID, ...]]:
        """Directory servers and connected networks that are known."""
        if self.discovery is None:
            return (), ()
        return self.discovery.directory_server_list, self.discovery.connected_network_identifier_list

    def check(self, caller: Caller, right: Right, queue: str) -> None:
        """Refuse what a token does not allow on a queue, whichever of its names is used."""
        if Right.ADMIN not in caller.rights:
            caller.check(right, self.manager.canonical_name(queue))


@dataclass(frozen=True)
class Stream:
    """An answer that comes in pieces."""

    content_type: str
    pieces: AsyncIterator[bytes]


Handler = Callable[[Api, Caller, Any], Awaitable[msgspec.Struct | Stream]]
"""Takes the request of its endpoint."""


@dataclass(frozen=True)
class Endpoint:
    """One thing that can be asked of the API."""

    method: str
    path: str
    summary: str
    handler: Handler
    request: type[In]
    answer: type[msgspec.Struct] | str
    """What comes back: a struct, or a content type."""
    right: Right | None
    """What a token must allow, at the least; nothing where any token will do."""
    waits: bool = False
    """Whether it may wait for a message: then it ends when the client goes away."""
