"""Streaming reads through Spark: checkpoints, triggers, limits, errors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from tests.pipeline.machines import DURABLE, Machine

SECONDS = 120


class Ingest:
    """A query from managers into Parquet."""

    def __init__(self, spark: SparkSession, directory: Path) -> None:
        self._spark = spark
        self._directory = directory

    def start(self, machine: Machine, **options: str) -> StreamingQuery:
        chosen = machine.options | {"startingOffsets": "earliest"} | options
        rows = self._spark.readStream.format("msmq").options(**chosen).load()
        trigger: dict[str, Any] = {"availableNow": True}
        return (
            rows.select("manager", "lsn")
            .writeStream.format("parquet")
            .options(checkpointLocation=f"{self._directory}/checkpoint", path=f"{self._directory}/rows")
            .trigger(**trigger)
            .start()
        )

    def run(self, machine: Machine, **options: str) -> list[int]:
        """Read what there is; returns the rows of each batch."""
        query = self.start(machine, **options)
        assert query.awaitTermination(SECONDS)
        return [progress["numInputRows"] for progress in query.recentProgress if progress["numInputRows"]]

    @property
    def lsns(self) -> list[int]:
        rows = self._spark.read.parquet(f"{self._directory}/rows").collect()
        return sorted(row.lsn for row in rows)


@pytest.fixture
def ingest(spark: SparkSession, tmp_path: Path) -> Ingest:
    return Ingest(spark, tmp_path / "ingest")


def test_checkpoints_limits_and_a_restarted_manager(ingest: Ingest, machine: Machine) -> None:
    machine.send(25)
    assert ingest.run(machine, maxOffsetsPerTrigger="10") == [10, 10, 5]
    assert ingest.run(machine) == []
    machine.send(5)
    machine.stop()
    machine.start()
    machine.send(5)
    assert ingest.run(machine, minPartitions="2") == [10]
    assert ingest.lsns == list(range(1, 36))
    assert machine.client.queue(DURABLE).messages == 35


def test_several_managers_one_joins(ingest: Ingest, make_machine: Callable[..., Machine]) -> None:
    first, second = make_machine("LON-1"), make_machine("PAR-1")
    first.send(3)
    second.send(4)
    assert ingest.run(first) == [3]
    both = {"managers": f"{first.url},{second.url}", "token": f"{first.token},{second.token}"}
    assert ingest.run(first, **both) == [4]
    assert ingest.lsns == [1, 1, 2, 2, 3, 3, 4]


def test_loss_stops_a_query_or_not(ingest: Ingest, machine: Machine) -> None:
    machine.send(5)
    assert ingest.run(machine) == [5]
    machine.send(5)
    machine.trim()
    machine.send(2)
    with pytest.raises(StreamingQueryException, match="LSN 6 to 10 were trimmed"):
        ingest.run(machine)
    assert ingest.run(machine, failOnDataLoss="false") == [2]
    assert ingest.lsns == [1, 2, 3, 4, 5, 11, 12]


def test_from_latest_as_things_happen(spark: SparkSession, machine: Machine, tmp_path: Path) -> None:
    machine.send(5)
    found: list[int] = []

    def take(frame: Any, batch: int) -> None:
        found.extend(row.lsn for row in frame.select("lsn").collect())

    rows = spark.readStream.format("msmq").options(**machine.options).option("queue", DURABLE).load()
    query = rows.writeStream.foreachBatch(take).option("checkpointLocation", str(tmp_path / "c")).start()
    try:
        query.processAllAvailable()
        machine.send(3)
        query.processAllAvailable()
        machine.send(2)
        query.processAllAvailable()
    finally:
        query.stop()
    assert found == [6, 7, 8, 9, 10]


def test_what_cannot_be_streamed(spark: SparkSession, machine: Machine, tmp_path: Path) -> None:
    rows = spark.readStream.format("msmq").options(**machine.options).option("what", "queues").load()
    query = rows.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "c")).start()
    with pytest.raises(StreamingQueryException, match="a stream reads the history"):
        query.awaitTermination(SECONDS)
