"""Spark finds what ``lanner.routing`` finds."""

from __future__ import annotations

import random
from pathlib import Path

from pyspark.sql import SparkSession
from tests.pipeline.histories import Fleet
from tests.pipeline.lake import Lake
from tests.routing.worlds import machine, machine_id, site_id, world

from lanner.model.enterprise import EnterpriseMap
from lanner.pipeline.paths import link_load, observed_traffic, pairs_of, paths
from lanner.pipeline.routes import Scenario, gate_tables, named, routes, sources, what_if
from lanner.routing.explain import explain
from lanner.routing.topology import Topology
from lanner.routing.whatif import what_if as what_if_here


def some_world(seed: int) -> EnterpriseMap:
    chance = random.Random(seed)
    letters = "ABCDEFGHIJ"
    links = {
        f"{one}{other}": chance.randint(1, 4) for one, other in zip(letters[1:8], letters[:7], strict=True)
    }
    links |= {"".join(chance.sample(letters[:8], 2)): chance.randint(1, 9) for _ in range(6)}
    links["IJ"] = 2  # apart from all others
    names = sorted({letter for pair in links for letter in pair})
    machines = [machine(f"{name}-GW", name, routing=True) for name in names]
    machines += [machine(f"{name}-1", name) for name in names]
    machines.append(machine("AH-GW", "A", "H", routing=True))
    gates = {name: [f"{name}-GW"] + (["AH-GW"] if name in "AH" else []) for name in names}
    return world(links, machines, gates)


def test_every_gate_has_its_own_table(spark: SparkSession) -> None:
    enterprise = some_world(7)
    topology = Topology(enterprise)
    meaning = sources(spark, enterprise)
    found = named(routes(spark, enterprise), meaning, "source", "destination", "next_site")
    by_source: dict[str, set[tuple[str, str, int]]] = {}
    for row in found.collect():
        by_source.setdefault(row["source"], set()).add((row["destination"], row["next_site"], row["cost"]))
    names = {row["source"]: row["name"] for row in meaning.collect()}
    tables = gate_tables(spark, enterprise).collect()
    assert {row["gate"] for row in tables} == {one.name for one in enterprise.machines if one.routes}
    for row in tables:
        gate = enterprise.machine_named(row["gate"])
        assert gate is not None
        wanted = {
            (topology.site_name(one.destination_site), topology.site_name(one.next_hop_site), one.cost)
            for one in topology.table(gate.sites)
        }
        assert by_source[names[row["source"]]] == wanted


def test_many_changes_at_once(spark: SparkSession) -> None:
    enterprise = some_world(11)
    link = enterprise.links[0]
    scenarios = [
        Scenario("dearer", costs=((link.site1, link.site2, 50),)),
        Scenario("gate down", down=(machine_id("C-GW"),)),
        Scenario("nothing"),
    ]
    meaning = sources(spark, enterprise)
    found = named(what_if(spark, enterprise, scenarios), meaning, "source", "destination").collect()
    for scenario in scenarios:
        costs = {frozenset((one, other)): cost for one, other, cost in scenario.costs}
        here = what_if_here(enterprise, costs=costs, down=scenario.down)
        wanted = {
            (change.source, change.destination): (
                change.before.cost if change.before else None,
                change.after.cost if change.after else None,
            )
            for change in here.changes
            if _first_step_or_cost_differs(change)
        }
        assert {
            (row["source"], row["destination"]): (row["cost_before"], row["cost_after"])
            for row in found
            if row["scenario"] == scenario.name
        } == wanted
    assert site_id("A") is not None


def _first_step_or_cost_differs(change: object) -> bool:
    before, after = getattr(change, "before"), getattr(change, "after")  # noqa: B009
    if before is None or after is None:
        return True
    return bool(before.cost != after.cost or before.sites[1] != after.sites[1])


def test_paths_are_those_that_are_explained(spark: SparkSession) -> None:
    enterprise = some_world(3)
    topology = Topology(enterprise)
    pairs = [("A-1", "H-1"), ("B-1", "G-1"), ("A-1", "J-1"), ("A-1", "nobody")]
    rows = {
        (row["source"], row["destination"]): row
        for row in paths(pairs_of(spark, pairs), enterprise).collect()
    }
    for one, other in pairs[:3]:
        wanted = explain(topology, machine_id(one), machine_id(other))
        row = rows[one, other]
        assert tuple(row["hops"]) == wanted.hops
        assert row["cost"] == (wanted.cost if wanted.is_reached else None)
        assert (row["why"] or "") == wanted.why
    assert rows["A-1", "nobody"]["why"] == "nobody is not in the directory"


def test_the_load_of_links_from_what_was_observed(spark: SparkSession, tmp_path: Path) -> None:
    enterprise = world({"AB": 1, "BC": 1})
    fleet = Fleet()
    fleet.deliver("A-1", "C-1", 3)
    fleet.deliver("B-1", "C-1", 2)
    lake = Lake(spark, tmp_path)
    lake.load(fleet.frame(spark))
    load = link_load(observed_traffic(lake.silver.messages()), enterprise).collect()
    found = {(row["from_site"], row["to_site"]): (row["messages"], row["bytes"]) for row in load}
    assert found == {("A", "B"): (3, 300), ("B", "C"): (5, 500)}
