"""Everything that needs pyspark. A queue manager never imports it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["register"]


def register(spark: SparkSession) -> None:
    """Make ``format("msmq")`` known to a session, with filter pushdown."""
    # Imported here: parts of this package, as the schemas, are of use without a data source.
    from lanner.pipeline.register import register as register_source

    register_source(spark)
