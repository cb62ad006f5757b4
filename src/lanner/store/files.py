"""Files beside the database: making them durable, and what the system's errors about them mean."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from lanner.model.errors import StoreError, StoreFullError

__all__ = ["sync", "translate_file_error"]


def sync(path: Path) -> None:
    """Wait until a file, or a directory's entries, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def translate_file_error(error: OSError, action: str) -> StoreError:
    """Turn the system's error about a file into ours; ``action`` says what could not be done."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreFullError(f"{action}: the disk is full", hint="free some space and try again")
    return StoreError(f"{action}: {error.strerror or error}")
