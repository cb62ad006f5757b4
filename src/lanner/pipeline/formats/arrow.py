"""Arrow files: about twice the size of Parquet, and read as they are, with next to nothing to decode."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import pyarrow

from lanner.model.errors import LannerError
from lanner.pipeline.batches import conform
from lanner.pipeline.filters import RowFilter
from lanner.pipeline.formats.part import ROWS_PER_PART, FilePart, Origin, origin_in
from lanner.pipeline.plan import split

__all__ = ["ArrowFormat"]

_ONE_THREAD = pyarrow.ipc.IpcReadOptions(use_threads=False)
"""Spark runs a task on every core: threads would only be in each other's way."""


class ArrowFormat:
    """A part is a range of record batches."""

    suffixes: ClassVar[tuple[str, ...]] = (".arrow", ".feather")

    def tells_manager(self, file: Path) -> bool:
        """Whether there is a column for it."""
        with _opened(file) as reader:
            return "manager" in reader.schema.names

    def origin(self, file: Path) -> Origin | None:
        """As the schema tells it."""
        with _opened(file) as reader:
            return origin_in(reader.schema.metadata)

    def cut(self, file: Path, parts: int, _wanted: RowFilter) -> Iterator[tuple[int, int]]:
        """Cut by the first batch's size: the footer does not tell the sizes, and writers make them alike."""
        with _opened(file) as reader:
            count = reader.num_record_batches
            if not count:
                return
            per_batch = max(1, reader.get_batch(0).num_rows)
            step = min(ROWS_PER_PART // per_batch, -(-count // parts))
            yield from split(0, count, max(1, step))

    def read(self, part: FilePart, schema: pyarrow.Schema) -> Iterator[pyarrow.RecordBatch]:
        """Read record batches."""
        with _opened(Path(part.file)) as reader:
            for number in range(part.first, part.end):
                batch = reader.get_batch(number)
                yield conform(batch, schema, manager=part.origin.manager, manager_id=part.origin.id)


@contextmanager
def _opened(file: Path) -> Iterator[Any]:
    try:
        source = pyarrow.memory_map(str(file))
        reader = pyarrow.ipc.open_file(source, options=_ONE_THREAD)
    except (pyarrow.ArrowInvalid, OSError) as error:
        raise LannerError(f"cannot read {file}: {error}") from error
    with source, reader:
        yield reader
