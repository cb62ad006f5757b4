"""Making ``format("msmq")`` known to a session."""

from __future__ import annotations

from pyspark.sql import SparkSession

from lanner.pipeline.source import MsmqPushingSource, MsmqSource

__all__ = ["register"]

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


def register(spark: SparkSession, *, push_filters: bool = False) -> None:
    """Register ``msmq``.

    ``push_filters`` lets managers leave out rows that a filter does not want, and turns on the setting that
    this needs. It is off by default, because it gave wrong rows: where one frame is used twice in a query and
    filtered once (a join with itself), Spark 4.3 cut off rows of the other use too.
    """
    if push_filters:
        spark.conf.set(PUSHDOWN, "true")
    spark.dataSource.register(MsmqPushingSource if push_filters else MsmqSource)
