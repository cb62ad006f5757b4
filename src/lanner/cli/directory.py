"""``lanner directory``: import, export and check where an enterprise is described."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec.structs import replace

from lanner.cli.command import EXIT_FAILED, Session, talks_to_manager
from lanner.cli.enterprise import (
    EnterpriseOption,
    enterprise_of,
    load_enterprise_file,
    read_from_ldap,
    send_to_manager,
)
from lanner.cli.output import print_json, print_pairs, printable, shown_time
from lanner.model.errors import InvalidPropertyError, LannerError

if TYPE_CHECKING:
    from lanner.directory.findings import Finding
    from lanner.model.enterprise import EnterpriseMap

__all__ = ["app"]

app = typer.Typer(help="Sites, links, managers and public queues.", no_args_is_help=True)

SHOWN_FINDINGS = 100
"""Findings that a person is shown; ``--json`` has all."""


@app.command()
@talks_to_manager
def show(
    session: Session,
    refresh: Annotated[
        bool, typer.Option("--refresh", help="Let the manager read its directory now.")
    ] = False,
) -> None:
    """Show what a running manager knows of its enterprise."""
    known = session.client.directory(refresh=refresh)
    if session.as_json:
        print_json(replace(known, text=""))
        return
    print_pairs(
        (
            ("enterprise", known.enterprise),
            ("directory", "online" if known.online else f"away: {known.problem}"),
            ("last read", shown_time(known.read_at)),
            ("this manager", known.manager or "not in the directory"),
            ("its sites", ", ".join(known.sites)),
            ("passes messages on", "yes" if known.routing else "no"),
            ("directory servers", ", ".join(known.directory_servers)),
            ("connected networks", ", ".join(known.connected_networks)),
            ("managers", known.machines),
            ("public queues", known.queues),
        )
    )


@app.command("import")
@talks_to_manager
def import_(
    session: Session,
    file: Annotated[Path, typer.Argument(help="A directory file.")],
    force: Annotated[bool, typer.Option("--force", help="Take it though the checks find errors.")] = False,
    enterprise: Annotated[
        Path | None,
        typer.Option("--enterprise", help="The file to replace; without it, a manager's directory."),
    ] = None,
) -> None:
    """Read a directory file, check it, and make it the directory of a manager or of another file."""
    from lanner.directory.check import check as checked
    from lanner.directory.export import dump

    loaded = load_enterprise_file(file)
    errors = [one for one in checked(*loaded) if one.severity == "error"]
    if errors and not force:
        _print_findings(errors)
        raise LannerError(
            f"{file} was not imported: the checks find errors in it",
            hint="correct them, or say --force to take it as it is",
        )
    data = dump(loaded.map).encode()
    if enterprise is None:
        send_to_manager(session, data)
    else:
        _replace(enterprise, data)
    if session.as_json:
        print_json(_counts(loaded.map))
    else:
        typer.echo(f"imported: {_in_words(loaded.map)}")


@app.command()
@talks_to_manager
def export(
    session: Session,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The file to write.")] = None,
    enterprise: EnterpriseOption = None,
) -> None:
    """Write an enterprise as a directory file, with all identifiers."""
    from lanner.directory.export import dump

    source = enterprise_of(session, enterprise)
    text = dump(source)
    if output is None:
        sys.stdout.write(text)
        return
    _replace(output, text.encode())
    if session.as_json:
        print_json(_counts(source))
    else:
        typer.echo(f"exported to {output}: {_in_words(source)}")


@app.command()
@talks_to_manager
def check(
    session: Session,
    source: Annotated[
        list[str], typer.Argument(help="A directory file, or: ldap URL.", metavar="FILE|ldap URL")
    ],
) -> None:
    """Report what is wrong with a directory, where, and what to do. Exits with 1 if there are errors."""
    findings = _checked(source)
    errors = sum(one.severity == "error" for one in findings)
    if session.as_json:
        for one in findings:
            print_json(one)
    elif findings:
        _print_findings(findings)
        typer.echo(f"errors: {errors:,}, warnings: {len(findings) - errors:,}")
    else:
        typer.echo("nothing is wrong")
    if errors:
        raise typer.Exit(EXIT_FAILED)


def _checked(source: list[str]) -> list[Finding]:
    from lanner.directory.base import InvalidDirectoryError
    from lanner.directory.check import check as checked
    from lanner.directory.findings import Finding, Kind, Severity

    where = source[1] if len(source) == 2 and source[0] == "ldap" else source[0]
    if len(source) > 2 or (len(source) == 2 and source[0] != "ldap"):
        raise InvalidPropertyError(f"one directory is checked at a time, not {len(source)}")
    if where.lower().startswith(("ldap:", "ldaps:")) or len(source) == 2:
        return checked(read_from_ldap(where))
    try:
        return checked(*load_enterprise_file(Path(where)))
    except InvalidDirectoryError as error:
        place, _, what = error.message.partition(": ")
        return [
            Finding(
                severity=Severity.ERROR,
                kind=Kind.UNREADABLE,
                place=place if what else where,
                what=what or error.message,
                fix=error.hint,
            )
        ]


def _print_findings(findings: list[Finding]) -> None:
    for one in findings[:SHOWN_FINDINGS]:
        typer.echo(printable(f"{one.severity}: {one.place}: {one.what}"))
        typer.echo(printable(f"    fix: {one.fix}"))
    if len(findings) > SHOWN_FINDINGS:
        typer.echo(f"and {len(findings) - SHOWN_FINDINGS:,} more: lanner directory check --json has all")


def _replace(path: Path, data: bytes) -> None:
    """Write a file as a whole: whoever reads it meanwhile sees the old one or the new one."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        with beside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise LannerError(f"{path} cannot be written: {error.strerror or error}") from None


def _counts(source: EnterpriseMap) -> dict[str, int]:
    return {
        "sites": len(source.sites),
        "links": len(source.links),
        "networks": len(source.networks),
        "managers": len(source.machines),
        "queues": len(source.queues),
    }


def _in_words(source: EnterpriseMap) -> str:
    return ", ".join(f"{count:,} {what}" for what, count in _counts(source).items())
