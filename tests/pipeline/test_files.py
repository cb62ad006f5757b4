"""Reading exported histories: Parquet, Arrow and JSON lines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pyarrow
import pyarrow.feather
import pyarrow.parquet
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from tests.pipeline.machines import Machine, lsns, read

from lanner.cli.history_files import Columnar, write_columns


def exported(machine: Machine, directory: Path) -> tuple[Path, Path, Path]:
    """The same rows in every format, in small groups and without a word about the manager."""
    parquet, arrow, lines = (directory / kind / f"LON-1.{kind}" for kind in ("parquet", "arrow", "jsonl"))
    for file in (parquet, arrow, lines):
        file.parent.mkdir()
    table = pyarrow.ipc.open_stream(b"".join(machine.client.history_arrow())).read_all()
    pyarrow.parquet.write_table(table, parquet, row_group_size=100)
    pyarrow.feather.write_feather(table, str(arrow), chunksize=100)
    rows = [msgspec.json.encode(msgspec.structs.asdict(row)) + b"\n" for row in machine.client.history()]
    lines.write_bytes(b"".join(rows))
    return parquet, arrow, lines


def test_files(spark: SparkSession, make_machine: Callable[..., Machine], tmp_path: Path) -> None:
    machine = make_machine(bodies=True)
    machine.send(1000)
    wanted = sorted(read(spark, machine).drop("manager_id").collect())
    for file in exported(machine, tmp_path):
        frame = spark.read.format("msmq").option("minPartitions", 4).load(str(file))
        assert frame.rdd.getNumPartitions() >= 4
        assert sorted(frame.drop("manager_id").collect()) == wanted
        assert lsns(frame.where("lsn between 150 and 160")) == list(range(150, 161))
    assert spark.read.format("msmq").load(f"{tmp_path}/jsonl").count() == 1000
    assert spark.read.format("msmq").load(f"{tmp_path}/parquet/*.parquet").where("manager = 'X'").count() == 0


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_an_export_tells_whose_history_it_is(
    spark: SparkSession, make_machine: Callable[..., Machine], tmp_path: Path, form: Columnar
) -> None:
    machine = make_machine()
    machine.send(10)
    status = machine.client.status()
    file = tmp_path / f"renamed.{form}"
    pieces = machine.client.history_arrow()
    write_columns(pieces, file, form, manager=status.name, manager_id=str(status.id))
    frame = spark.read.format("msmq").load(str(file))
    assert sorted(frame.collect()) == sorted(read(spark, machine).collect())


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("no.parquet", None, "there is no history at"),
        ("x.txt", b"", "neither Parquet nor Arrow nor JSON lines"),
        ("x.parquet", b"PAR1 garbage", "cannot read"),
        ("x.arrow", b"ARROW1 garbage", "cannot read"),
        ("x.jsonl", b'{"lsn": 1}\n', "the line at byte 0 is no row"),
        ("x.jsonl", b"garbage\n", "is no history"),
    ],
)
def test_files_that_are_none(
    spark: SparkSession, tmp_path: Path, name: str, content: bytes | None, words: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(PySparkException) as raised:
        spark.read.format("msmq").load(str(tmp_path / name)).collect()
    assert words in str(raised.value)


def test_a_parquet_file_of_something_else(spark: SparkSession, tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pyarrow.table({"x": [1]}), tmp_path / "x.parquet")
    with pytest.raises(PySparkException, match="the column lsn is missing"):
        spark.read.format("msmq").load(str(tmp_path / "x.parquet")).collect()
