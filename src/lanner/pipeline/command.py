"""The jobs on a command line of their own, for ``spark-submit`` and schedulers."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any

import msgspec
from pyspark.sql import SparkSession

from lanner.model.errors import LannerError
from lanner.pipeline import jobs
from lanner.pipeline.audit import GRACE
from lanner.pipeline.session import local_session, prepare_environment

__all__ = ["main", "make_session"]

EXIT_FAILED = 1


def make_session(master: str = "", *, memory: str = "") -> SparkSession:
    """The session of ``spark-submit`` if that runs us, one on a master, or one in this process."""
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        spark = SparkSession.builder.appName("lanner").getOrCreate()
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        return spark
    settings = {"spark.driver.memory": memory} if memory else {}
    if not master or master.startswith("local"):
        cores = os.cpu_count() or 1
        inside = master[6:-1] if master.startswith("local[") else ""
        spark = local_session(cores=int(inside) if inside.isdigit() else cores, settings=settings)
    else:
        prepare_environment()
        builder = SparkSession.builder.master(master).appName("lanner").config("spark.ui.enabled", "false")
        for key, value in {"spark.sql.session.timeZone": "UTC", **settings}.items():
            builder = builder.config(key, value)
        spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one job; says its outcome as JSON, and gives the exit code."""
    given = _parser().parse_args(arguments)
    try:
        spark = make_session(given.master)
        outcome, code = _run(spark, given)
    except LannerError as error:
        print(f"lanner: {error}", file=sys.stderr)  # noqa: T201 - this is a command
        return EXIT_FAILED
    print(msgspec.json.encode(outcome).decode())  # noqa: T201
    return code


def _run(spark: SparkSession, given: argparse.Namespace) -> tuple[Any, int]:
    if given.job == "ingest":
        if given.path:
            return jobs.ingest_files(spark, given.to, given.path, say=_say), 0
        options = {"tokenFile": given.token_file} if given.token_file else {}
        return jobs.ingest_managers(spark, given.to, given.managers, options=options, say=_say), 0
    if given.job == "refresh":
        return jobs.refresh(spark, given.to, say=_say), 0
    if given.job == "audit":
        judged = jobs.run_audit(spark, given.to, grace=given.grace, until=given.until, say=_say)
        return judged, judged.exit_code
    if given.job == "routes":
        return jobs.run_routes(spark, given.to, given.directory, scenarios=given.scenarios, say=_say), 0
    judged = jobs.write_report(spark, given.to, given.output, title=given.title, say=_say)
    return {"file": given.output, "verdict": judged.verdict}, 0


def _say(text: str) -> None:
    print(text, file=sys.stderr)  # noqa: T201


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="lanner.pipeline.jobs", description="The jobs of the data pipeline."
    )
    commands = parser.add_subparsers(dest="job", required=True)
    added = {
        name: commands.add_parser(name, help=words)
        for name, words in {
            "ingest": "take histories into bronze",
            "refresh": "bring silver and gold up to date",
            "audit": "say whether everything was delivered exactly once and in order",
            "routes": "find every route of an enterprise",
            "report": "write a page with the findings",
        }.items()
    }
    for one in added.values():
        one.add_argument("--to", required=True, help="the directory of the tables")
        one.add_argument("--master", default="", help="Spark's master; this machine if it is left out")
    source = added["ingest"].add_mutually_exclusive_group(required=True)
    source.add_argument("--managers", default="", help="API addresses, with commas")
    source.add_argument("--path", default="", help="exported histories")
    added["ingest"].add_argument("--token-file", default="", help="a file with the token for the managers")
    added["audit"].add_argument(
        "--grace", type=float, default=GRACE, help="seconds that a message may be under way"
    )
    added["audit"].add_argument("--until", type=float, help="all histories are complete up to this time")
    added["routes"].add_argument("--directory", required=True, help="the file that describes the enterprise")
    added["routes"].add_argument("--scenarios", default="", help="a file with changes to try")
    added["report"].add_argument("--output", required=True, help="the HTML file")
    added["report"].add_argument("--title", default="Messages", help="what the page is called")
    return parser
