"""Parquet: small, and what every tool reads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pyarrow
import pyarrow.parquet

from lanner.model.errors import LannerError
from lanner.pipeline.batches import BATCH_ROWS, conform
from lanner.pipeline.filters import RowFilter
from lanner.pipeline.formats.part import ROWS_PER_PART, FilePart, Origin, origin_in
from lanner.pipeline.plan import split

__all__ = ["ParquetFormat"]


class ParquetFormat:
    """A part is a range of row groups."""

    suffixes: ClassVar[tuple[str, ...]] = (".parquet",)

    def tells_manager(self, file: Path) -> bool:
        """Whether there is a column for it."""
        with _open(file) as parquet:
            return "manager" in parquet.schema_arrow.names

    def origin(self, file: Path) -> Origin | None:
        """As the schema tells it."""
        with _open(file) as parquet:
            return origin_in(parquet.schema_arrow.metadata)

    def cut(self, file: Path, parts: int, wanted: RowFilter) -> Iterator[tuple[int, int]]:
        """Leave out row groups whose LSNs, as the file's footer tells them, are not wanted."""
        with _open(file) as parquet:
            metadata = parquet.metadata
            groups = metadata.num_row_groups
            step = min(ROWS_PER_PART, -(-metadata.num_rows // parts))
            per_group = max(1, metadata.num_rows // max(groups, 1))
            for first, end in split(0, groups, max(1, step // per_group)):
                if _may_have(metadata, first, end, wanted):
                    yield first, end

    def read(self, part: FilePart, schema: pyarrow.Schema) -> Iterator[pyarrow.RecordBatch]:
        """Read row groups."""
        with _open(Path(part.file)) as parquet:
            columns = [name for name in parquet.schema_arrow.names if name in schema.names]
            groups = list(range(part.first, part.end))
            # Spark runs a task on every core: threads would only be in each other's way.
            batches = parquet.iter_batches(BATCH_ROWS, row_groups=groups, columns=columns, use_threads=False)
            for batch in batches:
                yield conform(batch, schema, manager=part.origin.manager, manager_id=part.origin.id)


def _open(file: Path) -> Any:
    try:
        return pyarrow.parquet.ParquetFile(file, memory_map=True)
    except (pyarrow.ArrowInvalid, OSError) as error:
        raise LannerError(f"cannot read {file}: {error}") from error


def _may_have(metadata: Any, first: int, end: int, wanted: RowFilter) -> bool:
    """Whether a row that is wanted can be in these row groups, by what the file says of its LSNs."""
    for group in range(first, end):
        columns = metadata.row_group(group)
        of_lsn = [
            columns.column(index)
            for index in range(columns.num_columns)
            if columns.column(index).path_in_schema == "lsn"
        ]
        known = of_lsn[0].statistics if of_lsn else None
        if known is None or not known.has_min_max:
            return True
        if known.max >= wanted.first and known.min < wanted.end:
            return True
    return False
