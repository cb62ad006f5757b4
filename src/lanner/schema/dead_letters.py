"""Dead letters and explanations as they go over the API."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, field

from lanner.schema.base import MAX_BATCH, In, LookupId, Out
from lanner.schema.messages import MessageOut


class DeadLettersRequest(In, frozen=True, kw_only=True):
    """Which dead letters are meant."""

    message_class: int | None = field(name="class", default=None)
    destination: str | None = None
    older_than: Annotated[float, Meta(ge=0)] | None = None
    queue: str | None = None
    limit: Annotated[int, Meta(ge=1, le=10_000)] = 100


class DeadLetterOut(Out, frozen=True, kw_only=True):
    """A dead letter, and why it is one."""

    queue: str
    reason: str
    message: MessageOut


class DeadLettersAnswer(Out, frozen=True, kw_only=True):
    """Dead letters, oldest first."""

    dead_letters: tuple[DeadLetterOut, ...]


class LookupRequest(In, frozen=True, kw_only=True):
    """A message by its lookup identifier."""

    lookup_id: LookupId


class ReplayRequest(In, frozen=True, kw_only=True):
    """Dead letters to send again."""

    lookup_ids: Annotated[tuple[LookupId, ...], Meta(min_length=1, max_length=MAX_BATCH)]
    destination: str | None = None
    """Another queue than the one that the message was to go to."""
    dry_run: bool = False


class ReplayedOut(Out, frozen=True, kw_only=True):
    """What became of one of them."""

    lookup_id: int
    destination: str
    id: str = ""
    """The new message."""
    error: str = ""
    """Why it is still a dead letter."""


class ReplayAnswer(Out, frozen=True, kw_only=True):
    """What became of each."""

    replayed: tuple[ReplayedOut, ...]


class WhyRequest(In, frozen=True, kw_only=True):
    """A queue's name or a message's identifier."""

    subject: Annotated[str, Meta(min_length=1, max_length=65_536)]


class WhyAnswer(Out, frozen=True, kw_only=True):
    """What is the matter, how it came about, what to do."""

    subject: str
    summary: str
    findings: tuple[str, ...]
    advice: tuple[str, ...]
