"""The ``msmq`` data source against Spark's own Parquet reader, and its sink against the client's batch send.

1,000,000 rows of history: read from exported files, and from a manager through its API, with all columns,
into Spark's ``noop``. The sink and the client send the same durable messages of 1 KB.
"""

from __future__ import annotations

import importlib.util
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bench.measure import Rounds, Target, disk_directory, print_report
from bench.peers import PeerMissingError
from bench.service import RunningService, running_service
from lanner.cli.history_files import Columnar, write_columns
from lanner.client import Client, MessageIn

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS = 1_000_000
CHUNK = 1000
QUEUE = r".\private$\orders"
TARGET = r".\private$\target"
ROUNDS = 5
WARM_UPS = 2
SENT = 100_000
BODY = b"x" * 1024
PARTITIONS = 2


def fill(client: Client) -> None:
    """Make history: every message is sent and received, so that the queue stays small."""
    client.create_queue(QUEUE)
    client.create_queue(TARGET)
    for first in range(0, ROWS // 2, CHUNK):
        messages = [
            MessageIn(body=b"x", label=f"order {first + number}", durable=True) for number in range(CHUNK)
        ]
        client.send_many(QUEUE, messages)
        client.receive(QUEUE, count=CHUNK)


def export(client: Client, file: Path, form: Columnar) -> None:
    """Write what ``lanner history export`` writes."""
    status = client.status()
    pieces = client.history_arrow(1, ROWS)
    write_columns(pieces, file, form, manager=status.name, manager_id=str(status.id))


def rate(frame: DataFrame) -> float:
    """Rows per second of reading everything."""
    begin = time.perf_counter()
    frame.write.format("noop").mode("overwrite").save()
    return ROWS / (time.perf_counter() - begin)


def through_client(client: Client) -> float:
    """Messages per second of the client's batches."""
    begin = time.perf_counter()
    for _ in range(SENT // CHUNK):
        client.send_many(TARGET, [MessageIn(body=BODY, durable=True) for _ in range(CHUNK)])
    return SENT / (time.perf_counter() - begin)


def through_sink(frame: DataFrame, options: dict[str, str]) -> float:
    """Messages per second of the sink."""
    begin = time.perf_counter()
    frame.write.format("msmq").options(**options, queue=TARGET).mode("append").save()
    return SENT / (time.perf_counter() - begin)


def measure(spark: SparkSession, service: RunningService, directory: Path) -> list[Target]:
    parquet = Rounds("spark.read.parquet, 1,000,000 rows", "rows/s", [])
    local = Rounds("msmq from the same file", "rows/s", [])
    arrow = Rounds("msmq from an Arrow export", "rows/s", [])
    remote = Rounds("msmq from the API", "rows/s", [])
    sent = Rounds("client, batches of 1,000 x 1 KB", "messages/s", [])
    sunk = Rounds("sink, 2 partitions", "messages/s", [])
    options = {"managers": service.url, "token": service.token}
    file, arrow_file = directory / "BENCH.parquet", directory / "BENCH.arrow"
    with Client.connect(data=service.data) as client:
        fill(client)
        export(client, file, "parquet")
        export(client, arrow_file, "arrow")
        frames = (
            (parquet, spark.read.parquet(str(file))),
            (local, spark.read.format("msmq").load(str(file))),
            (arrow, spark.read.format("msmq").load(str(arrow_file))),
            (
                remote,
                spark.read.format("msmq").options(**options, endingOffsets=f'{{"BENCH": {ROWS + 1}}}').load(),
            ),
        )
        rows = spark.range(0, SENT, 1, PARTITIONS).selectExpr("binary(repeat('x', 1024)) AS body")
        for number in range(-WARM_UPS, ROUNDS):
            for rounds, frame in frames:
                rounds.values.append(rate(frame))
            sent.values.append(through_client(client))
            sunk.values.append(through_sink(rows, options))
            client.purge_queue(TARGET)
            if number < 0:  # Java compiles what is used often: the first rounds measure that
                for rounds in (parquet, local, arrow, remote, sent, sunk):
                    rounds.values.clear()
    targets = [
        Target("reading a Parquet export against spark.read.parquet", local.median / parquet.median, 0.8),
        Target("reading an Arrow export against spark.read.parquet", arrow.median / parquet.median, 0.8),
        Target("reading through the API against spark.read.parquet", remote.median / parquet.median, 0.25),
        Target("the sink against the client's batch send", sunk.median / sent.median, 0.5),
    ]
    print_report("The data source and the sink", [parquet, local, arrow, remote, sent, sunk, *targets])
    return targets


def main() -> list[Target]:
    if importlib.util.find_spec("pyspark") is None:
        raise PeerMissingError("pyspark", "lanner[spark]")
    from lanner.pipeline import register
    from lanner.pipeline.session import local_session

    with disk_directory() as directory, running_service(directory / "service") as service:
        spark = local_session("bench")
        spark.sparkContext.setLogLevel("ERROR")
        register(spark)
        try:
            return measure(spark, service, directory)
        finally:
            spark.stop()


if __name__ == "__main__":
    main()
