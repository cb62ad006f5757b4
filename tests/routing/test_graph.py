from __future__ import annotations

import math
import random
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.routing.worlds import ENTERPRISE, site_id, world

from lanner.model.enterprise import EnterpriseMap, RoutingLink, Site
from lanner.routing.graph import NO_SITE, SiteGraph


def numbered(count: int, links: list[tuple[int, int, int]]) -> EnterpriseMap:
    """Sites whose identifiers are their numbers, so that the graph numbers them alike."""
    return EnterpriseMap(
        enterprise=ENTERPRISE,
        sites=tuple(Site(id=UUID(int=number + 1), name=str(number)) for number in range(count)),
        links=tuple(
            RoutingLink(id=UUID(int=number), site1=UUID(int=one + 1), site2=UUID(int=other + 1), cost=cost)
            for number, (one, other, cost) in enumerate(links)
        ),
    )


def by_hand(count: int, links: list[tuple[int, int, int]], root: int) -> tuple[list[float], list[int]]:
    """Bellman and Ford's costs, and the rule for equal costs word by word."""

    def costs_from(start: int) -> list[float]:
        costs = [math.inf] * count
        costs[start] = 0
        for _ in range(count):
            for one, other, cost in links:
                costs[other] = min(costs[other], costs[one] + cost)
                costs[one] = min(costs[one], costs[other] + cost)
        return costs

    costs = costs_from(root)
    near: dict[int, int] = {}
    for one, other, cost in links:
        for here, there in ((one, other), (other, one)):
            if here == root and there != root:
                near[there] = min(cost, near.get(there, cost))
    rest = {there: costs_from(there) for there in near}
    first = []
    for site in range(count):
        best = [there for there in near if near[there] + rest[there][site] == costs[site] < math.inf]
        first.append(root if site == root else min(best, default=NO_SITE))
    return costs, first


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_trees_are_those_of_the_rule(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 9))
    site = st.integers(0, count - 1)
    links = data.draw(st.lists(st.tuples(site, site, st.integers(1, 3)), max_size=25))
    links = [link for link in links if link[0] != link[1]]
    graph = SiteGraph(numbered(count, links))
    root = data.draw(site)
    tree = graph.tree((root,))
    costs, first = by_hand(count, links, root)
    assert tree.costs.tolist() == costs
    assert tree.next_sites.tolist() == first


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_several_roots_are_as_cheap_as_the_cheapest(data: st.DataObject) -> None:
    count = data.draw(st.integers(2, 9))
    site = st.integers(0, count - 1)
    links = data.draw(st.lists(st.tuples(site, site, st.integers(1, 3)), max_size=25))
    links = [link for link in links if link[0] != link[1]]
    graph = SiteGraph(numbered(count, links))
    roots = data.draw(st.lists(site, min_size=2, max_size=3, unique=True))
    tree = graph.tree(roots)
    single = [graph.tree((root,)) for root in roots]
    assert tree.costs.tolist() == np.min([one.costs for one in single], axis=0).tolist()
    for site_number, ahead in enumerate(tree.next_sites.tolist()):
        if site_number in roots:
            assert ahead == site_number
        elif math.isinf(tree.costs[site_number]):
            assert ahead == NO_SITE
        else:
            assert ahead not in roots
            rest = graph.tree((ahead,)).costs[site_number]
            step = min(graph.cost(root, ahead) for root in roots if ahead in graph.neighbours(root))
            assert step + rest == tree.costs[site_number]


def test_parallel_links_count_once_with_the_least_cost() -> None:
    graph = SiteGraph(numbered(2, [(0, 1, 5), (1, 0, 2), (0, 1, 9)]))
    assert graph.tree((0,)).costs.tolist() == [0, 2]
    assert graph.cost(1, 0) == 2
    assert [left.why for left in graph.left_out] == ["a parallel link costs 2", "a parallel link costs 2"]


@pytest.mark.parametrize("cost", [0, -1, 1_000_000])
def test_a_cost_out_of_range_leaves_the_link_out(cost: int) -> None:
    graph = SiteGraph(numbered(2, [(0, 1, cost)]))
    assert graph.tree((0,)).next_sites.tolist() == [0, NO_SITE]
    assert str(cost) in graph.left_out[0].why


def test_the_greatest_costs_add_up_exactly() -> None:
    links = [(number, number + 1, 999_999) for number in range(999)]
    tree = SiteGraph(numbered(1000, links)).tree((0,))
    assert tree.costs[999] == 999 * 999_999
    assert tree.next_sites[999] == 1


def test_links_to_unknown_sites_and_to_themselves_are_left_out() -> None:
    source = world({"AB": 1, "BB": 1})
    source = source.changed(sites=tuple(site for site in source.sites if site.name != "A"))
    graph = SiteGraph(source)
    assert not graph.links
    assert {left.why for left in graph.left_out} == {
        "one of its sites is not in the directory",
        "it leads from a site to itself",
    }


def test_a_site_without_gates_is_not_passed_through() -> None:
    source = world({"AB": 1, "BC": 1, "AC": 9})
    graph = SiteGraph(source, [site_id("B")])
    tree = graph.tree((graph.index[site_id("A")],))
    assert tree.costs[graph.index[site_id("C")]] == 9


def test_no_sites_and_no_roots() -> None:
    assert SiteGraph(numbered(0, [])).tree(()).costs.tolist() == []
    assert SiteGraph(numbered(2, [(0, 1, 1)])).tree(()).next_sites.tolist() == [NO_SITE, NO_SITE]


def test_a_hub_with_thousands_of_neighbours_is_no_trap() -> None:
    count = 5000
    links = [(0, number, random.Random(number).randint(1, 9)) for number in range(1, count)]
    tree = SiteGraph(numbered(count, links)).tree((0,))
    assert tree.next_sites.tolist() == list(range(count))
