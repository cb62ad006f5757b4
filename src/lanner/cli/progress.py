"""Telling a person who waits that something happens, on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lanner.cli.command import Session

__all__ = ["showing_progress"]


@contextmanager
def showing_progress(session: Session, what: str, unit: str = "") -> Iterator[Callable[[int], None]]:
    """Show a spinner, the time and a count of ``unit``, if a person is there to see it.

    Gives what is to be called with how much more is done.
    """
    if session.as_json or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = [SpinnerColumn(), TextColumn(what)]
    if unit:
        columns.append(TextColumn("{task.completed:,} " + unit))
    # The output may be going to standard output meanwhile: it is none of the display's business.
    with Progress(
        *columns,
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    ) as progress:
        task = progress.add_task(what, total=None)
        yield lambda count: progress.advance(task, count)
