"""Which task reads what: ranges of LSNs, files, queues. Pure functions, no I/O.

The same offsets give the same partitions, always: what a replayed batch sends is recognised by its
partition.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql.datasource import InputPartition

from lanner.pipeline.offsets import Offsets, Position, begin_of
from lanner.pipeline.options import ManagerAddress

__all__ = ["HistoryRange", "limit_offsets", "plan_ranges", "split"]

MAX_RANGE = 500_000
"""LSNs that one task reads: to begin a task costs as much as to read 50,000; one that fails begins anew."""


@dataclass(frozen=True)
class HistoryRange(InputPartition):
    """LSNs of one manager, from ``first`` up to but without ``end``."""

    manager: ManagerAddress
    name: str
    id: str
    first: int
    end: int


def plan_ranges(
    start: Offsets, end: Offsets, addresses: Mapping[str, ManagerAddress], min_partitions: int
) -> list[HistoryRange]:
    """Cut what is between two offsets into ranges."""
    wanted = {name: (begin_of(name, start, position), position.next) for name, position in end.items()}
    sizes = {name: last - first for name, (first, last) in wanted.items() if last > first}
    if not sizes:
        return []
    step = min(MAX_RANGE, math.ceil(sum(sizes.values()) / min_partitions))
    return [
        HistoryRange(addresses[name], name, end[name].id, first, last)
        for name in sorted(sizes)
        for first, last in split(*wanted[name], step)
    ]


def split(first: int, end: int, step: int) -> list[tuple[int, int]]:
    """Cut a range into parts of about the same size, none larger than ``step``."""
    size = end - first
    parts = math.ceil(size / max(step, 1))
    edges = [first + size * part // parts for part in range(parts + 1)] if parts else []
    return list(itertools.pairwise(edges))


def limit_offsets(start: Offsets, end: Offsets, limit: int) -> Offsets:
    """Go at most ``limit`` LSNs on from ``start``: each manager its share, by what waits there."""
    begins = {name: begin_of(name, start, position) for name, position in end.items()}
    waiting = {name: max(position.next - begins[name], 0) for name, position in end.items()}
    total = sum(waiting.values())
    if total <= limit:
        return end
    shares = {name: count * limit // total for name, count in waiting.items()}
    # What rounding left over goes to those with the least, who would wait for the others otherwise.
    rest = limit - sum(shares.values())
    for name in sorted(waiting, key=lambda name: (shares[name], name)):
        extra = min(rest, waiting[name] - shares[name])
        shares[name] += extra
        rest -= extra
    return {
        name: _shorten(position, begins[name], shares[name], waiting[name]) for name, position in end.items()
    }


def _shorten(position: Position, begin: int, share: int, waiting: int) -> Position:
    return position._replace(next=begin + share) if waiting else position
