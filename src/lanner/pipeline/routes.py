"""Routes of enterprises too large for one manager: the functions of ``lanner.routing``, run by Spark.

A task takes a block of sources, makes the enterprise's graph once, and finds the least-cost tree of each
source. Sites have numbers in these tables, in the order of their identifiers: 25 million rows with names in
them would be mostly names. ``sources`` says what each number means; there, behind the sites, also stand the
gates that belong to several sites and so have a table of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
import pyarrow
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from lanner.model.enterprise import EnterpriseMap
from lanner.pipeline.columns import struct
from lanner.routing.graph import NO_SITE
from lanner.routing.topology import Topology
from lanner.routing.whatif import with_costs

__all__ = ["CHANGES", "ROUTES", "SOURCES", "Scenario", "gate_tables", "routes", "sources", "what_if"]

BLOCK = 64
"""Sources in one task's turn: 5,000 sites then give batches of 320,000 rows."""

ROUTES = struct("source int, destination int, next_site int, cost int")
"""From each source to each site that it reaches: the next site, and what the whole way costs."""

SOURCES = struct("source int, kind string, id string, name string", sites=struct("x strings")["x"].dataType)
"""What a number means: a site, or the sites of a gate that belongs to several."""

CHANGES = struct(
    "scenario string, source int, destination int, "
    "next_before int, next_after int, cost_before int, cost_after int"
)
"""Pairs of sites whose next site or cost is another one; null where there is no way."""

_ROUTES_ARROW = pyarrow.schema([(name, pyarrow.int32()) for name in ROUTES.names])


class Scenario(NamedTuple):
    """Changes that are tried together."""

    name: str
    costs: tuple[tuple[UUID, UUID, int], ...] = ()
    """Links between two sites, and what they would cost."""
    down: tuple[UUID, ...] = ()
    """Queue managers that would be down."""

    def applied_to(self, enterprise: EnterpriseMap) -> Topology:
        """The enterprise as it would be."""
        costs = {frozenset((one, other)): cost for one, other, cost in self.costs}
        return Topology(with_costs(enterprise, costs), self.down)


def sources(spark: SparkSession, enterprise: EnterpriseMap) -> DataFrame:
    """What the numbers of sites and sources mean."""
    topology = Topology(enterprise)
    sites = [
        (number, "site", str(site), topology.site_name(site), [topology.site_name(site)])
        for number, site in enumerate(topology.graph.ids)
    ]
    gates = [
        (
            len(sites) + number,
            "gate",
            str(gate.id),
            gate.name,
            # Sorted: a directory over LDAP gives them in any order, and the table is to be the same.
            sorted(topology.site_name(site) for site in gate.sites),
        )
        for number, gate in enumerate(_wide_gates(topology))
    ]
    return spark.createDataFrame(sites + gates, SOURCES)


def routes(spark: SparkSession, enterprise: EnterpriseMap, tasks: int | None = None) -> DataFrame:
    """Every pair's next site and cost, for all sources."""
    topology = Topology(enterprise)
    roots = _roots(topology)
    plain = _plain(enterprise)

    def work(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        here = Topology(plain)
        for batch in batches:
            numbers = batch.column(0).to_pylist()
            for start in range(0, len(numbers), BLOCK):
                yield _block(here, roots, numbers[start : start + BLOCK])

    return _spread(spark, len(roots), tasks).mapInArrow(work, ROUTES)


def gate_tables(spark: SparkSession, enterprise: EnterpriseMap) -> DataFrame:
    """Which source's rows are the routing table of which gate (MS-MQBR 3.1.1.2)."""
    topology = Topology(enterprise)
    wide = {gate.id: number for number, gate in enumerate(_wide_gates(topology), len(topology.graph))}
    gates = {gate.id: gate for site in topology.graph.ids for gate in topology.gates_of(site)}
    rows = [
        (str(gate.id), gate.name, wide.get(gate.id, topology.graph.index.get(gate.sites[0], NO_SITE)))
        for gate in gates.values()
    ]
    return spark.createDataFrame(rows, struct("gate_id string, gate string, source int"))


def what_if(
    spark: SparkSession, enterprise: EnterpriseMap, scenarios: Sequence[Scenario], tasks: int | None = None
) -> DataFrame:
    """The pairs of sites whose next site or cost changes, for many sets of changes at once."""
    count = len(Topology(enterprise).graph)
    for scenario in scenarios:
        scenario.applied_to(enterprise)  # a mistake is told here, and not by a task
    plain, chosen = _plain(enterprise), tuple(scenarios)

    def work(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        before = Topology(plain)
        after: tuple[int, Topology] | None = None
        for batch in batches:
            for number in batch.column(0).to_pylist():
                which, site = divmod(number, count)
                if after is None or after[0] != which:
                    after = (which, chosen[which].applied_to(plain))
                yield _changes(before, after[1], chosen[which].name, site)

    return _spread(spark, count * len(chosen), tasks).mapInArrow(work, CHANGES)


def named(frame: DataFrame, meaning: DataFrame, *columns: str) -> DataFrame:
    """Names in the place of numbers."""
    for column in columns:
        names = meaning.select(F.col("source").alias(column), F.col("name").alias(f"{column}_name"))
        frame = (
            frame.join(F.broadcast(names), column, "left")
            .drop(column)
            .withColumnRenamed(f"{column}_name", column)
        )
    return frame


def _spread(spark: SparkSession, count: int, tasks: int | None) -> DataFrame:
    parallel = tasks or spark.sparkContext.defaultParallelism
    # A few turns for each task, so that a slow one does not keep the others waiting at the end.
    return spark.range(0, count, 1, max(1, min(count, parallel * 2)))


def _plain(enterprise: EnterpriseMap) -> EnterpriseMap:
    """The same without the indexes, which cannot travel."""
    return enterprise.changed()


def _wide_gates(topology: Topology) -> list[Any]:
    """The gates that belong to several sites: their tables are those of no single site."""
    gates = {gate.id: gate for site in topology.graph.ids for gate in topology.gates_of(site)}
    wide = [gate for gate in gates.values() if len(set(gate.sites) & topology.graph.index.keys()) > 1]
    return sorted(wide, key=lambda gate: gate.id.int)


def _roots(topology: Topology) -> list[tuple[int, ...]]:
    index = topology.graph.index
    wide = [tuple(index[site] for site in gate.sites if site in index) for gate in _wide_gates(topology)]
    return [(number,) for number in range(len(topology.graph))] + wide


def _block(topology: Topology, roots: list[tuple[int, ...]], numbers: list[int]) -> pyarrow.RecordBatch:
    graph = topology.graph
    everywhere = np.arange(len(graph), dtype=np.int32)
    parts: list[tuple[Any, ...]] = []
    for number in numbers:
        tree = graph.tree(roots[number])
        reached = tree.next_sites != NO_SITE
        there = everywhere if reached.all() else everywhere[reached]
        parts.append(
            (
                np.full(len(there), number, np.int32),
                there,
                tree.next_sites[there],
                tree.costs[there].astype(np.int32),
            )
        )
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return pyarrow.RecordBatch.from_arrays(
        [pyarrow.array(column) for column in columns], schema=_ROUTES_ARROW
    )


def _changes(before: Topology, after: Topology, scenario: str, site: int) -> pyarrow.RecordBatch:
    one, other = before.graph.tree((site,)), after.graph.tree((site,))
    changed = np.flatnonzero((one.next_sites != other.next_sites) | (one.costs != other.costs)).astype(
        np.int32
    )

    def numbers(values: Any, exists: Any) -> pyarrow.Array:
        kept = np.where(exists, values, 0).astype(np.int32)
        return pyarrow.array(kept, mask=~exists)

    was, will_be = one.next_sites[changed] != NO_SITE, other.next_sites[changed] != NO_SITE
    return pyarrow.RecordBatch.from_arrays(
        [
            pyarrow.array([scenario] * len(changed), pyarrow.string()),
            pyarrow.array(np.full(len(changed), site, np.int32)),
            pyarrow.array(changed),
            numbers(one.next_sites[changed], was),
            numbers(other.next_sites[changed], will_be),
            numbers(one.costs[changed], was),
            numbers(other.costs[changed], will_be),
        ],
        names=CHANGES.names,
    )
