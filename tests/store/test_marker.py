"""A store whose database was lost is not taken for a new one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, closing
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from lanner.model.errors import StoreDamagedError, StoreError, StoreFullError
from lanner.store import Store, files, marker
from lanner.store.database import DATABASE_NAME, LOCK_NAME, DirectoryLock, open_reader, open_writer
from lanner.store.marker import MARKER_NAME

Opened = Callable[..., AbstractAsyncContextManager[Store]]
Send = Callable[..., Awaitable[None]]
Crash = Callable[[Store], Path]


@pytest.fixture
async def stopped(directory: Path, opened: Opened, send: Send) -> Path:
    async with opened() as store:
        await send(store, 1, 2, 3)
    return directory


def marked(directory: Path) -> UUID:
    return UUID((directory / MARKER_NAME).read_text().strip())


def lookups(store: Store) -> list[int]:
    return [row[0] for row in store.index()]


async def refusal(directory: Path) -> StoreError:
    """How opening a directory fails; no file in it appears, goes or changes, and the lock is free."""
    before = contents(directory)
    with pytest.raises(StoreDamagedError) as caught:
        await Store.open(directory, name="LON-1", now=0.0)
    assert contents(directory) == before
    DirectoryLock(directory).release()
    return caught.value


def contents(directory: Path) -> dict[str, bytes]:
    """What is there, but the lock, SQLite's index of the log, and an empty log."""
    return {
        path.name: path.read_bytes()
        for path in directory.iterdir()
        if path.name not in (LOCK_NAME, DATABASE_NAME + "-shm")
        and (path.stat().st_size or path.name != DATABASE_NAME + "-wal")
    }


def cut(path: Path) -> None:
    os.truncate(path, 0)


async def test_the_marker_names_the_manager(stopped: Path, opened: Opened) -> None:
    async with opened() as store:
        assert marked(stopped) == store.identity.identifier


@pytest.mark.parametrize("lose", [cut, Path.unlink])
async def test_a_database_that_was_lost_is_not_made_anew(
    stopped: Path, opened: Opened, lose: Callable[[Path], None]
) -> None:
    lose(stopped / DATABASE_NAME)
    error = await refusal(stopped)
    assert f"{DATABASE_NAME} is empty or missing" in error.message
    assert str(marked(stopped)) in error.message
    assert "put a backup in its place, or remove" in error.hint
    (stopped / MARKER_NAME).unlink()
    async with opened() as store:
        assert lookups(store) == []
        assert marked(stopped) == store.identity.identifier


@pytest.mark.parametrize("lose", [cut, Path.unlink])
@pytest.mark.parametrize("with_marker", [False, True])
async def test_a_killed_store_whose_database_was_lost_keeps_its_log(
    opened: Opened, send: Send, crash: Crash, lose: Callable[[Path], None], with_marker: bool
) -> None:
    async with opened() as store:
        await send(store, 1)
        killed = crash(store)
        if with_marker:
            shutil.copy(store.directory / MARKER_NAME, killed)
    lose(killed / DATABASE_NAME)
    error = await refusal(killed)
    assert "put a backup in its place" in error.hint


async def test_a_killed_store_whose_log_was_lost(opened: Opened, send: Send, crash: Crash) -> None:
    # Nothing was copied back yet: the database itself has no tables.
    async with opened() as store:
        await send(store, 1)
        killed = crash(store)
        shutil.copy(store.directory / MARKER_NAME, killed)
    (killed / (DATABASE_NAME + "-wal")).unlink()
    await refusal(killed)


async def test_a_database_whose_tables_are_empty_is_lost_too(stopped: Path, tmp_path: Path) -> None:
    (stopped / DATABASE_NAME).unlink()
    open_writer(tmp_path / DATABASE_NAME).close()
    shutil.copy(tmp_path / DATABASE_NAME, stopped)
    with pytest.raises(StoreDamagedError, match="is empty or missing"):
        await Store.open(stopped, name="LON-1", now=0.0)


async def test_a_first_start_that_was_killed_before_the_marker(
    directory: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(marker, "ensure", interrupt)
        with pytest.raises(KeyboardInterrupt):
            await Store.open(directory, name="LON-1", now=0.0)
    assert not (directory / MARKER_NAME).exists()
    async with opened() as store:
        assert marked(directory) == store.identity.identifier


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


async def test_the_marker_comes_after_the_first_commit(
    directory: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []
    ensure = marker.ensure

    def look(where: Path, identifier: UUID) -> None:
        with closing(open_reader(where / DATABASE_NAME)) as connection:
            row = connection.execute("SELECT value FROM meta WHERE key = 'identifier'").fetchone()
        seen.append(row == (str(identifier),) and not (where / MARKER_NAME).exists())
        ensure(where, identifier)

    monkeypatch.setattr(marker, "ensure", look)
    async with opened():
        assert seen == [True]


async def test_an_older_directory_gets_a_marker(stopped: Path, opened: Opened) -> None:
    (stopped / MARKER_NAME).unlink()
    async with opened() as store:
        assert marked(stopped) == store.identity.identifier
        assert lookups(store) == [1, 2, 3]


@pytest.mark.parametrize("remains", ["", "not an identifier", "half"])
async def test_a_marker_that_says_something_else_is_written_anew(
    stopped: Path, opened: Opened, remains: str
) -> None:
    (stopped / MARKER_NAME).write_text(remains)
    async with opened() as store:
        assert marked(stopped) == store.identity.identifier


async def test_a_marker_that_is_right_is_left_alone(stopped: Path, opened: Opened) -> None:
    before = (stopped / MARKER_NAME).stat()
    async with opened():
        pass
    after = (stopped / MARKER_NAME).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize("where", ["new", "own", "other"])
async def test_a_backup_starts_in_every_directory(
    stopped: Path, opened: Opened, tmp_path: Path, where: str
) -> None:
    async with opened() as store:
        identity = store.identity
        await store.backup(tmp_path / "backup.db")
    target = stopped if where == "own" else tmp_path / where
    if where == "other":
        async with opened(target, identifier=uuid4()):
            pass
    target.mkdir(exist_ok=True)
    (target / DATABASE_NAME).unlink(missing_ok=True)
    shutil.copy(tmp_path / "backup.db", target / DATABASE_NAME)
    async with opened(target) as store:
        assert store.identity == identity
        assert lookups(store) == [1, 2, 3]
        assert marked(target) == identity.identifier


async def test_a_marker_that_cannot_be_written(
    stopped: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    (stopped / MARKER_NAME).unlink()
    with monkeypatch.context() as patch:
        patch.setattr(marker, "sync", full)
        with pytest.raises(StoreFullError, match="cannot write"):
            await Store.open(stopped, name="LON-1", now=0.0)
    assert sorted(contents(stopped)) == [DATABASE_NAME]
    async with opened() as store:
        assert lookups(store) == [1, 2, 3]


def full(path: Path) -> None:
    files.sync(path)
    if path.name.startswith(MARKER_NAME):
        raise OSError(28, "No space left on device")
