"""Messages to rows and back (docs/store-format.md, tables ``message`` and ``segment``)."""

from __future__ import annotations

import struct
from enum import IntFlag
from typing import TypeAlias

import msgspec

from lanner.model.errors import StoreDamagedError
from lanner.model.message import Message
from lanner.model.message_id import MessageId

__all__ = ["ContentRecord", "MessageFlags", "MessageRow", "content_record", "flags_of", "message_from_record"]

MessageRow: TypeAlias = tuple[int, int, bytes, bytes | None, int, int, int, float, float | None, int]
"""lookup, queue, id, correlation, size, class, flags, arrived, expires, aborts."""

IdentityRow: TypeAlias = tuple[int, bytes, bytes | None, int, float, int]
"""lookup, id, correlation, class, arrived, aborts: what a content record leaves to other columns."""

ContentRecord: TypeAlias = bytes | tuple[bytes, ...]
"""What is kept of a message beside its row, as a whole or in pieces."""

LARGE_BYTES = 256 * 1024
"""From this size on a body is worth the second statement that writes it without a copy."""

RECORD_HEADER = struct.Struct("<II")
"""Lengths of the attributes and of the body; the extension is what is left."""

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Message)

_NO_TIME = Message().arrival_time
"""The default itself: msgspec leaves out a float only if it is the same object."""


class MessageFlags(IntFlag):
    """What a message's deletion will ask for, known without reading the message."""

    NONE = 0
    POSITIVE_JOURNALING = 1
    NEGATIVE_JOURNALING = 2
    ACKNOWLEDGMENTS = 4
    TRANSACTIONAL = 8
    PEEK_WHEN_LOCKED = 16
    PURGED = 32
    """Its queue was purged while it was locked: it goes when it comes back (MS-MQDMPR 3.1.1.11)."""


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


def content_record(message: Message) -> ContentRecord:
    """Make what is read on demand. What columns of the index hold is left out of the attributes.

    A large body is left in a piece of its own: it is written without being copied.
    """
    body = message.body
    attributes = _encoder.encode(
        msgspec.structs.replace(
            message,
            body=b"",
            extension=b"",
            id=None,
            correlation_id=None,
            message_class=0,
            lookup_id=0,
            arrival_time=_NO_TIME,
            abort_count=0,
        )
    )
    pieces = (RECORD_HEADER.pack(len(attributes), len(body)), attributes, body, message.extension)
    return pieces if len(body) >= LARGE_BYTES else b"".join(pieces)


def message_from_record(row: IdentityRow, record: bytes, *, body: bool = True) -> Message:
    """Put a message together again, with or without its body and extension."""
    lookup, identifier, correlation, message_class, arrived, aborts = row
    try:
        attributes_length, body_length = RECORD_HEADER.unpack_from(record)
        attributes_end = RECORD_HEADER.size + attributes_length
        body_end = attributes_end + body_length
        if body_end > len(record):
            raise ValueError(f"it has {len(record)} bytes and should have {body_end} or more")
        attributes = _decoder.decode(record[RECORD_HEADER.size : attributes_end])
    except (struct.error, ValueError) as error:  # msgspec's errors are ValueErrors
        raise StoreDamagedError(
            f"the message with lookup identifier {lookup} cannot be read: {error}"
        ) from error
    return msgspec.structs.replace(
        attributes,
        lookup_id=lookup,
        id=MessageId(identifier),
        correlation_id=MessageId(correlation) if correlation is not None else None,
        message_class=message_class,
        arrival_time=arrived,
        abort_count=aborts,
        body=record[attributes_end:body_end] if body else b"",
        extension=record[body_end:] if body else b"",
    )
