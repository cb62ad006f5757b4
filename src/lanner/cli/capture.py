"""Reading a capture from a file or a pipe."""

from __future__ import annotations

import sys
from pathlib import Path

from lanner.model.errors import InvalidPropertyError

__all__ = ["MAX_CAPTURE_BYTES", "read_capture"]

MAX_CAPTURE_BYTES = 16 * 1024 * 1024
"""Three times the largest request there can be: a larger file holds something else, or many requests."""


def read_capture(file: str) -> bytes:
    """Read a file, or standard input for ``-``."""
    name = "standard input" if file == "-" else file
    try:
        # One byte more than is allowed tells: a pipe or a device has no size to ask for.
        if file == "-":
            data = sys.stdin.buffer.read(MAX_CAPTURE_BYTES + 1)
        else:
            with Path(file).open("rb") as opened:
                data = opened.read(MAX_CAPTURE_BYTES + 1)
    except OSError as error:
        raise InvalidPropertyError(f"cannot read {name}: {error.strerror or error}") from error
    except ValueError as error:  # a name with a NUL in it
        raise InvalidPropertyError(f"cannot read {name!r}: {error}") from error
    if len(data) > MAX_CAPTURE_BYTES:
        raise InvalidPropertyError(
            f"{name} is larger than {MAX_CAPTURE_BYTES:,} bytes", hint="cut one request out of it"
        )
    return data
