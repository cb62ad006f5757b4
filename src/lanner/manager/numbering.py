"""Numbering the transactional messages that leave this machine (MC-MQSRM 3.1.1.2, 3.1.7.2.3).

All transactional messages of an outgoing queue form a stream, and get their numbers when they are queued:
1, 2, 3, each with the number before it. They keep them over every attempt to send them, so that the other
side knows a copy when it sees one (the text numbers each attempt anew). A stream ends when nothing of it is
left in the queue; the next message begins a new one, whose identifier is greater than all before.

Numbers are reserved in blocks, as a number must not come twice: the last messages of a stream may be gone
when an earlier one is still waited for. A restart skips what is left of a block: a stream may have gaps.
"""

from __future__ import annotations

from collections.abc import Sequence as Messages
from functools import partial

import msgspec
from msgspec.structs import replace

from lanner.manager.core import Core
from lanner.manager.positions import TRANSACTIONAL
from lanner.manager.queues import OutgoingQueue, OutgoingStream
from lanner.model.message import Message, TransactionMarks
from lanner.model.transfer import Sequence
from lanner.store import Changes

__all__ = ["Numbering"]

SCOPE = "streams"
LAST_KEY = "last"

RESERVED = 1_000
"""Numbers of a stream that are reserved in the store at once."""

_HALF = 32
_CHUNK = 200
"""Messages read at once when the last one that was numbered here is looked for."""


class Numbering:
    """Gives out streams and the numbers in them."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._last_stream = 0
        self._durable_stream = 0
        self._reserved: dict[int, tuple[int, int]] = {}
        """By queue: the stream, and the last number that is reserved in it."""
        self._durable: dict[int, tuple[int, int]] = {}
        """The same, as far as it is known to be durable."""

    async def recover(self) -> None:
        """Go on where the numbers ended."""
        stored = await self._core.store.state(SCOPE)
        self._last_stream = self._durable_stream = int(stored.get(LAST_KEY, b"0"))
        for queue in self._core.queues.outgoing():
            if queue.messages.transactional_count:
                resets = stored.get(_reset_key(queue), b"{}")
                queue.stream.resets = msgspec.json.decode(resets, type=dict[int, tuple[int, int]])
                await self._recover_queue(queue)
                self._skip_reserved(queue, stored.get(_sequence_key(queue), b""))

    def number(self, changes: Changes, queue: OutgoingQueue, messages: Messages[Message]) -> list[Message]:
        """Give messages of this machine that go into an outgoing queue their places in its stream."""
        stream = queue.stream
        if not stream.identifier or not (stream.pending or queue.messages.transactional_count):
            self._begin(stream)
            if stream.resets:
                stream.resets = {}
                changes.state_deletes.append((SCOPE, _reset_key(queue)))
        first = stream.sequence + 1
        stream.sequence += len(messages)
        stream.pending += len(messages)
        self._keep_last(changes)
        self._reserve(changes, queue)
        settle = partial(_settle, stream, len(messages))
        changes.on_applied.append(settle)
        changes.on_failed.append(settle)
        return [
            replace(message, transaction=_marks(message, stream.identifier, number))
            for number, message in enumerate(messages, first)
        ]

    def place_of(self, queue: OutgoingQueue, message: Message) -> Sequence:
        """Where a message stands in the stream now: a reset may have moved it since it was queued."""
        marks = message.transaction
        assert marks is not None
        moved = queue.stream.resets.get(marks.stream)
        if moved is None or message.source_machine != self._core.machine_id:
            return Sequence(marks.stream, marks.sequence, marks.previous)
        stream, base = moved
        return Sequence(stream, marks.sequence - base, max(0, marks.previous - base))

    def reset(self, changes: Changes, queue: OutgoingQueue, first: int) -> int:
        """Let what is left of a stream, from its number ``first`` on, be the beginning of a new one.

        The messages keep the numbers that they were stored with; what the new stream takes off them is kept.
        """
        stream = queue.stream
        old, base, last, resets = stream.identifier, first - 1, stream.sequence, stream.resets
        self._begin(stream)
        stream.sequence = last - base
        self._keep_last(changes)
        self._reserve(changes, queue)
        moved = {key: (stream.identifier, off + base) for key, (_, off) in resets.items()}
        stream.resets = {**moved, old: (stream.identifier, base)}
        changes.state.append((SCOPE, _reset_key(queue), msgspec.json.encode(stream.resets)))
        new = stream.identifier

        def undo() -> None:
            # Unless messages have been numbered in it meanwhile.
            if stream.identifier == new and stream.sequence == last - base:
                stream.identifier, stream.sequence, stream.resets = old, last, resets
                self._reserved.pop(queue.id, None)

        changes.on_failed.append(undo)
        return new

    def _begin(self, stream: OutgoingStream) -> None:
        """Take an identifier: the time in the high half, an ordinal in the low one (MC-MQSRM 2.2.5.3.1)."""
        ordinal = ((self._last_stream & 0xFFFFFFFF) + 1) & 0xFFFFFFFF
        by_clock = (int(self._core.clock.time()) & 0xFFFFFFFF) << _HALF | ordinal
        # Receivers take a smaller identifier for an old one: a clock that was set back must not make one.
        self._last_stream = max(by_clock, self._last_stream + 1)
        stream.identifier = self._last_stream
        stream.sequence = 0

    def _keep_last(self, changes: Changes) -> None:
        # Until it is known to be durable all changes carry it: any of them may be the first kept.
        if self._last_stream != self._durable_stream:
            changes.state.append((SCOPE, LAST_KEY, str(self._last_stream).encode()))
            changes.on_applied.append(partial(self._rely_on, self._last_stream))

    def _rely_on(self, stream: int) -> None:
        self._durable_stream = max(self._durable_stream, stream)

    def _reserve(self, changes: Changes, queue: OutgoingQueue) -> None:
        stream = queue.stream
        place = stream.identifier, stream.sequence
        if place > self._reserved.get(queue.id, (0, 0)):
            self._reserved[queue.id] = stream.identifier, stream.sequence + RESERVED
        # As with the identifier: all changes carry it until it is known to be durable.
        if place > self._durable.get(queue.id, (0, 0)):
            reserved = self._reserved[queue.id]
            changes.state.append((SCOPE, _sequence_key(queue), msgspec.json.encode(reserved)))
            changes.on_applied.append(partial(self._rely_on_numbers, queue.id, reserved))

    def _rely_on_numbers(self, queue_id: int, reserved: tuple[int, int]) -> None:
        self._durable[queue_id] = max(self._durable.get(queue_id, (0, 0)), reserved)

    def _skip_reserved(self, queue: OutgoingQueue, stored: bytes) -> None:
        stream = queue.stream
        identifier, last = msgspec.json.decode(stored, type=tuple[int, int]) if stored else (0, 0)
        if identifier and identifier == stream.identifier:
            stream.sequence = max(stream.sequence, last)

    async def _recover_queue(self, queue: OutgoingQueue) -> None:
        positions = [position for position in queue.messages if position.flags & TRANSACTIONAL]
        for end in range(len(positions), 0, -_CHUNK):
            chunk = positions[max(0, end - _CHUNK) : end]
            for message in reversed(await self._core.load_all(chunk, bodies=False)):
                if message.source_machine == self._core.machine_id:
                    place = self.place_of(queue, message)
                    # What had arrived before a reset has a number below the first.
                    queue.stream.identifier, queue.stream.sequence = place.stream, max(0, place.number)
                    return


def _reset_key(queue: OutgoingQueue) -> str:
    return f"reset:{queue.id}"


def _sequence_key(queue: OutgoingQueue) -> str:
    return f"sequence:{queue.id}"


def _settle(stream: OutgoingStream, count: int) -> None:
    stream.pending -= count


def _marks(message: Message, stream: int, number: int) -> TransactionMarks:
    assert message.transaction is not None
    return replace(
        message.transaction,
        stream=stream,
        sequence=number,
        previous=number - 1,
        final_ack_required=message.negative_journaling,
    )
