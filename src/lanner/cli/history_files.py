"""Writing the history as Parquet or Arrow, as it comes in, whatever its size."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from lanner.model.errors import InvalidPropertyError

if TYPE_CHECKING:
    import pyarrow

__all__ = ["Columnar", "appearing_whole", "write_columns"]

Columnar = Literal["parquet", "arrow"]

ROWS_AT_ONCE: dict[Columnar, int] = {"parquet": 131_072, "arrow": 16_384}
"""Rows of a row group, and of a record batch: what readers of each format like."""

BYTES_AT_ONCE = 64 * 1024 * 1024
"""Bytes of either at most: rows may have bodies of 4 MB."""


def write_columns(
    pieces: Iterable[bytes], file: Path, form: Columnar, *, manager: str, manager_id: str
) -> int:
    """Write the bytes of an Arrow stream to a file that tells whose history it is; returns the rows."""
    try:
        import pyarrow
    except ImportError:
        raise InvalidPropertyError(f"{form} needs pyarrow", hint="pip install 'lanner[arrow]'") from None
    origin = {"lanner.manager": manager, "lanner.manager_id": manager_id}
    count = 0
    source = io.BufferedReader(_Pieces(pieces))  # Arrow takes a short read for the end
    with pyarrow.ipc.open_stream(source) as reader, appearing_whole(file) as unfinished:
        schema = reader.schema.with_metadata(origin)
        with _writer(form, unfinished, schema) as writer:
            for table in _gathered(reader, ROWS_AT_ONCE[form]):
                writer.write_table(table.replace_schema_metadata(origin))
                count += table.num_rows
    return count


@contextmanager
def appearing_whole(file: Path) -> Iterator[Path]:
    """A place to write to, which becomes the file when everything is written, and is gone if not.

    A device or a pipe is written to as it is: it must not be replaced by a file of its name.
    """
    target = file.resolve()  # whoever has a link there keeps it
    is_replaced = target.is_file() or not target.exists()
    unfinished = target.with_name(f"{target.name}.unfinished") if is_replaced else target
    try:
        yield unfinished
        if is_replaced:
            unfinished.replace(target)
    except OSError as error:
        raise InvalidPropertyError(f"cannot write {file}: {error.strerror or error}") from error
    finally:
        if is_replaced:
            unfinished.unlink(missing_ok=True)


def _writer(form: Columnar, file: Path, schema: pyarrow.Schema) -> Any:
    import pyarrow.parquet

    if form == "parquet":
        return pyarrow.parquet.ParquetWriter(file, schema)
    return pyarrow.ipc.new_file(str(file), schema, options=pyarrow.ipc.IpcWriteOptions(compression="lz4"))


def _gathered(batches: Iterable[pyarrow.RecordBatch], rows: int) -> Iterator[pyarrow.Table]:
    """Batches put together until they have so many rows, or are large."""
    import pyarrow

    some: list[pyarrow.RecordBatch] = []
    for batch in batches:
        some.append(batch)
        if sum(one.num_rows for one in some) >= rows or sum(one.nbytes for one in some) >= BYTES_AT_ONCE:
            yield pyarrow.Table.from_batches(some).combine_chunks()
            some = []
    if some:
        yield pyarrow.Table.from_batches(some).combine_chunks()


class _Pieces(io.RawIOBase):
    """Pieces of bytes as a file, so that no more of them than needed are in memory."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer as far as the next pieces do; 0 at the end."""
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count
