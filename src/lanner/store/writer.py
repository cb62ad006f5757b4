"""The one thread that writes: it takes everything that is waiting and commits it as one group."""

from __future__ import annotations

import asyncio
import bisect
import itertools
import logging
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from lanner.model.errors import LannerError, StoppedError, StoreError
from lanner.model.history import HistoryRow
from lanner.store.changes import Changes, log_fields
from lanner.store.checkpointer import Checkpointer
from lanner.store.database import is_about_rows, is_fatal, translate
from lanner.store.segments import SegmentWriter

__all__ = ["GroupStatistics", "Writer"]

log = logging.getLogger(__name__)

MAX_GROUP_ROWS = 20_000
"""Bounds how long the first operation of a group waits for the last."""

ROW_BYTES = 300
"""About what index and history of one change add to the log."""

REWRITE_SLICE = 16
"""Segments rewritten between two groups: at most some 2 MB of living content."""

MAX_BLOCK_ROWS = 4096
"""History rows in one block: what a reader has to decode to get at one of them."""

MAX_BLOCK_BYTES = 16 * 1024 * 1024
"""Bodies in one block, unless one is larger: SQLite takes values of 1 GB, and readers hold blocks whole."""

T = TypeVar("T")

_encoder = msgspec.msgpack.Encoder()

# 32 is MessageFlags.PURGED.
_UPDATE_MESSAGE = (
    "UPDATE message SET queue=?, class=?, expires=?, aborts=?, flags = flags & ~32 WHERE lookup=?"
)
_MARK_PURGED = "UPDATE message SET flags = flags | 32 WHERE lookup=? AND queue=?"
_PUT_QUEUE = "INSERT OR REPLACE INTO queue VALUES (?,?,?,?,?,?)"
_DELETE_QUEUE = "DELETE FROM queue WHERE id=?"
_PUT_OUTCOME = "INSERT INTO outcome VALUES (?,?,?)"
_PUT_STATE = "INSERT OR REPLACE INTO state VALUES (?,?,?)"
_DELETE_STATE = "DELETE FROM state WHERE scope=? AND key=?"
_PUT_META = "INSERT OR REPLACE INTO meta VALUES (?,?)"
_INSERT_HISTORY = "INSERT INTO history VALUES (?,?,?)"


class GroupStatistics:
    """How well commits are shared."""

    BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
    """Seconds."""

    def __init__(self) -> None:
        self.commits = 0
        self.sets = 0
        self.messages = 0
        self.seconds = 0.0
        self._by_bound = [0] * (len(self.BOUNDS) + 1)

    def count(self, sets: int, messages: int, seconds: float) -> None:
        """Note one commit."""
        self.commits += 1
        self.sets += sets
        self.messages += messages
        self.seconds += seconds
        self._by_bound[bisect.bisect_left(self.BOUNDS, seconds)] += 1

    def buckets(self) -> list[tuple[str, int]]:
        """How many commits took at most so long: cumulative, as a histogram."""
        names = [f"{bound:g}" for bound in self.BOUNDS] + ["+Inf"]
        return list(zip(names, itertools.accumulate(self._by_bound), strict=True))


class _Call:
    """Something other than changes that needs the writing connection, such as compaction."""

    def __init__(self, work: Callable[[sqlite3.Connection], object], future: asyncio.Future[object]) -> None:
        self.work = work
        self.future = future


class Writer:
    """Owns the writing connection. ``submit`` and ``call`` belong to the event loop's thread."""

    def __init__(self, connection: sqlite3.Connection, path: Path, last_lsn: int) -> None:
        self.statistics = GroupStatistics()
        self.last_lsn = last_lsn
        """The last LSN that is durable."""
        self._connection = connection
        self._path = path
        self._segments = SegmentWriter(connection)
        self._checkpointer = Checkpointer(path)
        self._loop = asyncio.get_running_loop()
        self._inbox: queue.SimpleQueue[list[Changes | _Call] | None] = queue.SimpleQueue()
        self._waiting: list[Changes | _Call] = []
        self.backlog_rows = 0
        """Rows that were submitted and are not written yet."""
        self._failure: StoreError | None = None
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="lanner-store", daemon=True)
        self._thread.start()

    # The event loop's side.

    async def rewrite_segments(self, segments: Sequence[int]) -> None:
        """Copy the living contents of segments into new ones, a slice at a time between groups."""
        for start in range(0, len(segments), REWRITE_SLICE):
            await self.call(self._rewrite(segments[start : start + REWRITE_SLICE]))

    def submit(self, changes: Changes) -> None:
        """Take the changes; their callbacks tell how it ended."""
        self._enqueue(changes)
        self.backlog_rows += changes.row_count()

    def call(self, work: Callable[[sqlite3.Connection], T]) -> asyncio.Future[T]:
        """Run something on the writing connection, between two groups."""
        future: asyncio.Future[object] = self._loop.create_future()
        self._enqueue(_Call(work, future))
        return future  # type: ignore[return-value]  # the future gets what the work returns

    async def close(self) -> None:
        """Finish everything that was submitted, then end the thread."""
        self._is_closed = True
        self._flush()
        self._inbox.put(None)
        await asyncio.to_thread(self._thread.join)
        self._checkpointer.close()

    def disconnect(self) -> None:
        """Close the connection, after the thread has ended."""
        self._connection.close()

    def _rewrite(self, segments: Sequence[int]) -> Callable[[sqlite3.Connection], None]:
        return lambda _: self._segments.rewrite(segments)

    def _enqueue(self, job: Changes | _Call) -> None:
        if self._is_closed:
            raise StoppedError("the store is closed")
        # Everything that tasks submit in one turn of the loop goes over together: 32 senders that
        # were woken by the same commit share the next one.
        if not self._waiting:
            self._loop.call_soon(self._flush)
        self._waiting.append(job)

    def _flush(self) -> None:
        if self._waiting:
            self._inbox.put(self._waiting)
            self._waiting = []

    def _finish(self, group: Sequence[Changes], error: StoreError | None) -> None:
        for changes in group:
            self.backlog_rows -= changes.row_count()
            changes.is_settled = True
            for callback in changes.on_applied if error is None else changes.on_failed:
                try:
                    callback()
                except Exception:
                    # One defect must not keep the others of the group from learning how it ended.
                    log.exception("a callback after a commit failed", extra=log_fields([changes]))

    # The thread's side.

    def _run(self) -> None:
        jobs: list[Changes | _Call] | None = []
        while jobs is not None:
            jobs = self._inbox.get()
            group: list[Changes] = []
            rows = 0
            while jobs is not None:
                for job in jobs:
                    if isinstance(job, _Call):
                        self._commit(group)
                        group, rows = [], 0
                        self._perform(job)
                        continue
                    group.append(job)
                    rows += job.row_count()
                    if rows >= MAX_GROUP_ROWS:
                        self._commit(group)
                        group, rows = [], 0
                try:
                    jobs = self._inbox.get_nowait()
                except queue.Empty:
                    break
            self._commit(group)

    def _perform(self, call: _Call) -> None:
        if self._failure is not None:
            self._tell(_set_exception, call.future, self._failure)
            return
        try:
            result = call.work(self._connection)
        except sqlite3.Error as error:
            self._roll_back(error)
            self._tell(_set_exception, call.future, translate(error, self._path))
        except Exception as error:
            self._roll_back(error)
            self._tell(_set_exception, call.future, error)
        else:
            self._tell(_set_result, call.future, result)

    def _commit(self, group: list[Changes]) -> None:
        if not group:
            return
        error = self._failure
        if error is None:
            try:
                self._write(group)
            except Exception as problem:
                self._roll_back(problem)
                if is_about_rows(problem) and len(group) > 1:
                    # One operation's rows are not to be had: the others must not suffer for it.
                    for changes in group:
                        self._commit([changes])
                    return
                error = translate(problem, self._path)
                log.error(
                    "a group of %d operations was not stored: %s",
                    len(group),
                    problem,
                    extra=log_fields(group),
                )
        for changes in group:
            if error is not None:
                changes.error = error
        self._tell(self._finish, group, error)

    def _write(self, group: list[Changes]) -> None:
        begin = time.perf_counter()
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        many = connection.executemany
        many(_PUT_QUEUE, _rows(changes.queues for changes in group))
        messages = _rows(changes.messages for changes in group)
        self._segments.insert(messages, _rows(changes.contents for changes in group))
        many(_UPDATE_MESSAGE, _rows(changes.updates for changes in group))
        # After the updates: a message that leaves its queue in the same group is not there to be marked.
        many(_MARK_PURGED, _rows(changes.purged for changes in group))
        self._segments.delete(_rows(changes.deletes for changes in group))
        many(_PUT_OUTCOME, _rows(changes.outcomes for changes in group))
        put, deleted = _last_states(group)
        many(_PUT_STATE, put)
        many(_DELETE_STATE, deleted)
        many(_PUT_META, _rows(changes.meta for changes in group))
        many(_DELETE_QUEUE, _rows(changes.queue_deletes for changes in group))
        history = _rows(changes.history for changes in group)
        many(_INSERT_HISTORY, self._history_blocks(history))
        connection.execute("COMMIT")
        self._checkpointer.wrote(self._segments.bytes_written + ROW_BYTES * len(history))
        self._segments.committed()
        self.last_lsn += len(history)
        self.statistics.count(len(group), len(messages), time.perf_counter() - begin)

    def _history_blocks(self, rows: list[HistoryRow]) -> Iterator[tuple[int, int, bytes]]:
        start = size = 0
        for number, row in enumerate(rows):
            row.lsn = self.last_lsn + 1 + number
            body = 0 if row.body is None else len(row.body)
            if number - start == MAX_BLOCK_ROWS or (size and size + body > MAX_BLOCK_BYTES):
                yield self._history_block(rows[start:number])
                start, size = number, 0
            size += body
        if rows:
            yield self._history_block(rows[start:])

    def _history_block(self, rows: list[HistoryRow]) -> tuple[int, int, bytes]:
        return rows[0].lsn, rows[-1].lsn, _encoder.encode(rows)

    def _roll_back(self, problem: Exception) -> None:
        if is_fatal(problem):
            self._failure = translate(problem, self._path)
        self._segments.rolled_back()
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            self._failure = translate(error, self._path)

    def _tell(self, callback: Callable[..., None], *arguments: object) -> None:
        try:
            self._loop.call_soon_threadsafe(callback, *arguments)
        except RuntimeError:
            # The loop was closed under a manager that was never stopped: nobody is left to tell.
            log.warning("the event loop is closed; the queue manager was not stopped")


def _rows(lists: Iterable[Sequence[T]]) -> list[T]:
    return [row for rows in lists for row in rows]


def _last_states(
    group: Iterable[Changes],
) -> tuple[list[tuple[str, str, bytes]], list[tuple[str, str]]]:
    """What the state is after a group. Unlike all others, its keys are used again: the last one counts."""
    last: dict[tuple[str, str], bytes | None] = {}
    for changes in group:
        for scope, key, value in changes.state:
            last[scope, key] = value
        for scope, key in changes.state_deletes:
            last[scope, key] = None
    put = [(scope, key, value) for (scope, key), value in last.items() if value is not None]
    return put, [key for key, value in last.items() if value is None]


def _set_result(future: asyncio.Future[object], result: object) -> None:
    if not future.done():
        future.set_result(result)


def _set_exception(future: asyncio.Future[object], error: LannerError) -> None:
    if not future.done():
        future.set_exception(error)
