"""No source gets more than its limit, whatever the others do, in constant memory."""

from __future__ import annotations

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from lanner.protocols.discovery.rate_limit import RateLimit, RateLimits

KEY = b"a key for tests"
LIMITS = RateLimits(per_source=2.0, burst=10, total=1e9, total_burst=10**9)


def drawn(limit: RateLimit, source: str, times: list[float]) -> int:
    return sum(limit.allow(source, now) for now in times)


def test_a_burst_and_then_so_many_a_second() -> None:
    limit = RateLimit(LIMITS, key=KEY)
    assert drawn(limit, "a", [100.0] * 50) == 10
    assert drawn(limit, "a", [100.0 + number / 100 for number in range(1001)]) == 20
    assert drawn(limit, "a", [1000.0] * 50) == 10


def test_others_are_not_concerned() -> None:
    limit = RateLimit(LIMITS, key=KEY)
    drawn(limit, "a", [100.0] * 1000)
    assert drawn(limit, "b", [100.0] * 50) == 10


@given(st.lists(st.floats(0, 100), max_size=300), st.lists(st.floats(0, 100), max_size=300))
def test_never_more_than_the_limit_whatever_the_times(mine: list[float], others: list[float]) -> None:
    limit = RateLimit(LIMITS, key=KEY)
    events = sorted([(now, "me") for now in mine] + [(now, f"other {now}") for now in others])
    allowed = [now for now, source in events if limit.allow(source, now) and source == "me"]
    for first in range(len(allowed)):
        for last in range(first, len(allowed)):
            assert last - first + 1 <= 10 + 2.0 * (allowed[last] - allowed[first]) + 1e-6


def test_a_clock_that_steps_back_gives_nothing_away() -> None:
    limit = RateLimit(LIMITS, key=KEY)
    assert drawn(limit, "a", [100.0] * 20) == 10
    assert drawn(limit, "a", [50.0] * 20) == 0
    assert drawn(limit, "a", [51.0] * 20) == 2


def test_everybody_together_has_a_limit_too() -> None:
    limit = RateLimit(RateLimits(total=5.0, total_burst=20), key=KEY)
    assert sum(limit.allow(f"source {number}", 100.0) for number in range(1000)) == 20
    assert sum(limit.allow(f"source {number}", 102.0) for number in range(1000)) == 10


def test_memory_does_not_grow_with_sources() -> None:
    limit = RateLimit(LIMITS)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for number in range(100_000):
        limit.allow(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", number / 1e4)
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 10_000
