"""History rows as Arrow record batches. The only module of the base package that needs pyarrow."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

try:
    import pyarrow
except ImportError as error:
    from lanner.model.errors import LannerError

    raise LannerError("reading history as Arrow needs pyarrow", hint="pip install 'lanner[arrow]'") from error

from lanner.model.history import HistoryRow

__all__ = ["HISTORY_SCHEMA", "record_batch"]

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

_TIME = HISTORY_SCHEMA.get_field_index("time")
_STREAM = HISTORY_SCHEMA.get_field_index("stream")


def record_batch(rows: Sequence[HistoryRow]) -> pyarrow.RecordBatch:
    """Turn rows into one batch. Times become whole microseconds.

    A stream's number has 64 bits without a sign; here, as in Spark, the highest of them is the sign.
    """
    columns: list[Sequence[object]] = list(zip(*map(msgspec.structs.astuple, rows), strict=True))
    columns = columns or [()] * len(HISTORY_SCHEMA)
    columns[_TIME] = [round(row.time * 1_000_000) for row in rows]
    columns[_STREAM] = [_signed(row.stream) for row in rows]
    arrays = [
        pyarrow.array(column, type=field.type) for column, field in zip(columns, HISTORY_SCHEMA, strict=True)
    ]
    return pyarrow.RecordBatch.from_arrays(arrays, schema=HISTORY_SCHEMA)


def _signed(number: int | None) -> int | None:
    return number - (1 << 64) if number is not None and number >= 1 << 63 else number
