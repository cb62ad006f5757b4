"""A queue's name in the directory: short enough for a common name, and still the only one of its kind.

MS-MQDSSM 2.2.5, 3.1.6.1.2.5 and 3.1.6.11.2.1.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["StoredName", "hash_string", "restored_name", "stored_name"]

_MAX_WHOLE = 63
_FIRST_PART = 55
_SUFFIX_LENGTH = 9
_STORED_LENGTH = 64
_MARKED = frozenset("\r\n/#><=")
_POLYNOMIAL = 0x9B619023
"""Entry 128 of the specification's table: the table is that of a reflected CRC of 32 bits."""


class StoredName(NamedTuple):
    """The common name, and what did not fit into it (mSMQQueueNameExt)."""

    common_name: str
    extension: str


def stored_name(name: str) -> StoredName:
    """Split a queue's name for the directory."""
    # The backslashes are those of a distinguished name, and no part of the value; but they count
    # for the length and the hash, as the specification has it.
    marked = "".join(f"\\{one}" if one in _MARKED else one for one in name)
    if len(marked) <= _MAX_WHOLE:
        return StoredName(name, "")
    first = marked[:_FIRST_PART].replace("\\", "")
    return StoredName(f"{first}-{hash_string(marked)}", marked[_FIRST_PART:])


def restored_name(common_name: str, extension: str) -> str:
    """Put a queue's name together again."""
    # Deviations from 3.1.6.11.2.1. Marked characters make the common name shorter than 64, so the extension
    # counts as well; and backslashes leave the extension too, for no queue's name has them.
    if len(common_name) == _STORED_LENGTH or (extension and len(common_name) > _SUFFIX_LENGTH):
        common_name = common_name[:-_SUFFIX_LENGTH]
    return (common_name + extension).replace("\\", "")


def hash_string(name: str) -> str:
    """The hash of a name in lowercase: eight hexadecimal digits (MS-MQDSSM 2.2.5)."""
    units = name.lower().encode("utf-16-be")  # the high byte of each character comes first
    value = 0
    for byte in units:
        value = (value >> 8) ^ _TABLE[(value ^ byte) & 0xFF]
    return f"{value:08x}"


def _table_entry(index: int) -> int:
    value = index
    for _ in range(8):
        value = (value >> 1) ^ (_POLYNOMIAL if value & 1 else 0)
    return value


_TABLE = tuple(map(_table_entry, range(256)))
