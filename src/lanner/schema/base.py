"""What all requests and answers have in common."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

__all__ = [
    "Count",
    "DoneAnswer",
    "ErrorAnswer",
    "In",
    "Key",
    "LookupId",
    "Lsn",
    "Out",
    "QueueName",
    "UInt32",
    "Wait",
]

MAX_BATCH = 1000
"""Messages in one request or answer: their bodies are in memory together."""

MAX_WAIT = 60.0
"""Seconds that one request may wait for a message; a client asks again."""

UInt32 = Annotated[int, Meta(ge=0, le=0xFFFFFFFF)]
LookupId = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
Lsn = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
QueueName = Annotated[str, Meta(min_length=1, max_length=65_536, description="A path name or format name")]
Key = Annotated[str, Meta(min_length=1, max_length=512)]
Count = Annotated[int, Meta(ge=1, le=MAX_BATCH)]
Wait = Annotated[float, Meta(ge=0, le=MAX_WAIT)]


class In(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """A request: a field that nobody knows is an error, not silence."""


class Out(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An answer."""


class DoneAnswer(Out, frozen=True, kw_only=True):
    """It is done."""

    done: bool = True


class ErrorAnswer(Out, frozen=True, kw_only=True):
    """It is not done, and why."""

    error: str
    """The name of the kind of error."""
    message: str
    hint: str = ""
    code: int = 0
    """The HRESULT (MS-MQMQ 2.4)."""
