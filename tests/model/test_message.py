from __future__ import annotations

from typing import Any

import msgspec
import pytest

from lanner.model.codes import MessageClass, StatusCode
from lanner.model.errors import InvalidPropertyError, MessageTooLargeError
from lanner.model.message import (
    DEFAULT_TIME_TO_REACH_QUEUE,
    INFINITE,
    MAX_LABEL_LENGTH,
    MAX_MESSAGE_SIZE,
    MESSAGE_OVERHEAD,
    Acknowledgments,
    Delivery,
    Message,
    TransactionMarks,
)

NEGATIVE_ARRIVAL = [value for value in MessageClass if 0x8000 <= value < 0xC000]
NEGATIVE_RECEIVE = [value for value in MessageClass if value >= 0xC000]


def test_the_defaults_are_those_of_the_data_model() -> None:
    message = Message()
    assert message.priority == 3
    assert message.delivery is Delivery.EXPRESS
    assert message.message_class == MessageClass.NORMAL
    assert message.time_to_reach_queue == DEFAULT_TIME_TO_REACH_QUEUE == 0x54600
    assert message.time_to_be_received == INFINITE == 0xFFFFFFFF
    assert message.acknowledgments is Acknowledgments.NONE
    assert (message.body, message.label, message.application_tag, message.body_type) == (b"", "", 0, 0)
    assert not any((message.positive_journaling, message.negative_journaling, message.tracing))
    assert not any((message.allow_peek_when_locked, message.is_transactional, message.is_recoverable))


def test_a_message_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Message().label = "other"  # type: ignore[misc]


def test_what_a_message_counts_against_quotas() -> None:
    assert Message().size == MESSAGE_OVERHEAD
    assert Message(body=b"123", extension=b"45", label="ab").size == MESSAGE_OVERHEAD + 3 + 2 + 4


def test_transactional_and_recoverable_messages_say_so() -> None:
    assert Message(transaction=TransactionMarks(id="t")).is_transactional
    assert Message(delivery=Delivery.RECOVERABLE).is_recoverable


@pytest.mark.parametrize(
    ("to_reach", "to_receive", "in_queue", "in_transit"),
    [
        (INFINITE, INFINITE, None, None),
        (10, INFINITE, None, 110.0),
        (INFINITE, 20, 120.0, 120.0),
        (10, 20, 120.0, 110.0),
        (30, 20, 120.0, 120.0),
        (0, 0, 100.0, 100.0),
    ],
)
def test_when_a_message_expires(
    to_reach: int, to_receive: int, in_queue: float | None, in_transit: float | None
) -> None:
    message = Message(time_to_reach_queue=to_reach, time_to_be_received=to_receive, sent_time=100.0)
    assert (message.expiry(), message.transit_expiry()) == (in_queue, in_transit)


@pytest.mark.parametrize(
    "right",
    [
        {"body": b"x" * MAX_MESSAGE_SIZE},
        {"body": b"x" * (MAX_MESSAGE_SIZE - 1), "extension": b"y"},
        {"label": "x" * MAX_LABEL_LENGTH},
        {"priority": 0},
        {"priority": 7},
        {"message_class": 0xFFFF},
        {"time_to_reach_queue": INFINITE},
        {"time_to_be_received": 0},
        {"application_tag": 0xFFFFFFFF},
        {"body_type": 0xFFFFFFFF},
    ],
    ids=lambda right: ",".join(right),
)
def test_the_last_right_value_is_taken(right: dict[str, Any]) -> None:
    Message(**right).check()


@pytest.mark.parametrize(
    ("name", "values", "high"),
    [
        ("priority", (-1, 8), 7),
        ("message_class", (-1, 0x10000), 0xFFFF),
        ("time_to_reach_queue", (-1, INFINITE + 1), INFINITE),
        ("time_to_be_received", (-1, INFINITE + 1), INFINITE),
        ("application_tag", (-1, INFINITE + 1), INFINITE),
        ("body_type", (-1, INFINITE + 1), INFINITE),
    ],
)
def test_a_value_out_of_range_is_refused_with_the_range(
    name: str, values: tuple[int, int], high: int
) -> None:
    for value in values:
        with pytest.raises(InvalidPropertyError) as caught:
            msgspec.structs.replace(Message(), **{name: value}).check()
        assert str(caught.value) == f"{name} {value} is not between 0 and {high}"


def test_a_label_that_is_too_long_is_refused_with_its_length_and_the_limit() -> None:
    with pytest.raises(InvalidPropertyError, match="250 characters; the limit is 249"):
        Message(label="x" * 250).check()


@pytest.mark.parametrize("extension", [0, 1])
def test_a_message_that_is_too_large_is_refused_with_its_size_and_the_limit(extension: int) -> None:
    message = Message(body=b"x" * (MAX_MESSAGE_SIZE + 1 - extension), extension=b"y" * extension)
    with pytest.raises(MessageTooLargeError, match="4,194,305 bytes; the limit is 4,194,304") as caught:
        message.check()
    assert caught.value.code is StatusCode.MQ_ERROR_INSUFFICIENT_RESOURCES


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        (Acknowledgments.NONE, []),
        (Acknowledgments.POSITIVE_ARRIVAL, [MessageClass.ACK_REACH_QUEUE]),
        (Acknowledgments.POSITIVE_RECEIVE, [MessageClass.ACK_RECEIVE]),
        (Acknowledgments.NACK_REACH_QUEUE, NEGATIVE_ARRIVAL),
        (Acknowledgments.FULL_REACH_QUEUE, [MessageClass.ACK_REACH_QUEUE, *NEGATIVE_ARRIVAL]),
        (Acknowledgments.NEGATIVE_RECEIVE, NEGATIVE_RECEIVE),
        (Acknowledgments.NACK_RECEIVE, [*NEGATIVE_ARRIVAL, *NEGATIVE_RECEIVE]),
        (Acknowledgments.FULL_RECEIVE, [MessageClass.ACK_RECEIVE, *NEGATIVE_ARRIVAL, *NEGATIVE_RECEIVE]),
    ],
)
def test_which_acknowledgments_were_asked_for(asked: Acknowledgments, wanted: list[MessageClass]) -> None:
    assert [value for value in MessageClass if asked.wants(value)] == wanted


def test_acknowledgments_have_their_published_values() -> None:
    full = (Acknowledgments.FULL_REACH_QUEUE, Acknowledgments.NACK_RECEIVE, Acknowledgments.FULL_RECEIVE)
    assert tuple(map(int, full)) == (0x05, 0x0C, 0x0E)


def test_only_what_differs_from_the_defaults_is_written() -> None:
    assert msgspec.json.encode(Message(label="one")) == b'{"label":"one"}'
    assert repr(Message(priority=5)) == "Message(priority=5)"


def test_half_a_character_in_the_label_is_refused() -> None:
    with pytest.raises(InvalidPropertyError, match="half of a character"):
        Message(label="broken \ud800").check()
    Message(label="whole \U0001f985").check()
