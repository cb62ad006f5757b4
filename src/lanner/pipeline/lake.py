"""All tables below one root, and how a job tells what it does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import SparkSession

from lanner.pipeline.bronze import Bronze
from lanner.pipeline.gold import Gold
from lanner.pipeline.silver import Silver
from lanner.pipeline.tables import Tables

__all__ = ["Lake", "Say", "quietly"]

Say = Callable[[str], None]
"""Tells whoever waits what is being done."""


def quietly(_: str) -> None:
    """Tell nobody."""


@dataclass(frozen=True)
class Lake:
    """All tables below one root."""

    tables: Tables
    bronze: Bronze
    silver: Silver
    gold: Gold

    @classmethod
    def at(cls, spark: SparkSession, root: str) -> Lake:
        """Find the tables, or the place for them."""
        tables = Tables(spark, root)
        bronze = Bronze(tables)
        silver = Silver(tables, bronze)
        return cls(tables, bronze, silver, Gold(tables, bronze, silver))
