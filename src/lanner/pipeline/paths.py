"""Whole ways between queue managers, on demand, and what traffic loads which link."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from lanner.model.enterprise import EnterpriseMap
from lanner.pipeline.columns import list_of, struct
from lanner.routing.explain import Explanation, explain
from lanner.routing.topology import Topology

__all__ = ["LINK_LOAD", "PATHS", "link_load", "observed_traffic", "paths"]

_STRINGS = struct("x strings")["x"].dataType
_CROSSINGS = list_of("from_site string, to_site string, cost int")

PATHS = struct(
    "source string, destination string, next_hop string, cost int, stopped_at string, why string",
    hops=_STRINGS,
    links=_CROSSINGS,
)
"""The way from one queue manager to another: machines, and the links between sites that it takes."""

LINK_LOAD = struct("from_site string, to_site string, cost int, messages bigint, bytes bigint, pairs bigint")
"""What each link carries, per direction."""


def paths(pairs: DataFrame, enterprise: EnterpriseMap) -> DataFrame:
    """Walk the way of each ``(source, destination)``, by names or identifiers, as the machines would."""
    plain = enterprise.changed()

    def work(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        topology = Topology(plain)
        for batch in batches:
            rows = [
                _path(topology, *pair)
                for pair in zip(*(column.to_pylist() for column in batch.columns), strict=True)
            ]
            yield pyarrow.RecordBatch.from_pylist(rows, schema=_PATHS_ARROW)

    return pairs.select("source", "destination").mapInArrow(work, PATHS)


def observed_traffic(messages: DataFrame) -> DataFrame:
    """How much went from which manager to which, from silver."""
    return (
        messages.filter(F.col("sent_by").isNotNull() & (F.col("sent_by") != F.col("arrived_by")))
        .groupBy(F.col("sent_by").alias("source"), F.col("arrived_by").alias("destination"))
        .agg(F.count("*").alias("messages"), F.sum("size").alias("bytes"))
    )


def link_load(traffic: DataFrame, enterprise: EnterpriseMap) -> DataFrame:
    """What each link carries if traffic between managers takes the ways of the directory."""
    walked = paths(traffic, enterprise).select("source", "destination", F.explode("links").alias("link"))
    return (
        walked.join(traffic, ["source", "destination"])
        .groupBy("link.from_site", "link.to_site", "link.cost")
        .agg(
            F.sum("messages").alias("messages"),
            F.sum("bytes").alias("bytes"),
            F.count("*").alias("pairs"),
        )
    )


def pairs_of(spark: SparkSession, chosen: Iterable[tuple[str, str]]) -> DataFrame:
    """Pairs that somebody has named."""
    return spark.createDataFrame(list(chosen), struct("source string, destination string"))


def _path(topology: Topology, source: str, destination: str) -> dict[str, object]:
    found = topology.enterprise.find_machine(source)
    target = topology.enterprise.find_machine(destination)
    row: dict[str, object] = {"source": source, "destination": destination}
    if found is None or target is None:
        missing = source if found is None else destination
        return row | {
            "stopped_at": source,
            "why": f"{missing} is not in the directory",
            "hops": [],
            "links": [],
        }
    way = explain(topology, found.id, target.id)
    return row | {
        "next_hop": way.hops[1] if len(way.hops) > 1 else None,
        "cost": way.cost if way.is_reached else None,
        "stopped_at": way.stopped_at or None,
        "why": way.why or None,
        "hops": list(way.hops),
        "links": _links(way),
    }


def _links(way: Explanation) -> list[dict[str, object]]:
    return [
        {"from_site": step.crossing.from_site, "to_site": step.crossing.to_site, "cost": step.crossing.cost}
        for step in way.steps
        if step.crossing is not None
    ]


_LINK_ARROW = pyarrow.struct(
    [("from_site", pyarrow.string()), ("to_site", pyarrow.string()), ("cost", pyarrow.int32())]
)
_PATHS_ARROW = pyarrow.schema(
    [
        ("source", pyarrow.string()),
        ("destination", pyarrow.string()),
        ("next_hop", pyarrow.string()),
        ("cost", pyarrow.int32()),
        ("stopped_at", pyarrow.string()),
        ("why", pyarrow.string()),
        ("hops", pyarrow.list_(pyarrow.string())),
        ("links", pyarrow.list_(_LINK_ARROW)),
    ]
)
