"""The checks of queue managers: their sites, networks and routing servers."""

from __future__ import annotations

from collections.abc import Iterator

from lanner.directory.findings import Finding, Kind, Namer, Severity
from lanner.model.enterprise import EnterpriseMap, Machine

__all__ = ["MACHINE_CHECKS"]


def _sites(source: EnterpriseMap, namer: Namer) -> Iterator[Finding]:
    for number, machine in enumerate(source.machines):
        if not machine.sites:
            yield Finding(
                severity=Severity.ERROR,
                kind=Kind.NO_SITE,
                place=namer.place("manager", number),
                what=f"{machine.name} belongs to no site: nothing can be routed to it or from it",
                fix='add sites = ["..."]',
            )
        for site in machine.sites:
            if source.site(site) is None:
                name = namer.site(site)
                yield Finding(
                    severity=Severity.ERROR,
                    kind=Kind.UNKNOWN_SITE,
                    place=namer.place("manager", number, "sites"),
                    what=f"the site {name} of {machine.name} is unknown",
                    fix=namer.nearest(name, source.sites) or "add the site",
                )


def _networks(source: EnterpriseMap, namer: Namer) -> Iterator[Finding]:
    for number, machine in enumerate(source.machines):
        for network in machine.networks:
            if source.network(network) is None:
                name = namer.network(network)
                yield Finding(
                    severity=Severity.ERROR,
                    kind=Kind.UNKNOWN_NETWORK,
                    place=namer.place("manager", number, "networks"),
                    what=f"the network {name} of {machine.name} is unknown",
                    fix=namer.nearest(name, source.networks) or "add the network",
                )


def _isolated(source: EnterpriseMap, namer: Namer) -> Iterator[Finding]:
    """Routing servers that cannot do their work: no gate to send to, or no network of their site."""
    several = len(source.sites) > 1
    for number, machine in enumerate(source.machines):
        if not machine.routes or not machine.sites:
            continue
        gates = [gate for site in machine.sites for gate in source.gates_of(site)]
        if several and not any(
            gate.id == machine.id or source.share_network(machine, gate) for gate in gates
        ):
            why = "share no network with it" if gates else "do not exist"
            yield _isolated_finding(
                namer,
                number,
                machine,
                f"the gates of its sites {why}",
                "name a gate there, or join its network",
            )
        if not source.networks:
            continue
        peers = {one.id: one for site in machine.sites for one in source.machines_in(site)}
        apart = [one for one in peers.values() if not source.share_network(machine, one)]
        if apart:
            names = ", ".join(one.name for one in apart[:3]) + (", ..." if len(apart) > 3 else "")
            yield _isolated_finding(
                namer,
                number,
                machine,
                f"it shares no network with {names} of its site",
                "put it on all networks of its site (MS-MQBR 1.5)",
            )


def _isolated_finding(namer: Namer, number: int, machine: Machine, why: str, fix: str) -> Finding:
    return Finding(
        severity=Severity.ERROR,
        kind=Kind.ISOLATED_ROUTER,
        place=namer.place("manager", number),
        what=f"the routing server {machine.name} is isolated: {why}",
        fix=fix,
    )


def _lists(source: EnterpriseMap, namer: Namer) -> Iterator[Finding]:
    """The in- and out-routing lists: who is on them, and whether there is one of each (MS-MQBR 1.3.2)."""
    for number, machine in enumerate(source.machines):
        for key, listed in (("in_routing", machine.in_routing), ("out_routing", machine.out_routing)):
            for server in listed:
                finding = _listed(source, namer, number, key, source.machine(server), namer.machine(server))
                if finding is not None:
                    yield finding
        if bool(machine.in_routing) != bool(machine.out_routing):
            has, lacks = (
                ("in_routing", "out_routing") if machine.in_routing else ("out_routing", "in_routing")
            )
            effect = (
                "what it sends does not go through them"
                if has == "in_routing"
                else "what it gets does not come through them"
            )
            yield Finding(
                severity=Severity.WARNING,
                kind=Kind.ONE_WAY,
                place=namer.place("manager", number, has),
                what=f"{machine.name} has {has} and no {lacks}: {effect}",
                fix=f"add {lacks} if both directions are meant",
            )


def _listed(
    source: EnterpriseMap, namer: Namer, number: int, key: str, server: Machine | None, name: str
) -> Finding | None:
    owner = source.machines[number]
    if server is None:
        kind, what = Kind.UNKNOWN_MANAGER, f"the {key} server {name} is unknown: it is left out"
        fix = namer.nearest(name, source.machines) or "add the manager, or remove it from the list"
    elif not server.routes:
        kind, what = Kind.LIST_NOT_ROUTING, f"the {key} server {name} is no routing server: it is left out"
        fix = "give it routing = true, or name another"
    elif set(server.sites).isdisjoint(owner.sites):
        kind, what = Kind.LIST_OUTSIDE, f"the {key} server {name} is in no site of {owner.name}"
        fix = "name a routing server of its own site"
    else:
        return None
    severity = Severity.WARNING if kind is Kind.LIST_OUTSIDE else Severity.ERROR
    place = namer.place("manager", number, key)
    return Finding(severity=severity, kind=kind, place=place, what=what, fix=fix)


MACHINE_CHECKS = (_sites, _networks, _isolated, _lists)
