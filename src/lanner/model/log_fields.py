"""What a log line is about, as fields for programs: ``log.warning(..., extra=about(...))``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

__all__ = ["MAX_NAMED", "LogFields", "about"]

LogFields: TypeAlias = dict[str, object]

MAX_NAMED = 10
"""A line names so many queues and messages at most: a transaction may have thousands."""


def about(*, queues: Iterable[object] = (), messages: Iterable[object] = (), **others: object) -> LogFields:
    """Fields of a log line: ``queue`` and ``message_id``, or ``queues`` and ``message_ids`` for several.

    The identifier is not called ``message``: that is the text of the line.
    """
    fields: LogFields = dict(others)
    for one, many, values in (("queue", "queues", queues), ("message_id", "message_ids", messages)):
        named = sorted({str(value) for value in values})
        if len(named) == 1:
            fields[one] = named[0]
        elif named:
            fields[many] = named[:MAX_NAMED]
    return fields
