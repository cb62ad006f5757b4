"""Messages to rows and back (docs/store-format.md, tables ``message`` and ``content``)."""

from __future__ import annotations

from enum import IntFlag
from typing import TypeAlias

import msgspec

from lanner.model.message import Message
from lanner.model.message_id import MessageId

__all__ = [
    "ContentRow",
    "MessageFlags",
    "MessageRow",
    "content_row",
    "flags_of",
    "message_from_row",
    "message_row",
]

MessageRow: TypeAlias = tuple[int, int, bytes, bytes | None, int, int, int, float, float | None, int]
"""lookup, queue, id, correlation, size, class, flags, arrived, expires, aborts."""

ContentRow: TypeAlias = tuple[int, bytes, bytes, bytes | None]
"""lookup, attributes, body, extension."""

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Message)


class MessageFlags(IntFlag):
    """What a message's deletion will ask for, known without reading the message."""

    NONE = 0
    POSITIVE_JOURNALING = 1
    NEGATIVE_JOURNALING = 2
    ACKNOWLEDGMENTS = 4
    TRANSACTIONAL = 8
    PEEK_WHEN_LOCKED = 16


def flags_of(message: Message) -> int:
    """Sum up what the message's deletion will ask for."""
    flags = 0
    if message.positive_journaling:
        flags |= 1
    if message.negative_journaling:
        flags |= 2
    if message.acknowledgments and message.administration_queue:
        flags |= 4
    if message.transaction is not None:
        flags |= 8
    if message.allow_peek_when_locked:
        flags |= 16
    return flags


def message_row(message: Message, queue: int, flags: int, expires: float | None) -> MessageRow:
    """Make the index row of a message that has its identity."""
    assert message.id is not None
    return (
        message.lookup_id,
        queue,
        message.id,
        message.correlation_id,
        message.size,
        message.message_class,
        flags,
        message.arrival_time,
        expires,
        message.abort_count,
    )


def content_row(message: Message) -> ContentRow:
    """Make the row that is read on demand. What other columns hold is left out of the attributes."""
    attributes = msgspec.structs.replace(
        message,
        body=b"",
        extension=b"",
        id=None,
        correlation_id=None,
        message_class=0,
        lookup_id=0,
        arrival_time=0.0,
        abort_count=0,
    )
    return (message.lookup_id, _encoder.encode(attributes), message.body, message.extension or None)


def message_from_row(
    row: tuple[int, bytes, bytes | None, int, float, int, bytes, bytes, bytes | None],
) -> Message:
    """Put a message together again.

    The row is lookup, id, correlation, class, arrived, aborts, attributes, body, extension.
    """
    lookup, identifier, correlation, message_class, arrived, aborts, attributes, body, extension = row
    return msgspec.structs.replace(
        _decoder.decode(attributes),
        lookup_id=lookup,
        id=MessageId(identifier),
        correlation_id=MessageId(correlation) if correlation is not None else None,
        message_class=message_class,
        arrival_time=arrived,
        abort_count=aborts,
        body=body,
        extension=extension or b"",
    )
