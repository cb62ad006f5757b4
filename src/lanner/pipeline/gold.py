"""Gold: numbers per hour for queues, routes and dead letters.

Hours of the days that a refresh touched are counted anew, from bronze and silver; all other hours are taken
over. These tables are small, so each commit writes them whole: what a queue holds at the end of an hour
follows from all hours before, and a late event may change any of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from lanner.model.history import HistoryEvent as Event
from lanner.pipeline import meaning
from lanner.pipeline.bronze import Bronze
from lanner.pipeline.columns import struct
from lanner.pipeline.silver import Silver
from lanner.pipeline.tables import Manifest, Part, Tables

__all__ = ["DEAD_LETTER_HOURS", "QUEUE_HOURS", "ROUTE_HOURS", "VERSION", "Gold"]

TABLE = "gold"
VERSION = 1
"""Goes up when a column is added or changes its meaning."""

SLOW_SECONDS = 60.0
"""Waiting longer than this, as the slowest tenth does, is slow if the queue grows as well."""

_ACCURACY = 1000
"""Percentiles are right to one in so many."""

_COUNTS = (
    Event.SENT,
    Event.ARRIVED,
    Event.RECEIVED,
    Event.RETURNED,
    Event.TRANSMITTED,
    Event.ACKNOWLEDGED,
    Event.RETRANSMITTED,
    Event.DUPLICATE,
    Event.REJECTED,
    Event.EXPIRED,
    Event.PURGED,
    Event.DELETED,
    Event.DEAD_LETTERED,
)

QUEUE_HOURS = struct(
    "hour timestamp, manager string, queue string, "
    + ", ".join(f"{event.value.replace('-', '_')} bigint" for event in _COUNTS)
    + ", bytes_in bigint, bytes_out bigint, change bigint, backlog bigint, "
    "latency_p50 double, latency_p90 double, latency_p99 double, "
    "wait_p50 double, wait_p90 double, wait_p99 double, is_slow boolean"
)
"""Per manager, queue and hour; docs/pipeline-tables.md says what each column means."""

ROUTE_HOURS = struct(
    "hour timestamp, from_manager string, to_manager string, messages bigint, bytes bigint, "
    "latency_p50 double, latency_p90 double, latency_p99 double, latency_max double, "
    "retransmissions bigint, clock_suspects bigint"
)
"""Per hop and hour of arrival."""

DEAD_LETTER_HOURS = struct(
    "hour timestamp, manager string, destination string, message_class int, reason string, messages bigint"
)
"""Per destination, reason and hour."""

_TABLES: dict[str, StructType] = {
    "queue_hours": QUEUE_HOURS,
    "route_hours": ROUTE_HOURS,
    "dead_letter_hours": DEAD_LETTER_HOURS,
}


class Gold:
    """Numbers of a fleet."""

    def __init__(self, tables: Tables, bronze: Bronze, silver: Silver) -> None:
        self._tables = tables
        self._bronze = bronze
        self._silver = silver

    def manifest(self) -> Manifest:
        """What has been written."""
        return self._tables.manifest(TABLE, VERSION)

    def queue_hours(self) -> DataFrame:
        """Numbers per manager, queue and hour."""
        return self._read("queue_hours")

    def route_hours(self) -> DataFrame:
        """Numbers per hop and hour."""
        return self._read("route_hours")

    def dead_letter_hours(self) -> DataFrame:
        """Dead letters per destination, reason and hour."""
        return self._read("dead_letter_hours")

    def refresh(self, days: Iterable[str] = ()) -> tuple[str, ...]:
        """Count these days, and those of silver's commits that are not counted yet."""
        manifest = self.manifest()
        silver = self._silver.manifest()
        # A job may have ended between silver and gold: then silver's parts say what is missing.
        marks = {f"{day}={part.path}" for day, part in silver.parts.items()}
        pending = {mark.partition("=")[0] for mark in marks - set(manifest.applied)}
        bronze_marks = {
            f"batch {name}:{part.facts['events']}": part.facts["days"]
            for name, part in self._bronze.manifest().parts.items()
        }
        for mark, event_days in bronze_marks.items():
            if mark not in manifest.applied:
                pending.update(event_days)
        chosen = sorted(pending | set(days))
        if not chosen:
            return ()
        number = manifest.commit + 1
        base = f"{TABLE}/commit={number:010}"
        dates = [date.fromisoformat(day) for day in chosen]
        counted = {
            "queue_hours": self._queue_hours(dates),
            "route_hours": self._route_hours(dates),
            "dead_letter_hours": self._dead_letter_hours(dates),
        }
        parts = {}
        for name, frame in counted.items():
            kept = self._read(name).filter(~F.to_date("hour").isin(dates)) if manifest.parts else None
            whole = frame if kept is None else kept.unionByName(frame)
            if name == "queue_hours":
                whole = _with_backlog(whole)
            path = self._tables.write(whole.select(*_TABLES[name].names).coalesce(1), f"{base}/{name}")
            parts[name] = Part(path=path)
        applied = Manifest(version=VERSION, commit=manifest.commit, parts=manifest.parts)
        self._tables.commit(TABLE, applied.with_parts(parts, sorted(marks) + sorted(bronze_marks)))
        return tuple(chosen)

    def _read(self, name: str) -> DataFrame:
        part = self.manifest().parts.get(name)
        return self._tables.read([part.path] if part else [], _TABLES[name])

    def _queue_hours(self, days: list[date]) -> DataFrame:
        events = self._bronze.events().filter(F.col("day").isin(days))
        goes_in, goes_out = meaning.queue_in(), meaning.queue_out()
        counted = events.groupBy(_hour("time"), "manager", "queue").agg(
            *(_count(meaning.happened(event)).alias(event.value.replace("-", "_")) for event in _COUNTS),
            F.sum(F.when(goes_in, F.col("size")).otherwise(0)).alias("bytes_in"),
            F.sum(F.when(goes_out, F.col("size")).otherwise(0)).alias("bytes_out"),
            (_count(goes_in) - _count(goes_out)).alias("change"),
        )
        moved = (
            events.filter(meaning.happened(Event.MOVED) & F.col("reason").startswith("from "))
            .groupBy(_hour("time"), "manager", F.substring("reason", 6, 1000).alias("queue"))
            .agg(F.count("*").alias("moved_out"))
        )
        keys = ["hour", "manager", "queue"]
        counted = counted.join(moved, keys, "left").withColumn(
            "change", F.col("change") - F.coalesce(F.col("moved_out"), F.lit(0))
        )
        messages = self._silver.messages()
        latency = self._percentiles(messages, days, "arrived", "latency")
        wait = self._percentiles(messages, days, "received", "time_in_queue", "wait")
        return (
            counted.drop("moved_out")
            .join(latency, keys, "left")
            .join(wait, keys, "left")
            .withColumns({"backlog": F.lit(0).cast("bigint"), "is_slow": F.lit(False)})
        )

    def _percentiles(
        self, messages: DataFrame, days: list[date], when: str, what: str, name: str = ""
    ) -> DataFrame:
        at = f"{when}_at"
        return (
            messages.filter(F.to_date(at).isin(days))
            .groupBy(_hour(at), F.col(f"{when}_by").alias("manager"), F.col(f"{when}_queue").alias("queue"))
            .agg(_percentile_list(what).alias("p"))
            .select("hour", "manager", "queue", *_spread("p", name or what))
        )

    def _route_hours(self, days: list[date]) -> DataFrame:
        hops = (
            self._silver.messages()
            .filter(F.size("hops") > 0)
            .select("size", "retransmissions", "hops", F.explode("hops").alias("hop"))
            .filter((F.col("hop.from") != F.col("hop.to")) & F.to_date("hop.to_time").isin(days))
        )
        seconds = F.when(F.col("hop.seconds") >= 0, F.col("hop.seconds"))
        is_first = F.col("hop") == F.get("hops", F.lit(0))
        return (
            hops.groupBy(
                _hour("hop.to_time"),
                F.col("hop.from").alias("from_manager"),
                F.col("hop.to").alias("to_manager"),
            )
            .agg(
                F.count("*").alias("messages"),
                F.sum("size").alias("bytes"),
                F.percentile_approx(seconds, [0.5, 0.9, 0.99], _ACCURACY).alias("p"),
                F.max(seconds).alias("latency_max"),
                # The sender is who sends again.
                F.sum(F.when(is_first, F.col("retransmissions")).otherwise(0)).alias("retransmissions"),
                _count(F.col("hop.seconds") < 0).alias("clock_suspects"),
            )
            .select(
                "hour", "from_manager", "to_manager", "messages", "bytes", *_spread("p", "latency"),
                "latency_max", "retransmissions", "clock_suspects",
            )
        )  # fmt: skip

    def _dead_letter_hours(self, days: list[date]) -> DataFrame:
        events = self._bronze.events().filter(F.col("day").isin(days))
        return (
            events.filter(meaning.happened(Event.DEAD_LETTERED))
            .groupBy(_hour("time"), "manager", "destination", "message_class", "reason")
            .agg(F.count("*").alias("messages"))
        )


def _hour(column: str) -> Column:
    return F.date_trunc("hour", F.col(column)).alias("hour")


def _count(condition: Column) -> Column:
    return F.count(F.when(condition, 1))


def _percentile_list(what: str) -> Column:
    return F.percentile_approx(F.col(what), [0.5, 0.9, 0.99], _ACCURACY)


def _spread(column: str, name: str) -> list[Column]:
    return [
        F.get(F.col(column), F.lit(number)).alias(f"{name}_{suffix}")
        for number, suffix in enumerate(("p50", "p90", "p99"))
    ]


def _with_backlog(hours: DataFrame) -> DataFrame:
    """What each queue holds at the end of each hour, and whether whoever reads it is too slow."""
    so_far = Window.partitionBy("manager", "queue").orderBy("hour")
    backlog = F.sum("change").over(so_far.rowsBetween(Window.unboundedPreceding, Window.currentRow))
    is_slow = (F.col("change") > 0) & (F.col("backlog") > 0) & (F.col("wait_p90") > SLOW_SECONDS)
    never_read = (F.col("received") == 0) & (F.col("change") > 0) & (F.col("backlog") > F.col("change"))
    is_local = ~F.col("queue").contains("=") & ~F.col("queue").contains(";")
    return hours.withColumn("backlog", backlog).withColumn(
        "is_slow", F.coalesce(is_local & (is_slow | never_read), F.lit(False))
    )
