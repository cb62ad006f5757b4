"""Telling senders what became of their messages: administration acknowledgments (MS-MQQB 3.1.7.15), and the
final receipts of streams (MC-MQSRM 3.1.7.3.3).

What is told goes into the same set of changes as what it is about: nobody hears of what did not happen. Where
it cannot go, the operator is told.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from uuid import UUID

from lanner.manager.core import Core
from lanner.manager.queues import OutgoingQueue, Queue
from lanner.model.codes import MessageClass
from lanner.model.errors import LannerError
from lanner.model.log_fields import about
from lanner.model.message import (
    INFINITE,
    Delivery,
    Message,
    MessageSecurity,
    OrderReceipt,
    PrivacyLevel,
    SenderIdType,
)
from lanner.model.queue import QueueKind
from lanner.store import Changes

__all__ = ["Acknowledging", "make_acknowledgment"]

log = logging.getLogger(__name__)

ORDER_ACK_LABEL = "QM Ordering Ack"
"""The label of every message that acknowledges a stream (MC-MQSRM 2.2.4.1)."""

_POSITIVE = (MessageClass.ACK_REACH_QUEUE, MessageClass.ACK_RECEIVE)


def make_acknowledgment(message: Message, reason: MessageClass, sender: UUID) -> Message:
    """Make the message that tells about another. A negative one returns the body, unless it was secret."""
    encrypted = message.security is not None and message.security.privacy_level is not PrivacyLevel.NONE
    has_body = reason not in _POSITIVE and not encrypted
    return Message(
        message_class=reason.value,
        correlation_id=message.id,
        response_queue=message.destination_queue,
        delivery=message.delivery,
        label=message.label,
        priority=message.priority,
        body=message.body if has_body else b"",
        body_type=message.body_type if has_body else 0,
        time_to_reach_queue=INFINITE,
        time_to_be_received=INFINITE,
        security=MessageSecurity(sender_id_type=SenderIdType.QUEUE_MANAGER, sender_id=sender.bytes_le),
    )


class Acknowledging:
    """Tells senders, if they asked for it."""

    def __init__(self, core: Core, send: Callable[[Changes, Queue, Message], None]) -> None:
        self._core = core
        self._send = send

    def acknowledge(self, changes: Changes, message: Message, reason: MessageClass) -> None:
        """Send Administration Acknowledgment (MS-MQQB 3.1.7.15), if the sender asked for this one."""
        if not message.administration_queue or not message.acknowledgments.wants(reason):
            return
        name = message.administration_queue
        try:
            queue = self._core.target(name)
            name = queue.name
            if queue.properties.transactional or queue.is_read_only or queue.kind is QueueKind.SUBQUEUE:
                raise LannerError(f"{queue.name} cannot be an administration queue")
            self._send(changes, queue, make_acknowledgment(message, reason, self._core.machine_id))
        except LannerError as error:
            # The text says to discard it; the operator gets to know.
            log.warning(
                "an acknowledgment of %s was discarded: %s",
                message.id,
                error,
                extra=about(queues=[name], messages=[message.id]),
            )

    def received(self, changes: Changes, queue: Queue, message: Message) -> None:
        """An application has received the message."""
        # Whoever takes a message out of an outgoing queue is not the application that it was sent to.
        if not isinstance(queue, OutgoingQueue):
            self.acknowledge(changes, message, MessageClass.ACK_RECEIVE)

    def finally_(self, changes: Changes, queue: Queue, message: Message, reason: MessageClass) -> None:
        """Tell the sender of a stream what became of a message that it keeps until then.

        The final stream receipt of MC-MQSRM 3.1.7.3.3; the sender asked for it with its dead-letter mark.
        """
        marks = message.transaction
        assert marks is not None
        if not (marks.final_ack_required and marks.status_queue) or isinstance(queue, OutgoingQueue):
            return
        if queue.is_read_only or message.id is None or message.source_machine is None:
            return
        receipt = Message(
            message_class=reason.value,
            label=ORDER_ACK_LABEL,
            correlation_id=message.id,
            delivery=Delivery.RECOVERABLE,
            order_receipt=OrderReceipt(
                machine=message.source_machine, stream=marks.stream, sequence=marks.sequence
            ),
        )
        self.tell(changes, marks.status_queue, receipt)

    def late(self, changes: Changes, queue: Queue, message: Message) -> None:
        """A message came when its time had run out: say so to whoever asked for negative receipts.

        Over HTTP there is no receipt for that but the one for a message that expired in its queue.
        """
        reason = MessageClass.NACK_RECEIVE_TIMEOUT
        self.acknowledge(changes, message, reason)
        if message.transaction is not None:
            self.finally_(changes, queue, message, reason)

    def tell(self, changes: Changes, name: str, report: Message) -> None:
        """Send a report of the manager's own about a message."""
        try:
            self._send(changes, self._core.target(name), report)
        except LannerError as error:
            log.warning("a report was discarded: %s", error, extra=about(queues=[name], messages=[report.id]))
