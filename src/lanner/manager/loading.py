"""Bringing the queues and their indexes back from the store."""

from __future__ import annotations

from collections import defaultdict

from lanner.manager.core import Core
from lanner.manager.delivery import Delivery
from lanner.manager.positions import Position
from lanner.manager.queues import queue_from_row
from lanner.model.errors import StoreDamagedError
from lanner.model.message_id import MessageId
from lanner.store.codec import MessageFlags

__all__ = ["load"]

PURGED = MessageFlags.PURGED.value


def load(core: Core, delivery: Delivery) -> list[Position]:
    """Read every queue and the index of every message. Bodies stay where they are.

    Returns the messages that were locked when their queue was purged. Nobody holds them any more, but they
    are locked still, so that nobody sees them before they go.
    """
    by_id = core.queues.by_id()
    for row in core.store.queues():
        queue = queue_from_row(row, by_id)
        queue.is_stored = True
        core.queues.add(queue)
    positions: dict[int, list[Position]] = defaultdict(list)
    sizes: dict[int, int] = {}
    purged: list[Position] = []
    for lookup, queue_id, identifier, correlation, size, kind, flags, expires, aborts in core.store.index():
        if queue_id not in by_id:
            raise StoreDamagedError(f"the message {lookup} is in queue number {queue_id}, which is not there")
        position = Position(
            lookup,
            by_id[queue_id],
            MessageId(identifier),
            MessageId(correlation) if correlation is not None else None,
            sizes.setdefault(size, size),  # one object for all messages of one size
            kind,
            flags & ~PURGED,
            expires,
            aborts,
        )
        positions[queue_id].append(position)
        if flags & PURGED:
            purged.append(position)
    for queue_id, found in positions.items():
        queue = by_id[queue_id]
        queue.messages.load(found)
        core.count_in(queue, sum(position.size for position in found))
        for position in found:
            if position.expires is not None:
                delivery.expiry.watch(position)
    for position in purged:
        position.queue.messages.lock(position)
    for queue in core.queues:
        core.drop_idle_subqueue(queue)
    return purged
