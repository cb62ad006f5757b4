"""``lanner srmp lint``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lanner.cli.command import EXIT_FAILED, failing_clearly
from lanner.cli.input import read_input
from lanner.cli.output import print_json, print_table, printable

if TYPE_CHECKING:
    from lanner.protocols.srmp.wire import Examination

__all__ = ["lint"]


def lint(
    file: Annotated[str, typer.Argument(help="A captured request, MIME body or envelope; - reads a pipe.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what a captured request says, and which section each fault breaks.

    Ends with 1 if a receiver would refuse it. Needs no running manager.
    """
    with failing_clearly():
        capture = read_input(file)
        from lanner.protocols.srmp.wire import examine

        examination = examine(capture)
        if as_json:
            _print_as_json(examination)
        else:
            _print_for_people(examination, len(capture))
        if not examination.is_acceptable:
            raise typer.Exit(EXIT_FAILED)


SHOWN_ROWS = 500
"""Rows of a table: an ordinary request has some 30, and one with a million headers is no reading."""

_KINDS = {"request": "an HTTP request", "multipart": "a MIME body", "envelope": "an envelope"}


def _print_as_json(examination: Examination) -> None:
    print_json(
        {
            "kind": examination.kind,
            "acceptable": examination.is_acceptable,
            "fields": examination.fields,
            "faults": examination.faults,
        }
    )


def _print_for_people(examination: Examination, size: int) -> None:
    typer.echo(f"{_KINDS[examination.kind]} of {size:,} bytes")
    fields = [
        (printable(field.name), printable(field.value), printable(field.meaning))
        for field in examination.fields[:SHOWN_ROWS]
    ]
    print_table(("field", "value", "meaning"), fields, empty="it says nothing that can be read")
    _tell_rest(len(examination.fields), "fields")
    faults = [
        (
            "accepted" if fault.is_accepted else "refused",
            f"MC-MQSRM {fault.section}",
            printable(fault.element),
            printable(fault.message),
        )
        for fault in examination.faults[:SHOWN_ROWS]
    ]
    print_table(("fault", "section", "where", "what is wrong"), faults, empty="no faults")
    _tell_rest(len(examination.faults), "faults")
    if not examination.is_acceptable:
        typer.echo("a receiver refuses it")
    elif faults:
        typer.echo("a receiver takes it all the same")
    else:
        typer.echo("a receiver takes it")


def _tell_rest(count: int, what: str) -> None:
    if count > SHOWN_ROWS:
        typer.echo(f"and {count - SHOWN_ROWS:,} more {what}; --json prints them all")
