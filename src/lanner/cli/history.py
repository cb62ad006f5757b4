"""``lanner history``."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import typer

from lanner.cli.command import Session, talks_to_manager
from lanner.cli.output import print_json, shown_time
from lanner.cli.progress import showing_progress
from lanner.model.errors import InvalidPropertyError
from lanner.model.history import HistoryRow

__all__ = ["app"]

app = typer.Typer(help="What happened to every message.", no_args_is_help=True)

POLL_SECONDS = 0.5
"""How often --follow looks for news."""

ROWS_PER_STEP = 1000
"""Rows between two steps of the progress: to show one costs as much as to write one."""


@app.command()
@talks_to_manager
def tail(
    session: Session,
    count: Annotated[int, typer.Option("--count", "-n", min=0, help="How many of the last rows.")] = 20,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as things happen.")] = False,
) -> None:
    """Print the last rows of the history."""
    status = session.client.history_status()
    following = max(status.first_lsn, status.last_lsn - count + 1)
    while True:
        for row in session.client.history(following):
            _print(session, row)
            following = row.lsn + 1
        if not follow:
            return
        time.sleep(POLL_SECONDS)


@app.command()
@talks_to_manager
def export(
    session: Session,
    file: Annotated[str, typer.Argument(help="Where to; - is standard output.")],
    first: Annotated[int, typer.Option(help="The first LSN.")] = 1,
    last: Annotated[int | None, typer.Option(help="The last LSN.")] = None,
    form: Annotated[Literal["jsonl", "parquet"], typer.Option("--format", help="What to write.")] = "jsonl",
) -> None:
    """Write a range of the history as JSON lines or Parquet."""
    if form == "parquet":
        count = _export_parquet(session, Path(file), first, last)
    else:
        count = _export_json_lines(session, file, first, last)
    if file != "-":
        typer.echo(f"wrote {count:,} rows to {file}")


def _export_json_lines(session: Session, file: str, first: int, last: int | None) -> int:
    count = 0
    try:
        with (
            nullcontext(sys.stdout) if file == "-" else Path(file).open("w") as out,
            _showing(session, file, "rows") as advance,
        ):
            for row in session.client.history(first, last):
                out.write(msgspec.json.encode(msgspec.structs.asdict(row)).decode() + "\n")
                count += 1
                if count % ROWS_PER_STEP == 0:
                    advance(ROWS_PER_STEP)
    except OSError as error:
        raise InvalidPropertyError(f"cannot write {file}: {error.strerror}") from error
    return count


def _export_parquet(session: Session, file: Path, first: int, last: int | None) -> int:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise InvalidPropertyError("Parquet needs pyarrow", hint="pip install 'lanner[arrow]'") from None
    pieces = []
    with _showing(session, str(file), "bytes") as advance:
        for piece in session.client.history_arrow(first, last):
            pieces.append(piece)
            advance(len(piece))
    data = b"".join(pieces)
    count = 0
    try:
        with (
            pyarrow.ipc.open_stream(data) as reader,
            pyarrow.parquet.ParquetWriter(file, reader.schema) as writer,
        ):
            for batch in reader:
                writer.write_batch(batch)
                count += batch.num_rows
    except OSError as error:
        raise InvalidPropertyError(f"cannot write {file}: {error.strerror or error}") from error
    return count


def _showing(session: Session, file: str, unit: str) -> AbstractContextManager[Callable[[int], None]]:
    if file == "-" and sys.stdout.isatty():  # the rows themselves are the progress
        return nullcontext(lambda _: None)
    return showing_progress(session, "reading the history", unit)


def _print(session: Session, row: HistoryRow) -> None:
    if session.as_json:
        print_json(msgspec.structs.asdict(row))
        return
    details = ", ".join(detail for detail in (row.label, row.reason, row.peer) if detail)
    typer.echo(
        f"{row.lsn:>8} {shown_time(row.time)} {row.event:<13} {row.queue} {row.message_id} {details}".rstrip()
    )
