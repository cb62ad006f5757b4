from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, closing
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from lanner.model.errors import InvalidPropertyError, LannerError, StoreDamagedError, StoreError
from lanner.model.history import HistoryRow
from lanner.model.message import Message
from lanner.store import Changes, Store
from lanner.store.history import BLOCKS_AT_ONCE, MAX_READER_NAME, History, HistoryReader
from lanner.store.writer import MAX_BLOCK_BYTES, MAX_BLOCK_ROWS

Opened = Callable[..., AbstractAsyncContextManager[Store]]
MakeMessage = Callable[..., Message]
Sending = Callable[..., Changes]
Send = Callable[..., Awaitable[None]]
Recording = Callable[..., Changes]
Crash = Callable[[Store], Path]

EVERYTHING = 2**62
FOREVER = 1e12


async def blocks(store: Store) -> list[tuple[int, int, int]]:
    """The first and last LSN of each block, and its size."""
    query = "SELECT first, last, length(data) FROM history ORDER BY first"
    return await store.read(lambda connection: connection.execute(query).fetchall())


async def lsns(store: Store, first: int = 1, last: int = EVERYTHING) -> list[int]:
    return [row.lsn for row in await store.history.rows(first, last, limit=EVERYTHING)]


def numbers(first: int, last: int) -> list[int]:
    return list(range(first, last + 1))


@pytest.fixture
async def five_blocks(store: Store, recording: Recording) -> Store:
    """A store whose history has blocks of 3, 1, 5, 2 and 4 rows, at the times 1.0 to 5.0."""
    for time, count in enumerate((3, 1, 5, 2, 4), 1):
        await store.commit(recording(count, time=float(time)))
    return store


# LSNs.


async def test_an_empty_history(store: Store) -> None:
    assert store.history.last_lsn == 0
    assert await store.history.first_lsn() == 1
    assert await lsns(store) == []


async def test_lsns_are_dense_over_groups_and_restarts(opened: Opened, recording: Recording) -> None:
    for start in range(3):
        async with opened() as store:
            assert store.history.last_lsn == 12 * start
            for count in (1, 5):
                await store.commit(recording(count))
            await asyncio.gather(*(store.commit(recording(2)) for _ in range(3)))
            assert await lsns(store) == numbers(1, store.history.last_lsn)
    assert store.history.last_lsn == 36


async def test_lsns_are_dense_over_what_was_not_kept(
    store: Store, make_message: MakeMessage, sending: Sending, recording: Recording
) -> None:
    await store.commit(sending(make_message(1)))
    for _ in range(3):
        with pytest.raises(StoreError):
            await store.commit(sending(make_message(1)))
        await store.commit(recording(2))
    assert await lsns(store) == numbers(1, 7)


async def test_lsns_are_dense_over_a_kill(opened: Opened, recording: Recording, crash: Crash) -> None:
    async with opened() as store:
        await store.commit(recording(3))
        killed = crash(store)
    async with opened(killed) as store:
        await store.commit(recording(2))
        assert await lsns(store) == numbers(1, 5)


async def test_blocks_are_split(store: Store, recording: Recording) -> None:
    await store.commit(recording(2 * MAX_BLOCK_ROWS + 10))
    assert [(first, last) for first, last, _ in await blocks(store)] == [
        (1, MAX_BLOCK_ROWS),
        (MAX_BLOCK_ROWS + 1, 2 * MAX_BLOCK_ROWS),
        (2 * MAX_BLOCK_ROWS + 1, 2 * MAX_BLOCK_ROWS + 10),
    ]
    for first, last in [(4095, 4098), (1, 8202), (4096, 4096), (4097, 4097), (8191, 8202)]:
        assert await lsns(store, first, last) == numbers(first, last)


# Ranges.


async def test_every_range(five_blocks: Store) -> None:
    for first in range(-1, 18):
        for last in range(-1, 18):
            assert await lsns(five_blocks, first, last) == numbers(max(first, 1), min(last, 15))


async def test_the_same_range_gives_the_same_rows(
    opened: Opened, make_message: MakeMessage, sending: Sending, send: Send
) -> None:
    async with opened() as store:
        await store.commit(sending(make_message(1), make_message(2), make_message(3)))
        before = await store.history.rows(2, 3)
        assert await store.history.rows(2, 3) == before
        await send(store, 4)
        assert await store.history.rows(2, 3) == before
    async with opened() as store:
        assert await store.history.rows(2, 3) == before
    assert [row.lookup_id for row in before] == [2, 3]


async def test_a_row_keeps_every_value(store: Store) -> None:
    row = HistoryRow(
        0, 1.5, "sent", "queue", "id", 2**60, 7, 3, "größer", 5, "to", "admin", "response",
        2**64 - 1, 2**32 - 1, 8, "transaction", "reason", "peer", b"\x00\xff",
    )  # fmt: skip
    changes = Changes()
    changes.history.append(row)
    await store.commit(changes)
    assert row.lsn == 1
    assert await store.history.rows(1, 1) == [row]


async def test_a_limit(five_blocks: Store) -> None:
    rows = await five_blocks.history.rows(2, 15, limit=6)
    assert [row.lsn for row in rows] == numbers(2, 7)


@pytest.mark.parametrize("first", [16, 2**63 - 1, 2**63, 2**70])
async def test_beyond_the_end(five_blocks: Store, first: int) -> None:
    assert await lsns(five_blocks, first, first + 10) == []


async def test_the_history_of_one_message(
    store: Store, make_message: MakeMessage, sending: Sending, recording: Recording
) -> None:
    message = make_message(1)
    await store.commit(sending(message, make_message(2)))
    await store.commit(recording(3))
    await store.commit(recording(1, message_id=str(message.id), event="received"))
    await store.commit(recording(1, reason=str(message.id)))  # names it, and is about another
    rows = await store.history.of_message(str(message.id))
    assert [(row.lsn, row.event) for row in rows] == [(1, "sent"), (6, "received")]
    assert await store.history.of_message("unknown") == []


async def test_a_damaged_block(five_blocks: Store) -> None:
    with closing(sqlite3.connect(five_blocks.path, isolation_level=None)) as vandal:
        vandal.execute("UPDATE history SET data = substr(data, 1, length(data) - 1) WHERE first = 5")
    assert await lsns(five_blocks, 1, 4) == numbers(1, 4)
    history = five_blocks.history
    for reading in (history.rows(5, 6), history.of_message("m"), history.trim(before=9.0, max_bytes=None)):
        with pytest.raises(StoreDamagedError, match="a block of the history cannot be read"):
            await reading


# Readers.


async def test_a_reader_begins_at_the_front(five_blocks: Store) -> None:
    history = five_blocks.history
    assert await history.register("spark", 10.0) == HistoryReader("spark", 0, 10.0, 10.0)
    assert await history.trim(before=2.0, max_bytes=None) == 0
    await history.forget("spark")
    assert await history.trim(before=2.0, max_bytes=None) == 3
    assert await history.register("late", 11.0) == HistoryReader("late", 3, 11.0, 11.0)


async def test_a_reader_confirms(opened: Opened, recording: Recording) -> None:
    async with opened() as store:
        await store.commit(recording(10))
        await store.history.register("spark", 1.0)
        assert await store.history.confirm("spark", 7, 2.0) == HistoryReader("spark", 7, 1.0, 2.0)
        assert await store.history.confirm("spark", 5, 3.0) == HistoryReader("spark", 7, 1.0, 3.0)
    async with opened() as store:
        assert await store.history.readers() == [HistoryReader("spark", 7, 1.0, 3.0)]


async def test_registering_again_changes_nothing(five_blocks: Store) -> None:
    await five_blocks.history.register("spark", 1.0)
    await five_blocks.history.confirm("spark", 3, 2.0)
    assert await five_blocks.history.register("spark", 9.0) == HistoryReader("spark", 3, 1.0, 9.0)


async def test_readers_are_listed_by_name(store: Store) -> None:
    for name in ("b", "ä", "a"):
        await store.history.register(name, 1.0)
    await store.history.forget("b")
    assert [reader.name for reader in await store.history.readers()] == ["a", "ä"]


@pytest.mark.parametrize("name", ["", "x" * (MAX_READER_NAME + 1)])
async def test_a_name_that_no_reader_can_have(store: Store, name: str) -> None:
    with pytest.raises(InvalidPropertyError, match="1 to 128"):
        await store.history.register(name, 1.0)
    assert await store.history.readers() == []


async def test_the_longest_name(store: Store) -> None:
    name = "x" * MAX_READER_NAME
    assert (await store.history.register(name, 1.0)).name == name


async def test_an_unknown_reader(five_blocks: Store) -> None:
    history = five_blocks.history
    for operation in (history.confirm("who", 1, 1.0), history.forget("who")):
        with pytest.raises(LannerError, match=r"no history reader is called 'who'.*register it first"):
            await operation


async def test_what_is_not_written_cannot_be_confirmed(five_blocks: Store) -> None:
    await five_blocks.history.register("spark", 1.0)
    with pytest.raises(InvalidPropertyError, match="LSN 16 is not written yet; the last one is 15"):
        await five_blocks.history.confirm("spark", 16, 1.0)
    assert (await five_blocks.history.confirm("spark", 15, 1.0)).confirmed == 15


# Retention.


@pytest.mark.parametrize(
    ("before", "kept"),
    [(0.0, 1), (1.0, 1), (1.5, 4), (2.0, 4), (3.5, 10), (5.0, 12), (5.5, 16), (FOREVER, 16)],
)
async def test_trimming_by_age(five_blocks: Store, before: float, kept: int) -> None:
    assert await five_blocks.history.trim(before=before, max_bytes=None) == kept - 1
    assert await five_blocks.history.first_lsn() == kept
    assert await lsns(five_blocks) == numbers(kept, 15)
    assert await five_blocks.history.trim(before=before, max_bytes=None) == 0


async def test_blocks_go_whole(store: Store, recording: Recording) -> None:
    changes = recording(2, time=1.0)
    changes.history += recording(2, time=9.0).history
    await store.commit(changes)
    assert await store.history.trim(before=5.0, max_bytes=None) == 0
    assert await lsns(store) == numbers(1, 4)


async def test_a_clock_that_was_set_back_drops_nothing_young(store: Store, recording: Recording) -> None:
    for time in (1.0, 9.0, 2.0):
        await store.commit(recording(1, time=time))
    assert await store.history.trim(before=5.0, max_bytes=None) == 1
    assert await lsns(store) == [2, 3]


async def test_trimming_by_size(five_blocks: Store) -> None:
    sizes = [size for _, _, size in await blocks(five_blocks)]
    firsts = [first for first, _, _ in await blocks(five_blocks)] + [16]
    for dropped in range(6):
        room = sum(sizes[dropped:])
        await five_blocks.history.trim(before=None, max_bytes=room)
        assert await five_blocks.history.first_lsn() == firsts[dropped]
        await five_blocks.history.trim(before=None, max_bytes=room + 1)
        assert await lsns(five_blocks) == numbers(firsts[dropped], 15)


async def test_the_stricter_limit_counts(five_blocks: Store) -> None:
    assert await five_blocks.history.trim(before=2.0, max_bytes=0) == 15
    assert await lsns(five_blocks) == []


async def test_no_limits(five_blocks: Store) -> None:
    assert await five_blocks.history.trim(before=None, max_bytes=None) == 0


@pytest.mark.parametrize(("confirmed", "kept"), [(0, 1), (2, 1), (3, 4), (8, 5), (9, 10), (15, 16)])
async def test_what_a_reader_has_not_confirmed_stays(five_blocks: Store, confirmed: int, kept: int) -> None:
    history = five_blocks.history
    for name in ("slow", "fast"):
        await history.register(name, 1.0)
    await history.confirm("slow", confirmed, 1.0)
    await history.confirm("fast", 15, 1.0)
    assert await history.trim(before=FOREVER, max_bytes=0) == kept - 1
    assert await lsns(five_blocks) == numbers(kept, 15)


async def test_a_reader_that_registers_while_trimming_loses_nothing(
    store: Store, recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lanner.store.history.TRIM_SLICE_BLOCKS", 1)
    for _ in range(100):
        await store.commit(recording(1))
    trimming = asyncio.create_task(store.history.trim(before=FOREVER, max_bytes=None))
    while await store.history.first_lsn() == 1:
        pass
    reader = await store.history.register("spark", 1.0)
    assert await trimming == reader.confirmed
    assert await lsns(store) == numbers(reader.confirmed + 1, 100)


async def test_trimming_goes_in_slices(
    five_blocks: Store, recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lanner.store.history.TRIM_SLICE_BLOCKS", 2)
    assert await five_blocks.history.trim(before=FOREVER, max_bytes=None) == 15


async def test_lsns_are_not_used_again_after_trimming_everything(
    opened: Opened, recording: Recording
) -> None:
    async with opened() as store:
        await store.commit(recording(10))
        await store.history.trim(before=FOREVER, max_bytes=None)
        assert await lsns(store) == []
    async with opened() as store:
        assert store.history.last_lsn == 10
        assert await store.history.first_lsn() == 11
        await store.commit(recording(1))
        assert await lsns(store) == [11]


async def test_a_range_that_was_trimmed_in_part(five_blocks: Store) -> None:
    await five_blocks.history.trim(before=3.0, max_bytes=None)
    assert await lsns(five_blocks, 2, 7) == numbers(5, 7)
    assert await lsns(five_blocks, 1, 3) == []


# Blocks as they are kept.


async def kept_rows(history: History, first: int, last: int, *, bodies: bool = True) -> list[HistoryRow]:
    decode = msgspec.msgpack.Decoder(list[HistoryRow]).decode
    found = [block async for some in history.blocks(first, last, bodies=bodies) for block in some]
    return [row for block in found for row in decode(block)]


async def test_blocks_are_cut_to_every_range(five_blocks: Store) -> None:
    history = five_blocks.history
    for first in range(-1, 18):
        for last in range(first - 1, 18):
            wanted = await history.rows(first, last) if first > 0 else await history.rows(1, last)
            assert await kept_rows(history, first, last) == wanted


async def test_blocks_that_are_whole_are_as_they_were_written(five_blocks: Store) -> None:
    kept = await five_blocks.read(
        lambda connection: connection.execute("SELECT data FROM history ORDER BY first").fetchall()
    )
    found = [block async for some in five_blocks.history.blocks(1, EVERYTHING) for block in some]
    assert found == [data for (data,) in kept]


async def test_blocks_without_bodies(store: Store, recording: Recording) -> None:
    await store.commit(recording(3, body=b"large"))
    assert [row.body for row in await kept_rows(store.history, 1, 3)] == [b"large"] * 3
    assert [row.body for row in await kept_rows(store.history, 1, 3, bodies=False)] == [None] * 3


async def test_blocks_of_a_long_history_come_some_at_a_time(store: Store, recording: Recording) -> None:
    for _ in range(5):
        await store.commit(recording(3, body=bytes(BLOCKS_AT_ONCE // 5)))
    parts = [len(some) async for some in store.history.blocks(1, EVERYTHING)]
    assert parts == [2, 2, 1]
    assert [row.lsn for row in await kept_rows(store.history, 1, EVERYTHING)] == numbers(1, 15)


async def test_a_block_has_bodies_of_a_bounded_size(store: Store, recording: Recording) -> None:
    half = MAX_BLOCK_BYTES // 2
    changes = recording(2)
    for size in (half, half, half, MAX_BLOCK_BYTES + 1, 1, 0):
        changes.history += recording(1, body=bytes(size)).history
    await store.commit(changes)
    assert [(first, last) for first, last, _ in await blocks(store)] == [(1, 4), (5, 5), (6, 6), (7, 8)]
    assert await lsns(store) == numbers(1, 8)


# Arrow.


async def arrow_lsns(history: History, first: int, last: int, rows: int) -> list[list[int]]:
    return [batch.column("lsn").to_pylist() async for batch in history.batches(first, last, rows=rows)]


async def test_batches_cover_the_range(five_blocks: Store) -> None:
    history = five_blocks.history
    assert await arrow_lsns(history, 2, 14, 5) == [numbers(2, 6), numbers(7, 11), numbers(12, 14)]
    assert await arrow_lsns(history, 1, EVERYTHING, 15) == [numbers(1, 15)]
    assert await arrow_lsns(history, 1, 1, 5) == [[1]]


async def test_batches_of_nothing(five_blocks: Store) -> None:
    for first, last in ((5, 4), (16, 20), (2**70, 2**71), (-5, 0)):
        assert await arrow_lsns(five_blocks.history, first, last, 5) == []


async def test_batches_end_where_the_history_ends_when_they_begin(
    five_blocks: Store, recording: Recording
) -> None:
    batches = five_blocks.history.batches(1, EVERYTHING, rows=10)
    seen = (await anext(batches)).num_rows
    await five_blocks.commit(recording(100))
    seen += sum([batch.num_rows async for batch in batches])
    assert seen == 15


async def test_batches_of_a_trimmed_range(five_blocks: Store) -> None:
    await five_blocks.history.trim(before=4.0, max_bytes=None)
    assert await arrow_lsns(five_blocks.history, 1, 15, 4) == [[10, 11, 12, 13], [14, 15]]


async def test_a_long_history(store: Store, recording: Recording) -> None:
    await store.commit(recording(10_000))
    found = await arrow_lsns(store.history, 1, 10_000, 4096)
    assert [len(batch) for batch in found] == [4096, 4096, 1808]
    flat = [lsn for batch in found for lsn in batch]
    assert all(later == earlier + 1 for earlier, later in pairwise(flat))
