"""Which rows are wanted: the options ``queue`` and ``queuePattern``, and filters that Spark hands down."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cache

import pyarrow
import pyarrow.compute
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from lanner.pipeline.options import SourceOptions

__all__ = ["QueueFilter", "RowFilter"]

NO_END = 1 << 63


@dataclass(frozen=True)
class QueueFilter:
    """A queue's name, or a pattern with ``*`` and ``?``; without either every queue is wanted."""

    name: str = ""
    pattern: str = ""

    @classmethod
    def of(cls, options: SourceOptions) -> QueueFilter:
        """What the options say."""
        return cls(options.queue.lower(), options.queue_pattern.lower())

    def __bool__(self) -> bool:
        return bool(self.name or self.pattern)

    def takes(self, queue: str, manager: str) -> bool:
        """Whether a queue is wanted. ``.\\private$\\q`` is every manager's, ``M\\private$\\q`` that of M."""
        names = {queue.lower()}
        if queue.startswith(".\\"):
            names.add(f"{manager}{queue[1:]}".lower())
        if self.name:
            return self.name in names
        return any(_expression(self.pattern).match(name) for name in names) if self.pattern else True


@cache
def _expression(pattern: str) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(pattern))


@dataclass(frozen=True)
class RowFilter:
    """What of Spark's filters this source can use. Spark checks again: it may let more through."""

    first: int = 0
    end: int = NO_END
    values: dict[str, frozenset[str]] = field(default_factory=dict)
    queues: QueueFilter = field(default_factory=QueueFilter)

    COLUMNS = ("manager", "manager_id", "event", "queue", "message_id")

    def pushed(self, filters: Iterable[Filter]) -> RowFilter:
        """Add filters, all of which must hold."""
        chosen = self
        for one in filters:
            chosen = chosen._with(one)
        return chosen

    def _with(self, one: Filter) -> RowFilter:
        if not isinstance(
            one, EqualTo | EqualNullSafe | In | GreaterThan | GreaterThanOrEqual | LessThan | LessThanOrEqual
        ):
            return self
        column = one.attribute[0] if len(one.attribute) == 1 else ""
        wanted = tuple(one.value) if isinstance(one, In) else (one.value,)
        if column == "lsn" and all(isinstance(value, int) for value in wanted):
            return self._with_lsn(one, wanted)
        is_same = isinstance(one, EqualTo | EqualNullSafe | In)
        if column in self.COLUMNS and is_same and all(isinstance(value, str) for value in wanted):
            both = frozenset(wanted) & self.values.get(column, frozenset(wanted))
            return replace(self, values={**self.values, column: both})
        return self

    def _with_lsn(self, one: Filter, wanted: tuple[int, ...]) -> RowFilter:
        if not wanted:
            return self
        first, end = self.first, self.end
        if isinstance(one, GreaterThan | GreaterThanOrEqual | EqualTo | EqualNullSafe | In):
            first = max(first, min(wanted) + isinstance(one, GreaterThan))
        if isinstance(one, LessThan | LessThanOrEqual | EqualTo | EqualNullSafe | In):
            end = min(end, max(wanted) + (not isinstance(one, LessThan)))
        return replace(self, first=first, end=end)

    def takes_manager(self, name: str, identifier: str | None = None) -> bool:
        """Whether any row of a manager can be wanted."""
        names, identifiers = self.values.get("manager"), self.values.get("manager_id")
        return (names is None or name in names) and (
            identifiers is None or identifier is None or identifier in identifiers
        )

    def apply(self, batch: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
        """Drop the rows of a history batch that are not wanted."""
        mask = None
        for column, wanted in self.values.items():
            values = pyarrow.array(sorted(wanted), pyarrow.string())
            mask = _both(mask, pyarrow.compute.is_in(batch.column(column), value_set=values))
        if self.queues:
            mask = _both(mask, self._queue_mask(batch))
        if self.first > 0 or self.end < NO_END:
            mask = _both(mask, self._lsn_mask(batch))
        return batch if mask is None else batch.filter(mask)

    def _queue_mask(self, batch: pyarrow.RecordBatch) -> pyarrow.Array:
        # A batch has thousands of rows and a few queues: each is compared once.
        queues = batch.column("queue")
        pairs = pyarrow.StructArray.from_arrays([queues, batch.column("manager")], ["queue", "manager"])
        found = (
            pyarrow.Table.from_struct_array(pairs).group_by(["queue", "manager"]).aggregate([]).to_pylist()
        )
        wanted = {
            (row["queue"], row["manager"]) for row in found if self.queues.takes(row["queue"], row["manager"])
        }
        mask = None
        for manager in {manager for _, manager in wanted}:
            of_manager = pyarrow.compute.is_in(
                queues,
                value_set=pyarrow.array(
                    [queue for queue, whose in wanted if whose == manager], pyarrow.string()
                ),
            )
            this = pyarrow.compute.and_(of_manager, pyarrow.compute.equal(batch.column("manager"), manager))
            mask = this if mask is None else pyarrow.compute.or_(mask, this)
        return pyarrow.repeat(False, batch.num_rows) if mask is None else mask

    def _lsn_mask(self, batch: pyarrow.RecordBatch) -> pyarrow.Array:
        lsn = batch.column("lsn")
        return pyarrow.compute.and_(
            pyarrow.compute.greater_equal(lsn, self.first),
            pyarrow.compute.less(lsn, min(self.end, NO_END - 1)),
        )


def _both(one: pyarrow.Array | None, other: pyarrow.Array) -> pyarrow.Array:
    return other if one is None else pyarrow.compute.and_(one, other)
