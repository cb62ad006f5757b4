"""Taking messages in, from applications and from peers (MS-MQDMPR 3.1.7.1.9 and 3.1.7.1.27)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace as copy_with
from typing import NamedTuple

from msgspec.structs import replace

from lanner.manager.core import Core
from lanner.manager.delivery import Delivery
from lanner.manager.handles import OpenQueue
from lanner.manager.naming import LOCAL_NAMES
from lanner.manager.queues import OutgoingQueue, Queue
from lanner.model.errors import (
    LannerError,
    NotAuthenticatedError,
    QueueDeletedError,
    StaleHandleError,
    TransactionUsageError,
    UnsupportedOperationError,
)
from lanner.model.format_name import DirectName
from lanner.model.history import HistoryEvent
from lanner.model.message import Delivery as Guarantee
from lanner.model.message import Message, TransactionMarks
from lanner.model.path_name import PathName, parse_path_name
from lanner.model.queue import QueueKind
from lanner.store import Changes

__all__ = ["Accepted", "Sending"]

TRANSACTIONAL_PRIORITY = 0
"""All messages of a transaction have one priority, or they could overtake each other."""


class Accepted(NamedTuple):
    """Messages that were checked, charged and stamped, and the queue they go into."""

    queue: Queue
    messages: list[Message]
    sizes: list[int]


class Sending:
    """Checks, charges and stamps messages; then puts them into changes."""

    def __init__(self, core: Core, delivery: Delivery) -> None:
        self._core = core
        self._delivery = delivery

    def accept(
        self, changes: Changes, handle: OpenQueue, messages: Sequence[Message], transaction_id: str | None
    ) -> list[Accepted]:
        """Take messages from an application: check them, count them against the quotas, stamp them.

        When one is refused, none of them counts. A multiple-element handle makes copies for each element.
        """
        prepared = [self._prepared(message, transaction_id) for message in messages]
        if handle.elements:
            return self._fan_out(changes, handle, prepared, transaction_id is not None)
        queue = handle.for_sending()
        sizes = self._charge(queue, prepared, transaction_id is not None)
        return [Accepted(queue, self._delivery.stamp_all(changes, queue, prepared), sizes)]

    def discard(self, accepted: Iterable[Accepted]) -> None:
        """Messages that were accepted are not sent after all."""
        for queue, _, sizes in accepted:
            self._core.count_out(queue, sum(sizes))

    def put(self, changes: Changes, accepted: Iterable[Accepted], *, reason: str | None = None) -> None:
        """Put accepted messages into changes."""
        for queue, messages, sizes in accepted:
            self._delivery.arrive(changes, queue, messages, sizes, reason=reason)

    def deliver(self, changes: Changes, queue: Queue, message: Message, peer: str) -> None:
        """Take a message from a peer: it has its identity, and gets a place."""
        message.check()
        sizes = self._charge(queue, [message], message.is_transactional)
        placed = self._delivery.place(changes, message)
        self._delivery.arrive(changes, queue, [placed], sizes, event=HistoryEvent.ARRIVED, peer=peer)

    def _prepared(self, message: Message, transaction_id: str | None) -> Message:
        message.check()
        if message.administration_queue or message.response_queue or message.dead_letter_queue:
            message = self._with_format_names(message)
        if transaction_id is not None:
            return replace(
                message,
                delivery=Guarantee.RECOVERABLE,
                priority=TRANSACTIONAL_PRIORITY,
                transaction=TransactionMarks(id=transaction_id),
            )
        return message if message.transaction is None else replace(message, transaction=None)

    def _charge(self, queue: Queue, messages: Sequence[Message], is_transactional: bool) -> list[int]:
        check_destination(queue, is_transactional)
        if queue.properties.authentication:
            check_authenticated(queue, messages)
        sizes = [message.size for message in messages]
        self._core.charge(queue, sum(sizes))
        return sizes

    def _fan_out(
        self, changes: Changes, handle: OpenQueue, messages: Sequence[Message], is_transactional: bool
    ) -> list[Accepted]:
        """Enqueue Message To An Open Queue (3.1.7.1.27): copies that share one identifier."""
        if handle.is_closed:
            raise StaleHandleError(f"the handle on {handle.format_name} is closed")
        name = str(handle.format_name)
        copies: Sequence[Message] = [replace(message, destination_queues=name) for message in messages]
        accepted: list[Accepted] = []
        try:
            for element in handle.elements:
                queue = element.for_sending()
                sizes = self._charge(queue, copies, is_transactional)
                if not accepted:
                    copies = self._delivery.stamp_all(changes, queue, copies)
                else:
                    destination = self._core.queues.format_name(queue)
                    copies = [
                        self._delivery.place(changes, replace(copy, destination_queue=destination))
                        for copy in copies
                    ]
                accepted.append(Accepted(queue, list(copies), sizes))
        except LannerError:
            self.discard(accepted)
            raise
        return accepted

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
        name_here = self._core.queues.machine_name
        if isinstance(parsed, PathName):
            return str(parsed.with_computer(name_here).to_direct_os())
        if isinstance(parsed, DirectName) and parsed.host.casefold() in LOCAL_NAMES:
            return str(copy_with(parsed, host=name_here))
        return str(parsed)


def check_destination(queue: Queue, is_transactional: bool) -> None:
    """Refuse what this queue does not take."""
    if queue.is_deleted:
        raise QueueDeletedError(f"{queue.name} was deleted")
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


def check_authenticated(queue: Queue, messages: Sequence[Message]) -> None:
    """Refuse unsigned messages to a queue that takes signed ones alone."""
    for message in messages:
        if message.security is None or not message.security.authenticated:
            raise NotAuthenticatedError(f"{queue.name} takes authenticated messages alone")
