"""Opening and closing queues (MS-MQDMPR 3.1.7.1.5, 3.1.7.1.6 and 3.1.7.1.26)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from lanner.manager.core import Core
from lanner.manager.cursors import Cursor
from lanner.manager.delivery import Delivery
from lanner.manager.handles import OpenQueue, check_sharing
from lanner.manager.naming import AnyName
from lanner.manager.queues import OutgoingQueue, Queue
from lanner.model.errors import (
    AccessDeniedError,
    InvalidNameError,
    LannerError,
    OperationCancelledError,
    QueueNotFoundError,
    UnsupportedAccessModeError,
    UnsupportedOperationError,
)
from lanner.model.format_name import (
    DirectName,
    FormatName,
    MachineName,
    MulticastName,
    MultipleName,
    PublicName,
    SingleQueueName,
)
from lanner.model.names import QueueKind as PathKind
from lanner.model.path_name import PathName
from lanner.model.queue import QueueAccess, QueueKind, ShareMode
from lanner.model.security import QueueRight, Token, access_check

__all__ = ["Opening"]

_RIGHTS = {
    QueueAccess.SEND: QueueRight.WRITE_MESSAGE,
    QueueAccess.RECEIVE: QueueRight.RECEIVE_MESSAGE,
    QueueAccess.RECEIVE_ADMIN: QueueRight.RECEIVE_MESSAGE,
    QueueAccess.PEEK: QueueRight.PEEK_MESSAGE,
    QueueAccess.PEEK_ADMIN: QueueRight.PEEK_MESSAGE,
    QueueAccess.MOVE: QueueRight.RECEIVE_MESSAGE,
}


class Opening:
    """Gives out handles."""

    def __init__(self, core: Core, delivery: Delivery) -> None:
        self._core = core
        self._delivery = delivery

    def open(self, name: AnyName, access: QueueAccess, share: ShareMode, token: Token | None) -> OpenQueue:
        """Open Queue (3.1.7.1.5)."""
        elements = self._core.queues.expand(self._core.queues.parse(name))
        if len(elements) == 1:
            return self._open_single(elements[0], access, share, token)
        if access is not QueueAccess.SEND:
            raise UnsupportedOperationError("a name with several elements can only be opened for sending")
        if share is not ShareMode.DENY_NONE:
            raise UnsupportedAccessModeError("a name with several elements is opened with DENY_NONE")
        handles: list[OpenQueue] = []
        try:
            for element in elements:
                handles.append(self._open_single(element, access, share, token))
        except BaseException:
            for handle in handles:
                self.close(handle)
            raise
        names = tuple(element for element in elements if isinstance(element, FormatName))
        return OpenQueue(MultipleName(names), None, access, share, handles)

    def close(self, handle: OpenQueue) -> None:
        """Close Queue (3.1.7.1.6)."""
        if handle.is_closed:
            return
        for element in handle.elements:
            self.close(element)
        for cursor in tuple(handle.cursors):
            self.close_cursor(cursor)
        queue = handle.detach()
        if queue is not None:
            self._end_receives(handle, queue)
            error = OperationCancelledError(f"the handle on {queue.name} was closed")
            queue.readers.cancel(error, handle=handle)
            self._core.drop_idle_subqueue(queue)

    def _end_receives(self, handle: OpenQueue, queue: Queue) -> None:
        """Give back what was to be received in two phases: nobody is left to end it.

        Decision: Close Queue says nothing of Dequeue Message Begin, and would leave the message locked until
        a restart. Here it ends as Dequeue Message End does that deletes nothing (3.1.7.1.12).
        """
        begun, handle.begun = handle.begun, {}
        if not self._core.is_running:
            return
        for position in begun.values():
            # Deleting the queue may have made it a dead letter meanwhile, which others may have locked.
            if position.queue is queue:
                self._delivery.release(position)

    def close_cursor(self, cursor: Cursor) -> None:
        """Close Cursor (3.1.7.1.2)."""
        cursor.close()
        cursor.queue.readers.cancel(OperationCancelledError("the cursor was closed"), cursor=cursor)

    @contextmanager
    def opened(self, name: AnyName, access: QueueAccess, token: Token | None) -> Iterator[OpenQueue]:
        """Open for the length of one operation."""
        self._core.check_running()
        handle = self.open(name, access, ShareMode.DENY_NONE, token)
        try:
            yield handle
        finally:
            self.close(handle)

    def move_target(self, name: AnyName) -> Queue:
        """The queue that messages are moved into: a subqueue is made if it is not there."""
        parsed = self._core.queues.parse(name)
        queue = self._core.queues.find(parsed)
        if queue is None:
            queue = self._new_subqueue(parsed)
        if isinstance(queue, OutgoingQueue) or queue.is_read_only:
            raise UnsupportedOperationError(f"messages cannot be moved to {queue.name}")
        return queue

    def path_of(self, name: FormatName | PathName) -> tuple[str, str]:
        """Get Queue Path (3.1.7.1.26), as far as it can be told without a directory."""
        if isinstance(name, PathName):
            raise self._core.queues.not_found(name)
        if isinstance(name, PublicName):
            return self._public_path(name)
        if not isinstance(name, DirectName):
            raise InvalidNameError(f"{name} cannot be resolved: no directory tells which queue that is")
        is_system = name.kind is PathKind.SYSTEM
        queue = name.suffix.name.lower() if is_system else name.queue
        journal = name.is_read_only and not is_system
        return str(PathName(name.host, queue, name.kind, name.subqueue, journal)), name.host

    def _public_path(self, name: PublicName) -> tuple[str, str]:
        enterprise = self._core.enterprise
        if enterprise is None or enterprise.map is None:
            raise InvalidNameError(f"{name} cannot be resolved: no directory is configured")
        found = enterprise.find_queue(name)
        if found is None:
            raise QueueNotFoundError(f"the directory has no public queue {name}")
        return found.path, found.computer

    def _open_single(
        self, name: FormatName | PathName, access: QueueAccess, share: ShareMode, token: Token | None
    ) -> OpenQueue:
        self._check_kind(name, access)
        queue = self._core.target(name) if access is QueueAccess.SEND else self._core.queues.find(name)
        if queue is None:
            queue = self._subqueue_to_read(name)
        try:
            self._check_open(queue, access, share, token)
        except LannerError:
            self._core.drop_idle_subqueue(queue)
            raise
        return OpenQueue(name, queue, access, share)

    def _check_open(self, queue: Queue, access: QueueAccess, share: ShareMode, token: Token | None) -> None:
        if access.is_admin and not isinstance(queue, OutgoingQueue):
            raise UnsupportedAccessModeError(f"{queue.name} is not an outgoing queue")
        if access.reads and not access.is_admin and isinstance(queue, OutgoingQueue):
            raise UnsupportedOperationError(
                f"{queue.name} is on another machine",
                hint="receive there; what waits to be sent there is read with RECEIVE_ADMIN or PEEK_ADMIN",
            )
        if token is not None:
            check_access(queue, access, token)
        check_sharing(queue, access, share)

    def _check_kind(self, name: FormatName | PathName, access: QueueAccess) -> None:
        if isinstance(name, MachineName) and access is QueueAccess.SEND:
            raise UnsupportedOperationError(f"{name} cannot be sent to")
        if access is QueueAccess.SEND or access.is_admin:
            return
        is_http = isinstance(name, DirectName) and name.protocol.is_http
        if is_http or isinstance(name, MulticastName):
            raise UnsupportedOperationError(
                f"{name} can only be sent to", hint="to read a queue of this machine, give its path name"
            )

    def _subqueue_to_read(self, name: FormatName | PathName) -> Queue:
        """An empty subqueue can be opened: somebody may wait for what is moved there."""
        return self._new_subqueue(name)

    def _new_subqueue(self, name: FormatName | PathName) -> Queue:
        if not name.subqueue:
            raise self._core.queues.not_found(name)
        if isinstance(name, PathName):
            parent = self._core.queues.get(replace(name, subqueue=""))
        else:
            assert isinstance(name, SingleQueueName)
            parent = self._core.queues.get(name.without_subqueue())
        if parent.kind not in (QueueKind.PRIVATE, QueueKind.PUBLIC):
            raise UnsupportedOperationError(f"{parent.name} has no subqueues")
        return self._core.subqueue(parent, name.subqueue)


def check_access(queue: Queue, access: QueueAccess, token: Token) -> None:
    """Refuse what the security descriptor does not grant. Journals ask for rights of their own."""
    descriptor = (queue.parent or queue).security
    right = _RIGHTS[access]
    if queue.kind is QueueKind.JOURNAL and access.consumes:
        right = QueueRight.RECEIVE_JOURNAL_MESSAGE
    if descriptor is not None and not access_check(descriptor, token, right):
        raise AccessDeniedError(
            f"{token.user.display_name} may not {access.value} on {queue.name}",
            hint="change the queue's security descriptor",
        )
