"""Codes that appear on the wire and in errors: message classes and status codes."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["MessageClass", "StatusCode", "describe_class"]


class MessageClass(IntEnum):
    """What a message is, or why it was deleted (MS-MQMQ 2.2.18.1.6, MS-MQDMPR 3.1.1.12).

    An application may use any other value within the mask 0xE1FF, so a message's class is kept
    as a plain ``int`` and compared with these.
    """

    NORMAL = 0x0000
    REPORT = 0x0001
    ACK_REACH_QUEUE = 0x0002
    ORDER_ACK = 0x00FF
    ACK_RECEIVE = 0x4000
    NACK_BAD_DESTINATION_QUEUE = 0x8000
    NACK_DELETED = 0x8001
    NACK_REACH_QUEUE_TIMEOUT = 0x8002
    NACK_QUEUE_EXCEEDS_QUOTA = 0x8003
    NACK_ACCESS_DENIED = 0x8004
    NACK_HOP_COUNT_EXCEEDED = 0x8005
    NACK_BAD_SIGNATURE = 0x8006
    NACK_BAD_ENCRYPTION = 0x8007
    # The next value stands in MS-MQDMPR by name alone; its number closes the gap in MS-MQMQ's table.
    NACK_COULD_NOT_ENCRYPT = 0x8008
    NACK_NOT_TRANSACTIONAL_QUEUE = 0x8009
    NACK_NOT_TRANSACTIONAL_MESSAGE = 0x800A
    NACK_UNSUPPORTED_CRYPTO_PROVIDER = 0x800B
    NACK_QUEUE_DELETED = 0xC000
    NACK_QUEUE_PURGED = 0xC001
    NACK_RECEIVE_TIMEOUT = 0xC002
    NACK_RECEIVE_REJECTED = 0xC004

    @property
    def is_positive_acknowledgment(self) -> bool:
        """Whether this class says that something went well."""
        return self in (MessageClass.ACK_REACH_QUEUE, MessageClass.ACK_RECEIVE)

    @property
    def is_negative_arrival(self) -> bool:
        """Whether the message never reached its destination queue."""
        return 0x8000 <= self < 0xC000

    @property
    def is_negative_receive(self) -> bool:
        """Whether the message reached its destination queue and was not received from it."""
        return self >= 0xC000


_CLASS_IN_WORDS = {
    MessageClass.NORMAL: "an ordinary message",
    MessageClass.REPORT: "a report about a message on its way",
    MessageClass.ACK_REACH_QUEUE: "the message reached its destination queue",
    MessageClass.ORDER_ACK: "the transactional message arrived in order",
    MessageClass.ACK_RECEIVE: "the message was received by an application",
    MessageClass.NACK_BAD_DESTINATION_QUEUE: "the destination queue does not exist or cannot be reached",
    MessageClass.NACK_DELETED: "the message was deleted before it could be received",
    MessageClass.NACK_REACH_QUEUE_TIMEOUT: "the time to reach the queue ran out",
    MessageClass.NACK_QUEUE_EXCEEDS_QUOTA: "the destination queue is full",
    MessageClass.NACK_ACCESS_DENIED: "the sender may not send to the destination queue",
    MessageClass.NACK_HOP_COUNT_EXCEEDED: "the message passed through too many queue managers",
    MessageClass.NACK_BAD_SIGNATURE: "the signature of the message is not valid",
    MessageClass.NACK_BAD_ENCRYPTION: "the message could not be decrypted",
    MessageClass.NACK_COULD_NOT_ENCRYPT: "the message could not be encrypted",
    MessageClass.NACK_NOT_TRANSACTIONAL_QUEUE: "a transactional message came to a non-transactional queue",
    MessageClass.NACK_NOT_TRANSACTIONAL_MESSAGE: "a non-transactional message came to a transactional queue",
    MessageClass.NACK_UNSUPPORTED_CRYPTO_PROVIDER: "the destination does not know the cryptography used",
    MessageClass.NACK_QUEUE_DELETED: "the queue was deleted before the message was received",
    MessageClass.NACK_QUEUE_PURGED: "the queue was purged before the message was received",
    MessageClass.NACK_RECEIVE_TIMEOUT: "the time to be received ran out",
    MessageClass.NACK_RECEIVE_REJECTED: "the receiving application rejected the message",
}


def describe_class(value: int) -> str:
    """Say in words what a message class means; an unknown one keeps its number."""
    try:
        return _CLASS_IN_WORDS[MessageClass(value)]
    except ValueError:
        return f"application-specific class {value:#06x}"


class StatusCode(IntEnum):
    """The HRESULTs that a queue manager's operations can end with (MS-MQMQ 2.4)."""

    MQ_OK = 0x00000000
    MQ_ERROR = 0xC00E0001
    MQ_ERROR_PROPERTY = 0xC00E0002
    MQ_ERROR_QUEUE_NOT_FOUND = 0xC00E0003
    MQ_ERROR_QUEUE_EXISTS = 0xC00E0005
    MQ_ERROR_INVALID_PARAMETER = 0xC00E0006
    MQ_ERROR_INVALID_HANDLE = 0xC00E0007
    MQ_ERROR_OPERATION_CANCELLED = 0xC00E0008
    MQ_ERROR_SHARING_VIOLATION = 0xC00E0009
    MQ_ERROR_SERVICE_NOT_AVAILABLE = 0xC00E000B
    MQ_ERROR_MACHINE_NOT_FOUND = 0xC00E000D
    MQ_ERROR_NO_DS = 0xC00E0013
    MQ_ERROR_ILLEGAL_QUEUE_PATHNAME = 0xC00E0014
    MQ_ERROR_ILLEGAL_PROPERTY_VALUE = 0xC00E0018
    MQ_ERROR_IO_TIMEOUT = 0xC00E001B
    MQ_ERROR_ILLEGAL_CURSOR_ACTION = 0xC00E001C
    MQ_ERROR_MESSAGE_ALREADY_RECEIVED = 0xC00E001D
    MQ_ERROR_ILLEGAL_FORMATNAME = 0xC00E001E
    MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION = 0xC00E0020
    MQ_ERROR_ILLEGAL_SECURITY_DESCRIPTOR = 0xC00E0021
    MQ_ERROR_ACCESS_DENIED = 0xC00E0025
    MQ_ERROR_INSUFFICIENT_RESOURCES = 0xC00E0027
    MQ_ERROR_MESSAGE_STORAGE_FAILED = 0xC00E002A
    MQ_ERROR_ILLEGAL_PROPID = 0xC00E0039
    MQ_ERROR_UNSUPPORTED_ACCESS_MODE = 0xC00E0045
    MQ_ERROR_QUEUE_NOT_AVAILABLE = 0xC00E004B
    MQ_ERROR_TRANSACTION_USAGE = 0xC00E0050
    MQ_ERROR_TRANSACTION_SEQUENCE = 0xC00E0051
    MQ_ERROR_STALE_HANDLE = 0xC00E0056
    MQ_ERROR_QUEUE_DELETED = 0xC00E005A
    MQ_ERROR_LABEL_TOO_LONG = 0xC00E005D
    MQ_ERROR_MESSAGE_NOT_FOUND = 0xC00E0088
    MQ_ERROR_MESSAGE_NOT_AUTHENTICATED = 0xC00E009B
    MQ_ERROR_MESSAGE_LOCKED_UNDER_TRANSACTION = 0xC00E009C
