from __future__ import annotations

from uuid import UUID

from tests.routing.worlds import machine, machine_id, site_id, world

from lanner.model.directory_query import AttributeFilter, Operator
from lanner.model.enterprise import Machine
from lanner.routing.lookups import (
    get_directory_data,
    get_queue_manager,
    get_routing_server,
    get_site_gate,
    get_site_gate_for_site,
    is_site_gate,
)
from lanner.routing.topology import Topology

TWO_GATES = world(
    {"AB": 1},
    [
        machine("A-GW1", "A", routing=True),
        machine("A-GW2", "A", routing=True),
        machine("A-RS", "A", routing=True),
        machine("A-1", "A"),
        machine("B-GW", "B", routing=True),
        machine("OUT", "C", routing=True),
        machine("LAZY", "A"),
    ],
    gates={"A": ["A-GW1", "A-GW2", "LAZY", "OUT"], "B": ["B-GW"]},
    more_sites="C",
)


def by_identifier(*names: str) -> list[str]:
    return sorted(names, key=lambda name: machine_id(name).int)


def names(machines: tuple[Machine, ...]) -> list[str]:
    return [one.name for one in machines]


def test_get_queue_manager() -> None:
    topology = Topology(TWO_GATES)
    found = get_queue_manager(topology, machine_id("A-1"))
    assert found is not None
    assert found.name == "A-1"
    assert get_queue_manager(topology, UUID(int=1)) is None


def test_get_routing_server_by_identifier_and_failures_last() -> None:
    topology = Topology(TWO_GATES)
    best = by_identifier("A-GW1", "A-GW2", "A-RS")
    assert names(get_routing_server(topology, machine_id("A-1"))) == best
    failed = {machine_id(best[0])}
    assert names(get_routing_server(topology, machine_id("A-1"), None, failed)) == [*best[1:], best[0]]
    assert get_routing_server(topology, UUID(int=1)) == ()


def test_get_site_gate() -> None:
    topology = Topology(TWO_GATES)
    assert names(get_site_gate(topology, machine_id("A-RS"))) == by_identifier("A-GW1", "A-GW2")
    assert get_site_gate(topology, machine_id("OUT")) == ()
    assert get_site_gate(topology, UUID(int=1)) == ()


def test_get_site_gate_for_site() -> None:
    topology = Topology(TWO_GATES)
    best = by_identifier("A-GW1", "A-GW2")
    assert names(get_site_gate_for_site(topology, site_id("A"))) == best
    assert names(get_site_gate_for_site(topology, site_id("A"), {machine_id(best[0])})) == best[::-1]
    assert get_site_gate_for_site(topology, site_id("C")) == ()


def test_is_site_gate_needs_the_list_the_site_and_the_role() -> None:
    topology = Topology(TWO_GATES)
    assert is_site_gate(topology, machine_id("A-GW1"))
    assert not is_site_gate(topology, machine_id("A-RS"))  # no link names it
    assert not is_site_gate(topology, machine_id("OUT"))  # it is in another site
    assert not is_site_gate(topology, machine_id("LAZY"))  # it does not route
    assert not is_site_gate(topology, UUID(int=1))
    assert not is_site_gate(Topology(TWO_GATES, [machine_id("A-GW1")]), machine_id("A-GW1"))


def test_a_routing_server_with_a_cheaper_way_goes_first() -> None:
    source = world(
        {"AB": 5, "CB": 1},
        [
            machine("A-GW", "A", routing=True),
            machine("AC-GW", "A", "C", routing=True),
            machine("A-1", "A"),
            machine("B-GW", "B", routing=True),
            machine("B-1", "B"),
        ],
        gates={"A": ["A-GW"], "B": ["B-GW"], "C": ["AC-GW"]},
    )
    topology = Topology(source)
    target = get_queue_manager(topology, machine_id("B-1"))
    assert names(get_routing_server(topology, machine_id("A-1"), target)) == ["AC-GW", "A-GW"]


def test_get_directory_data() -> None:
    topology = Topology(TWO_GATES)
    assert len(get_directory_data(topology, "Site")) == 3
    only = AttributeFilter("Identifier", Operator.EQUALS, machine_id("A-1"))
    assert [one.id for one in get_directory_data(topology, "QueueManager", [only])] == [machine_id("A-1")]
    assert get_directory_data(topology, "ConnectedNetwork") == []
