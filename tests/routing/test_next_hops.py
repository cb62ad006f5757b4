"""The rules of MS-MQBR 3.1.5.1 to 3.1.5.3, one by one."""

from __future__ import annotations

from uuid import UUID

import pytest
from tests.routing.worlds import machine, machine_id, world

from lanner.model.enterprise import EnterpriseMap
from lanner.routing.decision import NoRouteError, Rule
from lanner.routing.next_hops import decide, get_next_hops
from lanner.routing.topology import Topology


def hops(
    source: EnterpriseMap,
    here: str,
    target: str,
    down: tuple[str, ...] = (),
    failed: tuple[str, ...] = (),
) -> tuple[Rule, list[str]]:
    topology = Topology(source, [machine_id(name) for name in down])
    found = decide(topology, machine_id(here), machine_id(target), [machine_id(name) for name in failed])
    return found.rule, [hop.name for hop in found.hops]


def why_not(source: EnterpriseMap, here: str, target: str, down: tuple[str, ...] = ()) -> NoRouteError:
    with pytest.raises(NoRouteError) as caught:
        hops(source, here, target, down)
    return caught.value


def by_identifier(*names: str) -> list[str]:
    return sorted(names, key=lambda name: machine_id(name).int)


TWO_SITES = world({"AB": 1})


def test_itself() -> None:
    assert hops(TWO_SITES, "A-1", "A-1") == (Rule.ITSELF, ["A-1"])


def test_client_to_the_same_site_directly() -> None:
    assert hops(TWO_SITES, "A-1", "A-GW") == (Rule.DIRECT, ["A-GW"])


def test_client_to_another_site_through_a_routing_server() -> None:
    assert hops(TWO_SITES, "A-1", "B-1") == (Rule.ROUTING_SERVER, ["A-GW"])


def test_gate_to_the_next_site() -> None:
    assert hops(TWO_SITES, "A-GW", "B-1") == (Rule.NEXT_SITE, ["B-GW"])
    assert hops(TWO_SITES, "B-GW", "B-1") == (Rule.DIRECT, ["B-1"])


def test_identifiers_in_and_out() -> None:
    topology = Topology(TWO_SITES)
    assert get_next_hops(topology, machine_id("A-1"), machine_id("B-1")) == (machine_id("A-GW"),)


def test_unknown_machines() -> None:
    topology = Topology(TWO_SITES)
    with pytest.raises(NoRouteError, match="is not in the directory"):
        get_next_hops(topology, UUID(int=5), machine_id("A-1"))
    with pytest.raises(NoRouteError, match="is not in the directory"):
        get_next_hops(topology, machine_id("A-1"), UUID(int=5))


LISTS = world(
    {"AB": 1},
    [
        machine("A-GW", "A", routing=True),
        machine("A-RS1", "A", routing=True),
        machine("A-RS2", "A", routing=True),
        machine("A-1", "A"),
        machine("OUT", "A", out_routing=["A-RS1", "A-RS2"]),
        machine("IN", "A", in_routing=["A-RS1", "A-RS2"]),
        machine("B-GW", "B", routing=True),
        machine("B-1", "B"),
    ],
    gates={"A": ["A-GW"], "B": ["B-GW"]},
)


def test_out_routing_servers_get_everything() -> None:
    assert hops(LISTS, "OUT", "A-1") == (Rule.OUT_ROUTING, by_identifier("A-RS1", "A-RS2"))
    assert hops(LISTS, "OUT", "B-1")[0] is Rule.OUT_ROUTING
    best, other = by_identifier("A-RS1", "A-RS2")
    assert hops(LISTS, "OUT", "B-1", failed=(best,))[1] == [other, best]
    assert hops(LISTS, "OUT", "B-1", down=(best,))[1] == [other]


def test_in_routing_servers_get_everything() -> None:
    assert hops(LISTS, "A-1", "IN") == (Rule.IN_ROUTING, by_identifier("A-RS1", "A-RS2"))
    assert hops(LISTS, "A-GW", "IN")[0] is Rule.IN_ROUTING
    assert hops(LISTS, "A-RS1", "IN") == (Rule.IN_ROUTING_DIRECT, ["IN"])
    assert hops(LISTS, "B-1", "IN") == (Rule.ROUTING_SERVER, ["B-GW"])


def test_if_all_listed_servers_are_down_nobody_steps_in() -> None:
    error = why_not(LISTS, "OUT", "A-1", down=("A-RS1", "A-RS2"))
    assert error.at == "OUT"
    assert "all out-routing servers of OUT are down" in error.why
    assert "all in-routing servers of IN are down" in why_not(LISTS, "A-1", "IN", ("A-RS1", "A-RS2")).why


def test_a_router_that_is_no_gate_hands_over_to_one() -> None:
    assert hops(LISTS, "A-RS1", "B-1") == (Rule.SITE_GATE, ["A-GW"])
    assert hops(LISTS, "A-RS1", "A-1") == (Rule.DIRECT, ["A-1"])


def test_a_routing_server_ignores_its_own_out_list() -> None:
    source = world({"AB": 1}, [*TWO_SITES.machines, machine("X", "A", routing=True, out_routing=["A-GW"])])
    assert hops(source, "X", "A-1") == (Rule.DIRECT, ["A-1"])


@pytest.mark.parametrize("listed", ["NOBODY", "A-1", "LISTING"])
def test_entries_that_cannot_route_are_left_out(listed: str) -> None:
    source = world(
        {"AB": 1},
        [machine("LISTING", "A", in_routing=[listed], out_routing=[listed])],
        gates={"A": ["A-GW"], "B": ["B-GW"]},
    )
    source = source.changed(machines=(*source.machines, *TWO_SITES.machines))
    assert hops(source, "LISTING", "A-1") == (Rule.DIRECT, ["A-1"])
    assert hops(source, "A-1", "LISTING") == (Rule.DIRECT, ["LISTING"])


NETWORKS = world(
    {"AB": 1},
    [
        machine("A-GW", "A", routing=True, networks="XY"),
        machine("A-X", "A", networks="X"),
        machine("A-Y", "A", networks="Y"),
        machine("A-XY", "A", networks="XY"),
        machine("A-Z", "A", networks="Z"),
        machine("A-ANY", "A"),
        machine("B-GW", "B", routing=True, networks="Z"),
        machine("B-1", "B", networks="Z"),
    ],
    gates={"A": ["A-GW"], "B": ["B-GW"]},
)


def test_direct_needs_a_shared_network() -> None:
    assert hops(NETWORKS, "A-X", "A-XY") == (Rule.DIRECT, ["A-XY"])
    assert hops(NETWORKS, "A-X", "A-ANY") == (Rule.DIRECT, ["A-ANY"])
    assert hops(NETWORKS, "A-X", "A-Y") == (Rule.RELAY, ["A-GW"])
    assert hops(NETWORKS, "A-GW", "A-Y") == (Rule.DIRECT, ["A-Y"])


def test_networks_that_nobody_joins() -> None:
    assert "no routing server of the site joins them" in why_not(NETWORKS, "A-X", "A-Z").why
    assert "shares no network with a gate of the next site, B" in why_not(NETWORKS, "A-GW", "B-1").why
    assert "no routing server that it can reach" in why_not(NETWORKS, "A-Z", "B-1").why


def test_after_a_failed_direct_connection_a_routing_server_helps() -> None:
    assert hops(TWO_SITES, "A-1", "A-1") == (Rule.ITSELF, ["A-1"])
    source = TWO_SITES.changed(machines=(*TWO_SITES.machines, machine("A-2", "A")))
    assert hops(source, "A-1", "A-2", failed=("A-2",)) == (Rule.AFTER_FAILURE, ["A-GW", "A-2"])


GATES = world(
    {"AB": 1, "BC": 1},
    [
        machine("A-GW", "A", routing=True),
        machine("B-GW1", "B", routing=True),
        machine("B-GW2", "B", routing=True),
        machine("C-GW", "C", routing=True),
    ],
    gates={"A": ["A-GW"], "B": ["B-GW1", "B-GW2"], "C": ["C-GW"]},
)


def test_of_several_gates_the_smallest_identifier_that_has_not_failed() -> None:
    best, other = by_identifier("B-GW1", "B-GW2")
    assert hops(GATES, "A-GW", "C-GW") == (Rule.NEXT_SITE, [best, other])
    assert hops(GATES, "A-GW", "C-GW", failed=(best,)) == (Rule.NEXT_SITE, [other, best])
    assert hops(GATES, "A-GW", "C-GW", down=(best,)) == (Rule.NEXT_SITE, [other])
    assert hops(GATES, "A-GW", "C-GW")[1] == [best, other]  # what failed once is not remembered here


def test_a_gate_that_is_the_destination_is_the_next_hop() -> None:
    best, other = by_identifier("B-GW1", "B-GW2")
    assert hops(GATES, "A-GW", other) == (Rule.NEXT_SITE, [other, best])


def test_a_foreign_system_is_reached_through_a_connector() -> None:
    source = world(
        {"AF": 1},
        [
            machine("A-GW", "A", routing=True),
            machine("CONN", "A", "F", routing=True),
            machine("A-1", "A"),
            machine("MAINFRAME", "F", foreign=True, routing=True),
            machine("GUEST", "F"),
        ],
        gates={"A": ["A-GW"], "F": ["CONN", "MAINFRAME"]},
    )
    assert hops(source, "A-GW", "MAINFRAME") == (Rule.NEXT_SITE, ["CONN"])
    assert hops(source, "CONN", "MAINFRAME") == (Rule.DIRECT, ["MAINFRAME"])
    assert hops(source, "GUEST", "MAINFRAME") == (Rule.CONNECTOR, ["CONN"])


def test_why_there_is_no_way() -> None:
    apart = world({"AB": 1, "CD": 1}, more_sites="E")
    assert "no links lead from A to C" in why_not(apart, "A-GW", "C-1").why
    assert "E has no gate" in why_not(apart, "A-GW", "E-1").why
    homeless = apart.changed(machines=(*apart.machines, machine("HOMELESS")))
    assert "HOMELESS belongs to no site" in why_not(homeless, "A-GW", "HOMELESS").why
    assert "site is not known" in why_not(homeless, "HOMELESS", "A-1").why
    assert "no gate that it can reach" in why_not(apart, "E-GW", "A-1").why
    assert "all gates of B are down: B-GW" in why_not(apart, "A-GW", "B-1", down=("B-GW",)).why
    assert "is down" in why_not(apart, "A-GW", "B-1", down=("B-1",)).why
    assert "down itself" in why_not(apart, "A-GW", "B-1", down=("A-GW",)).why


def test_a_way_around_a_site_without_gates() -> None:
    source = world({"AB": 1, "BC": 1, "AC": 9})
    assert hops(source, "A-GW", "C-1") == (Rule.NEXT_SITE, ["B-GW"])
    assert hops(source, "A-GW", "C-1", down=("B-GW",)) == (Rule.NEXT_SITE, ["C-GW"])


def test_what_is_remembered_is_what_would_be_decided() -> None:
    topology = Topology(LISTS)
    for _ in range(2):
        for here in LISTS.machines:
            for target in LISTS.machines:
                meant = decide(topology, here.id, target.id).identifiers
                assert get_next_hops(topology, here.id, target.id) == meant


def test_a_failure_is_not_remembered() -> None:
    topology = Topology(GATES)
    here, target = machine_id("A-GW"), machine_id("C-GW")
    best, other = map(machine_id, by_identifier("B-GW1", "B-GW2"))
    assert get_next_hops(topology, here, target, [best]) == (other, best)
    assert get_next_hops(topology, here, target) == (best, other)
    assert get_next_hops(topology, here, target, [best]) == (other, best)


def test_an_in_routing_server_elsewhere_connects_directly() -> None:
    listing = machine("B-2", "B", in_routing=["A-GW"])
    topology = Topology(TWO_SITES.changed(machines=(*TWO_SITES.machines, listing)))
    assert get_next_hops(topology, machine_id("A-GW"), machine_id("B-1")) == (machine_id("B-GW"),)
    assert get_next_hops(topology, machine_id("A-GW"), machine_id("B-2")) == (machine_id("B-2"),)
