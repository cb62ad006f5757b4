"""Batch reads through Spark, from managers."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from tests.pipeline.machines import DURABLE, TRANSACTIONAL, Machine, lsns, read

from lanner.client import MessageIn
from lanner.pipeline import register
from lanner.pipeline.schema import KINDS, spark_schema

MEGABYTES_4 = 4 * 1024 * 1024


def said(spark: SparkSession, machine: Machine, **options: object) -> str:
    with pytest.raises(PySparkException) as raised:
        read(spark, machine, **options).collect()
    return str(raised.value)


def test_history(spark: SparkSession, machine: Machine) -> None:
    machine.send(3000)
    machine.client.receive(DURABLE, count=10)
    frame = read(spark, machine, minPartitions=3)
    assert frame.schema == spark_schema("history")
    assert frame.rdd.getNumPartitions() == 3
    rows = sorted(frame.collect(), key=lambda row: int(row.lsn))
    assert [row.lsn for row in rows] == list(range(1, 3011))
    known = list(machine.client.history())
    assert [row.message_id for row in rows] == [row.message_id for row in known]
    assert [row.label for row in rows] == [row.label for row in known]
    # Spark's times have microseconds; what is below one may be rounded either way.
    assert [row.time.timestamp() for row in rows] == pytest.approx(
        [row.time for row in known], abs=2e-6, rel=0
    )
    assert {(row.manager, row.manager_id) for row in rows} == {("LON-1", machine.id)}
    # Nothing was received by reading.
    assert machine.client.queue(DURABLE).messages == 2990


def test_schemas_and_empty_tables(spark: SparkSession, machine: Machine) -> None:
    for kind in KINDS:
        for body in (True, False):
            frame = read(spark, machine, what=kind, includeBody=body)
            assert frame.schema == spark_schema(kind, include_body=body)
        assert bool(frame.collect()) == (kind == "queues")


def test_offsets(spark: SparkSession, machine: Machine) -> None:
    machine.send(20)
    starting, ending = json.dumps({"LON-1": 5}), json.dumps({"LON-1": 8})
    assert lsns(read(spark, machine, startingOffsets=starting, endingOffsets=ending)) == [5, 6, 7]
    assert lsns(read(spark, machine, startingOffsets=ending, endingOffsets="latest")) == list(range(8, 21))
    assert "is not written yet" in said(spark, machine, endingOffsets=json.dumps({"LON-1": 99}))
    assert "do not name LON-1" in said(spark, machine, startingOffsets='{"PAR-1": 1}')


def test_queue_and_pattern(spark: SparkSession, machine: Machine) -> None:
    machine.send(5)
    machine.send(4, queue=TRANSACTIONAL)
    assert read(spark, machine, queue=DURABLE).count() == 5
    assert read(spark, machine, queue=r"lon-1\private$\ORDERS").count() == 5
    assert read(spark, machine, queuePattern=r".\private$\led*").count() == 4
    assert read(spark, machine, queuePattern="nothing*").count() == 0


def test_filters_are_pushed_and_right(spark: SparkSession, machine: Machine) -> None:
    machine.send(50)
    machine.client.receive(DURABLE, count=5)
    pushing = spark.newSession()
    register(pushing, push_filters=True)
    frame = read(pushing, machine, minPartitions=5)
    assert lsns(frame.where("lsn > 48 and lsn <= 52")) == [49, 50, 51, 52]
    assert frame.where("lsn > 48 and lsn <= 52").rdd.getNumPartitions() <= 4
    assert frame.where("event = 'received'").count() == 5
    assert frame.where("event in ('received', 'sent') and manager = 'LON-1'").count() == 55
    assert frame.where("manager = 'PAR-1'").count() == 0
    assert frame.where("label like 'm1%' and event = 'sent'").count() == 11


def test_a_frame_that_is_used_twice_and_filtered_once(spark: SparkSession, machine: Machine) -> None:
    machine.send(3)
    frame = spark.read.format("msmq").options(**machine.options).load()
    first = frame.where("lsn = 1").select("lsn", "queue")
    assert frame.alias("all").join(first.alias("first"), "queue").count() == frame.count() == 3


def test_found_without_registration(spark: SparkSession, machine: Machine) -> None:
    import pyspark_msmq
    from lanner.pipeline.source import MsmqSource

    assert pyspark_msmq.DefaultSource is MsmqSource
    assert MsmqSource.name() == "msmq"
    # A session of its own has none of what was registered in the other, and no pushdown.
    machine.send(3)
    fresh = spark.newSession()
    fresh.conf.set("spark.sql.python.filterPushdown.enabled", "false")
    assert fresh.read.format("msmq").options(**machine.options).load().where("lsn > 1").count() == 2


def test_a_schema_of_ones_own_is_refused(spark: SparkSession, machine: Machine) -> None:
    with pytest.raises(PySparkException, match="the columns are given by 'what'"):
        spark.read.format("msmq").options(**machine.options).schema("lsn long").load().collect()


def test_a_wrong_option_is_said_by_spark(spark: SparkSession, machine: Machine) -> None:
    assert "do you mean 'minPartitions'" in said(spark, machine, minPartition=3)


def test_a_wrong_token(spark: SparkSession, machine: Machine) -> None:
    assert "does not know this token" in said(spark, machine, token="wrong")


def test_rights(spark: SparkSession, machine: Machine) -> None:
    machine.send(2)
    token = machine.client.create_token("looker", ["peek"])
    assert read(spark, machine, what="messages", token=token).count() == 2
    assert read(spark, machine, what="deadletters", token=token).count() == 0
    assert "AccessDeniedError" in said(spark, machine, token=token)


def test_several_managers(spark: SparkSession, make_machine: Callable[..., Machine]) -> None:
    machines = [make_machine(name) for name in ("LON-1", "PAR-1", "ROM-1")]
    for count, machine in enumerate(machines, 1):
        machine.send(count)
    options = {
        "managers": ",".join(machine.url for machine in machines),
        "tokenFile": ",".join(str(machine.data / "token") for machine in machines),
    }
    frame = spark.read.format("msmq").options(**options).load()
    assert {row.manager: row["count"] for row in frame.groupBy("manager").count().collect()} == {
        "LON-1": 1,
        "PAR-1": 2,
        "ROM-1": 3,
    }


def test_messages_journals_and_queues(spark: SparkSession, machine: Machine) -> None:
    machine.client.change_queue(DURABLE, journaling=True)
    machine.send(30)
    machine.client.receive(DURABLE, count=10)
    frame = read(spark, machine, what="messages")
    counts = {row.queue: row["count"] for row in frame.groupBy("queue").count().collect()}
    assert counts == {DURABLE: 20, DURABLE + ";journal": 10}
    row = read(spark, machine, what="messages", queue=DURABLE).orderBy("lookup_id").first()
    assert row is not None
    assert (row.label, bytes(row.body), row.durable, row.priority) == ("m10", b"m10", True, 3)
    assert "body" not in read(spark, machine, what="messages", includeBody="false").columns
    queues = {row.path: row for row in read(spark, machine, what="queues").collect()}
    assert (queues[DURABLE].messages, queues[DURABLE].journal_messages) == (20, 10)
    assert machine.client.queue(DURABLE).messages == 20


def test_dead_letters(spark: SparkSession, machine: Machine) -> None:
    message = MessageIn(body=b"late", durable=True, dead_letter=True, time_to_be_received=0)
    machine.client.send_many(DURABLE, [message])
    frame = read(spark, machine, what="deadletters")
    for _ in range(50):
        rows = frame.collect()
        if rows:
            break
    (row,) = rows
    assert bytes(row.body) == b"late"
    assert row.reason == "the time to be received ran out"
    assert row.destination_queue.endswith(r"private$\orders")


def test_a_body_of_4_mb(spark: SparkSession, make_machine: Callable[..., Machine]) -> None:
    machine = make_machine(bodies=True)
    machine.send(3, body=b"x" * MEGABYTES_4)
    rows = read(spark, machine).selectExpr("lsn", "length(body) as length").collect()
    assert [row.length for row in rows] == [MEGABYTES_4] * 3
    assert read(spark, machine, includeBody="false").count() == 3
    lengths = read(spark, machine, what="messages").selectExpr("length(body) as length").collect()
    assert [row.length for row in lengths] == [MEGABYTES_4] * 3
