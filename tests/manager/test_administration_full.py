"""Administration on a full disk changes nothing."""

from __future__ import annotations

import sqlite3

import pytest
from tests.manager.conftest import (
    DESCRIPTOR,
    ORDERS,
    bodies,
    durable,
    express,
    full_disk,
    paths,
)

from lanner.manager import QueueManager
from lanner.model.errors import (
    QueueNotFoundError,
    StoreFullError,
)
from lanner.model.queue import (
    OutgoingState,
    QueueProperties,
)
from lanner.store import Changes


async def test_on_a_full_disk_no_queue_is_made(manager: QueueManager) -> None:
    async with full_disk(manager):
        with pytest.raises(StoreFullError):
            await manager.create_queue(ORDERS, QueueProperties(label="x" * 100))
        with pytest.raises(QueueNotFoundError):
            manager.queue(ORDERS)
    await manager.create_queue(ORDERS)
    assert paths(manager) == [ORDERS]


async def test_on_a_full_disk_no_queue_is_changed(manager: QueueManager, orders: str) -> None:
    before = manager.queue(orders)
    changed = QueueProperties(label="x" * 100)
    async with full_disk(manager):
        with pytest.raises(StoreFullError):
            await manager.change_queue(orders, changed, security=DESCRIPTOR)
        assert manager.queue(orders) == before
    assert (await manager.change_queue(orders, changed)).properties == changed


async def test_on_a_full_disk_no_queue_is_paused(manager: QueueManager, far: str) -> None:
    async with full_disk(manager):
        with pytest.raises(StoreFullError):
            await manager.pause_queue(far)
        assert manager.queue(far).state is OutgoingState.INACTIVE
        assert not manager._core.queues.get(far).record.on_hold
    await manager.pause_queue(far)
    assert manager.queue(far).state is OutgoingState.ON_HOLD


async def test_on_a_full_disk_nothing_is_purged_or_deleted(manager: QueueManager, orders: str) -> None:
    await manager.send_many(orders, [durable(b"one"), express(b"two")])
    async with full_disk(manager):
        with pytest.raises(StoreFullError):
            await manager.purge_queue(orders)
        with pytest.raises(StoreFullError):
            await manager.delete_queue(orders)
        assert await bodies(manager, orders) == [b"one", b"two"]
        assert paths(manager) == [orders]
    await manager.send(orders, durable(b"three"))
    assert await manager.purge_queue(orders) == 3
    await manager.delete_queue(orders)
    assert paths(manager) == []


async def test_a_queue_whose_deletion_is_not_stored_is_still_there(
    manager: QueueManager, orders: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = manager.store._writer
    write = writer._write

    def refuse(group: list[Changes]) -> None:
        if any(changes.queue_deletes for changes in group):
            error = sqlite3.OperationalError("full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error
        write(group)

    with monkeypatch.context() as patched:
        patched.setattr(writer, "_write", refuse)
        with pytest.raises(StoreFullError):
            await manager.delete_queue(orders)
    await manager.send(orders, durable(b"one"))
    assert (await manager.receive(orders, timeout=0)).body == b"one"
    await manager.delete_queue(orders)
    assert paths(manager) == []
