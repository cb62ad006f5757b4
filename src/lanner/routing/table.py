"""The RoutingTable of a site gate (MS-MQBR 3.1.1.2)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from uuid import UUID

from lanner.routing.graph import NO_SITE, SiteGraph

__all__ = ["QUERY_TIMER_SECONDS", "Row", "RoutingTable"]

QUERY_TIMER_SECONDS = 3600
"""The QueueManager Query Timer (MS-MQBR 3.1.2.1, 3.1.3): when it fires, the table is made anew."""


class Row(NamedTuple):
    """A record of the table; the cost is ours, for people to read."""

    destination_site: UUID
    next_hop_site: UUID
    cost: int


class RoutingTable:
    """For each site, the next site on the least-cost way to it (MS-MQBR 3.1.1.2, 3.1.3.1).

    A site that cannot be reached has no row. A gate's own sites lead to themselves, at no cost.
    """

    __slots__ = ("_costs", "_graph", "_ids", "_index", "_next", "sites")

    def __init__(self, graph: SiteGraph, sites: Iterable[UUID]) -> None:
        self.sites = tuple(site for site in sites if site in graph.index)
        tree = graph.tree(graph.index[site] for site in self.sites)
        self._graph = graph
        self._ids = graph.ids
        self._index = graph.index
        # Single numbers come out of a list faster than out of an array; costs are asked for less often.
        self._next: list[int] = tree.next_sites.tolist()
        self._costs = tree.costs

    def next_hop_site(self, destination: UUID) -> UUID | None:
        """NextHopSiteID for a DestinationSiteID."""
        number = self._index.get(destination)
        if number is None:
            return None
        next_site = self._next[number]
        return None if next_site == NO_SITE else self._ids[next_site]

    def cost(self, destination: UUID) -> float:
        """What the way to a site costs; infinite if there is none."""
        number = self._index.get(destination)
        return math.inf if number is None else float(self._costs[number])

    def cheapest(self, destinations: Iterable[UUID]) -> UUID | None:
        """The destination's site that is cheapest to reach (decision 23), or nothing.

        Of equals, the one whose next site has the smallest identifier; then its own identifier decides.
        """
        found: tuple[float, int, int] | None = None
        for site in destinations:
            number = self._index.get(site)
            if number is None or self._next[number] == NO_SITE:
                continue
            key = (float(self._costs[number]), self._next[number], number)
            if found is None or key < found:
                found = key
        return None if found is None else self._graph.ids[found[2]]

    def next_site_for_any(self, destinations: tuple[UUID, ...]) -> UUID | None:
        """The next site on the way to the cheapest of a destination's sites, or nothing."""
        if len(destinations) == 1:
            return self.next_hop_site(destinations[0])
        nearest = self.cheapest(destinations)
        return None if nearest is None else self.next_hop_site(nearest)

    def leaving_site(self, next_site: UUID) -> UUID:
        """The gate's own site whose link to a neighbour is cheapest."""
        graph, number = self._graph, self._index[next_site]
        own = [self._index[site] for site in self.sites]
        joined = set(graph.neighbours(number))
        return graph.ids[min((one for one in own if one in joined), key=lambda one: graph.cost(one, number))]

    def __iter__(self) -> Iterator[Row]:
        for number, next_site in enumerate(self._next):
            if next_site != NO_SITE:
                yield Row(self._graph.ids[number], self._graph.ids[next_site], int(self._costs[number]))

    def __len__(self) -> int:
        return len(self._next) - self._next.count(NO_SITE)
