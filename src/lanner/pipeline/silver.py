"""Silver: one row per message, made anew for the messages that new batches are about.

Rows are kept by the day on which a message was first heard of. A refresh looks up which days have rows of
the new batches' messages, gathers all events of these messages from bronze, and writes those days again, and
the days that get new messages; all other days stay as they are. So an event may come as late as it likes.
"""

from __future__ import annotations

from datetime import date
from typing import NamedTuple

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from lanner.pipeline.bronze import Bronze
from lanner.pipeline.silver_columns import SILVER, messages_of, to_events
from lanner.pipeline.tables import Manifest, Part, Tables

__all__ = ["Refreshed", "Silver", "VERSION"]

TABLE = "silver"
VERSION = 1
"""Goes up when a column is added or changes its meaning."""


class Refreshed(NamedTuple):
    """What a refresh did."""

    batches: tuple[str, ...]
    days: tuple[str, ...]
    """Days whose rows, or events, are others now."""


class Silver:
    """Messages of a fleet."""

    def __init__(self, tables: Tables, bronze: Bronze) -> None:
        self._tables = tables
        self._bronze = bronze

    def manifest(self) -> Manifest:
        """What has been written."""
        return self._tables.manifest(TABLE, VERSION)

    def messages(self) -> DataFrame:
        """All messages."""
        return self._read(self.manifest(), None)

    def refresh(self) -> Refreshed:
        """Take in the batches of bronze that are not in silver yet."""
        manifest = self.manifest()
        batches = {
            name: part
            for name, part in self._bronze.manifest().parts.items()
            if _mark(name, part) not in manifest.applied
        }
        if not batches:
            return Refreshed((), ())
        new = to_events(self._bronze.events(batches))
        count = sum(part.facts["events"] for part in batches.values())
        event_days = {day for part in batches.values() for day in part.facts["days"]}
        shared = self._days_of(manifest, new)
        # A day is one directory: what is written of it takes the place of what was there.
        touched = shared | {day for day in event_days if day in manifest.parts}
        # Tasks hold so many messages at a time that none needs to sort them.
        self._tables.spark.conf.set("spark.sql.objectHashAggregate.sortBased.fallbackThreshold", "400000")
        if shared:
            rows = self._merged(manifest, sorted(touched), new, event_days, count)
        else:
            rows = self._read(manifest, sorted(touched)).unionByName(messages_of(new, count))
        number = manifest.commit + 1
        written = self._write(rows, number, sorted(touched))
        marks = [_mark(name, part) for name, part in batches.items()]
        self._tables.commit(TABLE, manifest.with_parts(written, marks))
        return Refreshed(tuple(batches), tuple(sorted(event_days | touched | set(written))))

    def _days_of(self, manifest: Manifest, new: DataFrame) -> set[str]:
        """The days that have rows of the same messages."""
        if not manifest.parts:
            return set()
        keys = new.select("message_id").distinct()
        found = self._read(manifest, None).select("message_id", "day").join(keys, "message_id", "left_semi")
        return {str(row["day"]) for row in found.select("day").distinct().collect()}

    def _merged(
        self, manifest: Manifest, days: list[str], new: DataFrame, event_days: set[str], count: int
    ) -> DataFrame:
        old = self._read(manifest, days)
        keys = new.select("message_id").distinct().persist(StorageLevel.MEMORY_AND_DISK)
        untouched = old.join(keys, "message_id", "left_anti").select(*SILVER.names)
        span = F.sequence(F.to_date("first_time"), F.to_date("last_time"))
        spans = old.join(keys, "message_id", "left_semi").select(F.explode(span).alias("day")).distinct()
        wanted = sorted(event_days | {str(row["day"]) for row in spans.collect()})
        events = self._bronze.events().filter(F.col("day").isin([date.fromisoformat(day) for day in wanted]))
        again = to_events(events).join(keys, "message_id", "left_semi")
        return untouched.unionByName(messages_of(again, count * 2))

    def _write(self, rows: DataFrame, number: int, touched: list[str]) -> dict[str, Part]:
        path = f"{TABLE}/commit={number:010}"
        self._tables.write(rows, path, "day")
        names = self._tables.storage.names(path)
        days = [name.removeprefix("day=") for name in names if name.startswith("day=")]
        parts = {day: Part(path=f"{path}/day={day}") for day in days}
        for day in touched:
            # A late event can make a message one of an earlier day, and leave its day without rows.
            parts.setdefault(day, Part(path=""))
        return parts

    def _read(self, manifest: Manifest, days: list[str] | None) -> DataFrame:
        chosen = [
            (day, part.path)
            for day, part in manifest.parts.items()
            if part.path and (days is None or day in days)
        ]
        if not chosen:
            return self._tables.read((), SILVER)
        base = [self._tables.storage.at(path) for _, path in chosen]
        read = self._tables.spark.read.schema(SILVER)
        commits: dict[str, list[str]] = {}
        for path in base:
            commits.setdefault(path.rpartition("/")[0], []).append(path)
        frames = [read.option("basePath", commit).parquet(*paths) for commit, paths in commits.items()]
        whole = frames[0]
        for frame in frames[1:]:
            whole = whole.unionByName(frame)
        return whole.select(*SILVER.names)


def _mark(name: str, part: Part) -> str:
    """A batch that was written again with other rows is taken in again."""
    return f"{name}:{part.facts['events']}:{sum(int(one['total']) for one in part.facts['managers'])}"
