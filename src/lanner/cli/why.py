"""``lanner why``."""

from __future__ import annotations

from typing import Annotated

import typer

from lanner.cli.command import Session, talks_to_manager
from lanner.cli.output import print_json
from lanner.schema.dead_letters import WhyAnswer

__all__ = ["print_explanation", "why"]


@talks_to_manager
def why(
    session: Session, subject: Annotated[str, typer.Argument(help="A queue, or a message's identifier.")]
) -> None:
    """Tell what happened to a queue or message, and what to do."""
    explanation = session.client.why(subject)
    if session.as_json:
        print_json(explanation)
    else:
        print_explanation(explanation)


def print_explanation(explanation: WhyAnswer) -> None:
    """Print what is the matter, how it came about, what to do."""
    typer.echo(f"{explanation.subject}: {explanation.summary}")
    for finding in explanation.findings:
        typer.echo(f"  {finding}")
    for advice in explanation.advice:
        typer.echo(f"  -> {advice}")
