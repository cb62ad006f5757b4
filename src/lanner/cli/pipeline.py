"""``lanner pipeline``: jobs on Spark. pyspark is imported when one of them runs, and not before."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec
import typer

from lanner.cli.command import fail, failing_clearly
from lanner.cli.output import print_json, print_pairs, print_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lanner.pipeline.findings import Audit
    from lanner.pipeline.settings import JobSettings, PipelineSettings

__all__ = ["app"]

app = typer.Typer(
    help="Histories of a fleet as tables, judged and drawn (needs Spark). "
    "Options that are left out come from [pipeline] of lanner.toml.",
    no_args_is_help=True,
)

_To = Annotated[str | None, typer.Option("--to", help="The directory of the tables.")]
_Master = Annotated[str | None, typer.Option(help="Spark's master; this machine if none is set.")]
_Grace = Annotated[float | None, typer.Option(help="Seconds that a message may be under way.")]
_Config = Annotated[
    Path | None, typer.Option("--config", help="The settings' file; lanner.toml if it is there.")
]
_Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


class _Job(NamedTuple):
    spark: SparkSession
    lake: str
    say: Callable[[str], None]


@app.command()
def ingest(
    managers: Annotated[str | None, typer.Option(help="API addresses, with commas.")] = None,
    path: Annotated[str, typer.Option(help="Exported histories: a file, a directory or a pattern.")] = "",
    token_file: Annotated[str | None, typer.Option(help="A file with the token for the managers.")] = None,
    to: _To = None,
    master: _Master = None,
    config: _Config = None,
    as_json: _Json = False,
) -> None:
    """Take histories in: of managers what is new, or exported ones."""
    if managers and path:
        fail("give either --managers or --path")
    with failing_clearly():
        addresses = [one for one in (managers or "").split(",") if one] or None
        known = _settings(config, to, master, managers=addresses, token_file=token_file).pipeline
        if not path and not known.managers:
            fail("there is nothing to take in: give --managers or --path, or set pipeline.managers")
        with _running(known, as_json) as job:
            from lanner.pipeline import jobs

            if path:
                facts = jobs.ingest_files(job.spark, job.lake, path, say=job.say)
            else:
                facts = jobs.ingest_managers(
                    job.spark,
                    job.lake,
                    ",".join(known.managers),
                    options=known.source_options(),
                    say=job.say,
                )
        _print({name: facts[name] for name in ("events", "faulty")}, as_json)


@app.command()
def refresh(to: _To = None, master: _Master = None, config: _Config = None, as_json: _Json = False) -> None:
    """Bring the tables of messages and hours up to date with what was taken in."""
    with failing_clearly():
        with _running(_settings(config, to, master).pipeline, as_json) as job:
            from lanner.pipeline import jobs

            done = jobs.refresh(job.spark, job.lake, say=job.say)
        _print(done, as_json)


@app.command()
def audit(
    grace: _Grace = None,
    until: Annotated[
        datetime | None, typer.Option(help="All histories are complete up to this time.")
    ] = None,
    to: _To = None,
    master: _Master = None,
    config: _Config = None,
    as_json: _Json = False,
) -> None:
    """Say whether every message was delivered exactly once and in order.

    Exits with 0 if that is proved, 3 if there are doubts, 4 if it is refuted.
    """
    with failing_clearly():
        known = _settings(config, to, master, grace=grace).pipeline
        with _running(known, as_json) as job:
            from lanner.pipeline import jobs

            end = until.timestamp() if until else None
            judged = jobs.run_audit(job.spark, job.lake, grace=known.grace, until=end, say=job.say)
        if as_json:
            print_json(judged)
        else:
            _print_audit(judged)
        raise typer.Exit(judged.exit_code)


@app.command()
def routes(
    directory: Annotated[
        str | None,
        typer.Option(help="The file that describes the enterprise; without one, [directory] or [ldap]."),
    ] = None,
    path: Annotated[
        list[str] | None, typer.Option("--path", help="Show the way between two managers: FROM:TO.")
    ] = None,
    scenarios: Annotated[str, typer.Option(help="A file with changes to try.")] = "",
    to: _To = None,
    master: _Master = None,
    config: _Config = None,
    as_json: _Json = False,
) -> None:
    """Find every route of an enterprise, what its links carry, and what changes would do."""
    pairs = []
    for pair in path or ():
        one, colon, other = pair.partition(":")
        if not colon:
            fail(f"{pair} is no pair of managers: write FROM:TO")
        pairs.append((one, other))
    with failing_clearly():
        from lanner.pipeline.enterprise import read_enterprise

        settings = _settings(config, to, master, directory=directory)
        enterprise = read_enterprise(settings)
        with _running(settings.pipeline, as_json) as job:
            from lanner.pipeline import jobs

            done = jobs.run_routes(
                job.spark, job.lake, enterprise, pairs=pairs, scenarios=scenarios, say=job.say
            )
        _print(done, as_json)


@app.command()
def report(
    output: Annotated[str, typer.Argument(help="The HTML file.")] = "lanner-report.html",
    title: Annotated[str, typer.Option(help="What the page is called.")] = "Messages",
    grace: _Grace = None,
    to: _To = None,
    master: _Master = None,
    config: _Config = None,
    as_json: _Json = False,
) -> None:
    """Bring everything up to date and write one page with plots."""
    with failing_clearly():
        known = _settings(config, to, master, grace=grace).pipeline
        with _running(known, as_json) as job:
            from lanner.pipeline import jobs

            judged = jobs.write_report(
                job.spark, job.lake, output, title=title, grace=known.grace, say=job.say
            )
        _print({"file": output, "verdict": judged.verdict.value}, as_json)


def _settings(config: Path | None, to: str | None, master: str | None, **options: object) -> JobSettings:
    """The settings, with the options that were given in their places."""
    from lanner.pipeline.settings import load_settings

    given = {"lake": to, "master": master, **options}
    return load_settings(file=config, flags={f"pipeline.{name}": value for name, value in given.items()})


@contextmanager
def _running(known: PipelineSettings, as_json: bool) -> Iterator[_Job]:
    """A session, and a line on standard error that says what is being done."""
    try:
        import pyspark.sql  # noqa: F401 - to see whether it is there

        from lanner.pipeline.failures import SPARK_FAILURES, one_line
        from lanner.pipeline.start import make_session
    except ImportError as error:
        missing = error.name or "pyspark"
        fail(f"the pipeline needs {missing}: pip install 'lanner[spark]'")
    with _saying(as_json) as say:
        say("starting Spark")
        try:
            spark = make_session(known.master, known.spark)
            try:
                yield _Job(spark, known.lake, say)
            finally:
                spark.stop()
        except SPARK_FAILURES as error:
            fail(one_line(error))


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
