"""A Spark driver that is made to be killed: one history into Parquet by batch, and into another queue.

``python -m tests.pipeline.kill_driver URL TOKEN DIRECTORY SOURCE TARGET [now]``; with ``now`` it reads what
there is and ends.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from lanner.pipeline.session import local_session


def main(url: str, token: str, directory: Path, source: str, target: str, *, now: bool) -> None:
    spark = local_session("killed", fast_start=True, settings={"spark.sql.codegen.wholeStage": "false"})
    spark.sparkContext.setLogLevel("OFF")
    manager = {"managers": url, "token": token}
    limit = "5000" if now else "300"  # small batches while it may be killed
    rows = (
        spark.readStream.format("msmq")
        .options(
            **manager, queue=source, startingOffsets="earliest", maxOffsetsPerTrigger=limit, minPartitions="2"
        )
        .load()
    )
    trigger: dict[str, Any] = {"availableNow": True} if now else {"processingTime": "0 seconds"}

    def write(frame: DataFrame, batch: int) -> None:
        # A batch that is repeated writes its own directory over.
        frame.select("lsn", "label").write.mode("overwrite").parquet(f"{directory}/rows/batch={batch}")

    into_files = rows.writeStream.foreachBatch(write).option("checkpointLocation", f"{directory}/files")
    into_queue = (
        rows.select("label")
        .writeStream.format("msmq")
        .options(**manager, queue=target, delivery="transactional", checkpointLocation=f"{directory}/queue")
    )
    queries = [into_files.trigger(**trigger).start(), into_queue.trigger(**trigger).start()]
    for query in queries:
        query.awaitTermination()


if __name__ == "__main__":
    url, token, directory, source, target, *rest = sys.argv[1:]
    main(url, token, Path(directory), source, target, now=rest == ["now"])
