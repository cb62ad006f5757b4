"""The program that test_kill kills: a queue manager under load that keeps a journal of its own.

Run as ``kill_worker.py CONFIG``. It opens the directory that CONFIG names and lets a dozen tasks send,
receive, move, commit and abort as fast as they can, for ever. Each writes down what it is going to do
before it does it, and how it ended after the manager has said so: one line of JSON each, straight to the
file, which a SIGKILL cannot take back. Whatever the manager says, the journal proves it said so.

A message's label is its name; its extension is a digest of its body, so that anybody can check it.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import random
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from lanner.manager import ManagerSettings, OpenQueue, Outcome, QueueManager, Transaction
from lanner.model.errors import (
    MessageLockedError,
    MessageNotFoundError,
    QueueNotFoundError,
    ReceiveTimeoutError,
)
from lanner.model.message import Delivery, Message
from lanner.model.queue import QueueAccess, QueueProperties

LINE = r".\private$\line"
"""One sender, one receiver: strictly first in, first out."""
PLAIN = r".\private$\plain"
LATER = r".\private$\plain;later"
LEDGER = r".\private$\ledger"
KEPT = r".\private$\kept"
VAULTS = tuple(rf".\private$\vault{number}" for number in range(3))
"""Where the coins are: each coin in one of them, always."""
EXPRESS = r".\private$\express"
PASSING = r".\private$\passing"
"""How the names of queues begin that come and go."""
DEAD_LETTER = r".\system$;deadletter"
KEY_OF_COINS = "coins"

QUEUES = {
    LINE: QueueProperties(),
    PLAIN: QueueProperties(),
    LEDGER: QueueProperties(transactional=True),
    KEPT: QueueProperties(transactional=True, journaling=True, max_aborts=3),
    VAULTS[0]: QueueProperties(transactional=True),
    VAULTS[1]: QueueProperties(transactional=True),
    VAULTS[2]: QueueProperties(transactional=True, journaling=True),
    EXPRESS: QueueProperties(),
}
COINS = tuple(f"coin{number}" for number in range(6))
DRAINED = (PLAIN, PLAIN, LATER, LEDGER, KEPT, f"{KEPT};journal", f"{KEPT};poison", DEAD_LETTER)

FULL = 60
"""Messages in a queue from which on senders wait."""
BODY_SIZES = (0, 20, 200, 200, 1000, 1000, 5000, 20_000, 300_000)
BODY_WEIGHTS = (5, 20, 20, 20, 20, 10, 4, 1, 0.2)

Entry = tuple[str, str, int]
"""Queue, label and priority of a message to send."""


class Journal:
    """What this process says that it will do, and has done."""

    def __init__(self, path: str, generation: int) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._generation = generation
        self._count = 0

    def name(self) -> str:
        """A name that was never used before."""
        self._count += 1
        return f"{self._generation}.{self._count}"

    def write(self, **record: Any) -> None:
        os.write(self._file, json.dumps(record).encode() + b"\n")

    def intend(self, do: str, **details: Any) -> str:
        name = self.name()
        self.write(op=name, do=do, **details)
        return name

    def done(self, operation: str, **details: Any) -> None:
        self.write(op=operation, end="done", **details)

    def nothing(self, operation: str) -> None:
        """The manager has said that nothing was done."""
        self.write(op=operation, end="nothing")


class Worker:
    """The tasks, and what they share."""

    def __init__(self, manager: QueueManager, journal: Journal, rng: random.Random) -> None:
        self.manager = manager
        self.journal = journal
        self.rng = rng

    # What the tasks are made of.

    def message(self, label: str, priority: int = 3, **attributes: Any) -> Message:
        size = self.rng.choices(BODY_SIZES, BODY_WEIGHTS)[0]
        body = (label.encode() + self.rng.randbytes(16)) * (size // 20)
        attributes = {"delivery": Delivery.RECOVERABLE, **attributes}
        digest = hashlib.sha256(body).digest()
        return Message(label=label, body=body, extension=digest, priority=priority, **attributes)

    def entries(self, queue: str, count: int) -> list[Entry]:
        priorities = (3, 3, 3, 0, 7) if queue == PLAIN else (3,)
        return [(queue, self.journal.name(), self.rng.choice(priorities)) for _ in range(count)]

    def messages(self, entries: list[Entry]) -> list[Message]:
        return [self.message(label, priority) for _, label, priority in entries]

    async def room(self, *queues: str) -> None:
        """Wait until there is room in some queues, and let the other tasks go on."""
        await asyncio.sleep(0)
        while any(self.manager.queue(queue).messages >= FULL for queue in queues):  # noqa: ASYNC110
            await asyncio.sleep(0.001)

    @asynccontextmanager
    async def opened(self, queue: str) -> AsyncIterator[OpenQueue]:
        handle = self.manager.open_queue(queue, QueueAccess.RECEIVE)
        try:
            yield handle
        finally:
            self.manager.close_queue(handle)

    # Sending.

    async def fill_line(self) -> None:
        await self.room(LINE)
        await self.send(self.entries(LINE, 1))

    async def fill_plain(self) -> None:
        await self.room(PLAIN)
        count = 1 if self.rng.random() < 0.6 else self.rng.randint(2, 20)
        await self.send(self.entries(PLAIN, count))

    async def send(self, entries: list[Entry], **attributes: Any) -> None:
        operation = self.journal.intend("send", messages=entries)
        messages = [self.message(label, priority, **attributes) for _, label, priority in entries]
        outcome = await self.manager.send_many(entries[0][0], messages)
        self.journal.done(operation, **told(outcome))

    async def fill_with_key(self) -> None:
        """Under a key, sometimes twice at once: the first of the two is as good as the second."""
        await self.room(PLAIN)
        entries = self.entries(PLAIN, self.rng.randint(1, 3))
        key = self.journal.name()
        times = 2 if self.rng.random() < 0.3 else 1
        await asyncio.gather(*(self.send_with_key(key, entries) for _ in range(times)))

    async def send_with_key(self, key: str, entries: list[Entry]) -> None:
        operation = self.journal.intend("send", key=key, messages=entries)
        outcome = await self.manager.send_many(entries[0][0], self.messages(entries), key=key)
        self.journal.done(operation, replay=outcome.is_replay, **told(outcome))

    async def perish(self) -> None:
        """Messages that nobody can receive in time."""
        await self.room(DEAD_LETTER)
        await asyncio.sleep(0.002)
        entries = [(PLAIN, f"perishable{self.journal.name()}", 3)]
        await self.send(entries, time_to_be_received=0, negative_journaling=True)

    async def express(self) -> None:
        await self.room(EXPRESS)
        await asyncio.sleep(0.001)
        entries = [(EXPRESS, self.journal.name(), 3)]
        operation = self.journal.intend("express", messages=entries)
        outcome = await self.manager.send(EXPRESS, self.message(entries[0][1], delivery=Delivery.EXPRESS))
        self.journal.done(operation, **told(outcome))

    # Receiving.

    async def empty_line(self) -> None:
        await self.receive(LINE, 1, timeout=None)

    async def empty_express(self) -> None:
        await self.manager.receive(EXPRESS)

    async def drain(self) -> None:
        queue = self.rng.choice((*DRAINED, f"{VAULTS[2]};journal"))
        await asyncio.sleep(0)
        await self.receive(queue, 1 if self.rng.random() < 0.5 else self.rng.randint(2, 20), timeout=0)

    async def receive(self, queue: str, count: int, timeout: float | None) -> None:
        operation = self.journal.intend("receive", queue=queue, count=count)
        try:
            async with self.opened(queue) as handle:
                if count == 1:
                    received = [await self.manager.dequeue_message(handle, timeout=timeout)]
                else:
                    received = await self.manager.dequeue_messages(handle, count, timeout=timeout)
        except ReceiveTimeoutError:
            self.journal.nothing(operation)
            await asyncio.sleep(0.001)
            return
        self.journal.done(operation, labels=[message.label for message in received])

    async def move(self) -> None:
        """Move something to the subqueue, or back, if nobody is faster."""
        await asyncio.sleep(0.002)
        source, target = self.rng.sample((PLAIN, LATER), 2)
        async with self.opened(source) as handle:
            found = await self.manager.browse_messages(handle, 5, bodies=False)
            if not found:
                return
            message = self.rng.choice(found)
            operation = self.journal.intend("move", target=target, label=message.label)
            try:
                await self.manager.move_message(handle, message.lookup_id, target)
            except (MessageNotFoundError, MessageLockedError):
                self.journal.nothing(operation)
                return
        self.journal.done(operation)

    # Transactions. Their identifiers are the operations' names, so that the history tells them apart.

    async def book(self) -> None:
        """Send to one or two queues in one transaction; let some of them come to nothing."""
        await self.room(LEDGER, KEPT)
        queues = self.rng.choice(((LEDGER,), (KEPT,), (LEDGER, KEPT)))
        entries = [entry for queue in queues for entry in self.entries(queue, self.rng.randint(1, 4))]
        self.rng.shuffle(entries)
        fate = self.rng.random()
        if fate < 0.2:
            await self.book_with_key(self.journal.name(), entries)
        elif fate < 0.35:
            await self.book_nothing(entries, is_left_open=fate < 0.22)
        else:
            operation = self.journal.intend("send", transactional=True, messages=entries)
            outcome = await self.commit(self.manager.create_transaction(operation), entries)
            self.journal.done(operation, **told_of_transaction(outcome, entries))

    async def book_with_key(self, key: str, entries: list[Entry]) -> None:
        operation = self.journal.intend("send", key=key, transactional=True, messages=entries)
        transaction = self.manager.create_transaction(operation, key=key)
        outcome = await self.commit(transaction, entries)
        replay = outcome.is_replay
        self.journal.done(operation, replay=replay, **told_of_transaction(outcome, entries))

    async def book_nothing(self, entries: list[Entry], *, is_left_open: bool) -> None:
        operation = self.journal.intend("nothing", messages=entries)
        transaction = self.manager.create_transaction(operation)
        await self.fill(transaction, entries)
        if not is_left_open:
            await asyncio.sleep(0.001)
            await self.manager.transaction_abort(transaction)
            self.journal.done(operation)

    async def commit(self, transaction: Transaction, entries: list[Entry]) -> Outcome:
        await self.fill(transaction, entries)
        return await self.manager.transaction_commit(transaction)

    async def fill(self, transaction: Transaction, entries: list[Entry]) -> None:
        for queue, label, _ in entries:
            await self.manager.send(queue, self.message(label), transaction=transaction)

    async def move_coin(self) -> None:
        """Take a coin out of one vault and put it into another, in one transaction."""
        source, target = self.rng.sample(VAULTS, 2)
        will_commit = self.rng.random() < 0.8
        operation = self.journal.intend("coin", source=source, target=target, commit=will_commit)
        transaction = self.manager.create_transaction(operation)
        try:
            coin = await self.manager.receive(source, timeout=0, transaction=transaction)
        except ReceiveTimeoutError:
            await self.manager.transaction_abort(transaction)
            self.journal.nothing(operation)
            await asyncio.sleep(0.001)
            return
        await self.manager.send(target, self.message(coin.label), transaction=transaction)
        if will_commit:
            await self.manager.transaction_commit(transaction)
        else:
            await self.manager.transaction_abort(transaction)
        self.journal.done(operation, label=coin.label)

    async def give_back(self) -> None:
        """Receive, send and abort: nothing comes of it but a count, and poison."""
        await asyncio.sleep(0.003)
        entries = self.entries(LEDGER, 1)
        operation = self.journal.intend("nothing", messages=entries)
        transaction = self.manager.create_transaction(operation)
        with suppress(ReceiveTimeoutError):
            await self.manager.receive(KEPT, timeout=0, transaction=transaction)
        await self.fill(transaction, entries)
        await self.manager.transaction_abort(transaction)
        self.journal.done(operation)

    # Queues, and the store itself.

    async def make_and_delete(self) -> None:
        await asyncio.sleep(0.01)
        queue = PASSING + self.journal.name()
        operation = self.journal.intend("create", queue=queue)
        await self.manager.create_queue(queue)
        self.journal.done(operation)
        await self.send(self.entries(queue, 5))
        await self.delete(queue)

    async def delete(self, queue: str) -> None:
        operation = self.journal.intend("delete", queue=queue)
        await self.manager.delete_queue(queue)
        self.journal.done(operation)

    async def tidy_up(self) -> None:
        await asyncio.sleep(0.03)
        await self.manager.store.tidy()
        await self.manager.history.trim(before=time.time() + 60, max_bytes=0)
        await self.manager.store.compact()

    # All of it.

    async def prepare(self, confirmed: int, retries: list[dict[str, Any]]) -> None:
        for queue, properties in QUEUES.items():
            if not self.has_queue(queue):
                await self.manager.create_queue(queue, properties)
        for info in self.manager.queues():
            if info.path.startswith(PASSING):
                await self.delete(info.path)
        now = time.time()
        await self.manager.history.register("checker", now)
        await self.manager.history.confirm("checker", confirmed, now)
        for retry in retries:
            entries = [(queue, label, priority) for queue, label, priority in retry["messages"]]
            again = self.book_with_key if retry["transactional"] else self.send_with_key
            await again(retry["key"], entries)
        await self.book_with_key(
            KEY_OF_COINS, [(VAULTS[number % 3], coin, 0) for number, coin in enumerate(COINS)]
        )

    def has_queue(self, queue: str) -> bool:
        try:
            self.manager.queue(queue)
        except QueueNotFoundError:
            return False
        return True

    async def work(self) -> None:
        tasks = (
            self.fill_line,
            self.empty_line,
            self.fill_plain,
            self.fill_with_key,
            self.perish,
            self.express,
            self.empty_express,
            *(self.drain,) * 3,
            self.move,
            *(self.book,) * 2,
            *(self.move_coin,) * 2,
            self.give_back,
            self.make_and_delete,
            self.tidy_up,
        )
        await asyncio.gather(*(for_ever(task) for task in tasks))


async def for_ever(step: Callable[[], Awaitable[None]]) -> None:
    while True:
        await step()


def told(outcome: Outcome) -> dict[str, Any]:
    """What the manager says about messages that it has sent: where each lies, in the order of sending."""
    return {"lookups": list(outcome.lookup_ids), "ids": [str(name) for name in outcome.message_ids]}


def told_of_transaction(outcome: Outcome, entries: list[Entry]) -> dict[str, Any]:
    """The same for a transaction, whose outcome is in the order of its queues."""
    queues = list(dict.fromkeys(queue for queue, _, _ in entries))
    order = sorted(range(len(entries)), key=lambda index: queues.index(entries[index][0]))
    places = dict(zip(order, zip(outcome.lookup_ids, outcome.message_ids, strict=True), strict=True))
    ordered = [places[index] for index in range(len(entries))]
    return {"lookups": [lookup for lookup, _ in ordered], "ids": [str(name) for _, name in ordered]}


async def main(config: dict[str, Any]) -> None:
    journal = Journal(config["journal"], config["generation"])
    rng = random.Random(config["seed"])
    os.write(sys.stdout.fileno(), b"!")
    settings = ManagerSettings(cache_bytes=20_000)
    manager = await QueueManager.open(config["directory"], name="victim", settings=settings)
    worker = Worker(manager, journal, rng)
    await worker.prepare(config["confirmed"], config["retries"])
    journal.write(do="ready")
    await worker.work()


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    asyncio.run(main(json.loads(Path(sys.argv[1]).read_text())))
