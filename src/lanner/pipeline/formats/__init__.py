"""The kinds of files that an exported history may be: Parquet, Arrow, lines of JSON."""

from __future__ import annotations

from lanner.pipeline.formats import arrow, json_lines, parquet
from lanner.pipeline.formats.part import FileFormat, FilePart, Origin

__all__ = ["FORMATS", "FileFormat", "FilePart", "Origin", "format_of"]

FORMATS: tuple[FileFormat, ...] = (parquet.ParquetFormat(), arrow.ArrowFormat(), json_lines.JsonLinesFormat())


def format_of(name: str) -> FileFormat | None:
    """The format of a file, by its suffix."""
    return next((one for one in FORMATS if name.endswith(one.suffixes)), None)
