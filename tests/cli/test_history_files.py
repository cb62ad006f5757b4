"""Exports of any size, written as they come, and there as a whole or not at all."""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from lanner.cli.history_files import BYTES_AT_ONCE, Columnar, appearing_whole, write_columns
from lanner.model.errors import InvalidPropertyError

SCHEMA = pyarrow.schema([("lsn", pyarrow.int64()), ("body", pyarrow.binary())])


def stream(batches: list[pyarrow.RecordBatch]) -> bytes:
    buffer = io.BytesIO()
    with pyarrow.ipc.new_stream(buffer, SCHEMA) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return buffer.getvalue()


def batch_of(first: int, count: int, body: bytes = b"") -> pyarrow.RecordBatch:
    return pyarrow.record_batch([list(range(first, first + count)), [body] * count], schema=SCHEMA)


def cut(data: bytes, size: int) -> Iterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


def written(file: Path, form: Columnar, batches: list[pyarrow.RecordBatch], size: int = 1000) -> int:
    return write_columns(cut(stream(batches), size), file, form, manager="ALPHA", manager_id="1")


def groups(file: Path, form: Columnar) -> list[int]:
    if form == "parquet":
        metadata = pyarrow.parquet.ParquetFile(file).metadata
        return [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
    reader = pyarrow.ipc.open_file(str(file))
    return [reader.get_batch(number).num_rows for number in range(reader.num_record_batches)]


@pytest.mark.parametrize("form", ["parquet", "arrow"])
@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_pieces_may_be_cut_anywhere(tmp_path: Path, form: Columnar, size: int) -> None:
    file = tmp_path / f"h.{form}"
    assert written(file, form, [batch_of(1, 3), batch_of(4, 2)], size) == 5
    assert groups(file, form) == [5]


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_no_rows(tmp_path: Path, form: Columnar) -> None:
    file = tmp_path / f"h.{form}"
    assert written(file, form, []) == 0
    assert groups(file, form) == []


@pytest.mark.parametrize(("form", "expected"), [("parquet", [131_072, 32_768]), ("arrow", [16_384] * 10)])
def test_small_batches_are_put_together(tmp_path: Path, form: Columnar, expected: list[int]) -> None:
    file = tmp_path / f"h.{form}"
    written(file, form, [batch_of(1 + 4096 * number, 4096) for number in range(40)], 1 << 20)
    assert groups(file, form) == expected


def test_large_bodies_are_not_held_back(tmp_path: Path) -> None:
    large = batch_of(1, 1, b"x" * (BYTES_AT_ONCE // 2 + 1))
    written(tmp_path / "h.arrow", "arrow", [large] * 4, 1 << 20)
    assert groups(tmp_path / "h.arrow", "arrow") == [2, 2]


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_what_breaks_off_leaves_nothing_behind(tmp_path: Path, form: Columnar) -> None:
    file = tmp_path / "h"
    file.write_text("what was there before")

    def broken() -> Iterator[bytes]:
        yield stream([batch_of(1, 3)])[:-20]
        raise ConnectionError("the manager went away")

    with pytest.raises((ConnectionError, InvalidPropertyError)):
        write_columns(broken(), file, form, manager="ALPHA", manager_id="1")
    assert [one.name for one in tmp_path.iterdir()] == ["h"]
    assert file.read_text() == "what was there before"


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    with (
        pytest.raises(InvalidPropertyError, match=r"cannot write .*: No such file"),
        appearing_whole(tmp_path / "none" / "h") as unfinished,
    ):
        unfinished.write_text("x")


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "h"
    link.symlink_to(tmp_path / "elsewhere" / "h")
    with appearing_whole(link) as unfinished:
        unfinished.write_text("x")
    assert link.is_symlink()
    assert (tmp_path / "elsewhere" / "h").read_text() == "x"


def test_a_pipe_stays_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "h"
    os.mkfifo(pipe)
    heard: list[str] = []
    reader = threading.Thread(target=lambda: heard.append(pipe.read_text()))
    reader.start()
    with appearing_whole(pipe) as unfinished:
        unfinished.write_text("x")
    reader.join(10)
    assert heard == ["x"]
    assert pipe.is_fifo()
