"""Making administration acknowledgments (MS-MQQB 3.1.7.15)."""

from __future__ import annotations

from uuid import UUID

from lanner.model.codes import MessageClass
from lanner.model.message import INFINITE, Message, MessageSecurity, PrivacyLevel, SenderIdType

__all__ = ["make_acknowledgment"]

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
