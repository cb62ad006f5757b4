from __future__ import annotations

from itertools import pairwise
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.routing.worlds import ENTERPRISE, Shape, enterprises, machine, machine_id, site_id, world

from lanner.model.enterprise import EnterpriseMap, Site
from lanner.model.errors import InvalidPropertyError
from lanner.routing.topology import Topology
from lanner.routing.whatif import MAX_SITES, what_if, with_costs

FIGURE_4 = world({"AB": 3, "BC": 1, "BD": 1, "CD": 1})


def test_a_dearer_link_moves_the_traffic() -> None:
    found = what_if(FIGURE_4, costs={frozenset(map(site_id, "BC")): 3})
    moved = {change.source + change.destination: change for change in found.changes}
    assert found.pairs == 12
    assert moved["AC"].before is not None
    assert moved["AC"].after is not None
    assert moved["AC"].before.sites == ("A", "B", "C")
    assert moved["AC"].after.sites == ("A", "B", "D", "C")
    assert moved["AC"].after.gates == ("A-GW", "B-GW", "D-GW", "C-GW")
    assert moved["AC"].added_cost == 1
    assert set(moved) == {"AC", "CA", "BC", "CB"}
    assert found.added_cost == 4
    assert not found.unreachable


def test_a_gate_that_is_down_takes_its_site_away() -> None:
    found = what_if(FIGURE_4, down=[machine_id("B-GW")])
    lost = {change.source + change.destination for change in found.unreachable}
    assert lost == {"AB", "BA", "AC", "CA", "AD", "DA", "BC", "CB", "BD", "DB"}
    assert {one.name: one.why for one in found.stranded} == {
        "B-GW": "it is down",
        "B-1": "no routing server of its site is up",
    }


def test_another_gate_changes_the_way_but_not_the_cost() -> None:
    source = world(
        {"AB": 1, "BC": 1},
        [
            machine("A-GW", "A", routing=True),
            machine("B-GW1", "B", routing=True),
            machine("B-GW2", "B", routing=True),
            machine("C-GW", "C", routing=True),
        ],
        gates={"A": ["A-GW"], "B": ["B-GW1", "B-GW2"], "C": ["C-GW"]},
    )
    best = min(("B-GW1", "B-GW2"), key=lambda name: machine_id(name).int)
    found = what_if(source, down=[machine_id(best)])
    assert {change.source + change.destination for change in found.changes} == {
        "AB",
        "BA",
        "BC",
        "CB",
        "AC",
        "CA",
    }
    assert found.added_cost == 0
    assert not found.unreachable


def test_a_gate_in_the_middle_of_a_long_chain_changes_all_ways_over_it() -> None:
    letters = "ABCDEFGHIJKLMNOPQRST"
    links = {one + other: 1 for one, other in pairwise(letters)}
    gates = {one: [f"{one}-GW"] for one in letters} | {"R": ["R-GW", "R-GW2"]}
    machines = [machine(name, name[0], routing=True) for names in gates.values() for name in names]
    best = min(gates["R"], key=lambda name: machine_id(name).int)
    found = what_if(world(links, machines, gates), down=[machine_id(best)])
    changed = {change.source + change.destination for change in found.changes}
    before, after = letters[:17], letters[18:]
    crossing = {one + other for one in before for other in after}
    ending = {one + "R" for one in before + after}
    assert changed == {pair for one in crossing | ending for pair in (one, one[::-1])}


def test_those_who_depend_on_a_listed_server_are_named() -> None:
    listing = machine("A-2", "A", out_routing=["A-GW"], in_routing=["A-GW"])
    helper = machine("A-RS", "A", routing=True)
    source = FIGURE_4.changed(machines=(*FIGURE_4.machines, listing, helper))
    found = what_if(source, down=[machine_id("A-GW")])
    assert [one.why for one in found.stranded if one.name == "A-2"] == [
        "all out-routing servers of A-2 are down: A-GW",
        "all in-routing servers of A-2 are down: A-GW",
    ]


def test_wrong_questions() -> None:
    with pytest.raises(InvalidPropertyError, match="there is no link between A and D"):
        with_costs(FIGURE_4, {frozenset(map(site_id, "AD")): 3})
    with pytest.raises(InvalidPropertyError, match="is not between 1 and 999,999"):
        with_costs(FIGURE_4, {frozenset(map(site_id, "AB")): 0})
    many = tuple(Site(id=site_id(str(number)), name=str(number)) for number in range(MAX_SITES + 1))
    with pytest.raises(InvalidPropertyError, match="pairs are compared"):
        what_if(EnterpriseMap(enterprise=ENTERPRISE, sites=many))


def routes(source: EnterpriseMap, down: tuple[UUID, ...] = ()) -> dict[tuple[str, str], object]:
    """All ways, site by site, walked one at a time."""
    topology = Topology(source, down)
    graph = topology.graph
    found: dict[tuple[str, str], object] = {}
    for one in graph.ids:
        for other in graph.ids:
            way = [one]
            while way[-1] != other:
                ahead = topology.table((way[-1],)).next_hop_site(other)
                if ahead is None:
                    break
                way.append(ahead)
            names = (topology.site_name(one), topology.site_name(other))
            gates = [gate.id for site in way for gate in topology.gates_of(site)[:1]]
            found[names] = (way, gates, topology.table((one,)).cost(other)) if way[-1] == other else None
    return found


@given(enterprises(Shape()), st.data())
@settings(max_examples=80, deadline=None)
def test_it_finds_what_comparing_one_by_one_finds(source: EnterpriseMap, data: st.DataObject) -> None:
    down = [data.draw(st.sampled_from(source.machines)).id] if data.draw(st.booleans()) else []
    costs = {}
    if source.links:
        link = data.draw(st.sampled_from(source.links))
        costs = {frozenset((link.site1, link.site2)): data.draw(st.integers(1, 9))}
    found = what_if(source, costs=costs, down=down)
    before, after = routes(source), routes(with_costs(source, costs), tuple(down))
    meant = {names for names in before if names[0] != names[1] and before[names] != after[names]}
    assert {(change.source, change.destination) for change in found.changes} == meant
    lost = {names for names in meant if before[names] and not after[names]}
    assert {(change.source, change.destination) for change in found.unreachable} == lost
