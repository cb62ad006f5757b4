"""The driver is killed with -9 while messages arrive; then it runs to the end.

Shown: every event is exactly once in bronze and in the Parquet files, every row exactly once in the queue.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pyarrow.dataset
import pytest
from pyspark.sql import SparkSession
from tests.pipeline.kill_driver import END
from tests.pipeline.kill_moments import Left, Moment
from tests.pipeline.machines import DURABLE, TRANSACTIONAL, Machine

from lanner.pipeline.jobs import Lake

ROOT = Path(__file__).parents[2]
START_SECONDS = 240.0
END_SECONDS = 300.0
PAUSE = 0.2
"""Seconds between two sends, so that there is always a batch under way."""

SEED = int(os.environ.get("LANNER_TEST_SEED", "7"))


class Kill(NamedTuple):
    """One life of the driver: so many batches of bronze pass, and in the next one it is killed."""

    moment: Moment
    after: int = 0


class Driver:
    """The driver and its Java, in a process group of their own."""

    def __init__(self, machine: Machine, directory: Path, sinks: Sequence[str], limit: str) -> None:
        self._machine = machine
        self._directory = directory
        self._sinks = sinks
        self._limit = limit
        self._log = directory / "log"
        self.lake = directory / "lake"
        self._logs = [*(directory / name for name in sinks), self.lake / "_checkpoints" / "managers"]

    def commits(self) -> list[int]:
        """The last complete batch of each query; Spark deletes the notes of old ones."""
        return [
            max((int(note.name) for note in (log / "commits").glob("[0-9]*")), default=-1)
            for log in self._logs
        ]

    def run_and_kill(self, kill: Kill, patience: float) -> None:
        """Let the queries complete a batch, wait for the moment, or for any of the next ones, and kill."""
        before = self.commits()
        reached = self._directory / "reached"
        reached.unlink(missing_ok=True)
        process = self._start(kill.moment, kill.after)
        try:
            deadline = time.monotonic() + START_SECONDS
            while not self._is_time(kill, before, reached):
                assert process.poll() is None, f"the driver ended by itself: {self._said()}"
                assert time.monotonic() < deadline, f"the driver does not get on: {before}, {self.commits()}"
                time.sleep(0.02)
            time.sleep(patience)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(30)

    def _is_time(self, kill: Kill, before: list[int], reached: Path) -> bool:
        moved = [now > then for now, then in zip(self.commits(), before, strict=True)]
        if kill.moment is Moment.ANY:
            return all(moved)
        return all(moved[:-1]) and reached.exists()

    def run_to_the_end(self) -> None:
        process = self._start(END)
        try:
            assert process.wait(END_SECONDS) == 0, self._said()
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)

    def _start(self, moment: str, after: int = 0) -> subprocess.Popen[bytes]:
        limit = "5000" if moment == END else self._limit
        machine = (self._machine.url, self._machine.token)
        about = (*machine, self._directory, DURABLE, TRANSACTIONAL, ",".join(self._sinks))
        self._directory.mkdir(exist_ok=True)
        with self._log.open("wb") as log:
            return subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "tests.pipeline.kill_driver",
                    *map(str, (*about, limit, moment, after)),
                ],
                cwd=ROOT,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _said(self) -> str:
        return self._log.read_text(errors="replace")[-3000:]


@contextmanager
def arriving(machine: Machine) -> Iterator[list[int]]:
    """Messages arrive as long as the block runs; the list has how many."""
    count = [0]
    stopped = threading.Event()

    def send() -> None:
        while not stopped.is_set():
            machine.send(10, prefix=f"n{count[0]}-")
            count[0] += 10
            time.sleep(PAUSE)

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield count
    finally:
        stopped.set()
        thread.join(60)


def prove(
    spark: SparkSession,
    machine: Machine,
    directory: Path,
    kills: Sequence[Kill],
    *,
    sinks: Sequence[str],
    limit: str,
) -> None:
    driver = Driver(machine, directory, sinks, limit)
    chance = random.Random(SEED)
    print(f"LANNER_TEST_SEED={SEED}")  # for whoever wants the same delays again
    machine.send(500, prefix="first-")
    with arriving(machine) as count:
        for kill in kills:
            driver.run_and_kill(kill, chance.uniform(0.0, 1.5))
            left = Left(driver.lake)
            assert kill.moment in (Moment.ANY, left.moment())
            # Whoever reads bronze now sees whole batches, also while one is repeated.
            lsns = left.lsns()
            assert lsns == list(range(1, len(lsns) + 1))
    driver.run_to_the_end()
    prove_queue(machine, 500 + count[0])
    if "files" in sinks:
        prove_files(machine, directory)
    prove_bronze(spark, machine, driver.lake, limit)


def prove_queue(machine: Machine, sent: int) -> None:
    times = Counter(machine.labels(TRANSACTIONAL))
    assert set(times.values()) == {1}
    wanted = machine.labels(DURABLE)
    assert len(wanted) == sent
    assert sorted(times) == sorted(wanted)


def prove_files(machine: Machine, directory: Path) -> None:
    rows = pyarrow.dataset.dataset(directory / "rows", format="parquet", partitioning="hive").to_table()
    found = sorted(zip(*(rows.column(name).to_pylist() for name in ("lsn", "label")), strict=True))
    assert found == [(row.lsn, row.label) for row in machine.client.history() if row.queue == DURABLE]


def prove_bronze(spark: SparkSession, machine: Machine, root: Path, limit: str) -> None:
    bronze = Lake.at(spark, str(root)).bronze
    fields = ("lsn", "event", "queue", "message_id", "lookup_id", "label", "size")
    found = sorted(tuple(row) for row in bronze.events().select(*fields).collect())
    wanted = [tuple(getattr(row, field) for field in fields) for row in machine.client.history()]
    assert [row[0] for row in wanted] == list(range(1, len(wanted) + 1))
    assert found == wanted
    assert bronze.quarantine().count() == 0
    [coverage] = bronze.coverage()
    assert (coverage.events, coverage.missing) == (len(wanted), 0)
    if limit:
        assert len(bronze.manifest().parts) > len(wanted) / 5000


@pytest.mark.timeout(900)  # three starts of Spark, on a machine that may be busy
def test_a_driver_killed_twice(spark: SparkSession, machine: Machine, tmp_path: Path) -> None:
    kills = [Kill(Moment.COMMITTED, after=1), Kill(Moment.WRITING)]
    prove(spark, machine, tmp_path / "driver", kills, sinks=["queue"], limit="300")


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("limit", ["300", ""], ids=["many batches", "one batch"])
def test_a_driver_killed_five_times(
    spark: SparkSession, machine: Machine, tmp_path: Path, limit: str
) -> None:
    kills = [
        Kill(Moment.WRITTEN, after=1),
        Kill(Moment.COMMITTED, after=1),
        Kill(Moment.WRITING),  # over what the one before has committed
        Kill(Moment.PLANNED, after=1),
        Kill(Moment.ANY),
    ]
    prove(spark, machine, tmp_path / "driver", kills, sinks=["files", "queue"], limit=limit)
