"""The table of identifiers that came lately (MC-MQSRM 3.1.1.1.5, 3.1.5.1.11)."""

from __future__ import annotations

from tests.protocols.srmp.envelopes import SENDER

from lanner.model.message_id import MessageId
from lanner.protocols.srmp.duplicates import MAX_AGE, MAX_SEEN, SeenMessages


def _id(number: int) -> MessageId:
    return MessageId.of(SENDER, number)


def test_what_came_is_known_for_half_an_hour() -> None:
    seen = SeenMessages({}, 0)
    seen.add(_id(1), 100)
    assert seen.is_known(_id(1), 100 + MAX_AGE - 1)
    assert not seen.is_known(_id(1), 100 + MAX_AGE)
    assert not seen.is_known(_id(2), 100)


def test_the_oldest_makes_room_for_the_newest() -> None:
    seen = SeenMessages({}, 0)
    rows = [seen.add(_id(number), 1) for number in range(MAX_SEEN)]
    assert len({place for place, _ in rows}) == MAX_SEEN
    place, _ = seen.add(_id(MAX_SEEN), 2)
    assert place == rows[0][0]
    assert not seen.is_known(_id(0), 2)
    assert seen.is_known(_id(1), 2)
    assert seen.is_known(_id(MAX_SEEN), 2)


def test_what_was_stored_is_known_again_and_the_ring_goes_on() -> None:
    seen = SeenMessages({}, 0)
    stored = dict(seen.add(_id(number), float(number)) for number in range(5))
    again = SeenMessages(stored, 10)
    assert all(again.is_known(_id(number), 10) for number in range(5))
    place, _ = again.add(_id(5), 11)
    assert place == "5"


def test_a_ring_that_has_gone_around_goes_on_behind_the_newest() -> None:
    seen = SeenMessages({}, 0)
    stored: dict[str, bytes] = {}
    for number in range(MAX_SEEN + 3):
        place, row = seen.add(_id(number), number / 100)
        stored[place] = row
    again = SeenMessages(stored, 100)
    assert not again.is_known(_id(2), 100)
    assert again.is_known(_id(3), 100)
    assert again.add(_id(0), 101)[0] == "3"


def test_what_is_too_old_or_damaged_is_not_loaded() -> None:
    seen = SeenMessages({}, 0)
    stored = dict([seen.add(_id(1), 0.0)])
    again = SeenMessages({**stored, "x": b"", "12": b"short", str(MAX_SEEN): b"x" * 28}, MAX_AGE + 1)
    assert not again.is_known(_id(1), MAX_AGE + 1)
    assert again.add(_id(2), MAX_AGE + 1)[0] == "1"


def test_a_message_that_was_not_kept_is_forgotten() -> None:
    seen = SeenMessages({}, 0)
    seen.add(_id(1), 1)
    seen.forget(_id(1))
    seen.forget(_id(1))
    assert not seen.is_known(_id(1), 1)


def test_one_that_came_again_is_not_forgotten_with_its_old_place() -> None:
    seen = SeenMessages({}, 0)
    seen.add(_id(1), 1)
    seen.forget(_id(1))
    seen.add(_id(1), 2)
    for number in range(2, MAX_SEEN + 1):
        seen.add(_id(number), 3)
    assert seen.is_known(_id(1), 3), "its first place was used again, its second was not"
    seen.add(_id(MAX_SEEN + 1), 3)
    assert not seen.is_known(_id(1), 3)
