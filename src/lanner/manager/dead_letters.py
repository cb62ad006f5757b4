"""Looking at dead letters, and sending them again without ever losing one."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import uuid4

import msgspec
from msgspec.structs import replace

from lanner.manager.core import Core
from lanner.manager.delivery import Delivery
from lanner.manager.keeping import DEAD_LETTER, TRANSACTIONAL_DEAD_LETTER
from lanner.manager.naming import AnyName
from lanner.manager.opening import Opening
from lanner.manager.outcomes import Outcome
from lanner.manager.positions import Position, PositionState
from lanner.manager.queues import OutgoingQueue, Queue
from lanner.manager.sending import Accepted, Sending
from lanner.model.codes import MessageClass, describe_class
from lanner.model.errors import InvalidPropertyError, MessageLockedError, MessageNotFoundError
from lanner.model.message import DEFAULT_TIME_TO_REACH_QUEUE, INFINITE, Message
from lanner.model.message_id import MessageId
from lanner.model.queue import QueueAccess
from lanner.store import Changes

__all__ = ["DeadLetter", "DeadLetterFilter", "DeadLetters"]

_TIMEOUTS = (MessageClass.NACK_RECEIVE_TIMEOUT, MessageClass.NACK_REACH_QUEUE_TIMEOUT)

READ_CHUNK = 1000
"""Dead letters that are read together; only their attributes are."""


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """A message that was not delivered or not received, and why."""

    queue: str
    """The dead-letter queue that it is in."""
    message: Message
    """Without its body."""

    @property
    def reason(self) -> str:
        """Why, in words."""
        return describe_class(self.message.message_class)


class DeadLetterFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which dead letters are meant; what is not said does not matter."""

    message_class: int | None = None
    destination: str | None = None
    """Where the message was to go: a name of the queue in any of its forms."""
    older_than: float | None = None
    """Seconds since it was sent."""
    queue: str | None = None
    """A dead-letter queue of an application, in the place of the two of the system."""


class DeadLetters:
    """The dead letters of one manager."""

    def __init__(self, core: Core, delivery: Delivery, sending: Sending, opening: Opening) -> None:
        self._core = core
        self._delivery = delivery
        self._sending = sending
        self._opening = opening

    async def find(self, wanted: DeadLetterFilter, *, limit: int) -> list[DeadLetter]:
        """List dead letters, oldest first within each queue."""
        found: list[DeadLetter] = []
        for queue in self._queues(wanted.queue):
            after = -1
            while len(found) < limit:
                positions = queue.messages.available(READ_CHUNK, after)
                if not positions:
                    break
                after = positions[-1].lookup_id
                some = [position for position in positions if self._may_match(position, wanted)]
                messages = await self._core.load_all(some, bodies=False) if some else []
                found.extend(
                    DeadLetter(queue=queue.name, message=message)
                    for message in messages
                    if self._matches(message, wanted)
                )
        return found[:limit]

    async def get(self, lookup_id: int) -> DeadLetter:
        """Look at one, with its body."""
        position = self._position(lookup_id)
        return DeadLetter(queue=position.queue.name, message=await self._core.load(position))

    async def replay(self, lookup_id: int, destination: AnyName | None = None) -> Outcome:
        """Send a dead letter again, as a new message, to where it was to go or to another queue.

        The new message and the removal of the dead letter are one commit: if anything fails, the
        dead letter is where it was.
        """
        position = self._position(lookup_id)
        if position.state is not PositionState.AVAILABLE:
            raise MessageLockedError(f"the dead letter {lookup_id} is being received by somebody")
        position.queue.messages.lock(position)
        changes = Changes()
        accepted: list[Accepted] = []
        try:
            message = await self._core.load(position)
            target = destination or message.destination_queue
            if not target:
                raise InvalidPropertyError(
                    "the dead letter does not say where it was to go", hint="name a queue"
                )
            accepted = self._accept(changes, target, message)
            self._sending.put(changes, accepted, reason=f"replay of {message.id}")
            self._delivery.take(changes, [(position, message)])
        except BaseException:
            self._sending.discard(accepted)
            self._delivery.release(position)
            raise
        await self._core.finish(changes)
        sent = accepted[0].messages[0]
        assert isinstance(sent.id, MessageId)
        return Outcome(message_ids=(sent.id,), lookup_ids=(sent.lookup_id,))

    def _accept(self, changes: Changes, target: AnyName, message: Message) -> list[Accepted]:
        again = replace(message, message_class=MessageClass.NORMAL.value, transaction=None, abort_count=0)
        if message.message_class in _TIMEOUTS:
            # Its times ran out once; whoever sends it again wants it to arrive.
            again = replace(
                again, time_to_be_received=INFINITE, time_to_reach_queue=DEFAULT_TIME_TO_REACH_QUEUE
            )
        with self._opening.opened(target, QueueAccess.SEND, None) as handle:
            queue = handle.queue
            if isinstance(queue, OutgoingQueue):
                is_transactional = message.is_transactional
            else:
                is_transactional = queue.properties.transactional
            return self._sending.accept(changes, handle, [again], str(uuid4()) if is_transactional else None)

    def _queues(self, name: str | None) -> Iterable[Queue]:
        if name is not None:
            return (self._core.queues.get(name),)
        return (self._core.queues.get(DEAD_LETTER), self._core.queues.get(TRANSACTIONAL_DEAD_LETTER))

    def _position(self, lookup_id: int) -> Position:
        for queue in (*self._queues(None), *self._core.queues.local()):
            position = queue.messages.get(lookup_id)
            if position is not None and position.message_class >= MessageClass.NACK_BAD_DESTINATION_QUEUE:
                return position
        raise MessageNotFoundError(f"there is no dead letter {lookup_id}", hint="list the dead letters")

    def _may_match(self, position: Position, wanted: DeadLetterFilter) -> bool:
        is_dead = position.message_class >= MessageClass.NACK_BAD_DESTINATION_QUEUE
        return is_dead and wanted.message_class in (None, position.message_class)

    def _matches(self, message: Message, wanted: DeadLetterFilter) -> bool:
        if wanted.older_than is not None and self._core.clock.time() - message.sent_time < wanted.older_than:
            return False
        return wanted.destination is None or self._same_queue(message.destination_queue, wanted.destination)

    def _same_queue(self, one: str, other: str) -> bool:
        table = self._core.queues
        first, second = table.parse(one), table.parse(other)
        if first.key == second.key:
            return True
        found = table.find(first)
        return found is not None and found is table.find(second)
