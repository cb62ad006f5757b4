"""Random enterprises: every way ends where it should, never loops, and costs what it must."""

from __future__ import annotations

import math
import random
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.routing.worlds import Shape, enterprises

from lanner.model.enterprise import EnterpriseMap, RoutingLink
from lanner.routing.decision import NoRouteError
from lanner.routing.explain import explain
from lanner.routing.next_hops import decide, get_next_hops
from lanner.routing.topology import Topology

ORDERLY = Shape()
SEVERAL_SITES = Shape(multi_site=True)
ODD = Shape(multi_site=True, networks=True, lists=True, gateless=True, wrong=True)


def least_costs(source: EnterpriseMap) -> dict[tuple[UUID, UUID], float]:
    """Floyd and Warshall's algorithm, which shares nothing with Dijkstra's, over links that can be taken."""
    sites = [site.id for site in source.sites]
    costs = {(one, other): 0.0 if one == other else math.inf for one in sites for other in sites}
    for link in source.links:
        if source.gates_of(link.site1) and source.gates_of(link.site2):
            for pair in ((link.site1, link.site2), (link.site2, link.site1)):
                costs[pair] = min(costs[pair], link.cost)
    for middle in sites:
        for one in sites:
            for other in sites:
                costs[one, other] = min(costs[one, other], costs[one, middle] + costs[middle, other])
    return costs


def check_all_pairs(source: EnterpriseMap, exact: bool) -> None:
    topology = Topology(source)
    costs = least_costs(source)
    for one in source.machines:
        for other in source.machines:
            best = min((costs[here, there] for here in one.sites for there in other.sites), default=math.inf)
            found = explain(topology, one.id, other.id)
            assert found.hops[0] == one.name
            assert len(set(found.hops)) == len(found.hops)
            if exact:
                assert found.is_reached == (best < math.inf)
            if found.is_reached:
                assert found.hops[-1] == other.name
                if exact:
                    assert found.cost == (0 if one.id == other.id else best)


@given(enterprises(ORDERLY))
@settings(max_examples=150, deadline=None)
def test_every_destination_is_reached_at_the_least_cost(source: EnterpriseMap) -> None:
    check_all_pairs(source, exact=True)


@given(enterprises(ORDERLY), st.data())
@settings(max_examples=100, deadline=None)
def test_so_it_is_after_any_change(source: EnterpriseMap, data: st.DataObject) -> None:
    for _ in range(data.draw(st.integers(1, 3))):
        kind = data.draw(st.sampled_from(["remove link", "change cost", "add link", "remove machine"]))
        links = list(source.links)
        match kind:
            case "remove link" if links:
                links.pop(data.draw(st.integers(0, len(links) - 1)))
            case "change cost" if links:
                number = data.draw(st.integers(0, len(links) - 1))
                old = links[number]
                links[number] = RoutingLink(
                    id=old.id,
                    site1=old.site1,
                    site2=old.site2,
                    gates=old.gates,
                    cost=data.draw(st.integers(1, 9)),
                )
            case "add link" if len(source.sites) > 1:
                one, other = data.draw(
                    st.lists(st.sampled_from(source.sites), min_size=2, max_size=2, unique_by=lambda s: s.id)
                )
                gates = tuple(gate.id for site in (one, other) for gate in source.gates_of(site.id))
                links.append(RoutingLink(id=UUID(int=999), site1=one.id, site2=other.id, cost=1, gates=gates))
            case "remove machine":
                gone = data.draw(st.sampled_from(source.machines))
                rest = tuple(one for one in source.machines if one is not gone)
                # The property is about enterprises whose sites have a routing server each.
                after = source.changed(machines=rest)
                if rest and all(after.routing_servers_in(site.id) for site in source.sites):
                    source = after
        source = source.changed(links=tuple(links))
    check_all_pairs(
        source, exact=all(source.routing_servers_in(site.id) for site in source.sites) and _gated(source)
    )


def _gated(source: EnterpriseMap) -> bool:
    """Whether a site that could be left by a routing server has a gate, as MS-MQBR 1.5 demands."""
    return all(source.gates_of(site.id) or not source.links_of(site.id) for site in source.sites)


@given(enterprises(SEVERAL_SITES))
@settings(max_examples=150, deadline=None)
def test_machines_in_several_sites_are_reached_and_cost_no_more(source: EnterpriseMap) -> None:
    """A gate of two sites joins them for nothing, so a way may turn out cheaper than its links promised."""
    topology = Topology(source)
    costs = least_costs(source)
    for one in source.machines:
        for other in source.machines:
            best = min(costs[here, there] for here in one.sites for there in other.sites)
            found = explain(topology, one.id, other.id)
            assert len(set(found.hops)) == len(found.hops)
            if best < math.inf:
                assert found.is_reached
                assert found.cost <= best


@given(enterprises(ODD), st.data())
@settings(max_examples=300, deadline=None)
def test_no_choice_of_hops_loops_however_odd_the_enterprise(
    source: EnterpriseMap, data: st.DataObject
) -> None:
    """Every offered hop may be taken, not the first alone: the ways form no cycle."""
    down = data.draw(st.lists(st.sampled_from([one.id for one in source.machines]), max_size=2))
    failed = data.draw(st.lists(st.sampled_from([one.id for one in source.machines]), max_size=2))
    topology = Topology(source, down)
    for target in source.machines:
        done: set[UUID] = set()
        for start in source.machines:
            _no_cycle(topology, start.id, target.id, failed, [], done)


@given(enterprises(ODD), st.randoms(use_true_random=False))
@settings(max_examples=200, deadline=None)
def test_what_is_remembered_is_what_would_be_decided(source: EnterpriseMap, order: random.Random) -> None:
    topology = Topology(source)
    pairs = [(one.id, other.id) for one in source.machines for other in source.machines]
    order.shuffle(pairs)
    for one, other in pairs:
        try:
            meant = decide(topology, one, other).identifiers
        except NoRouteError:
            with pytest.raises(NoRouteError):
                get_next_hops(topology, one, other)
        else:
            assert get_next_hops(topology, one, other) == meant


def _no_cycle(
    topology: Topology, here: UUID, target: UUID, failed: list[UUID], way: list[UUID], done: set[UUID]
) -> None:
    assert here not in way
    if here == target or here in done:
        return
    try:
        hops = decide(topology, here, target, failed).hops
    except NoRouteError:
        hops = ()
    for hop in hops:
        assert hop.id not in topology.down
        assert hop.id == target or hop.routes
        _no_cycle(topology, hop.id, target, failed, [*way, here], done)
    done.add(here)
