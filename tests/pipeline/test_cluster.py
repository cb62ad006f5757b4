"""A real standalone cluster on loopback gives the same tables as a session in one process."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.pipeline.cluster import Cluster
from tests.pipeline.every_job import JOBS, rows_of_tables, run_every_job
from tests.pipeline.histories import Fleet
from tests.pipeline.test_jobs import export

ROOT = Path(__file__).parents[2]
SECONDS = 800

DIRECTORY = """
[enterprise]
name = "Test"
[[site]]
name = "London"
[[site]]
name = "Paris"
[[site]]
name = "Rome"
[[manager]]
name = "alpha"
sites = ["London"]
routing = true
[[manager]]
name = "beta"
sites = ["Paris"]
routing = true
[[manager]]
name = "gamma"
sites = ["Rome"]
routing = true
[[manager]]
name = "wide"
sites = ["London", "Rome"]
routing = true
[[link]]
sites = ["London", "Paris"]
cost = 3
gates = ["alpha", "beta"]
[[link]]
sites = ["Paris", "Rome"]
cost = 2
gates = ["beta", "gamma"]
[[link]]
sites = ["London", "Rome"]
cost = 9
gates = ["wide"]
"""

SCENARIOS = """
[[scenario]]
name = "dearer"
cost = [["London", "Paris", 9]]
[[scenario]]
name = "beta down"
down = ["beta"]
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    found = Cluster(tmp_path)
    try:
        found.wait()
        yield found
    finally:
        found.stop()


def make_inputs(spark: SparkSession, directory: Path) -> None:
    """Histories with something for every table, and an enterprise with a gate that has its own routes."""
    directory.mkdir()
    fleet = Fleet()
    fleet.deliver("alpha", "beta", 20)
    fleet.deliver("beta", "gamma", 20)
    [twice] = fleet.deliver("gamma", "alpha", 1)
    fleet.arrive(twice)
    fleet.arrive(fleet.send("alpha", "gamma"))
    sent = fleet.send("alpha", "beta")
    fleet.note("alpha", "dead-lettered", sent["url"], sent["message"], reason="no way", message_class=0x8002)
    fleet.wait(7200)
    fleet.deliver("beta", "alpha", 20)
    export(spark, fleet, directory / "exports")
    (directory / "enterprise.toml").write_text(DIRECTORY)
    (directory / "changes.toml").write_text(SCENARIOS)


def prove(spark: SparkSession, cluster: Cluster, directory: Path, job: str) -> None:
    inputs = directory / "inputs"
    make_inputs(spark, inputs)
    worker = cluster.workers[0]
    about = (cluster.url, inputs, directory, job, worker.pid, worker.directory)
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.pipeline.cluster_driver", *map(str, about)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        here = run_every_job(spark, str(directory / "alone"), inputs)
        wanted = rows_of_tables(spark, str(directory / "alone"))
        out, errors = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
        process.wait(20)
    assert process.returncode == 0, errors[-3000:]
    found = json.loads(out)
    assert worker.is_dead
    assert found["seen"]["died"] > 0
    assert found["seen"]["failed"] >= found["seen"]["died"]
    assert here["audit"]["verdict"] == "refuted"
    empty = {name for name, rows in wanted.items() if not rows}
    assert empty == {"quarantine"}
    for name in ("whole", "broken"):
        assert found[name] == here
        assert rows_of_tables(spark, str(directory / name)) == wanted


@pytest.mark.timeout(900)  # three Java processes and their executors, on a machine that may be busy
def test_a_cluster_gives_the_same_tables_and_a_dead_worker_changes_nothing(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    prove(spark, cluster, tmp_path, "refresh")


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("job", [job for job in JOBS if job != "refresh"])
def test_a_worker_that_dies_in_any_other_job(
    spark: SparkSession, cluster: Cluster, tmp_path: Path, job: str
) -> None:
    prove(spark, cluster, tmp_path, job)
