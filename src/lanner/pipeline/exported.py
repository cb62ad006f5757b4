"""Exported histories as rows. What is no row of history goes on as raw text, and into quarantine."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DecimalType, DoubleType, StringType, StructField, StructType

from lanner.pipeline.formats.json_lines import JsonLinesFormat
from lanner.pipeline.schema import spark_schema

__all__ = ["read_exported"]


_BAD = "_bad"
_AS_TEXT = {"time": DoubleType(), "stream": DecimalType(20, 0), "body": StringType()}
_TWO_TO_THE_63 = "9223372036854775808"
_TWO_TO_THE_64 = "18446744073709551616"


def read_exported(spark: SparkSession, path: str) -> DataFrame:
    """Read what ``lanner history export`` wrote: Parquet, or JSON lines of which some may be damaged."""
    if not path.rstrip("*").endswith(JsonLinesFormat.suffixes):
        return spark.read.format("msmq").option("path", path).load()
    fields = [
        StructField(field.name, _AS_TEXT.get(field.name, field.dataType)) for field in spark_schema("history")
    ]
    schema = StructType([*fields, StructField(_BAD, StringType())])
    lines = spark.read.text(path).withColumn("_file", F.input_file_name())
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _BAD}
    read = lines.select("value", "_file", F.from_json("value", schema, options).alias("row"))
    is_bad = F.col(f"row.{_BAD}").isNotNull() | F.col("row.lsn").isNull()
    manager = F.regexp_extract("_file", r"([^/]+)\.[a-z]+$", 1)
    # A stream's number has 64 bits without a sign; here, as in Spark, the highest of them is the sign.
    stream = F.col("row.stream")
    signed = F.when(
        stream >= F.lit(_TWO_TO_THE_63).cast("decimal(20,0)"),
        stream - F.lit(_TWO_TO_THE_64).cast("decimal(20,0)"),
    ).otherwise(stream)
    special = {
        "manager": F.coalesce(F.col("row.manager"), manager),
        "time": F.timestamp_micros(F.round(F.col("row.time") * 1_000_000).cast("bigint")),
        "stream": signed.cast("bigint"),
        "body": F.unbase64("row.body"),
    }
    columns = [
        special.get(field.name, F.col(f"row.{field.name}")).alias(field.name)
        for field in spark_schema("history")
    ]
    return read.select(*columns, F.when(is_bad, F.col("value")).alias("raw"))
