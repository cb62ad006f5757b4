"""A Spark driver that is made to be killed: one history into Parquet by batch, into another queue, and into
bronze as ``lanner pipeline ingest`` does it.

``python -m tests.pipeline.kill_driver URL TOKEN DIRECTORY SOURCE TARGET SINKS LIMIT MOMENT AFTER``; with the
moment ``end`` it reads what there is and ends. Bronze is always there; SINKS are ``files`` and ``queue``.
"""

from __future__ import annotations

import os
import sys
import threading
import traceback
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from tests.pipeline.fast import FAST
from tests.pipeline.kill_moments import Moment, hold_at

from lanner.pipeline import jobs
from lanner.pipeline.session import local_session

END = "end"
PATIENCE = "120"
"""Seconds: the manager may be slow, as all on a busy machine, and is never away."""


class Given(NamedTuple):
    """What the command line says."""

    url: str
    token: str
    directory: Path
    source: str
    target: str
    sinks: str
    limit: str
    moment: str
    after: str

    @property
    def is_to_end(self) -> bool:
        return self.moment == END

    @property
    def limits(self) -> dict[str, str]:
        return {"maxOffsetsPerTrigger": self.limit} if self.limit else {}


def start_streams(spark: SparkSession, given: Given) -> list[StreamingQuery]:
    manager = {"managers": given.url, "token": given.token, "patience": PATIENCE}

    def rows() -> DataFrame:
        # One for each query: two that share a frame share state in Java, which then fails now and then with
        # "Illegal size of collection" while a task is made.
        options = {**manager, **given.limits, "queue": given.source, "minPartitions": "2"}
        return spark.readStream.format("msmq").options(**options, startingOffsets="earliest").load()

    def write(frame: DataFrame, batch: int) -> None:
        # A batch that is repeated writes its own directory over.
        frame.select("lsn", "label").write.mode("overwrite").parquet(f"{given.directory}/rows/batch={batch}")

    writers = {
        "files": rows().writeStream.foreachBatch(write),
        "queue": rows()
        .select("label")
        .writeStream.format("msmq")
        .options(**manager, queue=given.target, delivery="transactional"),
    }
    trigger: dict[str, Any] = {"availableNow": True} if given.is_to_end else {"processingTime": "0 seconds"}
    return [
        writers[name].option("checkpointLocation", f"{given.directory}/{name}").trigger(**trigger).start()
        for name in given.sinks.split(",")
    ]


def end_with(query: StreamingQuery) -> None:
    """A stream that fails ends the driver, which otherwise would go on without it."""
    try:
        query.awaitTermination()
    except Exception:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)


def main(given: Given) -> None:
    spark = local_session("killed", fast_start=True, settings=FAST)
    spark.sparkContext.setLogLevel("OFF")
    streams = start_streams(spark, given)
    watchers = [threading.Thread(target=end_with, args=(query,), daemon=True) for query in streams]
    for watcher in watchers:
        watcher.start()
    if given.is_to_end:
        for watcher in watchers:
            watcher.join()  # what they send is history, too
    options = {"token": given.token, "patience": PATIENCE, "minPartitions": "2", **given.limits}
    while True:
        jobs.ingest_managers(spark, f"{given.directory}/lake", given.url, options=options)
        if given.is_to_end:
            break


if __name__ == "__main__":
    url, token, directory, *rest = sys.argv[1:]
    given = Given(url, token, Path(directory), *rest)
    if not given.is_to_end:
        hold_at(Moment(given.moment), int(given.after), given.directory / "reached")
    main(given)
