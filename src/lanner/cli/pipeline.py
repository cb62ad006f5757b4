"""``lanner pipeline``: jobs on Spark. pyspark is imported when one of them runs, and not before."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec
import typer

from lanner.cli.command import fail, failing_clearly
from lanner.cli.output import print_json, print_pairs, print_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lanner.pipeline.findings import Audit

__all__ = ["app"]

app = typer.Typer(
    help="Histories of a fleet as tables, judged and drawn (needs Spark).", no_args_is_help=True
)

DEFAULT_ROOT = "lanner-lake"

_To = Annotated[str, typer.Option("--to", help="The directory of the tables.")]
_Master = Annotated[str, typer.Option(help="Spark's master; this machine if it is left out.")]
_Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


class _Job(NamedTuple):
    spark: SparkSession
    say: Callable[[str], None]


@app.command()
def ingest(
    managers: Annotated[str, typer.Option(help="API addresses, with commas.")] = "",
    path: Annotated[str, typer.Option(help="Exported histories: a file, a directory or a pattern.")] = "",
    token_file: Annotated[str, typer.Option(help="A file with the token for the managers.")] = "",
    to: _To = DEFAULT_ROOT,
    master: _Master = "",
    as_json: _Json = False,
) -> None:
    """Take histories in: of managers what is new, or exported ones."""
    if bool(managers) == bool(path):
        fail("give either --managers or --path")
    with _running(master, as_json) as job:
        from lanner.pipeline import jobs

        if path:
            facts = jobs.ingest_files(job.spark, to, path, say=job.say)
        else:
            options = {"tokenFile": token_file} if token_file else {}
            facts = jobs.ingest_managers(job.spark, to, managers, options=options, say=job.say)
    _print({name: facts[name] for name in ("events", "faulty")}, as_json)


@app.command()
def refresh(to: _To = DEFAULT_ROOT, master: _Master = "", as_json: _Json = False) -> None:
    """Bring the tables of messages and hours up to date with what was taken in."""
    with _running(master, as_json) as job:
        from lanner.pipeline import jobs

        done = jobs.refresh(job.spark, to, say=job.say)
    _print(done, as_json)


@app.command()
def audit(
    grace: Annotated[float, typer.Option(help="Seconds that a message may be under way.")] = 300.0,
    until: Annotated[
        datetime | None, typer.Option(help="All histories are complete up to this time.")
    ] = None,
    to: _To = DEFAULT_ROOT,
    master: _Master = "",
    as_json: _Json = False,
) -> None:
    """Say whether every message was delivered exactly once and in order.

    Exits with 0 if that is proved, 3 if there are doubts, 4 if it is refuted.
    """
    with _running(master, as_json) as job:
        from lanner.pipeline import jobs

        end = until.timestamp() if until else None
        judged = jobs.run_audit(job.spark, to, grace=grace, until=end, say=job.say)
    if as_json:
        print_json(judged)
    else:
        _print_audit(judged)
    raise typer.Exit(judged.exit_code)


@app.command()
def routes(
    directory: Annotated[str, typer.Option(help="The file that describes the enterprise.")],
    path: Annotated[
        list[str] | None, typer.Option("--path", help="Show the way between two managers: FROM:TO.")
    ] = None,
    scenarios: Annotated[str, typer.Option(help="A file with changes to try.")] = "",
    to: _To = DEFAULT_ROOT,
    master: _Master = "",
    as_json: _Json = False,
) -> None:
    """Find every route of an enterprise, what its links carry, and what changes would do."""
    pairs = []
    for pair in path or ():
        one, colon, other = pair.partition(":")
        if not colon:
            fail(f"{pair} is no pair of managers: write FROM:TO")
        pairs.append((one, other))
    with _running(master, as_json) as job:
        from lanner.pipeline import jobs

        done = jobs.run_routes(job.spark, to, directory, pairs=pairs, scenarios=scenarios, say=job.say)
    _print(done, as_json)


@app.command()
def report(
    output: Annotated[str, typer.Argument(help="The HTML file.")] = "lanner-report.html",
    title: Annotated[str, typer.Option(help="What the page is called.")] = "Messages",
    to: _To = DEFAULT_ROOT,
    master: _Master = "",
    as_json: _Json = False,
) -> None:
    """Bring everything up to date and write one page with plots."""
    with _running(master, as_json) as job:
        from lanner.pipeline import jobs

        judged = jobs.write_report(job.spark, to, output, title=title, say=job.say)
    _print({"file": output, "verdict": judged.verdict.value}, as_json)


@contextmanager
def _running(master: str, as_json: bool) -> Iterator[_Job]:
    """A session, and a line on standard error that says what is being done."""
    with failing_clearly():
        try:
            import pyspark.sql

            from lanner.pipeline.command import make_session
        except ImportError as error:
            missing = error.name or "pyspark"
            fail(f"the pipeline needs {missing}: pip install 'lanner[spark]'")
        with _saying(as_json) as say:
            say("starting Spark")
            spark = make_session(master)
            try:
                yield _Job(spark, say)
            except pyspark.errors.PySparkException as error:
                fail(str(error).splitlines()[0])
            finally:
                spark.stop()


@contextmanager
def _saying(as_json: bool) -> Iterator[Callable[[str], None]]:
    start = time.monotonic()
    if as_json or not sys.stderr.isatty():
        yield (
            lambda text: (
                None if as_json else typer.echo(f"{time.monotonic() - start:6.1f} s  {text}", err=True)
            )
        )
        return
    from rich.console import Console

    with Console(stderr=True).status("") as status:
        yield lambda text: status.update(text)


def _print(done: Any, as_json: bool) -> None:
    if as_json:
        print_json(done)
        return
    print_pairs(
        [(name, value if isinstance(value, (str, int)) else _short(value)) for name, value in done.items()]
    )


def _short(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _print_audit(judged: Audit) -> None:
    print_pairs(
        [
            ("verdict", judged.verdict.value),
            ("messages", judged.messages),
            ("on their way", judged.waiting),
            ("to strangers", judged.unobserved),
            *judged.counts.items(),
        ]
    )
    if judged.findings:
        print_table(
            ("what", "is", "message", "sender", "destination", "detail"),
            [
                [
                    one[name] or ""
                    for name in ("kind", "severity", "message_id", "sender", "destination", "detail")
                ]
                for one in judged.findings[:50]
            ],
            empty="",
        )
