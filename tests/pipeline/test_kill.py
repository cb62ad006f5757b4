"""The driver is killed with -9 while messages arrive; then it runs to the end.

Shown: every event is exactly once in the Parquet files, every row exactly once in the queue.
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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.dataset
import pytest
from tests.pipeline.machines import DURABLE, TRANSACTIONAL, Machine

ROOT = Path(__file__).parents[2]
START_SECONDS = 120.0
END_SECONDS = 300.0
PAUSE = 0.05
"""Seconds between two sends, so that there is always a batch under way."""


class Driver:
    """The driver and its Java, in a process group of their own."""

    def __init__(self, machine: Machine, directory: Path) -> None:
        self._directory = directory
        self._command = [
            sys.executable,
            "-m",
            "tests.pipeline.kill_driver",
            machine.url,
            machine.token,
            str(directory),
            DURABLE,
            TRANSACTIONAL,
        ]

    def commits(self) -> list[int]:
        """How many batches of each query are complete."""
        return [len(list((self._directory / name / "commits").glob("[0-9]*"))) for name in ("files", "queue")]

    def run_and_kill(self, patience: float) -> None:
        """Let both queries complete a batch, wait for any moment of the next ones, and kill."""
        before = self.commits()
        process = self._start()
        try:
            deadline = time.monotonic() + START_SECONDS
            while not all(now > then for now, then in zip(self.commits(), before, strict=True)):
                assert process.poll() is None, "the driver ended by itself"
                assert time.monotonic() < deadline, "the driver does not get on"
                time.sleep(0.05)
            time.sleep(patience)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(30)

    def run_to_the_end(self) -> None:
        process = self._start("now")
        try:
            assert process.wait(END_SECONDS) == 0
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)

    def _start(self, *more: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*self._command, *more],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )


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


def prove(machine: Machine, directory: Path, kills: int) -> None:
    driver = Driver(machine, directory)
    chance = random.Random(7)
    machine.send(500, prefix="first-")
    with arriving(machine) as count:
        for _ in range(kills):
            driver.run_and_kill(chance.uniform(0.0, 2.0))
    driver.run_to_the_end()
    sent = 500 + count[0]
    rows = pyarrow.dataset.dataset(directory / "rows", format="parquet", partitioning="hive").to_table()
    assert len(rows) == sent
    wanted = [row.lsn for row in machine.client.history() if row.queue == DURABLE]
    assert sorted(rows.column("lsn").to_pylist()) == wanted
    times = Counter(machine.labels(TRANSACTIONAL))
    assert set(times.values()) == {1}
    assert sorted(times) == sorted(rows.column("label").to_pylist())
    assert machine.client.queue(DURABLE).messages == sent


def test_a_killed_driver(machine: Machine, tmp_path: Path) -> None:
    prove(machine, tmp_path / "driver", kills=1)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_driver_killed_five_times(machine: Machine, tmp_path: Path) -> None:
    prove(machine, tmp_path / "driver", kills=5)
