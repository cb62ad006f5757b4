"""What must be true after a kill, reckoned from two witnesses that know nothing of each other.

The worker's journal says what was intended and what the manager has acknowledged. The history says what
happened, and folded up, where each message must lie now. The ledger holds them against each other and
against the queues:

* what was acknowledged is in the history, in the places that the manager told;
* what was under way at the kill happened wholly or not at all, whatever number of queues it touched;
* what was aborted, or never committed, did not happen;
* nothing happened twice, and nothing that nobody intended;
* what was sent later lies behind what was acknowledged before;
* every queue holds exactly what the history says, in that order, each body whole.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lanner.model.history import HistoryEvent, HistoryRow
from lanner.model.message import Message

LINE = r".\private$\line"
VAULT = r".\private$\vault"
PERISHABLE = "perishable"
CANCELLED = "the receiver was cancelled"


@dataclass
class Operation:
    """One thing that the worker was going to do."""

    name: str
    do: str
    details: dict[str, Any]
    floors: dict[tuple[str, int], int]
    """By queue and priority: behind which place everything has to lie that this operation sends."""
    result: dict[str, Any] | None = None

    @property
    def is_done(self) -> bool:
        return self.result is not None and self.result["end"] == "done"

    @property
    def is_under_way(self) -> bool:
        return self.result is None

    @property
    def messages(self) -> list[tuple[str, str, int]]:
        return [(queue, label, priority) for queue, label, priority in self.details["messages"]]


@dataclass
class Lying:
    """A message where the history says that it lies."""

    label: str
    id: str
    aborts: int = 0


@dataclass
class Rows:
    """What the new rows of the history say, by what they can be asked for."""

    received: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By queue and label, as below."""
    moved: Counter[tuple[str, str]] = field(default_factory=Counter)
    sent: list[tuple[str, str]] = field(default_factory=list)
    coins_taken: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By the operation that did it."""
    coins_put: dict[str, tuple[str, str]] = field(default_factory=dict)
    returned: Counter[str] = field(default_factory=Counter)
    """By the operation whose transaction was aborted."""
    gone: dict[int, Lying] = field(default_factory=dict)
    """By place: what was received or has expired, which a journal or dead-letter queue may have kept."""


class Ledger:
    """Everything that is known about one directory, over all its kills."""

    def __init__(self) -> None:
        self.last_lsn = 0
        self.queues: dict[str, dict[int, Lying]] = defaultdict(dict)
        self.keys: dict[str, Operation] = {}
        """The first operation under each key; done when any of them was."""
        self.operations: dict[str, Operation] = {}
        """Since the last check."""
        self.passing: dict[str, bool | None] = {}
        """Queues that come and go: whether they are there, or nobody knows."""
        self._rows = Rows()
        self._sent: dict[tuple[str, str], HistoryRow] = {}
        """By queue and label: every message that was ever sent, but for coins on their way."""
        self._express: set[str] = set()
        self._floors: dict[tuple[str, int], int] = defaultdict(lambda: -1)

    # The journal.

    def read_journal(self, path: Path) -> bool:
        """Take in what a worker wrote until it was killed. Says whether it got to work."""
        is_ready = False
        for line in path.read_text().splitlines() if path.exists() else []:
            record = json.loads(line)
            if record.get("do") == "ready":
                is_ready = True
            elif "do" in record:
                self._intend(record)
            else:
                self._end(record)
        return is_ready

    def retries(self, wanted: Iterable[str]) -> list[dict[str, Any]]:
        """What to do again under the same keys: all that is in doubt, and some that is not."""
        again = {key for key, operation in self.keys.items() if not operation.is_done} | set(wanted)
        return [
            {
                "key": key,
                "transactional": self.keys[key].details.get("transactional", False),
                "messages": self.keys[key].messages,
            }
            for key in sorted(again)
        ]

    def _intend(self, record: dict[str, Any]) -> None:
        operation = Operation(record["op"], record["do"], record, dict(self._floors))
        self.operations[operation.name] = operation
        key = record.get("key")
        if key is not None:
            self.keys.setdefault(key, operation)
        if operation.do in ("create", "delete"):
            self.passing[record["queue"]] = None

    def _end(self, record: dict[str, Any]) -> None:
        operation = self.operations[record["op"]]
        operation.result = record
        if not operation.is_done:
            return
        if operation.do in ("create", "delete"):
            self.passing[operation.details["queue"]] = operation.do == "create"
        key = operation.details.get("key")
        if key is not None:
            self._end_key(self.keys[key], operation)
        if operation.do in ("send", "express"):
            for (queue, _, priority), lookup in zip(operation.messages, record["lookups"], strict=True):
                place = (queue, 0 if operation.details.get("transactional") else priority)
                if queue not in self.passing:
                    self._floors[place] = max(self._floors[place], lookup)

    def _end_key(self, first: Operation, operation: Operation) -> None:
        result = operation.result
        assert result is not None
        if first.is_done and first.result is not result:
            assert first.result is not None
            assert (result["ids"], result["lookups"]) == (first.result["ids"], first.result["lookups"])
            assert result["replay"] or first.result["replay"], f"{first.details['key']} was done twice"
        was_sent = all((queue, label) in self._sent for queue, label, _ in first.messages)
        assert result["replay"] or not was_sent, f"{first.details['key']} was done again"
        first.result = first.result or result

    # The history.

    def read_history(self, rows: Iterable[HistoryRow]) -> None:
        """Fold new rows: afterwards ``queues`` says where everything lies."""
        for row in rows:
            assert row.lsn == self.last_lsn + 1, f"LSN {row.lsn} follows {self.last_lsn}"
            self.last_lsn = row.lsn
            if row.event == HistoryEvent.SENT and row.reason == "express":
                self._express.add(row.message_id)
            if row.message_id not in self._express:
                self._fold(row)

    def _fold(self, row: HistoryRow) -> None:
        match row.event:
            case HistoryEvent.SENT:
                self._fold_sent(row)
            case HistoryEvent.RECEIVED:
                self._fold_received(row)
            case HistoryEvent.MOVED:
                self._put(row, self._take(self._queue_of(row) or "nowhere", row))
                if not (row.reason or "").startswith("poison"):
                    self._rows.moved[row.queue, row.label or ""] += 1
            case HistoryEvent.RETURNED if row.reason == CANCELLED:
                self._put_back(row)
            case HistoryEvent.RETURNED:
                self.queues[row.queue][row.lookup_id].aborts += 1
                self._rows.returned[row.transaction_id or ""] += 1
            case HistoryEvent.EXPIRED:
                assert (row.label or "").startswith(PERISHABLE), row
                self._take(row.queue, row)
            case HistoryEvent.DELETED:
                assert row.queue in self.passing, row
                self._take(row.queue, row)
            case HistoryEvent.JOURNALED | HistoryEvent.DEAD_LETTERED:
                self._put(row, self._rows.gone.pop(row.lookup_id))
            case _:
                raise AssertionError(f"nothing here leads to {row}")

    def _fold_sent(self, row: HistoryRow) -> None:
        place = (row.queue, row.label or "")
        self._put(row, Lying(row.label or "", row.message_id))
        operation = self.operations.get(row.transaction_id or "")
        if operation is not None and operation.do == "coin":
            assert operation.name not in self._rows.coins_put, row
            self._rows.coins_put[operation.name] = place
            return
        assert place not in self._sent, f"{row.label} was sent twice"
        self._sent[place] = row
        self._rows.sent.append(place)

    def _fold_received(self, row: HistoryRow) -> None:
        place = (row.queue, row.label or "")
        if row.queue == LINE:
            assert row.lookup_id == min(self.queues[LINE]), f"{row.label} overtook another"
        self._take(row.queue, row)
        # A message received outside of a transaction is shown with the transaction that sent it.
        operation = self.operations.get(row.transaction_id or "")
        if operation is not None and operation.do == "coin" and not row.queue.endswith(";journal"):
            assert operation.name not in self._rows.coins_taken, row
            self._rows.coins_taken[operation.name] = place
        else:
            self._rows.received[place] += 1

    def _put_back(self, row: HistoryRow) -> None:
        """A cancelled receive gave a message back, perhaps from the journal."""
        queue = self._queue_of(row)
        self._put(row, self._rows.gone.pop(row.lookup_id) if queue is None else self._take(queue, row))
        self._rows.received[row.queue, row.label or ""] -= 1

    def _queue_of(self, row: HistoryRow) -> str | None:
        return next((name for name, lying in self.queues.items() if row.lookup_id in lying), None)

    def _take(self, queue: str, row: HistoryRow) -> Lying:
        lying = self.queues[queue].pop(row.lookup_id, None)
        assert lying is not None, f"{row} is about a message that is not there"
        assert (lying.label, lying.id) == (row.label, row.message_id)
        self._rows.gone[row.lookup_id] = lying
        return lying

    def _put(self, row: HistoryRow, lying: Lying) -> None:
        assert row.lookup_id not in self.queues[row.queue], row
        self.queues[row.queue][row.lookup_id] = lying

    # The journal against the history.

    def check_operations(self) -> None:
        """Everything that was intended came out as the manager said, or wholly one way or the other."""
        for operation in self.operations.values():
            match operation.do:
                case "send":
                    self._check_send(operation)
                case "nothing":
                    self._check_nothing(operation)
                case "coin":
                    self._check_coin(operation)
        self._check_receives()
        self._check_moves()
        self._check_nobody_else()
        self.operations.clear()
        self._express.clear()
        self._rows = Rows()
        for name in [name for name, lying in self.queues.items() if not lying]:
            del self.queues[name]

    def _check_send(self, operation: Operation) -> None:
        found = [self._sent.get((queue, label)) for queue, label, _ in operation.messages]
        there = [row for row in found if row is not None]
        assert len(there) in (0, len(found)), f"{operation} happened by halves"
        if operation.is_done:
            assert operation.result is not None
            assert [row.lookup_id for row in there] == operation.result["lookups"], operation
            assert [row.message_id for row in there] == operation.result["ids"], operation
        first = self.keys.get(operation.details.get("key", ""), operation)
        for row in there if first is operation else []:
            floor = operation.floors.get((row.queue, row.priority), -1)
            assert row.lookup_id > floor, f"{operation} is before what was sent earlier"

    def _check_nothing(self, operation: Operation) -> None:
        for queue, label, _ in operation.messages:
            assert (queue, label) not in self._sent, f"{label} was sent without a commit"
        assert self._rows.returned[operation.name] <= 1

    def _check_coin(self, operation: Operation) -> None:
        details = operation.details
        source, taken = self._rows.coins_taken.get(operation.name, (None, None))
        target, put = self._rows.coins_put.get(operation.name, (None, None))
        assert taken == put, f"{operation} happened by halves"
        if put is not None:
            assert details["commit"]
            assert (source, target) == (details["source"], details["target"])
        if operation.is_done:
            assert operation.result is not None
            assert put == (operation.result["label"] if details["commit"] else None), operation
            assert self._rows.returned[operation.name] == (not details["commit"]), operation
        elif not operation.is_under_way:
            assert put is None, operation

    def _check_receives(self) -> None:
        under_way: Counter[str] = Counter()
        for operation in self._all("receive"):
            queue = operation.details["queue"]
            if operation.is_under_way:
                under_way[queue] += operation.details["count"]
            elif operation.is_done:
                assert operation.result is not None
                for label in operation.result["labels"]:
                    self._rows.received[queue, label] -= 1
                    assert self._rows.received[queue, label] >= 0, f"no row for {operation}"
        for (queue, label), count in self._rows.received.items():
            under_way[queue] -= count
            assert under_way[queue] >= 0, f"nobody received {label} from {queue}"

    def _check_moves(self) -> None:
        for operation in self._all("move"):
            place = (operation.details["target"], operation.details["label"])
            if operation.is_done:
                self._rows.moved[place] -= 1
                assert self._rows.moved[place] >= 0, f"no row for {operation}"
        for operation in self._all("move"):
            place = (operation.details["target"], operation.details["label"])
            if operation.is_under_way and self._rows.moved[place]:
                self._rows.moved[place] -= 1
        assert not +self._rows.moved, "something moved by itself"

    def _check_nobody_else(self) -> None:
        intended = {
            (queue, label)
            for operation in (*self._all("send"), *self.keys.values())
            for queue, label, _ in operation.messages
        }
        strangers = set(self._rows.sent) - intended
        assert not strangers, f"nobody sent {strangers}"

    def _all(self, do: str) -> Iterator[Operation]:
        return (operation for operation in self.operations.values() if operation.do == do)

    # The history against the queues.

    def check_queue(self, name: str, messages: list[Message]) -> None:
        """A queue holds what it must, in order, whole."""
        expected = [
            (lookup, lying.label, lying.id, lying.aborts)
            for lookup, lying in sorted(self.queues.get(name, {}).items())
        ]
        found = [
            (message.lookup_id, message.label, str(message.id), message.abort_count) for message in messages
        ]
        assert found == expected, f"{name} does not hold what the history says"
        for message in messages:
            assert message.extension == hashlib.sha256(message.body).digest(), f"{message.label} is damaged"

    def check_queues(self, names: set[str]) -> None:
        """No queue is missing, and none that was deleted is there."""
        missing = {name for name, lying in self.queues.items() if lying} - names
        assert not missing, f"{missing} are not there"
        for queue, is_there in self.passing.items():
            if is_there is not None:
                assert (queue in names) == is_there, queue
            self.passing[queue] = queue in names
        labels = Counter(
            lying.label
            for name, lying_there in self.queues.items()
            if not name.endswith(";journal")
            for lying in lying_there.values()
        )
        assert all(count == 1 for count in labels.values()), "something is there twice"

    def check_coins(self) -> None:
        """No coin is lost: all of them are there, or none was made yet."""
        made = self.keys.get("coins")
        if made is None:
            return
        coins = sorted(
            lying.label
            for name, lying_there in self.queues.items()
            if name.startswith(VAULT) and not name.endswith(";journal")
            for lying in lying_there.values()
        )
        everything = sorted(label for _, label, _ in made.messages)
        assert coins == everything or (not coins and not made.is_done), coins
