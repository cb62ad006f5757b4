"""Taking messages in, from applications and from peers (MS-MQDMPR 3.1.7.1.9 and 3.1.7.1.27)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from msgspec.structs import replace

from lanner.manager.core import Core
from lanner.manager.delivery import Delivery
from lanner.manager.handles import OpenQueue
from lanner.manager.queues import OutgoingQueue, Queue
from lanner.model.errors import (
    LannerError,
    NotAuthenticatedError,
    TransactionUsageError,
    UnsupportedAccessModeError,
    UnsupportedOperationError,
)
from lanner.model.history import HistoryEvent
from lanner.model.message import Delivery as Guarantee
from lanner.model.message import Message, TransactionMarks
from lanner.model.path_name import PathName, parse_path_name
from lanner.model.queue import QueueAccess, QueueKind
from lanner.store import Changes

__all__ = ["Accepted", "Sending"]

TRANSACTIONAL_PRIORITY = 0
"""All messages of a transaction have one priority, or they could overtake each other."""


class Accepted(NamedTuple):
    """A message that was checked, charged and stamped, and the queue it goes into."""

    queue: Queue
    message: Message


class Sending:
    """Checks, charges and stamps messages; then puts them into changes."""

    def __init__(self, core: Core, delivery: Delivery) -> None:
        self._core = core
        self._delivery = delivery

    def accept(
        self, changes: Changes, handle: OpenQueue, messages: Iterable[Message], transaction_id: str | None
    ) -> list[Accepted]:
        """Take messages from an application: check each, count it against the quotas, give it its identity.

        When one is refused, none of them counts. A multiple-element handle makes one copy for each element.
        """
        accepted: list[Accepted] = []
        try:
            for message in messages:
                self._accept(changes, handle, message, transaction_id, accepted)
        except LannerError:
            self.discard(accepted)
            raise
        return accepted

    def discard(self, accepted: Iterable[Accepted]) -> None:
        """Messages that were accepted are not sent after all."""
        for queue, message in accepted:
            self._core.count_out(queue, message.size)

    def put(self, changes: Changes, accepted: Iterable[Accepted]) -> None:
        """Put accepted messages into changes."""
        arrive = self._delivery.arrive
        for queue, message in accepted:
            arrive(changes, queue, message)

    def deliver(self, changes: Changes, queue: Queue, message: Message, peer: str) -> None:
        """Take a message from a peer: it has its identity, and gets a place."""
        message.check()
        check_destination(queue, message, message.is_transactional)
        self._core.charge(queue, message.size)
        placed = self._delivery.place(changes, message)
        self._delivery.arrive(changes, queue, placed, event=HistoryEvent.ARRIVED, peer=peer)

    def _accept(
        self,
        changes: Changes,
        handle: OpenQueue,
        message: Message,
        transaction_id: str | None,
        accepted: list[Accepted],
    ) -> None:
        message.check()
        if message.administration_queue or message.response_queue or message.dead_letter_queue:
            message = self._with_format_names(message)
        if transaction_id is not None:
            message = replace(
                message,
                delivery=Guarantee.RECOVERABLE,
                priority=TRANSACTIONAL_PRIORITY,
                transaction=TransactionMarks(id=transaction_id),
            )
        elif message.transaction is not None:
            message = replace(message, transaction=None)
        if handle.elements:
            self._fan_out(changes, handle, message, accepted)
            return
        queue = handle.for_sending()
        check_destination(queue, message, transaction_id is not None)
        self._core.charge(queue, message.size)
        accepted.append(Accepted(queue, self._delivery.stamp(changes, queue, message)))

    def _fan_out(
        self, changes: Changes, handle: OpenQueue, message: Message, accepted: list[Accepted]
    ) -> None:
        """Enqueue Message To An Open Queue (3.1.7.1.27): copies that share one identifier."""
        if handle.is_closed or handle.access is not QueueAccess.SEND:
            raise UnsupportedAccessModeError(f"{handle.format_name} is not open for sending")
        message = replace(message, destination_queues=str(handle.format_name))
        first: Message | None = None
        for element in handle.elements:
            queue = element.for_sending()
            check_destination(queue, message, message.is_transactional)
            self._core.charge(queue, message.size)
            name = self._core.queues.format_name(queue)
            if first is None:
                copy = first = self._delivery.stamp(changes, queue, replace(message, destination_queue=name))
            else:
                copy = self._delivery.place(changes, replace(first, destination_queue=name))
            accepted.append(Accepted(queue, copy))

    def _with_format_names(self, message: Message) -> Message:
        """Let other machines understand the queues that the message names: no ``.`` leaves this one."""
        if message.dead_letter_queue:
            parse_path_name(message.dead_letter_queue)
        return replace(
            message,
            administration_queue=self._format_name(message.administration_queue),
            response_queue=self._format_name(message.response_queue),
        )

    def _format_name(self, name: str) -> str:
        if not name:
            return ""
        parsed = self._core.queues.parse(name)
        if isinstance(parsed, PathName):
            return str(parsed.with_computer(self._core.queues.machine_name).to_direct_os())
        return str(parsed)


def check_destination(queue: Queue, message: Message, is_transactional: bool) -> None:
    """Refuse what this queue does not take."""
    if isinstance(queue, OutgoingQueue):
        return
    if queue.is_read_only or queue.kind is QueueKind.SUBQUEUE:
        raise UnsupportedOperationError(
            f"nothing can be sent to {queue.name}: it is a {queue.kind.value} queue",
            hint="send to the queue itself; messages are moved to subqueues",
        )
    properties = queue.properties
    if properties.transactional and not is_transactional:
        raise TransactionUsageError(
            f"{queue.name} is transactional, and the message is not in a transaction",
            hint="send it in a transaction",
        )
    if is_transactional and not properties.transactional:
        raise TransactionUsageError(
            f"{queue.name} is not transactional, and the message is in a transaction",
            hint="send it outside of the transaction, or create the queue as transactional",
        )
    if properties.authentication and not (message.security and message.security.authenticated):
        raise NotAuthenticatedError(f"{queue.name} takes authenticated messages alone")
