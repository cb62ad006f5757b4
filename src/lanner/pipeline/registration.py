"""Making ``format("msmq")`` known to a session."""

from __future__ import annotations

from pyspark.sql import SparkSession

from lanner.pipeline.source import MsmqPushingSource

__all__ = ["register"]

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


def register(spark: SparkSession) -> None:
    """Register ``msmq`` with filter pushdown, which this turns on for the session.

    Without it, Spark finds ``msmq`` by the package ``pyspark_msmq``, and filters all rows itself.
    """
    spark.conf.set(PUSHDOWN, "true")
    spark.dataSource.register(MsmqPushingSource)
