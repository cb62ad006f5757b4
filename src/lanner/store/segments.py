"""Where message contents lie: many to a segment, so that a group of sends is one large write.

A segment is a row of one blob; an index row says where in it its content lies. The writer counts how
many messages still need each segment, and deletes a segment in the transaction that deletes the last
of them. A segment never changes; compaction copies what lives in mostly dead ones into new ones.
"""

from __future__ import annotations

import sqlite3
from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence

from lanner.model.errors import StoreDamagedError
from lanner.model.message import Message
from lanner.store.codec import ContentRecord, message_from_record

__all__ = ["SegmentReader", "SegmentWriter", "sparse_segments"]

SEGMENT_BYTES = 256 * 1024
"""A segment is closed when it has grown to this. Small enough to read whole, large enough to share."""

MAX_PARAMETERS = 500
"""Identifiers in one statement, so that few shapes of it have to be prepared."""

CACHED_BYTES = 4 * 1024 * 1024
"""Segments kept by the reader: whoever receives in order reads each of them once."""

SPARSE = 0.5
"""A segment with a smaller part of living content than this is worth rewriting."""

_INSERT_MESSAGE = "INSERT INTO message VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)"
_INSERT_SEGMENT = "INSERT INTO segment VALUES (?,?)"
_INSERT_ZEROS = "INSERT INTO segment VALUES (?, zeroblob(?))"
_DELETE_SEGMENT = "DELETE FROM segment WHERE id = ?"
_SELECT = """
    SELECT segment, start, length, lookup, id, correlation, class, arrived, aborts
    FROM message WHERE lookup IN ({})"""

_SELECT_LIVING = "SELECT segment, start, length, lookup FROM message WHERE segment IN ({})"


def _places(count: int) -> str:
    return ",".join("?" * count)


def _chunks(values: Sequence[int]) -> Iterable[Sequence[int]]:
    for start in range(0, len(values), MAX_PARAMETERS):
        yield values[start : start + MAX_PARAMETERS]


class SegmentWriter:
    """The writer's side; belongs to the writing thread and its connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._needed: Counter[int] = Counter(
            dict(connection.execute("SELECT segment, count(*) FROM message GROUP BY segment"))
        )
        self._next = 1 + (connection.execute("SELECT max(id) FROM segment").fetchone()[0] or 0)
        self._change: Counter[int] = Counter()
        self.bytes_written = 0
        """Contents written by the transaction that is under way."""

    def insert(self, rows: Sequence[tuple[object, ...]], records: Sequence[ContentRecord]) -> None:
        """Write index rows and their contents."""
        places = self._append(records)
        self._connection.executemany(
            _INSERT_MESSAGE, [(*row, *place) for row, place in zip(rows, places, strict=True)]
        )

    def delete(self, lookups: Sequence[int]) -> None:
        """Delete messages, and the segments that none needs any more."""
        left = self._change
        for chunk in _chunks(lookups):
            query = f"DELETE FROM message WHERE lookup IN ({_places(len(chunk))}) RETURNING segment"  # noqa: S608
            for (segment,) in self._connection.execute(query, chunk).fetchall():
                left[segment] -= 1
        dead = [(segment,) for segment, change in left.items() if self._needed[segment] + change <= 0]
        self._connection.executemany(_DELETE_SEGMENT, dead)

    def committed(self) -> None:
        """The transaction holds: so do the counts."""
        self._next += sum(1 for segment in self._change if segment >= self._next)
        self._needed.update(self._change)
        for segment in self._change:
            if self._needed[segment] <= 0:
                del self._needed[segment]
        self._change.clear()
        self.bytes_written = 0

    def rolled_back(self) -> None:
        """The transaction did not happen."""
        self._change.clear()
        self.bytes_written = 0

    def rewrite(self, segments: Sequence[int]) -> None:
        """Copy what lives in these segments into new ones, and delete them.

        New ones, because a reader may hold the contents of the old ones.
        """
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            living = sorted(connection.execute(_SELECT_LIVING.format(_places(len(segments))), segments))
            data = {
                segment: connection.execute("SELECT data FROM segment WHERE id = ?", (segment,)).fetchone()[0]
                for segment in {row[0] for row in living}
            }
            moved = [
                (*place, lookup)
                for (_, _, _, lookup), place in zip(
                    living,
                    self._append(
                        [data[segment][start : start + length] for segment, start, length, _ in living]
                    ),
                    strict=True,
                )
            ]
            connection.executemany("UPDATE message SET segment=?, start=?, length=? WHERE lookup=?", moved)
            for segment, *_ in living:
                self._change[segment] -= 1
            connection.executemany(_DELETE_SEGMENT, [(segment,) for segment in segments])
            connection.execute("COMMIT")
        except BaseException:
            self.rolled_back()
            if connection.in_transaction:  # a full disk may have ended it already
                connection.execute("ROLLBACK")
            raise
        self.committed()

    def _append(self, records: Sequence[ContentRecord]) -> list[tuple[int, int, int]]:
        """Write records into new segments, and say where each lies: segment, start, length."""
        places: list[tuple[int, int, int]] = []
        segment, start, parts = self._next, 0, list[ContentRecord]()
        for record in records:
            length = len(record) if isinstance(record, bytes) else sum(map(len, record))
            if length >= SEGMENT_BYTES and parts:  # the large one gets a segment of its own
                self._write(segment, parts)
                segment, start, parts = segment + 1, 0, []
            places.append((segment, start, length))
            parts.append(record)
            start += length
            if start >= SEGMENT_BYTES:
                self._write(segment, parts)
                segment, start, parts = segment + 1, 0, []
        if parts:
            self._write(segment, parts)
        return places

    def _write(self, segment: int, records: list[ContentRecord]) -> None:
        if len(records) == 1 and isinstance(records[0], tuple):
            self._write_pieces(segment, records[0])
        else:
            whole = [record if isinstance(record, bytes) else b"".join(record) for record in records]
            data = b"".join(whole)
            self.bytes_written += len(data)
            self._connection.execute(_INSERT_SEGMENT, (segment, data))
        self._change[segment] += len(records)

    def _write_pieces(self, segment: int, pieces: tuple[bytes, ...]) -> None:
        """Write a large record piece by piece: joining it and binding it would copy it twice."""
        size = sum(map(len, pieces))
        self.bytes_written += size
        self._connection.execute(_INSERT_ZEROS, (segment, size))
        with self._connection.blobopen("segment", "data", segment) as blob:
            for piece in pieces:
                blob.write(piece)


def sparse_segments(connection: sqlite3.Connection) -> list[int]:
    """Find the segments that are mostly dead."""
    query = """
        SELECT s.id FROM segment s
        JOIN (SELECT segment, sum(length) AS living FROM message GROUP BY segment) m
        ON m.segment = s.id WHERE m.living < length(s.data) * ?"""
    return [segment for (segment,) in connection.execute(query, (SPARSE,))]


class SegmentReader:
    """The reader's side; belongs to the reading thread and its connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._cached: OrderedDict[int, bytes] = OrderedDict()
        self._cached_bytes = 0

    def messages(self, lookups: Sequence[int], *, bodies: bool) -> dict[int, Message]:
        """Read messages; those that are not there are left out."""
        found: dict[int, Message] = {}
        # One snapshot for index and contents: a segment may be deleted or rewritten at any moment.
        self._connection.execute("BEGIN")
        try:
            for chunk in _chunks(lookups):
                for segment, start, length, *identity in self._connection.execute(
                    _SELECT.format(_places(len(chunk))), chunk
                ).fetchall():
                    record = self._record(segment, start, length)
                    if len(record) != length:
                        raise StoreDamagedError(f"segment {segment} ends within message {identity[0]}")
                    found[identity[0]] = message_from_record(tuple(identity), record, body=bodies)
        finally:
            self._connection.execute("COMMIT")
        return found

    def _record(self, segment: int, start: int, length: int) -> bytes:
        data = self._cached.get(segment)
        if data is None:
            with self._connection.blobopen("segment", "data", segment, readonly=True) as blob:
                if len(blob) > 2 * SEGMENT_BYTES:
                    blob.seek(start)
                    return blob.read(length)
                data = blob.read()
            self._keep(segment, data)
        return data[start : start + length]

    def _keep(self, segment: int, data: bytes) -> None:
        self._cached[segment] = data
        self._cached_bytes += len(data)
        while self._cached_bytes > CACHED_BYTES:
            _, oldest = self._cached.popitem(last=False)
            self._cached_bytes -= len(oldest)
