"""The marker: a small file that says that a store was made in this directory.

A database that is empty or not there is what a first start finds, and what a first start that was killed
leaves behind; but also what is left when the file was lost. Only something outside of the file can tell
one from the other: the marker is written after the first commit of a new database is safe, so where it is
there was a store. It holds the manager's identifier, for whoever looks for the backup that belongs here.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from uuid import UUID

from lanner.model.errors import StoreDamagedError
from lanner.store.files import sync, translate_file_error

__all__ = ["MARKER_NAME", "ensure", "refuse_log_alone", "refuse_lost"]

MARKER_NAME = "lanner.id"

MAX_BYTES = 64
"""An identifier has 36; whatever else is in the file is not read."""


def ensure(directory: Path, identifier: UUID) -> None:
    """Write the marker, unless it is there: for a new store, an older one, or another one's backup."""
    path = directory / MARKER_NAME
    text = f"{identifier}\n"
    if _read(path) == text.strip():
        return
    unfinished = path.with_name(path.name + ".unfinished")
    try:
        # The database's own entry must not be lost where the marker's is kept.
        sync(directory)
        unfinished.write_text(text, "ascii")
        sync(unfinished)
        unfinished.rename(path)
        sync(directory)
    except OSError as error:
        with suppress(OSError):
            unfinished.unlink()
        raise translate_file_error(error, f"cannot write {path}") from error


def refuse_lost(database: Path) -> None:
    """Refuse to make a new database where there was one before."""
    marker = database.with_name(MARKER_NAME)
    if os.path.lexists(marker):
        raise StoreDamagedError(
            f"{database} is empty or missing, but {marker} says that it held the queue manager "
            f"{_read(marker) or 'of an unknown identifier'}",
            hint=f"put a backup in its place, or remove {marker} to start anew with nothing",
        )


def refuse_log_alone(database: Path) -> None:
    """Refuse a log whose database is gone.

    SQLite makes the log after the database's first page, so no first start leaves this behind; and it
    would delete a log without a database.
    """
    log = database.with_name(database.name + "-wal")
    if log.exists() and log.stat().st_size:
        raise StoreDamagedError(
            f"{database} is empty or missing, but its log {log} is not",
            hint=f"put a backup in its place, or move {log} away to start anew with nothing",
        )


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES).decode("ascii", "replace").strip()
    except OSError:
        return ""
