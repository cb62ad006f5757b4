"""A history of four managers as Spark makes it up: two send streams, two receive them."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

__all__ = ["made_up_history"]

SENDERS = 2
RECEIVERS = 2
QUEUES = 8
"""Per receiver."""

EVENTS_PER_MESSAGE = 4
_START = 1_790_000_000
_MESSAGES_PER_SECOND = 20


def made_up_history(spark: SparkSession, events: int) -> DataFrame:
    """Rows of history: each message is sent, arrives, is acknowledged and received, in order."""
    count = events // EVENTS_PER_MESSAGE
    number = F.col("id") % count
    step = (F.col("id") / count).cast("int")  # 0 sent, 1 acknowledged, 2 arrived, 3 received
    sender, receiver = number % SENDERS, (number / SENDERS).cast("bigint") % RECEIVERS
    at_sender = (number / SENDERS).cast("bigint")
    # Each receiver gets runs of one message from every sender in turn, so its own count is dense, too.
    at_receiver = (number / (SENDERS * RECEIVERS)).cast("bigint") * SENDERS + number % SENDERS
    queue = (number / (SENDERS * RECEIVERS)).cast("bigint") % QUEUES
    sequence = (number / (SENDERS * RECEIVERS * QUEUES)).cast("bigint") + 1
    is_sender = step < 2
    place = F.when(is_sender, at_sender).otherwise(at_receiver)
    name = F.concat(F.lit("receiver"), receiver.cast("string"))
    url = F.concat(F.lit("DIRECT=HTTP://"), name, F.lit("/msmq/private$/orders"), queue.cast("string"))
    seconds = _START + number / _MESSAGES_PER_SECOND + step * 0.25 + F.rand(7) * 0.2
    return spark.range(0, count * EVENTS_PER_MESSAGE).select(
        F.when(is_sender, F.concat(F.lit("sender"), sender.cast("string"))).otherwise(name).alias("manager"),
        F.when(is_sender, _identifier(sender)).otherwise(_identifier(receiver + 100)).alias("manager_id"),
        (place * 2 + step % 2 + 1).alias("lsn"),
        F.timestamp_micros((seconds * 1_000_000).cast("bigint")).alias("time"),
        F.element_at(
            F.array(*map(F.lit, ("sent", "acknowledged", "arrived", "received"))), (step + 1).cast("int")
        ).alias("event"),
        F.when(is_sender, url)
        .otherwise(F.concat(F.lit(".\\private$\\orders"), queue.cast("string")))
        .alias("queue"),
        F.concat(_identifier(sender), F.lit("\\"), (at_sender + 1).cast("string")).alias("message_id"),
        (number + 1).alias("lookup_id"),
        F.when(step == 1, 255).otherwise(0).cast("int").alias("message_class"),
        F.lit(0).cast("byte").alias("priority"),
        F.concat(F.lit("order "), number.cast("string")).alias("label"),
        (F.lit(300) + number % 700).alias("size"),
        url.alias("destination"),
        F.lit(None).cast("string").alias("administration"),
        F.lit(None).cast("string").alias("response"),
        (F.lit(7_700_000_000_000_000_000) + sender * 1000 + receiver * 100 + queue).alias("stream"),
        sequence.alias("sequence"),
        (sequence - 1).alias("previous"),
        F.concat(_identifier(sender), F.lit("\\"), sequence.cast("string")).alias("transaction_id"),
        F.lit(None).cast("string").alias("reason"),
        F.when(step == 1, F.concat(F.lit("http://"), name)).when(step == 2, F.lit("127.0.0.1")).alias("peer"),
        F.lit(None).cast("binary").alias("body"),
    )


def _identifier(number: Column) -> Column:
    return F.concat(F.lit("00000000-0000-4000-8000-0000000"), F.lpad(number.cast("string"), 5, "0"))
