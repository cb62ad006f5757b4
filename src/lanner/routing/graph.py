"""The enterprise as a graph: sites are vertices, routing links edges in both directions (MS-MQBR 3.1.3.1).

``SiteGraph`` is made once for a snapshot. ``SiteGraph.tree`` finds the least-cost tree of one or several
root sites: the cost of reaching each site, and the next site on the way there. Dijkstra's algorithm
itself is scipy's; its choice among equal costs is nobody's rule, so ours comes after it.

Of several ways with equal cost, the one whose next site has the smallest identifier wins. Sites are
numbered in the order of their identifiers, and the next sites are found by one walk in depth over the
edges that lie on some least-cost way: the first child of the root claims all that it can reach, then the
second what is left, and so on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import depth_first_order, dijkstra

from lanner.model.enterprise import EnterpriseMap, RoutingLink

__all__ = ["NO_SITE", "LeftOutLink", "SiteGraph", "Tree"]

NO_SITE = -1
"""In place of a site's number: there is none."""

_Numbers = NDArray[np.int32]
_Costs = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LeftOutLink:
    """A link that no message can take, and why."""

    link: RoutingLink
    why: str


@dataclass(frozen=True, slots=True)
class Tree:
    """The least-cost ways from one or several roots to all sites, by the sites' numbers."""

    roots: tuple[int, ...]
    costs: _Costs
    """Infinite where there is no way."""
    next_sites: _Numbers
    """A root's own number for the root itself; ``NO_SITE`` where there is no way."""


class SiteGraph:
    """The sites and usable links of an enterprise, in the form that scipy works on."""

    def __init__(self, enterprise: EnterpriseMap, gateless: Collection[UUID] = ()) -> None:
        """Make the graph; ``gateless`` sites have no gate to enter or leave by, so no link reaches them."""
        self.ids = sorted({site.id for site in enterprise.sites}, key=lambda site: site.int)
        self.index: Mapping[UUID, int] = {site: number for number, site in enumerate(self.ids)}
        self.left_out: list[LeftOutLink] = []
        self.links: dict[tuple[int, int], RoutingLink] = {}
        """The cheapest link between two sites, the smaller number first."""
        self._take_links(enterprise, frozenset(gateless))
        self.matrix = self._make_matrix()
        self._rows = np.repeat(np.arange(len(self.ids), dtype=np.int32), np.diff(self.matrix.indptr))

    def __len__(self) -> int:
        return len(self.ids)

    def cost(self, one: int, other: int) -> int:
        """What the cheapest link between two neighbours costs."""
        return self.links[min(one, other), max(one, other)].cost

    def neighbours(self, site: int) -> list[int]:
        """The sites that a usable link joins to this one, in the order of their identifiers."""
        row = self.matrix.indptr
        return [int(number) for number in self.matrix.indices[row[site] : row[site + 1]]]

    def tree(self, roots: Iterable[int]) -> Tree:
        """Find the least-cost ways from these sites to all others.

        With several roots, which are the sites of one gate, each site is reached from the cheapest.
        """
        chosen = tuple(sorted(set(roots)))
        count = len(self.ids)
        if not chosen:
            return Tree((), np.full(count, np.inf), np.full(count, NO_SITE, dtype=np.int32))
        costs: _Costs = dijkstra(self.matrix, indices=chosen, min_only=True)
        return Tree(chosen, costs, self._next_sites(chosen, costs))

    def _next_sites(self, roots: tuple[int, ...], costs: _Costs) -> _Numbers:
        count = len(self.ids)
        rows, columns = self._rows, self.matrix.indices
        # An edge is tight if it lies on some least-cost way. Costs are whole numbers far below 2**53, so
        # sums are exact. A tight edge never ends in a root, because no link costs nothing.
        starts = costs[rows]
        tight = np.flatnonzero((starts + self.matrix.data == costs[columns]) & (starts < np.inf))
        rows, columns = rows[tight], columns[tight]
        from_root = starts[tight] == 0
        firsts = np.unique(columns[from_root]).astype(np.int32)
        inner = ~from_root
        lengths = np.bincount(rows[inner], minlength=count + 1)
        lengths[count] = len(firsts)  # one more vertex stands for all roots together
        walk = csr_array(
            (
                np.ones(lengths.sum()),
                np.concatenate((columns[inner], firsts)),
                np.concatenate(((0,), np.cumsum(lengths))).astype(np.int32),
            ),
            shape=(count + 1, count + 1),
        )
        order, parents = depth_first_order(walk, count, directed=True, return_predecessors=True)
        order = order[1:]  # without that vertex
        # Every site stands, in this order, behind the first site of its way.
        is_first = parents[order] == count
        firsts_in_order = order[is_first]
        next_sites = np.full(count, NO_SITE, dtype=np.int32)
        next_sites[order] = firsts_in_order[np.cumsum(is_first) - 1]
        next_sites[list(roots)] = roots
        return next_sites

    def _take_links(self, enterprise: EnterpriseMap, gateless: frozenset[UUID]) -> None:
        for link in enterprise.links:
            why = self._why_unusable(link, gateless)
            if why:
                self.left_out.append(LeftOutLink(link, why))
                continue
            one, other = self.index[link.site1], self.index[link.site2]
            pair = (one, other) if one < other else (other, one)
            known = self.links.setdefault(pair, link)
            if known is not link:  # parallel links: the cheapest counts (decision 21)
                better, worse = (link, known) if link.cost < known.cost else (known, link)
                self.links[pair] = better
                self.left_out.append(LeftOutLink(worse, f"a parallel link costs {better.cost}"))

    def _why_unusable(self, link: RoutingLink, gateless: frozenset[UUID]) -> str:
        if link.site1 not in self.index or link.site2 not in self.index:
            return "one of its sites is not in the directory"
        if link.site1 == link.site2:
            return "it leads from a site to itself"
        if not link.has_right_cost:
            return f"its cost {link.cost} is not between 1 and 999,999"
        if link.site1 in gateless or link.site2 in gateless:
            return "a site at one end has no gate"
        return ""

    def _make_matrix(self) -> csr_array:
        count = len(self.ids)
        ends = np.array(list(self.links), dtype=np.int32).reshape(-1, 2)
        costs = np.array([link.cost for link in self.links.values()], dtype=np.float64)
        rows = np.concatenate((ends[:, 0], ends[:, 1]))
        columns = np.concatenate((ends[:, 1], ends[:, 0]))
        matrix = csr_array((np.tile(costs, 2), (rows, columns)), shape=(count, count))
        matrix.sort_indices()
        return matrix
