"""``spark-submit`` runs the jobs: the outcome, the exit code, and what is said where."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession
from tests.pipeline.fast import FAST
from tests.pipeline.histories import Fleet
from tests.pipeline.test_jobs import export

from lanner.pipeline import jobs
from lanner.pipeline.session import FAST_START

SUBMIT = Path(pyspark.__file__).parent / "bin" / "spark-submit"

QUICK = FAST | {
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.driver.extraJavaOptions": FAST_START,
}
"""Small data on a small machine, as in the other tests."""


@cache
def where() -> str:
    asked = [sys.executable, "-m", "lanner.pipeline.jobs", "--where"]
    return subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()


def submit(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(SUBMIT), "--master", "local[2]"]
    for name, value in QUICK.items():
        command += ["--conf", f"{name}={value}"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK_")}
    environment |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    return subprocess.run(
        [*command, where(), *arguments],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


@pytest.fixture
def history(spark: SparkSession, tmp_path: Path) -> Path:
    """A message that arrived twice."""
    fleet = Fleet()
    [sent] = fleet.deliver("alpha", "beta", 1)
    fleet.arrive(sent)
    export(spark, fleet, tmp_path / "exports")
    return tmp_path


def test_ingest_and_audit(spark: SparkSession, history: Path) -> None:
    (history / "lanner.toml").write_text(f"[pipeline]\nlake = '{history}/lake'\n")
    taken = submit(history, "ingest", "--path", "exports")
    assert taken.returncode == 0, taken.stderr
    assert json.loads(taken.stdout)["events"] == 5
    assert "reading exports" in taken.stderr
    assert " INFO " not in taken.stderr.partition("Setting Spark log level")[2]
    jobs.refresh(spark, f"{history}/lake")
    judged = submit(history, "audit")
    assert judged.returncode == 4, judged.stderr
    found = json.loads(judged.stdout)
    assert (found["verdict"], found["counts"]) == ("refuted", {"duplicated (violation)": 1})


def test_what_is_wrong_is_one_line_on_standard_error(tmp_path: Path) -> None:
    outcome = submit(tmp_path, "ingest")
    assert (outcome.returncode, outcome.stdout) == (1, "")
    assert outcome.stderr.splitlines()[-1].startswith("lanner: there is nothing to take in (give --managers")
    assert "\tat " not in outcome.stderr
