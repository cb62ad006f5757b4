"""The store as the manager sees it: submit changes, read messages, keep the history."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from uuid import UUID, uuid4

from lanner.model.errors import StoppedError, StoreError
from lanner.model.message import Message
from lanner.store import database, marker
from lanner.store.changes import Changes, QueueRow
from lanner.store.files import sync, translate_file_error
from lanner.store.history import History
from lanner.store.segments import SegmentReader, sparse_segments
from lanner.store.writer import GroupStatistics, Writer

__all__ = ["IndexRow", "Store", "StoreIdentity"]

T = TypeVar("T")

IndexRow = tuple[int, int, bytes, bytes | None, int, int, int, float | None, int]
"""lookup, queue, id, correlation, size, class, flags, expires, aborts."""

VACUUM_SLICE_PAGES = 2000
"""Pages given back between two commits: some 10 ms."""


class StoreIdentity(NamedTuple):
    """Whose store it is."""

    name: str
    identifier: UUID


class Store:
    """One directory's durable state. Open it with :meth:`open`; all methods belong to the event loop."""

    def __init__(self, directory: Path, lock: database.DirectoryLock, connection: sqlite3.Connection) -> None:
        self.directory = directory
        self.path = directory / database.DATABASE_NAME
        self._lock = lock
        self._is_closed = False
        self._reading = database.open_reader(self.path)
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="lanner-read")
        self._segments = SegmentReader(self._reading)
        meta = dict(connection.execute("SELECT key, value FROM meta"))
        self.identity = StoreIdentity(str(meta["name"]), UUID(str(meta["identifier"])))
        self.sequential = int(meta["sequential"])
        """No lookup identifier at or above this number has been used."""
        last_lsn = connection.execute("SELECT last FROM history ORDER BY first DESC LIMIT 1").fetchone()
        self._writer = Writer(connection, self.path, last_lsn[0] if last_lsn else int(meta["first_lsn"]) - 1)
        self.history = History(self._writer, self.read)

    @classmethod
    async def open(cls, directory: Path, *, name: str, now: float, identifier: UUID | None = None) -> Store:
        """Open the store, or make it; ``name`` and ``identifier`` count for a new one alone."""
        lock = database.DirectoryLock(directory)
        try:
            connection = await asyncio.to_thread(_prepare, directory, name, identifier, now)
            try:
                return cls(directory, lock, connection)
            except BaseException:
                connection.close()
                raise
        except sqlite3.Error as error:
            lock.release()
            raise database.translate(error, directory / database.DATABASE_NAME) from error
        except BaseException:
            lock.release()
            raise

    @property
    def statistics(self) -> GroupStatistics:
        """How well commits are shared."""
        return self._writer.statistics

    @property
    def backlog_rows(self) -> int:
        """Rows that were submitted and are not written yet."""
        return self._writer.backlog_rows

    # Reading at start.

    def queues(self) -> list[QueueRow]:
        """Read every queue."""
        return list(self._scan("SELECT id, kind, path, parent, record, security FROM queue ORDER BY id"))

    def index(self) -> Iterator[IndexRow]:
        """Read the index of every message, in the order of the queues."""
        return self._scan(
            "SELECT lookup, queue, id, correlation, size, class, flags, expires, aborts "
            "FROM message ORDER BY lookup"
        )

    def _scan(self, query: str) -> Iterator[Any]:
        try:
            yield from self._reading.execute(query)
        except sqlite3.Error as error:
            raise database.translate(error, self.path) from error

    # Writing.

    def submit(self, changes: Changes) -> None:
        """Make the changes durable; their callbacks tell how it ended."""
        self._writer.submit(changes)

    async def commit(self, changes: Changes) -> None:
        """Make the changes durable, and return when they are.

        Cancelling the caller does not cancel the commit: what was submitted happens, and the
        callbacks of the changes tell.
        """
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def tell() -> None:
            if not done.done():
                done.set_result(None)

        changes.on_applied.append(tell)
        changes.on_failed.append(tell)
        self._writer.submit(changes)
        await done
        if changes.error is not None:
            # The others of the group raise the same error: each with a traceback of its own.
            raise changes.error.with_traceback(None)

    async def flush(self) -> None:
        """Wait until everything that was submitted so far is written: history of express messages too."""
        if self.backlog_rows:
            await self._writer.call(lambda _: None)

    # Reading on demand, on a thread of its own.

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run a query on the reading connection."""
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._reader, work, self._reading)
        except sqlite3.Error as error:
            raise database.translate(error, self.path) from error
        except RuntimeError as error:
            if self._is_closed:
                raise StoppedError("the store is closed") from error
            raise

    async def messages(self, lookups: Sequence[int], *, bodies: bool = True) -> dict[int, Message]:
        """Read messages by lookup identifier; those that are not there are left out."""
        return await self.read(lambda _: self._segments.messages(lookups, bodies=bodies))

    async def outcome(self, key: str) -> bytes | None:
        """Read what an earlier send or transaction with this key came to."""

        def work(connection: sqlite3.Connection) -> bytes | None:
            row = connection.execute("SELECT value FROM outcome WHERE key = ?", (key,)).fetchone()
            return row[0] if row else None

        return await self.read(work)

    async def state(self, scope: str) -> dict[str, bytes]:
        """Read everything that a protocol has put under its scope."""

        def work(connection: sqlite3.Connection) -> dict[str, bytes]:
            return dict(connection.execute("SELECT key, value FROM state WHERE scope = ?", (scope,)))

        return await self.read(work)

    # Maintenance.

    async def forget_outcomes(self, before: float) -> int:
        """Drop the outcomes that nobody will ask for any more."""

        def work(connection: sqlite3.Connection) -> int:
            return connection.execute("DELETE FROM outcome WHERE time < ?", (before,)).rowcount

        return await self._writer.call(work)

    async def tidy(self) -> None:
        """Close the gaps in segments that are mostly dead. Cheap when there are none."""
        await self._writer.rewrite_segments(await self.read(sparse_segments))

    async def compact(self) -> int:
        """Close the gaps in segments and give unused pages back, a slice at a time between commits.

        Returns the number of bytes that the file became smaller by.
        """
        before = await self.read(_size)
        await self.tidy()
        while await self._writer.call(_vacuum_slice):
            pass
        await self._writer.call(_checkpoint)
        return before - await self.read(_size)

    async def backup(self, target: Path) -> int:
        """Write a consistent, compact copy of the store while it is in use. Returns its size in bytes."""
        unfinished = target.with_name(target.name + ".unfinished")

        def work() -> int:
            if target.exists():
                raise StoreError(f"{target} exists already", hint="name a file that does not exist yet")
            unfinished.unlink(missing_ok=True)
            with closing(database.open_read_only(self.path)) as connection:
                connection.execute("VACUUM INTO ?", (str(unfinished),))
            sync(unfinished)
            unfinished.rename(target)
            sync(target.parent)
            return target.stat().st_size

        try:
            return await asyncio.to_thread(work)
        except sqlite3.Error as error:
            raise database.translate(error, target) from error
        except OSError as error:
            raise translate_file_error(error, f"cannot write the backup {target}") from error
        finally:
            with suppress(OSError):
                unfinished.unlink()  # half a backup must not go on filling the disk

    async def close(self) -> None:
        """Finish what was submitted, note the clean stop, and let the directory go."""
        self._is_closed = True
        try:
            await self._finish()
        finally:
            self._reader.shutdown()
            self._reading.close()
            await self._writer.close()
            self._writer.disconnect()
            self._lock.release()

    async def _finish(self) -> None:
        clean = Changes()
        clean.meta.append(("clean", 1))
        await self.commit(clean)
        await self._writer.call(_checkpoint)


def _prepare(directory: Path, name: str, identifier: UUID | None, now: float) -> sqlite3.Connection:
    path = directory / database.DATABASE_NAME
    connection = database.open_writer(path)
    try:
        connection.execute("BEGIN IMMEDIATE")
        meta = dict(connection.execute("SELECT key, value FROM meta"))
        if not meta:
            marker.refuse_lost(path)
            meta = {
                "name": name,
                "identifier": str(identifier or uuid4()),
                "sequential": 1,
                "clean": 1,
                "first_lsn": 1,
                "created": now,
            }
        meta["clean"] = 0
        connection.executemany("INSERT OR REPLACE INTO meta VALUES (?,?)", meta.items())
        connection.execute("COMMIT")
        marker.ensure(directory, UUID(str(meta["identifier"])))
    except sqlite3.Error as error:
        connection.close()
        raise database.translate(error, path) from error
    except BaseException:
        connection.close()
        raise
    return connection


def _size(connection: sqlite3.Connection) -> int:
    # Not the file's own: much of the database may still be in the log.
    pages, size = connection.execute(
        "SELECT page_count, page_size FROM pragma_page_count, pragma_page_size"
    ).fetchone()
    return int(pages) * int(size)


def _vacuum_slice(connection: sqlite3.Connection) -> bool:
    connection.execute(f"PRAGMA incremental_vacuum({VACUUM_SLICE_PAGES})").fetchall()
    return bool(connection.execute("PRAGMA freelist_count").fetchone()[0])


def _checkpoint(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
