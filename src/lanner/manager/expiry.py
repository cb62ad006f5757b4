"""When messages' times run out (MS-MQDMPR 3.1.2.4).

One heap of deadlines on the monotonic clock, and one timer for the nearest. A message that goes
before its time leaves its entry behind; when half of the heap is such remains, it is built anew.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable

from lanner.manager.clock import Clock, Timer
from lanner.manager.positions import Position, PositionState
from lanner.manager.queues import OutgoingQueue, Queue
from lanner.model.codes import MessageClass
from lanner.model.message import INFINITE, Message

__all__ = ["Expiry", "expiry_in", "expiry_reason"]

RETRY_DELAY = 1.0
"""Seconds until a message that came back after its time is looked at again."""

MIN_REMAINS = 1024
"""Fewer remains than this are not worth tidying up."""


class Expiry:
    """Watches positions and hands over those whose time has run out."""

    def __init__(self, clock: Clock, on_expired: Callable[[list[Position]], None]) -> None:
        self._clock = clock
        self._on_expired = on_expired
        self._deadlines: list[tuple[float, int, Position, float]] = []
        self._order = itertools.count()
        self._remains = 0
        self._overdue: set[Position] = set()
        """Positions whose time has run out and that are not gone yet."""
        self._timer: Timer | None = None
        self._timer_deadline = 0.0

    def watch(self, position: Position) -> None:
        """Expire this position when its time comes, if it has one."""
        if position.expires is None:
            return
        self._push(self._clock.monotonic() + position.expires - self._clock.time(), position)

    def check(self, position: Position) -> None:
        """Look again at a position that was locked when its time may have run out.

        After a moment only: where expiring failed, as on a full disk, it is not tried again at once.
        """
        if position in self._overdue:
            self._push(self._clock.monotonic() + RETRY_DELAY, position)

    def forget(self, position: Position) -> None:
        """Note that a position's entry is no longer of use."""
        if position.expires is None:
            return
        self._overdue.discard(position)
        self._remains += 1
        if self._remains > MIN_REMAINS and self._remains * 2 > len(self._deadlines):
            self._deadlines = [entry for entry in self._deadlines if _is_current(entry)]
            heapq.heapify(self._deadlines)
            self._remains = 0

    def stop(self) -> None:
        """Expire nothing any more."""
        if self._timer is not None:
            self._timer.cancel()
        self._deadlines.clear()

    def _push(self, deadline: float, position: Position) -> None:
        assert position.expires is not None
        heapq.heappush(self._deadlines, (deadline, next(self._order), position, position.expires))
        self._set_timer()

    def _set_timer(self) -> None:
        nearest = self._deadlines[0][0]
        if self._timer is not None:
            if self._timer_deadline <= nearest:
                return
            self._timer.cancel()
        self._timer_deadline = nearest
        self._timer = self._clock.call_at(nearest, self._fire)

    def _fire(self) -> None:
        self._timer = None
        now = self._clock.monotonic()
        expired: dict[Position, None] = {}  # one that came back from a journal may have two entries
        while self._deadlines and self._deadlines[0][0] <= now:
            entry = heapq.heappop(self._deadlines)
            if not _is_current(entry):
                continue
            self._overdue.add(entry[2])
            if entry[2].state is PositionState.AVAILABLE:
                expired[entry[2]] = None
        if self._deadlines:
            self._set_timer()
        if expired:
            self._on_expired(list(expired))


def _is_current(entry: tuple[float, int, Position, float]) -> bool:
    # A position that was moved to a journal has no expiry any more; one that is gone is deleted.
    position, expires = entry[2], entry[3]
    return position.state is not PositionState.DELETED and position.expires == expires


def expiry_in(queue: Queue, message: Message) -> float | None:
    """When a message expires in a queue: on its way, in its destination, or never again."""
    if isinstance(queue, OutgoingQueue):
        return message.transit_expiry()
    if message.time_to_be_received == INFINITE or queue.is_read_only:
        return None
    return message.expiry()


def expiry_reason(queue: Queue) -> MessageClass:
    """What is told of a message that expired in a queue."""
    if isinstance(queue, OutgoingQueue):
        return MessageClass.NACK_REACH_QUEUE_TIMEOUT
    return MessageClass.NACK_RECEIVE_TIMEOUT
