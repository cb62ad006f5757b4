"""Everything that needs pyspark. A queue manager imports its settings, which do not, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["register"]


def register(spark: SparkSession, *, push_filters: bool = False) -> None:
    """Make ``format("msmq")`` known to a session. Push filters only where a frame is used once in a query."""
    # Imported here: the other modules of this package are of use without the data source. It is not called
    # `register`, because a module of that name would take the place of this function when it is imported.
    from lanner.pipeline.registration import register as register_source

    register_source(spark, push_filters=push_filters)
