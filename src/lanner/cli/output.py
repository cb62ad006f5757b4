"""Printing: tables for people, JSON lines for programs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec
import typer

__all__ = ["print_json", "print_pairs", "print_table", "printable", "shown_body", "shown_time"]

SHOWN_BODY = 60
"""Bytes of a body that a table shows."""

_encoder = msgspec.json.Encoder()


def print_json(value: object) -> None:
    """Print one object on one line."""
    sys.stdout.write(_encoder.encode(value).decode() + "\n")
    sys.stdout.flush()


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, empty: str) -> None:
    """Print a table, or a word when there is nothing in it."""
    rows = list(rows)
    if not rows:
        typer.echo(empty)
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(_shown(cell) for cell in row))
    console = Console(width=None if sys.stdout.isatty() else 200, highlight=False, markup=False)
    console.print(table)


def print_pairs(pairs: Iterable[tuple[str, object]]) -> None:
    """Print names and values below each other."""
    pairs = list(pairs)
    width = max(len(name) for name, _ in pairs)
    for name, value in pairs:
        typer.echo(f"{name:<{width}}  {_shown(value)}")


def shown_time(seconds: float) -> str:
    """A time as people here read it."""
    return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M:%S") if seconds else ""


def shown_body(body: bytes) -> str:
    """The beginning of a body, as text if it is text."""
    text = printable(body[:SHOWN_BODY].decode("utf-8", "replace"))
    return text + ("..." if len(body) > SHOWN_BODY else "")


def printable(text: str) -> str:
    """Text that somebody else wrote, without what a terminal would obey."""
    return "".join(letter if letter.isprintable() else "." for letter in text)


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, int):
        return f"{value:,}"
    return str(value)
