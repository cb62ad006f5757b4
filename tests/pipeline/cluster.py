"""A standalone cluster of Spark on loopback, started from the pip package."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyspark
from tests.scenarios.srmp_process import free_port

from lanner.pipeline.session import FAST_START

__all__ = ["Cluster", "Worker"]

SPARK_HOME = Path(pyspark.__file__).parent
START_SECONDS = 120.0
WORKERS = 2


class Worker:
    """A worker of one core and its executors, in a process group of their own: a machine that can die."""

    def __init__(self, directory: Path, master: str) -> None:
        self.directory = directory
        self._process = start_daemon(directory, "worker.Worker", "-c", "1", "-m", "600m", master)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_dead(self) -> bool:
        return self._process.poll() is not None

    def kill(self) -> None:
        end(self._process)


class Cluster:
    """A master and two workers."""

    def __init__(self, directory: Path) -> None:
        self._log = directory / "master" / "log"
        port = free_port()
        self.url = f"spark://127.0.0.1:{port}"
        self._master = start_daemon(directory / "master", "master.Master", "--port", str(port))
        self.workers = [Worker(directory / f"worker{number}", self.url) for number in range(WORKERS)]

    def wait(self) -> None:
        """Until all workers are known to the master."""
        deadline = time.monotonic() + START_SECONDS
        while self._log.read_text().count("Registering worker") < WORKERS:
            assert time.monotonic() < deadline, self._log.read_text()[-2000:]
            time.sleep(0.1)

    def stop(self) -> None:
        for worker in self.workers:
            worker.kill()
        end(self._master)


def start_daemon(directory: Path, what: str, *arguments: str) -> subprocess.Popen[bytes]:
    directory.mkdir()
    environment = os.environ | {
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(directory),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": f"{FAST_START} -Dspark.worker.timeout=10",
        "PYSPARK_PYTHON": sys.executable,
    }
    command = [str(SPARK_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{what}"]
    command += ["--host", "127.0.0.1", "--webui-port", "0", *arguments]
    with (directory / "log").open("wb") as log:
        return subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)


def end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(20)
