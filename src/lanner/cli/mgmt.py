"""``lanner mgmt``: manage any MSMQ server by its own management protocol (MS-MQMR).

``lanner mgmt HOST get machine`` names the server before the command; ``lanner mgmt user`` is about the users
of a manager here. What speaks the protocol is imported by the commands that need it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from lanner.cli import mgmt_users
from lanner.cli.mgmt_server import Server, talks_to_server
from lanner.cli.output import print_json

if TYPE_CHECKING:
    from lanner.protocols.management.client import ManagementClient

__all__ = ["app"]


class _HostGroup(TyperGroup):
    """Takes the host from before the command. A host that is called as a command goes by its full name."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            ctx.obj = args[0]
            args = args[1:] or ["--help"]
        return super().parse_args(ctx, args)

    def format_usage(self, ctx: Any, formatter: Any) -> None:
        formatter.write_usage(ctx.command_path, "HOST get|action|watch ...  or  user ...")


app = typer.Typer(
    help="Watch and steer any MSMQ server: lanner mgmt HOST get machine.",
    no_args_is_help=True,
    cls=_HostGroup,
)
get_app = typer.Typer(help="Get properties of the machine or of one of its queues.", no_args_is_help=True)
action_app = typer.Typer(help="Let the machine or one of its queues do something.", no_args_is_help=True)
app.add_typer(get_app, name="get")
app.add_typer(action_app, name="action")
app.add_typer(mgmt_users.app, name="user")

_Properties = Annotated[
    list[str] | None, typer.Argument(metavar="PROPERTY", help="message-count, state, ...; else all.")
]
_Queue = Annotated[
    str, typer.Argument(metavar="FORMAT-NAME", help=r"DIRECT=OS:host\private$\orders, or .\private$\orders.")
]


@get_app.command("machine")
@talks_to_server
def get_machine(server: Server, properties: _Properties = None) -> None:
    """Get properties of the machine."""
    from lanner.cli.mgmt_output import print_values

    async def work(client: ManagementClient) -> None:
        print_values(await client.get_machine(*properties or ()), as_json=server.as_json)

    server.run(work)


@get_app.command("queue")
@talks_to_server
def get_queue(server: Server, queue: _Queue, properties: _Properties = None) -> None:
    """Get properties of a queue. Of all of them, those that do not apply to it are left out."""
    from lanner.cli.mgmt_output import print_values

    async def work(client: ManagementClient) -> None:
        values = await client.get_queue(queue, *properties or ())
        print_values(values, as_json=server.as_json, leave_out=not properties)

    server.run(work)


@action_app.command("machine")
@talks_to_server
def act_on_machine(
    server: Server, name: Annotated[str, typer.Argument(help="connect, disconnect or tidy.")]
) -> None:
    """Connect the machine to the network, disconnect it, or give disk space back that is not needed.

    WARNING: a server that follows MS-MQMR 3.1.4.2 to the letter purges every queue when it is told to tidy.
    This manager compacts its store, as the same section's table says.
    """
    _act(server, name, None)


@action_app.command("queue")
@talks_to_server
def act_on_queue(
    server: Server,
    queue: _Queue,
    name: Annotated[str, typer.Argument(help="pause, resume or eod_resend.")],
) -> None:
    """Pause an outgoing queue, resume it, or send again what of its stream waits for an acknowledgment."""
    _act(server, name, queue)


def _act(server: Server, name: str, queue: str | None) -> None:
    async def work(client: ManagementClient) -> None:
        await client.act(name, queue)
        if server.as_json:
            print_json({"action": name.upper(), "queue": queue})
        else:
            typer.echo(f"{name.upper()} of {queue or server.host} is done")

    server.run(work)


@app.command()
@talks_to_server
def watch(
    server: Server,
    interval: Annotated[float, typer.Option(min=0.1, max=3600, help="Seconds between two looks.")] = 2.0,
    rounds: Annotated[int, typer.Option(min=0, help="How often to look; 0 goes on until Ctrl-C.")] = 0,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Queues to show, the fullest first.")] = 40,
) -> None:
    """Watch the queues of a machine in a table that keeps itself up to date."""
    from lanner.cli.mgmt_watch import watch_queues

    async def work(client: ManagementClient) -> None:
        await watch_queues(
            client, server.host, interval=interval, rounds=rounds, limit=limit, as_json=server.as_json
        )

    server.run(work)
