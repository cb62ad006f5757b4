"""Settings of Spark that suit tests: small data, and sessions that live for seconds."""

from __future__ import annotations

__all__ = ["FAST"]

FAST = {
    # Small data: to compile a query takes longer than to interpret it.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.driver.memory": "1g",
}
