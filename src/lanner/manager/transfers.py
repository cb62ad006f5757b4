"""What protocols do with messages: take them in, pass them on, send them, give them up.

The events of MS-MQDMPR that only protocols raise. Methods that take a set of changes add to it and leave
the rest to :meth:`Transfers.finish`, so that a protocol's own state becomes durable together with the
messages that it is about.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator, Sequence
from dataclasses import replace

from lanner.manager.clock import Clock
from lanner.manager.core import Core
from lanner.manager.delivery import Delivery
from lanner.manager.events import QueueDeleted
from lanner.manager.naming import AnyName
from lanner.manager.numbering import Numbering
from lanner.manager.opening import check_access
from lanner.manager.positions import TRANSACTIONAL, Position, PositionState
from lanner.manager.queues import OutgoingQueue, Queue
from lanner.manager.sending import Sending
from lanner.model import transfer
from lanner.model.codes import MessageClass
from lanner.model.format_name import DirectName, FormatName
from lanner.model.history import HistoryEvent
from lanner.model.message import Message
from lanner.model.queue import OutgoingState, QueueAccess
from lanner.model.security import Token
from lanner.store import Changes

__all__ = ["Transfers"]

PLACES_CHUNK = 200
"""Messages read at once when a place in a stream is looked for."""


class Transfers:
    """The manager as protocols see it."""

    def __init__(self, core: Core, delivery: Delivery, sending: Sending, numbering: Numbering) -> None:
        self._core = core
        self._delivery = delivery
        self._sending = sending
        self._numbering = numbering

    @property
    def clock(self) -> Clock:
        """The manager's clock."""
        return self._core.clock

    async def state(self, scope: str) -> dict[str, bytes]:
        """What a protocol has put under its scope."""
        return await self._core.store.state(scope)

    async def finish(self, changes: Changes) -> None:
        """Make changes true: they are durable when this returns, or nothing of them was kept."""
        self._core.check_running()
        await self._core.finish(changes)

    def submit(self, changes: Changes) -> None:
        """Make changes durable some time soon: for what nobody waits for."""
        if self._core.is_running:
            self._core.store.submit(changes)

    def abandon(self, changes: Changes) -> None:
        """Let changes go that were prepared and will not be made."""
        for callback in changes.on_failed:
            callback()

    def spawn(self, work: Coroutine[None, None, None]) -> None:
        """Do something beside the caller; the manager's end waits for it, and a failure is logged."""
        self._core.spawn(work)

    def record(
        self,
        changes: Changes,
        event: HistoryEvent,
        queue: str,
        message: Message,
        *,
        reason: str | None = None,
        peer: str | None = None,
        message_class: int | None = None,
    ) -> None:
        """Write something that happened to a message into the history."""
        self._delivery.record(
            changes, event, queue, message, reason=reason, peer=peer, message_class=message_class
        )

    # Names.

    def listens_at(self, ports: Iterable[int], names: Iterable[str]) -> None:
        """Know which URLs mean this manager."""
        self._core.queues.http_ports.update(ports)
        for name in names:
            self._core.queues.add_local_name(name)

    def is_local_host(self, host: str) -> bool:
        """Whether a host name or address means this machine."""
        return self._core.queues.is_local(host)

    def local_queue(self, name: DirectName) -> Queue | None:
        """Find a queue of this machine by its URL, whatever port the sender sees us at."""
        return self._core.queues.find(replace(name, host=self._core.queues.machine_name, port=None))

    def queue_by_id(self, number: int) -> Queue | None:
        """Find a queue by the store's number."""
        return self._core.queues.by_id().get(number)

    # Looking, without opening or making anything.

    def find(self, name: AnyName) -> Queue | None:
        """Find a queue of this manager, local or outgoing."""
        parsed = self._core.queues.parse(name)
        return self._core.queues.find(parsed) or self._core.public_here(parsed)

    def every_queue(self) -> Iterator[Queue]:
        """All queues, journals, subqueues and outgoing ones too."""
        return iter(self._core.queues)

    def format_name(self, queue: Queue) -> str:
        """The format name by which a queue is reached."""
        return self._core.queues.format_name(queue)

    # Coming in.

    def check_access(self, queue: Queue, token: Token) -> None:
        """Refuse a sender that may not send to a queue."""
        check_access(queue, QueueAccess.SEND, token)

    def accept(self, changes: Changes, queue: Queue, message: Message, peer: str) -> None:
        """Enqueue Message (3.1.7.1.9): a message that a peer has given its identity."""
        self._sending.deliver(changes, queue, message, peer)

    def forward(self, changes: Changes, name: FormatName, message: Message, peer: str) -> None:
        """Take a message in that goes on to another machine."""
        self.accept(changes, self._core.target(name), message, peer)

    def tell(self, changes: Changes, name: str, report: Message) -> None:
        """Send a report of the manager's own, such as a receipt."""
        self._delivery.acknowledging.tell(changes, name, report)

    def report_expired(self, changes: Changes, queue: Queue, message: Message) -> None:
        """Tell the sender of a message that came too late, if it wants to know."""
        self._delivery.acknowledging.late(changes, queue, message)

    # Going out.

    def outgoing(self) -> list[OutgoingQueue]:
        """The queues that lead to other machines."""
        return self._core.queues.outgoing()

    def take(self, queue: OutgoingQueue, limit: int) -> list[Position]:
        """Lock the next messages, in the order of the queue. They stay in it until they are given up."""
        positions = queue.messages.available(limit)
        for position in positions:
            queue.messages.lock(position)
        return positions

    def release(self, positions: Iterable[Position]) -> None:
        """Give messages their places back: they are sent again, unless they were purged or have expired."""
        for position in positions:
            if position.state is not PositionState.DELETED:
                self._delivery.release(position)

    async def load(self, positions: Sequence[Position], *, bodies: bool = True) -> list[Message]:
        """Read messages."""
        return await self._core.load_all(positions, bodies=bodies)

    def place_of(self, queue: OutgoingQueue, message: Message) -> transfer.Sequence:
        """Where a message of this machine stands in the stream of its outgoing queue."""
        return self._numbering.place_of(queue, message)

    def is_own(self, message: Message) -> bool:
        """Whether a message was sent from this machine, and is not only passing through."""
        return message.source_machine == self._core.machine_id

    def hand_over(
        self,
        changes: Changes,
        position: Position,
        message: Message,
        peer: str,
        *,
        reason: MessageClass = MessageClass.ACK_REACH_QUEUE,
        event: HistoryEvent = HistoryEvent.TRANSMITTED,
    ) -> None:
        """A peer has taken over a message that was taken."""
        self._delivery.hand_over(changes, position, message, reason, peer, event)

    def give_up(
        self,
        changes: Changes,
        position: Position,
        message: Message,
        reason: MessageClass,
        *,
        event: HistoryEvent = HistoryEvent.REJECTED,
        detail: str | None = None,
        peer: str | None = None,
        tell: bool = True,
    ) -> None:
        """A message that was taken will not be delivered: it is dead-lettered or dropped.

        ``tell`` is whether its sender does not know that yet.
        """
        self._delivery.drop(changes, position, message, event, reason, detail=detail, peer=peer, tell=tell)

    def keep_until_received(self, changes: Changes, position: Position) -> None:
        """A message has arrived, and stays until it is known what became of it: it expires no more."""
        self._delivery.stop_expiry(changes, position)

    async def places(self, queue: OutgoingQueue) -> AsyncIterator[tuple[Position, Message]]:
        """The messages of a queue's own stream, in order, without their bodies."""
        positions = [position for position in queue.messages if position.flags & TRANSACTIONAL]
        for start in range(0, len(positions), PLACES_CHUNK):
            chunk = positions[start : start + PLACES_CHUNK]
            chunk = [position for position in chunk if position.state is not PositionState.DELETED]
            for position, message in zip(chunk, await self.load(chunk, bodies=False), strict=True):
                if self.is_own(message):
                    yield position, message

    async def reset_stream(self, queue: OutgoingQueue, first: int) -> None:
        """Let what waits in a queue, from a number in its stream on, be the beginning of a new stream."""
        changes = Changes()
        self._numbering.reset(changes, queue, first)
        await self.finish(changes)

    def forget_idle(self, queue: OutgoingQueue, changes: Changes) -> bool:
        """Let an outgoing queue go that nothing is in and nobody uses; says whether it went.

        The next message to its destination makes a new one.
        """
        is_used = queue.messages or queue.messages.bytes or queue.handles or queue.stream.pending
        if is_used or queue.is_on_hold or queue.is_deleted or not self._core.is_running:
            return False
        queue.is_deleted = True
        self._core.queues.remove(queue)
        if queue.is_stored:
            changes.queue_deletes.append((queue.id,))
        self._core.store.submit(changes)
        self._core.events.publish(QueueDeleted(queue))
        return True

    def set_state(self, queue: OutgoingQueue, state: OutgoingState) -> None:
        """Tell how a queue stands with its destination. A paused one stays paused."""
        if not queue.is_on_hold:
            queue.state = state
