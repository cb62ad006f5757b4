"""The jobs on a command line of their own, for ``spark-submit`` and schedulers."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

import msgspec
from pyspark.sql import SparkSession

from lanner.model.errors import InvalidPropertyError, LannerError
from lanner.pipeline import jobs
from lanner.pipeline.enterprise import read_enterprise
from lanner.pipeline.failures import SPARK_FAILURES, one_line
from lanner.pipeline.java_output import JavaErrors
from lanner.pipeline.settings import JobSettings, load_settings
from lanner.pipeline.start import check_master, make_session, under_spark_submit

__all__ = ["main"]

EXIT_FAILED = 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one job; says its outcome as JSON, and gives the exit code."""
    if under_spark_submit():
        with redirect_stderr(JavaErrors()):
            return _main(arguments)
    return _main(arguments)


def _main(arguments: Sequence[str] | None) -> int:
    given = _parser().parse_args(arguments)
    try:
        check_master(given.master or "")
        settings = _settings(given)
        # What needs no Spark fails before it is started.
        enterprise = read_enterprise(settings) if given.job == "routes" else None
        spark = make_session(settings.pipeline.master, settings.pipeline.spark)
        if enterprise is not None:
            done = jobs.run_routes(
                spark, settings.pipeline.lake, enterprise, scenarios=given.scenarios, say=_say
            )
            outcome, code = done, 0
        else:
            outcome, code = _run(spark, settings, given)
    except LannerError as error:
        return _failed(str(error))
    except SPARK_FAILURES as error:
        return _failed(one_line(error))
    print(msgspec.json.encode(outcome).decode())  # noqa: T201 - this is a command
    return code


def _settings(given: argparse.Namespace) -> JobSettings:
    """The settings, with the options that were given in their places."""
    options = vars(given)
    flags = {
        "pipeline.lake": given.to,
        "pipeline.master": given.master,
        "pipeline.managers": [one for one in (options.get("managers") or "").split(",") if one] or None,
        "pipeline.token_file": options.get("token_file"),
        "pipeline.directory": options.get("directory"),
        "pipeline.grace": options.get("grace"),
    }
    settings = load_settings(file=given.config, flags=flags)
    if given.job == "ingest" and not given.path and not settings.pipeline.managers:
        raise InvalidPropertyError(
            "there is nothing to take in", hint="give --managers or --path, or set pipeline.managers"
        )
    return settings


def _run(spark: SparkSession, settings: JobSettings, given: argparse.Namespace) -> tuple[Any, int]:
    known = settings.pipeline
    if given.job == "ingest":
        if given.path:
            return jobs.ingest_files(spark, known.lake, given.path, say=_say), 0
        return jobs.ingest_managers(
            spark, known.lake, ",".join(known.managers), options=known.source_options(), say=_say
        ), 0
    if given.job == "refresh":
        return jobs.refresh(spark, known.lake, say=_say), 0
    if given.job == "audit":
        judged = jobs.run_audit(spark, known.lake, grace=known.grace, until=given.until, say=_say)
        return judged, judged.exit_code
    judged = jobs.write_report(
        spark, known.lake, given.output, title=given.title, grace=known.grace, say=_say
    )
    return {"file": given.output, "verdict": judged.verdict}, 0


def _say(text: str) -> None:
    print(text, file=sys.stderr)  # noqa: T201


def _failed(text: str) -> int:
    _say(f"lanner: {' '.join(text.split())}")
    return EXIT_FAILED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="lanner.pipeline.jobs",
        description="The jobs of the data pipeline. Options left out come from [pipeline] of lanner.toml.",
    )
    parser.add_argument(
        "--where",
        action="version",
        version=str(Path(__file__).with_name("submit.py")),
        help="say which file spark-submit is to run",
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
        one.add_argument("--to", help="the directory of the tables")
        one.add_argument("--master", help="Spark's master; this machine if none is set")
        one.add_argument("--config", type=Path, help="the settings' file; lanner.toml if it is there")
    source = added["ingest"].add_mutually_exclusive_group()
    source.add_argument("--managers", help="API addresses, with commas")
    source.add_argument("--path", default="", help="exported histories")
    added["ingest"].add_argument("--token-file", help="a file with the token for the managers")
    for name in ("audit", "report"):
        added[name].add_argument("--grace", type=float, help="seconds that a message may be under way")
    added["audit"].add_argument("--until", type=float, help="all histories are complete up to this time")
    added["routes"].add_argument("--directory", help="the file that describes the enterprise")
    added["routes"].add_argument("--scenarios", default="", help="a file with changes to try")
    added["report"].add_argument("--output", required=True, help="the HTML file")
    added["report"].add_argument("--title", default="Messages", help="what the page is called")
    return parser
