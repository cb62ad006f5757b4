"""Taking histories into bronze: exported ones, or of managers what is new.

How far each manager was read is in a checkpoint of Spark's. A batch of bronze is named after the checkpoint
and the batch's number, so that a batch that Spark repeats is written over, and a checkpoint that somebody
removed does not write over what an earlier one brought.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from typing import Any

import msgspec
from pyspark.sql import DataFrame, SparkSession

from lanner.model.errors import LannerError
from lanner.pipeline.exported import read_exported
from lanner.pipeline.lake import Lake, Say, quietly
from lanner.pipeline.managers import look_at
from lanner.pipeline.options import SourceOptions
from lanner.pipeline.registration import register
from lanner.pipeline.storage import Storage

__all__ = ["ingest_files", "ingest_managers"]

MAX_SECONDS = 3600 * 24
"""How long one run may take to catch up with its managers."""


def ingest_files(spark: SparkSession, root: str, path: str, *, say: Say = quietly) -> Mapping[str, Any]:
    """Take exported histories into bronze. The same path again writes its batch over."""
    register(spark)
    say(f"reading {path}")
    batch = "files-" + hashlib.sha256(path.encode()).hexdigest()[:12]
    return Lake.at(spark, root).bronze.add(read_exported(spark, path), batch, identify=True)


def ingest_managers(
    spark: SparkSession,
    root: str,
    managers: str,
    *,
    options: Mapping[str, str] | None = None,
    name: str = "managers",
    say: Say = quietly,
) -> Mapping[str, Any]:
    """Take everything that managers have to tell, and have not told yet, into bronze.

    How far each was read is in the stream's checkpoint below the root; ``options`` are those of the source.
    """
    register(spark)
    lake = Lake.at(spark, root)
    checkpoint = f"_checkpoints/{name}"
    chosen = {"managers": managers, "startingOffsets": "earliest", **(options or {})}
    asked = time.time()
    reading = SourceOptions.parse(chosen, streaming=True)
    fleet = look_at(reading.managers, reading.patience, fail=reading.fail_on_data_loss)
    done: dict[str, Any] = {"events": 0, "faulty": 0, "batches": 0}

    def take(rows: DataFrame, number: int) -> None:
        say(f"batch {number} of {managers}")
        batch = f"{name}-{_identity(lake.tables.storage, checkpoint)}-{number:010}"
        facts = lake.bronze.add(rows, batch)
        done["events"] += facts["events"]
        done["faulty"] += facts["faulty"]
        done["batches"] += 1

    query = (
        spark.readStream.format("msmq")
        .options(**chosen)
        .load()
        .writeStream.foreachBatch(take)
        .option("checkpointLocation", lake.tables.storage.at(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    if not query.awaitTermination(MAX_SECONDS):
        query.stop()
        raise LannerError(
            f"the managers have more to tell than was read in {MAX_SECONDS} seconds",
            hint="run it again: it goes on where it was",
        )
    # Whatever happened before the question is in the batches now, or there was none.
    lake.bronze.note_complete([seen.id for seen in fleet.seen], asked)
    return done


def _identity(storage: Storage, checkpoint: str) -> str:
    """The first letters of the identifier that Spark gave to a checkpoint when it made it."""
    return str(msgspec.json.decode(storage.read(f"{checkpoint}/metadata"))["id"])[:8]
