"""``lanner history``."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Literal, TextIO

import msgspec
import typer

from lanner.cli.command import Session, talks_to_manager
from lanner.cli.history_files import Columnar, appearing_whole, write_columns
from lanner.cli.output import print_json, shown_time
from lanner.cli.progress import showing_progress
from lanner.model.errors import InvalidPropertyError
from lanner.model.history import HistoryRow

__all__ = ["app"]

app = typer.Typer(help="What happened to every message.", no_args_is_help=True)

POLL_SECONDS = 0.5
"""How often --follow looks for news."""

_Form = Literal["jsonl", "parquet", "arrow"]

_SUFFIXES: dict[str, _Form] = {".parquet": "parquet", ".arrow": "arrow", ".feather": "arrow"}

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
    form: Annotated[
        _Form | None,
        typer.Option("--format", help="What to write; the name of the file tells it otherwise."),
    ] = None,
    bodies: Annotated[bool, typer.Option(help="With the bodies that the history has.")] = True,
) -> None:
    """Write a range of the history as JSON lines, Parquet or Arrow."""
    chosen = form or _SUFFIXES.get(Path(file).suffix, "jsonl")
    if chosen == "jsonl":
        with closing(session.client.history(first, last, bodies=bodies)) as rows:
            count = _write_json_lines(session, file, rows)
    elif file == "-":
        raise InvalidPropertyError(f"{chosen} goes to a file, not to standard output", hint="name one")
    else:
        count = _write_columns(session, Path(file), chosen, first, last, bodies)
    if file != "-":
        typer.echo(f"wrote {count:,} rows to {file}")


def _write_json_lines(session: Session, file: str, rows: Iterable[HistoryRow]) -> int:
    count = 0
    with _text_file(file) as out, _showing(session, file, "rows") as advance:
        for row in rows:
            out.write(msgspec.json.encode(msgspec.structs.asdict(row)).decode() + "\n")
            count += 1
            if count % ROWS_PER_STEP == 0:
                advance(ROWS_PER_STEP)
    return count


@contextmanager
def _text_file(file: str) -> Iterator[TextIO]:
    if file == "-":
        yield sys.stdout
        return
    with appearing_whole(Path(file)) as unfinished, unfinished.open("w") as out:
        yield out


def _write_columns(
    session: Session, file: Path, form: Columnar, first: int, last: int | None, bodies: bool
) -> int:
    status = session.client.status()
    with (
        closing(session.client.history_arrow(first, last, bodies=bodies)) as pieces,
        _showing(session, str(file), "bytes") as advance,
    ):
        told = _telling(pieces, advance)
        return write_columns(told, file, form, manager=status.name, manager_id=str(status.id))


def _telling(pieces: Iterable[bytes], advance: Callable[[int], None]) -> Iterator[bytes]:
    for piece in pieces:
        yield piece
        advance(len(piece))


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
