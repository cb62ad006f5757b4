"""``lanner status``, ``backup``, ``compact``, ``offline`` and ``online``."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from lanner.cli.command import Session, talks_to_manager
from lanner.cli.output import print_json, print_pairs
from lanner.cli.progress import showing_progress

__all__ = ["backup", "compact", "offline", "online", "status"]


@talks_to_manager
def status(session: Session) -> None:
    """Tell how the manager is."""
    answer = session.client.status()
    if session.as_json:
        print_json(answer)
        return
    print_pairs(
        [
            ("manager", answer.name),
            ("identifier", answer.id),
            ("version", answer.version),
            ("online", "yes" if answer.online else "no"),
            ("queues", answer.queues),
            ("messages", answer.messages),
            ("bytes", f"{answer.bytes:,} of {answer.quota:,} KB"),
            ("history", f"up to LSN {answer.last_lsn:,}"),
        ]
    )


@talks_to_manager
def backup(
    session: Session,
    name: Annotated[str | None, typer.Argument(help="The copy's file name.")] = None,
) -> None:
    """Copy the store, while it is in use, into the data directory's backups."""
    with showing_progress(session, "copying the store"):
        answer = session.client.backup(name or datetime.now(UTC).strftime("lanner-%Y%m%dT%H%M%SZ.db"))
    if session.as_json:
        print_json(answer)
    else:
        typer.echo(f"wrote {answer.bytes:,} bytes to {answer.name} in the data directory")


@talks_to_manager
def compact(session: Session) -> None:
    """Give unused space of the store back to the file system."""
    with showing_progress(session, "compacting the store"):
        answer = session.client.compact()
    if session.as_json:
        print_json(answer)
    else:
        typer.echo(f"the store is {answer.freed_bytes:,} bytes smaller")


@talks_to_manager
def offline(session: Session) -> None:
    """Exchange nothing with other machines."""
    session.client.take_offline()
    typer.echo("offline")


@talks_to_manager
def online(session: Session) -> None:
    """Exchange messages with other machines again."""
    session.client.bring_online()
    typer.echo("online")
