"""All jobs on a cluster, in one application: once undisturbed, and once while a worker dies.

``python -m tests.pipeline.cluster_driver MASTER INPUTS OUTPUT JOB PID DIRECTORY``: during the job, the worker
with this process group and directory is killed. What was seen goes to standard output as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from tests.pipeline.every_job import run_every_job
from tests.pipeline.fast import FAST

from lanner.pipeline.session import FAST_START
from lanner.pipeline.start import make_session

SETTINGS = FAST | {
    "spark.cores.max": "2",
    "spark.executor.cores": "1",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": FAST_START,
    "spark.driver.extraJavaOptions": FAST_START,
    "spark.sql.shuffle.partitions": "4",
    # No job begins before both executors are there.
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
    # What is known of executors is what is, and not what was a moment ago.
    "spark.ui.liveUpdate.period": "0",
}
SETTLED = 0.3
"""Seconds until everything has arrived that an executor said before it was stopped."""


class Killer(threading.Thread):
    """Kills a worker while its executor has a task.

    The worker is stopped first: if its task is still there when all that it said has arrived, the task
    cannot end any more, and dies with it.
    """

    def __init__(self, spark: SparkSession, group: int, directory: Path) -> None:
        super().__init__(daemon=True)
        context: Any = spark.sparkContext
        self._gateway = context._gateway
        self._store = context._jsc.sc().statusStore()
        self._group = group
        [self._executor] = [path.name for path in directory.glob("app-*/[0-9]*")]
        self.tasks = 0
        """How many tasks died."""

    def run(self) -> None:
        while not self.tasks:
            if self._find().activeTasks():
                os.killpg(self._group, signal.SIGSTOP)
                time.sleep(SETTLED)
                self.tasks = self._find().activeTasks()
                os.killpg(self._group, signal.SIGKILL if self.tasks else signal.SIGCONT)
            time.sleep(0.002)

    def failed_tasks(self) -> int:
        """Tasks that Spark had to begin again, in all stages.

        Not by executor: whether a dead one still gets its failures counted is a matter of chance.
        """
        jvm, nothing = self._gateway.jvm, self._gateway.new_array(self._gateway.jvm.double, 0)
        every = jvm.java.util.ArrayList()
        stages = self._store.stageList(every, False, False, nothing, every)
        return sum(stages.apply(number).numFailedTasks() for number in range(stages.size()))

    def _find(self) -> Any:
        executors = self._store.executorList(False)
        found = [executors.apply(number) for number in range(executors.size())]
        return next(one for one in found if one.id() == self._executor)


def main(master: str, inputs: Path, output: Path, job: str, group: int, directory: Path) -> None:
    spark = make_session(master, SETTINGS)
    whole = run_every_job(spark, str(output / "whole"), inputs)
    killer = Killer(spark, group, directory)
    before = killer.failed_tasks()
    broken = run_every_job(
        spark, str(output / "broken"), inputs, lambda name: killer.start() if name == job else None
    )
    seen = {"died": killer.tasks, "failed": killer.failed_tasks() - before}
    print(json.dumps({"whole": whole, "broken": broken, "seen": seen}))
    spark.stop()


if __name__ == "__main__":
    master, inputs, output, job, group, directory = sys.argv[1:]
    main(master, Path(inputs), Path(output), job, int(group), Path(directory))
