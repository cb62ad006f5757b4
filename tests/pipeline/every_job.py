"""All jobs one after the other, and the tables that they leave."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from pyspark.sql import SparkSession

from lanner.directory.local_file import load_file
from lanner.pipeline import jobs
from lanner.pipeline.audit import read_findings

__all__ = ["JOBS", "rows_of_tables", "run_every_job"]

JOBS = ("ingest", "refresh", "audit", "routes")
ROUTE_TABLES = ("sources", "gates", "pairs", "link_load", "what_if")


def run_every_job(
    spark: SparkSession, root: str, inputs: Path, before: Callable[[str], None] = lambda _: None
) -> dict[str, Any]:
    """Run all jobs; ``before`` hears which one is next. What they say comes back as JSON has it."""
    before("ingest")
    said: dict[str, Any] = {"ingest": jobs.ingest_files(spark, root, str(inputs / "exports"))}
    before("refresh")
    said["refresh"] = jobs.refresh(spark, root)
    before("audit")
    said["audit"] = jobs.run_audit(spark, root)
    before("routes")
    said["routes"] = jobs.run_routes(
        spark,
        root,
        load_file(inputs / "enterprise.toml").map,
        pairs=[("alpha", "gamma"), ("gamma", "beta"), ("alpha", "nobody")],
        scenarios=str(inputs / "changes.toml"),
    )
    del said["routes"]["tables"]  # says where they are
    found = msgspec.json.decode(msgspec.json.encode(said))
    assert isinstance(found, dict)
    return found


def rows_of_tables(spark: SparkSession, root: str) -> dict[str, Counter[str]]:
    """Every table's rows in any order."""
    lake = jobs.Lake.at(spark, root)
    frames = {
        "events": lake.bronze.events(),
        "quarantine": lake.bronze.quarantine(),
        "messages": lake.silver.messages(),
        "queue_hours": lake.gold.queue_hours(),
        "route_hours": lake.gold.route_hours(),
        "dead_letter_hours": lake.gold.dead_letter_hours(),
        "findings": read_findings(lake.tables),
        **{name: spark.read.parquet(f"{root}/routes/{name}") for name in ROUTE_TABLES},
    }
    return {name: Counter(map(repr, frame.collect())) for name, frame in frames.items()}
