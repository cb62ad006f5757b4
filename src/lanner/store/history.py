"""Reading and keeping the history: ranges of LSNs, registered readers, retention."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

import msgspec

from lanner.model.errors import InvalidPropertyError, LannerError, StoreDamagedError
from lanner.model.history import HistoryRow
from lanner.store.writer import Writer

if TYPE_CHECKING:
    import pyarrow

__all__ = ["History", "HistoryReader"]

T = TypeVar("T")

BATCH_ROWS = 4096
"""Rows of one Arrow batch: Spark likes 1,000 to 8,000."""

TRIM_SLICE_BLOCKS = 100
"""Blocks that one slice of retention deletes, so that commits come in between."""

MAX_READER_NAME = 128

BLOCKS_AT_ONCE = 1024 * 1024
"""Bytes of blocks that one reading gathers."""

_SELECT_RANGE = """
    SELECT first, last, data FROM history
    WHERE first >= coalesce((SELECT max(first) FROM history WHERE first <= :first), 0) AND first <= :last
    ORDER BY first"""

_decoder = msgspec.msgpack.Decoder(list[HistoryRow])
_encoder = msgspec.msgpack.Encoder()


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
        last = min(last, first + limit - 1, self.last_lsn)
        if first > last:
            return []
        return await self._read(lambda connection: _range(connection, first, last))

    async def of_message(self, message_id: str) -> list[HistoryRow]:
        """Read everything that happened to one message here."""
        needle = message_id.encode()

        def work(connection: sqlite3.Connection) -> list[HistoryRow]:
            # Looking for the bytes is a hundred times faster than decoding every block.
            found: list[HistoryRow] = []
            for (data,) in connection.execute("SELECT data FROM history ORDER BY first"):
                if needle in data:
                    found.extend(row for row in _rows(data) if row.message_id == message_id)
            return found

        return await self._read(work)

    async def batches(
        self, first: int, last: int, *, rows: int = BATCH_ROWS, bodies: bool = True
    ) -> AsyncIterator[pyarrow.RecordBatch]:
        """Read a range as Arrow record batches, without bodies if they are not wanted.

        The same range gives the same rows, always. What retention has dropped is not in it: compare with
        :meth:`first_lsn`.
        """
        rows = max(rows, 1)
        last = min(last, self.last_lsn)
        first = max(first, await self.first_lsn())
        while first <= last:
            end = min(first + rows - 1, last)
            batch = await self._read(partial(_as_arrow, first=first, last=end, bodies=bodies))
            if batch.num_rows:
                yield batch
            first = end + 1

    async def blocks(self, first: int, last: int, *, bodies: bool = True) -> AsyncIterator[list[bytes]]:
        """Read a range as it is kept: each block a MessagePack list of rows, some blocks at a time.

        This costs a manager a tenth of :meth:`batches`: whoever reads decodes.
        """
        last = min(last, self.last_lsn)
        first = max(first, await self.first_lsn())
        while first <= last:
            some, first = await self._read(partial(_kept_blocks, first=first, last=last, bodies=bodies))
            yield some

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
        keep = 1
        if before is not None:
            keep = max(keep, await self._first_since(before))
        if max_bytes is not None:
            keep = max(keep, await self._first_within(max_bytes))
        dropped = 0
        while True:
            count = await self._writer.call(_trim_slice(keep - 1))
            if not count:
                return dropped
            dropped += count

    async def _first_since(self, before: float) -> int:
        # LSNs go up as time does, but for clocks that were set back: the first row that is young
        # enough keeps everything behind it, so nothing young is ever dropped.
        def work(connection: sqlite3.Connection) -> int:
            for (data,) in connection.execute("SELECT data FROM history ORDER BY first"):
                for row in _rows(data):
                    if row.time >= before:
                        return row.lsn
            return self.last_lsn + 1

        return await self._read(work)

    async def _first_within(self, max_bytes: int) -> int:
        def work(connection: sqlite3.Connection) -> int:
            room = max_bytes
            for last, size in connection.execute(
                "SELECT last, length(data) FROM history ORDER BY first DESC"
            ):
                room -= size
                if room < 0:
                    return int(last) + 1
            return 1

        return await self._read(work)


def _range(connection: sqlite3.Connection, first: int, last: int) -> list[HistoryRow]:
    return [row for block in _blocks(connection, first, last, _decoder.decode) for row in block]


def _rows(data: bytes) -> list[HistoryRow]:
    return _decode(data, _decoder.decode)


def _as_arrow(connection: sqlite3.Connection, *, first: int, last: int, bodies: bool) -> pyarrow.RecordBatch:
    from lanner.model import history_arrow as arrow  # pyarrow is an extra: only whoever asks for it needs it

    return arrow.from_blocks(_blocks(connection, first, last, arrow.decode_block), bodies=bodies)


def _kept_blocks(
    connection: sqlite3.Connection, *, first: int, last: int, bodies: bool
) -> tuple[list[bytes], int]:
    """Some blocks of a range, cut to it, and the LSN that follows them."""
    found: list[bytes] = []
    size = 0
    with closing(connection.execute(_SELECT_RANGE, {"first": first, "last": last})) as blocks:
        for begin, end, data in blocks:
            is_whole = first <= begin and end <= last
            kept = data if is_whole and bodies else _cut(data, first - begin, last + 1 - begin, bodies=bodies)
            found.append(kept)
            size += len(kept)
            if size >= BLOCKS_AT_ONCE:
                return found, int(end) + 1
    return found, last + 1


def _cut(data: bytes, start: int, stop: int, *, bodies: bool) -> bytes:
    rows = _rows(data)[max(start, 0) : stop]
    if not bodies:
        for row in rows:
            row.body = None
    return _encoder.encode(rows)


def _blocks(
    connection: sqlite3.Connection, first: int, last: int, decode: Callable[[bytes], list[T]]
) -> Iterator[list[T]]:
    """The rows of a range, block by block. LSNs are dense, so a row's place in its block tells its own."""
    for begin, _, data in connection.execute(_SELECT_RANGE, {"first": first, "last": last}):
        yield _decode(data, decode)[max(first - begin, 0) : last + 1 - begin]


def _decode(data: bytes, decode: Callable[[bytes], list[T]]) -> list[T]:
    try:
        return decode(data)
    except ValueError as error:  # msgspec's errors are ValueErrors
        raise StoreDamagedError(f"a block of the history cannot be read: {error}") from error


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
        # Blocks go whole: one that holds a row to be kept is kept. The readers are asked here, because
        # one may register between two slices.
        confirmed = connection.execute("SELECT min(confirmed) FROM reader").fetchone()[0]
        limit = last if confirmed is None else min(last, confirmed)
        blocks = connection.execute(
            "SELECT first, last FROM history WHERE first <= ? AND last <= ? ORDER BY first LIMIT ?",
            (limit, limit, TRIM_SLICE_BLOCKS),
        ).fetchall()
        if not blocks:
            return 0
        first, end = blocks[0][0], blocks[-1][1]
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("DELETE FROM history WHERE first <= ?", (end,))
        connection.execute("UPDATE meta SET value = ? WHERE key = 'first_lsn'", (end + 1,))
        connection.execute("COMMIT")
        return int(end) - int(first) + 1

    return work
