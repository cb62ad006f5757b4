from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from lanner.store import Store, checkpointer, database
from lanner.store.checkpointer import CHECKPOINT_BYTES, Checkpointer

Send = Callable[..., Awaitable[None]]
Opened = Callable[..., AbstractAsyncContextManager[Store]]

PATIENCE = 10.0


class Attempts(threading.Semaphore):
    """Counts what the checkpointer has tried, and lets a test wait for it."""

    fails = False

    def connect(self, path: Path) -> sqlite3.Connection:
        return Watched(path, self)


class Watched(sqlite3.Connection):
    def __init__(self, path: Path, attempts: Attempts) -> None:
        super().__init__(path, isolation_level=None, check_same_thread=False)
        self._attempts = attempts

    def execute(self, sql: str, *_: object) -> sqlite3.Cursor:
        try:
            if self._attempts.fails:
                raise sqlite3.OperationalError("disk I/O error")
            return super().execute(sql)
        finally:
            self._attempts.release()


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch) -> Attempts:
    attempts = Attempts(0)
    monkeypatch.setattr(checkpointer, "open_checkpointer", attempts.connect)
    return attempts


async def test_the_log_is_copied_back_when_it_has_grown(
    opened: Opened, send: Send, attempts: Attempts, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened() as store:
        before = store.path.stat().st_size
        await send(store, 1, body=bytes(200_000))
        assert store.path.stat().st_size == before
        monkeypatch.setattr(checkpointer, "CHECKPOINT_BYTES", 300_000)
        await send(store, 2, body=bytes(200_000))
        assert await asyncio.to_thread(attempts.acquire, timeout=PATIENCE)
        assert store.path.stat().st_size > before + 400_000
        assert sorted(await store.messages([1, 2])) == [1, 2]


def test_a_copy_that_fails_is_tried_again(
    tmp_path: Path, attempts: Attempts, caplog: pytest.LogCaptureFixture
) -> None:
    database.open_writer(tmp_path / "lanner.db").close()
    attempts.fails = True
    copying = Checkpointer(tmp_path / "lanner.db")
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            copying.wrote(CHECKPOINT_BYTES - 1)
            assert not attempts.acquire(blocking=False)
            copying.wrote(1)
            assert attempts.acquire(timeout=PATIENCE)
        copying.close()
    assert caplog.text.count("the log could not be copied back: disk I/O error") == 2
