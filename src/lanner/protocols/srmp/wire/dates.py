"""Dates and spans of time (MC-MQSRM 2.2.1.2).

A date is whole seconds since 1970 in UTC. The protocol sends no spans: it sends when a message was sent and
when it ends, and 3.1.5.1.1 and 3.1.7.2.4 say how one comes from the other.
"""

from __future__ import annotations

from calendar import timegm
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from lanner.model.message import INFINITE
from lanner.protocols.srmp.wire.elements import NEVER
from lanner.protocols.srmp.wire.faults import WireFault

__all__ = ["read_date", "span_until", "time_after", "write_date"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LENGTH = len("YYYYMMDDThhmmss")


@lru_cache(maxsize=1024)
def read_date(text: str) -> int:
    """Read ``YYYYMMDDThhmmss``. Raises ValueError."""
    digits = text[:8] + text[9:]
    if len(text) != _LENGTH or text[8] != "T" or not (digits.isascii() and digits.isdigit()):
        raise ValueError(f"{text[:40]!r} is not a date of the form YYYYMMDDThhmmss")
    fields = (
        int(text[:4]),
        int(text[4:6]),
        int(text[6:8]),
        int(text[9:11]),
        int(text[11:13]),
        int(text[13:]),
    )
    try:
        datetime(*fields, tzinfo=UTC)
    except ValueError as error:
        raise ValueError(f"{text!r} is no date: {error}") from None
    return timegm(fields)


@lru_cache(maxsize=1024)
def write_date(seconds: int) -> str:
    """Write ``YYYYMMDDThhmmss``. Raises WireFault for a time outside the years 1 to 9999."""
    try:
        date = _EPOCH + timedelta(seconds=seconds)
    except OverflowError:
        message = f"{seconds} seconds since 1970 is outside the years 1 to 9999"
        raise WireFault("2.2.1.2", "date", message) from None
    return f"{date.year:04}{date:%m%dT%H%M%S}"


def span_until(end: int, sent_at: int) -> int:
    """How many seconds after it was sent a message ends: the TimeToReachQueue of 3.1.5.1.1.

    INFINITE where it never does; 0 where it ended before it was sent.
    """
    return INFINITE if end == NEVER else min(max(end - sent_at, 0), INFINITE - 1)


def time_after(sent_at: int, span: int) -> int:
    """When a message that may take ``span`` seconds ends, or NEVER (3.1.7.2.4)."""
    return NEVER if span == INFINITE else sent_at + span
