"""``lanner queue``."""

from __future__ import annotations

import functools
import inspect
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from lanner.cli.command import Session, talks_to_manager
from lanner.cli.output import print_json, print_pairs, print_table, printable, shown_time
from lanner.cli.transfers import print_transfers, transfer_pairs
from lanner.model.errors import InvalidPropertyError
from lanner.model.message import INFINITE
from lanner.model.queue import QueueKind
from lanner.schema.queues import CreateQueueRequest, QueueOut

__all__ = ["app"]

app = typer.Typer(help="Create, list, show, change and delete queues.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help=r"The queue: .\private$\orders, or a format name.")]

Journal = Annotated[
    bool | None, typer.Option("--journal/--no-journal", help="Keep received messages in the journal.")
]
Authenticated = Annotated[
    bool | None,
    typer.Option("--authenticated/--no-authenticated", help="Take authenticated messages alone."),
]
Label = Annotated[str | None, typer.Option(help="A label.")]
Quota = Annotated[int | None, typer.Option(help="Kilobytes that the queue may hold.")]
JournalQuota = Annotated[int | None, typer.Option(help="Kilobytes that its journal may hold.")]
Multicast = Annotated[str | None, typer.Option(help="A multicast address to listen to: 234.1.1.1:8001.")]
MaxAborts = Annotated[int | None, typer.Option(help="Aborted receives until a message moves to ;poison.")]
BasePriority = Annotated[int | None, typer.Option(help="The queue's priority among others.")]
Privacy = Annotated[str | None, typer.Option(help="none, optional or body.")]
TypeId = Annotated[str | None, typer.Option(help="A GUID that applications agree on.")]
Security = Annotated[str | None, typer.Option(help="Who may do what, as SDDL.")]


def _given(
    journal: Journal = None,
    authenticated: Authenticated = None,
    label: Label = None,
    quota: Quota = None,
    journal_quota: JournalQuota = None,
    multicast: Multicast = None,
    max_aborts: MaxAborts = None,
    base_priority: BasePriority = None,
    privacy: Privacy = None,
    type_id: TypeId = None,
    security: Security = None,
) -> dict[str, Any]:
    """The properties that options give, by their names in a request."""
    properties = {
        "journaling": journal,
        "authentication": authenticated,
        "label": label,
        "quota": quota,
        "journal_quota": journal_quota,
        "multicast_address": multicast,
        "max_aborts": max_aborts,
        "base_priority": base_priority,
        "privacy": privacy,
        "type_id": type_id,
        "security": security,
    }
    return {name: value for name, value in properties.items() if value is not None}


def _takes_properties(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of ``_given``, and its argument ``properties`` what comes of them."""
    signature = inspect.signature(function, eval_str=True)
    options = inspect.signature(_given, eval_str=True).parameters

    @functools.wraps(function)
    def command(session: Session, **arguments: Any) -> None:
        given = _given(**{name: arguments.pop(name) for name in options})
        function(session, properties=given, **arguments)

    own = [parameter for parameter in signature.parameters.values() if parameter.name != "properties"]
    command.__signature__ = signature.replace(parameters=[*own, *options.values()])  # type: ignore[attr-defined]
    return command


@app.command()
@talks_to_manager
@_takes_properties
def create(
    session: Session,
    name: Name,
    properties: dict[str, Any],
    transactional: Annotated[
        bool, typer.Option("--transactional", help="Take transactional messages.")
    ] = False,
) -> None:
    """Create a queue."""
    queue = session.client.create_queue(name, transactional=transactional, **properties)
    _tell(session, queue, f"created {queue.path}")


@app.command("set")
@talks_to_manager
@_takes_properties
def set_properties(session: Session, name: Name, properties: dict[str, Any]) -> None:
    """Change a queue; what is not given stays."""
    queue = session.client.change_queue(name, **properties)
    _tell(session, queue, f"changed {queue.path}")


@app.command("list")
@talks_to_manager
def list_queues(
    session: Session,
    outgoing: Annotated[
        bool, typer.Option("--outgoing", help="The outgoing ones alone, and how they stand.")
    ] = False,
) -> None:
    """List the local and the outgoing queues."""
    queues = session.client.queues()
    if outgoing:
        queues = tuple([queue for queue in queues if queue.kind is QueueKind.OUTGOING])
    if session.as_json:
        for queue in queues:
            print_json(queue)
        return
    if outgoing:
        _print_outgoing(queues)
        return
    rows = [
        (
            queue.path,
            queue.messages,
            queue.bytes,
            queue.journal_messages,
            queue.transactional,
            queue.label or queue.state,
        )
        for queue in queues
    ]
    print_table(("queue", "messages", "bytes", "journal", "transactional", "label"), rows, empty="no queues")


def _print_outgoing(queues: Iterable[QueueOut]) -> None:
    rows = [
        (queue.path, queue.messages, queue.bytes, queue.state, printable(queue.last_failure))
        for queue in queues
    ]
    print_table(("queue", "messages", "bytes", "state", "last failure"), rows, empty="no outgoing queues")


@app.command()
@talks_to_manager
def show(session: Session, name: Name) -> None:
    """Show a queue, and say who may do what."""
    queue = session.client.queue(name)
    if session.as_json:
        print_json(queue)
        return
    print_pairs(
        [
            ("queue", queue.path),
            ("format name", queue.format_name),
            ("kind", queue.kind.value),
            ("label", queue.label),
            ("messages", queue.messages),
            ("bytes", queue.bytes),
            ("held by transactions", queue.messages - queue.available_messages),
            ("in the journal", queue.journal_messages),
            ("subqueues", ", ".join(queue.subqueues)),
            ("transactional", queue.transactional),
            ("journaling", queue.journaling),
            ("quota", "none" if queue.quota == INFINITE else f"{queue.quota:,} KB"),
            ("aborts until ;poison", queue.max_aborts or "never"),
            ("waiting readers", queue.waiting_readers),
            ("created", shown_time(queue.created)),
            ("state", printable(queue.explanation) or "local"),
            *transfer_pairs(queue),
        ]
    )
    for line in queue.access:
        typer.echo(f"- {line}")
    print_transfers(queue)


@app.command()
@talks_to_manager
def delete(session: Session, name: Name) -> None:
    """Delete a queue with everything in it."""
    session.client.delete_queue(name)
    _tell(session, {"deleted": name}, f"deleted {name}")


@app.command()
@talks_to_manager
def purge(session: Session, name: Name) -> None:
    """Drop every message of a queue."""
    purged = session.client.purge_queue(name)
    _tell(session, {"purged": purged}, f"dropped {purged:,} messages")


@app.command()
@talks_to_manager
def pause(session: Session, name: Name) -> None:
    """Let nothing leave an outgoing queue."""
    session.client.pause_queue(name)
    _tell(session, {"paused": name}, f"paused {name}")


@app.command()
@talks_to_manager
def resume(session: Session, name: Name) -> None:
    """Let messages leave an outgoing queue again."""
    session.client.resume_queue(name)
    _tell(session, {"resumed": name}, f"resumed {name}")


@app.command()
@talks_to_manager
def apply(
    session: Session,
    file: Annotated[Path, typer.Argument(help="A TOML file with [[queue]] tables.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
    prune: Annotated[bool, typer.Option("--prune", help="Delete the queues that are not declared.")] = False,
) -> None:
    """Create and change what differs from a declarative file."""
    plan = session.client.plan_queues(_declared(file), prune=prune, apply=not dry_run)
    if session.as_json:
        print_json(plan)
        return
    for step in plan.steps:
        typer.echo(f"{'would ' if dry_run else ''}{step}")
    if not plan.steps:
        typer.echo("nothing to do")


def _declared(file: Path) -> list[CreateQueueRequest]:
    try:
        document = tomllib.loads(file.read_text())
    except OSError as error:
        raise InvalidPropertyError(f"cannot read {file}: {error.strerror}") from error
    except ValueError as error:
        raise InvalidPropertyError(f"{file} is not TOML: {error}") from error
    unknown = set(document) - {"queue"}
    if unknown:
        raise InvalidPropertyError(
            f"{file}: there is no {', '.join(unknown)}", hint="queues are [[queue]] tables"
        )
    try:
        return msgspec.convert(document.get("queue", []), list[CreateQueueRequest])
    except msgspec.ValidationError as error:
        raise InvalidPropertyError(f"{file}: {error}") from error


def _tell(session: Session, value: QueueOut | dict[str, Any], text: str) -> None:
    if session.as_json:
        print_json(value)
    else:
        typer.echo(text)
