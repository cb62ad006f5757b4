"""How jobs and tests make a Spark session that runs on this machine."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from lanner.model.errors import LannerError

__all__ = ["JavaMissingError", "has_java", "local_session", "prepare_environment"]

LOOPBACK = "127.0.0.1"

LOCAL_SETTINGS: dict[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    # Two cores gain nothing from the 200 partitions that are the default.
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    # Without it, a filter that a Python source could use is an error instead.
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Between Java and Python, half the time of TCP on loopback.
    "spark.python.unix.domain.socket.enabled": "true",
}
"""What every local session has, unless it is told otherwise."""

THROUGHPUT = (
    "-XX:+UseParallelGC -Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"
)
"""Java's flags for jobs: nobody waits for a single answer, and Spark asks for nulls itself."""

FAST_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"
"""Java's flags for sessions that live for seconds, as those of tests do: start sooner, run slower."""


class JavaMissingError(LannerError):
    """Spark needs a Java runtime, and there is none."""


def prepare_environment() -> None:
    """Let Spark use this Python and this machine alone; must be done before the first session."""
    if not has_java():
        raise JavaMissingError(
            "Spark needs Java 17 or later and there is none",
            hint="apt install openjdk-17-jre-headless, or set JAVA_HOME",
        )
    # Executors otherwise take the first `python3` of the path, which need not have Lanner.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    # A machine whose name does not resolve, as in containers, would not start.
    os.environ.setdefault("SPARK_LOCAL_IP", LOOPBACK)


def local_session(
    name: str = "lanner",
    *,
    cores: int = 2,
    fast_start: bool = False,
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """Make a session in this process, or give back the one that is there."""
    prepare_environment()
    flags = FAST_START if fast_start else THROUGHPUT
    chosen = LOCAL_SETTINGS | {"spark.driver.extraJavaOptions": flags} | dict(settings or {})
    builder = SparkSession.builder.master(f"local[{cores}]").appName(name)
    for key, value in chosen.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def has_java() -> bool:
    """Whether there is a Java, in ``JAVA_HOME`` or on the path."""
    home = os.environ.get("JAVA_HOME")
    return (home is not None and (Path(home) / "bin" / "java").exists()) or shutil.which("java") is not None
