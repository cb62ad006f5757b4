"""Message identifiers: OBJECTID (MS-MQMQ 2.2.8)."""

from __future__ import annotations

import struct
from functools import lru_cache
from uuid import UUID

from lanner.model.errors import InvalidPropertyError

__all__ = ["MessageId"]

_UNIQUIFIER = struct.Struct("<I")
_MAX_UNIQUIFIER = 0xFFFFFFFF


@lru_cache(maxsize=1024)
def _lineage_text(lineage: bytes) -> str:
    return str(UUID(bytes_le=lineage))


class MessageId(bytes):
    """The 20 bytes of an OBJECTID: a lineage GUID and a number within it.

    It *is* its wire form, because an index of a million messages holds a million of them: as bytes
    each costs a third of a tuple of a UUID and an int, and hashes in C.
    Printed as MSMQ prints it: ``b6647b33-2870-471f-a78b-2e6b95f48b38\\17``.
    """

    __slots__ = ()

    LENGTH = 20

    @classmethod
    def of(cls, lineage: UUID, uniquifier: int) -> MessageId:
        """Make the identifier of the ``uniquifier``-th message of ``lineage``."""
        if not 0 <= uniquifier <= _MAX_UNIQUIFIER:
            raise InvalidPropertyError(f"message number {uniquifier} does not fit in 32 bits")
        return cls(lineage.bytes_le + _UNIQUIFIER.pack(uniquifier))

    @classmethod
    def from_bytes20(cls, data: bytes) -> MessageId:
        """Read the wire form."""
        if len(data) != cls.LENGTH:
            raise InvalidPropertyError(f"a message identifier has 20 bytes, not {len(data)}")
        return cls(data)

    @classmethod
    def parse(cls, text: str) -> MessageId:
        """Read the printed form."""
        lineage, separator, number = text.strip().strip("{}").rpartition("\\")
        try:
            if not separator or not number.isascii() or not number.isdigit():
                raise ValueError(text)
            return cls.of(UUID(lineage), int(number))
        except ValueError:
            raise InvalidPropertyError(
                f"{text!r} is not a message identifier",
                hint="write a GUID, a backslash and a number: 12345678-1234-1234-1234-123456789abc\\1",
            ) from None

    @property
    def lineage(self) -> UUID:
        """The GUID of the queue manager that gave the identifier out."""
        return UUID(bytes_le=self[:16])

    @property
    def uniquifier(self) -> int:
        """The number within the lineage."""
        return int(_UNIQUIFIER.unpack_from(self, 16)[0])

    def __str__(self) -> str:
        return f"{_lineage_text(self[:16])}\\{_UNIQUIFIER.unpack_from(self, 16)[0]}"

    def __repr__(self) -> str:
        return f"MessageId({str(self)!r})"
