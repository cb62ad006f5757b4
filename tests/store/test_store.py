from __future__ import annotations

import asyncio
import errno
import os
import shutil
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, closing
from itertools import count
from pathlib import Path
from uuid import UUID

import pytest

from lanner.model.errors import StoreError, StoreFullError
from lanner.model.message import Message
from lanner.model.message_id import MessageId
from lanner.store import Changes, Store, StoreIdentity
from lanner.store.database import DATABASE_NAME, LOCK_NAME, DirectoryLock, open_reader
from lanner.store.marker import MARKER_NAME

Opened = Callable[..., AbstractAsyncContextManager[Store]]
MakeMessage = Callable[..., Message]
Sending = Callable[..., Changes]
Send = Callable[..., Awaitable[None]]
Remove = Callable[[Store, list[int]], Awaitable[None]]
Crash = Callable[[Store], Path]


def lookups(store: Store) -> list[int]:
    return [row[0] for row in store.index()]


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


# Identity.


async def test_identity_is_given_once(opened: Opened) -> None:
    identifier = UUID(int=99)
    async with opened(name="LON-1", identifier=identifier) as store:
        assert store.identity == StoreIdentity("LON-1", identifier)
    async with opened(name="LON-2", identifier=UUID(int=1)) as store:
        assert store.identity == StoreIdentity("LON-1", identifier)


async def test_an_identity_is_made_up(opened: Opened) -> None:
    async with opened() as store:
        identity = store.identity
        assert identity.identifier.version == 4
    async with opened() as store:
        assert store.identity == identity


async def test_sequential_is_what_was_reserved(opened: Opened) -> None:
    async with opened() as store:
        assert store.sequential == 1
        changes = Changes()
        changes.meta.append(("sequential", 1 << 20))
        await store.commit(changes)
    async with opened() as store:
        assert store.sequential == 1 << 20


async def test_when_it_was_made_is_kept(opened: Opened) -> None:
    query = "SELECT value FROM meta WHERE key = 'created'"
    for now in (5.0, 6.0):
        async with opened(now=now) as store:
            assert await store.read(lambda connection: connection.execute(query).fetchone()) == (5.0,)


# What is written is there.


async def test_messages_over_a_restart(opened: Opened, make_message: MakeMessage, sending: Sending) -> None:
    correlation = MessageId(bytes(range(20)))
    messages = {
        2: make_message(2, correlation_id=correlation, time_to_be_received=10, sent_time=5.0),
        1: make_message(1, extension=b"extension"),
        9: make_message(9, message_class=2, abort_count=4, positive_journaling=True),
    }
    async with opened() as store:
        await store.commit(sending(*messages.values()))
    async with opened() as store:
        assert list(store.index()) == [
            (1, 1, messages[1].id, None, messages[1].size, 0, 0, None, 0),
            (2, 1, messages[2].id, correlation, messages[2].size, 0, 0, 15.0, 0),
            (9, 1, messages[9].id, None, messages[9].size, 2, 1, None, 4),
        ]
        assert await store.messages([1, 2, 9]) == messages
        assert (await store.messages([1], bodies=False))[1].extension == b""


async def test_queues_over_a_restart(opened: Opened) -> None:
    rows = [
        (1, "private", r".\private$\a", None, b'{"label":"x"}', b"\x01\x00"),
        (2, "journal", r".\private$\a;journal", 1, b"{}", None),
    ]
    changes = Changes()
    changes.queues.extend(reversed(rows))
    async with opened() as store:
        await store.commit(changes)
    async with opened() as store:
        assert store.queues() == rows


async def test_a_commit_is_there_after_a_kill(opened: Opened, send: Send, crash: Crash) -> None:
    async with opened() as store:
        await send(store, 1, 2, 3)
        killed = crash(store)
    async with opened(killed) as store:
        assert lookups(store) == [1, 2, 3]
        assert sorted(await store.messages([1, 2, 3])) == [1, 2, 3]
        assert store.history.last_lsn == 3


async def test_a_torn_log_loses_whole_commits_from_the_end(opened: Opened, send: Send, crash: Crash) -> None:
    async with opened() as store:
        await send(store, *range(1, 6))
        killed = crash(store)
    log = killed / (DATABASE_NAME + "-wal")
    whole = log.read_bytes()
    seen = set()
    for number, length in enumerate(range(len(whole), 0, -1500)):
        copy = killed / str(number)
        copy.mkdir()
        shutil.copy(killed / DATABASE_NAME, copy)
        (copy / log.name).write_bytes(whole[:length])
        seen.add(len(await assert_whole(opened, copy)))
    assert {0, 3, 5} <= seen


async def assert_whole(opened: Opened, directory: Path) -> list[int]:
    """Open a store to which the numbers from 1 were sent, one by one: none may be missing between."""
    async with opened(directory) as store:
        found = lookups(store)
        assert found == list(range(1, len(found) + 1))
        assert sorted(await store.messages(found)) == found
        assert store.history.last_lsn == len(found)
        rows = await store.history.rows(1, len(found), limit=len(found) + 1)
        assert [row.lookup_id for row in rows] == found
        return found


async def test_what_failed_is_raised(store: Store, make_message: MakeMessage, sending: Sending) -> None:
    await store.commit(sending(make_message(1)))
    with pytest.raises(StoreError, match="UNIQUE"):
        await store.commit(sending(make_message(1)))
    await store.commit(sending(make_message(2)))
    assert lookups(store) == [1, 2]


async def test_cancelling_does_not_undo(
    store: Store, make_message: MakeMessage, sending: Sending, send: Send
) -> None:
    changes = sending(make_message(1))
    task = asyncio.create_task(store.commit(changes))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await send(store, 2)
    assert changes.is_settled
    assert lookups(store) == [1, 2]


async def test_the_backlog_and_the_statistics_are_the_writers(
    store: Store, make_message: MakeMessage, sending: Sending
) -> None:
    changes = sending(make_message(1))
    store.submit(changes)
    assert store.backlog_rows == changes.row_count()
    await store.commit(Changes())
    assert store.backlog_rows == 0
    assert store.statistics.messages == 1


async def test_a_query_that_fails(store: Store) -> None:
    with pytest.raises(StoreError, match="no such table"):
        await store.read(lambda connection: connection.execute("SELECT * FROM nowhere"))


# Outcomes and the state of protocols.


async def test_outcomes_are_kept_until_forgotten(opened: Opened) -> None:
    changes = Changes()
    changes.outcomes += [("old", b"1", 10.0), ("young", b"2", 20.0)]
    async with opened() as store:
        assert await store.outcome("old") is None
        await store.commit(changes)
        assert await store.outcome("old") == b"1"
    async with opened() as store:
        assert await store.forget_outcomes(20.0) == 1
        assert await store.outcome("old") is None
        assert await store.outcome("young") == b"2"
        assert await store.forget_outcomes(20.0) == 0


async def test_state_belongs_to_a_scope(opened: Opened) -> None:
    changes = Changes()
    changes.state += [("tcp", "a", b"1"), ("tcp", "b", b"2"), ("srmp", "a", b"3")]
    async with opened() as store:
        await store.commit(changes)
    async with opened() as store:
        assert await store.state("tcp") == {"a": b"1", "b": b"2"}
        assert await store.state("srmp") == {"a": b"3"}
        assert await store.state("none") == {}


async def test_state_is_put_and_deleted(store: Store) -> None:
    changes = Changes()
    changes.state += [("tcp", "a", b"1"), ("tcp", "b", b"2")]
    await store.commit(changes)
    changes = Changes()
    changes.state.append(("tcp", "b", b"3"))
    changes.state_deletes += [("tcp", "a"), ("tcp", "unknown"), ("srmp", "b")]
    await store.commit(changes)
    assert await store.state("tcp") == {"b": b"3"}


async def test_state_shares_the_fate_of_its_messages(
    store: Store, make_message: MakeMessage, sending: Sending, send: Send
) -> None:
    await send(store, 1)
    changes = sending(make_message(1))  # once more: refused
    changes.state.append(("tcp", "a", b"1"))
    with pytest.raises(StoreError):
        await store.commit(changes)
    assert await store.state("tcp") == {}


# Compaction.


async def test_compaction_gives_space_back_and_loses_nothing(
    opened: Opened, make_message: MakeMessage, sending: Sending, remove: Remove
) -> None:
    messages = {number: make_message(number, os.urandom(5000)) for number in range(1, 1001)}
    living = list(range(7, 1001, 50))
    async with opened() as store:
        for first in range(1, 1001, 100):
            await store.commit(sending(*(messages[number] for number in range(first, first + 100))))
        await store.compact()
        full = store.path.stat().st_size
        await remove(store, [number for number in messages if number not in living])
        assert await store.compact() == full - store.path.stat().st_size
        assert store.path.stat().st_size < full / 10
        assert await store.messages(living) == {number: messages[number] for number in living}
    async with opened() as store:
        assert lookups(store) == living
        assert await store.messages(living) == {number: messages[number] for number in living}


async def test_compaction_beside_commits(store: Store, send: Send, remove: Remove) -> None:
    await send(store, *range(1, 101), body=bytes(20_000))
    await remove(store, list(range(1, 91)))
    _, freed = await asyncio.gather(send(store, *range(101, 151)), store.compact())
    assert freed > 0
    assert lookups(store) == list(range(91, 151))
    assert len(await store.messages(lookups(store))) == 60


async def test_there_is_nothing_to_compact(store: Store, send: Send) -> None:
    await send(store, 1)
    await store.compact()
    assert await store.compact() == 0


# Backup.


def restored(backup: Path, directory: Path) -> Path:
    directory.mkdir()
    shutil.copy(backup, directory / DATABASE_NAME)
    return directory


async def test_a_backup_is_a_store(opened: Opened, send: Send, tmp_path: Path) -> None:
    backup = tmp_path / "backup.db"
    async with opened() as store:
        await send(store, 1, 2, 3)
        assert await store.backup(backup) == backup.stat().st_size
        identity = store.identity
    async with opened(restored(backup, tmp_path / "restored")) as store:
        assert store.identity == identity
        assert await store.messages([1, 2, 3]) != {}
        await send(store, 4)
        assert store.history.last_lsn == 4
    await assert_whole(opened, tmp_path / "restored")


async def test_a_backup_of_a_store_in_use_has_whole_commits(
    opened: Opened, send: Send, tmp_path: Path
) -> None:
    async with opened() as store:
        await send(store, *range(1, 101), body=bytes(10_000))
        is_over = False

        async def go_on() -> None:
            for number in count(101):
                await send(store, number)
                if is_over:
                    return

        sender = asyncio.create_task(go_on())
        backups = [tmp_path / f"{number}.db" for number in range(3)]
        committed = []
        for backup in backups:
            committed.append(len(lookups(store)))
            await store.backup(backup)
        is_over = True
        await sender
        last = len(lookups(store))
    assert committed[-1] < last
    for backup, least in zip(backups, committed, strict=True):
        found = await assert_whole(opened, restored(backup, tmp_path / backup.stem))
        assert least <= len(found) <= last


async def test_a_backup_overwrites_nothing(store: Store, tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("precious")
    with pytest.raises(StoreError, match="exists already"):
        await store.backup(target)
    assert target.read_text() == "precious"


async def test_a_backup_replaces_one_that_was_cut_short(store: Store, tmp_path: Path) -> None:
    (tmp_path / "backup.db.unfinished").write_text("half of a backup")
    await store.backup(tmp_path / "backup.db")
    assert not (tmp_path / "backup.db.unfinished").exists()


@pytest.mark.parametrize("place", ["nowhere", "file"])
async def test_a_backup_to_a_place_that_is_not_there(store: Store, tmp_path: Path, place: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=rf"{place}/backup\.db"):
        await store.backup(tmp_path / place / "backup.db")


async def test_a_backup_without_room(
    store: Store,
    send: Send,
    small_disk: Path | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await send(store, *range(1, 21), body=os.urandom(100_000))
    directory = small_disk or tmp_path / "disk"
    if small_disk is None:
        monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(StoreError if small_disk is None else StoreFullError):
        await store.backup(directory / "backup.db")
    assert names(directory) == []
    await send(store, 21)


def no_space(_: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


async def test_a_backup_that_cannot_be_synced(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(StoreFullError, match=r"cannot write the backup .*: the disk is full"):
        await store.backup(tmp_path / "backup.db")
    assert not any(name.startswith("backup") for name in names(tmp_path))


# The end.


async def test_closing_keeps_what_was_submitted(
    opened: Opened, make_message: MakeMessage, sending: Sending
) -> None:
    async with opened() as store:
        for number in (1, 2, 3):
            store.submit(sending(make_message(number)))
    async with opened() as store:
        assert lookups(store) == [1, 2, 3]


async def test_closing_leaves_no_log(directory: Path, opened: Opened, send: Send) -> None:
    async with opened() as store:
        await send(store, 1)
    assert names(directory) == [DATABASE_NAME, MARKER_NAME, LOCK_NAME]


async def test_a_store_that_cannot_note_its_end(directory: Path, send: Send) -> None:
    # Everything is let go of, and the next start knows that it was no clean stop.
    store = await Store.open(directory, name="LON-1", now=0.0)
    await send(store, 1)
    with closing(sqlite3.connect(store.path, isolation_level=None)) as shell:
        shell.execute("CREATE TRIGGER full BEFORE INSERT ON meta BEGIN SELECT raise(ABORT, 'no'); END")
    with pytest.raises(StoreError, match="no"):
        await store.close()
    DirectoryLock(directory).release()
    with closing(open_reader(directory / DATABASE_NAME)) as connection:
        assert connection.execute("SELECT value FROM meta WHERE key = 'clean'").fetchone() == (0,)


async def test_a_person_may_look_while_it_runs(store: Store, send: Send) -> None:
    with closing(sqlite3.connect(store.path)) as shell:
        cursor = shell.execute("SELECT key FROM meta")
        assert cursor.fetchone() is not None  # and does not let go of it
        await send(store, 1)
        assert lookups(store) == [1]
