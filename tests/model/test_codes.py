from __future__ import annotations

import inspect

import pytest

from lanner.model import errors
from lanner.model.codes import MessageClass, StatusCode, describe_class
from lanner.model.errors import LannerError

ALL_ERRORS = [
    error
    for error in vars(errors).values()
    if inspect.isclass(error) and issubclass(error, LannerError) and error is not LannerError
]


def test_message_classes_have_their_published_values() -> None:
    assert {value.name: int(value) for value in MessageClass} == {
        "NORMAL": 0x0000,
        "REPORT": 0x0001,
        "ACK_REACH_QUEUE": 0x0002,
        "ORDER_ACK": 0x00FF,
        "ACK_RECEIVE": 0x4000,
        "NACK_BAD_DESTINATION_QUEUE": 0x8000,
        "NACK_DELETED": 0x8001,
        "NACK_REACH_QUEUE_TIMEOUT": 0x8002,
        "NACK_QUEUE_EXCEEDS_QUOTA": 0x8003,
        "NACK_ACCESS_DENIED": 0x8004,
        "NACK_HOP_COUNT_EXCEEDED": 0x8005,
        "NACK_BAD_SIGNATURE": 0x8006,
        "NACK_BAD_ENCRYPTION": 0x8007,
        "NACK_COULD_NOT_ENCRYPT": 0x8008,
        "NACK_NOT_TRANSACTIONAL_QUEUE": 0x8009,
        "NACK_NOT_TRANSACTIONAL_MESSAGE": 0x800A,
        "NACK_UNSUPPORTED_CRYPTO_PROVIDER": 0x800B,
        "NACK_QUEUE_DELETED": 0xC000,
        "NACK_QUEUE_PURGED": 0xC001,
        "NACK_RECEIVE_TIMEOUT": 0xC002,
        "NACK_RECEIVE_REJECTED": 0xC004,
    }


@pytest.mark.parametrize("value", MessageClass)
def test_each_class_is_of_one_sort_and_has_words(value: MessageClass) -> None:
    sorts = (value.is_positive_acknowledgment, value.is_negative_arrival, value.is_negative_receive)
    assert sum(sorts) == (0 if value.name in ("NORMAL", "REPORT", "ORDER_ACK") else 1)
    assert value.is_negative_arrival == (value.name.startswith("NACK") and value < 0xC000)
    assert "application-specific" not in describe_class(value)


def test_every_class_is_described_differently() -> None:
    assert len({describe_class(value) for value in MessageClass}) == len(MessageClass)


def test_an_unknown_class_keeps_its_number() -> None:
    assert describe_class(0x0123) == "application-specific class 0x0123"


def test_every_status_but_success_is_a_failure() -> None:
    assert int(StatusCode.MQ_OK) == 0
    assert all(value >> 16 == 0xC00E for value in StatusCode if value is not StatusCode.MQ_OK)


@pytest.mark.parametrize("error", ALL_ERRORS)
def test_every_error_has_a_code_and_is_exported(error: type[LannerError]) -> None:
    assert error.__name__ in errors.__all__
    assert error.code is not StatusCode.MQ_OK


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.InvalidNameError, 0xC00E001E),
        (errors.QueueNotFoundError, 0xC00E0003),
        (errors.QueueExistsError, 0xC00E0005),
        (errors.QueueDeletedError, 0xC00E004B),
        (errors.SharingViolationError, 0xC00E0009),
        (errors.UnsupportedOperationError, 0xC00E0020),
        (errors.UnsupportedAccessModeError, 0xC00E0045),
        (errors.ReceiveTimeoutError, 0xC00E001B),
        (errors.MessageNotFoundError, 0xC00E0088),
        (errors.MessageAlreadyReceivedError, 0xC00E001D),
        (errors.MessageLockedError, 0xC00E0050),
        (errors.IllegalCursorActionError, 0xC00E001C),
        (errors.OperationCancelledError, 0xC00E0008),
        (errors.TransactionUsageError, 0xC00E0050),
        (errors.TransactionSequenceError, 0xC00E0051),
        (errors.AccessDeniedError, 0xC00E0025),
        (errors.QuotaExceededError, 0xC00E0027),
    ],
)
def test_errors_carry_the_code_that_the_specification_returns(error: type[LannerError], code: int) -> None:
    assert error.code == code


def test_an_error_shows_its_hint() -> None:
    assert str(LannerError("it failed")) == "it failed"
    assert str(LannerError("it failed", hint="try again")) == "it failed (try again)"
