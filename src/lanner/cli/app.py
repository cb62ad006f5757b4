"""All commands together: one module per noun."""

from __future__ import annotations

from typing import Annotated

import typer

from lanner import __version__
from lanner.cli import (
    config,
    dead_letters,
    directory,
    discover,
    history,
    maintenance,
    messages,
    mgmt,
    pipeline,
    queues,
    route,
    serve,
    srmp,
    tokens,
    why,
)

__all__ = ["app"]

app = typer.Typer(
    help="A queue manager that speaks the published MSMQ protocols.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

app.command("serve")(serve.serve)
app.add_typer(config.app, name="config")
app.add_typer(queues.app, name="queue")
app.command("send")(messages.send)
app.command("receive")(messages.receive)
app.command("peek")(messages.peek)
app.command("move")(messages.move)
app.add_typer(dead_letters.app, name="deadletter")
app.command("why")(why.why)
app.add_typer(history.app, name="history")
app.add_typer(tokens.app, name="token")
app.add_typer(srmp.app, name="srmp")
app.add_typer(directory.app, name="directory")
app.add_typer(route.app, name="route")
app.add_typer(pipeline.app, name="pipeline")
app.command("discover")(discover.discover)
app.add_typer(mgmt.app, name="mgmt")
app.command("status")(maintenance.status)
app.command("backup")(maintenance.backup)
app.command("compact")(maintenance.compact)
app.command("offline")(maintenance.offline)
app.command("online")(maintenance.online)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"lanner {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[  # its callback does the work
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    pass
