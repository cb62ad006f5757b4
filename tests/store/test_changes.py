from __future__ import annotations

import pytest

from lanner.store import Changes

ROWS = [
    *("queues", "messages", "updates", "deletes", "outcomes", "state"),
    *("state_deletes", "meta", "queue_deletes"),
]


@pytest.mark.parametrize("rows", ROWS)
def test_everything_but_history_is_worth_waiting_for(rows: str) -> None:
    changes = Changes()
    getattr(changes, rows).append(())
    assert changes.is_durable()


def test_history_alone_is_nothing_to_wait_for() -> None:
    changes = Changes()
    assert not changes.is_durable()
    changes.history.extend([None] * 3)  # type: ignore[list-item]
    assert not changes.is_durable()
    assert changes.row_count() == 4


def test_an_empty_set_counts() -> None:
    # Or a loop that submits nothing but empty sets would fill a group without an end.
    assert Changes().row_count() == 1
