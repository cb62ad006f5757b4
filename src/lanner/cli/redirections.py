"""``lanner srmp redirect``."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
import typer

from lanner.cli.command import Session, talks_to_manager
from lanner.cli.input import read_input
from lanner.cli.output import print_json, print_table
from lanner.model.errors import InvalidPropertyError
from lanner.schema.srmp import Kind, RedirectionsAnswer, RedirectionsRequest

__all__ = ["app"]

app = typer.Typer(
    help="Which URL is meant when another is said. Changes count from the next message on.",
    no_args_is_help=True,
)

From = Annotated[
    str, typer.Argument(metavar="FROM", help="A URL; an asterisk at its end stands for whatever follows.")
]


@app.command("list")
@talks_to_manager
def list_redirections(session: Session) -> None:
    """List what is redirected. The first of a kind that matches counts."""
    _print(session, session.client.redirections())


@app.command()
@talks_to_manager
def add(
    session: Session,
    kind: Annotated[
        Literal["inbound", "outbound", "receipts", "exception"],
        typer.Argument(
            help="inbound: messages that come for FROM go into the queue TO. "
            "outbound: destinations FROM are reached through the host of TO. "
            "receipts: receipts for streams to FROM are to be sent to TO. "
            "exception: destinations FROM are reached directly all the same."
        ),
    ],
    from_: From,
    to: Annotated[str, typer.Argument(metavar="TO", help="A URL; an exception has none.")] = "",
    first: Annotated[bool, typer.Option("--first", help="Before the others, not behind them.")] = False,
) -> None:
    """Redirect from one URL to another. One with the same FROM is replaced."""
    _print(session, session.client.add_redirection(kind, from_, to, first=first))


@app.command("set")
@talks_to_manager
def set_default(
    session: Session,
    kind: Annotated[Literal["default-receipts"], typer.Argument(help="What to set.")],
    url: Annotated[str, typer.Argument(help="Where receipts are to be sent, if nothing else matches.")],
) -> None:
    """Set where receipts are to be sent by default, instead of to this manager's own URL."""
    _print(session, session.client.add_redirection(kind, to=url))


@app.command()
@talks_to_manager
def remove(
    session: Session,
    kind: Annotated[Kind, typer.Argument(help="What kind it is of.")],
    from_: Annotated[str, typer.Argument(metavar="FROM", help="As it is listed.")] = "",
) -> None:
    """Remove a redirection."""
    _print(session, session.client.remove_redirection(kind, from_))


@app.command()
@talks_to_manager
def replace(
    session: Session,
    file: Annotated[str, typer.Argument(help="What `list --json` has printed; - reads a pipe.")],
) -> None:
    """Put others in the place of all redirections."""
    try:
        wanted = msgspec.json.decode(read_input(file), type=RedirectionsRequest)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InvalidPropertyError(f"{file}: {error}") from error
    _print(session, session.client.replace_redirections(wanted))


def _print(session: Session, redirections: RedirectionsAnswer) -> None:
    if session.as_json:
        print_json(redirections)
        return
    rows = [
        (kind, entry.from_, entry.to)
        for kind, entries in (
            ("inbound", redirections.inbound),
            ("outbound", redirections.outbound),
            ("receipts", redirections.receipts),
        )
        for entry in entries
    ]
    rows.extend(("exception", pattern, "") for pattern in redirections.outbound_exceptions)
    if redirections.default_receipts:
        rows.append(("default-receipts", "", redirections.default_receipts))
    print_table(("kind", "from", "to"), rows, empty="nothing is redirected")
