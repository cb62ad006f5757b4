"""The rows that the ``msmq`` data source gives, as Arrow and as Spark schemas.

Every row begins with the manager that it is from. Columns may be added at the end, before ``body``; none is
renamed, retyped or removed. ``body`` is last, and is not there if ``includeBody`` is false.
"""

from __future__ import annotations

from typing import Literal, get_args

import pyarrow
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

__all__ = [
    "KINDS",
    "Kind",
    "DEADLETTERS",
    "HISTORY",
    "MANAGER_COLUMNS",
    "MESSAGES",
    "QUEUES",
    "SCHEMA_VERSION",
    "arrow_schema",
    "spark_schema",
    "to_spark",
]

SCHEMA_VERSION = 1
"""Goes up when a column is added."""

Kind = Literal["history", "messages", "queues", "deadletters"]
KINDS: tuple[Kind, ...] = get_args(Kind)

BODY = "body"

_STRING, _BINARY, _BOOL = pyarrow.string(), pyarrow.binary(), pyarrow.bool_()
_BYTE, _INT, _LONG = pyarrow.int8(), pyarrow.int32(), pyarrow.int64()
_TIME = pyarrow.timestamp("us", tz="UTC")
_STRINGS = pyarrow.list_(pyarrow.field("element", _STRING, nullable=False))


def _must(name: str, kind: pyarrow.DataType) -> pyarrow.Field:
    return pyarrow.field(name, kind, nullable=False)


MANAGER_COLUMNS = (
    _must("manager", _STRING),
    pyarrow.field("manager_id", _STRING),
)
"""Whose row it is: the manager's name, and its identifier, which an exported file does not tell."""

HISTORY = pyarrow.schema(
    [
        *MANAGER_COLUMNS,
        _must("lsn", _LONG),
        _must("time", _TIME),
        _must("event", _STRING),
        _must("queue", _STRING),
        _must("message_id", _STRING),
        _must("lookup_id", _LONG),
        _must("message_class", _INT),
        _must("priority", _BYTE),
        pyarrow.field("label", _STRING),
        _must("size", _LONG),
        pyarrow.field("destination", _STRING),
        pyarrow.field("administration", _STRING),
        pyarrow.field("response", _STRING),
        pyarrow.field("stream", _LONG),
        pyarrow.field("sequence", _LONG),
        pyarrow.field("previous", _LONG),
        pyarrow.field("transaction_id", _STRING),
        pyarrow.field("reason", _STRING),
        pyarrow.field("peer", _STRING),
        pyarrow.field(BODY, _BINARY),
    ]
)
"""One row per change in a message's life. ``(manager_id, lsn)`` is unique and never changes."""

_MESSAGE_COLUMNS = (
    _must("message_id", _STRING),
    _must("lookup_id", _LONG),
    _must("label", _STRING),
    _must("priority", _BYTE),
    _must("message_class", _INT),
    _must("class_text", _STRING),
    _must("body_type", _LONG),
    _must("extension", _BINARY),
    _must("size", _LONG),
    _must("durable", _BOOL),
    _must("transactional", _BOOL),
    _must("correlation_id", _STRING),
    _must("application_tag", _LONG),
    _must("destination_queue", _STRING),
    _must("administration_queue", _STRING),
    _must("response_queue", _STRING),
    _must("dead_letter_queue", _STRING),
    _must("acknowledgments", _STRINGS),
    _must("journal", _BOOL),
    _must("dead_letter", _BOOL),
    _must("time_to_reach_queue", _LONG),
    _must("time_to_be_received", _LONG),
    _must("sent_time", _TIME),
    _must("arrival_time", _TIME),
    pyarrow.field("source_machine", _STRING),
    _must("aborts", _LONG),
    _must("transaction_id", _STRING),
    _must("first_in_transaction", _BOOL),
    _must("last_in_transaction", _BOOL),
    _must("authenticated", _BOOL),
    pyarrow.field(BODY, _BINARY),
)

MESSAGES = pyarrow.schema([*MANAGER_COLUMNS, _must("queue", _STRING), *_MESSAGE_COLUMNS])
"""One row per message that waits in a queue, or is kept in a journal, at the moment of reading."""

DEADLETTERS = pyarrow.schema(
    [*MANAGER_COLUMNS, _must("queue", _STRING), _must("reason", _STRING), *_MESSAGE_COLUMNS]
)
"""One row per dead letter at the moment of reading, and why it is one."""

QUEUES = pyarrow.schema(
    [
        *MANAGER_COLUMNS,
        _must("path", _STRING),
        _must("format_name", _STRING),
        _must("kind", _STRING),
        _must("queue_id", _STRING),
        _must("label", _STRING),
        _must("transactional", _BOOL),
        _must("journaling", _BOOL),
        _must("quota", _LONG),
        _must("journal_quota", _LONG),
        _must("base_priority", _INT),
        _must("authentication", _BOOL),
        _must("privacy", _STRING),
        _must("created", _TIME),
        _must("modified", _TIME),
        _must("messages", _LONG),
        _must("bytes", _LONG),
        _must("available_messages", _LONG),
        _must("journal_messages", _LONG),
        _must("journal_bytes", _LONG),
        _must("subqueues", _STRINGS),
        _must("open_handles", _LONG),
        _must("waiting_readers", _LONG),
        _must("state", _STRING),
        _must("explanation", _STRING),
        _must("last_failure", _STRING),
        _must("next_hops", _STRINGS),
    ]
)
"""One row per local or outgoing queue at the moment of reading."""

_SCHEMAS: dict[Kind, pyarrow.Schema] = {
    "history": HISTORY,
    "messages": MESSAGES,
    "queues": QUEUES,
    "deadletters": DEADLETTERS,
}

_SPARK_TYPES: dict[pyarrow.DataType, DataType] = {
    _STRING: StringType(),
    _BINARY: BinaryType(),
    _BOOL: BooleanType(),
    _BYTE: ByteType(),
    _INT: IntegerType(),
    _LONG: LongType(),
    _TIME: TimestampType(),
    _STRINGS: ArrayType(StringType(), containsNull=False),
}


def arrow_schema(kind: Kind, *, include_body: bool = True) -> pyarrow.Schema:
    """The columns of one kind of rows, for Arrow."""
    schema = _SCHEMAS[kind]
    if include_body or BODY not in schema.names:
        return schema
    return schema.remove(schema.get_field_index(BODY))


def spark_schema(kind: Kind, *, include_body: bool = True) -> StructType:
    """The columns of one kind of rows, for Spark."""
    return to_spark(arrow_schema(kind, include_body=include_body))


def to_spark(schema: pyarrow.Schema) -> StructType:
    """Say in Spark's words what an Arrow schema of this module says."""
    return StructType([StructField(field.name, _SPARK_TYPES[field.type], field.nullable) for field in schema])
