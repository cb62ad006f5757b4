"""Rows of a data frame as messages: a column for each property, by its name."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any

import pyarrow
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructType,
)

from lanner.client import MessageIn
from lanner.pipeline.errors import InvalidOptionError

__all__ = ["COLUMNS", "DESTINATION", "Addressed", "check_columns", "to_messages"]

DESTINATION = "destination"

_TEXT = (StringType,)
_BYTES = (BinaryType, StringType)
_NUMBER = (ByteType, ShortType, IntegerType, LongType)
_TRUTH = (BooleanType,)
_TEXTS = (ArrayType,)

COLUMNS: dict[str, tuple[type[DataType], ...]] = {
    DESTINATION: _TEXT,
    "body": _BYTES,
    "body_type": _NUMBER,
    "extension": _BYTES,
    "label": _TEXT,
    "priority": _NUMBER,
    "correlation_id": _TEXT,
    "application_tag": _NUMBER,
    "time_to_reach_queue": _NUMBER,
    "time_to_be_received": _NUMBER,
    "acknowledgments": _TEXTS,
    "administration_queue": _TEXT,
    "response_queue": _TEXT,
    "journal": _TRUTH,
    "dead_letter": _TRUTH,
    "dead_letter_queue": _TEXT,
    "tracing": _TRUTH,
}
"""The columns of the sink and the types that each may have. Where a row has no value, the default counts."""

Addressed = tuple[str, MessageIn]
"""A message and the queue that it goes to."""


def check_columns(schema: StructType, queue: str) -> None:
    """Refuse columns that mean nothing: a misspelt one would be silence otherwise."""
    for field in schema.fields:
        types = COLUMNS.get(field.name)
        if types is None:
            near = difflib.get_close_matches(field.name, COLUMNS, n=1)
            hint = f"do you mean {near[0]}?" if near else f"there are {', '.join(COLUMNS)}"
            raise InvalidOptionError(f"a message has no column {field.name}", hint=hint)
        if not isinstance(field.dataType, types):
            names = " or ".join(kind.typeName() for kind in types)
            raise InvalidOptionError(
                f"the column {field.name} is {field.dataType.simpleString()} and must be {names}"
            )
    if not queue and DESTINATION not in schema.names:
        raise InvalidOptionError(
            "nothing says where the messages go", hint="give the option 'queue' or a column 'destination'"
        )


def to_messages(batch: pyarrow.RecordBatch, queue: str) -> Iterator[Addressed]:
    """Make a durable message of every row."""
    names = [name for name in batch.schema.names if name != DESTINATION]
    columns = [_values(batch.column(name), name) for name in names]
    rows: Iterator[tuple[Any, ...]] = zip(*columns, strict=True) if columns else iter([()] * batch.num_rows)
    destinations = (
        _values(batch.column(DESTINATION), DESTINATION) if DESTINATION in batch.schema.names else None
    )
    for number, row in enumerate(rows):
        destination = destinations[number] if destinations else None
        if not (destination or queue):
            raise InvalidOptionError("a row has no destination", hint="give the option 'queue' for such rows")
        properties = {name: value for name, value in zip(names, row, strict=True) if value is not None}
        yield destination or queue, MessageIn(durable=True, **properties)


def _values(column: pyarrow.Array, name: str) -> list[Any]:
    if name in ("body", "extension") and pyarrow.types.is_string(column.type):
        column = column.cast(pyarrow.binary())  # text is sent as UTF-8
    values: list[Any] = column.to_pylist()
    if name == "acknowledgments":
        return [None if value is None else tuple(value) for value in values]
    return values
