"""Ranges and limits."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lanner.pipeline.offsets import Offsets, Position
from lanner.pipeline.options import ManagerAddress
from lanner.pipeline.plan import MAX_RANGE, limit_offsets, plan_ranges, split

ADDRESSES = {name: ManagerAddress(f"http://{name}", "t") for name in ("A", "B", "C")}


def at(**positions: int) -> Offsets:
    return {name: Position(f"id-{name}", lsn) for name, lsn in positions.items()}


def test_a_range_for_each_manager() -> None:
    ranges = plan_ranges(at(A=1, B=5), at(A=11, B=5), ADDRESSES, 1)
    assert [(part.name, part.id, part.first, part.end) for part in ranges] == [("A", "id-A", 1, 11)]


def test_min_partitions() -> None:
    ranges = plan_ranges(at(A=1, B=1), at(A=101, B=101), ADDRESSES, 4)
    assert [(part.name, part.first, part.end) for part in ranges] == [
        ("A", 1, 51),
        ("A", 51, 101),
        ("B", 1, 51),
        ("B", 51, 101),
    ]


def test_no_range_is_too_large() -> None:
    ranges = plan_ranges(at(A=1), at(A=1 + 3 * MAX_RANGE + 1), ADDRESSES, 1)
    assert len(ranges) == 4


def test_nothing_to_read() -> None:
    assert plan_ranges(at(A=5), at(A=5), ADDRESSES, 3) == []
    assert plan_ranges(at(A=9), at(A=5), ADDRESSES, 3) == []  # an older copy was put back


@given(st.integers(0, 1000), st.integers(0, 5000), st.integers(1, 700))
def test_parts_cover_a_range_exactly(first: int, size: int, step: int) -> None:
    parts = split(first, first + size, step)
    assert [number for begin, end in parts for number in range(begin, end)] == list(
        range(first, first + size)
    )
    assert all(0 < end - begin <= step for begin, end in parts)


@given(st.dictionaries(st.sampled_from("ABC"), st.integers(0, 1000), min_size=1), st.integers(1, 2000))
def test_a_limit_is_kept_and_used(waiting: dict[str, int], limit: int) -> None:
    start = at(**dict.fromkeys(waiting, 10))
    end = limit_offsets(start, at(**{name: 10 + count for name, count in waiting.items()}), limit)
    moved = {name: end[name].next - 10 for name in waiting}
    assert sum(moved.values()) == min(limit, sum(waiting.values()))
    assert all(0 <= moved[name] <= waiting[name] for name in waiting)


def test_a_small_manager_does_not_wait_for_a_large_one() -> None:
    end = limit_offsets(at(A=1, B=1), at(A=1001, B=3), 10)
    assert end["B"].next > 1


def test_a_limit_for_a_manager_that_has_joined() -> None:
    end = limit_offsets({}, {"A": Position("id-A", 101, 11)}, 5)
    assert end == {"A": Position("id-A", 16, 11)}
