from __future__ import annotations

import asyncio
import errno
import os
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from lanner.model.errors import (
    StoreDamagedError,
    StoreError,
    StoreFullError,
    StoreInUseError,
    StoreTooNewError,
)
from lanner.store import Store, database, schema
from lanner.store.database import DATABASE_NAME, LOCK_NAME, DirectoryLock, open_reader, open_writer
from lanner.store.marker import MARKER_NAME
from lanner.store.store import _prepare

Opened = Callable[..., AbstractAsyncContextManager[Store]]
Send = Callable[..., Awaitable[None]]
Crash = Callable[[Store], Path]

PAGE = 4096


def contents(directory: Path) -> dict[str, bytes]:
    """What is durable in a directory: everything but SQLite's index of the log, and the lock."""
    return {
        path.name: path.read_bytes()
        for path in directory.iterdir()
        if path.name != LOCK_NAME and not path.name.endswith("-shm") and path.stat().st_size
    }


async def refusal(directory: Path, kind: type[StoreError]) -> StoreError:
    """How opening a directory fails; nothing in it changes, and the lock is free again."""
    before = contents(directory)
    with pytest.raises(kind) as caught:
        await Store.open(directory, name="LON-1", now=0.0)
    assert type(caught.value) is kind
    assert contents(directory) == before
    DirectoryLock(directory).release()
    return caught.value


def execute(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def pragma(path: Path, name: str) -> Any:
    with closing(open_reader(path)) as connection:
        return connection.execute(f"PRAGMA {name}").fetchone()[0]


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A directory for what a test puts in the place of a store."""
    made = tmp_path / "made"
    made.mkdir()
    return made


@pytest.fixture
async def stopped(directory: Path, opened: Opened, send: Send) -> Path:
    """A store that was used and cleanly stopped."""
    async with opened() as store:
        await send(store, *range(1, 11), body=b"x" * 10_000)
    return directory


@pytest.fixture
async def killed(opened: Opened, send: Send, crash: Crash) -> Path:
    """A store whose process was killed, with most of it in the file and the rest in the log."""
    async with opened() as store:
        await send(store, *range(1, 11), body=b"x" * 10_000)
        await store.compact()
        await send(store, 11)
        return crash(store)


# Making it.


async def test_a_fresh_directory_is_made(tmp_path: Path, opened: Opened) -> None:
    directory = tmp_path / "not" / "there" / "yet"
    async with opened(directory):
        assert (directory / LOCK_NAME).read_text() == f"{os.getpid()}\n"
        assert {path.name for path in directory.iterdir()} >= {DATABASE_NAME, LOCK_NAME}
    assert contents(directory).keys() == {DATABASE_NAME, MARKER_NAME}


async def test_the_file_is_laid_out_as_documented(stopped: Path) -> None:
    path = stopped / DATABASE_NAME
    assert pragma(path, "application_id") == int.from_bytes(b"LNNR", "big")
    assert pragma(path, "user_version") == schema.FORMAT_VERSION
    assert pragma(path, "journal_mode") == "wal"
    assert pragma(path, "auto_vacuum") == 2
    assert pragma(path, "page_size") == PAGE


async def test_the_connection_is_set_up_as_documented(tmp_path: Path) -> None:
    with closing(open_writer(tmp_path / DATABASE_NAME)) as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
        assert connection.execute("PRAGMA wal_autocheckpoint").fetchone() == (32_000,)


def test_a_reader_cannot_write(tmp_path: Path) -> None:
    path = tmp_path / DATABASE_NAME
    open_writer(path).close()
    with closing(open_reader(path)) as reading, pytest.raises(sqlite3.OperationalError, match="readonly"):
        reading.execute("DELETE FROM meta")


def die_at(statement: int, directory: Path) -> bool:
    """Start for the first time in a process that is killed at a statement; whether it lived that long."""
    child = os.fork()
    if not child:
        try:
            _start_and_die(statement, directory)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


def _start_and_die(statement: int, directory: Path) -> None:
    left = statement
    connect = sqlite3.connect

    def count(_: str) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            os._exit(9)

    def connect_and_count(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*arguments, **options)
        connection.set_trace_callback(count)
        return connection

    pytest.MonkeyPatch().setattr(sqlite3, "connect", connect_and_count)
    _prepare(directory, "LON-1", None, 0.0)


async def test_a_first_start_that_was_cut_short_anywhere(tmp_path: Path, opened: Opened, send: Send) -> None:
    statement = 0
    while True:
        directory = tmp_path / str(statement)
        directory.mkdir()
        if not die_at(statement, directory):
            break
        async with opened(directory) as store:
            await send(store, 1)
            assert store.identity.name == "LON-1"
        assert pragma(directory / DATABASE_NAME, "auto_vacuum") == 2
        statement += 1
    assert statement > len(schema._TABLES) + 10


async def test_a_backup_whose_first_start_was_killed(
    stopped: Path, made: Path, tmp_path: Path, opened: Opened
) -> None:
    # A backup is not in WAL mode: what was being written when its manager was killed is undone.
    backup = tmp_path / DATABASE_NAME
    shutil.copy(stopped / DATABASE_NAME, backup)
    with closing(sqlite3.connect(backup, isolation_level=None)) as connection:
        for statement in ("journal_mode = DELETE", "cache_size = 1"):
            connection.execute(f"PRAGMA {statement}").fetchall()
        connection.execute("BEGIN")
        connection.execute("UPDATE segment SET data = zeroblob(length(data))")
        for name in (DATABASE_NAME, DATABASE_NAME + "-journal"):
            shutil.copy(tmp_path / name, made)
    assert contents(made)[DATABASE_NAME] != backup.read_bytes()
    async with opened(made) as store:
        assert {message.body for message in (await store.messages(range(1, 11))).values()} == {b"x" * 10_000}


async def test_a_directory_with_signs_that_mean_something_in_a_uri(tmp_path: Path, opened: Opened) -> None:
    directory = tmp_path / "a?b#c%41 d"
    for _ in range(2):
        async with opened(directory) as store:
            assert store.path == directory / DATABASE_NAME


# The lock.


async def test_a_second_manager_is_refused(store: Store) -> None:
    with pytest.raises(StoreInUseError, match=rf"process {os.getpid()}\b.*stop it first"):
        await Store.open(store.directory, name="LON-1", now=0.0)


async def test_a_manager_in_another_process_is_named(tmp_path: Path) -> None:
    script = (
        "import sys, pathlib\n"
        "from lanner.store.database import DirectoryLock\n"
        "lock = DirectoryLock(pathlib.Path(sys.argv[1]))\n"
        "print('locked', flush=True)\n"
        "sys.stdin.read()"
    )
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, str(tmp_path), stdin=pipe, stdout=pipe
    )
    assert process.stdin is not None
    assert process.stdout is not None
    await process.stdout.readline()
    with pytest.raises(StoreInUseError, match=rf"process {process.pid}\b"):
        DirectoryLock(tmp_path)
    process.stdin.close()
    assert await process.wait() == 0
    DirectoryLock(tmp_path).release()


def test_a_lock_is_freed(tmp_path: Path) -> None:
    for _ in range(2):
        DirectoryLock(tmp_path).release()


def test_a_disk_without_room_for_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", write)
        with pytest.raises(StoreFullError, match=r"No space left on device.*free some space"):
            DirectoryLock(tmp_path)
    DirectoryLock(tmp_path).release()


# What may not be written.


@contextmanager
def unprivileged() -> Iterator[None]:
    """Be somebody whom permissions bind."""
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)


@pytest.fixture
def public_directory() -> Iterator[Path]:
    """A directory that anybody gets to; pytest's own are closed to others."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        yield Path(name)


@pytest.fixture
def closed_directory(public_directory: Path) -> Path:
    """A directory that anybody may look into, and nobody but its owner may write to."""
    public_directory.chmod(0o555)
    return public_directory


@pytest.mark.parametrize("subdirectory", ["", "new"])
async def test_a_directory_that_may_not_be_written(closed_directory: Path, subdirectory: str) -> None:
    with (
        unprivileged(),
        pytest.raises(StoreError, match=r"cannot write to .*: Permission denied.*that it may write to"),
    ):
        await Store.open(closed_directory / subdirectory, name="LON-1", now=0.0)


async def test_a_file_that_may_not_be_written(public_directory: Path, stopped: Path) -> None:
    shutil.copy(stopped / DATABASE_NAME, public_directory)
    (public_directory / DATABASE_NAME).chmod(0o444)
    with unprivileged():
        error = await refusal(public_directory, StoreError)
    assert "is read-only" in error.message


async def test_a_directory_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"cannot write to .*: File exists"):
        await Store.open(tmp_path / "file", name="LON-1", now=0.0)


async def test_a_file_that_is_a_directory(directory: Path) -> None:
    (directory / DATABASE_NAME).mkdir(parents=True)
    with pytest.raises(StoreError):
        await Store.open(directory, name="LON-1", now=0.0)


# What is not ours, or not sound.


@pytest.mark.parametrize(
    "data",
    [b"xy", b"not a database\n" * 1000, bytes(100_000), b"SQLite format 3\0", b"SQLite format 3\0" * 999],
)
async def test_a_file_that_is_not_sqlite(made: Path, data: bytes) -> None:
    (made / DATABASE_NAME).write_bytes(data)
    error = await refusal(made, StoreDamagedError)
    assert "not a database" in error.message
    assert "restore a backup" in error.hint


@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
async def test_a_database_of_somebody_else(made: Path, mode: str) -> None:
    execute(made / DATABASE_NAME, f"PRAGMA journal_mode = {mode}", "CREATE TABLE theirs (x)")
    error = await refusal(made, StoreDamagedError)
    assert "not written by a queue manager" in error.message


@pytest.mark.parametrize("mark", ["application_id", "user_version"])
async def test_an_empty_database_that_somebody_marked(made: Path, mark: str) -> None:
    execute(made / DATABASE_NAME, f"PRAGMA {mark} = 77")
    await refusal(made, StoreDamagedError)


async def test_a_running_database_of_somebody_else(made: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / DATABASE_NAME, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE theirs (x)")
        for name in (DATABASE_NAME, DATABASE_NAME + "-wal"):
            shutil.copy(tmp_path / name, made)
    assert contents(made).keys() == {DATABASE_NAME, DATABASE_NAME + "-wal"}
    await refusal(made, StoreDamagedError)


async def test_a_newer_format(stopped: Path) -> None:
    execute(stopped / DATABASE_NAME, f"PRAGMA user_version = {schema.FORMAT_VERSION + 1}")
    error = await refusal(stopped, StoreTooNewError)
    assert f"has format {schema.FORMAT_VERSION + 1}" in error.message
    assert "or a newer one" in error.hint


async def test_a_newer_format_that_was_killed(opened: Opened, crash: Crash) -> None:
    async with opened() as store:
        execute(store.path, f"PRAGMA user_version = {schema.FORMAT_VERSION + 1}")
        killed = crash(store)
    assert len(contents(killed)[DATABASE_NAME + "-wal"]) > 0
    await refusal(killed, StoreTooNewError)


@pytest.mark.parametrize("version", [0, -1])
async def test_a_format_that_never_was(stopped: Path, version: int) -> None:
    execute(stopped / DATABASE_NAME, f"PRAGMA user_version = {version}")
    error = await refusal(stopped, StoreDamagedError)
    assert f"no format {version}" in error.message


@pytest.mark.parametrize("length", [2, 50, 100, 600, PAGE - 1, PAGE, PAGE + 1, 5 * PAGE])
async def test_a_truncated_file(stopped: Path, length: int) -> None:
    os.truncate(stopped / DATABASE_NAME, length)
    await refusal(stopped, StoreDamagedError)


async def test_any_damaged_page_is_found_after_a_kill(opened: Opened, send: Send, crash: Crash) -> None:
    async with opened() as store:
        await send(store, *range(1, 11), body=b"x" * 10_000)
        await store.compact()  # a page of which the log has a newer copy would do no harm
        killed = crash(store)
    path = killed / DATABASE_NAME
    sound = path.read_bytes()
    assert len(sound) > 20 * PAGE
    for start in range(0, len(sound), PAGE):
        path.write_bytes(sound[:start] + b"\xa5" * 64 + sound[start + 64 :])
        await refusal(killed, StoreDamagedError)


async def test_a_page_that_was_never_written(killed: Path) -> None:
    path = killed / DATABASE_NAME
    sound = path.read_bytes()
    middle = len(sound) // PAGE // 2 * PAGE
    path.write_bytes(sound[:middle] + bytes(PAGE) + sound[middle + PAGE :])
    error = await refusal(killed, StoreDamagedError)
    assert "is damaged" in error.message


def damage(path: Path, table: str) -> None:
    with closing(open_reader(path)) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    data = bytearray(path.read_bytes())
    data[(root - 1) * PAGE : root * PAGE] = b"\xa5" * PAGE
    path.write_bytes(data)


@pytest.mark.parametrize("table", ["meta", "message", "segment", "history"])
async def test_damage_after_a_clean_stop_is_found_on_use(stopped: Path, table: str) -> None:
    damage(stopped / DATABASE_NAME, table)
    with pytest.raises(StoreDamagedError):
        await Store.open(stopped, name="LON-1", now=0.0)
    DirectoryLock(stopped).release()


async def test_damaged_queues_after_a_clean_stop(stopped: Path, opened: Opened) -> None:
    damage(stopped / DATABASE_NAME, "queue")
    async with opened() as store:
        with pytest.raises(StoreDamagedError):
            store.queues()


async def test_a_damaged_index_after_a_clean_stop(stopped: Path, opened: Opened) -> None:
    async with opened() as store:
        damage(store.path, "message")
        with pytest.raises(StoreDamagedError):
            list(store.index())


# What was stopped how.


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that were checked page by page."""
    checked: list[Path] = []
    check = database.quick_check

    def quick_check(connection: sqlite3.Connection, path: Path) -> None:
        checked.append(path)
        check(connection, path)

    monkeypatch.setattr(database, "quick_check", quick_check)
    return checked


async def test_no_check_after_a_clean_stop(directory: Path, opened: Opened, checks: list[Path]) -> None:
    for _ in range(3):
        async with opened() as store:
            assert await store.read(clean_flag) == 0
    with closing(open_reader(directory / DATABASE_NAME)) as connection:
        assert clean_flag(connection) == 1
    assert checks == []


async def test_a_check_after_a_kill(killed: Path, opened: Opened, checks: list[Path]) -> None:
    for _ in range(2):
        async with opened(killed) as store:
            assert [row[0] for row in store.index()] == list(range(1, 12))
    assert checks == [killed / DATABASE_NAME]


def clean_flag(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT value FROM meta WHERE key = 'clean'").fetchone()[0])
