"""Enterprises for the tests: small ones written out, and random ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from hypothesis import strategies as st

from lanner.model.enterprise import (
    ConnectedNetwork,
    Enterprise,
    EnterpriseMap,
    Machine,
    RoutingLink,
    Site,
    derived_id,
)

ENTERPRISE = Enterprise(id=derived_id("enterprise", "Test"), name="Test")


def site_id(name: str) -> UUID:
    return derived_id("site", name)


def machine_id(name: str) -> UUID:
    return derived_id("manager", name)


def network_id(name: str) -> UUID:
    return derived_id("network", name)


def machine(
    name: str,
    *sites: str,
    networks: Iterable[str] = (),
    in_routing: Iterable[str] = (),
    out_routing: Iterable[str] = (),
    **fields: Any,
) -> Machine:
    return Machine(
        id=machine_id(name),
        name=name,
        sites=tuple(map(site_id, sites)),
        networks=tuple(map(network_id, networks)),
        in_routing=tuple(map(machine_id, in_routing)),
        out_routing=tuple(map(machine_id, out_routing)),
        **fields,
    )


def world(
    links: Mapping[str, int],
    machines: Sequence[Machine] = (),
    gates: Mapping[str, Sequence[str]] | None = None,
    more_sites: Iterable[str] = (),
) -> EnterpriseMap:
    """Sites of one letter: ``{"AB": 3}``. Each has a gate ``A-GW`` and a client ``A-1``, or as given."""
    names = sorted({letter for pair in links for letter in pair} | set(more_sites))
    own = gates is None
    gates = gates or {name: [f"{name}-GW"] for name in names}
    found = list(machines)
    if own:
        for name in names:
            found += [machine(f"{name}-GW", name, routing=True), machine(f"{name}-1", name)]
    networks = {network for one in found for network in one.networks}
    return EnterpriseMap(
        enterprise=ENTERPRISE,
        sites=tuple(Site(id=site_id(name), name=name) for name in names),
        links=tuple(
            RoutingLink(
                id=derived_id("link", pair),
                site1=site_id(pair[0]),
                site2=site_id(pair[1]),
                cost=cost,
                gates=tuple(machine_id(gate) for end in pair for gate in gates.get(end, ())),
            )
            for pair, cost in links.items()
        ),
        networks=tuple(ConnectedNetwork(id=one, name=str(one)) for one in networks),
        machines=tuple(found),
    )


@dataclass(frozen=True)
class Shape:
    """How odd the random enterprises may be."""

    multi_site: bool = False
    networks: bool = False
    lists: bool = False
    gateless: bool = False
    wrong: bool = False


@st.composite
def enterprises(draw: st.DrawFn, shape: Shape) -> EnterpriseMap:  # noqa: C901
    count = draw(st.integers(1, 7))
    names = [chr(ord("A") + number) for number in range(count)]
    ids = {name: UUID(int=draw(st.integers(1, 1 << 20)) << 8 | number) for number, name in enumerate(names)}
    networks = [network_id(name) for name in "XYZ"] if shape.networks else []
    machines: list[dict[str, Any]] = []
    gates: dict[str, list[UUID]] = {name: [] for name in names}

    def add(name: str, home: str, routing: bool) -> UUID:
        identifier = UUID(int=draw(st.integers(1, 1 << 20)) << 16 | len(machines))
        if shape.wrong and machines and draw(st.integers(0, 7)) == 0:
            identifier = draw(st.sampled_from(machines))["id"]  # a clone
        sites = [ids[home]]
        if shape.multi_site:
            extra = draw(st.lists(st.sampled_from(names), max_size=2, unique=True))
            sites += [ids[one] for one in extra if one != home]
        on = draw(st.lists(st.sampled_from(networks), max_size=2, unique=True)) if networks else []
        machines.append(
            {
                "id": identifier,
                "name": name,
                "sites": tuple(sites),
                "routing": routing,
                "networks": tuple(on),
                "foreign": shape.wrong and draw(st.integers(0, 9)) == 0,
            }
        )
        return identifier

    for name in names:
        least = 0 if shape.gateless else 1
        for number in range(draw(st.integers(least, 2))):
            gates[name].append(add(f"{name}-GW{number}", name, not shape.wrong or draw(st.booleans())))
        for number in range(draw(st.integers(0, 1))):
            add(f"{name}-RS{number}", name, True)
        for number in range(draw(st.integers(1, 2))):
            add(f"{name}-{number}", name, False)
    everybody = [one["id"] for one in machines]
    routers = [one["id"] for one in machines if one["routing"]]
    if shape.lists and routers:
        pool = st.sampled_from(everybody if shape.wrong else routers)
        for one in machines:
            for key in ("out_routing", "in_routing"):
                if draw(st.integers(0, 3)) == 0:
                    one[key] = tuple(draw(st.lists(pool, max_size=2, unique=True)))
    costs = st.integers(1, 4) if not shape.wrong else st.integers(-1, 4)
    links = []
    for number in range(draw(st.integers(0, 2 * count))):
        near, far = draw(st.sampled_from(names)), draw(st.sampled_from(names))
        if near == far and not shape.wrong:
            continue
        links.append(
            RoutingLink(
                id=UUID(int=number + 1),
                site1=ids[near],
                site2=ids[far],
                cost=draw(costs),
                gates=tuple(gates[near] + gates[far]),
            )
        )
    return EnterpriseMap(
        enterprise=ENTERPRISE,
        sites=tuple(
            Site(id=ids[name], name=name)
            for name in names
            if not shape.wrong or draw(st.integers(0, 7))  # some are unknown
        ),
        links=tuple(links),
        networks=tuple(ConnectedNetwork(id=one, name=str(one)) for one in networks),
        machines=tuple(Machine(**one) for one in machines),
    )
