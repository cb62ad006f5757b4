"""Record batches in the shape and size that Spark takes."""

from __future__ import annotations

import pyarrow
import pytest

from lanner.pipeline import batches
from lanner.pipeline.batches import BATCH_ROWS, FEW_ROWS, conform, from_rows, pieces, together

SCHEMA = pyarrow.schema(
    [
        pyarrow.field("manager", pyarrow.string(), nullable=False),
        pyarrow.field("manager_id", pyarrow.string()),
        pyarrow.field("lsn", pyarrow.int64(), nullable=False),
        pyarrow.field("body", pyarrow.binary()),
    ]
)


def test_conform_adds_orders_casts_and_leaves_out() -> None:
    batch = pyarrow.RecordBatch.from_pydict({"new": [1], "lsn": pyarrow.array([7], pyarrow.int32())})
    made = conform(batch, SCHEMA, manager="LON-1", manager_id=None)
    assert made.schema == SCHEMA
    assert made.to_pylist() == [{"manager": "LON-1", "manager_id": None, "lsn": 7, "body": None}]


def test_conform_keeps_the_managers_of_a_file() -> None:
    batch = pyarrow.RecordBatch.from_pydict({"manager": ["PAR-1"], "manager_id": ["x"], "lsn": [7]})
    assert conform(batch, SCHEMA, manager="LON-1", manager_id="y").to_pylist()[0]["manager"] == "PAR-1"


def test_conform_refuses_what_must_be_there_and_is_not() -> None:
    with pytest.raises(ValueError, match="the column lsn is missing"):
        conform(pyarrow.RecordBatch.from_pydict({"x": [1]}), SCHEMA, manager="LON-1", manager_id=None)


def test_pieces_by_rows_and_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    many = pyarrow.RecordBatch.from_pydict({"lsn": list(range(BATCH_ROWS + 1))})
    assert [piece.num_rows for piece in pieces(many)] == [BATCH_ROWS, 1]
    assert list(pieces(many.slice(0, 0))) == []
    monkeypatch.setattr(batches, "BATCH_BYTES", 1000)
    large = pyarrow.RecordBatch.from_pydict({"body": [b"x" * 400] * 6})
    assert max(piece.num_rows for piece in pieces(large)) <= 2
    assert sum(piece.num_rows for piece in pieces(large)) == 6


def test_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "BATCH_BYTES", 1000)
    rows = [{"manager": "LON-1", "lsn": number, "body": b"x" * 400} for number in range(7)]
    assert [batch.num_rows for batch in from_rows(rows, SCHEMA)] == [3, 3, 1]


def test_small_batches_are_put_together() -> None:
    def batch(rows: int) -> pyarrow.RecordBatch:
        return pyarrow.record_batch([pyarrow.array(range(rows))], names=["lsn"])

    assert list(together([])) == []
    assert [one.num_rows for one in together([batch(1), batch(2)])] == [3]
    sizes = (FEW_ROWS - 1, 2, FEW_ROWS + 5, 1)
    assert [one.num_rows for one in together(map(batch, sizes))] == [FEW_ROWS + 1, FEW_ROWS + 5, 1]
