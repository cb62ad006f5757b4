"""Schemas written as text. Spark's own parser needs a running session, and modules are read before."""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DateType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

__all__ = ["list_of", "struct"]

_TYPES: dict[str, DataType] = {
    "bigint": LongType(),
    "boolean": BooleanType(),
    "date": DateType(),
    "double": DoubleType(),
    "int": IntegerType(),
    "string": StringType(),
    "strings": ArrayType(StringType()),
    "timestamp": TimestampType(),
}


def struct(text: str, **more: DataType) -> StructType:
    """Columns as ``"name type, name type"``; those of other types follow."""
    pairs = [pair.split() for pair in text.split(",")]
    fields = [StructField(name, _TYPES[kind]) for name, kind in pairs]
    return StructType([*fields, *(StructField(name, kind) for name, kind in more.items())])


def list_of(text: str) -> ArrayType:
    """A list of structs."""
    return ArrayType(struct(text))
