from __future__ import annotations

import math

from tests.routing.worlds import site_id, world

from lanner.routing.table import QUERY_TIMER_SECONDS, RoutingTable
from lanner.routing.topology import Topology


def table_of(links: dict[str, int], *sites: str, more: str = "") -> RoutingTable:
    return Topology(world(links, more_sites=more)).table(tuple(map(site_id, sites)))


def test_a_row_for_each_site_that_can_be_reached() -> None:
    table = table_of({"AB": 3, "BC": 1, "BD": 1, "CD": 1}, "A", more="E")
    rows = {row.destination_site: (row.next_hop_site, row.cost) for row in table}
    assert rows == {
        site_id("A"): (site_id("A"), 0),
        site_id("B"): (site_id("B"), 3),
        site_id("C"): (site_id("B"), 4),
        site_id("D"): (site_id("B"), 4),
    }
    assert len(table) == 4
    assert table.next_hop_site(site_id("E")) is None
    assert table.next_hop_site(site_id("Z")) is None
    assert math.isinf(table.cost(site_id("E")))
    assert math.isinf(table.cost(site_id("Z")))


def test_a_destination_in_several_sites_goes_to_the_cheapest() -> None:
    table = table_of({"AB": 5, "AC": 2}, "A", more="E")
    assert table.cheapest([site_id("B"), site_id("C"), site_id("E")]) == site_id("C")
    assert table.cheapest([site_id("E")]) is None
    assert table.next_site_for_any((site_id("B"), site_id("C"))) == site_id("C")
    assert table.next_site_for_any((site_id("E"), site_id("Z"))) is None


def test_a_gate_of_two_sites_leaves_by_the_cheaper() -> None:
    table = table_of({"AC": 5, "BC": 2}, "A", "B")
    assert table.cost(site_id("C")) == 2
    assert table.leaving_site(site_id("C")) == site_id("B")


def test_the_timer_is_an_hour() -> None:
    assert QUERY_TIMER_SECONDS == 3600
