"""JSON, one row in a line: what people and scripts read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import msgspec
import pyarrow

from lanner.model.history import HistoryRow
from lanner.pipeline.batches import from_rows
from lanner.pipeline.filters import RowFilter
from lanner.pipeline.formats.part import FilePart, Origin
from lanner.pipeline.plan import split

__all__ = ["JsonLinesFormat"]

BYTES_PER_PART = 64 * 1024 * 1024
"""What one task reads, unless ``minPartitions`` wants smaller parts."""

MAX_LINE = 16 * 1024 * 1024
"""A row has a body of up to 4 MB, which base64 makes 5.6 MB."""


class JsonLinesFormat:
    """A part is a range of bytes."""

    suffixes: ClassVar[tuple[str, ...]] = (".jsonl", ".ndjson", ".json")

    def tells_manager(self, _file: Path) -> bool:
        """Any line may."""
        return True

    def origin(self, _file: Path) -> Origin | None:
        """The lines tell it, or nobody."""
        return None

    def cut(self, file: Path, parts: int, _wanted: RowFilter) -> Iterator[tuple[int, int]]:
        """Cut anywhere."""
        size = file.stat().st_size
        yield from split(0, size, min(BYTES_PER_PART, -(-size // parts)))

    def read(self, part: FilePart, schema: pyarrow.Schema) -> Iterator[pyarrow.RecordBatch]:
        """Read the lines that begin in the part."""
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
    values["manager"] = row.manager or part.origin.manager
    values["time"] = round(row.time * 1_000_000)
    if row.stream is not None and row.stream >= 1 << 63:  # 64 bits without a sign; Spark has none such
        values["stream"] = row.stream - (1 << 64)
    return values
