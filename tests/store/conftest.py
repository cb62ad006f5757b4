from __future__ import annotations

import shutil
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from lanner.model.history import HistoryRow
from lanner.model.message import Delivery, Message
from lanner.model.message_id import MessageId
from lanner.store import Changes, Store
from lanner.store.codec import content_record, flags_of

LINEAGE = UUID(int=7)
QUEUE = 1


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Where the store of a test is."""
    return tmp_path / "store"


@pytest.fixture
def opened(directory: Path) -> Callable[..., AbstractAsyncContextManager[Store]]:
    """Opens the store of the test, or the one in another directory, for a ``with`` block."""

    @asynccontextmanager
    async def open_store(where: Path = directory, **options: Any) -> AsyncIterator[Store]:
        store = await Store.open(where, **{"name": "LON-1", "now": 1000.0, **options})
        try:
            yield store
        finally:
            await store.close()

    return open_store


@pytest.fixture
async def store(opened: Callable[..., AbstractAsyncContextManager[Store]]) -> AsyncIterator[Store]:
    async with opened() as store:
        yield store


@pytest.fixture
def make_message() -> Callable[..., Message]:
    """Makes the message with this number: its lookup identifier, and part of its identifier."""

    def message(number: int, body: bytes | None = None, **attributes: Any) -> Message:
        return Message(
            id=MessageId.of(LINEAGE, number),
            lookup_id=number,
            body=b"body of %d" % number if body is None else body,
            label=f"message {number}",
            delivery=Delivery.RECOVERABLE,
            arrival_time=1000.0 + number,
            **attributes,
        )

    return message


@pytest.fixture
def sending() -> Callable[..., Changes]:
    """Makes the changes that put messages into a queue, with as many history rows."""

    def changes_of(*messages: Message) -> Changes:
        changes = Changes()
        for message in messages:
            assert message.id is not None
            changes.messages.append(
                (
                    message.lookup_id,
                    QUEUE,
                    message.id,
                    message.correlation_id,
                    message.size,
                    message.message_class,
                    flags_of(message),
                    message.arrival_time,
                    message.expiry(),
                    message.abort_count,
                )
            )
            changes.contents.append(content_record(message))
            changes.history.append(_history_row(message_id=str(message.id), lookup_id=message.lookup_id))
        return changes

    return changes_of


@pytest.fixture
def recording() -> Callable[..., Changes]:
    """Makes changes that are nothing but so many history rows, all with the given values."""

    def changes_of(count: int, **values: Any) -> Changes:
        changes = Changes()
        changes.history.extend(_history_row(**values) for _ in range(count))
        return changes

    return changes_of


def _history_row(**values: Any) -> HistoryRow:
    row: dict[str, Any] = dict.fromkeys(HistoryRow.__struct_fields__)
    row |= {"lsn": 0, "time": 1000.0, "event": "sent", "queue": r".\private$\orders"}
    row |= {"message_id": "m", "lookup_id": 1, "message_class": 0, "priority": 3, "size": 128}
    return HistoryRow(**(row | values))


@pytest.fixture
def send(make_message: Callable[..., Message], sending: Callable[..., Changes]) -> Callable[..., Any]:
    """Commits messages with these numbers, each in a set of changes of its own, one after another."""

    async def commit(store: Store, *numbers: int, **attributes: Any) -> None:
        for number in numbers:
            await store.commit(sending(make_message(number, **attributes)))

    return commit


@pytest.fixture
def remove() -> Callable[[Store, list[int]], Awaitable[None]]:
    """Commits the deletion of messages."""

    async def commit(store: Store, numbers: list[int]) -> None:
        changes = Changes()
        changes.deletes.extend(numbers)
        await store.commit(changes)

    return commit


@pytest.fixture
def crash(tmp_path: Path) -> Callable[[Store], Path]:
    """Copies what a process that was killed now would leave behind, and says where."""

    def copy(store: Store) -> Path:
        target = tmp_path / "crashed"
        target.mkdir()
        for path in (store.path, store.path.with_name(store.path.name + "-wal")):
            shutil.copy(path, target)
        return target

    return copy


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path | None]:
    """A disk of a megabyte, or None where this process may not mount one."""
    directory = tmp_path / "disk"
    directory.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(directory)]
    if subprocess.run(mount, capture_output=True).returncode != 0:
        yield None
        return
    try:
        yield directory
    finally:
        subprocess.run(["umount", str(directory)], check=True)


@pytest.fixture
def fill_disk() -> Callable[[Path], Path]:
    """Fills a small disk to the last byte, with a file that a test may delete."""

    def fill(directory: Path) -> Path:
        path = directory / "filler"
        with path.open("ab", buffering=0) as filler, suppress(OSError):
            while filler.write(bytes(4096)):
                pass
        assert shutil.disk_usage(directory).free == 0
        return path

    return fill
