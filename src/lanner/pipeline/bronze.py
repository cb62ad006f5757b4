"""Bronze: every event as it was read, once, and a quarantine for what is no event.

One batch is one directory, ``bronze/batch=NAME/commit=N/table=events/day=.../manager=...``; a batch that is
written again gets one of its own, so that readers have the old one until the new one counts. Events that an
earlier batch has already are left out: that is looked for where the LSNs of a manager overlap, which they do
not when batches follow each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DateType, StringType, StructField, StructType

from lanner.model.history import HistoryEvent
from lanner.pipeline import meaning
from lanner.pipeline.schema import spark_schema
from lanner.pipeline.tables import Manifest, Part, Tables

__all__ = ["EVENTS", "QUARANTINE", "VERSION", "Bronze", "Coverage", "faults"]

TABLE = "bronze"
VERSION = 1
"""Goes up when a column is added or changes its meaning."""

COMPLETE = "complete_until"
"""The name under which the manifest keeps up to when each manager's history is here."""

EARLIEST = "1993-01-01"
"""No queue manager is older; whoever stamps with an earlier time has lost its clock."""

MAX_AHEAD = "INTERVAL 2 DAYS"
"""How far a clock may be ahead of ours before its rows are not believed."""

_HISTORY = spark_schema("history")
_RAW = StructField("raw", StringType())
_FAULT = StructField("fault", StringType())
_PARTITIONS = [StructField("day", DateType()), StructField("manager", StringType())]

_COLUMNS = [field for field in _HISTORY.fields if field.name != "manager"]
_LOOSE = [StructField(field.name, field.dataType, True) for field in _COLUMNS]
EVENTS = StructType([*_LOOSE, *_PARTITIONS])
"""The columns of bronze: those of the history, with the day and the manager as directories."""

QUARANTINE = StructType([*_LOOSE, _RAW, _FAULT, *_PARTITIONS])
"""The columns of the quarantine: what could be read of the row, the raw text, and what is wrong with it."""

_ID = r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\\[0-9]+$"


class Coverage(NamedTuple):
    """How much of one manager's history is in bronze."""

    manager: str
    manager_id: str
    first_lsn: int
    last_lsn: int
    events: int
    first_time: float
    last_time: float

    @property
    def missing(self) -> int:
        """Events between the first and the last that are not there."""
        return self.last_lsn - self.first_lsn + 1 - self.events


def faults() -> Column:
    """What is wrong with a row, in words; null if nothing is."""
    known = [event.value for event in HistoryEvent]
    event = F.coalesce(F.col("event"), F.lit("nothing"))
    return (
        F.when(F.col("raw").isNotNull(), "it cannot be read as a row of history")
        .when(
            F.col("manager").isNull() | (F.col("manager") == ""), "it does not say which manager it is from"
        )
        .when(F.col("lsn").isNull() | (F.col("lsn") < 1), "it has no LSN")
        .when(~event.isin(known), F.concat(F.lit("the event is unknown: "), F.substring(event, 1, 40)))
        .when(
            F.col("time").isNull() | (F.col("time") < F.lit(EARLIEST).cast("timestamp")), "its clock is wrong"
        )
        .when(F.col("time") > F.current_timestamp() + F.expr(MAX_AHEAD), "its clock is ahead of time")
        .when(F.col("queue").isNull(), "it does not say which queue")
        .when(F.col("message_id").isNull() | ~F.col("message_id").rlike(_ID), "its message has no identifier")
        .when(F.col("size").isNull() | (F.col("size") < 0), "its size is wrong")
    )


class Bronze:
    """The raw events of a fleet."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def manifest(self) -> Manifest:
        """What has been read in."""
        return self._tables.manifest(TABLE, VERSION)

    def complete_until(self) -> dict[str, float]:
        """Up to when each manager had nothing more to tell, by its identifier."""
        return dict(self.manifest().facts.get(COMPLETE, {}))

    def note_complete(self, managers: Iterable[str], until: float) -> None:
        """Note that everything is here that happened at these managers until then."""
        manifest = self.manifest()
        known = self.complete_until()
        complete = known | {one: max(until, known.get(one, 0.0)) for one in managers}
        self._tables.commit(TABLE, manifest.with_facts({COMPLETE: complete}))

    def add(self, rows: DataFrame, batch: str, *, identify: bool = False) -> Mapping[str, Any]:
        """Write one batch, or write it again; says how many events and faulty rows it has.

        ``identify`` is for files, which need not tell the manager's identifier.
        """
        manifest = self.manifest()
        others = {name: part for name, part in manifest.parts.items() if name != batch}
        path = f"{TABLE}/batch={batch}/commit={manifest.commit + 1:010}"
        marked = self._marked(rows, identify)
        self._write(marked, path)
        facts = self._facts(path)
        if _overlaps(facts, others.values()) or _repeats(facts):
            known = self.events(others)
            fresh = marked.join(
                known.select(_origin().alias("_origin"), "lsn"),
                (_origin() == F.col("_origin")) & marked["lsn"].eqNullSafe(known["lsn"]),
                "left_anti",
            )
            faulty = F.col("fault").isNotNull()
            once = fresh.filter(~faulty).dropDuplicates(["manager_id", "manager", "lsn"])
            self._write(once.unionByName(marked.filter(faulty)), path)
            facts = self._facts(path)
        self._tables.commit(TABLE, manifest.with_parts({batch: Part(path=path, facts=facts)}))
        return facts

    def events(self, parts: Mapping[str, Part] | None = None) -> DataFrame:
        """The events of these batches, or of all."""
        chosen = self.manifest().parts if parts is None else parts
        paths = [f"{part.path}/table=events" for part in chosen.values() if part.facts["events"]]
        return self._read(paths, EVENTS)

    def quarantine(self) -> DataFrame:
        """What could not be taken for an event, and why."""
        parts = self.manifest().parts.values()
        return self._read(
            [f"{part.path}/table=quarantine" for part in parts if part.facts["faulty"]], QUARANTINE
        )

    def coverage(self) -> list[Coverage]:
        """How much of each manager's history is there."""
        found: dict[str, list[dict[str, Any]]] = {}
        for part in self.manifest().parts.values():
            for one in part.facts["managers"]:
                found.setdefault(one["manager_id"], []).append(one)
        return [
            Coverage(
                manager=ranges[-1]["manager"],
                manager_id=identifier,
                first_lsn=min(one["first"] for one in ranges),
                last_lsn=max(one["last"] for one in ranges),
                events=sum(one["count"] for one in ranges),
                first_time=min(one["first_time"] for one in ranges),
                last_time=max(one["last_time"] for one in ranges),
            )
            for identifier, ranges in sorted(found.items())
        ]

    def _read(self, paths: list[str], schema: StructType) -> DataFrame:
        if not paths:
            return self._tables.read((), schema)
        # The directories of a batch are read one batch at a time: each is the base of its own partitions.
        frames = [
            self._tables.spark.read.schema(schema).parquet(self._tables.storage.at(path)) for path in paths
        ]
        whole = frames[0]
        for frame in frames[1:]:
            whole = whole.unionByName(frame)
        return whole

    def _marked(self, rows: DataFrame, identify: bool) -> DataFrame:
        present = set(rows.columns)
        columns = [
            (F.col(field.name) if field.name in present else F.lit(None))
            .cast(field.dataType)
            .alias(field.name)
            for field in _HISTORY.fields
        ]
        raw = F.col("raw") if "raw" in present else F.lit(None).cast("string").alias("raw")
        plain = rows.select(*columns, raw)
        if identify or "manager_id" not in present:
            plain = _with_identifiers(plain)
        fault = faults()
        return plain.withColumn("fault", fault).withColumn("day", F.to_date("time"))

    def _write(self, marked: DataFrame, path: str) -> None:
        table = F.when(F.col("fault").isNull(), "events").otherwise("quarantine")
        self._tables.write(marked.withColumn("table", table), path, "table", "day", "manager")

    def _facts(self, path: str) -> dict[str, Any]:
        """Counts of what was written, from the columns that they need alone."""
        schema = StructType(
            [
                *(field for field in EVENTS.fields if field.name in {"lsn", "time", "manager_id", "body"}),
                _FAULT,
                StructField("table", StringType()),
                *_PARTITIONS,
            ]
        )
        written = self._tables.read([path], schema)
        rows = (
            written.groupBy("table", "manager", _origin().alias("origin"))
            .agg(
                F.min("lsn").alias("first"),
                F.max("lsn").alias("last"),
                F.count("*").alias("count"),
                F.sum(F.col("lsn").cast("double")).alias("total"),
                F.min(F.col("time").cast("double")).alias("first_time"),
                F.max(F.col("time").cast("double")).alias("last_time"),
                F.collect_set(F.col("day").cast("string")).alias("days"),
                F.count("body").alias("bodies"),
            )
            .collect()
        )
        good = [row for row in rows if row["table"] == "events"]
        return {
            "events": sum(row["count"] for row in good),
            "faulty": sum(row["count"] for row in rows if row["table"] != "events"),
            "bodies": sum(row["bodies"] for row in good),
            "days": sorted({day for row in good for day in row["days"]}),
            "managers": [
                {
                    "manager": row["manager"],
                    "manager_id": row["origin"],
                    **{
                        name: row[name]
                        for name in ("first", "last", "count", "total", "first_time", "last_time")
                    },
                }
                for row in good
            ],
        }


def _origin() -> Column:
    """Whose LSNs these are: a manager that was replaced by one with the same name counts anew."""
    return F.coalesce(F.col("manager_id"), F.lower(F.col("manager")))


def _with_identifiers(rows: DataFrame) -> DataFrame:
    """An exported file does not tell whose it is: what was sent there does."""
    sent = rows.filter(F.col("raw").isNull() & (F.col("event") == HistoryEvent.SENT.value))
    known = sent.groupBy("manager").agg(F.max(meaning.lineage()).alias("_id"))
    identifier = F.coalesce(F.col("manager_id"), F.col("_id")).alias("manager_id")
    others = [F.col(name) for name in rows.columns if name != "manager_id"]
    return rows.join(F.broadcast(known), "manager", "left").select(identifier, *others).select(*rows.columns)


def _overlaps(facts: dict[str, Any], others: Any) -> bool:
    ranges = [
        (one["manager_id"], one["first"], one["last"]) for part in others for one in part.facts["managers"]
    ]
    return any(
        one["manager_id"] == manager and one["first"] <= last and first <= one["last"]
        for one in facts["managers"]
        for manager, first, last in ranges
    )


def _repeats(facts: dict[str, Any]) -> bool:
    """Whether LSNs may be there twice: they are not if their count and their sum are those of a range."""
    for one in facts["managers"]:
        first, last, count = one["first"], one["last"], one["count"]
        if count != last - first + 1 or abs(one["total"] - (first + last) * count / 2) > 0.5:
            return True
    return False
