from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanner.manager.positions import MessageList, Position, PositionState, lookup_identifier, priority_of
from lanner.manager.queues import Queue, QueueRecord
from lanner.model.message_id import MessageId
from lanner.model.path_name import parse_path_name
from lanner.model.queue import QueueKind
from lanner.store.codec import MessageFlags

QUEUE = Queue(
    1, QueueKind.PRIVATE, parse_path_name(r".\private$\q"), QueueRecord(identifier=UUID(int=1)), None
)


def identifier(number: int) -> MessageId:
    return MessageId.of(UUID(int=9), number)


def position(
    lookup_id: int,
    *,
    identity: int | None = None,
    correlation: int | None = None,
    flags: MessageFlags = MessageFlags.NONE,
) -> Position:
    return Position(
        lookup_id,
        QUEUE,
        identifier(lookup_id if identity is None else identity),
        identifier(correlation) if correlation is not None else None,
        100,
        0,
        flags.value,
        None,
        0,
    )


def filled(*lookup_ids: int) -> MessageList:
    messages = MessageList()
    for lookup_id in lookup_ids:
        messages.add(position(lookup_id))
    return messages


def found(position: Position | None) -> int | None:
    return position.lookup_id if position is not None else None


# The order of a queue.


@given(st.integers(0, 7), st.integers(0, 7), st.integers(0, 2**56 - 1), st.integers(0, 2**56 - 1))
def test_a_higher_priority_comes_first_and_then_the_earlier_arrival(
    one: int, two: int, first: int, second: int
) -> None:
    left, right = lookup_identifier(one, first), lookup_identifier(two, second)
    assert (left < right) == ((-one, first) < (-two, second))
    assert priority_of(left) == one
    assert 0 <= left < 2**63


def test_the_high_byte_is_seven_less_the_priority() -> None:
    assert lookup_identifier(7, 5) == 5
    assert lookup_identifier(0, 5) == 0x07 << 56 | 5


def test_positions_are_in_order_whatever_the_order_they_came_in() -> None:
    messages = filled(30, 10, 20)
    assert [place.lookup_id for place in messages] == [10, 20, 30]
    assert [place.lookup_id for place in messages.available(2)] == [10, 20]
    assert [place.lookup_id for place in messages.available(2, after=10)] == [20, 30]
    assert (found(messages.first()), found(messages.last())) == (10, 30)


# Walking over it.


@pytest.mark.parametrize(
    ("place", "before", "after"),
    [
        (-1, None, 10),
        (5, None, 10),
        (10, None, 20),
        (15, 10, 20),
        (20, 10, 30),
        (30, 20, None),
        (99, 30, None),
    ],
)
def test_the_neighbours_of_a_place_are_found_whether_something_is_there_or_not(
    place: int, before: int | None, after: int | None
) -> None:
    messages = filled(10, 20, 30)
    assert (found(messages.before(place)), found(messages.after(place))) == (before, after)


def test_an_empty_list_has_nothing() -> None:
    messages = MessageList()
    assert not messages
    assert messages.first() is messages.last() is messages.after(-1) is messages.before(9) is None
    assert messages.available(5) == []


def test_a_locked_position_is_passed_over_and_found_by_its_number_alone() -> None:
    messages = filled(10, 20, 30)
    locked = messages.get(20)
    assert locked is not None
    messages.lock(locked)
    states = [locked.state]
    assert (len(messages), messages.available_count) == (3, 2)
    assert (found(messages.after(10)), found(messages.before(30))) == (30, 10)
    assert messages.get(20) is locked
    messages.unlock(locked)
    assert found(messages.after(10)) == 20
    assert [*states, locked.state] == [PositionState.LOCKED, PositionState.AVAILABLE]


@pytest.mark.parametrize("lock_first", [False, True])
def test_a_removed_position_is_nowhere(lock_first: bool) -> None:
    messages = filled(10, 20)
    gone = messages.get(10)
    assert gone is not None
    if lock_first:
        messages.lock(gone)
    messages.remove(gone)
    assert gone.state is PositionState.DELETED
    assert messages.get(10) is None
    assert messages.with_id(gone.id) == []
    assert [place.lookup_id for place in messages] == [20]


def test_a_locked_position_that_may_be_seen_leaves_nothing_behind_when_it_goes() -> None:
    messages = MessageList()
    seen = position(10, flags=MessageFlags.PEEK_WHEN_LOCKED)
    for place in (seen, position(20)):
        messages.add(place)
    for _ in range(2):
        messages.lock(seen)
        assert (found(messages.first()), found(messages.first(peek=True))) == (20, 10)
        messages.unlock(seen)
    messages.lock(seen)
    messages.remove(seen)
    assert found(messages.first(peek=True)) == 20


def test_walking_over_all_goes_on_when_one_is_taken_meanwhile() -> None:
    messages = filled(10, 20, 30)
    walked = []
    for place in messages:
        walked.append(place.lookup_id)
        second = messages.get(20)
        if second is not None:
            messages.remove(second)
    assert walked == [10, 30]


# By identifier.


def test_several_messages_can_have_one_identifier_or_correlation() -> None:
    messages = MessageList()
    places = [position(number, identity=1, correlation=2) for number in (10, 20, 30)]
    for place in places:
        messages.add(place)
    assert messages.with_id(identifier(1)) == places
    assert messages.with_correlation(identifier(2)) == places
    for count, place in enumerate(places, 1):
        messages.remove(place)
        assert messages.with_id(identifier(1)) == places[count:]
        assert messages.with_correlation(identifier(2)) == places[count:]


def test_what_comes_after_somebody_asked_is_found_too() -> None:
    messages = filled(10)
    assert len(messages.with_id(identifier(10))) == 1
    late = position(20)
    messages.add(late)
    assert messages.with_id(identifier(20)) == [late]


def test_what_has_no_correlation_is_found_by_none() -> None:
    messages = filled(10)
    assert messages.with_correlation(identifier(0)) == []
    assert messages.with_id(identifier(99)) == []


# Filling and emptying.


def test_loading_many_is_the_same_as_adding_each() -> None:
    messages = MessageList()
    messages.load(position(number, correlation=7) for number in (10, 20, 30))
    assert [place.lookup_id for place in messages] == [10, 20, 30]
    assert messages.available_count == 3
    assert len(messages.with_correlation(identifier(7))) == 3
    assert len(messages.with_id(identifier(20))) == 1


def test_a_cleared_list_has_nothing() -> None:
    messages = filled(10, 20)
    messages.clear()
    assert (len(messages), messages.available_count, messages.with_id(identifier(10))) == (0, 0, [])


@given(
    st.lists(
        st.tuples(
            st.sampled_from(("add", "lock", "unlock", "remove", "after", "before")), st.integers(0, 12)
        ),
        max_size=60,
    )
)
def test_it_agrees_with_a_plain_dictionary(steps: list[tuple[str, int]]) -> None:
    messages = MessageList()
    model: dict[int, bool] = {}
    for step, number in steps:
        free = sorted(key for key, is_free in model.items() if is_free)
        seen = sorted(key for key, is_free in model.items() if is_free or key % 2)
        place = messages.get(number)
        assert (place is not None) == (number in model)
        if step == "add" and place is None:
            odd = MessageFlags.PEEK_WHEN_LOCKED if number % 2 else MessageFlags.NONE
            messages.add(position(number, flags=odd))
            model[number] = True
        elif step == "lock" and place is not None and model[number]:
            messages.lock(place)
            model[number] = False
        elif step == "unlock" and place is not None and not model[number]:
            messages.unlock(place)
            model[number] = True
        elif step == "remove" and place is not None:
            messages.remove(place)
            del model[number]
        elif step == "after":
            assert found(messages.after(number)) == min((key for key in free if key > number), default=None)
            visible = found(messages.after(number, peek=True))
            assert visible == min((key for key in seen if key > number), default=None)
        elif step == "before":
            assert found(messages.before(number)) == max((key for key in free if key < number), default=None)
            visible = found(messages.before(number, peek=True))
            assert visible == max((key for key in seen if key < number), default=None)
    assert [place.lookup_id for place in messages] == sorted(model)
    assert messages.available_count == sum(model.values())
