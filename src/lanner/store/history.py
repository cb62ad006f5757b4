"""Reading and keeping the history: ranges of LSNs, registered readers, retention."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from lanner.model.errors import InvalidPropertyError, LannerError
from lanner.model.history import HISTORY_COLUMNS, HistoryRow
from lanner.store.writer import Writer

if TYPE_CHECKING:
    import pyarrow

__all__ = ["History", "HistoryReader"]

T = TypeVar("T")

BATCH_ROWS = 4096
"""Rows of one Arrow batch: Spark likes 1,000 to 8,000."""

TRIM_SLICE_ROWS = 10_000
"""Rows that one slice of retention deletes, so that commits come in between."""

ROW_OVERHEAD = 160
"""Bytes that a history row takes without its body, measured; what retention by size reckons with."""

MAX_READER_NAME = 128

_COLUMNS = ", ".join(
    {"lookup_id": "lookup", "message_class": "class"}.get(column, column) for column in HISTORY_COLUMNS
)
_SELECT_RANGE = f"SELECT {_COLUMNS} FROM history WHERE lsn BETWEEN ? AND ? ORDER BY lsn LIMIT ?"  # noqa: S608
_SELECT_MESSAGE = f"SELECT {_COLUMNS} FROM history WHERE message_id = ? ORDER BY lsn"  # noqa: S608


class HistoryReader(NamedTuple):
    """One who reads the history, and how far."""

    name: str
    confirmed: int
    registered: float
    seen: float


class _Read(Protocol):
    def __call__(self, work: Callable[[sqlite3.Connection], T]) -> Awaitable[T]: ...


class History:
    """The history of one store."""

    def __init__(self, writer: Writer, read: _Read) -> None:
        self._writer = writer
        self._read = read

    @property
    def last_lsn(self) -> int:
        """The last LSN that is durable; 0 when there is none."""
        return self._writer.last_lsn

    async def first_lsn(self) -> int:
        """The first LSN that retention has kept."""
        return await self._read(_first_lsn)

    async def rows(self, first: int, last: int, *, limit: int = BATCH_ROWS) -> list[HistoryRow]:
        """Read a range, both ends included, at most ``limit`` rows of it."""

        def work(connection: sqlite3.Connection) -> list[HistoryRow]:
            return [HistoryRow._make(row) for row in connection.execute(_SELECT_RANGE, (first, last, limit))]

        return await self._read(work)

    async def of_message(self, message_id: str) -> list[HistoryRow]:
        """Read everything that happened to one message here."""

        def work(connection: sqlite3.Connection) -> list[HistoryRow]:
            return [HistoryRow._make(row) for row in connection.execute(_SELECT_MESSAGE, (message_id,))]

        return await self._read(work)

    async def batches(
        self, first: int, last: int, *, rows: int = BATCH_ROWS
    ) -> AsyncIterator[pyarrow.RecordBatch]:
        """Read a range as Arrow record batches. The same range gives the same rows, always."""
        from lanner.store import arrow  # pyarrow is an extra: only whoever asks for Arrow needs it

        last = min(last, self.last_lsn)
        while first <= last:
            chunk = await self.rows(first, last, limit=rows)
            if not chunk:
                return
            yield arrow.record_batch(chunk)
            first = chunk[-1].lsn + 1

    # Readers.

    async def register(self, name: str, now: float) -> HistoryReader:
        """Remember a reader, so that nothing it has not confirmed is trimmed. Known already: no change."""
        if not name or len(name) > MAX_READER_NAME:
            raise InvalidPropertyError(f"a reader's name has 1 to {MAX_READER_NAME} characters")

        def work(connection: sqlite3.Connection) -> HistoryReader:
            connection.execute(
                "INSERT INTO reader SELECT ?, value - 1, ?, ? FROM meta WHERE key = 'first_lsn' "
                "ON CONFLICT (name) DO UPDATE SET seen = excluded.seen",
                (name, now, now),
            )
            return _reader(connection, name)

        return await self._writer.call(work)

    async def confirm(self, name: str, lsn: int, now: float) -> HistoryReader:
        """Note that a reader has everything up to ``lsn`` and will not ask for it again."""
        if lsn > self.last_lsn:
            raise InvalidPropertyError(f"LSN {lsn} is not written yet; the last one is {self.last_lsn}")

        def work(connection: sqlite3.Connection) -> HistoryReader:
            connection.execute(
                "UPDATE reader SET confirmed = max(confirmed, ?), seen = ? WHERE name = ?", (lsn, now, name)
            )
            return _reader(connection, name)

        return await self._writer.call(work)

    async def forget(self, name: str) -> None:
        """Forget a reader: retention no longer waits for it."""

        def work(connection: sqlite3.Connection) -> None:
            _reader(connection, name)
            connection.execute("DELETE FROM reader WHERE name = ?", (name,))

        await self._writer.call(work)

    async def readers(self) -> list[HistoryReader]:
        """List the registered readers."""

        def work(connection: sqlite3.Connection) -> list[HistoryReader]:
            query = "SELECT name, confirmed, registered, seen FROM reader ORDER BY name"
            return [HistoryReader._make(row) for row in connection.execute(query)]

        return await self._read(work)

    # Retention.

    async def trim(self, *, before: float | None, max_bytes: int | None) -> int:
        """Drop rows from the front that are older than ``before`` or beyond ``max_bytes``.

        Stops at the first row that a registered reader has not confirmed. Returns the number of rows.
        """
        limit = self.last_lsn
        for reader in await self.readers():
            limit = min(limit, reader.confirmed)
        keep = 1
        if before is not None:
            keep = max(keep, await self._first_since(before))
        if max_bytes is not None:
            keep = max(keep, await self._first_within(max_bytes))
        last = min(limit, keep - 1)
        dropped = 0
        while True:
            count = await self._writer.call(_trim_slice(last))
            if not count:
                return dropped
            dropped += count

    async def _first_since(self, before: float) -> int:
        # LSNs go up as time does, but for clocks that were set back: the first row that is young
        # enough keeps everything behind it, so nothing young is ever dropped.
        def work(connection: sqlite3.Connection) -> int:
            row = connection.execute(
                "SELECT lsn FROM history WHERE time >= ? ORDER BY lsn LIMIT 1", (before,)
            ).fetchone()
            return int(row[0]) if row else self.last_lsn + 1

        return await self._read(work)

    async def _first_within(self, max_bytes: int) -> int:
        def work(connection: sqlite3.Connection) -> int:
            room = max_bytes
            for lsn, body in connection.execute("SELECT lsn, length(body) FROM history ORDER BY lsn DESC"):
                room -= ROW_OVERHEAD + (body or 0)
                if room < 0:
                    return int(lsn) + 1
            return 1

        return await self._read(work)


def _first_lsn(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT value FROM meta WHERE key = 'first_lsn'").fetchone()[0])


def _reader(connection: sqlite3.Connection, name: str) -> HistoryReader:
    row = connection.execute(
        "SELECT name, confirmed, registered, seen FROM reader WHERE name = ?", (name,)
    ).fetchone()
    if row is None:
        raise LannerError(f"no history reader is called {name!r}", hint="register it first")
    return HistoryReader._make(row)


def _trim_slice(last: int) -> Callable[[sqlite3.Connection], int]:
    def work(connection: sqlite3.Connection) -> int:
        first = _first_lsn(connection)
        end = min(last, first + TRIM_SLICE_ROWS - 1)
        if end < first:
            return 0
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("DELETE FROM history WHERE lsn <= ?", (end,))
        connection.execute("UPDATE meta SET value = ? WHERE key = 'first_lsn'", (end + 1,))
        connection.execute("COMMIT")
        return end - first + 1

    return work
