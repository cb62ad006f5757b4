"""Which rows are wanted."""

from __future__ import annotations

import pyarrow
import pytest
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
)

from lanner.pipeline.filters import NO_END, QueueFilter, RowFilter


@pytest.mark.parametrize(
    ("name", "pattern", "wanted"),
    [
        ("", "", True),
        (r".\private$\orders", "", True),
        (r".\PRIVATE$\Orders", "", True),
        (r"lon-1\private$\orders", "", True),
        (r"par-1\private$\orders", "", False),
        (r".\private$\order", "", False),
        ("", r".\private$\ord*", True),
        ("", r"lon-?\private$\*", True),
        ("", "*;journal", False),
    ],
)
def test_queues(name: str, pattern: str, wanted: bool) -> None:
    assert QueueFilter(name.lower(), pattern.lower()).takes(r".\private$\Orders", "LON-1") is wanted


@pytest.mark.parametrize(
    ("filters", "first", "end"),
    [
        ([EqualTo(("lsn",), 5)], 5, 6),
        ([GreaterThan(("lsn",), 5), LessThan(("lsn",), 9)], 6, 9),
        ([GreaterThanOrEqual(("lsn",), 5), LessThanOrEqual(("lsn",), 9)], 5, 10),
        ([In(("lsn",), (3, 7))], 3, 8),
        ([Not(EqualTo(("lsn",), 5)), IsNotNull(("lsn",))], 0, NO_END),
        ([EqualTo(("lsn", "x"), 5)], 0, NO_END),
    ],
)
def test_bounds_of_lsn(filters: list[Filter], first: int, end: int) -> None:
    wanted = RowFilter().pushed(filters)
    assert (wanted.first, wanted.end) == (first, end)


def test_managers() -> None:
    wanted = RowFilter().pushed([In(("manager",), ("LON-1", "PAR-1")), EqualTo(("manager_id",), "x")])
    assert wanted.takes_manager("LON-1", "x")
    assert not wanted.takes_manager("LON-1", "y")
    assert not wanted.takes_manager("ROM-1", "x")


def batch() -> pyarrow.RecordBatch:
    rows = [
        {"manager": manager, "lsn": lsn, "event": event, "queue": queue}
        for lsn, (manager, event, queue) in enumerate(
            [
                ("LON-1", "sent", r".\private$\a"),
                ("LON-1", "received", r".\private$\a"),
                ("PAR-1", "sent", r".\private$\a"),
                ("PAR-1", "sent", r".\private$\b"),
            ]
        )
    ]
    return pyarrow.RecordBatch.from_pylist(rows)


@pytest.mark.parametrize(
    ("wanted", "lsns"),
    [
        (RowFilter(), [0, 1, 2, 3]),
        (RowFilter(first=1, end=3), [1, 2]),
        (RowFilter().pushed([EqualTo(("event",), "sent"), EqualTo(("manager",), "LON-1")]), [0]),
        (RowFilter().pushed([In(("event",), ("sent",)), EqualTo(("event",), "received")]), []),
        (RowFilter(queues=QueueFilter(r".\private$\a")), [0, 1, 2]),
        (RowFilter(queues=QueueFilter(r"par-1\private$\a")), [2]),
        (RowFilter(queues=QueueFilter("", r"*\b")), [3]),
        (RowFilter(queues=QueueFilter("nothing")), []),
    ],
)
def test_rows(wanted: RowFilter, lsns: list[int]) -> None:
    assert wanted.apply(batch()).column("lsn").to_pylist() == lsns
