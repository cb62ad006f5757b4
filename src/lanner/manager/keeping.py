"""Where finished messages are kept: journals and dead-letter queues, and whether there is room."""

from __future__ import annotations

import logging

from lanner.manager.core import Core
from lanner.manager.queues import KILOBYTE, OutgoingQueue, Queue
from lanner.model.errors import LannerError
from lanner.model.log_fields import about
from lanner.model.message import INFINITE, Message
from lanner.model.queue import QueueKind

__all__ = [
    "DEAD_LETTER",
    "SYSTEM_JOURNAL",
    "TRANSACTIONAL_DEAD_LETTER",
    "dead_letter_queue",
    "has_room_to_keep",
]

log = logging.getLogger(__name__)

SYSTEM_JOURNAL = r".\system$;journal"
DEAD_LETTER = r".\system$;deadletter"
TRANSACTIONAL_DEAD_LETTER = r".\system$;deadxact"


def has_room_to_keep(core: Core, target: Queue, size: int) -> bool:
    """Whether a journal or dead-letter queue can keep a message. The manager's own share one quota."""
    quota = core.settings.journal_quota
    if target.kind is not QueueKind.SYSTEM or quota == INFINITE:
        return core.has_room(target, size)
    names = (SYSTEM_JOURNAL, DEAD_LETTER, TRANSACTIONAL_DEAD_LETTER)
    kept = sum(core.queues.get(name).messages.bytes for name in names)
    return kept + size <= quota * KILOBYTE


def dead_letter_queue(core: Core, message: Message, comes_from: Queue) -> Queue:
    """The queue for a message that dies: its own, if it names one that will do, or the manager's."""
    if message.dead_letter_queue:
        try:
            queue = core.queues.find(message.dead_letter_queue)
        except LannerError:
            queue = None
        if queue is not None and queue is not comes_from and _can_keep(queue, message):
            return queue
        log.warning(
            "%s cannot be the dead-letter queue of %s",
            message.dead_letter_queue,
            message.id,
            extra=about(queues=[queue.name if queue else message.dead_letter_queue], messages=[message.id]),
        )
    name = TRANSACTIONAL_DEAD_LETTER if message.is_transactional else DEAD_LETTER
    return core.queues.get(name)


def _can_keep(queue: Queue, message: Message) -> bool:
    """Whether a queue can be an application's dead-letter queue (MC-MQSRM 3.1.5.2.1.2)."""
    if queue.is_read_only or isinstance(queue, OutgoingQueue):
        return False
    return queue.properties.transactional or not message.is_transactional
