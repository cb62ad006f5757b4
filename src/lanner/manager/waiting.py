"""Readers that wait for a message (MS-MQDMPR 3.1.1.10, 3.1.7.2.2 and 3.1.7.3.1)."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from typing import TYPE_CHECKING

from lanner.manager.clock import Clock
from lanner.manager.positions import Position
from lanner.model.errors import LannerError, ReceiveTimeoutError
from lanner.model.message_id import MessageId

if TYPE_CHECKING:
    from lanner.manager.cursors import Cursor
    from lanner.manager.handles import OpenQueue
    from lanner.manager.queues import Queue

__all__ = ["WaitingReader", "WaitingReaders", "Wanted"]


class Wanted:
    """Which message a reader wants: any, one by its identifier, or one by its correlation."""

    __slots__ = ("correlation_id", "message_id")

    def __init__(self, message_id: MessageId | None = None, correlation_id: MessageId | None = None) -> None:
        self.message_id = message_id
        self.correlation_id = correlation_id

    @property
    def is_any(self) -> bool:
        """Whether every message will do."""
        return self.message_id is None and self.correlation_id is None

    def matches(self, position: Position) -> bool:
        """Whether this message will do."""
        if self.message_id is not None and position.id != self.message_id:
            return False
        return self.correlation_id is None or position.correlation == self.correlation_id


class WaitingReader:
    """One read that found nothing yet."""

    __slots__ = ("cursor", "destructive", "future", "handle", "tag", "wanted")

    def __init__(
        self,
        handle: OpenQueue,
        wanted: Wanted,
        destructive: bool,
        tag: Hashable | None,
        cursor: Cursor | None = None,
    ) -> None:
        self.handle = handle
        self.wanted = wanted
        self.destructive = destructive
        self.tag = tag
        self.cursor = cursor
        self.future: asyncio.Future[Position] = asyncio.get_running_loop().create_future()

    def given(self) -> Position | None:
        """The message that this reader was given, if it was given one."""
        future = self.future
        if not future.done() or future.cancelled() or future.exception() is not None:
            return None
        return future.result()


class WaitingReaders:
    """The readers of one queue, served in the order in which they came."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._readers: dict[WaitingReader, None] = {}

    def __len__(self) -> int:
        return len(self._readers)

    async def wait(self, reader: WaitingReader, timeout: float | None, clock: Clock) -> Position:
        """Wait until a message is given to this reader. A destructive reader gets it locked."""
        self._readers[reader] = None
        timer = None
        if timeout is not None:
            timer = clock.call_at(clock.monotonic() + timeout, lambda: self._expire(reader))
        try:
            return await reader.future
        finally:
            self._readers.pop(reader, None)
            if timer is not None:
                timer.cancel()

    def offer(self, position: Position) -> None:
        """Give a message to the first who wants to take it, and show it to those who peek on the way."""
        if not self._readers:
            return
        for reader in tuple(self._readers):
            if reader.future.done() or not reader.wanted.matches(position):
                continue
            del self._readers[reader]
            if reader.destructive:
                self._queue.messages.lock(position)
            reader.future.set_result(position)
            if reader.destructive:
                return

    def cancel(
        self,
        error: LannerError,
        *,
        tag: Hashable | None = None,
        handle: OpenQueue | None = None,
        cursor: Cursor | None = None,
    ) -> int:
        """End waiting reads with an error: those of one tag, handle or cursor, or all. Says how many."""
        count = 0
        for reader in tuple(self._readers):
            if tag is not None and reader.tag != tag:
                continue
            if handle is not None and reader.handle is not handle:
                continue
            if cursor is not None and reader.cursor is not cursor:
                continue
            del self._readers[reader]
            if not reader.future.done():
                reader.future.set_exception(error)
                count += 1
        return count

    def _expire(self, reader: WaitingReader) -> None:
        if not reader.future.done():
            reader.future.set_exception(ReceiveTimeoutError(f"no message came to {self._queue.name} in time"))
