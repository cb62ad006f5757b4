"""Record batches in the shape and size that Spark takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow

from lanner.pipeline.schema import BODY

__all__ = ["BATCH_ROWS", "conform", "from_rows", "pieces", "together"]

BATCH_ROWS = 16_384
"""Rows of a batch at most; from 4,000 on more gain little."""

FEW_ROWS = 4096
"""Rows from which a batch is large enough."""

BATCH_BYTES = 64 * 1024 * 1024
"""Bytes of a batch at most, unless one row is larger: Spark holds several."""


def conform(
    batch: pyarrow.RecordBatch, schema: pyarrow.Schema, *, manager: str, manager_id: str | None
) -> pyarrow.RecordBatch:
    """Add the manager's columns, put all in order, leave out what the schema has not."""
    names = set(batch.schema.names)
    constants: dict[str, str | None] = {"manager": manager, "manager_id": manager_id}
    columns = []
    for field in schema:
        if field.name in names:
            column = batch.column(field.name)
            columns.append(column if column.type.equals(field.type) else column.cast(field.type))
        elif constants.get(field.name) is not None:
            columns.append(pyarrow.repeat(pyarrow.scalar(constants[field.name], field.type), batch.num_rows))
        else:
            columns.append(pyarrow.nulls(batch.num_rows, field.type))
        if not field.nullable and columns[-1].null_count:
            raise ValueError(f"the column {field.name} is missing or has no value in some rows")
    return pyarrow.RecordBatch.from_arrays(columns, schema=schema)


def pieces(batch: pyarrow.RecordBatch) -> Iterator[pyarrow.RecordBatch]:
    """Cut a batch that is too large."""
    rows = batch.num_rows
    if not rows:
        return
    size = batch.nbytes if BODY in batch.schema.names else 0
    step = max(1, min(BATCH_ROWS, rows * BATCH_BYTES // max(size, BATCH_BYTES)))
    for first in range(0, rows, step):
        yield batch.slice(first, step)


def together(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    """Put small batches together: each costs Spark as much as some hundred rows."""
    some: list[pyarrow.RecordBatch] = []
    for batch in batches:
        some.append(batch)
        if sum(one.num_rows for one in some) >= FEW_ROWS:
            yield pyarrow.concat_batches(some)
            some = []
    if some:
        yield pyarrow.concat_batches(some)


def from_rows(rows: Iterable[Mapping[str, Any]], schema: pyarrow.Schema) -> Iterator[pyarrow.RecordBatch]:
    """Make batches of rows by name."""
    some: list[Mapping[str, Any]] = []
    size = 0
    for row in rows:
        some.append(row)
        size += len(row.get(BODY) or b"")
        if len(some) >= BATCH_ROWS or size >= BATCH_BYTES:
            yield pyarrow.RecordBatch.from_pylist(some, schema=schema)
            some, size = [], 0
    if some:
        yield pyarrow.RecordBatch.from_pylist(some, schema=schema)
