"""The manager itself, and tokens, as they go over the API."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from msgspec import Meta

from lanner.schema.base import In, Out


class StatusAnswer(Out, frozen=True, kw_only=True):
    """The manager at one moment."""

    name: str
    id: UUID
    version: str
    online: bool
    messages: int
    bytes: int
    quota: int
    queues: int
    last_lsn: int


class FlowControlRequest(In, frozen=True, kw_only=True):
    """Whether the manager is to take in nothing for the moment."""

    throttled: bool


class BackupRequest(In, frozen=True, kw_only=True):
    """Where to write a copy of the store: a file name in the data directory's ``backups``."""

    name: Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]


class BackupAnswer(Out, frozen=True, kw_only=True):
    """The copy."""

    name: str
    bytes: int


class CompactAnswer(Out, frozen=True, kw_only=True):
    """What compaction gave back."""

    freed_bytes: int


class TokenRequest(In, frozen=True, kw_only=True):
    """A token to make."""

    name: Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
    rights: Annotated[tuple[Literal["admin", "send", "receive", "peek"], ...], Meta(min_length=1)]
    queues: tuple[str, ...] = ("*",)
    """Patterns of path names, such as ``.\\private$\\orders*``."""


class TokenNameRequest(In, frozen=True, kw_only=True):
    """A token by its name."""

    name: str


class TokenAnswer(Out, frozen=True, kw_only=True):
    """A new token: it is shown this once."""

    name: str
    token: str


class TokenOut(Out, frozen=True, kw_only=True):
    """A token, without the token."""

    name: str
    rights: tuple[str, ...]
    queues: tuple[str, ...]


class TokensAnswer(Out, frozen=True, kw_only=True):
    """All tokens."""

    tokens: tuple[TokenOut, ...]
