"""The first session of ``docs/pipeline.md`` runs as it is written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.pipeline.machines import Machine

PAGE = Path(__file__).parents[2] / "docs" / "pipeline.md"


def test_the_first_session(
    spark: SparkSession, machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = re.search(r"## A first session.*?```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found is not None
    session = found[1].replace("http://127.0.0.1:8081", machine.url)
    session = session.replace("lanner-data/token", str(machine.data / "token"))
    machine.send(1)
    monkeypatch.chdir(tmp_path)
    # Relative paths of Spark are the Java process's, which is elsewhere.
    session = session.replace('"events/', f'"{tmp_path}/events/')
    names: dict[str, object] = {}
    exec(session, names)
    assert sorted(machine.labels()) == ["m0", "order 0", "order 1", "order 2"]
    assert spark.read.parquet(f"{tmp_path}/events/rows").count() == 4
