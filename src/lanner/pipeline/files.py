"""Reading an exported history: Parquet or JSON lines, one file or many.

A file does not tell whose history it is: that is its column ``manager``, else the part ``manager=NAME`` of
its path, else its own name without the suffix.
"""

from __future__ import annotations

import glob
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import pyarrow
import pyarrow.parquet
from pyspark.sql.datasource import InputPartition

from lanner.model.errors import LannerError
from lanner.model.history import HistoryRow
from lanner.pipeline.batches import BATCH_ROWS, conform, from_rows, pieces
from lanner.pipeline.errors import InvalidOptionError
from lanner.pipeline.filters import RowFilter
from lanner.pipeline.plan import split

__all__ = ["FilePart", "plan_files", "read_file"]

PARQUET = (".parquet",)
JSON_LINES = (".jsonl", ".ndjson", ".json")

ROWS_PER_PART = 500_000
BYTES_PER_PART = 64 * 1024 * 1024
"""What one task reads, unless ``minPartitions`` wants smaller parts."""

MAX_LINE = 16 * 1024 * 1024
"""A row has a body of up to 4 MB, which base64 makes 5.6 MB."""


@dataclass(frozen=True)
class FilePart(InputPartition):
    """Row groups of a Parquet file, or bytes of a file of lines, from ``first`` up to but without ``end``."""

    file: str
    manager: str
    first: int
    end: int


def plan_files(path: str, min_partitions: int, wanted: RowFilter) -> list[FilePart]:
    """Cut the files at a path into parts."""
    files = [file for file in _find(path) if wanted.takes_manager(_manager_of(file)) or _tells_manager(file)]
    each = -(-min_partitions // max(len(files), 1))
    return [part for file in files for part in _plan_file(file, each, wanted)]


def _find(path: str) -> list[Path]:
    matches = [Path(name) for name in sorted(glob.glob(path))]  # noqa: PTH207  # absolute or not or [Path(path)]
    files: list[Path] = []
    for match in matches:
        files.extend(sorted(_below(match)) if match.is_dir() else [match])
    if not files or not all(file.exists() for file in files):
        raise InvalidOptionError(
            f"there is no history at {path}", hint="export one: lanner history export FILE"
        )
    for file in files:
        if file.suffix not in PARQUET + JSON_LINES:
            raise InvalidOptionError(
                f"{file} is neither Parquet nor JSON lines", hint="call it .parquet, .jsonl, .ndjson or .json"
            )
    return files


def _below(directory: Path) -> Iterator[Path]:
    # As everywhere in Spark's world, a name that begins with . or _ is no data.
    for file in directory.rglob("*"):
        if file.is_file() and not any(part[0] in "._" for part in file.relative_to(directory).parts):
            yield file


def _manager_of(file: Path) -> str:
    for part in file.parts:
        if part.startswith("manager="):
            return part.removeprefix("manager=")
    return file.stem


def _tells_manager(file: Path) -> bool:
    return file.suffix in JSON_LINES or "manager" in _open(file).schema_arrow.names


def _plan_file(file: Path, parts: int, wanted: RowFilter) -> Iterator[FilePart]:
    manager = _manager_of(file)
    if file.suffix in JSON_LINES:
        size = file.stat().st_size
        for first, end in split(0, size, min(BYTES_PER_PART, -(-size // parts))):
            yield FilePart(str(file), manager, first, end)
        return
    with _open(file) as parquet:
        metadata = parquet.metadata
        groups = metadata.num_row_groups
        step = min(ROWS_PER_PART, -(-metadata.num_rows // parts))
        per_group = max(1, metadata.num_rows // max(groups, 1))
        for first, end in split(0, groups, max(1, step // per_group)):
            if _may_have(metadata, first, end, wanted):
                yield FilePart(str(file), manager, first, end)


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


def read_file(part: FilePart, schema: pyarrow.Schema, wanted: RowFilter) -> Iterator[pyarrow.RecordBatch]:
    """Give the rows of a part."""
    file = Path(part.file)
    batches = _lines(part, schema) if file.suffix in JSON_LINES else _row_groups(part, schema)
    try:
        for batch in batches:
            yield from pieces(wanted.apply(batch))
    except (pyarrow.ArrowInvalid, ValueError) as error:
        raise LannerError(f"{file} is no history: {error}", hint="export it again") from error


def _row_groups(part: FilePart, schema: pyarrow.Schema) -> Iterator[pyarrow.RecordBatch]:
    with _open(Path(part.file)) as parquet:
        columns = [name for name in parquet.schema_arrow.names if name in schema.names]
        groups = list(range(part.first, part.end))
        # Spark runs a task on every core: threads would only be in each other's way.
        batches = parquet.iter_batches(BATCH_ROWS, row_groups=groups, columns=columns, use_threads=False)
        for batch in batches:
            yield conform(batch, schema, manager=part.manager, manager_id=None)


def _open(file: Path) -> Any:
    try:
        return pyarrow.parquet.ParquetFile(file, memory_map=True)
    except (pyarrow.ArrowInvalid, OSError) as error:
        raise LannerError(f"cannot read {file}: {error}") from error


def _lines(part: FilePart, schema: pyarrow.Schema) -> Iterator[pyarrow.RecordBatch]:
    with Path(part.file).open("rb") as file:
        yield from from_rows(_decoded(file, part, schema), schema)


def _decoded(file: BinaryIO, part: FilePart, schema: pyarrow.Schema) -> Iterator[dict[str, Any]]:
    # A line belongs to the part that it begins in.
    file.seek(part.first)
    if part.first:
        file.seek(part.first - 1)
        file.readline(MAX_LINE)
    while (position := file.tell()) < part.end:
        line = file.readline(MAX_LINE)
        if line.strip():
            yield _row(line, position, part, schema)


class _Line(msgspec.Struct, gc=False):
    """A row of the history as JSON, by name; newer Lanners may write more."""

    lsn: int
    time: float
    event: str
    queue: str
    message_id: str
    lookup_id: int
    message_class: int
    priority: int
    size: int
    label: str | None = None
    destination: str | None = None
    administration: str | None = None
    response: str | None = None
    stream: int | None = None
    sequence: int | None = None
    previous: int | None = None
    transaction_id: str | None = None
    reason: str | None = None
    peer: str | None = None
    body: bytes | None = None
    manager: str | None = None
    manager_id: str | None = None


assert set(HistoryRow.__struct_fields__) <= set(_Line.__struct_fields__)

_decoder = msgspec.json.Decoder(_Line)


def _row(line: bytes, position: int, part: FilePart, schema: pyarrow.Schema) -> dict[str, Any]:
    try:
        row = _decoder.decode(line)
    except msgspec.MsgspecError as error:
        raise ValueError(f"the line at byte {position} is no row: {error}") from error
    values: dict[str, Any] = {name: getattr(row, name, None) for name in schema.names}
    values["manager"] = row.manager or part.manager
    values["time"] = round(row.time * 1_000_000)
    if row.stream is not None and row.stream >= 1 << 63:  # 64 bits without a sign; Spark has none such
        values["stream"] = row.stream - (1 << 64)
    return values
