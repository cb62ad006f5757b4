"""Reading what a command is given as a file or through a pipe."""

from __future__ import annotations

import sys
from pathlib import Path

from lanner.model.errors import InvalidPropertyError

__all__ = ["MAX_INPUT_BYTES", "read_input"]

MAX_INPUT_BYTES = 16 * 1024 * 1024
"""Three times the largest request there can be: a larger file holds something else, or many of them."""


def read_input(file: str) -> bytes:
    """Read a file, or standard input for ``-``."""
    name = "standard input" if file == "-" else file
    try:
        # One byte more than is allowed tells: a pipe or a device has no size to ask for.
        if file == "-":
            data = sys.stdin.buffer.read(MAX_INPUT_BYTES + 1)
        else:
            with Path(file).open("rb") as opened:
                data = opened.read(MAX_INPUT_BYTES + 1)
    except OSError as error:
        raise InvalidPropertyError(f"cannot read {name}: {error.strerror or error}") from error
    except ValueError as error:  # a name with a NUL in it
        raise InvalidPropertyError(f"cannot read {name!r}: {error}") from error
    if len(data) > MAX_INPUT_BYTES:
        raise InvalidPropertyError(
            f"{name} is larger than {MAX_INPUT_BYTES:,} bytes", hint="give what is meant alone"
        )
    return data
