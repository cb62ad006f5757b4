"""Cursors: walking over a queue without taking messages out (MS-MQDMPR 3.2).

A cursor stands on a place in the queue, which is a number (see ``positions``), and is in one of four
states:

===========  =====================================================================================
UNREAD       what it stands on was not handed out; ``-1`` is before the first message
READ         what it stands on was handed out
WAIT_PEEK    it ran past the end and waits for a message to look at
WAIT_RECEIVE it ran past the end and waits for a message to take
===========  =====================================================================================

===============  ==========================  ===============================  ========================
event            UNREAD                      READ                             waiting
===============  ==========================  ===============================  ========================
peek             seek: READ, or WAIT_PEEK    same message, or already gone    refused
peek next        refused                     seek: READ, or WAIT_PEEK         refused
take             seek: UNREAD, WAIT_RECEIVE  same message: UNREAD, or gone    refused
message came     -                           -                                READ or UNREAD, on it
time ran out     -                           -                                what it was before
===============  ==========================  ===============================  ========================
"""

from __future__ import annotations

import itertools
from enum import Enum
from typing import TYPE_CHECKING

from lanner.manager.positions import Position, PositionState
from lanner.model.errors import (
    IllegalCursorActionError,
    MessageAlreadyReceivedError,
    StaleHandleError,
)

if TYPE_CHECKING:
    from lanner.manager.handles import OpenQueue

__all__ = ["Cursor", "CursorState"]

START = -1
"""Less than every lookup identifier."""

_numbers = itertools.count(1)


class CursorState(Enum):
    """MS-MQDMPR 3.2.1.2."""

    UNREAD = "unread"
    READ = "read"
    WAIT_PEEK = "wait-peek"
    WAIT_RECEIVE = "wait-receive"


class Cursor:
    """One walk over one open queue."""

    def __init__(self, handle: OpenQueue) -> None:
        self.number = next(_numbers)
        self.handle = handle
        self.queue = handle.queue
        self.place = START
        self.state = CursorState.UNREAD
        self.is_closed = False
        self._current: Position | None = None
        self._state_before_wait = CursorState.UNREAD
        handle.cursors.add(self)

    def get_message_for_peek(self) -> Position | None:
        """Look at the current message (3.2.7.2). None: the cursor waits now."""
        self._check()
        if self.state is CursorState.READ:
            return self._still_there()
        return self._seek(CursorState.READ, CursorState.WAIT_PEEK, peek=True)

    def get_next_message_for_peek(self) -> Position | None:
        """Look at the next message (3.2.7.3). None: the cursor waits now."""
        self._check()
        if self.state is CursorState.UNREAD:
            raise IllegalCursorActionError(
                "the cursor has not looked at a message yet, so there is no next one",
                hint="peek the current message first",
            )
        return self._seek(CursorState.READ, CursorState.WAIT_PEEK, peek=True)

    def get_next_message_for_dequeue(self) -> Position | None:
        """Find the message to take (3.2.7.4). None: the cursor waits now."""
        self._check()
        if self.state is CursorState.READ:
            position = self._still_there()
            self.state = CursorState.UNREAD
            return position
        return self._seek(CursorState.UNREAD, CursorState.WAIT_RECEIVE)

    def message_available(self, position: Position) -> None:
        """The wait has ended with a message (3.2.7.5)."""
        self.state = CursorState.READ if self.state is CursorState.WAIT_PEEK else CursorState.UNREAD
        self._stand_on(position)

    def wait_time_expired(self) -> None:
        """The wait has ended without one (3.2.7.6).

        Deviation: the text leaves a cursor that waited to peek waiting for ever, and moves one that
        waited to receive past everything that will ever come. Here either stands where it stood.
        """
        if self.state in (CursorState.WAIT_PEEK, CursorState.WAIT_RECEIVE):
            self.state = self._state_before_wait

    def close(self) -> None:
        """End the walk."""
        self.is_closed = True
        self.handle.cursors.discard(self)

    def _check(self) -> None:
        if self.is_closed:
            raise StaleHandleError("the cursor is closed", hint="open a new one")
        if self.state in (CursorState.WAIT_PEEK, CursorState.WAIT_RECEIVE):
            raise IllegalCursorActionError("another read with this cursor is still waiting")

    def _still_there(self) -> Position:
        if self._current is None or self._current.state is not PositionState.AVAILABLE:
            raise MessageAlreadyReceivedError("the message under the cursor was taken by somebody else")
        return self._current

    def _seek(self, found: CursorState, waiting: CursorState, *, peek: bool = False) -> Position | None:
        position = self.handle.queue.messages.after(self.place, peek=peek)
        if position is None:
            self._state_before_wait = self.state
            self.state = waiting
            return None
        self.state = found
        self._stand_on(position)
        return position

    def _stand_on(self, position: Position) -> None:
        self.place = position.lookup_id
        self._current = position
