"""Dead letters, and why things are as they are."""

from __future__ import annotations

from lanner.api.context import Api
from lanner.api.convert import dead_letter_out
from lanner.api.tokens import Caller
from lanner.manager.dead_letters import DeadLetterFilter
from lanner.model.errors import InvalidPropertyError, LannerError
from lanner.model.message_id import MessageId
from lanner.schema.dead_letters import (
    DeadLetterOut,
    DeadLettersAnswer,
    DeadLettersRequest,
    LookupRequest,
    ReplayAnswer,
    ReplayedOut,
    ReplayRequest,
    WhyAnswer,
    WhyRequest,
)

__all__ = ["list_dead_letters", "replay", "show", "why"]


async def list_dead_letters(api: Api, caller: Caller, request: DeadLettersRequest) -> DeadLettersAnswer:
    """List dead letters, without their bodies."""
    wanted = DeadLetterFilter(
        message_class=request.message_class,
        destination=request.destination,
        older_than=request.older_than,
        queue=request.queue,
    )
    found = await api.manager.dead_letters.find(wanted, limit=request.limit)
    return DeadLettersAnswer(dead_letters=tuple([dead_letter_out(letter) for letter in found]))


async def show(api: Api, caller: Caller, request: LookupRequest) -> DeadLetterOut:
    """Show one dead letter with its body."""
    return dead_letter_out(await api.manager.dead_letters.get(request.lookup_id))


async def replay(api: Api, caller: Caller, request: ReplayRequest) -> ReplayAnswer:
    """Send dead letters again, each for itself: one that fails stays a dead letter."""
    replayed = [
        await _replay_one(api, lookup_id, request.destination, dry_run=request.dry_run)
        for lookup_id in request.lookup_ids
    ]
    return ReplayAnswer(replayed=tuple(replayed))


async def _replay_one(api: Api, lookup_id: int, destination: str | None, *, dry_run: bool) -> ReplayedOut:
    target = destination or ""
    try:
        letter = await api.manager.dead_letters.get(lookup_id)
        target = destination or letter.message.destination_queue
        if dry_run:
            return ReplayedOut(lookup_id=lookup_id, destination=target)
        outcome = await api.manager.dead_letters.replay(lookup_id, destination)
    except LannerError as error:
        return ReplayedOut(lookup_id=lookup_id, destination=target, error=str(error))
    return ReplayedOut(lookup_id=lookup_id, destination=target, id=str(outcome.message_ids[0]))


async def why(api: Api, caller: Caller, request: WhyRequest) -> WhyAnswer:
    """Tell what happened to a message or queue, and what to do."""
    try:
        identifier = MessageId.parse(request.subject)
    except InvalidPropertyError:
        found = await api.manager.why.queue(request.subject)
    else:
        found = await api.manager.why.message(identifier)
    return WhyAnswer(
        subject=found.subject, summary=found.summary, findings=found.findings, advice=found.advice
    )
