"""``lanner srmp``."""

from __future__ import annotations

from typing import Annotated

import typer

from lanner.cli import redirections
from lanner.cli.command import Session, fail, talks_to_manager
from lanner.cli.output import print_json
from lanner.cli.srmp_lint import lint

__all__ = ["app"]

app = typer.Typer(help="Messages over HTTP: captured requests, redirections, streams.", no_args_is_help=True)
app.command()(lint)
app.add_typer(redirections.app, name="redirect")


@app.command()
@talks_to_manager
def reset(
    session: Session,
    queue: Annotated[str, typer.Argument(help="The outgoing queue: DIRECT=HTTP://host/msmq/private$/name.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Begin a new stream with the messages that wait in an outgoing queue.

    For a receiver that has forgotten the stream, and refuses every message of it as out of order.

    WARNING: messages that had arrived while their receipts were lost are sent again in the new stream. The
    receiver knows them by their identifiers for half an hour; after that they arrive a second time.
    """
    if not yes:
        _confirm(session, queue)
    count = session.client.reset_stream(queue)
    if session.as_json:
        print_json({"queue": queue, "messages": count})
    elif count:
        typer.echo(f"a new stream begins with {count:,} messages")
    else:
        typer.echo("no message of a stream waits there; nothing was reset")


def _confirm(session: Session, queue: str) -> None:
    waiting = session.client.queue(queue).messages
    typer.echo(
        f"{waiting:,} messages wait in {queue}. "
        "Those that had arrived while their receipts were lost may arrive a second time.",
        err=True,
    )
    try:
        is_meant = typer.confirm("Begin a new stream?", err=True)
    except typer.Abort:
        is_meant = False  # nobody is there to ask
    if not is_meant:
        fail("nothing was reset (say --yes if it is meant)")
