"""The checks of links, gates and the ways between sites."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from uuid import UUID

from lanner.directory.findings import Finding, Kind, Namer, Severity
from lanner.model.enterprise import MAX_LINK_COST, MIN_LINK_COST, EnterpriseMap, RoutingLink

__all__ = ["LINK_CHECKS"]


def _ends(source: EnterpriseMap, namer: Namer) -> Iterator[Finding]:
    """Unknown sites, links to themselves, costs out of range (MS-MQDMPR 3.1.1.8)."""
    for number, link in enumerate(source.links):
        for site in dict.fromkeys((link.site1, link.site2)):
            if source.site(site) is None:
                yield Finding(
                    severity=Severity.ERROR,
                    kind=Kind.UNKNOWN_SITE,
                    place=namer.place("link", number, "sites"),
                    what=f"the link's site {namer.site(site)} is unknown",
                    fix=namer.nearest(namer.site(site), source.sites) or "add the site",
                )
        if link.site1 == link.site2:
            yield Finding(
                severity=Severity.ERROR,
                kind=Kind.LINK_TO_ITSELF,
                place=namer.place("link", number, "sites"),
                what=f"the link leads from {namer.site(link.site1)} to itself",
                fix="name two sites, or remove the link",
            )
        if not link.has_right_cost:
            yield Finding(
                severity=Severity.ERROR,
                kind=Kind.COST,
                place=namer.place("link", number, "cost"),
                what=f"the cost {link.cost} is not between {MIN_LINK_COST} and {MAX_LINK_COST:,}: "
                "the link is left out",
                fix=f"write a cost from {MIN_LINK_COST} to {MAX_LINK_COST}",
            )


def _parallel(source: EnterpriseMap, namer: Namer) -> Iterator[Finding]:
    first: dict[frozenset[UUID], int] = {}
    for number, link in enumerate(source.links):
        known = first.setdefault(frozenset((link.site1, link.site2)), number)
        if known != number:
            costs = sorted((source.links[known].cost, link.cost))
            yield Finding(
                severity=Severity.WARNING,
                kind=Kind.PARALLEL_LINKS,
                place=namer.place("link", number, "sites"),
                what=f"{namer.site(link.site1)} and {namer.site(link.site2)} have a link already, "
                f"at {namer.place('link', known)}: the cheapest counts",
                fix=f"remove one (their costs are {costs[0]} and {costs[1]})",
            )


def _gates(source: EnterpriseMap, namer: Namer) -> Iterator[Finding]:
    """What makes a queue manager a gate (MS-MQBR 1.5, 3.1.5.8)."""
    for number, link in enumerate(source.links):
        place = namer.place("link", number, "gates") if link.gates else ""
        for gate in link.gates:
            machine = source.machine(gate)
            name = namer.machine(gate)
            ends = " or ".join(namer.site(site) for site in (link.site1, link.site2))
            if machine is None:
                fix = namer.nearest(name, source.machines) or "add the manager"
                yield _gate_error(Kind.UNKNOWN_MANAGER, place, f"the gate {name} is unknown", fix)
            elif link.site1 not in machine.sites and link.site2 not in machine.sites:
                what = f"the gate {name} belongs to neither {ends.replace(' or ', ' nor ')}"
                fix = f"add {ends} to its sites, or name another gate"
                yield _gate_error(Kind.GATE_OUTSIDE, place, what, fix)
            elif not machine.routes:
                why = "is a foreign system" if machine.foreign else "has no routing = true"
                fix = "name a queue manager" if machine.foreign else "give it routing = true"
                yield _gate_error(Kind.GATE_NOT_ROUTING, place, f"the gate {name} {why}", fix)


def _gate_error(kind: Kind, place: str, what: str, fix: str) -> Finding:
    return Finding(severity=Severity.ERROR, kind=kind, place=place, what=what, fix=fix)


def _sites_without_gates(source: EnterpriseMap, namer: Namer) -> Iterator[Finding]:
    for number, site in enumerate(source.sites):
        if source.links_of(site.id) and not source.gates_of(site.id):
            yield Finding(
                severity=Severity.ERROR,
                kind=Kind.NO_GATE,
                place=namer.place("site", number),
                what=f"{site.name} has links but no gate: no message can enter or leave it",
                fix=f"name a routing server of {site.name} in the gates of its links",
            )


def _gates_apart(source: EnterpriseMap, namer: Namer) -> Iterator[Finding]:
    """Each gate must reach each gate of the neighbouring sites (MS-MQBR 1.5)."""
    if not source.networks:
        return
    for number, link in enumerate(source.links):
        for one in source.gates_of(link.site1):
            for other in source.gates_of(link.site2):
                if one is not other and not source.share_network(one, other):
                    yield Finding(
                        severity=Severity.ERROR,
                        kind=Kind.GATES_APART,
                        place=namer.place("link", number, "gates"),
                        what=f"the gates {one.name} and {other.name} share no connected network",
                        fix="put both on one network",
                    )


def _unreachable(source: EnterpriseMap, namer: Namer) -> Iterator[Finding]:
    """Sites that the usable links do not join to the greatest group of sites."""
    groups = _groups(source)
    if len(groups) < 2:
        return
    rest = {site for group in groups[1:] for site in group}
    count = len(groups[0])
    for number, site in enumerate(source.sites):
        if site.id in rest:
            yield Finding(
                severity=Severity.ERROR,
                kind=Kind.UNREACHABLE_SITE,
                place=namer.place("site", number),
                what=f"no usable links lead from {site.name} to {namer.site(groups[0][0])}"
                + (f" and {count - 1} other sites" if count > 1 else ""),
                fix="add a link with gates at both ends",
            )


def _groups(source: EnterpriseMap) -> list[list[UUID]]:
    """The sites that can reach each other, the greatest group first; of equals, the first."""
    neighbours: defaultdict[UUID, list[UUID]] = defaultdict(list)
    for link in source.links:
        if _is_usable(source, link):
            neighbours[link.site1].append(link.site2)
            neighbours[link.site2].append(link.site1)
    seen: set[UUID] = set()
    groups = []
    for site in source.sites:
        if site.id in seen:
            continue
        seen.add(site.id)
        group = [site.id]
        for one in group:  # it grows while we go
            for other in neighbours[one]:
                if other not in seen:
                    seen.add(other)
                    group.append(other)
        groups.append(group)
    return sorted(groups, key=len, reverse=True)


def _is_usable(source: EnterpriseMap, link: RoutingLink) -> bool:
    ends = (link.site1, link.site2)
    return link.has_right_cost and all(source.site(site) and source.gates_of(site) for site in ends)


LINK_CHECKS = (_ends, _parallel, _gates, _sites_without_gates, _gates_apart, _unreachable)
