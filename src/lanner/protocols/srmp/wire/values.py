"""The texts inside elements, as values (MC-MQSRM 2.2.1). Both readers of envelopes use these, so they agree.

Every reader raises ValueError with a sentence. GUIDs and the bytes of a lineage are cached, because a queue
manager's own turns up in each of its messages three times.
"""

from __future__ import annotations

import binascii
import re
import struct
from functools import lru_cache
from uuid import UUID

from lanner.model.message_id import MessageId
from lanner.protocols.srmp.wire.elements import StreamId

__all__ = [
    "GUID_PATTERN",
    "MAX_UINT16",
    "MAX_UINT32",
    "MAX_UINT64",
    "XML_SPACE",
    "make_message_id",
    "read_base64",
    "read_correlation",
    "read_guid",
    "read_message_id",
    "read_names",
    "read_number",
    "read_stream_id",
    "write_base64",
    "write_message_id",
]

MAX_UINT16 = 0xFFFF
MAX_UINT32 = 0xFFFFFFFF
MAX_UINT64 = 0xFFFFFFFFFFFFFFFF

XML_SPACE = " \t\r\n"
"""White space as XML knows it; str.strip() would take more."""

GUID_PATTERN = "[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}"

_GUID = re.compile(GUID_PATTERN)
_NUMBER = re.compile(r"\+?0*([0-9]{1,20})")
_MESSAGE_ID = re.compile(f"uuid:([0-9]+)@({GUID_PATTERN})")
_STREAM_ID = re.compile(rf"uid:({GUID_PATTERN})\\([0-9]+)")
_UNIQUIFIER = struct.Struct("<I")
_SHOWN = 60


def _quote(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "...")


@lru_cache(maxsize=1024)
def read_guid(text: str) -> UUID:
    """Read a GUID string (2.2.1.1)."""
    if not _GUID.fullmatch(text):
        raise ValueError(f"{_quote(text)} is not a GUID of the form 01234567-89ab-cdef-0123-456789abcdef")
    return UUID(text)


@lru_cache(maxsize=1024)
def _lineage_bytes(guid: str) -> bytes:
    return read_guid(guid).bytes_le


def read_number(text: str, largest: int = MAX_UINT64) -> int:
    """Read an xs:unsignedLong (2.2.1.3) that may not exceed ``largest``."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise ValueError(f"{_quote(text)} is not an unsigned number")
    number = int(match[1])
    if number > largest:
        raise ValueError(f"{number} is more than {largest}")
    return number


def make_message_id(number: str, guid: str) -> MessageId:
    """Put a message identifier together.

    2.2.4.3 allows a number of 64 bits; the OBJECTID that it becomes has room for 32.
    """
    return MessageId(_lineage_bytes(guid) + _UNIQUIFIER.pack(read_number(number, MAX_UINT32)))


def read_message_id(text: str) -> MessageId:
    """Read ``uuid:NUMBER@GUID`` (2.2.4.3)."""
    match = _MESSAGE_ID.fullmatch(text)
    if match is None:
        raise ValueError(f"{_quote(text)} is not of the form uuid:NUMBER@GUID")
    return make_message_id(match[1], match[2])


def write_message_id(identifier: MessageId) -> str:
    """Write ``uuid:NUMBER@GUID`` (2.2.4.3)."""
    lineage, _, number = str(identifier).partition("\\")
    return f"uuid:{number}@{lineage}"


def read_stream_id(text: str) -> StreamId:
    r"""Read ``uid:GUID\NUMBER`` (2.2.5.3.1)."""
    match = _STREAM_ID.fullmatch(text)
    if match is None:
        raise ValueError(f"{_quote(text)} is not of the form uid:GUID\\NUMBER")
    return StreamId(read_guid(match[1]), read_number(match[2]))


def read_base64(text: str) -> bytes:
    """Read base64, white space aside, and nothing that is not base64."""
    joined = "".join(text.split())
    try:
        # The strict mode of Python 3.11 lets more padding through than there is room for.
        if len(joined) % 4:
            raise ValueError("its length is not a multiple of 4")
        return binascii.a2b_base64(joined, strict_mode=True)
    except ValueError as error:
        raise ValueError(f"{_quote(text)} is not base64: {error}") from None


def write_base64(data: bytes) -> str:
    """Write base64 on one line."""
    return binascii.b2a_base64(data, newline=False).decode("ascii")


def read_correlation(text: str) -> MessageId:
    """Read a Correlation (2.2.6.5): the 20 bytes of an OBJECTID in base64."""
    data = read_base64(text)
    if len(data) != MessageId.LENGTH:
        raise ValueError(f"a correlation identifier has {MessageId.LENGTH} bytes, not {len(data)}")
    return MessageId(data)


def read_names(text: str) -> tuple[str, ...]:
    """Read a list of queues with white space between them (2.2.6.14 to 2.2.6.16)."""
    names = tuple(text.split())
    if not names:
        raise ValueError("there is no queue in the list")
    return names
