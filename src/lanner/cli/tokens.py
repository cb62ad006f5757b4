"""``lanner token``."""

from __future__ import annotations

from typing import Annotated

import typer

from lanner.cli.command import Session, talks_to_manager
from lanner.cli.output import print_json, print_table

__all__ = ["app"]

app = typer.Typer(help="Who may use the API.", no_args_is_help=True)


@app.command()
@talks_to_manager
def add(
    session: Session,
    name: Annotated[str, typer.Argument(help="What to call it.")],
    right: Annotated[
        list[str], typer.Option(help="admin, send, receive or peek; several times for several.")
    ],
    queue: Annotated[
        list[str] | None, typer.Option(help=r"Queues it is for: .\private$\orders*, by default all.")
    ] = None,
) -> None:
    """Make a token. It is shown this once."""
    token = session.client.create_token(name, right, queue or ["*"])
    if session.as_json:
        print_json({"name": name, "token": token})
    else:
        typer.echo(token)


@app.command("list")
@talks_to_manager
def list_tokens(session: Session) -> None:
    """List the tokens, without the tokens."""
    tokens = session.client.tokens()
    if session.as_json:
        for token in tokens:
            print_json(token)
        return
    rows = [(token.name, ", ".join(token.rights), ", ".join(token.queues)) for token in tokens]
    print_table(("name", "rights", "queues"), rows, empty="no tokens")


@app.command()
@talks_to_manager
def remove(session: Session, name: Annotated[str, typer.Argument(help="Which one.")]) -> None:
    """Remove a token."""
    session.client.remove_token(name)
    typer.echo(f"removed {name}")
