"""``lanner deadletter``."""

from __future__ import annotations

from typing import Annotated

import typer

from lanner.cli.command import EXIT_FAILED, Session, fail, talks_to_manager
from lanner.cli.output import print_json, print_table, shown_time
from lanner.cli.why import print_explanation
from lanner.schema.dead_letters import DeadLetterOut

__all__ = ["app"]

app = typer.Typer(help="Messages that were not delivered or not received.", no_args_is_help=True)

ClassOption = Annotated[
    str | None, typer.Option("--class", help="Only this class: a number, or words of its reason.")
]
QueueOption = Annotated[str | None, typer.Option("--queue", help="Only messages to this queue.")]
OlderOption = Annotated[float | None, typer.Option("--older", help="Only messages sent so many seconds ago.")]
InOption = Annotated[str | None, typer.Option("--in", help="An application's own dead-letter queue.")]
LimitOption = Annotated[int, typer.Option("--limit", help="How many at most.")]


@app.command("list")
@talks_to_manager
def list_dead_letters(
    session: Session,
    message_class: ClassOption = None,
    queue: QueueOption = None,
    older: OlderOption = None,
    within: InOption = None,
    limit: LimitOption = 100,
) -> None:
    """List dead letters with the reason in words."""
    letters = _find(session, message_class, queue, older, within, limit)
    if session.as_json:
        for letter in letters:
            print_json(letter)
        return
    rows = [
        (
            str(letter.message.lookup_id),
            letter.message.label,
            letter.message.destination_queue,
            shown_time(letter.message.sent_time),
            letter.reason,
        )
        for letter in letters
    ]
    print_table(("lookup id", "label", "to", "sent", "reason"), rows, empty="no dead letters")


@app.command()
@talks_to_manager
def explain(session: Session, lookup_id: Annotated[int, typer.Argument(help="From the list.")]) -> None:
    """Tell how a message became a dead letter, and what to do."""
    letter = session.client.dead_letter(lookup_id)
    explanation = session.client.why(letter.message.id)
    if session.as_json:
        print_json(explanation)
    else:
        print_explanation(explanation)


@app.command()
@talks_to_manager
def replay(
    session: Session,
    lookup_ids: Annotated[
        list[int] | None, typer.Argument(help="From the list; or choose by options.")
    ] = None,
    message_class: ClassOption = None,
    queue: QueueOption = None,
    older: OlderOption = None,
    within: InOption = None,
    limit: LimitOption = 100,
    everything: Annotated[bool, typer.Option("--all", help="All dead letters.")] = False,
    to: Annotated[str | None, typer.Option(help="Another queue than the original one.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
) -> None:
    """Send dead letters again. One that fails stays a dead letter."""
    chosen = list(lookup_ids or ())
    if not chosen:
        if not (everything or message_class or queue or older is not None or within):
            fail("nothing is chosen (name lookup ids, choose with --class, --queue, --older, or say --all)")
        letters = _find(session, message_class, queue, older, within, limit)
        chosen = [letter.message.lookup_id for letter in letters]
    if not chosen:
        typer.echo("no dead letters")
        return
    replayed = session.client.replay(chosen, destination=to, dry_run=dry_run)
    for one in replayed:
        if session.as_json:
            print_json(one)
        elif one.error:
            typer.echo(f"{one.lookup_id}: not replayed: {one.error}", err=True)
        elif dry_run:
            typer.echo(f"{one.lookup_id}: would go to {one.destination}")
        else:
            typer.echo(f"{one.lookup_id}: sent to {one.destination} as {one.id}")
    if any(one.error for one in replayed):
        raise typer.Exit(EXIT_FAILED)


def _find(
    session: Session,
    message_class: str | None,
    queue: str | None,
    older: float | None,
    within: str | None,
    limit: int,
) -> list[DeadLetterOut]:
    number = int(message_class, 0) if message_class and message_class[:1].isdigit() else None
    letters = session.client.dead_letters(
        message_class=number, destination=queue, older_than=older, queue=within, limit=limit
    )
    if message_class and number is None:
        return [letter for letter in letters if message_class.lower() in letter.reason.lower()]
    return list(letters)
