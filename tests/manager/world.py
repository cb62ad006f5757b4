"""A model of a queue manager, simple enough to be believed: lists of messages and plain arithmetic.

It knows what test_state_machine does to it, one thing at a time, and nothing of disks, threads or time-outs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from lanner.model.codes import MessageClass
from lanner.model.errors import (
    InvalidPropertyError,
    LannerError,
    MessageLockedError,
    MessageNotFoundError,
    QueueDeletedError,
    QueueExistsError,
    QueueNotFoundError,
    QuotaExceededError,
    ReceiveTimeoutError,
    TransactionUsageError,
    UnsupportedOperationError,
)
from lanner.model.message import INFINITE, Delivery, Message
from lanner.model.message_id import MessageId
from lanner.model.queue import QueueProperties, SeekAction

PROPERTIES = {
    r".\private$\plain": QueueProperties(),
    r".\private$\kept": QueueProperties(journaling=True, max_aborts=2),
    r".\private$\small": QueueProperties(quota=1, journaling=True, journal_quota=1),
    r".\private$\ordered": QueueProperties(transactional=True),
    r".\private$\strict": QueueProperties(transactional=True, journaling=True, max_aborts=1),
}
SYSTEM_JOURNAL = r".\system$;journal"
DEAD_LETTER = r".\system$;deadletter"
TRANSACTIONAL_DEAD_LETTER = r".\system$;deadxact"
SYSTEM = (SYSTEM_JOURNAL, DEAD_LETTER, TRANSACTIONAL_DEAD_LETTER)
ADMINISTRATION = r".\private$\plain"
"""Where acknowledgments go."""
OUTGOING = "DIRECT=OS:elsewhere\\private$\\far"

RETRY_DELAY = 1.0
"""A message that comes back after its time stays for so long, in seconds."""


class RefusedError(Exception):
    """The model says that an operation fails, and how."""

    def __init__(self, kind: type[LannerError]) -> None:
        super().__init__(kind.__name__)
        self.kind = kind


@dataclass(eq=False)
class Held:
    """One message."""

    message: Message
    transactional: bool
    place: tuple[int, int]
    box: Box
    sent: float
    expires: float | None
    due: float | None
    message_class: int = 0
    aborts: int = 0
    locked: bool = False
    purged: bool = False
    """Purged while it was locked."""
    gone: bool = False
    overdue: bool = False
    is_acknowledgment: bool = False
    lookup_id: int = 0
    id: MessageId | None = None

    @property
    def size(self) -> int:
        return self.message.size

    @property
    def is_visible(self) -> bool:
        """Whether it can be looked at while it is locked."""
        return self.message.allow_peek_when_locked and not self.purged


@dataclass(eq=False)
class Box:
    """One queue."""

    name: str
    properties: QueueProperties
    read_only: bool = False
    outgoing: bool = False
    parent: Box | None = None
    journal: Box | None = None
    subqueues: dict[str, Box] = field(default_factory=dict)
    held: list[Held] = field(default_factory=list)
    reserved: int = 0
    """Bytes that transactions are going to send here."""
    deleted: bool = False
    stored: bool = True
    paused: bool = False

    @property
    def free(self) -> list[Held]:
        return self.seen(peek=False)

    @property
    def bytes(self) -> int:
        return self.reserved + sum(held.size for held in self.held)

    def seen(self, *, peek: bool) -> list[Held]:
        """What a read can find: for a peek, also what is locked and may be looked at."""
        found = [held for held in self.held if not held.locked or (peek and held.is_visible)]
        return sorted(found, key=lambda held: held.place)

    def has_room(self, size: int) -> bool:
        is_journal = self.read_only and self.parent is not None
        quota = self.properties.journal_quota if is_journal else self.properties.quota
        top = self if is_journal else self.parent or self
        used = top.bytes + sum(sub.bytes for sub in top.subqueues.values())
        return quota == INFINITE or used + size <= quota * 1024

    def adopt_order(self, messages: list[Message]) -> None:
        """Acknowledgments of messages that expired in one moment may come in any order: take the real one."""
        fresh = [held for held in self.free if held.is_acknowledgment and not held.lookup_id]
        places = iter([held.place for held in fresh])
        for message in messages:
            # Only an acknowledgment names a response queue here.
            for held in fresh if message.response_queue else ():
                if (held.message.label, held.message_class) == (message.label, message.message_class):
                    held.place = next(places)
                    fresh.remove(held)
                    break

    def family(self) -> list[Box]:
        return [self, *self.subqueues.values(), *([self.journal] if self.journal else [])]


@dataclass(eq=False)
class Unit:
    """One transaction."""

    sent: list[tuple[Box, Message, float]] = field(default_factory=list)
    received: list[tuple[Held, Box]] = field(default_factory=list)
    """The message, and the queue it was in."""
    moved: list[tuple[Held, Box, Box, str]] = field(default_factory=list)
    """The message, the queue it was in, the one it goes to, and the subqueue of that, if any."""

    def queues(self) -> Iterator[Box]:
        yield from (box for box, _, _ in self.sent)
        yield from (box for _, box in self.received)
        for _, source, top, _ in self.moved:
            yield from (source, top)


def any_message(_: Held) -> bool:
    return True


class World:
    """Every queue, and what happens to them."""

    def __init__(self, now: float) -> None:
        self.now = now
        self.boxes = {name: Box(name, QueueProperties(), read_only=True) for name in SYSTEM}
        self._numbers = itertools.count()

    def everything(self) -> Iterator[Box]:
        for box in self.boxes.values():
            yield from box.family()

    # Queues.

    def box(self, name: str) -> Box:
        """Find a queue. An empty subqueue is made up: it is kept when something is put in."""
        if name in self.boxes:
            return self.boxes[name]
        path, _, suffix = name.partition(";")
        if path not in self.boxes:
            raise RefusedError(QueueNotFoundError)
        parent = self.boxes[path]
        if suffix == "journal":
            assert parent.journal is not None
            return parent.journal
        return parent.subqueues.get(suffix) or Box(name, parent.properties, parent=parent)

    def create(self, name: str) -> None:
        if name in self.boxes:
            raise RefusedError(QueueExistsError)
        box = self.boxes[name] = Box(name, PROPERTIES[name])
        box.journal = Box(f"{name};journal", box.properties, read_only=True, parent=box)

    def delete(self, name: str) -> None:
        box = self.box(name)
        for member in box.family():
            member.deleted = True
        del self.boxes[name]
        for member in box.family():
            for held in sorted(member.held, key=lambda held: held.place):
                self.drop(held, MessageClass.NACK_QUEUE_DELETED)

    def purge(self, name: str) -> int:
        box = self.boxes.get(name)
        if box is None:
            box = self.box(name)
            if box.parent is not None and not box.read_only and not box.held:
                raise RefusedError(QueueNotFoundError)
        for held in box.held:
            held.purged = held.purged or held.locked
        free = box.free
        for held in free:
            self.drop(held, MessageClass.NACK_QUEUE_PURGED)
        return len(free)

    def pause(self, paused: bool) -> None:
        box = self.box(OUTGOING)
        box.paused = paused
        box.stored = True

    def outgoing(self) -> Box:
        if OUTGOING not in self.boxes:
            self.boxes[OUTGOING] = Box(OUTGOING, QueueProperties(), outgoing=True, stored=False)
        return self.boxes[OUTGOING]

    # In.

    def send(self, names: list[str], messages: list[Message], unit: Unit | None) -> None:
        boxes = [self.outgoing() if name == OUTGOING else self.box(name) for name in names]
        size = sum(message.size for message in messages)
        for box in boxes:
            if not box.outgoing and box.properties.transactional != (unit is not None):
                raise RefusedError(TransactionUsageError)
            if not box.has_room(size):
                raise RefusedError(QuotaExceededError)
        everything = [(box, message, self.now) for box in boxes for message in messages]
        if unit is None:
            self.arrive(everything, transactional=False)
            return
        unit.sent.extend(everything)
        for box, message, _ in everything:
            box.reserved += message.size

    def arrive(self, arrivals: list[tuple[Box, Message, float]], *, transactional: bool) -> None:
        """First everything gets its place; then what the senders asked for on arrival gets its own."""
        for held in [self.place(*arrival, transactional=transactional) for arrival in arrivals]:
            if held.box.outgoing:
                continue
            if held.message.positive_journaling:
                self.place(self.boxes[SYSTEM_JOURNAL], held.message, held.sent, transactional=transactional)
            self.acknowledge(held, MessageClass.ACK_REACH_QUEUE)

    def place(self, box: Box, message: Message, sent: float, *, transactional: bool) -> Held:
        time = message.time_to_be_received
        if box.outgoing:
            time = min(time, message.time_to_reach_queue)
        expires = None if time == INFINITE or box.read_only else sent + time
        priority = 0 if transactional else message.priority
        place = (7 - priority, next(self._numbers))
        held = Held(message, transactional, place, box, sent, expires, expires)
        box.held.append(held)
        box.stored = True
        return held

    def acknowledge(self, held: Held, reason: MessageClass) -> None:
        message = held.message
        box = self.boxes.get(ADMINISTRATION)
        if not message.administration_queue or box is None:
            return
        is_positive = reason in (MessageClass.ACK_REACH_QUEUE, MessageClass.ACK_RECEIVE)
        acknowledgment = Message(
            label=message.label,
            body=b"" if is_positive else message.body,
            priority=0 if held.transactional else message.priority,
            delivery=Delivery.RECOVERABLE if held.transactional else message.delivery,
        )
        told = self.place(box, acknowledgment, self.now, transactional=False)
        told.message_class = reason.value
        told.is_acknowledgment = True

    def acknowledge_receive(self, held: Held) -> None:
        if not self.has_ended(held) and not held.box.outgoing:
            self.acknowledge(held, MessageClass.ACK_RECEIVE)

    # Reading.

    def first(self, name: str, which: Callable[[Held], bool] = any_message, *, peek: bool = False) -> Held:
        """The first message that will do."""
        found = [held for held in self.box(name).seen(peek=peek) if which(held)]
        if not found:
            raise RefusedError(ReceiveTimeoutError)
        return found[0]

    def seek(self, name: str, known: Held | None, action: SeekAction, *, peek: bool) -> Held:
        """The message at, before or behind the place of one that is known."""
        seen = self.box(name).seen(peek=peek)
        place = known.place if known else (0, -1)
        match action:
            case SeekAction.CURRENT:
                if known is not None and known not in seen:
                    raise RefusedError(MessageLockedError)
                found = [held for held in seen if held is known]
            case SeekAction.FIRST:
                found = seen[:1]
            case SeekAction.LAST:
                found = seen[-1:]
            case SeekAction.NEXT:
                found = [held for held in seen if held.place > place][:1]
            case SeekAction.PREVIOUS:
                found = [held for held in seen if held.place < place][-1:]
        if not found:
            raise RefusedError(MessageNotFoundError)
        return found[0]

    def receive(self, held: Held, unit: Unit | None) -> Held:
        if unit is None:
            self.take(held)
        else:
            held.locked = True
            unit.received.append((held, held.box))
        return held

    def end(self, held: Held, *, delete: bool) -> None:
        """The second phase of a receive."""
        if delete and not held.purged:
            self.take(held)
        else:
            self.release(held)

    # Out.

    def take(self, held: Held) -> None:
        box = held.box
        self.acknowledge_receive(held)
        journal = (box.parent or box).journal
        if not box.read_only and box.properties.journaling and journal and journal.has_room(held.size):
            self.put(held, journal, expires=None)
        else:
            self.remove(held)

    def drop(self, held: Held, reason: MessageClass) -> None:
        if self.has_ended(held):
            self.remove(held)
            return
        self.acknowledge(held, reason)
        if not held.message.negative_journaling:
            self.remove(held)
            return
        wanted = held.message.dead_letter_queue
        own = self.boxes.get(wanted)
        is_fit = own is not None and (own.properties.transactional or not held.transactional)
        if own is held.box or not is_fit:
            wanted = TRANSACTIONAL_DEAD_LETTER if held.transactional else DEAD_LETTER
        held.message_class = reason.value
        self.put(held, self.boxes[wanted], expires=None)

    def has_ended(self, held: Held) -> bool:
        """Whether all has been told and kept."""
        top = held.box.parent or held.box
        is_dead = held.message_class >= MessageClass.NACK_BAD_DESTINATION_QUEUE
        return held.box.read_only or (is_dead and held.message.dead_letter_queue == top.name)

    def move(self, held: Held, name: str, unit: Unit | None) -> None:
        target = self.box(name)
        if target.read_only:
            raise RefusedError(UnsupportedOperationError)
        if held.gone:
            raise RefusedError(MessageNotFoundError)
        if held.locked:
            raise RefusedError(MessageLockedError)
        if target is held.box:
            raise RefusedError(InvalidPropertyError)
        if held.transactional != target.properties.transactional:
            raise RefusedError(TransactionUsageError)
        top = target.parent or target
        if top is not (held.box.parent or held.box) and not target.has_room(held.size):
            raise RefusedError(QuotaExceededError)
        subqueue = name.partition(";")[2]
        if unit is None:
            self.put(held, self.inner(top, subqueue), expires=held.expires)
        else:
            held.locked = True
            unit.moved.append((held, held.box, top, subqueue))

    def inner(self, top: Box, subqueue: str) -> Box:
        """A queue, or a subqueue of it that lasts."""
        if not subqueue:
            return top
        name = f"{top.name};{subqueue}"
        return top.subqueues.setdefault(subqueue, Box(name, top.properties, parent=top))

    def put(self, held: Held, target: Box, *, expires: float | None) -> None:
        held.box.held.remove(held)
        held.box = target
        target.held.append(held)
        held.expires = expires
        self.free(held)
        if expires is None:
            held.due = None
            held.overdue = False

    def remove(self, held: Held) -> None:
        held.box.held.remove(held)
        held.gone = True

    def free(self, held: Held) -> None:
        held.locked = held.purged = False
        if held.overdue:
            held.due = self.now + RETRY_DELAY

    # Transactions.

    def commit(self, unit: Unit) -> None:
        if any((box.parent or box).deleted for box in unit.queues()):
            self.abort(unit)
            raise RefusedError(QueueDeletedError)
        order = list(dict.fromkeys(box for box, _, _ in unit.sent))
        for box, message, _ in unit.sent:
            box.reserved -= message.size
        arrivals = sorted(unit.sent, key=lambda arrival: order.index(arrival[0]))
        self.arrive(arrivals, transactional=True)
        for held, _ in unit.received:
            self.take(held)
        for held, _, top, subqueue in unit.moved:
            self.put(held, self.inner(top, subqueue), expires=held.expires)

    def abort(self, unit: Unit) -> None:
        for box, message, _ in unit.sent:
            box.reserved -= message.size
        for held, source, _, _ in unit.moved:
            if not source.deleted:
                self.release(held)
        for held, source in unit.received:
            if not source.deleted:
                self.give_back(held)

    def release(self, held: Held) -> None:
        """A locked message comes back, unless it was purged meanwhile."""
        if held.purged:
            self.drop(held, MessageClass.NACK_QUEUE_PURGED)
        else:
            self.free(held)

    def give_back(self, held: Held) -> None:
        if held.purged:
            self.drop(held, MessageClass.NACK_QUEUE_PURGED)
            return
        held.aborts += 1
        box = held.box
        limit = box.properties.max_aborts
        if limit and held.aborts >= limit and box.parent is None and not box.read_only:
            self.put(held, self.inner(box, "poison"), expires=held.expires)
        else:
            self.free(held)

    # Time.

    def tick(self) -> None:
        """Let everything go whose time has run out."""
        for box in list(self.everything()):
            timeout = (
                MessageClass.NACK_REACH_QUEUE_TIMEOUT if box.outgoing else MessageClass.NACK_RECEIVE_TIMEOUT
            )
            for held in list(box.held):
                if held.due is not None and held.due <= self.now:
                    held.due = None
                    held.overdue = True
                    if not held.locked:
                        self.drop(held, timeout)

    def restart(self) -> None:
        self.boxes = {name: box for name, box in self.boxes.items() if box.stored}
        for box in self.everything():
            box.reserved = 0
            box.held = [held for held in box.held if held.transactional or held.message.is_recoverable]
            for held in box.held:
                held.locked = held.overdue = False
                held.due = held.expires
        for held in [held for box in self.everything() for held in box.held if held.purged]:
            held.purged = False
            self.drop(held, MessageClass.NACK_QUEUE_PURGED)
