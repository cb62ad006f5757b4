"""Tables as directories of Parquet files, and manifests that say which directories count.

A job writes new directories, named after what they hold and the number of the commit, and then one
manifest. A job that is killed before its manifest leaves nothing that anybody reads; when it runs again it
writes the same directories over. Readers see one commit or the next, never something in between::

    ROOT/bronze/_manifests/0000000007.json     what counts since commit 7
    ROOT/bronze/batch=000003/commit=7/...      the rows of one batch since commit 7
    ROOT/silver/day=2026-11-15/commit=7/...    the rows of one day since commit 7
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from lanner.model.errors import LannerError
from lanner.pipeline.storage import Storage

__all__ = ["Manifest", "OtherJobError", "Tables", "VersionError"]

MANIFESTS = "_manifests"
KEPT_COMMITS = 3
"""Commits whose directories stay, for readers that began before the last one."""


class OtherJobError(LannerError):
    """Two jobs wrote the same table at once."""


class VersionError(LannerError):
    """A table was written in a way that this version does not know."""


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One directory that counts."""

    path: str
    facts: dict[str, Any] = {}
    """What its writer wants to remember of it."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """One commit of a table."""

    version: int
    commit: int = 0
    parts: dict[str, Part] = {}
    applied: tuple[str, ...] = ()
    """Batches of the table before this one that are in it."""
    facts: dict[str, Any] = {}
    """What its writer wants to remember of the whole."""

    def with_facts(self, facts: dict[str, Any]) -> Manifest:
        """The next commit, with facts added or put in the place of others."""
        return msgspec.structs.replace(self, commit=self.commit + 1, facts=self.facts | facts)

    def with_parts(self, parts: dict[str, Part], applied: Iterable[str] = ()) -> Manifest:
        """The next commit, with parts added or put in the place of others."""
        return msgspec.structs.replace(
            self,
            commit=self.commit + 1,
            parts=self.parts | parts,
            applied=tuple(dict.fromkeys((*self.applied, *applied))),
        )


class Tables:
    """All tables below one root."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        self.spark = spark
        self.storage = Storage(spark, root)

    def manifest(self, table: str, version: int) -> Manifest:
        """The last commit of a table, or the one before the first."""
        names = self._commits(table)
        if not names:
            return Manifest(version=version)
        found = msgspec.json.decode(self.storage.read(f"{table}/{MANIFESTS}/{names[-1]}"), type=Manifest)
        if found.version != version:
            raise VersionError(
                f"{self.storage.at(table)} has version {found.version} of its columns, and this is {version}",
                hint="write into a new directory; bronze can be read in again, the rest follows from it",
            )
        return found

    def commit(self, table: str, manifest: Manifest) -> None:
        """Make a manifest the one that counts."""
        name = f"{table}/{MANIFESTS}/{manifest.commit:010}.json"
        if not self.storage.write(name, msgspec.json.format(msgspec.json.encode(manifest))):
            raise OtherJobError(
                f"another job wrote {self.storage.at(table)} meanwhile", hint="run this one again"
            )
        self._forget_old(table)

    def write(self, frame: DataFrame, path: str, *partitions: str) -> str:
        """Write a directory over whatever an earlier attempt left there."""
        writer = frame.write.mode("overwrite")
        if partitions:
            # Otherwise every row is sorted by its directory first.
            self.spark.conf.set("spark.sql.maxConcurrentOutputFileWriters", "64")
            writer = writer.partitionBy(*partitions)
        writer.parquet(self.storage.at(path))
        return path

    def read(self, paths: Iterable[str], schema: StructType) -> DataFrame:
        """Read directories together; without any, a table without rows."""
        chosen = [self.storage.at(path) for path in paths]
        if not chosen:
            return self.spark.createDataFrame([], schema)
        return self.spark.read.schema(schema).parquet(*chosen)

    def _commits(self, table: str) -> list[str]:
        return [name for name in self.storage.names(f"{table}/{MANIFESTS}") if name.endswith(".json")]

    def _forget_old(self, table: str) -> None:
        names = self._commits(table)
        kept: set[str] = set()
        for name in names[-KEPT_COMMITS:]:
            kept |= self._paths_in(table, name)
        for name in names[:-KEPT_COMMITS]:
            for path in self._paths_in(table, name) - kept:
                self.storage.delete(path)
            self.storage.delete(f"{table}/{MANIFESTS}/{name}")

    def _paths_in(self, table: str, name: str) -> set[str]:
        manifest = msgspec.json.decode(self.storage.read(f"{table}/{MANIFESTS}/{name}"), type=Manifest)
        return {part.path for part in manifest.parts.values()}
