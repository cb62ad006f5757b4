"""The pipeline's schemas agree with what managers say."""

from __future__ import annotations

import pyarrow
import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ByteType, LongType, StructType, TimestampType

from lanner.client import MessageOut, QueueOut
from lanner.model.history import HISTORY_COLUMNS
from lanner.model.history_arrow import HISTORY_SCHEMA
from lanner.pipeline.schema import (
    DEADLETTERS,
    HISTORY,
    KINDS,
    MANAGER_COLUMNS,
    MESSAGES,
    QUEUES,
    Kind,
    arrow_schema,
    spark_schema,
)


def test_history_is_the_managers_history_with_the_manager_before_it() -> None:
    assert list(HISTORY)[len(MANAGER_COLUMNS) :] == list(HISTORY_SCHEMA)
    assert HISTORY.names[len(MANAGER_COLUMNS) :] == list(HISTORY_COLUMNS)


def test_every_property_of_a_message_has_its_column() -> None:
    names = {"message_id" if name == "id" else name for name in MessageOut.__struct_fields__}
    assert set(MESSAGES.names) == names | {"manager", "manager_id", "queue"}
    assert set(DEADLETTERS.names) == set(MESSAGES.names) | {"reason"}


def test_columns_of_queues_are_properties_of_queues() -> None:
    known = {"queue_id" if name == "id" else name for name in QueueOut.__struct_fields__}
    assert set(QUEUES.names) - {"manager", "manager_id"} <= known


@pytest.mark.parametrize("kind", KINDS)
def test_spark_and_arrow_agree(kind: Kind) -> None:
    arrow, spark = arrow_schema(kind), spark_schema(kind)
    assert isinstance(spark, StructType)
    assert spark.names == arrow.names
    assert [field.nullable for field in spark.fields] == [field.nullable for field in arrow]


def test_types_in_spark() -> None:
    types = {field.name: field.dataType for field in spark_schema("history").fields}
    assert types["lsn"] == LongType()
    assert types["time"] == TimestampType()
    assert types["priority"] == ByteType()


@pytest.mark.parametrize("kind", KINDS)
def test_the_body_can_be_left_out(kind: Kind) -> None:
    without = arrow_schema(kind, include_body=False)
    assert "body" not in without.names
    assert without.names == [name for name in arrow_schema(kind).names if name != "body"]


def test_schemas_are_arrow_schemas() -> None:
    assert all(isinstance(arrow_schema(kind), pyarrow.Schema) for kind in KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_spark_takes_these_very_batches(kind: Kind) -> None:
    # Spark refuses a record batch whose schema differs in anything from what it makes of its own.
    assert to_arrow_schema(spark_schema(kind), timezone="UTC").equals(arrow_schema(kind))
