"""The site graph as a drawing (``lanner route map``): sites, links with costs, gates, one least-cost tree."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from html import escape
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from lanner.model.errors import InvalidPropertyError
from lanner.routing.layout import place
from lanner.routing.topology import Topology

__all__ = ["MAX_DRAWN", "draw"]

MAX_DRAWN = 400
"""Sites in one drawing; more cannot be read, and the layout compares all pairs."""

_SPACING = 130.0
_MARGIN = 90.0
_TOP = 64.0
_RADIUS = 22.0
_MAX_LABEL = 18
_MAX_GATES = 2
_SHARES = (0.5, 0.45, 0.55, 0.4, 0.6, 0.35, 0.65, 0.3, 0.7, 0.25, 0.75, 0.2, 0.8)

_STYLE = """
text { font-family: system-ui, 'DejaVu Sans', Arial, sans-serif; fill: #1d2733; }
.halo { stroke: #ffffff; stroke-width: 4px; stroke-linejoin: round; }
.link { stroke: #a9b4c0; stroke-width: 1.6; }
.tree { stroke: #1665c1; stroke-width: 3.6; }
.out { stroke: #c0392b; stroke-width: 1.4; stroke-dasharray: 5 5; }
.site { fill: #ffffff; stroke: #51606f; stroke-width: 1.8; }
.root { fill: #1665c1; stroke: #0d4688; }
.reached { fill: #e4effb; stroke: #1665c1; }
.alone { fill: #fbe9e7; stroke: #c0392b; }
.foreign { stroke-dasharray: 4 3; }
.name { font-size: 14px; font-weight: 600; text-anchor: middle; }
.gates { font-size: 11.5px; text-anchor: middle; fill: #51606f; }
.missing { fill: #c0392b; }
.cost { font-size: 12.5px; text-anchor: middle; dominant-baseline: central; }
.heavy { font-weight: 700; fill: #0d4688; }
.far { font-size: 12px; font-weight: 600; text-anchor: middle; dominant-baseline: central; }
.small { font-size: 9px; }
.white { fill: #ffffff; }
.title { font-size: 17px; font-weight: 600; }
.legend { font-size: 11.5px; fill: #51606f; }
"""


def draw(topology: Topology, root: UUID | None = None) -> str:
    """Draw the sites of an enterprise; with ``root``, that site's least-cost tree and all costs from it."""
    graph = topology.graph
    if not len(graph):
        raise InvalidPropertyError("the enterprise has no sites to draw")
    if len(graph) > MAX_DRAWN:
        raise InvalidPropertyError(f"{len(graph):,} sites cannot be drawn; the limit is {MAX_DRAWN}")
    return "\n".join(_Drawing(topology, root).parts())


class _Drawing:
    def __init__(self, topology: Topology, root: UUID | None) -> None:
        self.topology = topology
        self.graph = topology.graph
        self.root = None if root is None else self.graph.index[root]
        self.names = [_printable(topology.site_name(site)) for site in self.graph.ids]
        # By name, so that the picture does not turn when an identifier changes.
        order = sorted(range(len(self.names)), key=lambda site: (self.names[site].casefold(), site))
        position = {site: number for number, site in enumerate(order)}
        pairs = [*self.graph.links, *self._left_out()]
        edges = [(position[one], position[other]) for one, other in pairs]
        placed = place(len(order), edges, _SPACING)
        points = placed[[position[site] for site in range(len(order))]]
        points -= points.min(axis=0)
        self.points: NDArray[np.float64] = points + np.array((_MARGIN, _MARGIN + _TOP))
        width, height = points.max(axis=0) + np.array((2 * _MARGIN, 2 * _MARGIN + _TOP))
        self.width, self.height = max(float(width), 620.0), float(height)
        self.points[:, 0] += (self.width - float(width)) / 2
        self.tree = self._tree()
        self.labels = np.array([self._label_box(site) for site in range(len(order))])

    def _tree(self) -> dict[tuple[int, int], bool]:
        """The links on the ways from the root to all sites, as they are walked hop by hop."""
        if self.root is None:
            return {}
        trees = {self.root: self.graph.tree((self.root,)).next_sites}
        found = {}
        for site in range(len(self.graph)):
            here = self.root
            while here != site:
                if here not in trees:
                    trees[here] = self.graph.tree((here,)).next_sites
                ahead = int(trees[here][site])
                if ahead < 0:
                    break
                found[min(here, ahead), max(here, ahead)] = True
                here = ahead
        return found

    def parts(self) -> Iterator[str]:
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width:.0f}" height="{self.height:.0f}" '
            f'viewBox="0 0 {self.width:.0f} {self.height:.0f}" role="img">'
        )
        yield f"<style>{_STYLE}</style>"
        yield '<rect width="100%" height="100%" fill="#ffffff"/>'
        yield from self._heading()
        yield from self._links()
        yield from self._sites()
        yield from self._costs()
        yield "</svg>\n"

    def _heading(self) -> Iterator[str]:
        title = _printable(self.topology.enterprise.enterprise.name)
        if self.root is not None:
            title += f": least-cost tree of {self.names[self.root]}"
        yield f"<title>{escape(title)}</title>"
        yield f'<text class="title" x="24" y="32">{escape(title)}</text>'
        words = "numbers on links: their costs; below a site: its gates"
        if self.root is not None:
            words += f"; in a site: the cost from {self.names[self.root]}"
        if self._left_out():
            words += "; dashed red: links that are left out"
        for number, line in enumerate(textwrap.wrap(words, int((self.width - 48) / 6.4))):
            yield f'<text class="legend" x="24" y="{52 + 15 * number}">{escape(line)}</text>'

    def _label_box(self, site: int) -> tuple[float, float, float, float]:
        """Where a site's label is: its middle, and half its width and height."""
        x, y = self.points[site]
        letters = max(len(_cut(self.names[site])) * 4.3, len(self._gates(site)) * 3.4)
        return float(x), float(y) + _RADIUS + 17, letters, 15.0

    def _gates(self, site: int) -> str:
        gates = [_printable(gate.name) for gate in self.topology.gates_of(self.graph.ids[site])]
        more = f" +{len(gates) - _MAX_GATES}" if len(gates) > _MAX_GATES else ""
        return ", ".join(_cut(gate) for gate in gates[:_MAX_GATES]) + more

    def _left_out(self) -> list[tuple[int, int]]:
        """Pairs of sites whose only links cannot be used."""
        index = self.graph.index
        pairs = {
            (min(ends), max(ends))
            for left_out in self.graph.left_out
            if len(ends := {index.get(left_out.link.site1, -1), index.get(left_out.link.site2, -1)}) == 2
            and -1 not in ends
        }
        return sorted(pairs - set(self.graph.links))

    def _line(self, kind: str, one: int, other: int) -> str:
        (x1, y1), (x2, y2) = self.points[one], self.points[other]
        return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'

    def _links(self) -> Iterator[str]:
        for one, other in self._left_out():
            yield self._line("out", one, other)
        for one, other in sorted(self.graph.links, key=lambda pair: pair in self.tree):
            yield self._line("tree" if (one, other) in self.tree else "link", one, other)

    def _costs(self) -> Iterator[str]:
        """Above everything, each where it is farthest from sites and other costs."""
        taken: list[NDArray[np.float64]] = []
        for (one, other), link in sorted(self.graph.links.items()):
            spot = self._free_spot(one, other, taken)
            taken.append(spot)
            kind = "cost heavy" if (one, other) in self.tree else "cost"
            yield from _text(kind, spot[0], spot[1], f"{link.cost:,}")

    def _free_spot(self, one: int, other: int, taken: list[NDArray[np.float64]]) -> NDArray[np.float64]:
        """The place on a link that is farthest from circles, labels and the costs that stand already."""
        best: NDArray[np.float64] = self.points[one]
        most = -1.0
        for share in _SHARES:
            spot = self.points[one] * (1 - share) + self.points[other] * share
            beside = np.maximum(np.abs(self.labels[:, :2] - spot) - self.labels[:, 2:], 0.0)
            circles = np.sqrt(((self.points - spot) ** 2).sum(axis=1)).min() - _RADIUS
            costs = np.sqrt(((np.array(taken).reshape(-1, 2) - spot) ** 2).sum(axis=1)).min(initial=99.0) - 8
            lines = self._distance_to_links(spot, one, other)
            room = min(
                float(np.sqrt((beside**2).sum(axis=1)).min()), float(circles), float(costs), lines, 14.0
            )
            if room > most + 0.5:
                best, most = spot, room
        return best

    def _distance_to_links(self, spot: NDArray[np.float64], one: int, other: int) -> float:
        """How far a place is from the links that cross the one between these sites."""
        ends = np.array(
            [pair for pair in self.graph.links if one not in pair and other not in pair], dtype=int
        )
        if not len(ends):
            return 99.0
        start, way = self.points[ends[:, 0]], self.points[ends[:, 1]] - self.points[ends[:, 0]]
        along = (((spot - start) * way).sum(axis=1) / (way**2).sum(axis=1)).clip(0, 1)
        nearest = start + way * along[:, None] - spot
        return float(np.sqrt((nearest**2).sum(axis=1)).min())

    def _sites(self) -> Iterator[str]:
        costs = None if self.root is None else self.graph.tree((self.root,)).costs
        for site, (x, y) in enumerate(self.points):
            identifier = self.graph.ids[site]
            known = self.topology.enterprise.site(identifier)
            kind = "site"
            if costs is not None:
                kind += " root" if site == self.root else " reached" if np.isfinite(costs[site]) else " alone"
            if known is not None and known.foreign:
                kind += " foreign"
            gates = [_printable(gate.name) for gate in self.topology.gates_of(identifier)]
            yield "<g>"
            yield f"<title>{escape(self.names[site])}: gates {escape(', '.join(gates) or 'none')}</title>"
            yield f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{_RADIUS:.0f}"/>'
            if costs is not None:
                far = f"{costs[site]:,.0f}" if np.isfinite(costs[site]) else "-"
                look = "far white" if site == self.root else "far small" if len(far) > 5 else "far"
                yield f'<text class="{look}" x="{x:.1f}" y="{y:.1f}">{far}</text>'
            yield from self._label(site, x, y + _RADIUS + 15)
            yield "</g>"

    def _label(self, site: int, x: float, y: float) -> Iterator[str]:
        yield from _text("name", x, y, _cut(self.names[site]))
        gates = self._gates(site)
        yield from _text("gates" if gates else "gates missing", x, y + 14, gates or "no gate")


def _text(kind: str, x: float, y: float, text: str) -> Iterator[str]:
    """A text that stands out from the lines under it, also where ``paint-order`` is unknown: drawn twice."""
    for one in (f"{kind} halo", kind):
        yield f'<text class="{one}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'


def _printable(text: str) -> str:
    """Without the control characters that no XML may have."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_LABEL else text[: _MAX_LABEL - 1] + "…"
