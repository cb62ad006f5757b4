"""Inserting many rows with few steps.

The sqlite3 module lets go of the interpreter's lock for each step of a statement, and a thread that lets go
of it may wait for milliseconds until it has it again. So rows are inserted by statements of several rows: one
step for each of those.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain

__all__ = ["insert_rows"]

CHUNKS = (64, 16, 4, 1)
"""Rows in one statement: few shapes, so that each stays prepared."""


def insert_rows(connection: sqlite3.Connection, statement: str, rows: Sequence[Sequence[object]]) -> None:
    """Insert rows with a statement that ends with VALUES."""
    start = 0
    left = len(rows)
    for size in CHUNKS:
        while left >= size:
            chunk = rows[start : start + size]
            values = tuple(chain.from_iterable(chunk))
            connection.execute(_with_places(statement, size, len(chunk[0])), values)
            start += size
            left -= size


@lru_cache(maxsize=64)
def _with_places(statement: str, rows: int, columns: int) -> str:
    row = f"({','.join('?' * columns)})"
    return f"{statement} {','.join([row] * rows)}"
