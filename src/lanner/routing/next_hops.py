"""GetNextHops: where a message goes from here (MS-MQBR 3.1.5.1 to 3.1.5.3).

A way cannot loop, whichever of the offered hops is taken. Those who pass messages on are routing servers
alone. Between sites each gate hands over to a gate whose least cost to the destination is smaller, since
every link costs something. Within the destination's site there is an order that only goes forward.
"""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from lanner.model.enterprise import Machine
from lanner.routing.decision import FOR_CLIENT, FOR_GATE, FOR_ROUTER, NOBODY, Decision, NoRouteError, Rule
from lanner.routing.lookups import (
    get_queue_manager,
    get_routing_server,
    get_site_gate,
    get_site_gate_for_site,
)
from lanner.routing.topology import Topology
from lanner.routing.within_site import preferred, usable_servers, within_site

__all__ = [
    "decide",
    "get_next_hops",
    "get_next_hops_for_router",
    "get_next_hops_for_site_gate",
]


_BY_SITE = (Rule.NEXT_SITE, Rule.SITE_GATE, Rule.ROUTING_SERVER)
"""The rules that lead out of the site, and so look at nothing but the destination's."""


def get_next_hops(
    topology: Topology, source: UUID, destination: UUID, failed: Collection[UUID] = NOBODY
) -> tuple[UUID, ...]:
    """GetNextHops (MS-MQBR 3.1.5.1): the possible next hops, the best first.

    ``failed`` are queue managers that could not be reached just now: they come last. Raises NoRouteError.
    """
    if failed:
        return decide(topology, source, destination, failed).identifiers
    remembered = topology.remembered(source)
    site = topology.plain_destinations.get(destination)
    found = remembered.get(site) if site is not None else None
    if found is None:
        decision = decide(topology, source, destination)
        found = decision.identifiers
        if site is not None and decision.rule in _BY_SITE:
            remembered[site] = found
    return found


def decide(
    topology: Topology, source: UUID, destination: UUID, failed: Collection[UUID] = NOBODY
) -> Decision:
    """GetNextHops (MS-MQBR 3.1.5.1) with its reason. Raises NoRouteError."""
    here = get_queue_manager(topology, source)
    if here is None:
        raise NoRouteError(str(source), FOR_CLIENT, "it is not in the directory")
    target = get_queue_manager(topology, destination)
    if target is None:
        raise NoRouteError(here.name, FOR_CLIENT, f"the destination {destination} is not in the directory")
    if here is target:
        return Decision(FOR_CLIENT, Rule.ITSELF, (here,))
    if topology.down:
        if destination in topology.down:
            raise NoRouteError(here.name, FOR_CLIENT, f"the destination {target.name} is down")
        if source in topology.down:
            raise NoRouteError(here.name, FOR_CLIENT, "it is down itself")
    if here.routes:
        return get_next_hops_for_router(topology, here, target, failed)
    return _for_client(topology, here, target, failed)


def _for_client(topology: Topology, here: Machine, target: Machine, failed: Collection[UUID]) -> Decision:
    """The part of GetNextHops for those that are no routing servers (MS-MQBR 3.1.5.1)."""
    if here.out_routing:
        listed = usable_servers(topology, here, here.out_routing, FOR_CLIENT, here, "out")
        if listed:
            return Decision(FOR_CLIENT, Rule.OUT_ROUTING, preferred(listed, failed))
    if not topology.vantage(here).sites.isdisjoint(target.sites):
        return within_site(topology, here, target, failed, FOR_CLIENT)
    servers = get_routing_server(topology, here.id, target, failed)
    if not servers:
        raise NoRouteError(
            here.name,
            "MS-MQBR 3.1.5.5",
            f"its {_sites_in_words(topology, here)} no routing server that it can reach",
            hint="give a manager of the site routing = true",
        )
    return Decision(FOR_CLIENT, Rule.ROUTING_SERVER, servers)


def get_next_hops_for_router(
    topology: Topology, here: Machine, target: Machine, failed: Collection[UUID] = NOBODY
) -> Decision:
    """GetNextHopsForRouter (MS-MQBR 3.1.5.2)."""
    if topology.vantage(here).is_gate:  # IsSiteGate, 3.1.5.8
        return get_next_hops_for_site_gate(topology, here, target, failed)
    if _ends_here(topology, here, target):
        return within_site(topology, here, target, failed, FOR_ROUTER)
    gates = get_site_gate(topology, here.id, target, failed)
    if not gates:
        raise NoRouteError(
            here.name,
            "MS-MQBR 3.1.5.6",
            f"its {_sites_in_words(topology, here)} no gate that it can reach",
            hint="name a routing server of the site in the gates of one of its links",
        )
    return Decision(FOR_ROUTER, Rule.SITE_GATE, gates)


def get_next_hops_for_site_gate(
    topology: Topology, here: Machine, target: Machine, failed: Collection[UUID] = NOBODY
) -> Decision:
    """GetNextHopsForSiteGate (MS-MQBR 3.1.5.3)."""
    if _ends_here(topology, here, target):
        return within_site(topology, here, target, failed, FOR_GATE)
    vantage = topology.vantage(here)
    table = vantage.table
    assert table is not None  # here is a gate
    next_site = table.next_site_for_any(target.sites)
    if next_site is None:
        raise _no_way(topology, here, target)
    decision = vantage.next_site_decisions.get(next_site)
    if decision is None or failed:
        gates = get_site_gate_for_site(topology, next_site, failed)
        decision = Decision(FOR_GATE, Rule.NEXT_SITE, topology.reachable(here, gates), next_site)
        if not failed:
            vantage.next_site_decisions[next_site] = decision
    gates = decision.hops
    if not gates:
        raise NoRouteError(
            here.name,
            FOR_GATE,
            f"it shares no network with a gate of the next site, {topology.site_name(next_site)}",
            hint="a gate must reach the gates of all neighbouring sites (MS-MQBR 1.5)",
        )
    if len(gates) > 1 and any(gate is target for gate in gates):  # the destination is a gate there itself
        others = (gate for gate in gates if gate is not target)
        return decision._replace(hops=(target, *others))
    return decision


def _ends_here(topology: Topology, here: Machine, target: Machine) -> bool:
    """Whether what is left of the way lies within a site, or with an in-routing server elsewhere."""
    if not topology.vantage(here).sites.isdisjoint(target.sites):
        return True
    return (
        bool(target.in_routing)
        and here.id in target.in_routing
        and topology.enterprise.share_network(here, target)
    )


def _no_way(topology: Topology, here: Machine, target: Machine) -> NoRouteError:
    known = [site for site in target.sites if topology.enterprise.site(site)]
    if not known:
        return NoRouteError(
            here.name, FOR_GATE, f"{target.name} belongs to no site", hint="give it a site of the directory"
        )
    names = " or ".join(topology.site_name(site) for site in known)
    if not any(topology.gates_of(site) for site in known):
        down = ", ".join(gate.name for site in known for gate in topology.enterprise.gates_of(site))
        if down:
            return NoRouteError(here.name, FOR_GATE, f"all gates of {names} are down: {down}")
        return NoRouteError(
            here.name, FOR_GATE, f"{names} has no gate", hint="name one in the gates of its link"
        )
    own = " or ".join(topology.site_name(site) for site in here.sites)
    return NoRouteError(
        here.name,
        FOR_GATE,
        f"no links lead from {own} to {names}",
        hint="lanner directory check names what is wrong",
    )


def _sites_in_words(topology: Topology, machine: Machine) -> str:
    names = [topology.site_name(site) for site in machine.sites]
    if not names:
        return "site is not known: it has"
    return f"site {names[0]} has" if len(names) == 1 else f"sites {', '.join(names)} have"
