"""The session that a job runs in: that of ``spark-submit``, one on a master, or one in this process."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from lanner.model.errors import InvalidPropertyError, LannerError
from lanner.pipeline.session import LOCAL_SETTINGS, local_session, prepare_environment

__all__ = ["check_master", "make_session", "under_spark_submit"]

TIME_ZONE = {"spark.sql.session.timeZone": "UTC"}

LOG_LEVEL = "spark.log.level"
QUIET = {LOG_LEVEL: "OFF"}
"""What is wrong comes as an exception, and is told in one line; Spark's log would add a page to it."""

CLUSTER_SETTINGS = {
    name: value
    for name, value in LOCAL_SETTINGS.items()
    # These suit one small machine; a cluster has its own.
    if name not in ("spark.ui.enabled", "spark.sql.shuffle.partitions", "spark.default.parallelism")
}

STANDARD_ERROR = 2

LOCAL_IP = "SPARK_LOCAL_IP"
_LOCAL = re.compile(r"local(\[.+\])?")
_REMOTE = re.compile(r"local-cluster\[|spark://.|yarn$|k8s://.")
_LOOPBACK = ("spark://127.", "spark://localhost", "spark://[::1]", "local-cluster")


def under_spark_submit() -> bool:
    """Whether ``spark-submit`` has started this process, and Java before it."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def check_master(asked: str) -> None:
    """Raise if a master was asked for that nobody would listen to."""
    if asked and under_spark_submit():
        raise InvalidPropertyError(
            "spark-submit has chosen the master already", hint=f"write spark-submit --master {asked} ..."
        )


def make_session(master: str = "", settings: Mapping[str, str] | None = None) -> SparkSession:
    """Make one; ``settings`` are Spark's own, and win over those that all our sessions have."""
    chosen = QUIET | dict(settings or {})
    with _java_unheard() if LOG_LEVEL not in (settings or {}) else nullcontext():
        try:
            return _made(master, chosen)
        except PySparkRuntimeError as error:
            if error.getCondition() != "JAVA_GATEWAY_EXITED":
                raise
            raise LannerError(
                "Java could not be started for Spark",
                hint=f'look at pipeline.spark; "{LOG_LEVEL}" = "ERROR" there shows what Java says',
            ) from None


@contextmanager
def _java_unheard() -> Iterator[None]:
    """Java inherits a standard error that leads nowhere: it would begin with six lines about itself."""
    sys.stderr.flush()
    kept, nowhere = os.dup(STANDARD_ERROR), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, STANDARD_ERROR)
    try:
        yield
    finally:
        os.dup2(kept, STANDARD_ERROR)
        os.close(kept)
        os.close(nowhere)


def _made(master: str, chosen: dict[str, str]) -> SparkSession:
    # What a batch of a stream raises is logged with its stack, and then raised by the query as well.
    logging.getLogger("py4j.clientserver").setLevel(logging.CRITICAL)
    if under_spark_submit():
        return _submitted(chosen)
    if not master or _LOCAL.fullmatch(master):
        return local_session(settings={"spark.master": master or "local[*]", **chosen})
    if not _REMOTE.match(master):
        raise InvalidPropertyError(
            f"{master!r} is no master of Spark", hint="write local[4], spark://host:7077, yarn or k8s://..."
        )
    try:
        return _on(master, chosen)
    except Py4JError:  # which says that the session is stopped, and not why
        raise LannerError(
            f"Spark could not be started on {master}",
            hint='see that it runs; "spark.log.level" = "ERROR" in pipeline.spark says more',
        ) from None


def _submitted(settings: dict[str, str]) -> SparkSession:
    """What the command line of ``spark-submit`` says wins over ``lanner.toml``."""
    SparkContext._ensure_initialized()  # or the next line knows nothing of it
    given = SparkConf()
    builder = SparkSession.builder.appName("lanner")
    for name, value in (CLUSTER_SETTINGS | settings).items():
        if not given.contains(name):
            builder = builder.config(name, value)
    for name, value in TIME_ZONE.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _on(master: str, settings: dict[str, str]) -> SparkSession:
    own_address = LOCAL_IP in os.environ
    prepare_environment()
    if not own_address and not master.startswith(_LOOPBACK):
        del os.environ[LOCAL_IP]  # loopback is where no worker of another machine finds us
    builder = SparkSession.builder.master(master).appName("lanner").config("spark.ui.enabled", "false")
    for name, value in (CLUSTER_SETTINGS | settings | TIME_ZONE).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
