"""The history as it goes over the API."""

from __future__ import annotations

import struct
from typing import Annotated, Literal

from msgspec import Meta

from lanner.schema.base import In, Lsn, Out

BLOCK_LENGTH = struct.Struct(">I")
"""What stands before each block."""

MAX_BLOCK = 64 * 1024 * 1024
"""Octets of a block: it has at most 16 MB of bodies, or one, and 4,096 rows."""


class HistoryRequest(In, frozen=True, kw_only=True):
    """A range of LSNs, both ends included."""

    first: Lsn = 1
    last: Lsn | None = None
    format: Literal["jsonl", "arrow", "blocks"] = "jsonl"
    """``blocks`` is how the store keeps rows, which costs the manager next to nothing: a length of 4 octets,
    the highest first, then a MessagePack list of rows, each a list of its columns; and so on."""
    bodies: bool = True
    """Whether the rows bring the bodies that the history has."""


class HistoryStatus(Out, frozen=True, kw_only=True):
    """How far the history goes."""

    first_lsn: int
    last_lsn: int
    readers: tuple[ReaderOut, ...]


class ReaderOut(Out, frozen=True, kw_only=True):
    """One who reads the history."""

    name: str
    confirmed: int
    registered: float
    seen: float


class ReaderRequest(In, frozen=True, kw_only=True):
    """A reader by its name."""

    name: Annotated[str, Meta(min_length=1, max_length=128)]


class ConfirmRequest(ReaderRequest, frozen=True, kw_only=True):
    """How far a reader has got."""

    lsn: Lsn
