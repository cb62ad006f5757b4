"""Knowing a message that came before (MC-MQSRM 3.1.1.1.5 MessageIdHistoryTable, 3.1.5.1.11).

The last identifiers of the last half hour, in a ring of numbered places: each place is a row of the store,
written together with the message that it is about. So the table is as durable as the messages, never grows,
and nothing has to be deleted.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from lanner.model.message_id import MessageId

__all__ = ["SeenMessages", "copy_for"]

MAX_SEEN = 10_000
"""Identifiers that are remembered (product behavior 16)."""

MAX_AGE = 30 * 60.0
"""Seconds that they are remembered (product behavior 16)."""

_ENTRY = struct.Struct("<d20s")


def copy_for(identifier: MessageId, queue_id: int) -> MessageId:
    """What a message is known by in one queue.

    Deviation: the text compares identifiers alone. The copies of a message with several destinations share
    theirs, so that of two queues of one machine the second would get nothing.
    """
    mixed = int.from_bytes(identifier[:8], "little") ^ queue_id
    return MessageId(mixed.to_bytes(8, "little") + identifier[8:])


class SeenMessages:
    """The identifiers that came lately."""

    def __init__(self, stored: Mapping[str, bytes], now: float) -> None:
        self._seen: dict[MessageId, tuple[float, int]] = {}
        """When it came, and its place in the ring."""
        self._ring: list[MessageId | None] = [None] * MAX_SEEN
        self._next = 0
        entries = []
        for key, value in stored.items():
            if key.isdigit() and int(key) < MAX_SEEN and len(value) == _ENTRY.size:
                time, identifier = _ENTRY.unpack(value)
                entries.append((time, int(key), MessageId(identifier)))
        for time, place, seen in sorted(entries):
            self._next = (place + 1) % MAX_SEEN
            if time > now - MAX_AGE:
                self._ring[place] = seen
                self._seen[seen] = time, place

    def is_known(self, identifier: MessageId, now: float) -> bool:
        """Whether a message came within the last half hour."""
        known = self._seen.get(identifier)
        return known is not None and known[0] > now - MAX_AGE

    def add(self, identifier: MessageId, now: float) -> tuple[str, bytes]:
        """Remember an identifier in place of the oldest. Returns the row to store."""
        place = self._next
        self._next = (place + 1) % MAX_SEEN
        oldest = self._ring[place]
        # One that came again after its time, or after a failure, has another place by now.
        if oldest is not None and oldest in self._seen and self._seen[oldest][1] == place:
            del self._seen[oldest]
        self._ring[place] = identifier
        self._seen[identifier] = now, place
        return str(place), _ENTRY.pack(now, identifier)

    def forget(self, identifier: MessageId) -> None:
        """Take back an identifier whose message was not kept after all."""
        self._seen.pop(identifier, None)
