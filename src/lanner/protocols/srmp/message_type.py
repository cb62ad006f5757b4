"""Which of the protocol's messages one is (MC-MQSRM 3.1.5.1.5)."""

from __future__ import annotations

from enum import Enum

from lanner.model.codes import MessageClass
from lanner.protocols.srmp import wire

__all__ = ["MessageType", "identify"]

_NEGATIVE = (
    MessageClass.NACK_DELETED,
    MessageClass.NACK_QUEUE_DELETED,
    MessageClass.NACK_QUEUE_PURGED,
    MessageClass.NACK_RECEIVE_TIMEOUT,
    MessageClass.NACK_RECEIVE_REJECTED,
)
"""What a negative receipt can be for. The text lists all but the last here, and has it sent in 3.1.7.3.1."""


class MessageType(Enum):
    """What a message is for."""

    USER = "user message"
    DELIVERY_RECEIPT = "delivery receipt"
    STREAM_RECEIPT = "stream receipt"
    FINAL_STREAM_RECEIPT = "final stream receipt"
    COMMITMENT_RECEIPT = "commitment receipt"

    @property
    def is_stream_receipt(self) -> bool:
        """Whether it is for the queue manager itself."""
        return self in (MessageType.STREAM_RECEIPT, MessageType.FINAL_STREAM_RECEIPT)


def identify(envelope: wire.Envelope) -> MessageType | None:
    """Tell the type of a message by the receipts in it and its class; None for one that has no type."""
    # Without an Msmq element, its defaults are taken (product behavior 12).
    message_class = envelope.msmq.message_class if envelope.msmq is not None else MessageClass.NORMAL.value
    delivery, commitment = envelope.delivery_receipt, envelope.commitment_receipt
    stream_receipt = envelope.stream_receipt
    if stream_receipt is not None:
        if delivery is not None or envelope.path.action != wire.STREAM_RECEIPT_ACTION:
            return None
        if commitment is None:
            return MessageType.STREAM_RECEIPT if message_class == MessageClass.ORDER_ACK else None
        return MessageType.FINAL_STREAM_RECEIPT if _agrees(commitment, message_class) else None
    if delivery is not None:
        is_delivery = commitment is None and message_class == MessageClass.ACK_REACH_QUEUE
        return MessageType.DELIVERY_RECEIPT if is_delivery else None
    if commitment is not None:
        return MessageType.COMMITMENT_RECEIPT if _agrees(commitment, message_class) else None
    return MessageType.USER if message_class == MessageClass.NORMAL else None


def _agrees(receipt: wire.CommitmentReceipt, message_class: int) -> bool:
    if receipt.is_positive:
        return message_class == MessageClass.ACK_RECEIVE
    return message_class in _NEGATIVE
