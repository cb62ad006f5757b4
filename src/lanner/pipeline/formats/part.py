"""What each kind of file has to offer, and the parts that it is read in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple, Protocol

import pyarrow
from pyspark.sql.datasource import InputPartition

from lanner.pipeline.filters import RowFilter

__all__ = ["ROWS_PER_PART", "FileFormat", "FilePart", "Origin", "origin_in"]

ROWS_PER_PART = 524_288
"""What one task reads, unless ``minPartitions`` wants smaller parts."""


class Origin(NamedTuple):
    """Whose history a file is, as far as it is known."""

    manager: str
    id: str | None = None


@dataclass(frozen=True)
class FilePart(InputPartition):
    """From ``first`` up to but without ``end``: bytes of a file of lines, else groups of rows."""

    file: str
    origin: Origin
    first: int
    end: int


def origin_in(metadata: Mapping[bytes, bytes] | None) -> Origin | None:
    """Whose history a file is, by what ``lanner history export`` wrote into its schema."""
    known = metadata or {}
    manager, identifier = known.get(b"lanner.manager"), known.get(b"lanner.manager_id")
    if manager is None or identifier is None:
        return None
    return Origin(manager.decode("utf-8", "replace"), identifier.decode("ascii", "replace"))


class FileFormat(Protocol):
    """One kind of file."""

    suffixes: ClassVar[tuple[str, ...]]

    def tells_manager(self, file: Path, /) -> bool:
        """Whether the rows may say themselves which manager they are of."""

    def origin(self, file: Path, /) -> Origin | None:
        """What the file as a whole says of that."""

    def cut(self, file: Path, parts: int, wanted: RowFilter, /) -> Iterator[tuple[int, int]]:
        """Cut a file into at least so many parts, if it can be, that may have rows that are wanted."""

    def read(self, part: FilePart, schema: pyarrow.Schema, /) -> Iterator[pyarrow.RecordBatch]:
        """Read one part."""
