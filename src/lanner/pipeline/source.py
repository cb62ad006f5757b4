"""``format("msmq")``: the histories, messages, dead letters and queues of managers as Spark tables.

Theory of operation. The driver asks every manager who it is and how far its history goes, and plans ranges
of LSNs (``offsets``, ``plan``). Executors read the ranges (``reading``) or files (``files``). An LSN is
written once and never changes, so a range that is read twice gives the same rows, and with Spark's
checkpoint each row is in exactly one batch.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from typing import Any

import pyarrow
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    Filter,
    InputPartition,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from lanner.client import AsyncClient
from lanner.pipeline.errors import InvalidOptionError, ManagerAwayError
from lanner.pipeline.files import plan_files, read_file
from lanner.pipeline.filters import QueueFilter, RowFilter
from lanner.pipeline.formats import FilePart
from lanner.pipeline.managers import Fleet, ask, look_at
from lanner.pipeline.offsets import Offsets, Position, advance, from_json, resolve, to_json
from lanner.pipeline.options import EARLIEST, LATEST, SourceOptions
from lanner.pipeline.plan import HistoryRange, limit_offsets, plan_ranges
from lanner.pipeline.reading import read_range
from lanner.pipeline.schema import arrow_schema, spark_schema
from lanner.pipeline.sink import MsmqStreamWriter, MsmqWriter
from lanner.pipeline.snapshots import SnapshotPart, plan_snapshot, read_snapshot

__all__ = ["MsmqBatchReader", "MsmqPushingReader", "MsmqPushingSource", "MsmqSource", "MsmqStreamReader"]

FORMAT = "msmq"

QUIET_SECONDS = 0.2
"""How long a stream waits between two questions when the last had no news for an answer."""


class MsmqSource(DataSource):
    """The data source, without filter pushdown: that needs a setting of the session."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return FORMAT

    def schema(self) -> StructType:
        """The columns, which depend on ``what`` and ``includeBody`` alone."""
        chosen = _schema_options(self.options)
        return spark_schema(chosen.what, include_body=chosen.include_body)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Read a batch."""
        options = SourceOptions.parse(self.options)
        _check_schema(options, schema)
        return MsmqBatchReader(options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  # Spark's name
        """Read a stream."""
        options = SourceOptions.parse(self.options, streaming=True)
        _check_schema(options, schema)
        return MsmqStreamReader(options)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """Send a batch."""
        return MsmqWriter.of(self.options, schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: N802
        """Send a stream."""
        return MsmqStreamWriter.of(self.options, schema, overwrite=overwrite)


class MsmqPushingSource(MsmqSource):
    """The same with filter pushdown, for ``register``: Spark refuses it where the setting is off."""

    def reader(self, schema: StructType) -> DataSourceReader:
        """Read a batch."""
        options = SourceOptions.parse(self.options)
        _check_schema(options, schema)
        return MsmqPushingReader(options)


def _schema_options(options: MutableMapping[str, str]) -> SourceOptions:
    # Spark asks for the schema of batches and streams alike and does not say which it is.
    try:
        return SourceOptions.parse(options)
    except InvalidOptionError as error:
        try:
            return SourceOptions.parse(options, streaming=True)
        except InvalidOptionError:
            raise error from None


def _check_schema(options: SourceOptions, schema: StructType) -> None:
    if schema.names != arrow_schema(options.what, include_body=options.include_body).names:
        raise InvalidOptionError("the columns are given by 'what'", hint="leave out .schema(...), and select")


class MsmqBatchReader(DataSourceReader):
    """Reads what there is at the moment of planning."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._queues = QueueFilter.of(options)
        self._wanted = RowFilter(queues=self._queues)

    def partitions(self) -> Sequence[InputPartition]:
        """Plan the read; asks the managers."""
        options = self._options
        if options.path:
            return plan_files(options.path, options.min_partitions, self._wanted)
        if options.what != "history":
            return plan_snapshot(options, self._queues)
        fail = options.fail_on_data_loss
        fleet = look_at(options.managers, options.patience, fail=fail)
        partly = not fleet.is_whole
        start = resolve(options.starting_offsets or EARLIEST, fleet.seen, fail=fail, partly=partly)
        end = resolve(options.ending_offsets, fleet.seen, fail=fail, partly=partly)
        start, end = self._narrowed(start, end)
        return plan_ranges(start, end, fleet.addresses, options.min_partitions)

    def _narrowed(self, start: Offsets, end: Offsets) -> tuple[Offsets, Offsets]:
        wanted = self._wanted
        names = [name for name, position in end.items() if wanted.takes_manager(name, position.id)]
        return (
            {name: start[name]._replace(next=max(start[name].next, wanted.first)) for name in names},
            {name: end[name]._replace(next=min(end[name].next, wanted.end)) for name in names},
        )

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        """Read one part, on an executor."""
        return _read(self._options, self._wanted, partition)


class MsmqPushingReader(MsmqBatchReader):
    """Uses Spark's filters to read less."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        """Note what can be used; Spark still checks every row."""
        if self._options.what == "history":
            self._wanted = self._wanted.pushed(filters)
        return filters


class MsmqStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the histories as they grow. It lives on the driver as long as the query runs."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._wanted = RowFilter(queues=QueueFilter.of(options))
        self._fleet: Fleet | None = None
        self._target: Offsets | None = None
        self._is_quiet = False
        self._is_registered = False

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Where a query without a checkpoint begins."""
        options = self._options
        fleet = self._look()
        self._register()
        wish = options.starting_offsets or LATEST
        return to_json(resolve(wish, fleet.seen, fail=options.fail_on_data_loss, partly=not fleet.is_whole))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """What ``maxOffsetsPerTrigger`` says."""
        limit = self._options.max_offsets_per_trigger
        return ReadAllAvailable() if limit is None else ReadMaxRows(limit)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """Where the next batch ends; tells what was lost since the last."""
        before = from_json(start)
        if self._is_quiet:
            # Spark asks again after 10 ms, for ever; managers that have nothing to tell are left alone.
            time.sleep(QUIET_SECONDS)
        self._register()  # a query that goes on from its checkpoint has not yet
        fleet = self._look()
        fail = self._options.fail_on_data_loss
        end = advance(before, fleet.seen, fail=fail, partly=not fleet.is_whole)
        if self._target is not None:
            end = _at_most(end, self._target, before)
        if isinstance(limit, ReadMaxRows):
            end = limit_offsets(before, end, limit.max_rows)
        self._is_quiet = _is_same(before, end)
        return start if self._is_quiet else to_json(end)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Remember where everything ends now: this run reads no further."""
        self._target = advance({}, self._look().seen, fail=self._options.fail_on_data_loss)

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        """How far the histories go, for the query's progress."""
        if self._fleet is None:
            return None
        return {seen.name: {"id": seen.id, "next": seen.end} for seen in self._fleet.seen}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Plan a batch. The same offsets give the same parts, also after a restart."""
        first, last = from_json(start), from_json(end)
        fleet = self._fleet or self._look()
        moved = [name for name, position in last.items() if not _is_at(first.get(name), position)]
        if missing := sorted(set(moved) - fleet.addresses.keys()):
            # To leave them out would lose their rows: the checkpoint says that they are in this batch.
            raise ManagerAwayError(
                f"{', '.join(missing)}: not among the managers that answer, and a batch has its rows",
                hint="start it, or put it back into 'managers', and restart the query",
            )
        addresses = fleet.addresses
        return plan_ranges(
            first, {name: last[name] for name in moved}, addresses, self._options.min_partitions
        )

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        """Read one part, on an executor."""
        return _read(self._options, self._wanted, partition)

    def commit(self, end: dict[str, Any]) -> None:
        """Tell the managers that everything before ``end`` may be trimmed, as far as this reader goes."""
        name = self._options.reader
        if not name or self._fleet is None:
            return
        offsets = from_json(end)
        for seen in self._fleet.seen:
            position = offsets.get(seen.name)
            if position is None or position.id != seen.id or position.next <= 1:
                continue
            lsn = position.next - 1

            async def confirm(client: AsyncClient, lsn: int = lsn) -> bool:
                await client.confirm(name, lsn)
                return True

            # Whoever is away hears of the next batch: this is no reason to stop.
            ask([self._fleet.addresses[seen.name]], 0, confirm)

    def stop(self) -> None:
        """Nothing is held open between two questions."""

    def __getstate__(self) -> dict[str, Any]:
        # Executors read parts, which say all; what the driver has seen is not for them.
        return {**self.__dict__, "_fleet": None, "_target": None}

    def _look(self) -> Fleet:
        options = self._options
        self._fleet = look_at(options.managers, options.patience, fail=options.fail_on_data_loss)
        return self._fleet

    def _register(self) -> None:
        name = self._options.reader
        if not name or self._is_registered:
            return

        async def register(client: AsyncClient) -> bool:
            await client.register_reader(name)
            return True

        # Whoever is away now is asked again before the next batch.
        self._is_registered = all(ask(self._options.managers, self._options.patience, register))


def _at_most(end: Offsets, target: Offsets, before: Offsets) -> Offsets:
    """No further than the target; a manager that has joined since is for the next run."""
    capped = {}
    for name, position in end.items():
        goal = target.get(name)
        if goal is not None and goal.id == position.id:
            capped[name] = position._replace(next=min(position.next, goal.next))
        elif name in before:
            capped[name] = before[name]._replace(since=None)
    return capped


def _is_same(before: Offsets, end: Offsets) -> bool:
    """Whether nothing is to be read: Spark sees that by offsets that are equal to the last."""
    return before.keys() == end.keys() and all(_is_at(before[name], end[name]) for name in end)


def _is_at(one: Position | None, other: Position) -> bool:
    return one is not None and (one.id, one.next) == (other.id, other.next)


def _read(
    options: SourceOptions, wanted: RowFilter, partition: InputPartition
) -> Iterator[pyarrow.RecordBatch]:
    if type(partition) is InputPartition:  # Spark's own, where there are no parts at all
        return iter(())
    schema = arrow_schema(options.what, include_body=options.include_body)
    if isinstance(partition, HistoryRange):
        fail = options.fail_on_data_loss
        return read_range(partition, schema, wanted, fail=fail, patience=options.patience)
    if isinstance(partition, FilePart):
        return read_file(partition, schema, wanted)
    assert isinstance(partition, SnapshotPart)
    return read_snapshot(partition, options.what, schema, wanted.queues, options.patience)
