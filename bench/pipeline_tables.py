"""Bronze to gold and the audit, against what Spark needs to read, group by queue and write the same rows."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from bench.measure import Rounds, Target, disk_directory, print_report
from bench.peers import PeerMissingError

EVENTS = int(os.environ.get("LANNER_BENCH_EVENTS", "5000000"))
LARGEST_RATIO = 6.0
MEMORY = "6g"


def main() -> list[Target]:
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise PeerMissingError("pyspark", "pyspark") from None
    from lanner.pipeline.session import local_session

    spark: SparkSession = local_session("bench", settings={"spark.driver.memory": MEMORY})
    spark.sparkContext.setLogLevel("ERROR")
    try:
        with disk_directory() as place:
            return _measure(spark, place)
    finally:
        spark.stop()


def _measure(spark: object, place: Path) -> list[Target]:
    from pyspark.sql import SparkSession

    from bench.pipeline_history import made_up_history
    from lanner.pipeline.findings import Verdict
    from lanner.pipeline.jobs import Lake, refresh, run_audit

    assert isinstance(spark, SparkSession)
    source = str(place / "source")
    made = made_up_history(spark, EVENTS).repartitionByRange(4, "manager", "lsn")
    made.sortWithinPartitions("manager", "lsn").write.parquet(source)
    rows = spark.read.parquet(source)

    def baseline() -> None:
        rows.repartition("queue").sortWithinPartitions("queue").write.mode("overwrite").parquet(
            str(place / "base")
        )

    steps: dict[str, float] = {}

    def pipeline() -> None:
        root = str(place / "lake")
        shutil.rmtree(root, ignore_errors=True)
        lake = Lake.at(spark, root)
        steps["bronze"] = _timed(lambda: lake.bronze.add(rows, "1"))
        steps["silver and gold"] = _timed(lambda: refresh(spark, root))
        begin = time.perf_counter()
        judged = run_audit(spark, root)
        steps["audit"] = time.perf_counter() - begin
        assert judged.verdict is Verdict.PROVED, judged.counts

    baseline()  # what a first run compiles and loads is nobody's time
    base = Rounds("read, group by queue, write", "s", [])
    ours = Rounds("bronze to gold and audit", "s", [])
    for _ in range(2):
        base.values.append(_timed(baseline))
        ours.values.append(_timed(pipeline))
    base.values.append(_timed(baseline))
    target = Target(
        f"bronze to gold and audit of {EVENTS:,} events",
        ours.median / base.median,
        LARGEST_RATIO,
        at_least=False,
    )
    parts = [f"of which {name}: {seconds:,.1f} s" for name, seconds in steps.items()]
    print_report("Pipeline: tables", [base, ours, *parts, target])
    return [target]


def _timed(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


if __name__ == "__main__":
    main()
