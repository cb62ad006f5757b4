"""Bringing the queues and their indexes back from the store."""

from __future__ import annotations

from collections import defaultdict

from lanner.manager.core import Core
from lanner.manager.delivery import Delivery
from lanner.manager.positions import Position
from lanner.manager.queues import queue_from_row
from lanner.model.errors import StoreDamagedError
from lanner.model.message_id import MessageId

__all__ = ["load"]


def load(core: Core, delivery: Delivery) -> None:
    """Read every queue and the index of every message. Bodies stay where they are."""
    by_id = core.queues.by_id()
    for row in core.store.queues():
        queue = queue_from_row(row, by_id)
        queue.is_stored = True
        core.queues.add(queue)
    positions: dict[int, list[Position]] = defaultdict(list)
    sizes: dict[int, int] = {}
    for lookup, queue_id, identifier, correlation, size, kind, flags, expires, aborts in core.store.index():
        if queue_id not in by_id:
            raise StoreDamagedError(f"the message {lookup} is in queue number {queue_id}, which is not there")
        positions[queue_id].append(
            Position(
                lookup,
                by_id[queue_id],
                MessageId(identifier),
                MessageId(correlation) if correlation is not None else None,
                sizes.setdefault(size, size),  # one object for all messages of one size
                kind,
                flags,
                expires,
                aborts,
            )
        )
    for queue_id, found in positions.items():
        queue = by_id[queue_id]
        queue.messages.load(found)
        core.count_in(queue, sum(position.size for position in found))
        for position in found:
            if position.expires is not None:
                delivery.expiry.watch(position)
    for queue in core.queues:
        core.drop_idle_subqueue(queue)
