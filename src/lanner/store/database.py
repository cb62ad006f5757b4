"""Opening the file: the lock, the pragmas, the checks, and what SQLite's errors mean."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from lanner.model.errors import (
    StoreDamagedError,
    StoreError,
    StoreFullError,
    StoreInUseError,
    StoreTooNewError,
)
from lanner.store import marker, schema

__all__ = [
    "DATABASE_NAME",
    "DirectoryLock",
    "is_about_rows",
    "is_fatal",
    "open_checkpointer",
    "open_read_only",
    "open_reader",
    "open_writer",
    "translate",
]

DATABASE_NAME = "lanner.db"
LOCK_NAME = "lanner.lock"

BUSY_TIMEOUT = 10.0
"""Seconds. Only a person with a sqlite3 shell can make the writer wait at all."""

PAGE_BYTES = 4096
CACHE_KILOBYTES = 16 * 1024
CHECKPOINT_PAGES = 32_000
"""128 MB of log: only when the checkpointer cannot keep up does a commit have to do its work."""

_SQLITE_BUSY = 5
_SQLITE_READONLY = 8
_SQLITE_CORRUPT = 11
_SQLITE_FULL = 13
_SQLITE_TOOBIG = 18
_SQLITE_CONSTRAINT = 19
_SQLITE_MISMATCH = 20
_SQLITE_NOTADB = 26

_PYTHON_ERROR = 0
"""What an error has for a code that SQLite knows nothing of: a value that could not be bound."""

_ROW_ERRORS = (_PYTHON_ERROR, _SQLITE_TOOBIG, _SQLITE_CONSTRAINT, _SQLITE_MISMATCH)


class DirectoryLock:
    """Keeps a second manager off the same directory. Freed by the kernel when the process ends."""

    def __init__(self, directory: Path) -> None:
        path = directory / LOCK_NAME
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise StoreError(
                f"cannot write to {directory}: {error.strerror}",
                hint="give the queue manager a directory that it may write to",
            ) from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.read(self._descriptor, 32).decode("ascii", "replace").strip()
            os.close(self._descriptor)
            raise StoreInUseError(
                f"{directory} is in use by another queue manager (process {holder or 'unknown'})",
                hint="stop it first, or choose another directory",
            ) from None
        try:
            os.ftruncate(self._descriptor, 0)
            os.write(self._descriptor, b"%d\n" % os.getpid())
        except OSError as error:
            os.close(self._descriptor)
            raise StoreFullError(
                f"cannot write to {path}: {error.strerror}", hint="free some space on the disk"
            ) from error

    def release(self) -> None:
        """Let the next manager in."""
        os.close(self._descriptor)


def open_writer(path: Path) -> sqlite3.Connection:
    """Open, and if need be make or migrate, the database. Raises rather than touch a file it cannot trust."""
    try:
        is_new = _inspect(path)
        connection = _connect(path)
        try:
            _prepare(connection, is_new)
        except BaseException:
            connection.close()
            raise
    except sqlite3.Error as error:
        raise translate(error, path) from error
    return connection


def open_reader(path: Path) -> sqlite3.Connection:
    """Open a second connection that can only read."""
    connection = _connect(path)
    connection.execute("PRAGMA query_only = 1")
    return connection


def open_read_only(path: Path, *, mode: str = "ro") -> sqlite3.Connection:
    """Open a connection that does not even copy the log back when it is closed."""
    uri = f"file:{quote(str(path))}?mode={mode}"
    return sqlite3.connect(uri, uri=True, isolation_level=None, timeout=BUSY_TIMEOUT)


def open_checkpointer(path: Path) -> sqlite3.Connection:
    """Open a connection that copies the log back and does nothing else."""
    connection = _connect(path)
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def quick_check(connection: sqlite3.Connection, path: Path) -> None:
    """Look at every page after an unclean stop."""
    try:
        findings = [row[0] for row in connection.execute("PRAGMA quick_check(5)")]
    except sqlite3.Error as error:
        raise translate(error, path) from error
    if findings != ["ok"]:
        raise _damaged(path, "; ".join(str(finding) for finding in findings))


def translate(error: Exception, path: Path) -> StoreError:
    """Turn SQLite's error into ours: what happened, and what to do."""
    code = _code(error)
    if code == _SQLITE_FULL:
        return StoreFullError(
            f"the disk that holds {path} is full",
            hint="free some space: nothing was lost, and sending resumes",
        )
    if code in (_SQLITE_CORRUPT, _SQLITE_NOTADB):
        return _damaged(path, str(error))
    if code == _SQLITE_READONLY:
        return StoreError(f"{path} is read-only", hint="make it writable for the queue manager's user")
    return StoreError(f"the store at {path} failed: {error}")


def is_fatal(error: Exception) -> bool:
    """Whether nobody can know any more what is on the disk: everything but a clean refusal."""
    return _code(error) not in (_SQLITE_FULL, _SQLITE_BUSY, *_ROW_ERRORS)


def is_about_rows(error: Exception) -> bool:
    """Whether what was to be written was refused, and not the writing: other rows may do better."""
    return _code(error) in _ROW_ERRORS


def _code(error: Exception) -> int:
    return int(getattr(error, "sqlite_errorcode", _PYTHON_ERROR)) & 0xFF


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, isolation_level=None, timeout=BUSY_TIMEOUT, cached_statements=256, check_same_thread=False
    )
    connection.execute(f"PRAGMA cache_size = -{CACHE_KILOBYTES}")
    return connection


def _inspect(path: Path) -> bool:
    """Whether the file is still to be made. Raises if it cannot be trusted or was lost, and changes nothing.

    A connection that may write copies the log back when it is closed: not what to do to a damaged file.
    """
    if not path.exists() or path.stat().st_size == 0:
        marker.refuse_lost(path)
        marker.refuse_log_alone(path)
        return True
    # A first start that was cut short may leave a rollback journal: then to read is to roll back.
    mode = "rw" if path.with_name(path.name + "-journal").exists() else "ro"
    with closing(open_read_only(path, mode=mode)) as connection:
        if _is_empty(connection):
            marker.refuse_lost(path)
            return True
        _check_header(connection, path)
        if not _is_clean(connection):
            quick_check(connection, path)
    return False


def _prepare(connection: sqlite3.Connection, is_new: bool) -> None:
    if is_new:
        # The page layout can be chosen only before the first page is written.
        connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
    if is_new:
        connection.execute("BEGIN IMMEDIATE")
        schema.create(connection)
        connection.execute("COMMIT")
    else:
        schema.migrate(connection, _pragma(connection, "user_version"))


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _is_empty(connection: sqlite3.Connection) -> bool:
    """Whether it is a database in which nothing was ever made, as a first start cut short leaves it."""
    return (
        _pragma(connection, "application_id") == 0
        and _pragma(connection, "user_version") == 0
        and connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
    )


def _is_clean(connection: sqlite3.Connection) -> bool:
    row = connection.execute("SELECT value FROM meta WHERE key = 'clean'").fetchone()
    return row is not None and row[0] == 1


def _check_header(connection: sqlite3.Connection, path: Path) -> None:
    if _pragma(connection, "application_id") != schema.APPLICATION_ID:
        raise _damaged(path, "it was not written by a queue manager")
    version = _pragma(connection, "user_version")
    if version < min(schema.MIGRATIONS, default=schema.FORMAT_VERSION):
        raise _damaged(path, f"there is no format {version}")
    if version > schema.FORMAT_VERSION:
        raise StoreTooNewError(
            f"{path} has format {version}; this Lanner knows formats up to {schema.FORMAT_VERSION}",
            hint="install the Lanner that wrote it, or a newer one",
        )


def _damaged(path: Path, finding: str) -> StoreDamagedError:
    return StoreDamagedError(
        f"{path} is damaged: {finding}",
        hint="nothing was changed: restore a backup into a new directory, and keep this file for recovery",
    )
