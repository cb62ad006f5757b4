"""What a routing decision is: the hops, the rule that chose them, or why there are none."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple
from uuid import UUID

from lanner.model.codes import StatusCode
from lanner.model.enterprise import Machine
from lanner.model.errors import LannerError

__all__ = ["FOR_CLIENT", "FOR_GATE", "FOR_ROUTER", "NOBODY", "Decision", "NoRouteError", "Rule"]

FOR_CLIENT = "MS-MQBR 3.1.5.1"
FOR_ROUTER = "MS-MQBR 3.1.5.2"
FOR_GATE = "MS-MQBR 3.1.5.3"

NOBODY: frozenset[UUID] = frozenset()
"""Nobody has just failed."""


class Rule(Enum):
    """Why a hop was chosen."""

    ITSELF = "it is the destination"
    DIRECT = "the destination is in the same site: directly (1.3.1)"
    OUT_ROUTING = "it sends everything through its out-routing servers (1.3.2)"
    IN_ROUTING = "the destination gets everything through its in-routing servers (1.3.2)"
    IN_ROUTING_DIRECT = "it is an in-routing server of the destination: directly (1.3.2)"
    RELAY = "it shares no connected network with the next: through a routing server that does (1.3.2)"
    CONNECTOR = "the destination is a foreign system: through a connector server of its site"
    AFTER_FAILURE = "the direct connection has just failed: through a routing server (1.3.2)"
    ROUTING_SERVER = "the destination is in another site: to a routing server of its own (3.1.5.5)"
    SITE_GATE = "the destination is in another site: to a gate of its own site (3.1.5.6)"
    NEXT_SITE = "the routing table names the next site: to a gate there (3.1.5.7)"


class Decision(NamedTuple):
    """What GetNextHops found, and by which rule."""

    section: str
    rule: Rule
    hops: tuple[Machine, ...]
    """The best first; each of the others would do, too."""
    next_site: UUID | None = None
    """For ``NEXT_SITE``: which."""

    @property
    def identifiers(self) -> tuple[UUID, ...]:
        """The hops as GetNextHops gives them."""
        return tuple(hop.id for hop in self.hops)


class NoRouteError(LannerError):
    """The routing attempt fails (MS-MQBR 3.1.5.1): at which machine, and why."""

    code = StatusCode.MQ_ERROR_MACHINE_NOT_FOUND

    def __init__(self, at: str, section: str, why: str, *, hint: str = "") -> None:
        super().__init__(f"no route at {at}: {why}", hint=hint)
        self.at = at
        self.section = section
        self.why = why
