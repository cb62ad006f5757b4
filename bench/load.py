"""The load that the benchmarks of a manager in this process put on it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from lanner.manager import ManagerSettings, OpenQueue, QueueManager
from lanner.model.message import INFINITE, Delivery, Message
from lanner.model.queue import QueueAccess

__all__ = ["BODY", "QUEUE", "manager_at", "open_handles", "recoverable"]

QUEUE = r".\private$\bench"
BODY = os.urandom(1024)


def recoverable(count: int) -> list[Message]:
    """Make durable messages of 1 KB, as an application would: each a new object."""
    return [Message(body=BODY, delivery=Delivery.RECOVERABLE) for _ in range(count)]


@asynccontextmanager
async def manager_at(directory: Path) -> AsyncIterator[QueueManager]:
    """A manager with the default settings but for its quota, and one plain queue."""
    async with await QueueManager.open(
        directory, name="BENCH", settings=ManagerSettings(quota=INFINITE)
    ) as manager:
        if all(info.path != QUEUE for info in manager.queues()):
            await manager.create_queue(QUEUE)
        yield manager


def open_handles(manager: QueueManager) -> tuple[OpenQueue, OpenQueue]:
    """A handle to send and one to receive."""
    return manager.open_queue(QUEUE, QueueAccess.SEND), manager.open_queue(QUEUE, QueueAccess.RECEIVE)
