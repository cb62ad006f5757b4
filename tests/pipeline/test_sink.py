"""Rows as messages: properties, transactions, and what a repeated batch adds, which is nothing."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType
from tests.pipeline.machines import DURABLE, TRANSACTIONAL, Machine

from lanner.model.errors import LannerError
from lanner.pipeline.errors import InvalidOptionError
from lanner.pipeline.managers import connected
from lanner.pipeline.message_columns import COLUMNS, check_columns, to_messages
from lanner.pipeline.options import ManagerAddress
from lanner.pipeline.sending import ReplayMismatchError, send_durable, send_transactional
from lanner.pipeline.sink import MsmqStreamWriter, MsmqWriter
from lanner.pipeline.source import MsmqSource

MEGABYTES_4 = 4 * 1024 * 1024


def write(frame: DataFrame, machine: Machine, mode: str = "append", **options: str) -> None:
    frame.write.format("msmq").options(**(machine.options | options)).mode(mode).save()


def numbers(spark: SparkSession, count: int, partitions: int = 2) -> DataFrame:
    return spark.range(0, count, 1, partitions).selectExpr("concat('m', id) as label", "'x' as body")


def test_every_property(spark: SparkSession, machine: Machine) -> None:
    identifier = f"{machine.id}\\7"
    frame = spark.sql(
        f"""SELECT '{DURABLE}' AS destination, binary('body') AS body, 8 AS body_type, 'ext' AS extension,
            'a label' AS label, 5 AS priority, r'{identifier}' AS correlation_id, 42L AS application_tag,
            100 AS time_to_reach_queue, 200 AS time_to_be_received,
            array('arrival', 'receive') AS acknowledgments,
            '{TRANSACTIONAL}' AS administration_queue, '{DURABLE}' AS response_queue, true AS journal,
            true AS dead_letter, CAST(NULL AS string) AS dead_letter_queue, false AS tracing""".replace(
            "'.\\", "r'.\\"
        )
    )
    assert set(frame.columns) == set(COLUMNS)
    write(frame, machine)
    (message,) = machine.client.browse(DURABLE)
    assert (message.body, message.body_type, message.extension) == (b"body", 8, b"ext")
    assert (message.label, message.priority, message.correlation_id) == ("a label", 5, identifier)
    assert (message.application_tag, message.durable) == (42, True)
    assert (message.time_to_reach_queue, message.time_to_be_received) == (100, 200)
    assert message.acknowledgments == ("arrival", "receive")
    assert message.journal
    assert message.dead_letter


def test_a_batch_repeated_under_its_key_adds_nothing(spark: SparkSession, machine: Machine) -> None:
    for _ in range(2):
        write(numbers(spark, 10), machine, queue=DURABLE, key="once")
    assert sorted(machine.labels()) == sorted(f"m{number}" for number in range(10))
    write(numbers(spark, 10), machine, queue=DURABLE, key="twice")
    write(numbers(spark, 10), machine, queue=DURABLE)  # without a key, each write is its own
    write(numbers(spark, 10), machine, queue=DURABLE)
    assert len(machine.labels()) == 40
    with pytest.raises(PySparkException, match="was sent before with 5 messages and has 6 now"):
        write(numbers(spark, 12), machine, queue=DURABLE, key="once")
    assert len(machine.labels()) == 40


def test_a_partition_is_one_transaction(spark: SparkSession, machine: Machine) -> None:
    for _ in range(2):
        write(numbers(spark, 3000), machine, queue=TRANSACTIONAL, delivery="transactional", key="k")
    messages = list(machine.client.browse(TRANSACTIONAL, bodies=False))
    assert Counter(Counter(message.transaction_id for message in messages).values()) == {1500: 2}
    bad = numbers(spark, 4000, 1).selectExpr("label", "IF(label = 'm3999', 99, 3) AS priority")
    with pytest.raises(PySparkException):
        write(bad, machine, queue=TRANSACTIONAL, delivery="transactional")
    assert machine.client.queue(TRANSACTIONAL).messages == 3000


def test_a_repeated_stream_batch_adds_nothing(spark: SparkSession, machine: Machine, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"

    def run(queue: str, **options: str) -> list[int]:
        rows = spark.readStream.format("msmq").options(
            **machine.options,
            queue=DURABLE,
            startingOffsets="earliest",
            maxOffsetsPerTrigger="10",
            minPartitions="2",
        )
        query = (
            rows.load()
            .select("label")
            .writeStream.format("msmq")
            .options(**(machine.options | {"queue": queue, "checkpointLocation": str(checkpoint)} | options))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(120)
        return [progress["numInputRows"] for progress in query.recentProgress if progress["numInputRows"]]

    machine.send(20)
    assert run(TRANSACTIONAL, delivery="transactional") == [10, 10]
    sent = sorted(machine.labels(TRANSACTIONAL))
    assert sent == sorted(f"m{number}" for number in range(20))
    # As if the driver had been killed after the tasks and before the commit: the batch runs again.
    shutil.rmtree(checkpoint / "commits")
    assert run(TRANSACTIONAL, delivery="transactional") == [10]
    assert sorted(machine.labels(TRANSACTIONAL)) == sent


def test_a_body_of_4_mb(spark: SparkSession, machine: Machine) -> None:
    frame = spark.range(0, 6, 1, 1).selectExpr(f"repeat('x', {MEGABYTES_4}) AS body", "string(id) AS label")
    write(frame, machine, queue=TRANSACTIONAL, delivery="transactional")
    assert machine.labels(TRANSACTIONAL) == ["0", "1", "2", "3", "4", "5"]
    (message,) = machine.client.peek(TRANSACTIONAL)
    assert len(message.body) == MEGABYTES_4


def test_what_spark_says(spark: SparkSession, machine: Machine) -> None:
    with pytest.raises(PySparkException, match="a queue cannot be overwritten"):
        write(numbers(spark, 1), machine, "overwrite", queue=DURABLE)
    with pytest.raises(PySparkException, match="is transactional, and the message is not in a transaction"):
        write(numbers(spark, 1), machine, queue=TRANSACTIONAL)


# Without Spark, as its workers run it.


def table(**values: Any) -> pyarrow.RecordBatch:
    return pyarrow.RecordBatch.from_pydict(values)


def columns(text: str) -> StructType:
    schema = StructType.fromDDL(text)
    assert isinstance(schema, StructType)
    return schema


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("lable string", "do you mean label?"),
        ("id long", "a message has no column id"),
        ("priority string", "the column priority is string"),
        ("body int", "the column body is int and must be binary or string"),
        ("label string", "nothing says where the messages go"),
    ],
)
def test_columns_that_mean_nothing(schema: str, words: str) -> None:
    with pytest.raises(InvalidOptionError) as raised:
        check_columns(columns(schema), "q" if "nothing" not in words else "")
    assert words in str(raised.value)


def test_rows_without_values_have_defaults() -> None:
    (first, second) = to_messages(
        table(label=["a", None], destination=[None, "other"], priority=[None, 1]), "q"
    )
    assert (first[0], first[1].label, first[1].priority) == ("q", "a", 3)
    assert (second[0], second[1].label, second[1].priority) == ("other", "", 1)
    with pytest.raises(InvalidOptionError, match="a row has no destination"):
        list(to_messages(table(destination=[None]), ""))


def rows(count: int, *queues: str) -> list[Any]:
    labels = [f"m{number}" for number in range(count)]
    destinations = [queues[number % len(queues)] for number in range(count)]
    return list(to_messages(table(label=labels, destination=destinations), ""))


def test_chunks_and_queues_each_once(machine: Machine) -> None:
    machine.client.create_queue(r".\private$\other")
    with connected(ManagerAddress(machine.url, machine.token), 1.0) as run:
        for _ in range(2):
            assert send_durable(run, "k", rows(2500, DURABLE, r".\private$\other")) == 2500
        assert machine.labels() == [f"m{number}" for number in range(0, 2500, 2)]
        assert len(machine.labels(r".\private$\other")) == 1250
        with pytest.raises(ReplayMismatchError, match="not repeated as it was"):
            send_durable(run, "k", rows(2400, DURABLE, r".\private$\other"))


def test_transactions_small_large_and_too_large(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    with connected(ManagerAddress(machine.url, machine.token), 1.0) as run:
        for _ in range(2):
            assert send_transactional(run, "none", []) == 0
            assert send_transactional(run, "small", rows(10, TRANSACTIONAL)) == 10
            assert send_transactional(run, "large", rows(2000, TRANSACTIONAL)) == 2000
        assert len(machine.labels(TRANSACTIONAL)) == 2010
        with pytest.raises(ReplayMismatchError):
            send_transactional(run, "small", rows(1500, TRANSACTIONAL))
        monkeypatch.setattr("lanner.pipeline.sending.MAX_TRANSACTION", 1500)
        with pytest.raises(LannerError, match="too many for a transaction"):
            send_transactional(run, "too large", rows(2000, TRANSACTIONAL))
    assert len(machine.labels(TRANSACTIONAL)) == 2010


def test_writers_check_before_any_task_runs() -> None:
    source = MsmqSource({"managers": "http://127.0.0.1:1", "token": "t", "queue": "q", "key": "k"})
    schema = columns("label string")
    assert isinstance(source.writer(schema, overwrite=False), MsmqWriter)
    with pytest.raises(InvalidOptionError, match="'key' is for batches"):
        source.streamWriter(schema, overwrite=False)
    del source.options["key"]
    assert isinstance(source.streamWriter(schema, overwrite=False), MsmqStreamWriter)
