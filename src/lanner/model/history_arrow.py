"""History rows as Arrow record batches, for the API and for Spark. It needs pyarrow, which is an extra."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias, get_type_hints

import msgspec

try:
    import pyarrow
    from pyarrow import compute
except ImportError as error:
    from lanner.model.errors import LannerError

    raise LannerError("reading history as Arrow needs pyarrow", hint="pip install 'lanner[arrow]'") from error

from lanner.model.history import HistoryRow

__all__ = ["HISTORY_SCHEMA", "ROWS_AT_ONCE", "Row", "decode_block", "from_blocks", "record_batch"]

Row: TypeAlias = tuple[Any, ...]
"""A row of the history, in the order of the columns."""

HISTORY_SCHEMA = pyarrow.schema(
    [
        pyarrow.field("lsn", pyarrow.int64(), nullable=False),
        pyarrow.field("time", pyarrow.timestamp("us", tz="UTC"), nullable=False),
        pyarrow.field("event", pyarrow.string(), nullable=False),
        pyarrow.field("queue", pyarrow.string(), nullable=False),
        pyarrow.field("message_id", pyarrow.string(), nullable=False),
        pyarrow.field("lookup_id", pyarrow.int64(), nullable=False),
        pyarrow.field("message_class", pyarrow.int32(), nullable=False),
        pyarrow.field("priority", pyarrow.int8(), nullable=False),
        pyarrow.field("label", pyarrow.string()),
        pyarrow.field("size", pyarrow.int64(), nullable=False),
        pyarrow.field("destination", pyarrow.string()),
        pyarrow.field("administration", pyarrow.string()),
        pyarrow.field("response", pyarrow.string()),
        pyarrow.field("stream", pyarrow.int64()),
        pyarrow.field("sequence", pyarrow.int64()),
        pyarrow.field("previous", pyarrow.int64()),
        pyarrow.field("transaction_id", pyarrow.string()),
        pyarrow.field("reason", pyarrow.string()),
        pyarrow.field("peer", pyarrow.string()),
        pyarrow.field("body", pyarrow.binary()),
    ]
)
"""Columns may be added at the end; none is renamed, retyped or removed."""

ROWS_AT_ONCE = 1000
"""Rows that become columns together: they are still in the processor's cache."""

_TIME = HISTORY_SCHEMA.get_field_index("time")
_STREAM = HISTORY_SCHEMA.get_field_index("stream")
_BODY = HISTORY_SCHEMA.get_field_index("body")

# Columns are made of tuples twice as fast as of structs, so blocks are decoded into tuples of the same types.
_types = tuple(get_type_hints(HistoryRow).values())
_decoder: msgspec.msgpack.Decoder[list[Row]] = msgspec.msgpack.Decoder(list[tuple[_types]])  # type: ignore[valid-type]


def decode_block(data: bytes) -> list[Row]:
    """Read one block of the history."""
    return _decoder.decode(data)


def from_blocks(blocks: Iterable[list[Row]], *, bodies: bool = True) -> pyarrow.RecordBatch:
    """Turn the rows of several blocks into one batch; a block may have one row or a thousand."""
    batches = []
    rows: list[Row] = []
    for block in blocks:
        rows += block
        if len(rows) >= ROWS_AT_ONCE:
            batches.append(record_batch(rows, bodies=bodies))
            rows = []
    if rows or not batches:
        batches.append(record_batch(rows, bodies=bodies))
    return batches[0] if len(batches) == 1 else pyarrow.concat_batches(batches)


def record_batch(rows: Sequence[Row], *, bodies: bool = True) -> pyarrow.RecordBatch:
    """Turn rows into one batch. Times become whole microseconds; without ``bodies`` there are none.

    A stream's number has 64 bits without a sign; here, as in Spark, the highest of them is the sign.
    """
    columns: list[Any] = list(zip(*rows, strict=True)) or [()] * len(HISTORY_SCHEMA)
    seconds = pyarrow.array(columns[_TIME], pyarrow.float64())
    columns[_TIME] = compute.round(compute.multiply(seconds, 1_000_000.0)).cast(pyarrow.int64())
    columns[_STREAM] = pyarrow.array(columns[_STREAM], pyarrow.uint64()).view(pyarrow.int64())
    if not bodies:
        columns[_BODY] = pyarrow.nulls(len(rows))
    arrays = [
        column.cast(field.type) if isinstance(column, pyarrow.Array) else pyarrow.array(column, field.type)
        for column, field in zip(columns, HISTORY_SCHEMA, strict=True)
    ]
    return pyarrow.RecordBatch.from_arrays(arrays, schema=HISTORY_SCHEMA)
