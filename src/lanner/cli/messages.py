"""``lanner send``, ``receive``, ``peek`` and ``move``."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from lanner.cli.command import Session, talks_to_manager
from lanner.cli.output import print_json, print_table, shown_body, shown_time
from lanner.model.errors import InvalidPropertyError
from lanner.model.message import MAX_MESSAGE_SIZE, Message
from lanner.schema.messages import ACKNOWLEDGMENTS, MessageIn, MessageOut

__all__ = ["move", "peek", "receive", "send"]

Queue = Annotated[str, typer.Argument(help=r"The queue: .\private$\orders, or a format name.")]
Timeout = Annotated[float, typer.Option(help="Seconds to wait for a message.")]
Count = Annotated[int, typer.Option(min=1, help="How many messages at most.")]


@talks_to_manager
def send(
    session: Session,
    queue: Queue,
    body: Annotated[str | None, typer.Option(help="The body, as text.")] = None,
    file: Annotated[str | None, typer.Option(help="A file with the body; - is standard input.")] = None,
    label: Annotated[str, typer.Option(help="A label.")] = "",
    priority: Annotated[int, typer.Option(min=0, max=7, help="0 to 7, the highest.")] = 3,
    durable: Annotated[bool, typer.Option("--durable", help="Survive a restart.")] = False,
    transactional: Annotated[bool, typer.Option("--transactional", help="Send in a transaction.")] = False,
    ttrq: Annotated[int | None, typer.Option(help="Seconds to reach the queue.")] = None,
    ttbr: Annotated[int | None, typer.Option(help="Seconds to be received.")] = None,
    deadletter: Annotated[
        bool, typer.Option("--deadletter", help="Keep it as a dead letter if it fails.")
    ] = False,
    journal: Annotated[bool, typer.Option("--journal", help="Keep a copy in the system journal.")] = False,
    admin_queue: Annotated[str, typer.Option(help="Where acknowledgments go.")] = "",
    ack: Annotated[
        list[str] | None, typer.Option(help=f"Acknowledgments: {', '.join(ACKNOWLEDGMENTS)}.")
    ] = None,
    response: Annotated[str, typer.Option(help="Where answers go.")] = "",
    correlation: Annotated[str, typer.Option(help="The identifier of the message this one belongs to.")] = "",
    key: Annotated[str | None, typer.Option(help="The same key again adds nothing.")] = None,
    sign: Annotated[bool, typer.Option("--sign", help="Sign it on its way over HTTP.")] = False,
) -> None:
    """Send a message. Its body is --body, a --file, or standard input."""
    unknown = set(ack or ()) - set(ACKNOWLEDGMENTS)
    if unknown:
        raise InvalidPropertyError(
            f"there is no acknowledgment {', '.join(unknown)}", hint=f"there are {', '.join(ACKNOWLEDGMENTS)}"
        )
    defaults = Message()
    message = MessageIn(
        body=_body(body, file),
        label=label,
        priority=priority,
        durable=durable or transactional,
        time_to_reach_queue=defaults.time_to_reach_queue if ttrq is None else ttrq,
        time_to_be_received=defaults.time_to_be_received if ttbr is None else ttbr,
        dead_letter=deadletter,
        journal=journal,
        administration_queue=admin_queue,
        acknowledgments=tuple(ack or ()),  # type: ignore[arg-type]  # checked above
        response_queue=response,
        correlation_id=correlation,
        sign=sign,
    )
    answer = session.client.send_many(queue, [message], key=key, transactional=transactional)
    if session.as_json:
        print_json({"id": answer.ids[0], "lookup_id": answer.lookup_ids[0], "replayed": answer.replayed})
    else:
        typer.echo(f"{'sent before' if answer.replayed else 'sent'} {answer.ids[0]}")


PRINTING_SECONDS = 60.0
"""How long messages may take to be printed before they are given back."""

MAX_LEASE = 3600.0
"""The longest that the API grants."""


@talks_to_manager
def receive(
    session: Session,
    queue: Queue,
    timeout: Timeout = 0.0,
    count: Count = 1,
    message_id: Annotated[str | None, typer.Option("--id", help="Only this message.")] = None,
    correlation: Annotated[str | None, typer.Option(help="Only a message that belongs to this one.")] = None,
) -> None:
    """Receive messages.

    They are taken when they are printed: where they cannot be, they are given back.
    """
    options: dict[str, Any] = {"message_id": message_id, "correlation_id": correlation}
    lease = min(timeout + PRINTING_SECONDS, MAX_LEASE)
    with session.client.transaction(lease=lease) as transaction:
        _print(session, transaction.receive(queue, count=count, wait=timeout, **options))
        sys.stdout.flush()


@talks_to_manager
def peek(session: Session, queue: Queue, timeout: Timeout = 0.0, count: Count = 1) -> None:
    """Look at messages without taking them."""
    _print(session, session.client.peek(queue, count=count, wait=timeout))


@talks_to_manager
def move(
    session: Session,
    queue: Queue,
    lookup_id: Annotated[int, typer.Argument(help="The message's lookup identifier.")],
    target: Annotated[str, typer.Argument(help=r"Where to: .\private$\orders;checked")],
) -> None:
    """Move a message to another queue or subqueue."""
    session.client.move(queue, lookup_id, target)
    if session.as_json:
        print_json({"moved": lookup_id, "target": target})
    else:
        typer.echo(f"moved {lookup_id} to {target}")


def _body(body: str | None, file: str | None) -> bytes:
    if body is not None and file is not None:
        raise InvalidPropertyError("there is --body and --file", hint="give one of them")
    if body is not None:
        return body.encode()
    if file in (None, "-"):
        return sys.stdin.buffer.read(MAX_MESSAGE_SIZE + 1)
    try:
        return Path(str(file)).read_bytes()
    except OSError as error:
        raise InvalidPropertyError(f"cannot read {file}: {error.strerror}") from error


def _print(session: Session, messages: Iterable[MessageOut]) -> None:
    if session.as_json:
        for message in messages:
            print_json(message)
        return
    rows = [
        (
            str(message.lookup_id),
            message.label,
            message.priority,
            message.class_text if message.message_class else "",
            shown_time(message.sent_time),
            shown_body(message.body),
        )
        for message in messages
    ]
    print_table(("lookup id", "label", "priority", "class", "sent", "body"), rows, empty="no message")
