"""The tables, and the way from each older format to the next (docs/store-format.md)."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping

__all__ = ["APPLICATION_ID", "FORMAT_VERSION", "MIGRATIONS", "create", "migrate"]

APPLICATION_ID = 0x4C4E4E52
"""``LNNR``: marks a file as a queue manager's store."""

FORMAT_VERSION = 1

_TABLES = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID",
    """CREATE TABLE queue (
        id INTEGER PRIMARY KEY, kind TEXT NOT NULL, path TEXT NOT NULL, parent INTEGER,
        record TEXT NOT NULL, security BLOB)""",
    """CREATE TABLE message (
        lookup INTEGER PRIMARY KEY, queue INTEGER NOT NULL, id BLOB NOT NULL, correlation BLOB,
        size INTEGER NOT NULL, class INTEGER NOT NULL, flags INTEGER NOT NULL,
        arrived REAL NOT NULL, expires REAL, aborts INTEGER NOT NULL,
        segment INTEGER NOT NULL, start INTEGER NOT NULL, length INTEGER NOT NULL)""",
    "CREATE TABLE segment (id INTEGER PRIMARY KEY, data BLOB NOT NULL)",
    "CREATE TABLE history (first INTEGER PRIMARY KEY, last INTEGER NOT NULL, data BLOB NOT NULL)",
    """CREATE TABLE reader (
        name TEXT PRIMARY KEY, confirmed INTEGER NOT NULL, registered REAL NOT NULL, seen REAL NOT NULL)
        WITHOUT ROWID""",
    "CREATE TABLE outcome (key TEXT PRIMARY KEY, value TEXT NOT NULL, time REAL NOT NULL) WITHOUT ROWID",
    "CREATE INDEX outcome_time ON outcome (time)",
    """CREATE TABLE state (
        scope TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL, PRIMARY KEY (scope, key))
        WITHOUT ROWID""",
)

MIGRATIONS: Mapping[int, Callable[[sqlite3.Connection], None]] = {}
"""For each format below the current one: what turns it into the next."""


def create(connection: sqlite3.Connection) -> None:
    """Make the tables of the current format. The caller has begun a transaction."""
    for statement in _TABLES:
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {FORMAT_VERSION}")


def migrate(
    connection: sqlite3.Connection,
    found: int,
    *,
    target: int = FORMAT_VERSION,
    steps: Mapping[int, Callable[[sqlite3.Connection], None]] = MIGRATIONS,
) -> None:
    """Bring an older format up to ``target``, all of it or nothing."""
    if found == target:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for version in range(found, target):
            steps[version](connection)
        connection.execute(f"PRAGMA user_version = {target}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # a full disk may have ended it already
            connection.execute("ROLLBACK")
        raise
