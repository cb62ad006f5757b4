"""Several deadlines on one timer."""

from __future__ import annotations

from lanner.manager import ManualClock
from lanner.protocols.srmp.deadlines import Deadlines


class Alarms:
    """Three things that can be due."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.deadlines = Deadlines(self.clock)
        self.heard: list[tuple[str, float]] = []

    def first(self) -> None:
        self.heard.append(("first", self.clock.monotonic()))

    def second(self) -> None:
        self.heard.append(("second", self.clock.monotonic()))

    def clears_the_second(self) -> None:
        self.first()
        self.deadlines.clear(self.second)

    def moves_the_second(self) -> None:
        self.first()
        self.deadlines.set(self.second, 10)

    def stops(self) -> None:
        self.first()
        self.deadlines.stop()

    def again(self) -> None:
        self.first()
        self.deadlines.set(self.again, 5)


def test_each_in_its_time() -> None:
    alarms = Alarms()
    alarms.deadlines.set(alarms.second, 2)
    alarms.deadlines.set(alarms.first, 1)
    alarms.clock.advance(5)
    assert alarms.heard == [("first", 1), ("second", 2)]
    assert not alarms.deadlines.is_set(alarms.first)


def test_one_that_moves_to_later_fires_once_and_then() -> None:
    alarms = Alarms()
    for _ in range(4):
        alarms.deadlines.set(alarms.first, 3)
        alarms.clock.advance(1)
    assert alarms.heard == []
    alarms.clock.advance(10)
    assert alarms.heard == [("first", 6)]


def test_one_that_moves_to_earlier_fires_then() -> None:
    alarms = Alarms()
    alarms.deadlines.set(alarms.first, 30)
    alarms.deadlines.set(alarms.first, 3)
    alarms.clock.advance(40)
    assert alarms.heard == [("first", 3)]


def test_a_cleared_one_does_not_fire() -> None:
    alarms = Alarms()
    alarms.deadlines.set(alarms.first, 1)
    alarms.deadlines.set(alarms.second, 2)
    alarms.deadlines.clear(alarms.first)
    alarms.deadlines.clear(alarms.first)
    alarms.clock.advance(5)
    assert alarms.heard == [("second", 2)]


def test_one_that_is_due_at_the_same_moment_and_cleared_by_another_does_not_fire() -> None:
    alarms = Alarms()
    alarms.deadlines.set(alarms.clears_the_second, 1)
    alarms.deadlines.set(alarms.second, 1)
    alarms.clock.advance(5)
    assert alarms.heard == [("first", 1)]


def test_one_that_is_due_at_the_same_moment_and_moved_by_another_fires_later() -> None:
    alarms = Alarms()
    alarms.deadlines.set(alarms.moves_the_second, 1)
    alarms.deadlines.set(alarms.second, 1)
    alarms.clock.advance(20)
    assert alarms.heard == [("first", 1), ("second", 11)]


def test_nothing_fires_after_the_end() -> None:
    alarms = Alarms()
    alarms.deadlines.set(alarms.stops, 1)
    alarms.deadlines.set(alarms.second, 1)
    alarms.clock.advance(5)
    assert alarms.heard == [("first", 1)]
    alarms.deadlines.stop()


def test_one_can_set_itself_again_while_others_wait() -> None:
    alarms = Alarms()
    alarms.deadlines.set(alarms.again, 1)
    alarms.deadlines.set(alarms.second, 2)
    alarms.clock.advance(7)
    assert alarms.heard == [("first", 1), ("second", 2), ("first", 6)]


def test_how_long_it_is_until_one() -> None:
    alarms = Alarms()
    alarms.deadlines.set(alarms.first, 10)
    alarms.clock.advance(4)
    assert alarms.deadlines.seconds_left(alarms.first) == 6
    assert alarms.deadlines.seconds_left(alarms.second) is None
