"""Moments of a batch of bronze at which a driver can be held until it is killed.

A batch goes: Spark notes its offsets, the rows are written, the manifest is written, Spark notes that the
batch is complete. A kill at a random time nearly always comes while rows are written, so the narrow moments
are made wide here, in the process that is to be killed. What is left on disk says that it was the moment.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, NoReturn

import pyarrow.dataset
from pyspark import TaskContext
from pyspark.sql import DataFrame

from lanner.pipeline.bronze import Bronze
from lanner.pipeline.tables import Manifest, Tables

__all__ = ["Left", "Moment", "hold_at"]

TABLE = "bronze"
FOREVER = 3600.0


class Moment(StrEnum):
    """Where a batch is when the driver is killed."""

    ANY = "any"
    PLANNED = "planned"
    """Its offsets are noted and nothing is written."""
    WRITING = "writing"
    """A task has written its rows and another has not."""
    WRITTEN = "written"
    """All rows are written and the manifest is not."""
    COMMITTED = "committed"
    """The manifest is written, and Spark does not know."""


def hold_at(moment: Moment, after: int, reached: Path) -> None:
    """Let so many batches pass, then stay at the moment of the next one, and say so with a file."""
    left = [after]

    def is_it() -> bool:
        left[0] -= 1
        return left[0] < 0

    def hold() -> NoReturn:
        reached.touch()
        time.sleep(FOREVER)
        raise AssertionError("nobody killed this driver")

    if moment is Moment.PLANNED:
        _hold_before_writing(is_it, hold)
    elif moment is Moment.WRITING:
        _hold_while_writing(is_it, str(reached))
    elif moment in (Moment.WRITTEN, Moment.COMMITTED):
        _hold_at_commit(is_it, hold, before=moment is Moment.WRITTEN)


def _hold_before_writing(is_it: Callable[[], bool], hold: Callable[[], NoReturn]) -> None:
    add = Bronze.add

    def added(self: Bronze, *arguments: Any, **named: Any) -> Mapping[str, Any]:
        if is_it():
            hold()
        return add(self, *arguments, **named)

    setattr(Bronze, "add", added)  # noqa: B010  # mypy forbids the plain form


def _hold_while_writing(is_it: Callable[[], bool], reached: str) -> None:
    write = Tables.write

    def hang(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        if context.partitionId() > 0:
            time.sleep(2)  # the other task writes meanwhile
            Path(reached).touch()
            time.sleep(FOREVER)
        yield from batches

    def written(self: Tables, frame: DataFrame, path: str, *partitions: str) -> str:
        if path.startswith(TABLE) and is_it():
            frame = frame.repartition(2).mapInArrow(hang, frame.schema)
        return write(self, frame, path, *partitions)

    setattr(Tables, "write", written)  # noqa: B010


def _hold_at_commit(is_it: Callable[[], bool], hold: Callable[[], NoReturn], *, before: bool) -> None:
    commit = Tables.commit

    def committed(self: Tables, table: str, manifest: Manifest) -> None:
        brings_rows = manifest.parts != self.manifest(table, manifest.version).parts
        wanted = table == TABLE and brings_rows and is_it()
        if wanted and before:
            hold()
        commit(self, table, manifest)
        if wanted:
            hold()

    setattr(Tables, "commit", committed)  # noqa: B010


class Left:
    """What a driver left on disk of its last batch."""

    def __init__(self, root: Path, stream: str = "managers") -> None:
        self._table = root / TABLE
        checkpoint = root / "_checkpoints" / stream
        self.planned = _last(checkpoint / "offsets")
        self.complete = _last(checkpoint / "commits")
        self.batch = f"{stream}-{_identity(checkpoint)}-{self.planned:010}"
        manifests = sorted((self._table / "_manifests").glob("*.json"))
        self.parts: dict[str, dict[str, Any]] = (
            json.loads(manifests[-1].read_text())["parts"] if manifests else {}
        )

    def moment(self) -> Moment:
        """Where the last batch was."""
        if self.complete == self.planned:
            return Moment.ANY
        counted = {self._table.parent / part["path"] for part in self.parts.values()}
        whole = [file.parent for file in self._table.rglob("_SUCCESS") if self.batch in str(file)]
        if any(path not in counted for path in whole):
            return Moment.WRITTEN
        if any(self.batch in str(file) for file in self._table.rglob("_temporary")):
            return Moment.WRITING
        return Moment.COMMITTED if self.batch in self.parts else Moment.PLANNED

    def lsns(self) -> list[int]:
        """The LSNs of everything that counts, sorted."""
        found: list[int] = []
        for part in self.parts.values():
            if part["facts"]["events"]:
                events = self._table.parent / part["path"] / "table=events"
                found += (
                    pyarrow.dataset.dataset(events, format="parquet").to_table(["lsn"])["lsn"].to_pylist()
                )
        return sorted(found)


def _identity(checkpoint: Path) -> str:
    return str(json.loads((checkpoint / "metadata").read_text())["id"])[:8]


def _last(log: Path) -> int:
    """The number of the last batch in one of Spark's logs."""
    return max((int(file.name) for file in log.glob("[0-9]*")), default=-1)
