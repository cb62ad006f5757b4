"""What else a hop could have been, and why it was not."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple
from uuid import UUID

from lanner.model.enterprise import Machine
from lanner.routing.decision import Decision, Rule
from lanner.routing.topology import Topology

__all__ = ["Alternative", "alternatives"]


class Alternative(NamedTuple):
    """Something that lost, and why."""

    what: str
    why: str


def alternatives(
    topology: Topology, here: Machine, target: Machine, decision: Decision
) -> Iterator[Alternative]:
    """Everything that one step passed over."""
    match decision.rule:
        case Rule.NEXT_SITE:
            yield from _other_sites(topology, here, target, decision)
        case Rule.OUT_ROUTING:
            yield from _left_out(topology, here.out_routing, here)
            yield Alternative(target.name, "out-routing servers go before a direct connection")
        case Rule.IN_ROUTING:
            yield from _left_out(topology, target.in_routing, target)
            yield Alternative(target.name, "its in-routing servers go before a direct connection")
        case Rule.RELAY:
            yield Alternative(target.name, "no connected network is shared with it")
        case _:
            pass
    yield from _other_hops(topology, target, decision)
    if decision.next_site is not None:
        yield from _gates_passed_over(topology, here, decision)


def _other_hops(topology: Topology, target: Machine, decision: Decision) -> Iterator[Alternative]:
    """The rest of the list: each would do, and none is better."""
    best, *rest = decision.hops
    by_cost = decision.rule in (Rule.ROUTING_SERVER, Rule.SITE_GATE)
    for other in rest:
        why = f"its identifier is greater than {best.name}'s"
        if best.id == target.id:
            why = f"{best.name} is the destination itself"
        elif by_cost and best.sites != other.sites:
            costs = topology.cost_from(best, target), topology.cost_from(other, target)
            if costs[0] < costs[1]:
                why = f"the way from there {_costs(costs[1])}, from {best.name} {costs[0]:,.0f}"
        yield Alternative(other.name, why)


def _other_sites(
    topology: Topology, here: Machine, target: Machine, decision: Decision
) -> Iterator[Alternative]:
    """The other neighbours of a gate's sites, with what the way over them would cost."""
    graph = topology.graph
    own = [graph.index[site] for site in here.sites if site in graph.index]
    taken = graph.index[decision.next_site] if decision.next_site else -1
    best = topology.table(here.sites).cost(_nearest(topology, here, target))
    to_target = topology.table(target.sites)
    first: dict[int, int] = {}
    for site in own:
        for neighbour in graph.neighbours(site):
            if neighbour not in own and neighbour != taken:
                cost = graph.cost(site, neighbour)
                first[neighbour] = min(cost, first.get(neighbour, cost))
    for neighbour, cost in sorted(first.items()):
        rest = to_target.cost(graph.ids[neighbour])
        total = cost + rest
        name = f"site {topology.site_name(graph.ids[neighbour])}"
        if math.isinf(rest):
            yield Alternative(name, "no links lead on from there")
        elif total > best:
            yield Alternative(
                name, f"over it the way costs {cost:,} + {rest:,.0f} = {total:,.0f}, not {best:,.0f}"
            )
        else:
            yield Alternative(name, f"it costs {total:,.0f} too; the next site's identifier decides")
    for left_out in graph.left_out:
        ends = {left_out.link.site1, left_out.link.site2}
        if not ends.isdisjoint(here.sites):
            names = "-".join(topology.site_name(site) for site in (left_out.link.site1, left_out.link.site2))
            yield Alternative(f"link {names}", f"it is left out: {left_out.why}")


def _nearest(topology: Topology, here: Machine, target: Machine) -> UUID:
    nearest = topology.table(here.sites).cheapest(target.sites)
    assert nearest is not None  # the decision found it
    return nearest


def _gates_passed_over(topology: Topology, here: Machine, decision: Decision) -> Iterator[Alternative]:
    chosen = {hop.id for hop in decision.hops}
    for gate in topology.enterprise.gates_of(decision.next_site) if decision.next_site else ():
        if gate.id in topology.down:
            yield Alternative(gate.name, "it is down")
        elif gate.id not in chosen:
            yield Alternative(gate.name, f"it shares no connected network with {here.name}")


def _left_out(topology: Topology, listed: tuple[UUID, ...], owner: Machine) -> Iterator[Alternative]:
    for one in listed:
        server = topology.machines.get(one)
        if server is None:
            yield Alternative(str(one), "it is listed, but not in the directory")
        elif not server.routes:
            yield Alternative(server.name, "it is listed, but no routing server")
        elif not topology.enterprise.share_network(server, owner):
            yield Alternative(server.name, f"it is listed, but shares no connected network with {owner.name}")
        elif one in topology.down:
            yield Alternative(server.name, "it is down")


def _costs(cost: float) -> str:
    return "does not exist" if math.isinf(cost) else f"costs {cost:,.0f}"
