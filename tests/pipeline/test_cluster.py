"""A real standalone cluster on loopback gives the same tables as a session in one process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from tests.scenarios.srmp_process import free_port

SPARK_HOME = Path(pyspark.__file__).parent
START_SECONDS = 90.0

MAKE = """
import sys
from bench.pipeline_history import made_up_history
from lanner.pipeline.session import local_session
made_up_history(local_session(), int(sys.argv[2])).write.parquet(sys.argv[1])
"""


class Cluster:
    """A master and two workers of one core each."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = free_port()
        self.master = self._start("master", "deploy.master.Master", "--port", str(self.port))
        self.url = f"spark://127.0.0.1:{self.port}"
        self.workers = [
            self._start(f"worker{number}", "deploy.worker.Worker", "-c", "1", "-m", "1g", self.url)
            for number in range(2)
        ]

    def _start(self, name: str, what: str, *arguments: str) -> subprocess.Popen[bytes]:
        environment = os.environ | {
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_WORKER_DIR": str(self.directory / name),
            "PYSPARK_PYTHON": sys.executable,
        }
        command = [str(SPARK_HOME / "bin" / "spark-class"), f"org.apache.spark.{what}", "--host", "127.0.0.1"]
        command += ["--webui-port", "0", *arguments]
        with (self.directory / f"{name}.log").open("wb") as log:
            return subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)

    def wait(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while (self.directory / "master.log").read_text().count("Registering worker") < 2:
            assert time.monotonic() < deadline, (self.directory / "master.log").read_text()[-2000:]
            time.sleep(0.2)

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)  # a session of its own: its executors go with it
            process.wait(20)

    def stop(self) -> None:
        for process in (*self.workers, self.master):
            self.kill(process)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    found = Cluster(tmp_path)
    try:
        found.wait()
        yield found
    finally:
        found.stop()


def start_job(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "lanner.pipeline.jobs", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def job(*arguments: str) -> dict[str, object]:
    process = start_job(*arguments)
    out, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors[-3000:]
    found = json.loads(out)
    assert isinstance(found, dict)
    return found


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_cluster_gives_the_same_tables_and_a_dead_worker_changes_nothing(
    cluster: Cluster, tmp_path: Path
) -> None:
    source = str(tmp_path / "history")
    subprocess.run([sys.executable, "-c", MAKE, source, "200000"], check=True)
    verdicts = []
    for name, master in (("alone", "local[2]"), ("cluster", cluster.url)):
        root = str(tmp_path / name)
        taken = job("ingest", "--path", source, "--to", root, "--master", master)
        assert taken["events"] == 200_000
        process = start_job("refresh", "--to", root, "--master", master)
        if name == "cluster":
            time.sleep(12)  # in the middle of it
            cluster.kill(cluster.workers[0])
        _, errors = process.communicate(timeout=600)
        assert process.returncode == 0, errors[-3000:]
        judged = job("audit", "--to", root, "--master", master)
        verdicts.append({key: judged[key] for key in ("verdict", "messages", "counts", "managers")})
    assert verdicts[0] == verdicts[1]
    assert verdicts[0]["verdict"] == "proved"
