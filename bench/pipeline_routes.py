"""All routes of 5,000 sites to Parquet, against one process that does the same with scipy and pyarrow."""

from __future__ import annotations

import os
import random
import resource
import shutil
import time
from pathlib import Path
from uuid import UUID

import numpy as np

from bench.measure import Rounds, Target, disk_directory, print_report
from bench.peers import PeerMissingError
from lanner.model.enterprise import Enterprise, EnterpriseMap, Machine, RoutingLink, Site

SITES = int(os.environ.get("LANNER_BENCH_SITES", "5000"))
LINKS_PER_SITE = 3
LARGEST_RATIO = 1.5
MOST_MEMORY = 2.0
"""Gigabytes of the driver: Python and Java together."""


def main() -> list[Target]:
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise PeerMissingError("pyspark", "pyspark") from None
    from lanner.pipeline.session import local_session

    spark: SparkSession = local_session("bench", settings={"spark.driver.memory": "1g"})
    spark.sparkContext.setLogLevel("ERROR")
    try:
        with disk_directory() as place:
            return _measure(spark, place)
    finally:
        spark.stop()


def _measure(spark: object, place: Path) -> list[Target]:
    from pyspark.sql import SparkSession

    from lanner.pipeline.routes import routes

    assert isinstance(spark, SparkSession)
    enterprise = large_enterprise(SITES)
    routes(spark, large_enterprise(50)).count()  # the first Python worker takes its time
    alone = Rounds("one process with scipy", "s", [])
    ours = Rounds("Spark", "s", [])
    for _ in range(3):
        begin = time.perf_counter()
        _by_hand(enterprise, place / "alone.parquet")
        alone.values.append(time.perf_counter() - begin)
        begin = time.perf_counter()
        routes(spark, enterprise).write.mode("overwrite").parquet(str(place / "spark"))
        ours.values.append(time.perf_counter() - begin)
    count = spark.read.parquet(str(place / "spark")).count()
    assert count == SITES * SITES, count
    shutil.rmtree(place / "spark")
    memory = _driver_gigabytes()
    targets = [
        Target(f"all routes of {SITES:,} sites", ours.median / alone.median, LARGEST_RATIO, at_least=False),
        Target("memory of the driver", memory, MOST_MEMORY, at_least=False, unit="GB"),
    ]
    print_report("Pipeline: routes", [alone, ours, *targets])
    return targets


def _by_hand(enterprise: EnterpriseMap, file: Path) -> None:
    """The same table, written by one process."""
    import pyarrow
    import pyarrow.parquet

    from lanner.routing.topology import Topology

    graph = Topology(enterprise).graph
    schema = pyarrow.schema(
        [(name, pyarrow.int32()) for name in ("source", "destination", "next_site", "cost")]
    )
    everywhere = np.arange(len(graph), dtype=np.int32)
    with pyarrow.parquet.ParquetWriter(file, schema) as writer:
        for start in range(0, len(graph), 64):
            trees = [graph.tree((site,)) for site in range(start, min(start + 64, len(graph)))]
            columns = (
                np.concatenate(
                    [np.full(len(graph), start + number, np.int32) for number in range(len(trees))]
                ),
                np.tile(everywhere, len(trees)),
                np.concatenate([tree.next_sites for tree in trees]),
                np.concatenate([tree.costs.astype(np.int32) for tree in trees]),
            )
            arrays = [pyarrow.array(column) for column in columns]
            writer.write_batch(pyarrow.RecordBatch.from_arrays(arrays, schema=schema))


def large_enterprise(count: int) -> EnterpriseMap:
    """Sites in a ring with chords, each with one gate."""
    chance = random.Random(5)
    sites = [Site(id=UUID(int=number + 1), name=f"S{number}") for number in range(count)]
    gates = [
        Machine(id=UUID(int=(number + 1) << 32), name=f"S{number}-GW", sites=(site.id,), routing=True)
        for number, site in enumerate(sites)
    ]
    pairs = {(number, (number + 1) % count) for number in range(count)}
    while len(pairs) < count * LINKS_PER_SITE:
        one, other = chance.randrange(count), chance.randrange(count)
        if one != other:
            pairs.add((one, other))
    links = tuple(
        RoutingLink(
            id=UUID(int=number + 1),
            site1=sites[one].id,
            site2=sites[other].id,
            cost=chance.randint(1, 100),
            gates=(gates[one].id, gates[other].id),
        )
        for number, (one, other) in enumerate(sorted(pairs))
    )
    enterprise = Enterprise(id=UUID(int=1), name="Large")
    return EnterpriseMap(enterprise=enterprise, sites=tuple(sites), links=links, machines=tuple(gates))


def _driver_gigabytes() -> float:
    """The most that this process and the Java process that it has started have had."""
    total = float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
        except OSError:
            continue
        if fields.get("Name", "").strip() == "java" and int(fields["PPid"]) == os.getpid():
            total += float(fields["VmHWM"].split()[0])
    return total / 1024 / 1024


if __name__ == "__main__":
    main()
