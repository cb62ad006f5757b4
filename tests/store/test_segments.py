from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import accumulate, pairwise
from pathlib import Path

import pytest

from lanner.model.errors import StoreDamagedError, StoreError
from lanner.model.message import MAX_MESSAGE_SIZE, Message
from lanner.store import Changes, Store, segments
from lanner.store.database import open_reader, open_writer
from lanner.store.segments import SEGMENT_BYTES, SegmentReader, SegmentWriter, sparse_segments

MakeMessage = Callable[..., Message]
Sending = Callable[..., Changes]


class Bench:
    """Both sides of the segments of one database, without threads."""

    def __init__(self, path: Path, sending: Sending) -> None:
        self.connection = open_writer(path)
        self.reading = open_reader(path)
        self.writer = SegmentWriter(self.connection)
        self.reader = SegmentReader(self.reading)
        self._sending = sending

    @contextmanager
    def transaction(self) -> Iterator[SegmentWriter]:
        self.connection.execute("BEGIN IMMEDIATE")
        yield self.writer
        self.connection.execute("COMMIT")
        self.writer.committed()

    def roll_back(self, work: Callable[[SegmentWriter], None]) -> None:
        self.connection.execute("BEGIN IMMEDIATE")
        work(self.writer)
        self.connection.execute("ROLLBACK")
        self.writer.rolled_back()

    def insert(self, *messages: Message) -> None:
        changes = self._sending(*messages)
        with self.transaction() as writer:
            writer.insert(changes.messages, changes.contents)

    def insert_records(self, *lengths: int) -> None:
        """Insert records of these lengths, with the lookup identifiers 1, 2, 3, ..."""
        rows = [(lookup, 1, b"", None, 0, 0, 0, 0.0, None, 0) for lookup in range(1, len(lengths) + 1)]
        with self.transaction() as writer:
            writer.insert(rows, [bytes(length) for length in lengths])

    def delete(self, lookups: Sequence[int]) -> None:
        with self.transaction() as writer:
            writer.delete(lookups)

    def places(self) -> list[tuple[int, int, int]]:
        return list(self.connection.execute("SELECT segment, start, length FROM message ORDER BY lookup"))

    def sizes(self) -> dict[int, int]:
        return dict(self.connection.execute("SELECT id, length(data) FROM segment ORDER BY id"))

    def restart(self) -> None:
        """Count again from what is in the database, as after opening it."""
        self.writer = SegmentWriter(self.connection)


@pytest.fixture
def bench(tmp_path: Path, sending: Sending) -> Iterator[Bench]:
    bench = Bench(tmp_path / "lanner.db", sending)
    with closing(bench.connection), closing(bench.reading):
        yield bench


# Where contents lie.


def test_messages_share_a_segment(bench: Bench, make_message: MakeMessage) -> None:
    messages = {number: make_message(number, extension=b"x" * number) for number in range(1, 101)}
    bench.insert(*messages.values())
    starts = [0, *accumulate(length for _, _, length in bench.places())]
    assert bench.places() == [(1, start, end - start) for start, end in pairwise(starts)]
    assert bench.sizes() == {1: starts[-1]}
    assert bench.reader.messages(list(messages), bodies=True) == messages


@pytest.mark.parametrize(
    ("lengths", "sizes"),
    [
        ([SEGMENT_BYTES], [SEGMENT_BYTES]),
        ([SEGMENT_BYTES, 1], [SEGMENT_BYTES, 1]),
        ([SEGMENT_BYTES - 1, 1, 1], [SEGMENT_BYTES, 1]),
        ([SEGMENT_BYTES - 1, SEGMENT_BYTES - 1, 1], [2 * SEGMENT_BYTES - 2, 1]),
        ([1, SEGMENT_BYTES, 1], [1, SEGMENT_BYTES, 1]),
        ([100_000] * 4, [300_000, 100_000]),
        ([1, MAX_MESSAGE_SIZE, 1, 1], [1, MAX_MESSAGE_SIZE, 2]),
    ],
)
def test_a_segment_is_closed_at_its_limit(bench: Bench, lengths: list[int], sizes: list[int]) -> None:
    bench.insert_records(*lengths)
    assert list(bench.sizes().values()) == sizes


def test_each_transaction_begins_a_segment(bench: Bench, make_message: MakeMessage) -> None:
    for number in (1, 2, 3):
        bench.insert(make_message(number))
    assert [segment for segment, _, _ in bench.places()] == [1, 2, 3]


def test_the_largest_message_has_a_segment_of_its_own(bench: Bench, make_message: MakeMessage) -> None:
    largest = make_message(2, b"b" * MAX_MESSAGE_SIZE)
    messages = {1: make_message(1), 2: largest, 3: make_message(3)}
    bench.insert(*messages.values())
    assert [segment for segment, _, _ in bench.places()] == [1, 2, 3]
    assert bench.reader.messages([3, 2, 1], bodies=True) == messages
    assert bench.reader.messages([2], bodies=False)[2].label == largest.label


def test_reading_a_slice_of_a_huge_segment(bench: Bench, make_message: MakeMessage) -> None:
    # The writer makes no such segments; one that somebody made is read all the same.
    bench.insert(make_message(1), make_message(2))
    start = bench.places()[1][1]
    data = bench.connection.execute("SELECT data FROM segment").fetchone()[0]
    padding = bytes(3 * SEGMENT_BYTES)
    bench.connection.execute(
        "UPDATE segment SET data = ?", (data[:start] + padding + data[start:] + padding,)
    )
    bench.connection.execute("UPDATE message SET start = ? WHERE lookup = 2", (start + len(padding),))
    assert bench.reader.messages([1, 2], bodies=True) == {1: make_message(1), 2: make_message(2)}


def test_unknown_messages_are_left_out(bench: Bench, make_message: MakeMessage) -> None:
    bench.insert(make_message(1))
    assert bench.reader.messages([], bodies=True) == {}
    assert list(bench.reader.messages([7, 1, 9], bodies=True)) == [1]


def test_more_messages_than_one_statement_takes(bench: Bench, make_message: MakeMessage) -> None:
    numbers = list(range(1, 2 * segments.MAX_PARAMETERS + 2))
    bench.insert(*map(make_message, numbers))
    assert sorted(bench.reader.messages(numbers, bodies=False)) == numbers
    bench.delete(numbers)
    assert bench.reader.messages(numbers, bodies=False) == {}
    assert bench.sizes() == {}


def test_the_cache_forgets_and_reads_again(
    bench: Bench, make_message: MakeMessage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "CACHED_BYTES", 1000)
    messages = {number: make_message(number, b"x" * 400) for number in range(1, 10)}
    for message in messages.values():
        bench.insert(message)
    for _ in range(2):
        assert bench.reader.messages(list(messages), bodies=True) == messages


# When a segment goes.


def test_the_last_message_takes_its_segment_along(bench: Bench, make_message: MakeMessage) -> None:
    bench.insert(make_message(1), make_message(2))
    bench.delete([1])
    assert list(bench.sizes()) == [1]
    with bench.transaction() as writer:
        writer.delete([2])
        assert list(bench.reading.execute("SELECT id FROM segment")) == [(1,)]  # not before the commit
    assert list(bench.reading.execute("SELECT id FROM segment")) == []


def test_sent_and_deleted_in_one_transaction(
    bench: Bench, make_message: MakeMessage, sending: Sending
) -> None:
    changes = sending(make_message(1))
    with bench.transaction() as writer:
        writer.insert(changes.messages, changes.contents)
        writer.delete([1])
    assert bench.sizes() == {}
    bench.insert(make_message(2))
    assert bench.reader.messages([1, 2], bodies=True) == {2: make_message(2)}


def test_deleting_twice_counts_once(bench: Bench, make_message: MakeMessage) -> None:
    bench.insert(make_message(1), make_message(2))
    bench.delete([1, 1])
    bench.delete([1, 99])
    assert list(bench.sizes()) == [1]


def test_counts_after_a_rolled_back_deletion(bench: Bench, make_message: MakeMessage) -> None:
    bench.insert(make_message(1), make_message(2))
    bench.roll_back(lambda writer: writer.delete([1, 2]))
    bench.delete([1])
    assert bench.reader.messages([1, 2], bodies=True) == {2: make_message(2)}
    bench.delete([2])
    assert bench.sizes() == {}


def test_counts_after_a_rolled_back_insertion(
    bench: Bench, make_message: MakeMessage, sending: Sending
) -> None:
    changes = sending(make_message(1), make_message(2))
    bench.roll_back(lambda writer: writer.insert(changes.messages, changes.contents))
    bench.insert(make_message(3))
    assert bench.reader.messages([1, 2, 3], bodies=True) == {3: make_message(3)}
    bench.delete([3])
    assert bench.sizes() == {}


def test_counts_after_reopening(bench: Bench, make_message: MakeMessage) -> None:
    bench.insert(make_message(1), make_message(2))
    bench.insert(make_message(3))
    bench.restart()
    bench.delete([1])
    assert list(bench.sizes()) == [1, 2]
    bench.delete([2, 3])
    assert bench.sizes() == {}


def test_a_number_is_not_used_for_another_segment(bench: Bench, make_message: MakeMessage) -> None:
    # The reader keeps segments by their number.
    bench.insert(make_message(1))
    bench.reader.messages([1], bodies=True)
    bench.delete([1])
    bench.insert(make_message(2))
    assert bench.reader.messages([2], bodies=True) == {2: make_message(2)}


# Damage.


def test_a_segment_that_is_too_short(bench: Bench, make_message: MakeMessage) -> None:
    # What is missing is the end of an extension: the record alone would not tell.
    bench.insert(make_message(1, extension=b"extension"))
    bench.connection.execute("UPDATE segment SET data = substr(data, 1, length(data) - 1)")
    with pytest.raises(StoreDamagedError, match="segment 1 ends within message 1"):
        bench.reader.messages([1], bodies=True)


async def test_a_segment_that_is_not_there(store: Store, send: Callable[..., Awaitable[None]]) -> None:
    await send(store, 1, 2)
    with closing(sqlite3.connect(store.path, isolation_level=None)) as vandal:
        vandal.execute("DELETE FROM segment WHERE id = 1")
    with pytest.raises(StoreError):
        await store.messages([1])
    assert list(await store.messages([2])) == [2]


# Rewriting.


def test_segments_that_are_mostly_dead_are_found(bench: Bench) -> None:
    bench.insert_records(*[1000] * 10)
    bench.delete(range(1, 6))
    assert sparse_segments(bench.connection) == []  # half of it is alive
    bench.delete([6])
    assert sparse_segments(bench.connection) == [1]


def test_rewriting_keeps_what_lives(bench: Bench, make_message: MakeMessage) -> None:
    messages = {number: make_message(number, b"x" * 1000) for number in range(1, 31)}
    for first in (1, 11, 21):
        bench.insert(*(messages[number] for number in range(first, first + 10)))
    living = [3, 4, 10, 15, 21]
    bench.delete([number for number in messages if number not in living])
    bench.writer.rewrite([1, 2, 3])
    assert {segment for segment, _, _ in bench.places()} == {4}
    assert bench.sizes() == {4: sum(length for _, _, length in bench.places())}
    assert bench.reader.messages(living, bodies=True) == {number: messages[number] for number in living}
    bench.delete(living)
    assert bench.sizes() == {}


def test_counts_after_rewriting(bench: Bench, make_message: MakeMessage) -> None:
    bench.insert(*map(make_message, range(1, 5)))
    bench.writer.rewrite([1])
    bench.insert(make_message(9))
    bench.delete([1, 2, 3])
    assert list(bench.sizes()) == [2, 3]
    bench.delete([4])
    assert list(bench.sizes()) == [3]


def test_rewriting_segments_that_are_gone(bench: Bench, make_message: MakeMessage) -> None:
    bench.insert(make_message(1))
    bench.delete([1])
    bench.insert(make_message(2))
    bench.writer.rewrite([1])
    assert bench.reader.messages([2], bodies=True) == {2: make_message(2)}


def test_rewriting_that_fails_changes_nothing(bench: Bench, make_message: MakeMessage) -> None:
    messages = {number: make_message(number, b"x" * 100_000) for number in (1, 2)}
    bench.insert(*messages.values())
    pages = bench.connection.execute("PRAGMA page_count").fetchone()[0]
    bench.connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(sqlite3.OperationalError, match="full"):
        bench.writer.rewrite([1])
    assert not bench.connection.in_transaction
    assert bench.writer.bytes_written == 0
    assert bench.reader.messages([1, 2], bodies=True) == messages
    bench.delete([1])
    assert list(bench.sizes()) == [1]
    bench.delete([2])
    assert bench.sizes() == {}


async def test_reading_while_rewriting(
    store: Store, make_message: MakeMessage, sending: Sending, remove: Callable[..., Awaitable[None]]
) -> None:
    messages = {number: make_message(number, b"%d" % number * 100) for number in range(1, 1001)}
    for first in range(1, 1001, 50):
        await store.commit(sending(*(messages[number] for number in range(first, first + 50))))
    survivors = list(range(1, 1001, 10))
    expected = {number: messages[number] for number in survivors}
    is_over = False

    async def read() -> int:
        count = 0
        while not is_over:
            assert await store.messages(survivors) == expected
            count += 1
        return count

    readers = [asyncio.create_task(read()) for _ in range(3)]
    for offset in range(2, 11):
        await remove(store, list(range(offset, 1001, 10)))
        await store.tidy()
    is_over = True
    assert min(await asyncio.gather(*readers)) > 0
    assert await store.read(sparse_segments) == []
    assert await store.messages(list(messages)) == expected
