from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol

import pytest

from lanner.model.errors import LannerError, StoppedError, StoreDamagedError, StoreError, StoreFullError
from lanner.model.message import Message
from lanner.store import Changes
from lanner.store.database import open_reader, open_writer
from lanner.store.writer import GroupStatistics, Writer

MakeMessage = Callable[..., Message]
Sending = Callable[..., Changes]
Recording = Callable[..., Changes]

PATIENCE = 10.0
"""Seconds after which a test says that the writer hangs."""


class Unreliable(sqlite3.Connection):
    """A connection that fails at the statement it was told to, with the code it was told."""

    fails_at = ""
    code = 0

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        if self.fails_at and sql.startswith(self.fails_at):
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = self.code
            raise error
        return super().execute(sql, parameters)

    def fail(self, at: str, code: int) -> None:
        self.fails_at, self.code = at, code


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lanner.db"


@pytest.fixture
def connection(path: Path) -> Unreliable:
    open_writer(path).close()
    return sqlite3.connect(path, isolation_level=None, check_same_thread=False, factory=Unreliable)


@pytest.fixture
async def writer(path: Path, connection: Unreliable) -> AsyncIterator[Writer]:
    writer = Writer(connection, path, 0)
    yield writer
    await writer.close()
    writer.disconnect()


def ending(changes: Changes) -> asyncio.Future[LannerError | None]:
    """How the changes end: with which error, or none."""
    ended: asyncio.Future[LannerError | None] = asyncio.get_running_loop().create_future()
    changes.on_applied.append(lambda: ended.set_result(None))
    changes.on_failed.append(lambda: ended.set_result(changes.error))
    return ended


async def write(writer: Writer, *sets: Changes) -> list[LannerError | None]:
    """Submit sets of changes in one turn of the loop, and say how each ended."""
    endings = [ending(changes) for changes in sets]
    for changes in sets:
        writer.submit(changes)
    return await asyncio.wait_for(asyncio.gather(*endings), PATIENCE)


def deletion(lookup: int) -> Changes:
    changes = Changes()
    changes.deletes.append(lookup)
    return changes


def query(path: Path, sql: str) -> list[Any]:
    with closing(open_reader(path)) as reading:
        return [row if len(row) > 1 else row[0] for row in reading.execute(sql)]


def lookups(path: Path) -> list[int]:
    return query(path, "SELECT lookup FROM message ORDER BY lookup")


def blocks(path: Path) -> list[tuple[int, int]]:
    return query(path, "SELECT first, last FROM history ORDER BY first")


# Groups.


async def test_one_turn_of_the_loop_is_one_commit(
    writer: Writer, path: Path, make_message: MakeMessage, sending: Sending
) -> None:
    assert await write(writer, *(sending(make_message(number)) for number in range(200))) == [None] * 200
    statistics = writer.statistics
    assert (statistics.commits, statistics.sets, statistics.messages) == (1, 200, 200)
    assert lookups(path) == list(range(200))


async def test_senders_share_commits(writer: Writer, make_message: MakeMessage, sending: Sending) -> None:
    async def send(sender: int) -> None:
        for number in range(20):
            assert await write(writer, sending(make_message(100 * sender + number))) == [None]

    await asyncio.gather(*(send(sender) for sender in range(32)))
    assert writer.statistics.sets == 32 * 20
    assert writer.statistics.commits < 32 * 20 / 8


async def test_a_group_is_limited(
    writer: Writer, recording: Recording, monkeypatch: pytest.MonkeyPatch, path: Path
) -> None:
    monkeypatch.setattr("lanner.store.writer.MAX_GROUP_ROWS", 10)
    await write(writer, *(recording(4) for _ in range(5)))  # each is 5 rows with the set itself
    assert writer.statistics.commits == 3
    assert blocks(path) == [(1, 8), (9, 16), (17, 20)]


async def test_a_set_is_never_split(
    writer: Writer, recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lanner.store.writer.MAX_GROUP_ROWS", 10)
    await write(writer, recording(50))
    assert writer.statistics.commits == 1


async def test_history_blocks_are_limited(writer: Writer, recording: Recording, path: Path) -> None:
    await write(writer, recording(4096), recording(1))
    await write(writer, recording(4096))
    assert blocks(path) == [(1, 4096), (4097, 4097), (4098, 8193)]
    assert writer.last_lsn == 8193


async def test_the_backlog_is_counted(writer: Writer, recording: Recording) -> None:
    changes = [recording(3), recording(1)]
    endings = [ending(each) for each in changes]
    for each in changes:
        writer.submit(each)
    assert writer.backlog_rows == sum(each.row_count() for each in changes) == 6
    await asyncio.gather(*endings)
    assert writer.backlog_rows == 0


async def test_every_kind_of_row_in_one_group(
    writer: Writer, path: Path, make_message: MakeMessage, sending: Sending
) -> None:
    await write(writer, sending(make_message(1), make_message(2)))
    changes = sending(make_message(3))
    changes.queues += [
        (1, "private", r".\private$\a", None, b"{}", None),
        (2, "private", "b", 1, b"{}", b"s"),
    ]
    changes.updates.append((2, 7, 9.5, 3, 3))
    changes.purged += [(2, 1), (3, 1)]
    changes.deletes.append(1)
    changes.outcomes.append(("key", b"value", 5.0))
    changes.state.append(("scope", "key", b"value"))
    changes.meta.append(("sequential", 77))
    changes.queue_deletes.append((2,))
    assert await write(writer, changes) == [None]
    assert query(path, "SELECT * FROM queue") == [(1, "private", r".\private$\a", None, b"{}", None)]
    assert query(path, "SELECT lookup, queue, class, expires, aborts, flags FROM message") == [
        (2, 1, 0, None, 0, 32),
        (3, 2, 7, 9.5, 3, 0),
    ]
    assert query(path, "SELECT * FROM outcome") == [("key", b"value", 5.0)]
    assert query(path, "SELECT * FROM state") == [("scope", "key", b"value")]
    assert query(path, "SELECT * FROM meta") == [("sequential", 77)]


async def test_state_follows_the_order_of_the_operations(writer: Writer, path: Path) -> None:
    sets = [Changes() for _ in range(5)]
    sets[0].state.append(("s", "kept", b"1"))
    sets[1].state_deletes += [("s", "kept"), ("s", "dropped")]
    sets[2].state += [("s", "kept", b"2"), ("s", "dropped", b"2")]
    sets[3].state.append(("s", "kept", b"3"))
    sets[4].state_deletes.append(("s", "dropped"))
    await write(writer, *sets)
    assert writer.statistics.commits == 1
    assert query(path, "SELECT key, value FROM state") == [("kept", b"3")]


# Callbacks.


async def test_callbacks_run_in_the_order_of_submission(
    writer: Writer, recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lanner.store.writer.MAX_GROUP_ROWS", 7)
    order: list[int] = []
    sets = [recording(1) for _ in range(50)]
    for number, changes in enumerate(sets):
        changes.on_applied += [lambda n=number: order.append(n), lambda n=number: order.append(n)]  # type: ignore[misc]
    await write(writer, *sets)
    assert order == [number for number in range(50) for _ in (1, 2)]
    assert all(changes.is_settled for changes in sets)


async def test_callbacks_run_after_the_commit(
    writer: Writer, make_message: MakeMessage, sending: Sending, path: Path
) -> None:
    seen: list[list[int]] = []
    changes = sending(make_message(1))
    changes.on_applied.append(lambda: seen.append(lookups(path)))
    await write(writer, changes)
    assert seen == [[1]]


async def test_a_callback_that_fails_disturbs_nobody(
    writer: Writer, recording: Recording, caplog: pytest.LogCaptureFixture
) -> None:
    order: list[str] = []

    def fail() -> None:
        raise ZeroDivisionError

    first, second = recording(1), recording(1)
    first.on_applied += [fail, lambda: order.append("first")]
    second.on_applied.append(lambda: order.append("second"))
    assert await write(writer, first, second) == [None, None]
    assert order == ["first", "second"]
    assert "a callback after a commit failed" in caplog.text
    assert await write(writer, recording(1)) == [None]


async def test_closing_finishes_everything(path: Path, make_message: MakeMessage, sending: Sending) -> None:
    writer = Writer(open_writer(path), path, 0)
    sets = [sending(make_message(number)) for number in range(100)]
    endings = [ending(changes) for changes in sets]
    for changes in sets[:50]:
        writer.submit(changes)
    await asyncio.sleep(0)
    for changes in sets[50:]:
        writer.submit(changes)
    counting = writer.call(lambda connection: connection.execute("SELECT count(*) FROM message").fetchone())
    await writer.close()
    writer.disconnect()
    assert await asyncio.gather(*endings) == [None] * 100
    assert await counting == (100,)
    assert lookups(path) == list(range(100))


async def test_nothing_is_taken_after_the_end(path: Path, recording: Recording) -> None:
    writer = Writer(open_writer(path), path, 0)
    await writer.close()
    with pytest.raises(StoppedError):
        writer.submit(recording(1))
    with pytest.raises(StoppedError):
        writer.call(fail_in_transaction)
    assert writer.backlog_rows == 0
    writer.disconnect()


def test_commits_are_counted_by_how_long_they_took() -> None:
    statistics = GroupStatistics()
    for seconds in (0.0, statistics.BOUNDS[0], statistics.BOUNDS[-1], 1e9):
        statistics.count(2, 3, seconds)
    assert (statistics.commits, statistics.sets, statistics.messages) == (4, 8, 12)
    buckets = dict(statistics.buckets())
    assert buckets[f"{statistics.BOUNDS[0]:g}"] == 2
    assert buckets[f"{statistics.BOUNDS[-1]:g}"] == 3
    assert buckets["+Inf"] == 4


# A full disk.


class Disk(Protocol):
    """A disk, as far as a writer goes, that can be filled and freed."""

    path: Path

    async def fill(self, writer: Writer) -> None: ...

    async def free(self, writer: Writer) -> None: ...


class PageLimit:
    """SQLite is told to make the file no larger."""

    def __init__(self, path: Path) -> None:
        self.path = path

    async def fill(self, writer: Writer) -> None:
        await writer.call(lambda connection: connection.execute("PRAGMA max_page_count = 1").fetchall())

    async def free(self, writer: Writer) -> None:
        limit = "PRAGMA max_page_count = 1000000"
        await writer.call(lambda connection: connection.execute(limit).fetchall())


class RealDisk:
    """A disk that has no byte left."""

    def __init__(self, directory: Path, fill_disk: Callable[[Path], Path]) -> None:
        self.path = directory / "lanner.db"
        self._fill_disk = fill_disk

    async def fill(self, writer: Writer) -> None:
        self._filler = self._fill_disk(self.path.parent)

    async def free(self, writer: Writer) -> None:
        self._filler.unlink()


@pytest.fixture(params=["limited pages", "a small disk"])
def disk(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    small_disk: Path | None,
    fill_disk: Callable[[Path], Path],
) -> Disk:
    if request.param == "limited pages" or small_disk is None:
        return PageLimit(tmp_path / "lanner.db")
    return RealDisk(small_disk, fill_disk)


@pytest.fixture
async def disk_writer(disk: Disk) -> AsyncIterator[Writer]:
    writer = Writer(open_writer(disk.path), disk.path, 0)
    yield writer
    await writer.close()
    writer.disconnect()


@pytest.fixture
def large(make_message: MakeMessage, sending: Sending) -> Callable[[int], Changes]:
    """Makes changes that a full disk has no room for."""
    return lambda number: sending(make_message(number, b"x" * 10_000))


async def test_a_full_disk_refuses_and_resumes(
    disk: Disk, disk_writer: Writer, large: Callable[[int], Changes]
) -> None:
    await write(disk_writer, large(1))
    await disk.fill(disk_writer)
    for _ in range(3):
        refused = [large(2), large(3)]
        errors = await write(disk_writer, *refused)
        assert [type(error) for error in errors] == [StoreFullError] * 2
        assert all(changes.error is not None and changes.is_settled for changes in refused)
        assert "free some space" in str(errors[0])
    assert lookups(disk.path) == [1]
    assert disk_writer.last_lsn == 1
    await disk.free(disk_writer)
    assert await write(disk_writer, large(2), large(3)) == [None, None]
    assert lookups(disk.path) == [1, 2, 3]
    assert blocks(disk.path) == [(1, 1), (2, 3)]


async def test_nothing_of_a_refused_group_is_kept(
    disk: Disk, disk_writer: Writer, large: Callable[[int], Changes]
) -> None:
    await write(disk_writer, large(1), large(2))
    await disk.fill(disk_writer)
    small = deletion(1)
    small.meta.append(("sequential", 5))
    assert [type(error) for error in await write(disk_writer, small, large(3))] == [StoreFullError] * 2
    assert query(disk.path, "SELECT * FROM meta") == []
    assert lookups(disk.path) == [1, 2]
    await disk.free(disk_writer)
    await write(disk_writer, deletion(2))
    assert query(disk.path, "SELECT id FROM segment") == [1]  # the counts did not suffer
    await write(disk_writer, deletion(1))
    assert query(disk.path, "SELECT id FROM segment") == []


async def test_a_call_that_finds_the_disk_full(
    disk: Disk, disk_writer: Writer, large: Callable[[int], Changes]
) -> None:
    await write(disk_writer, large(1))
    await disk.fill(disk_writer)

    def work(connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO state VALUES ('s', 'k', zeroblob(100000))")
        connection.execute("COMMIT")

    with pytest.raises(StoreFullError):
        await disk_writer.call(work)
    with pytest.raises(StoreFullError):
        await disk_writer.rewrite_segments([1])
    await disk.free(disk_writer)
    await disk_writer.rewrite_segments([1])
    assert await write(disk_writer, large(2)) == [None]
    assert query(disk.path, "SELECT segment FROM message ORDER BY lookup") == [2, 3]


# Other refusals.


async def test_rows_that_are_refused_fail_alone(
    writer: Writer, path: Path, make_message: MakeMessage, sending: Sending
) -> None:
    sets = [sending(make_message(number)) for number in range(1, 5)]
    for changes in sets[1:3]:
        changes.outcomes.append(("the same key", b"", 0.0))
    errors = await write(writer, *sets)
    assert [type(error) for error in errors] == [type(None), type(None), StoreError, type(None)]
    assert lookups(path) == [1, 2, 4]
    assert blocks(path) == [(1, 1), (2, 2), (3, 3)]
    assert writer.last_lsn == 3


async def test_text_that_cannot_be_stored_fails_alone(writer: Writer, recording: Recording) -> None:
    # A lone surrogate is no UTF-8; it must not end the thread that everybody waits for.
    errors = await write(writer, recording(1), recording(1, label="\ud800"), recording(1))
    assert [type(error) for error in errors] == [type(None), StoreError, type(None)]
    assert writer.last_lsn == 2


async def test_somebody_else_holds_the_lock(
    writer: Writer, path: Path, recording: Recording, connection: Unreliable
) -> None:
    connection.execute("PRAGMA busy_timeout = 0")
    with closing(sqlite3.connect(path, isolation_level=None)) as shell:
        shell.execute("BEGIN IMMEDIATE")
        (error,) = await write(writer, recording(1))
        assert type(error) is StoreError
        assert "locked" in error.message
    assert await write(writer, recording(1)) == [None]
    assert blocks(path) == [(1, 1)]


# The end of a disk.


@pytest.mark.parametrize("statement", ["BEGIN", "COMMIT"])
async def test_an_input_output_error_ends_writing_for_good(
    writer: Writer,
    connection: Unreliable,
    path: Path,
    make_message: MakeMessage,
    sending: Sending,
    statement: str,
) -> None:
    await write(writer, sending(make_message(1)))
    connection.fail(statement, sqlite3.SQLITE_IOERR_FSYNC)
    errors = await write(writer, sending(make_message(2)), sending(make_message(3)))
    assert [type(error) for error in errors] == [StoreError] * 2
    assert "disk I/O error" in str(errors[0])
    connection.fail("", 0)
    (again,) = await write(writer, sending(make_message(4)))
    assert str(again) == str(errors[0])
    with pytest.raises(StoreError, match="disk I/O error"):
        await writer.call(lambda connection: connection.execute("DELETE FROM message"))
    assert lookups(path) == [1]
    assert writer.last_lsn == 1


async def test_an_input_output_error_in_a_call_ends_writing_too(
    writer: Writer, connection: Unreliable, recording: Recording
) -> None:
    connection.fail("PRAGMA wal_checkpoint", sqlite3.SQLITE_IOERR_FSYNC)
    with pytest.raises(StoreError, match="disk I/O error"):
        await writer.call(lambda connection: connection.execute("PRAGMA wal_checkpoint(TRUNCATE)"))
    (error,) = await write(writer, recording(1))
    assert "disk I/O error" in str(error)


async def test_a_rollback_that_fails_ends_writing(
    writer: Writer, connection: Unreliable, recording: Recording
) -> None:
    connection.fail("ROLLBACK", sqlite3.SQLITE_IOERR)
    (refused,) = await write(writer, recording(1, label="\ud800"))
    assert refused is not None
    connection.fail("", 0)
    (error,) = await write(writer, recording(1))
    assert "disk I/O error" in str(error)


async def test_damage_that_is_found_while_writing(
    writer: Writer, connection: Unreliable, recording: Recording
) -> None:
    connection.fail("BEGIN", sqlite3.SQLITE_CORRUPT)
    (error,) = await write(writer, recording(1))
    assert type(error) is StoreDamagedError
    connection.fail("", 0)
    (again,) = await write(writer, recording(1))
    assert type(again) is StoreDamagedError


# Calls.


async def test_a_call_comes_between_the_groups_around_it(
    writer: Writer, make_message: MakeMessage, sending: Sending
) -> None:
    before, after = sending(make_message(1)), sending(make_message(2))
    ended = ending(after)
    writer.submit(before)
    counting = writer.call(lambda connection: connection.execute("SELECT count(*) FROM message").fetchone())
    writer.submit(after)
    assert await counting == (1,)
    assert await ended is None
    assert writer.statistics.commits == 2


def fail_in_transaction(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO state VALUES ('s', 'k', 'v')")
    raise ZeroDivisionError


async def test_a_call_that_fails_leaves_nothing_behind(
    writer: Writer, path: Path, recording: Recording
) -> None:
    with pytest.raises(ZeroDivisionError):
        await writer.call(fail_in_transaction)
    assert await write(writer, recording(1)) == [None]
    assert query(path, "SELECT * FROM state") == []


async def test_a_cancelled_call_is_done_all_the_same(
    writer: Writer, path: Path, recording: Recording
) -> None:
    writer.call(lambda connection: connection.execute("INSERT INTO state VALUES ('s', 'k', 'v')")).cancel()
    writer.call(fail_in_transaction).cancel()
    assert await write(writer, recording(1)) == [None]
    assert query(path, "SELECT key FROM state") == ["k"]


def test_a_loop_that_was_closed_under_writer(
    path: Path, recording: Recording, caplog: pytest.LogCaptureFixture
) -> None:
    async def leave() -> Writer:
        return Writer(open_writer(path), path, 0)

    writer = asyncio.run(leave())
    with caplog.at_level(logging.WARNING):
        writer._commit([recording(1)])
    assert "the event loop is closed" in caplog.text
    assert blocks(path) == [(1, 1)]
    asyncio.run(writer.close())
    writer.disconnect()
