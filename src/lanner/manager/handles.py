"""Open queues: who has which queue open, for what, and whom that excludes (MS-MQDMPR 3.1.1.16)."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import TYPE_CHECKING

from lanner.manager.positions import Position
from lanner.manager.queues import Queue
from lanner.model.errors import (
    QueueDeletedError,
    SharingViolationError,
    StaleHandleError,
    UnsupportedAccessModeError,
)
from lanner.model.format_name import FormatName
from lanner.model.path_name import PathName
from lanner.model.queue import QueueAccess, ShareMode

if TYPE_CHECKING:
    from lanner.manager.cursors import Cursor

__all__ = ["OpenQueue", "check_sharing"]

_numbers = itertools.count(1)


class OpenQueue:
    """A handle (OpenQueueDescriptor). Made by ``open_queue``, ended by ``close_queue``.

    A handle on a multiple-element format name has ``elements`` and no queue of its own.
    """

    def __init__(
        self,
        name: FormatName | PathName,
        queue: Queue | None,
        access: QueueAccess,
        share: ShareMode,
        elements: Iterable[OpenQueue] = (),
    ) -> None:
        self.number = next(_numbers)
        self.format_name = name
        """What it was opened by: a format name, or the path name of a local queue."""
        self.access = access
        self.share = share
        self.elements = tuple(elements)
        self.cursors: set[Cursor] = set()
        self.begun: dict[int, Position] = {}
        """What is being received in two phases through this handle, by lookup identifier (3.1.7.1.11)."""
        self.is_closed = False
        self._queue = queue
        if queue is not None:
            queue.handles.add(self)

    def __repr__(self) -> str:
        return f"<OpenQueue {self.number} {self.format_name} for {self.access.value}>"

    @property
    def queue(self) -> Queue:
        """The queue behind the handle, as long as both are there."""
        if self.is_closed:
            raise StaleHandleError(f"the handle on {self.format_name} is closed", hint="open the queue again")
        if self._queue is None:
            raise UnsupportedAccessModeError(f"{self.format_name} has several elements: only send to it")
        if self._queue.is_deleted:
            raise QueueDeletedError(f"{self._queue.name} was deleted", hint="close the handle")
        return self._queue

    def for_sending(self) -> Queue:
        """The queue, if the handle is for sending."""
        if self.access is not QueueAccess.SEND:
            raise self._wrong_access("send")
        return self.queue

    def for_peeking(self) -> Queue:
        """The queue, if the handle allows to look at messages."""
        if not self.access.reads:
            raise self._wrong_access("peek")
        return self.queue

    def for_receiving(self) -> Queue:
        """The queue, if the handle allows to take messages out."""
        if not self.access.consumes:
            raise self._wrong_access("receive")
        return self.queue

    def detach(self) -> Queue | None:
        """End the handle. Gives back the queue that it was on."""
        self.is_closed = True
        if self._queue is not None:
            self._queue.handles.discard(self)
        return self._queue

    def _wrong_access(self, wanted: str) -> UnsupportedAccessModeError:
        return UnsupportedAccessModeError(
            f"{self.format_name} is open for {self.access.value}, not for {wanted}",
            hint=f"open it again for {wanted}",
        )


def check_sharing(queue: Queue, access: QueueAccess, share: ShareMode) -> None:
    """Refuse a handle that another one excludes, or that would exclude another (MS-MQDMPR 3.1.7.1.5).

    Decision: the text lets DENY_RECEIVE through beside an open peek handle and checks receivers
    against each other alone; here a reader with DENY_RECEIVE and any consumer exclude each other.
    """
    if not access.reads:
        return
    for other in queue.handles:
        if not other.access.reads:
            continue
        excluded = other.share is ShareMode.DENY_RECEIVE and access.consumes
        excludes = share is ShareMode.DENY_RECEIVE and other.access.consumes
        if excluded or excludes:
            raise SharingViolationError(
                f"{queue.name} is open elsewhere for {other.access.value} ({other.share.value})",
                hint="close the other handle, or open with DENY_NONE on both sides",
            )
