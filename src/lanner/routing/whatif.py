"""What a change would do to the routes before anybody makes it (``lanner route whatif``).

All pairs of sites are compared, before and after: the sites on the way, the gates that are used, the cost.
A manager that is down is taken out of routing, as if the directory did not have it; those who depend on it
alone, by a list of routing servers or as their site's only one, are named.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from uuid import UUID

import msgspec
import numpy as np
from numpy.typing import NDArray

from lanner.model.enterprise import MAX_LINK_COST, MIN_LINK_COST, EnterpriseMap, Machine
from lanner.model.errors import InvalidPropertyError
from lanner.routing.decision import FOR_CLIENT, NoRouteError
from lanner.routing.graph import NO_SITE
from lanner.routing.topology import Topology
from lanner.routing.within_site import usable_servers

__all__ = ["MAX_SITES", "Change", "Route", "Stranded", "WhatIf", "what_if", "with_costs"]

MAX_SITES = 2_000
"""All pairs of so many sites are four million, and take five seconds and 400 MB."""


@dataclass(frozen=True, slots=True)
class Route:
    """A way between two sites."""

    cost: int
    sites: tuple[str, ...]
    gates: tuple[str, ...]
    """The gate that is preferred in each of the sites."""


@dataclass(frozen=True, slots=True)
class Change:
    """A pair of sites whose way is another one; no route means that there is none."""

    source: str
    destination: str
    before: Route | None
    after: Route | None

    @property
    def added_cost(self) -> int | None:
        """What the way costs more, or less than nothing; nothing to tell if one of them does not exist."""
        return self.after.cost - self.before.cost if self.before and self.after else None


@dataclass(frozen=True, slots=True)
class Stranded:
    """A queue manager that depends on one that is down."""

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class WhatIf:
    """What changes."""

    pairs: int
    """How many were compared."""
    changes: tuple[Change, ...]
    stranded: tuple[Stranded, ...] = field(default=())

    @property
    def unreachable(self) -> list[Change]:
        """The pairs that lose their way."""
        return [change for change in self.changes if change.before and not change.after]

    @property
    def added_cost(self) -> int:
        """What all changed ways cost more, together."""
        return sum(change.added_cost or 0 for change in self.changes)


def with_costs(source: EnterpriseMap, costs: Mapping[frozenset[UUID], int]) -> EnterpriseMap:
    """The enterprise with other costs for the links between these pairs of sites."""
    for cost in costs.values():
        if not MIN_LINK_COST <= cost <= MAX_LINK_COST:
            raise InvalidPropertyError(
                f"the cost {cost} is not between {MIN_LINK_COST} and {MAX_LINK_COST:,}"
            )
    known = {frozenset((link.site1, link.site2)) for link in source.links}
    for pair in costs:
        if pair not in known:
            names = " and ".join(sorted(site.name for site in map(source.site, pair) if site))
            raise InvalidPropertyError(f"there is no link between {names}")
    return source.changed(
        links=tuple(
            msgspec.structs.replace(link, cost=costs[pair])
            if (pair := frozenset((link.site1, link.site2))) in costs
            else link
            for link in source.links
        )
    )


def what_if(
    source: EnterpriseMap, *, costs: Mapping[frozenset[UUID], int] | None = None, down: Collection[UUID] = ()
) -> WhatIf:
    """Compare the routes between all sites before and after a change."""
    if len(source.sites) > MAX_SITES:
        raise InvalidPropertyError(
            f"the enterprise has {len(source.sites):,} sites; pairs are compared for {MAX_SITES:,} at most"
        )
    before = _Routes(Topology(source))
    after = _Routes(Topology(with_costs(source, costs or {}), down))
    count = len(before.topology.graph)
    changed = before.differs_from(after)
    changes = [
        _change(before, after, int(one), int(other)) for one, other in zip(*np.nonzero(changed), strict=True)
    ]
    changes.sort(key=lambda change: (change.source.casefold(), change.destination.casefold()))
    stranded = tuple(_stranded(before.topology, after.topology)) if down else ()
    return WhatIf(count * (count - 1), tuple(changes), stranded)


class _Routes:
    """The next site and the cost for every pair of sites."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        graph = topology.graph
        count = len(graph)
        self.next: NDArray[np.int32] = np.full((count, count), NO_SITE, dtype=np.int32)
        self.costs: NDArray[np.float64] = np.full((count, count), np.inf)
        for site in range(count):
            tree = graph.tree((site,))
            self.next[site], self.costs[site] = tree.next_sites, tree.costs
        self.gates = [next(iter(topology.gates_of(site)), None) for site in graph.ids]

    def differs_from(self, other: _Routes) -> NDArray[np.bool_]:
        """Which pairs have another way: other sites on it, other gates, or another cost."""
        count = len(self.gates)
        gates = np.array(
            [one is not two for one, two in zip(self.gates, other.gates, strict=True)], dtype=bool
        )
        exists = (self.next != NO_SITE) | (other.next != NO_SITE)
        found: NDArray[np.bool_] = (self.next != other.next) | (self.costs != other.costs)
        found |= exists & (gates[:, None] | gates[None, :])
        # A way differs if the rest of it does; steps of double length find that in few rounds.
        columns = np.broadcast_to(np.arange(count), (count, count))
        ahead = np.where(self.next == NO_SITE, np.arange(count)[:, None], self.next)
        for _ in range(max(1, count.bit_length())):
            found = found | found[ahead, columns]
            ahead = ahead[ahead, columns]
        np.fill_diagonal(found, False)
        return found

    def route(self, one: int, other: int) -> Route | None:
        """The way between two sites, by their numbers."""
        if self.next[one, other] == NO_SITE:
            return None
        way = [one]
        while way[-1] != other:
            way.append(int(self.next[way[-1], other]))
        names = tuple(self.name(site) for site in way)
        gates = (self.gates[site] for site in way)
        return Route(int(self.costs[one, other]), names, tuple(gate.name if gate else "" for gate in gates))

    def name(self, site: int) -> str:
        """A site's name by its number."""
        return self.topology.site_name(self.topology.graph.ids[site])


def _change(before: _Routes, after: _Routes, one: int, other: int) -> Change:
    return Change(before.name(one), before.name(other), before.route(one, other), after.route(one, other))


def _stranded(before: Topology, after: Topology) -> Iterator[Stranded]:
    for machine in after.enterprise.machines:
        if machine.id in after.down:
            yield Stranded(machine.name, "it is down")
            continue
        if not machine.routes:
            yield from _cut_off(before, after, machine)
        for way, listed in (
            ("out", () if machine.routes else machine.out_routing),
            ("in", machine.in_routing),
        ):
            try:
                usable_servers(after, machine, listed, FOR_CLIENT, machine, way)
            except NoRouteError as error:
                yield Stranded(machine.name, error.why)


def _cut_off(before: Topology, after: Topology, machine: Machine) -> Iterator[Stranded]:
    had = any(before.enterprise.routing_servers_in(site) for site in machine.sites)
    if had and not after.routing_servers_near(machine):
        yield Stranded(machine.name, "no routing server of its site is up")
