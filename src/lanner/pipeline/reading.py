"""Reading a range of a manager's history, on an executor.

Only ranges are asked for: nothing is received, so nothing changes in any queue. LSNs are dense, so whatever
is missing is seen here, and told.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow

from lanner.model.errors import ConnectionFailedError, LannerError
from lanner.model.history_arrow import ROWS_AT_ONCE, Row, decode_block, record_batch
from lanner.pipeline.batches import conform, pieces, together
from lanner.pipeline.errors import ManagerAwayError, tell_loss
from lanner.pipeline.filters import RowFilter
from lanner.pipeline.managers import Run, connected
from lanner.pipeline.plan import HistoryRange
from lanner.pipeline.schema import BODY

__all__ = ["read_range"]

FIRST_REQUEST = 64
MAX_REQUEST = 16 * 4096
"""LSNs of the first request, and of any: a history with bodies has up to 4 MB in a row."""

REQUEST_BYTES = 32 * 1024 * 1024
"""What an answer should come to: it is in memory at once."""

GROWTH = 8
PAUSE = 0.2
"""Seconds between two attempts to reach a manager that is restarting."""


def read_range(
    part: HistoryRange, schema: pyarrow.Schema, wanted: RowFilter, *, fail: bool, patience: float
) -> Iterator[pyarrow.RecordBatch]:
    """Give the rows of a range, once and in order, also when the manager is restarted meanwhile."""
    following, count = part.first, FIRST_REQUEST
    deadline: float | None = None
    with connected(part.manager, patience) as run, _collector_at_rest():
        if not _is_the_same(run, part, fail):
            return
        while following < part.end:
            last = min(following + count, part.end) - 1
            blocks = _fetch(run, following, last, bodies=BODY in schema.names)
            if blocks is None:  # it was away, and may be another now
                deadline = deadline or time.monotonic() + patience
                if time.monotonic() > deadline:
                    raise _away(part)
                time.sleep(PAUSE)
                if not _is_the_same(run, part, fail):
                    return
                continue
            deadline = None
            size = sum(map(len, blocks))
            for batch in together(_checked(part, blocks, following, last, fail)):
                whole = conform(batch, schema, manager=part.name, manager_id=part.id)
                yield from pieces(wanted.apply(whole))
            following = last + 1
            count = _next_count(count, size)


@contextmanager
def _collector_at_rest() -> Iterator[None]:
    """Rows are thousands of tuples that live for a moment: to look for cycles among them took a sixth."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _next_count(count: int, size: int) -> int:
    fitting = count * REQUEST_BYTES // max(size, 1)
    return max(1, min(fitting, count * GROWTH, MAX_REQUEST))


def _is_the_same(run: Run, part: HistoryRange, fail: bool) -> bool:
    try:
        status = run(run.client.status())
    except ConnectionFailedError as error:
        raise _away(part) from error
    if str(status.id) == part.id:
        return True
    tell_loss(
        f"{part.name}: another manager answers at {part.manager.url} now ({status.name}, {status.id}): "
        f"LSN {part.first} to {part.end - 1} were not read",
        fail=fail,
    )
    return False


def _fetch(run: Run, first: int, last: int, *, bodies: bool) -> list[bytes] | None:
    """Read one answer; None if the connection broke and the manager is to be looked at again."""

    async def fetch() -> list[bytes]:
        return [block async for block in run.client.history_blocks(first, last, bodies=bodies)]

    try:
        return run(fetch())
    except ConnectionFailedError:
        return None


def _checked(
    part: HistoryRange, blocks: list[bytes], first: int, last: int, fail: bool
) -> Iterator[pyarrow.RecordBatch]:
    following = first
    for rows in _decoded(part, blocks):
        begin, end = rows[0][0], rows[-1][0] + 1
        if end - begin != len(rows):
            raise LannerError(f"{part.name}: LSN {begin} to {end - 1} came as {len(rows)} rows")
        _tell_missing(part, following, begin, fail)
        yield record_batch(rows)
        following = end
    _tell_missing(part, following, last + 1, fail)


def _decoded(part: HistoryRange, blocks: list[bytes]) -> Iterator[list[Row]]:
    """The rows of several blocks together: one may have one row or thousands."""
    rows: list[Row] = []
    for block in blocks:
        try:
            rows += decode_block(block)
        except ValueError as error:  # msgspec's errors are ValueErrors
            raise LannerError(f"{part.name}: a block of its history cannot be read: {error}") from error
        if len(rows) >= ROWS_AT_ONCE:
            yield rows
            rows = []
    if rows:
        yield rows


def _tell_missing(part: HistoryRange, following: int, begin: int, fail: bool) -> None:
    if begin > following:
        tell_loss(
            f"{part.name}: LSN {following} to {begin - 1} are not there any more: "
            "they were trimmed, or an older copy of the store was put back",
            fail=fail,
        )


def _away(part: HistoryRange) -> ManagerAwayError:
    return ManagerAwayError(
        f"the manager {part.name} at {part.manager.url} does not answer",
        hint="start it and restart the query: it goes on where it was",
    )
