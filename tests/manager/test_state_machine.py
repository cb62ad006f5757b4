"""The manager against a model: whatever is done, in whatever order, both hold the same messages.

Hypothesis makes up sequences of operations and does each of them twice: to a real queue manager on a
directory of its own, with a clock that is turned by hand, and to a model of lists and plain arithmetic.
Both must agree on what is refused and why, on the message that is handed out, and, after every step, on
the contents, the order, the counts and the bytes of every queue, journal, subqueue, dead-letter and
outgoing queue. The manager is restarted in between: express messages vanish, transactions are aborted,
everything else stays in its place.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import shutil
import tempfile
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from tests.manager.world import (
    ADMINISTRATION,
    OUTGOING,
    PROPERTIES,
    SYSTEM,
    Box,
    Held,
    RefusedError,
    Unit,
    World,
)

from lanner.manager import ManualClock, OpenQueue, QueueManager, Transaction
from lanner.manager.transactions import TransactionState
from lanner.model.errors import LannerError, QueueDeletedError
from lanner.model.history import HistoryEvent
from lanner.model.message import DEFAULT_TIME_TO_REACH_QUEUE, INFINITE, Acknowledgments, Delivery, Message
from lanner.model.message_id import MessageId
from lanner.model.queue import OutgoingState, QueueAccess, SeekAction
from lanner.store import Changes

T = TypeVar("T")

LOCAL = st.sampled_from(sorted(PROPERTIES))
SUBQUEUES = st.builds("{};{}".format, LOCAL, st.sampled_from(("later", "poison")))
JOURNALS = st.builds("{};journal".format, LOCAL)
TRANSACTIONAL = [name for name, properties in PROPERTIES.items() if properties.transactional]
ORDINARY = [name for name in PROPERTIES if name not in TRANSACTIONAL]
# Mostly what makes sense, so that the queues are full; sometimes what does not.
DESTINATIONS = st.sampled_from((*ORDINARY * 2, OUTGOING, *TRANSACTIONAL))
TRANSACTIONAL_DESTINATIONS = st.sampled_from((*TRANSACTIONAL * 3, OUTGOING, *ORDINARY))
PLACES = st.one_of(LOCAL, SUBQUEUES, JOURNALS, st.sampled_from((*SYSTEM, OUTGOING)))
SPOTS = st.one_of(PLACES, *[st.integers(0, 9)] * 3)
"""The name of a queue; or a number, for one of those that are not empty."""
MOVE_TARGETS = st.one_of(st.sampled_from((";later", ";poison", "")), LOCAL, SUBQUEUES, JOURNALS)
"""The name of a queue; or what follows the name of the message's own, or of one that fits."""
SLOTS = st.integers(0, 1)
MAYBE_SLOTS = st.none() | SLOTS
INDEXES = st.integers(0, 5)
DELAYS = st.sampled_from((0.0, 0.0001, 0.0004, 0.001))

EVERY_ACKNOWLEDGMENT = Acknowledgments.FULL_REACH_QUEUE | Acknowledgments.FULL_RECEIVE
CORRELATION = MessageId(b"c" * MessageId.LENGTH)


@dataclass(frozen=True)
class Wish:
    """What a message is to be like, in few enough words to be read in a failing example."""

    size: int
    priority: int
    express: bool
    lives: int
    reaches: int
    dead: str | None
    """Where it goes when it dies: nowhere, to the manager's dead-letter queue, or to one of its own."""
    journal: bool
    peekable: bool
    correlated: bool
    acknowledged: bool

    def message(self, label: str) -> Message:
        return Message(
            label=label,
            body=b"x" * self.size,
            priority=self.priority,
            delivery=Delivery.EXPRESS if self.express else Delivery.RECOVERABLE,
            time_to_be_received=self.lives,
            time_to_reach_queue=self.reaches,
            negative_journaling=self.dead is not None,
            dead_letter_queue=self.dead or "",
            positive_journaling=self.journal,
            allow_peek_when_locked=self.peekable,
            correlation_id=CORRELATION if self.correlated else None,
            acknowledgments=EVERY_ACKNOWLEDGMENT if self.acknowledged else Acknowledgments.NONE,
            administration_queue=ADMINISTRATION if self.acknowledged else "",
        )


CHOICES: dict[str, tuple[Any, ...]] = {
    "size": (0, 100, 400),
    "priority": (3, 3, 0, 7),
    "express": (False, True),
    "lives": (INFINITE, INFINITE, INFINITE, 0, 1, 5),
    "reaches": (DEFAULT_TIME_TO_REACH_QUEUE, 2),
    "dead": (None, None, "", r".\private$\plain", r".\private$\gone"),
    "journal": (False, False, False, True),
    "peekable": (False, True),
    "correlated": (False, True),
    "acknowledged": (False, False, True),
}
WISHES = st.builds(Wish, **{name: st.sampled_from(choices) for name, choices in CHOICES.items()})


def some_wish(rng: random.Random) -> Wish:
    return Wish(**{name: rng.choice(choices) for name, choices in CHOICES.items()})


class ManagerMachine(RuleBasedStateMachine):
    """Does everything twice."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.mkdtemp(prefix="lanner-machine-")
        self.loop = asyncio.new_event_loop()
        self.clock = ManualClock()
        self.world = World(self.clock.time())
        self.units: dict[int, tuple[Transaction, Unit]] = {}
        self.keys: set[str] = set()
        self.begun: list[tuple[Held, Box, Message, OpenQueue]] = []
        self.labels = itertools.count()
        self.manager = self.run(QueueManager.open(self.directory, name="here", clock=self.clock))

    def teardown(self) -> None:
        self.loop.run_until_complete(self.manager.close())
        self.loop.close()
        shutil.rmtree(self.directory)

    # Doing it.

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do it to the real one. Nothing takes that long, unless it takes for ever."""
        return self.loop.run_until_complete(asyncio.wait_for(work, 60))

    def both(self, real: Coroutine[Any, Any, T], model: Callable[[], object]) -> T | None:
        """Do the same to both; both refuse it alike, or neither does. Then what is due happens."""
        expected = self.refusal(model)
        result, error = self.run(self.attempt(real))
        assert (type(error) if error else None) is expected, (error, expected)
        return result

    def follow(self, model: Callable[[], object], error: BaseException | None) -> None:
        """Let the model do what the real one has done already."""
        expected = self.refusal(model)
        assert (type(error) if error else None) is expected, (error, expected)

    def refusal(self, model: Callable[[], object]) -> type[LannerError] | None:
        refusal = None
        try:
            model()
        except RefusedError as refused:
            refusal = refused.kind
        self.world.tick()
        return refusal

    async def attempt(self, real: Coroutine[Any, Any, T]) -> tuple[T | None, LannerError | None]:
        try:
            return await real, None
        except LannerError as error:
            return None, error
        finally:
            await self.settle(0)

    async def settle(self, seconds: float) -> None:
        self.clock.advance(seconds)
        await self.manager._core.settle()

    async def with_handle(
        self, name: str, work: Callable[[OpenQueue], Coroutine[Any, Any, T]], *, peek: bool = False
    ) -> T:
        if name == OUTGOING:
            access = QueueAccess.PEEK_ADMIN if peek else QueueAccess.RECEIVE_ADMIN
        else:
            access = QueueAccess.PEEK if peek else QueueAccess.RECEIVE
        handle = self.manager.open_queue(name, access)
        try:
            return await work(handle)
        finally:
            self.manager.close_queue(handle)

    def message(self, wish: Wish) -> Message:
        return wish.message(f"m{next(self.labels)}")

    def unit(self, slot: int | None) -> tuple[Transaction, Unit] | tuple[None, None]:
        """The transaction in a slot; none without a slot."""
        if slot is None:
            return None, None
        if slot not in self.units:
            self.units[slot] = (self.manager.create_transaction(), Unit())
        return self.units[slot]

    def queue_at(self, spot: str | int) -> str:
        if isinstance(spot, str):
            return spot
        filled = sorted(box.name for box in self.world.everything() if box.held)
        return filled[spot % len(filled)] if filled else OUTGOING

    def some(self, name: str, index: int) -> Held | None:
        """One of the messages in a queue, locked ones too."""
        try:
            held = sorted(self.world.box(name).held, key=lambda held: held.place)
        except RefusedError:
            return None
        return held[index % len(held)] if held else None

    # Queues.

    @initialize(wishes=st.lists(WISHES, min_size=6, max_size=12))
    def begin(self, wishes: list[Wish]) -> None:
        """Make all queues, and put something into each."""
        for name in PROPERTIES:
            self.create(name)
        for name, wish in zip(itertools.cycle((*PROPERTIES, OUTGOING)), wishes, strict=False):
            if name in TRANSACTIONAL:
                self.send_in_transaction(0, name, wish)
            else:
                self.send(name, wish)
        self.end(0, True)

    @rule(name=DESTINATIONS, delete=st.sampled_from((False, False, True)))
    def create_or_delete(self, name: str, delete: bool) -> None:
        if delete:
            self.both(self.manager.delete_queue(name), lambda: self.world.delete(name))
        elif name != OUTGOING:
            self.create(name)

    def create(self, name: str) -> None:
        self.both(self.manager.create_queue(name, PROPERTIES[name]), lambda: self.world.create(name))

    @rule(spot=SPOTS)
    def purge(self, spot: str | int) -> None:
        name = self.queue_at(spot)
        counts: list[int] = []
        real = self.both(self.manager.purge_queue(name), lambda: counts.append(self.world.purge(name)))
        assert real == (counts[0] if counts else None)

    @rule(pause=st.booleans())
    def pause_or_resume(self, pause: bool) -> None:
        work = self.manager.pause_queue if pause else self.manager.resume_queue
        self.both(work(OUTGOING), lambda: self.world.pause(pause))

    # Sending.

    @rule(name=DESTINATIONS, wish=WISHES)
    def send(self, name: str, wish: Wish) -> None:
        message = self.message(wish)
        self.both(self.manager.send(name, message), lambda: self.world.send([name], [message], None))

    @rule(name=DESTINATIONS, wishes=st.lists(WISHES, min_size=1, max_size=3))
    def send_many(self, name: str, wishes: list[Wish]) -> None:
        messages = [self.message(wish) for wish in wishes]
        self.both(self.manager.send_many(name, messages), lambda: self.world.send([name], messages, None))

    @rule(slot=SLOTS, name=TRANSACTIONAL_DESTINATIONS, wish=WISHES)
    def send_in_transaction(self, slot: int, name: str, wish: Wish) -> None:
        transaction, unit = self.unit(slot)
        message = self.message(wish)
        self.both(
            self.manager.send(name, message, transaction=transaction),
            lambda: self.world.send([name], [message], unit),
        )

    @rule(first=DESTINATIONS, second=DESTINATIONS, wish=WISHES)
    def fan_out(self, first: str, second: str, wish: Wish) -> None:
        message = self.message(wish)
        names = sorted({first, second}, key=lambda name: format_name(name).casefold())
        elements = ",".join(format_name(name) for name in names)
        self.both(self.manager.send(elements, message), lambda: self.world.send(names, [message], None))

    @rule(name=st.sampled_from(ORDINARY), wish=WISHES, key=st.sampled_from("abcd"))
    def send_with_key(self, name: str, wish: Wish, key: str) -> None:
        message = self.message(wish)

        def model() -> None:
            if key not in self.keys:
                self.world.send([name], [message], None)
                self.keys.add(key)

        seen = key in self.keys
        # A queue that is not there is noticed before the key is looked at.
        if seen and name not in self.world.boxes:
            return
        outcome = self.both(self.manager.send(name, message, key=key), model)
        assert outcome is None or outcome.is_replay == seen

    # Reading.

    @rule(spot=SPOTS, slot=MAYBE_SLOTS, by=st.sampled_from(("any", "id", "correlation")), index=INDEXES)
    def receive(self, spot: str | int, slot: int | None, by: str, index: int) -> None:
        name = self.queue_at(spot)
        transaction, unit = self.unit(slot)
        known = self.some(name, index)
        message_id = known.id if known and by == "id" else None
        correlation_id = CORRELATION if by == "correlation" else None

        def will_do(held: Held) -> bool:
            return (message_id is None or held.id == message_id) and (
                correlation_id is None or held.message.correlation_id == correlation_id
            )

        def real(handle: OpenQueue) -> Coroutine[Any, Any, Message]:
            return self.manager.dequeue_message(
                handle,
                timeout=0,
                transaction=transaction,
                message_id=message_id,
                correlation_id=correlation_id,
            )

        self.same_message(
            self.with_handle(name, real), lambda: self.world.receive(self.world.first(name, will_do), unit)
        )

    @rule(spot=SPOTS, slot=MAYBE_SLOTS, count=st.integers(1, 4))
    def receive_many(self, spot: str | int, slot: int | None, count: int) -> None:
        name = self.queue_at(spot)
        transaction, unit = self.unit(slot)
        expected: list[str] = []

        def model() -> None:
            self.world.first(name)
            for held in self.world.box(name).free[:count]:
                expected.append(self.world.receive(held, unit).message.label)

        def real(handle: OpenQueue) -> Coroutine[Any, Any, list[Message]]:
            return self.manager.dequeue_messages(handle, count, timeout=0, transaction=transaction)

        received = self.both(self.with_handle(name, real), model)
        assert [message.label for message in received or []] == expected

    @rule(spot=SPOTS)
    def peek(self, spot: str | int) -> None:
        name = self.queue_at(spot)

        def real(handle: OpenQueue) -> Coroutine[Any, Any, Message]:
            return self.manager.peek_message(handle, timeout=0)

        self.same_message(self.with_handle(name, real, peek=True), lambda: self.world.first(name, peek=True))

    @rule(spot=SPOTS, index=INDEXES, action=st.sampled_from(SeekAction), slot=MAYBE_SLOTS)
    def receive_by_lookup(self, spot: str | int, index: int, action: SeekAction, slot: int | None) -> None:
        name = self.queue_at(spot)
        transaction, unit = self.unit(slot)
        known = self.some(name, index)

        def real(handle: OpenQueue) -> Coroutine[Any, Any, Message]:
            return self.manager.read_message_by_lookup_identifier(
                handle, known.lookup_id if known else 0, action, transaction=transaction
            )

        self.same_message(
            self.with_handle(name, real),
            lambda: self.world.receive(self.world.seek(name, known, action, peek=False), unit),
        )

    @rule(spot=SPOTS, index=INDEXES, action=st.sampled_from(SeekAction))
    def peek_by_lookup(self, spot: str | int, index: int, action: SeekAction) -> None:
        name = self.queue_at(spot)
        known = self.some(name, index)

        def real(handle: OpenQueue) -> Coroutine[Any, Any, Message]:
            return self.manager.read_message_by_lookup_identifier(
                handle, known.lookup_id if known else 0, action, peek=True
            )

        self.same_message(
            self.with_handle(name, real, peek=True),
            lambda: self.world.seek(name, known, action, peek=True),
        )

    @rule(spot=SPOTS)
    def receive_begin(self, spot: str | int) -> None:
        name = self.queue_at(spot)

        def model() -> Held:
            held = self.world.first(name)
            held.locked = True
            return held

        handles: list[OpenQueue] = []

        async def real() -> Message:
            access = QueueAccess.RECEIVE_ADMIN if name == OUTGOING else QueueAccess.RECEIVE
            handle = self.manager.open_queue(name, access)
            try:
                message = await self.manager.dequeue_message_begin(handle, timeout=0)
            except LannerError:
                self.manager.close_queue(handle)
                raise
            handles.append(handle)
            return message

        begun = self.same_message(real(), model)
        if begun is not None:
            self.begun.append((begun[0], begun[0].box, begun[1], handles[0]))

    @rule(index=INDEXES, how=st.sampled_from(("take", "return", "close")))
    def receive_end(self, index: int, how: str) -> None:
        """End a receive in two phases: with the message, without, or by closing the handle."""
        if not self.begun:
            return
        held, box, message, handle = self.begun.pop(index % len(self.begun))

        async def real() -> None:
            try:
                if how != "close":
                    await self.manager.dequeue_message_end(handle, message, delete=how == "take")
            finally:
                self.manager.close_queue(handle)

        def model() -> None:
            if not box.deleted:
                self.world.end(held, delete=how == "take")
            elif how != "close":
                raise RefusedError(QueueDeletedError)

        self.both(real(), model)

    def same_message(
        self, real: Coroutine[Any, Any, Message], model: Callable[[], Held]
    ) -> tuple[Held, Message] | None:
        found: list[Held] = []
        message = self.both(real, lambda: found.append(model()))
        if message is None:
            return None
        held = found[0]
        assert (message.label, message.body) == (held.message.label, held.message.body)
        assert message.lookup_id == held.lookup_id
        return held, message

    # Moving.

    @rule(spot=SPOTS, index=INDEXES, goal=MOVE_TARGETS, slot=MAYBE_SLOTS)
    def move(self, spot: str | int, index: int, goal: str, slot: int | None) -> None:
        name = self.queue_at(spot)
        held = self.some(name, index)
        if held is None:
            return
        if goal in (";later", ";poison", ""):
            top = (held.box.parent or held.box).name
            fitting = TRANSACTIONAL if held.transactional else ORDINARY
            goal = (top if top in PROPERTIES else fitting[0]) + goal
        transaction, unit = self.unit(slot)

        def real(handle: OpenQueue) -> Coroutine[Any, Any, None]:
            return self.manager.move_message(handle, held.lookup_id, goal, transaction=transaction)

        self.both(self.with_handle(name, real), lambda: self.world.move(held, goal, unit))

    # Being interrupted: each of these happens wholly, or not at all, and no lock and no byte stays behind.

    @rule(name=st.sampled_from(ORDINARY), wish=WISHES, key=st.none() | st.sampled_from("efgh"), delay=DELAYS)
    def cancelled_send(self, name: str, wish: Wish, key: str | None, delay: float) -> None:
        message = self.message(wish)
        if key is not None and (key in self.keys or name not in self.world.boxes):
            return
        last_lsn = self.run(self.last_lsn())
        error = self.interrupt(self.manager.send(name, message, key=key), delay)
        if self.run(self.happened(HistoryEvent.SENT, last_lsn)):
            self.follow(lambda: self.world.send([name], [message], None), None)
            if key is not None:
                self.keys.add(key)
        elif not isinstance(error, asyncio.CancelledError):
            self.follow(lambda: self.world.send([name], [message], None), error)

    @rule(spot=SPOTS, slot=MAYBE_SLOTS, delay=DELAYS)
    def cancelled_receive(self, spot: str | int, slot: int | None, delay: float) -> None:
        name = self.queue_at(spot)
        transaction, unit = self.unit(slot)

        def real(handle: OpenQueue) -> Coroutine[Any, Any, Message]:
            return self.manager.dequeue_message(handle, timeout=0, transaction=transaction)

        last_lsn = self.run(self.last_lsn())
        error = self.interrupt(self.with_handle(name, real), delay)
        if not isinstance(error, asyncio.CancelledError):
            self.follow(lambda: self.world.receive(self.world.first(name), unit), error)
        elif self.run(self.happened(HistoryEvent.RETURNED, last_lsn)):
            # It had been received, which was acknowledged, before it came back.
            self.follow(lambda: self.world.acknowledge_receive(self.world.first(name)), None)

    @rule(slot=SLOTS, delay=DELAYS, commit=st.booleans())
    def cancelled_end(self, slot: int, delay: float, commit: bool) -> None:
        if slot not in self.units:
            return
        transaction, unit = self.units[slot]
        work = self.manager.transaction_commit if commit else self.manager.transaction_abort
        error = self.interrupt(work(transaction), delay)
        if transaction.state is TransactionState.ACTIVE:
            return
        del self.units[slot]
        if isinstance(error, asyncio.CancelledError):
            error = None
        model = self.world.commit if commit else self.world.abort
        if commit and transaction.state is TransactionState.ABORTED and error is None:
            error = QueueDeletedError("cancelled while it was aborted because of this")
        self.follow(lambda: model(unit), error)

    def interrupt(self, work: Coroutine[Any, Any, object], delay: float) -> BaseException | None:
        """Cancel something in its midst, and wait for what it may have left behind. Says how it ended."""

        async def run() -> BaseException | None:
            task = asyncio.ensure_future(work)
            await asyncio.sleep(delay)
            task.cancel()
            error = (await asyncio.gather(task, return_exceptions=True))[0]
            await self.manager._core.settle()
            await self.manager.store.commit(Changes())
            await self.settle(0)
            return error if isinstance(error, BaseException) else None

        return self.run(run())

    async def last_lsn(self) -> int:
        """The last LSN, when also what nobody waited for is written."""
        await self.manager.store.commit(Changes())
        return self.manager.history.last_lsn

    async def happened(self, event: HistoryEvent, after: int) -> bool:
        rows = await self.manager.history.rows(after + 1, self.manager.history.last_lsn)
        return any(row.event == event for row in rows)

    # Transactions, time and restarts.

    @rule(slot=SLOTS, commit=st.booleans())
    def end(self, slot: int, commit: bool) -> None:
        if slot not in self.units:
            return
        transaction, unit = self.units.pop(slot)
        if commit:
            self.both(self.manager.transaction_commit(transaction), lambda: self.world.commit(unit))
        else:
            self.both(self.manager.transaction_abort(transaction), lambda: self.world.abort(unit))

    @rule(seconds=st.sampled_from((0.5, 1.0, 2.0, 5.0)))
    def advance(self, seconds: float) -> None:
        # In small steps, so that what comes back late is looked at again at its own moment in both.
        for _ in range(round(seconds * 2)):
            self.world.now += 0.5
            self.world.tick()
            self.run(self.settle(0.5))

    @rule(really=st.sampled_from((False, False, True)))
    def restart(self, really: bool) -> None:
        if not really:
            return
        self.run(self.manager.close())
        self.manager = self.run(QueueManager.open(self.directory, clock=self.clock))
        self.units.clear()
        self.begun.clear()
        self.world.restart()
        self.world.tick()
        self.run(self.settle(0))

    # Left to themselves, the rules above seldom come to what takes several of them, such as poison.

    @rule(seed=st.integers(0, 1_000_000), steps=st.integers(1, 40))
    def bustle(self, seed: int, steps: int) -> None:
        rng = random.Random(seed)
        for _ in range(steps):
            self.do_something(rng)
            self.queues_are_the_same()
            self.totals_are_the_same()

    def do_something(self, rng: random.Random) -> None:
        """Something that will probably find something to do."""
        spot, index, slot = rng.randrange(10), rng.randrange(6), rng.randrange(2)
        maybe = rng.choice((slot, slot, None))
        action = rng.choice(list(SeekAction))
        goal = rng.choice((";later", ";poison", "", *ORDINARY, *TRANSACTIONAL))
        steps: list[tuple[float, Callable[[], None]]] = [
            (4, lambda: self.send(rng.choice((*ORDINARY, OUTGOING)), some_wish(rng))),
            (4, lambda: self.send_in_transaction(slot, rng.choice(TRANSACTIONAL), some_wish(rng))),
            (1, lambda: self.fan_out(*rng.sample((*ORDINARY, OUTGOING), 2), some_wish(rng))),
            (5, lambda: self.receive(spot, maybe, rng.choice(("any", "id", "correlation")), index)),
            (1, lambda: self.receive_many(spot, maybe, 3)),
            (2, lambda: self.receive_by_lookup(spot, index, action, maybe)),
            (2, lambda: self.receive_begin(spot)),
            (1, lambda: self.receive_end(index, rng.choice(("take", "return", "close")))),
            (2, lambda: self.peek_by_lookup(spot, index, action)),
            (1, lambda: self.peek(spot)),
            (5, lambda: self.move(spot, index, goal, maybe)),
            (4, lambda: self.end(slot, rng.random() < 0.5)),
            (1, lambda: self.cancelled_receive(spot, maybe, rng.choice((0.0, 0.0004)))),
            (1, lambda: self.cancelled_end(slot, rng.choice((0.0, 0.0004)), rng.random() < 0.5)),
            (2, lambda: self.advance(rng.choice((0.5, 1.0, 2.0)))),
            (0.5, lambda: self.purge(spot)),
            (1, lambda: self.restart(True)),
            (0.3, lambda: self.create_or_delete(rng.choice(list(PROPERTIES)), True)),
            (0.7, lambda: self.create_or_delete(rng.choice(list(PROPERTIES)), False)),
        ]
        rng.choices([step for _, step in steps], [weight for weight, _ in steps])[0]()

    # What always holds.

    @invariant()
    def queues_are_the_same(self) -> None:
        assert {info.path for info in self.manager.queues()} - {r".\private$\order_queue$"} == {
            name for name in self.world.boxes if name != OUTGOING
        }
        for box in self.world.everything():
            if box.held or box.parent is None or box.read_only:
                self.check_queue(box)

    @invariant()
    def totals_are_the_same(self) -> None:
        # What a transaction has sent to a queue that was deleted meanwhile counts until it ends.
        lost = sum(
            message.size for _, unit in self.units.values() for box, message, _ in unit.sent if box.deleted
        )
        total = self.manager.total_bytes - lost
        assert total == sum(box.bytes for box in self.world.everything())
        assert total == sum(queue.messages.bytes for queue in self.manager._core.queues)

    def check_queue(self, box: Box) -> None:
        info = self.manager.queue(box.name)
        messages = self.run(
            self.with_handle(box.name, lambda handle: self.manager.browse_messages(handle, 1000), peek=True)
        )
        box.adopt_order(messages)
        free = box.free
        self.check_contents(box.name, free, messages)
        counts = (info.messages, info.available_messages, info.bytes)
        expected = (len(box.held), len(free), box.bytes)
        assert counts == expected, f"{box.name} counts {counts}, not {expected}"
        assert set(info.subqueues) == {name for name, sub in box.subqueues.items() if sub.held}, box.name
        assert info.open_handles == sum(begun is box for _, begun, _, _ in self.begun)
        if box.outgoing:
            assert (info.state is OutgoingState.ON_HOLD) == box.paused

    def check_contents(self, name: str, free: list[Held], messages: list[Message]) -> None:
        seen = [
            (message.label, len(message.body), message.message_class, message.abort_count)
            for message in messages
        ]
        expected = [
            (held.message.label, len(held.message.body), held.message_class, held.aborts) for held in free
        ]
        assert seen == expected, f"{name} holds {seen}, not {expected}"
        for held, message in zip(free, messages, strict=True):
            assert held.lookup_id in (0, message.lookup_id), "the place of a message never changes"
            held.lookup_id, held.id = message.lookup_id, message.id


def format_name(name: str) -> str:
    return name if name.startswith("DIRECT=") else "DIRECT=OS:here" + name.removeprefix(".")


def _settings(examples: int) -> settings:
    return settings(
        max_examples=examples,
        stateful_step_count=40,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )


@pytest.mark.timeout(400)
def test_the_manager_does_what_the_model_does() -> None:
    run_state_machine_as_test(ManagerMachine, settings=_settings(60))


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_the_same_over_many_runs() -> None:
    run_state_machine_as_test(ManagerMachine, settings=_settings(2000))
