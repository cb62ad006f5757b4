"""How explanations read; figure 4 of MS-MQBR 4 among them."""

from __future__ import annotations

import json

import msgspec
import pytest
from tests.routing.worlds import machine, machine_id, world

from lanner.model.enterprise import EnterpriseMap
from lanner.routing.explain import Explanation, explain, walk
from lanner.routing.topology import Topology


def explained(source: EnterpriseMap, one: str, other: str, down: tuple[str, ...] = ()) -> Explanation:
    topology = Topology(source, [machine_id(name) for name in down])
    return explain(topology, machine_id(one), machine_id(other))


def sites(found: Explanation) -> str:
    return "".join(dict.fromkeys(hop[0] for hop in found.hops))


def test_figure_4_with_a_dear_first_link() -> None:
    found = explained(world({"AB": 3, "BC": 1, "BD": 1, "CD": 1}), "A-1", "C-1")
    assert sites(found) == "ABC"
    assert found.cost == 4


def test_figure_4_with_a_detour() -> None:
    found = explained(world({"AB": 3, "BC": 3, "CD": 1, "BD": 1}), "A-1", "C-1")
    assert sites(found) == "ABDC"
    assert found.hops == ("A-1", "A-GW", "B-GW", "D-GW", "C-GW", "C-1")
    assert found.cost == 5


def test_the_json_is_exactly_what_was_agreed() -> None:
    found = explained(world({"AB": 3}), "A-1", "B-1")
    assert json.loads(msgspec.json.encode(found.as_json())) == {
        "hops": ["A-1", "A-GW", "B-GW", "B-1"],
        "cost": 3,
        "steps": [
            {"at": "A-1", "rule": "MS-MQBR 3.1.5.1", "next": ["A-GW"]},
            {"at": "A-GW", "rule": "MS-MQBR 3.1.5.3", "next": ["B-GW"]},
            {"at": "B-GW", "rule": "MS-MQBR 3.1.5.3", "next": ["B-1"]},
        ],
    }


def test_to_itself() -> None:
    assert explained(world({"AB": 3}), "A-1", "A-1").as_json() == {"hops": ["A-1"], "cost": 0, "steps": []}


def test_unreachable_says_where_and_why() -> None:
    found = explained(world({"AB": 1, "CD": 1}), "A-1", "C-1")
    assert not found.is_reached
    assert found.hops == ("A-1", "A-GW")
    assert found.stopped_at == "A-GW"
    assert found.as_json()["cost"] is None
    assert found.as_json()["unreachable"] == {
        "at": "A-GW",
        "why": "no links lead from A to C",
        "fix": "lanner directory check names what is wrong",
    }


def test_links_and_alternatives_are_told() -> None:
    found = explained(world({"AB": 3, "BC": 3, "CD": 1, "BD": 1}), "A-1", "C-1")
    at_b = found.steps[2]
    assert at_b.crossing is not None
    assert (at_b.crossing.from_site, at_b.crossing.to_site, at_b.crossing.cost) == ("B", "D", 1)
    lost = {one.what: one.why for one in at_b.alternatives}
    assert lost["site C"] == "over it the way costs 3 + 0 = 3, not 2"
    assert lost["site A"].startswith("over it the way costs 3 + 5")


def test_equal_costs_are_told() -> None:
    found = explained(world({"AB": 1, "BD": 1, "AC": 1, "CD": 1}), "A-1", "D-1")
    lost = [one.why for one in found.steps[1].alternatives]
    assert "it costs 2 too; the next site's identifier decides" in lost


def test_left_out_links_and_gates_that_are_down_are_told() -> None:
    source = world(
        {"AB": 1, "BA": 7},
        [
            machine("A-GW", "A", routing=True),
            machine("B-GW1", "B", routing=True),
            machine("B-GW2", "B", routing=True),
        ],
        gates={"A": ["A-GW"], "B": ["B-GW1", "B-GW2"]},
    )
    found = explained(source, "A-GW", "B-GW1", down=("B-GW2",))
    lost = {one.what: one.why for one in found.steps[0].alternatives}
    assert lost == {"link B-A": "it is left out: a parallel link costs 1", "B-GW2": "it is down"}


@pytest.mark.parametrize(
    ("one", "other", "what", "why"),
    [
        ("OUT", "A-1", "A-1", "out-routing servers go before a direct connection"),
        ("OUT", "A-1", "NONE", "it is listed, but no routing server"),
        ("A-1", "IN", "IN", "its in-routing servers go before a direct connection"),
        ("A-1", "IN", "A-FAR", "it is listed, but shares no connected network with IN"),
        ("A-X", "A-Y", "A-Y", "no connected network is shared with it"),
    ],
)
def test_what_else_was_listed(one: str, other: str, what: str, why: str) -> None:
    source = world(
        {"AB": 1},
        [
            machine("A-GW", "A", routing=True),
            machine("A-FAR", "A", routing=True, networks="Z"),
            machine("A-1", "A"),
            machine("NONE", "A"),
            machine("OUT", "A", out_routing=["A-GW", "NONE"]),
            machine("IN", "A", in_routing=["A-GW", "A-FAR"], networks="X"),
            machine("A-X", "A", networks="X"),
            machine("A-Y", "A", networks="Y"),
        ],
        gates={"A": ["A-GW"]},
    )
    lost = {one.what: one.why for one in explained(source, one, other).steps[0].alternatives}
    assert lost[what] == why


def test_an_unknown_entry_of_a_list_is_told_by_its_identifier() -> None:
    source = world(
        {"AB": 1},
        [machine("A-GW", "A", routing=True), machine("OUT", "A", out_routing=["A-GW", "GONE"])],
        gates={"A": ["A-GW"]},
    )
    lost = {one.what for one in explained(source, "OUT", "A-GW").steps[0].alternatives}
    assert str(machine_id("GONE")) in lost


def test_walk_gives_machines() -> None:
    topology = Topology(world({"AB": 1}))
    hops, error = walk(topology, machine_id("A-1"), machine_id("B-1"))
    assert [hop.name for hop in hops] == ["A-1", "A-GW", "B-GW", "B-1"]
    assert error is None
