"""All tables in a temporary directory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lanner.pipeline.audit import audit
from lanner.pipeline.bronze import Bronze
from lanner.pipeline.findings import Audit
from lanner.pipeline.gold import Gold
from lanner.pipeline.silver import Silver
from lanner.pipeline.tables import Tables


class Lake:
    def __init__(self, spark: SparkSession, root: Path) -> None:
        self.tables = Tables(spark, str(root))
        self.bronze = Bronze(self.tables)
        self.silver = Silver(self.tables, self.bronze)
        self.gold = Gold(self.tables, self.bronze, self.silver)

    def load(self, rows: DataFrame, batch: str = "1") -> None:
        self.bronze.add(rows, batch)
        self.silver.refresh()

    def messages(self) -> dict[str, dict[str, Any]]:
        rows = self.silver.messages().collect()
        found = {row["message_id"]: row.asDict(recursive=True) for row in rows}
        assert len(found) == len(rows)
        return found

    def audit(self, **options: Any) -> Audit:
        return audit(self.tables, self.bronze, self.silver, **options)
