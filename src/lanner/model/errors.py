"""Every error that Lanner raises on purpose.

Each says what is wrong and, where there is one, what to do about it (``hint``), and carries the
status code that a protocol sends back (``code``). Anything else that escapes is a defect.
"""

from __future__ import annotations

from typing import ClassVar

from lanner.model.codes import StatusCode

__all__ = [
    "AccessDeniedError",
    "ConnectionFailedError",
    "IllegalCursorActionError",
    "InvalidNameError",
    "InvalidPropertyError",
    "InvalidSecurityDescriptorError",
    "LannerError",
    "ListenError",
    "MessageAlreadyReceivedError",
    "MessageLockedError",
    "MessageNotFoundError",
    "MessageTooLargeError",
    "NotAuthenticatedError",
    "OperationCancelledError",
    "QueueDeletedError",
    "QueueExistsError",
    "QueueNotFoundError",
    "QuotaExceededError",
    "ReceiveTimeoutError",
    "SharingViolationError",
    "StaleHandleError",
    "StoreDamagedError",
    "StoreError",
    "StoreFullError",
    "StoreInUseError",
    "StoreTooNewError",
    "StoppedError",
    "TransactionSequenceError",
    "TransactionUsageError",
    "UnsupportedAccessModeError",
    "UnsupportedOperationError",
]


class LannerError(Exception):
    """The root of every deliberate error."""

    code: ClassVar[StatusCode] = StatusCode.MQ_ERROR

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


# What the caller said is wrong.


class InvalidNameError(LannerError):
    """A path name or format name that does not follow MS-MQMQ 2.1.

    ``suggestion`` is the nearest right name where there is one: it parses, and the hint shows it.
    """

    code = StatusCode.MQ_ERROR_ILLEGAL_FORMATNAME

    def __init__(self, message: str, *, hint: str = "", suggestion: str = "") -> None:
        super().__init__(message, hint=hint)
        self.suggestion = suggestion


class InvalidPropertyError(LannerError):
    """A property of a message or queue is outside its range."""

    code = StatusCode.MQ_ERROR_ILLEGAL_PROPERTY_VALUE


class InvalidSecurityDescriptorError(LannerError):
    """A security descriptor, its text form, or a SID cannot be read."""

    code = StatusCode.MQ_ERROR_ILLEGAL_SECURITY_DESCRIPTOR


class MessageTooLargeError(LannerError):
    """Body and extension together exceed the limit."""

    code = StatusCode.MQ_ERROR_INSUFFICIENT_RESOURCES


class UnsupportedOperationError(LannerError):
    """The operation does not exist for this kind of name."""

    code = StatusCode.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION


class UnsupportedAccessModeError(LannerError):
    """The access or share mode does not fit the name or the handle."""

    code = StatusCode.MQ_ERROR_UNSUPPORTED_ACCESS_MODE


# What is asked for is not there, or not allowed.


class QueueNotFoundError(LannerError):
    """No such queue on this queue manager."""

    code = StatusCode.MQ_ERROR_QUEUE_NOT_FOUND


class QueueExistsError(LannerError):
    """A queue with this path name exists already."""

    code = StatusCode.MQ_ERROR_QUEUE_EXISTS


class QueueDeletedError(LannerError):
    """The queue behind this handle was deleted."""

    code = StatusCode.MQ_ERROR_QUEUE_NOT_AVAILABLE


class AccessDeniedError(LannerError):
    """The queue's security descriptor does not grant this access."""

    code = StatusCode.MQ_ERROR_ACCESS_DENIED


class NotAuthenticatedError(LannerError):
    """The queue takes authenticated messages alone."""

    code = StatusCode.MQ_ERROR_MESSAGE_NOT_AUTHENTICATED


class SharingViolationError(LannerError):
    """Another handle on the queue excludes this one."""

    code = StatusCode.MQ_ERROR_SHARING_VIOLATION


class StaleHandleError(LannerError):
    """The handle or cursor was closed."""

    code = StatusCode.MQ_ERROR_STALE_HANDLE


class QuotaExceededError(LannerError):
    """The queue, or the queue manager as a whole, is full."""

    code = StatusCode.MQ_ERROR_INSUFFICIENT_RESOURCES

    def __init__(self, message: str, *, of_queue: bool, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.of_queue = of_queue


# How reading can end.


class ReceiveTimeoutError(LannerError):
    """No message became available in time."""

    code = StatusCode.MQ_ERROR_IO_TIMEOUT


class MessageNotFoundError(LannerError):
    """No such message in the queue."""

    code = StatusCode.MQ_ERROR_MESSAGE_NOT_FOUND


class MessageAlreadyReceivedError(LannerError):
    """The message under the cursor is gone."""

    code = StatusCode.MQ_ERROR_MESSAGE_ALREADY_RECEIVED


class MessageLockedError(LannerError):
    """The message is part of a transaction that has not ended."""

    code = StatusCode.MQ_ERROR_TRANSACTION_USAGE


class IllegalCursorActionError(LannerError):
    """Peek-next on a cursor that has not peeked yet."""

    code = StatusCode.MQ_ERROR_ILLEGAL_CURSOR_ACTION


class OperationCancelledError(LannerError):
    """The waiting read was cancelled: by its tag, or because its handle was closed."""

    code = StatusCode.MQ_ERROR_OPERATION_CANCELLED


# Transactions.


class TransactionUsageError(LannerError):
    """The operation and the queue disagree about being transactional."""

    code = StatusCode.MQ_ERROR_TRANSACTION_USAGE


class TransactionSequenceError(LannerError):
    """The transaction is unknown or has ended."""

    code = StatusCode.MQ_ERROR_TRANSACTION_SEQUENCE


# The store and the manager as a whole.


class ConnectionFailedError(LannerError):
    """The queue manager cannot be reached."""

    code = StatusCode.MQ_ERROR_SERVICE_NOT_AVAILABLE


class ListenError(LannerError):
    """An address or port that cannot be listened on."""


class StoppedError(LannerError):
    """The queue manager is not running."""

    code = StatusCode.MQ_ERROR_SERVICE_NOT_AVAILABLE


class StoreError(LannerError):
    """The store could not do what was asked; nothing of it was kept."""

    code = StatusCode.MQ_ERROR_MESSAGE_STORAGE_FAILED


class StoreFullError(StoreError):
    """The disk is full."""


class StoreDamagedError(StoreError):
    """The store's file is not what a queue manager wrote."""


class StoreTooNewError(StoreError):
    """The store was written by a newer Lanner."""


class StoreInUseError(StoreError):
    """Another queue manager has the store open."""
