from __future__ import annotations

import asyncio
import time

import pytest

from lanner.manager import ManualClock, SystemClock


def test_time_stands_still_until_it_is_let_pass(clock: ManualClock) -> None:
    wall, monotonic = clock.time(), clock.monotonic()
    assert (clock.time(), clock.monotonic()) == (wall, monotonic)
    clock.advance(2.5)
    assert (clock.time(), clock.monotonic()) == (wall + 2.5, monotonic + 2.5)


@pytest.mark.parametrize("seconds", [3600.0, -3600.0])
def test_a_jump_moves_the_wall_clock_alone_and_fires_nothing(clock: ManualClock, seconds: float) -> None:
    fired: list[float] = []
    clock.call_at(10.0, lambda: fired.append(clock.time()))
    wall, monotonic = clock.time(), clock.monotonic()
    clock.jump(seconds)
    assert (clock.time(), clock.monotonic(), fired) == (wall + seconds, monotonic, [])
    clock.advance(10.0)
    assert fired == [wall + seconds + 10.0]


def test_timers_fire_in_order_each_at_its_own_moment(clock: ManualClock) -> None:
    fired: list[tuple[str, float]] = []
    for name, deadline in (("late", 3.0), ("early", 1.0), ("same", 1.0), ("never", 9.0)):
        clock.call_at(deadline, lambda name=name: fired.append((name, clock.monotonic())))  # type: ignore[misc]
    clock.advance(5.0)
    assert fired == [("early", 1.0), ("same", 1.0), ("late", 3.0)]
    assert clock.monotonic() == 5.0


def test_a_timer_of_the_past_fires_now(clock: ManualClock) -> None:
    fired: list[float] = []
    clock.advance(5.0)
    clock.call_at(1.0, lambda: fired.append(clock.monotonic()))
    clock.advance(0)
    assert fired == [5.0]


def test_a_timer_that_a_timer_sets_fires_in_the_same_stretch(clock: ManualClock) -> None:
    fired: list[float] = []

    def again() -> None:
        clock.call_at(2.0, lambda: fired.append(clock.monotonic()))

    clock.call_at(1.0, again)
    clock.advance(5.0)
    assert fired == [2.0]


def test_a_cancelled_timer_does_not_fire(clock: ManualClock) -> None:
    fired: list[bool] = []
    clock.call_at(1.0, lambda: fired.append(True)).cancel()
    clock.advance(5.0)
    assert fired == []


async def test_the_real_clock_tells_the_time_and_fires() -> None:
    clock = SystemClock()
    assert abs(clock.time() - time.time()) < 1.0
    fired, cancelled = asyncio.Event(), asyncio.Event()
    clock.call_at(clock.monotonic() + 0.001, fired.set)
    clock.call_at(clock.monotonic() + 0.0005, cancelled.set).cancel()
    await asyncio.wait_for(fired.wait(), 5.0)
    assert not cancelled.is_set()
