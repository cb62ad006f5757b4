from __future__ import annotations

import builtins
import importlib
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanner.model.errors import LannerError
from lanner.model.history import HISTORY_COLUMNS, HistoryRow
from lanner.model.history_arrow import (
    HISTORY_SCHEMA,
    ROWS_AT_ONCE,
    Row,
    decode_block,
    from_blocks,
    record_batch,
)
from lanner.store import Changes, Store

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# What a reader's own tables are made of: a column may be added at the end, and nothing else may change.
COLUMNS = [
    ("lsn", "int64", False),
    ("time", "timestamp[us, tz=UTC]", False),
    ("event", "string", False),
    ("queue", "string", False),
    ("message_id", "string", False),
    ("lookup_id", "int64", False),
    ("message_class", "int32", False),
    ("priority", "int8", False),
    ("label", "string", True),
    ("size", "int64", False),
    ("destination", "string", True),
    ("administration", "string", True),
    ("response", "string", True),
    ("stream", "int64", True),
    ("sequence", "int64", True),
    ("previous", "int64", True),
    ("transaction_id", "string", True),
    ("reason", "string", True),
    ("peer", "string", True),
    ("body", "binary", True),
]

uint32 = st.none() | st.integers(0, 2**32 - 1)
texts = st.none() | st.text()
rows = st.builds(
    HistoryRow,
    lsn=st.integers(1, 2**63 - 1),
    time=st.integers(0, 2**32 * 1000).map(lambda milliseconds: milliseconds / 1000),
    event=st.text(),
    queue=st.text(),
    message_id=st.text(),
    lookup_id=st.integers(0, 2**63 - 1),
    message_class=st.integers(0, 0xFFFF),
    priority=st.integers(0, 7),
    label=texts,
    size=st.integers(0, 2**40),
    destination=texts,
    administration=texts,
    response=texts,
    stream=st.none() | st.integers(0, 2**63 - 1),
    sequence=uint32,
    previous=uint32,
    transaction_id=texts,
    reason=texts,
    peer=texts,
    body=st.none() | st.binary(),
)


def as_row(values: dict[str, Any]) -> HistoryRow:
    return HistoryRow(**(values | {"time": (values["time"] - EPOCH).total_seconds()}))


def as_tuples(rows: list[HistoryRow]) -> list[Row]:
    return decode_block(msgspec.msgpack.encode(rows))


def test_the_schema_is_fixed() -> None:
    assert [(field.name, str(field.type), field.nullable) for field in HISTORY_SCHEMA] == COLUMNS


def test_the_schema_has_the_columns_of_the_history() -> None:
    assert tuple(HISTORY_SCHEMA.names) == HISTORY_COLUMNS


@given(st.lists(rows))
def test_a_batch_equals_its_rows(rows: list[HistoryRow]) -> None:
    batch = record_batch(as_tuples(rows))
    assert batch.schema == HISTORY_SCHEMA
    assert [as_row(values) for values in batch.to_pylist()] == rows
    batch.validate(full=True)


def test_no_rows() -> None:
    batch = record_batch([])
    assert batch.num_rows == 0
    assert batch.schema == HISTORY_SCHEMA


def test_bodies_can_be_left_out(recording: Callable[..., Changes]) -> None:
    rows = as_tuples(recording(2, body=b"large").history)
    assert record_batch(rows).column("body").to_pylist() == [b"large"] * 2
    assert record_batch(rows, bodies=False).column("body").to_pylist() == [None] * 2
    assert record_batch(rows, bodies=False).schema == HISTORY_SCHEMA


@pytest.mark.parametrize("sizes", [[], [0], [1], [1] * 30, [ROWS_AT_ONCE], [ROWS_AT_ONCE - 1, 2, 5, 3000]])
def test_blocks_of_any_size_become_one_batch(recording: Callable[..., Changes], sizes: list[int]) -> None:
    blocks = [as_tuples(recording(size).history) for size in sizes]
    assert from_blocks(blocks).equals(record_batch([row for block in blocks for row in block]))


def test_times_are_whole_microseconds(recording: Callable[..., Changes]) -> None:
    (row,) = recording(1, time=1_700_000_000.1234567).history
    time = record_batch(as_tuples([row])).column("time")[0].as_py()
    assert time == datetime(2023, 11, 14, 22, 13, 20, 123457, UTC)


@pytest.mark.parametrize(
    ("stream", "signed"),
    [(None, None), (0, 0), (2**63 - 1, 2**63 - 1), (2**63, -(2**63)), (2**64 - 1, -1)],
)
def test_a_stream_keeps_its_64_bits(
    recording: Callable[..., Changes], stream: int | None, signed: int | None
) -> None:
    # A peer chooses its streams: none of them may make the history unreadable.
    rows = recording(1, stream=stream).history
    assert record_batch(as_tuples(rows)).column("stream").to_pylist() == [signed]


async def test_batches_of_a_store_equal_its_rows(store: Store, recording: Callable[..., Changes]) -> None:
    changes = recording(3, label="größer", body=b"\x00\xff", stream=7)
    changes.history += recording(2).history
    await store.commit(changes)
    batches = [batch async for batch in store.history.batches(1, 5, rows=2)]
    table = pyarrow.Table.from_batches(batches, HISTORY_SCHEMA)
    assert [as_row(values) for values in table.to_pylist()] == await store.history.rows(1, 5)
    assert msgspec.structs.asdict(changes.history[0])["label"] == table.column("label")[0].as_py()


def test_without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    found = builtins.__import__

    def missing(name: str, *rest: Any) -> Any:
        if name == "pyarrow":
            raise ImportError(name)
        return found(name, *rest)

    monkeypatch.setattr(builtins, "__import__", missing)
    monkeypatch.delitem(sys.modules, "lanner.model.history_arrow")
    with pytest.raises(LannerError, match=r"pip install 'lanner\[arrow\]'"):
        importlib.import_module("lanner.model.history_arrow")
