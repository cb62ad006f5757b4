"""What one operation wants to be true: its rows, and what happens when they are, or are not."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from lanner.model.errors import LannerError
from lanner.model.history import HistoryRow
from lanner.model.log_fields import LogFields, about
from lanner.store.codec import ContentRecord, MessageRow

__all__ = ["Changes", "QueueRow", "log_fields"]

QueueRow: TypeAlias = tuple[int, str, str, int | None, bytes, bytes | None]
"""id, kind, path, parent, record, security."""


class Changes:
    """A set of rows that become durable together, or not at all.

    ``on_applied`` callbacks run on the event loop in the order in which the sets were submitted, as
    soon as the commit is safe; ``on_failed`` callbacks run instead when nothing was kept. They run
    whether or not anybody still waits for the operation.
    """

    __slots__ = (
        "contents",
        "deletes",
        "error",
        "history",
        "is_settled",
        "messages",
        "meta",
        "on_applied",
        "on_failed",
        "outcomes",
        "purged",
        "queue_deletes",
        "queues",
        "state",
        "state_deletes",
        "updates",
    )

    def __init__(self) -> None:
        self.queues: list[QueueRow] = []
        self.messages: list[MessageRow] = []
        self.contents: list[ContentRecord] = []
        """The content of each of ``messages``."""
        self.updates: list[tuple[int, int, float | None, int, int]] = []
        """queue, class, expires, aborts, lookup."""
        self.purged: list[tuple[int, int]] = []
        """lookup, queue: messages that are locked and that a purge has marked, if they are still there."""
        self.deletes: list[int] = []
        """Lookup identifiers."""
        self.outcomes: list[tuple[str, bytes, float]] = []
        self.state: list[tuple[str, str, bytes]] = []
        self.state_deletes: list[tuple[str, str]] = []
        self.meta: list[tuple[str, object]] = []
        self.queue_deletes: list[tuple[int]] = []
        self.history: list[HistoryRow] = []
        self.error: LannerError | None = None
        """Why nothing was kept, once that is known."""
        self.is_settled = False
        """Whether the callbacks have run."""
        self.on_applied: list[Callable[[], None]] = []
        self.on_failed: list[Callable[[], None]] = []

    def is_durable(self) -> bool:
        """Whether anything but history is in it: history alone is nothing to wait for."""
        return bool(
            self.queues
            or self.messages
            or self.updates
            or self.purged
            or self.deletes
            or self.outcomes
            or self.state
            or self.state_deletes
            or self.meta
            or self.queue_deletes
        )

    def row_count(self) -> int:
        """How much of a group this takes up."""
        return (
            len(self.messages)
            + len(self.updates)
            + len(self.purged)
            + len(self.deletes)
            + len(self.history)
            + len(self.queues)
            + 1
        )


def log_fields(group: Iterable[Changes]) -> LogFields:
    """Which queues and messages these are about, for the log. History knows the names; rows have numbers."""
    queues: set[str] = set()
    messages: set[str] = set()
    for changes in group:
        made = {number for number, *_ in changes.queues}
        # A new queue's journal goes without saying.
        queues.update(path for _, _, path, parent, *_ in changes.queues if parent not in made)
        queues.update(row.queue for row in changes.history)
        messages.update(row.message_id for row in changes.history)
    return about(queues=queues, messages=messages)
