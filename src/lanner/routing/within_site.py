"""The last part of a way, inside a site, which MS-MQBR 3.1.5.1 to 3.1.5.3 have in common.

The pseudocode knows no connected networks; sections 1.3.1, 1.3.2 and 1.5 say what they mean, and here it
is done. A message goes at most to a relay, to an in-routing server and to the destination, in this order.
"""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from lanner.model.enterprise import Machine
from lanner.routing.decision import Decision, NoRouteError, Rule
from lanner.routing.topology import Topology

__all__ = ["preferred", "shares_site", "usable_servers", "within_site"]


def within_site(
    topology: Topology, here: Machine, target: Machine, failed: Collection[UUID], section: str
) -> Decision:
    """The last part of the way, which all three sections have in common."""
    if target.in_routing:
        servers = usable_servers(topology, here, target.in_routing, section, target, "in")
        if any(server.id == here.id for server in servers):
            return Decision(section, Rule.IN_ROUTING_DIRECT, (target,))
        if servers:
            near = [one for one in servers if topology.enterprise.share_network(here, one)]
            if near:
                return Decision(section, Rule.IN_ROUTING, preferred(near, failed))
            return _relay(topology, here, target, servers, failed, section)
    if target.foreign and not here.routes:
        connectors = [
            one
            for one in topology.routing_servers_near(here)
            if shares_site(one, target) and topology.enterprise.share_network(here, one)
        ]
        if connectors:
            return Decision(section, Rule.CONNECTOR, preferred(connectors, failed))
    if not topology.enterprise.share_network(here, target):
        return _relay(topology, here, target, [target], failed, section)
    if target.id in failed and not here.routes:
        others = [
            one
            for one in topology.routing_servers_near(here)
            if one.id != target.id and shares_site(one, target) and _joins(topology, one, here, target)
        ]
        if others:
            return Decision(section, Rule.AFTER_FAILURE, (*preferred(others, failed), target))
    return Decision(section, Rule.DIRECT, (target,))


def _relay(
    topology: Topology,
    here: Machine,
    target: Machine,
    wanted: list[Machine],
    failed: Collection[UUID],
    section: str,
) -> Decision:
    """A routing server of the site that reaches both sides (MS-MQBR 1.3.2)."""
    found = [
        one
        for one in topology.routing_servers_near(here)
        if shares_site(one, target) and any(_joins(topology, one, here, end) for end in wanted)
    ]
    if found:
        return Decision(section, Rule.RELAY, preferred(found, failed))
    raise NoRouteError(
        here.name,
        section,
        f"it shares no connected network with {wanted[0].name}, and no routing server of the site joins them",
        hint="a routing server must be on all networks of its site (MS-MQBR 1.5)",
    )


def usable_servers(
    topology: Topology, here: Machine, listed: tuple[UUID, ...], section: str, owner: Machine, way: str
) -> list[Machine]:
    """Those of an in- or out-routing list that can do it, in the order of the list.

    Entries that are unknown, no routing servers, or out of the owner's reach are left out, as if they were
    not listed. If all that could do it are down, nobody else may step in: the list is a rule, not a wish.
    """
    found = [topology.machines.get(one) for one in listed]
    able = [
        one
        for one in found
        if one is not None
        and one.routes
        and one.id != owner.id
        and topology.enterprise.share_network(one, owner)
    ]
    up = [one for one in able if one.id not in topology.down]
    if able and not up:
        names = ", ".join(one.name for one in able)
        raise NoRouteError(here.name, section, f"all {way}-routing servers of {owner.name} are down: {names}")
    return up


def preferred(found: Collection[Machine], failed: Collection[UUID]) -> tuple[Machine, ...]:
    """Those that have not just failed first, then the smallest identifier (decision 22)."""
    return tuple(sorted(found, key=lambda one: (one.id in failed, one.id.int)))


def shares_site(one: Machine, other: Machine) -> bool:
    """Whether two queue managers have a site in common."""
    return not set(one.sites).isdisjoint(other.sites)


def _joins(topology: Topology, middle: Machine, one: Machine, other: Machine) -> bool:
    share = topology.enterprise.share_network
    return share(middle, one) and share(middle, other)
