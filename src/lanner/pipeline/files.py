"""Reading exported histories: Parquet, Arrow or JSON lines, one file or many.

Whose history a file is stands in its column ``manager``, else in its schema's metadata, where ``lanner
history export`` puts it, else in the part ``manager=NAME`` of its path, else it is the file's own name
without the suffix.
"""

from __future__ import annotations

import glob
from collections.abc import Iterator
from pathlib import Path

import pyarrow

from lanner.model.errors import LannerError
from lanner.pipeline.batches import pieces
from lanner.pipeline.errors import InvalidOptionError
from lanner.pipeline.filters import RowFilter
from lanner.pipeline.formats import FORMATS, FileFormat, FilePart, Origin, format_of

__all__ = ["plan_files", "read_file"]


def plan_files(path: str, min_partitions: int, wanted: RowFilter) -> list[FilePart]:
    """Cut the files at a path into parts."""
    files = [(file, form, _origin_of(file, form)) for file, form in _find(path)]
    chosen = [
        (file, form, origin)
        for file, form, origin in files
        if wanted.takes_manager(origin.manager, origin.id) or form.tells_manager(file)
    ]
    each = -(-min_partitions // max(len(chosen), 1))
    return [
        FilePart(str(file), origin, first, end)
        for file, form, origin in chosen
        for first, end in form.cut(file, each, wanted)
    ]


def read_file(part: FilePart, schema: pyarrow.Schema, wanted: RowFilter) -> Iterator[pyarrow.RecordBatch]:
    """Give the rows of a part."""
    form = format_of(part.file)
    assert form is not None
    try:
        for batch in form.read(part, schema):
            yield from pieces(wanted.apply(batch))
    except (pyarrow.ArrowInvalid, ValueError) as error:
        raise LannerError(f"{part.file} is no history: {error}", hint="export it again") from error


def _find(path: str) -> list[tuple[Path, FileFormat]]:
    matches = [Path(name) for name in sorted(glob.glob(path))]  # noqa: PTH207  # absolute or not
    files: list[Path] = []
    for match in matches or [Path(path)]:
        files.extend(sorted(_below(match)) if match.is_dir() else [match])
    if not files or not all(file.exists() for file in files):
        raise InvalidOptionError(
            f"there is no history at {path}", hint="export one: lanner history export FILE"
        )
    return [(file, _known_format(file)) for file in files]


def _known_format(file: Path) -> FileFormat:
    form = format_of(file.name)
    if form is None:
        suffixes = ", ".join(suffix for one in FORMATS for suffix in one.suffixes)
        raise InvalidOptionError(
            f"{file} is neither Parquet nor Arrow nor JSON lines", hint=f"its name may end in {suffixes}"
        )
    return form


def _below(directory: Path) -> Iterator[Path]:
    # As everywhere in Spark's world, a name that begins with . or _ is no data.
    for file in directory.rglob("*"):
        if file.is_file() and not any(part[0] in "._" for part in file.relative_to(directory).parts):
            yield file


def _origin_of(file: Path, form: FileFormat) -> Origin:
    return form.origin(file) or Origin(_manager_in(file))


def _manager_in(file: Path) -> str:
    for part in file.parts:
        if part.startswith("manager="):
            return part.removeprefix("manager=")
    return file.stem
