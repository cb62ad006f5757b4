"""The jobs: ingest, refresh, audit, routes and report.

Each is a function of a session and a root directory, and runs on any master::

    python -m lanner.pipeline.jobs ingest --path 'exports/*.parquet' --to /data/lake
    spark-submit --master spark://host:7077 $(python -m lanner.pipeline.jobs --where) refresh --to hdfs:///lake

A job that was killed is simply run again.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from pyspark.sql import DataFrame, SparkSession

from lanner.model.enterprise import EnterpriseMap
from lanner.model.errors import InvalidPropertyError, LannerError
from lanner.pipeline.audit import GRACE, audit
from lanner.pipeline.envelopes import ENVELOPES, envelopes_of
from lanner.pipeline.findings import Audit
from lanner.pipeline.ingest import ingest_files, ingest_managers
from lanner.pipeline.lake import Lake, Say, quietly
from lanner.pipeline.paths import link_load, observed_traffic, pairs_of, paths
from lanner.pipeline.report import render
from lanner.pipeline.routes import Scenario, gate_tables, named, routes, sources, what_if
from lanner.pipeline.tables import Part

__all__ = [
    "Lake",
    "Say",
    "ingest_files",
    "ingest_managers",
    "refresh",
    "run_audit",
    "run_routes",
    "write_report",
]

ENVELOPE_TABLE = "envelopes"
ENVELOPE_VERSION = 1


def refresh(spark: SparkSession, root: str, *, say: Say = quietly) -> dict[str, Any]:
    """Bring silver, the envelopes and gold up to date with bronze."""
    lake = Lake.at(spark, root)
    say("messages (silver)")
    refreshed = lake.silver.refresh()
    say("envelopes")
    envelopes = _refresh_envelopes(lake)
    say("hours (gold)")
    days = lake.gold.refresh(refreshed.days)
    return {"batches": list(refreshed.batches), "days": list(days), "envelopes": envelopes}


def _refresh_envelopes(lake: Lake) -> int:
    manifest = lake.tables.manifest(ENVELOPE_TABLE, ENVELOPE_VERSION)
    batches = lake.bronze.manifest().parts
    marks = {name: f"{name}:{part.facts['events']}" for name, part in batches.items()}
    new = {name: part for name, part in batches.items() if marks[name] not in manifest.applied}
    with_bodies = {name: part for name, part in new.items() if part.facts.get("bodies")}
    written = {}
    count = 0
    for name, part in with_bodies.items():
        path = f"{ENVELOPE_TABLE}/batch={name}/commit={manifest.commit + 1:010}"
        lake.tables.write(envelopes_of(lake.bronze.events({name: part})), path)
        count += lake.tables.read([path], ENVELOPES).count()
        written[name] = Part(path=path)
    if new:
        lake.tables.commit(ENVELOPE_TABLE, manifest.with_parts(written, [marks[name] for name in new]))
    return count


def envelopes(lake: Lake) -> DataFrame:
    """The SRMP envelopes that were found; those that cannot be read have a fault."""
    parts = lake.tables.manifest(ENVELOPE_TABLE, ENVELOPE_VERSION).parts.values()
    return lake.tables.read([part.path for part in parts], ENVELOPES)


def run_audit(
    spark: SparkSession, root: str, *, grace: float = GRACE, until: float | None = None, say: Say = quietly
) -> Audit:
    """Judge what is in silver."""
    lake = Lake.at(spark, root)
    say("judging")
    return audit(lake.tables, lake.bronze, lake.silver, grace=grace, until=until)


def run_routes(
    spark: SparkSession,
    root: str,
    enterprise: EnterpriseMap,
    *,
    pairs: Sequence[tuple[str, str]] = (),
    scenarios: str = "",
    say: Say = quietly,
) -> dict[str, Any]:
    """Write every route of an enterprise; with pairs their paths, with scenarios what they would change."""
    lake = Lake.at(spark, root)
    base = "routes"
    meaning = sources(spark, enterprise)
    say(f"all routes of {len(enterprise.sites):,} sites")
    lake.tables.write(meaning.coalesce(1), f"{base}/sources")
    lake.tables.write(gate_tables(spark, enterprise).coalesce(1), f"{base}/gates")
    lake.tables.write(routes(spark, enterprise), f"{base}/pairs")
    done: dict[str, Any] = {"sites": len(enterprise.sites), "tables": lake.tables.storage.at(base)}
    if lake.silver.manifest().parts:
        say("the load of links")
        load = link_load(observed_traffic(lake.silver.messages()), enterprise)
        lake.tables.write(load.coalesce(1), f"{base}/link_load")
    if scenarios:
        say("what would change")
        chosen = read_scenarios(Path(scenarios), enterprise)
        changed = named(
            what_if(spark, enterprise, chosen), meaning, "source", "destination", "next_before", "next_after"
        )
        lake.tables.write(changed, f"{base}/what_if")
        written = spark.read.parquet(lake.tables.storage.at(f"{base}/what_if"))
        done["changes"] = {
            row["scenario"]: row["count"] for row in written.groupBy("scenario").count().collect()
        }
    if pairs:
        say("paths")
        done["paths"] = [
            row.asDict(recursive=True) for row in paths(pairs_of(spark, pairs), enterprise).collect()
        ]
    return done


class _ScenarioFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[[scenario]] name = "...", cost = [["London", "Paris", 5]], down = ["LON-GW"]``."""

    scenario: list[_ScenarioEntry]


class _ScenarioEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    cost: list[tuple[str, str, int]] = []
    down: list[str] = []


def read_scenarios(path: Path, enterprise: EnterpriseMap) -> list[Scenario]:
    """Read what is to be tried from a TOML file."""
    try:
        read = msgspec.toml.decode(path.read_bytes(), type=_ScenarioFile)
    except (OSError, msgspec.MsgspecError) as error:
        raise InvalidPropertyError(
            f"{path}: {error}", hint="write [[scenario]] with name, cost and down"
        ) from None
    found = []
    for entry in read.scenario:
        costs = [
            (_found(enterprise.find_site(one), one), _found(enterprise.find_site(other), other), cost)
            for one, other, cost in entry.cost
        ]
        down = [_found(enterprise.find_machine(name), name) for name in entry.down]
        found.append(Scenario(entry.name, tuple(costs), tuple(down)))
    return found


def _found(item: Any, name: str) -> Any:
    if item is None:
        raise InvalidPropertyError(f"{name} is not in the directory")
    return item.id


def write_report(
    spark: SparkSession,
    root: str,
    file: str,
    *,
    title: str = "Messages",
    grace: float = GRACE,
    say: Say = quietly,
) -> Audit:
    """Bring everything up to date, judge it, and write the page."""
    refresh(spark, root, say=say)
    judged = run_audit(spark, root, grace=grace, say=say)
    lake = Lake.at(spark, root)
    say("drawing")
    page = render(lake.gold, lake.bronze, judged, title=title, now=time.time())
    try:
        Path(file).write_text(page, encoding="utf-8")
    except OSError as error:
        raise LannerError(f"{file} cannot be written: {error.strerror or error}") from None
    return judged


if __name__ == "__main__":
    from lanner.pipeline.command import main

    raise SystemExit(main())
