"""What the manager tells protocols and applications, after it is durable.

The events of MS-MQDMPR 3.1.7.2 and a few of our own. Subscribers are called on the event loop, in
the order of subscription, and must not block.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from lanner.model.log_fields import LogFields, about

if TYPE_CHECKING:
    from lanner.manager.positions import Position
    from lanner.manager.queues import OutgoingQueue, Queue
    from lanner.model.enterprise import EnterpriseMap

__all__ = [
    "ConnectionChanged",
    "EnterpriseChanged",
    "Event",
    "Events",
    "FlowControlChanged",
    "MessageAvailable",
    "MessageDeleted",
    "OutgoingMessages",
    "OutgoingQueuePaused",
    "OutgoingQueueResumed",
    "QueueChanged",
    "QueueCreated",
    "QueueDeleted",
    "Stopping",
]

log = logging.getLogger(__name__)


class Event:
    """The root of all events."""


@dataclass(frozen=True, slots=True)
class MessageAvailable(Event):
    """A message can be received, or sent onward (MS-MQDMPR 3.1.7.2.2)."""

    queue: Queue
    position: Position


@dataclass(frozen=True, slots=True)
class OutgoingMessages(Event):
    """There is something in an outgoing queue that can be sent: once for all that came together."""

    queue: OutgoingQueue


@dataclass(frozen=True, slots=True)
class MessageDeleted(Event):
    """A message is gone from a queue (MS-MQDMPR 3.1.7.2.1); ``reason`` is a message class."""

    queue: Queue
    position: Position
    reason: int


@dataclass(frozen=True, slots=True)
class QueueCreated(Event):
    """A queue is there."""

    queue: Queue


@dataclass(frozen=True, slots=True)
class QueueChanged(Event):
    """A queue has other properties than before."""

    queue: Queue


@dataclass(frozen=True, slots=True)
class QueueDeleted(Event):
    """A queue is gone."""

    queue: Queue


@dataclass(frozen=True, slots=True)
class OutgoingQueuePaused(Event):
    """Nothing is to leave this queue (MS-MQDMPR 3.1.7.2.3)."""

    queue: OutgoingQueue


@dataclass(frozen=True, slots=True)
class OutgoingQueueResumed(Event):
    """Messages may leave this queue again (MS-MQDMPR 3.1.7.2.4)."""

    queue: OutgoingQueue


@dataclass(frozen=True, slots=True)
class StreamResendWanted(Event):
    """The stream of this queue is to be sent again now (Resend Transactional Sequence, MS-MQMR 3.1.4.2)."""

    queue: OutgoingQueue


@dataclass(frozen=True, slots=True)
class ConnectionChanged(Event):
    """The manager was taken offline or brought online (MS-MQDMPR 3.1.4.12 and 3.1.4.13)."""

    online: bool


@dataclass(frozen=True, slots=True)
class FlowControlChanged(Event):
    """The manager takes in nothing, or again (MS-MQDMPR 3.1.7.2.5 and 3.1.7.2.6)."""

    throttled: bool


@dataclass(frozen=True, slots=True)
class EnterpriseChanged(Event):
    """The directory says something else than before."""

    enterprise: EnterpriseMap


@dataclass(frozen=True, slots=True)
class Stopping(Event):
    """The manager is about to stop (MS-MQDMPR 3.1.4.2)."""


E = TypeVar("E", bound=Event)


class Events:
    """Who wants to know what."""

    def __init__(self) -> None:
        self._subscribers: dict[type[Event], list[Callable[..., None]]] = defaultdict(list)

    def subscribe(self, kind: type[E], callback: Callable[[E], None]) -> Callable[[], None]:
        """Call back at each event of this kind. Returns what ends the subscription."""
        self._subscribers[kind].append(callback)
        return lambda: self._subscribers[kind].remove(callback)

    def wanted(self, kind: type[Event]) -> bool:
        """Whether anybody listens: events of every message are not made for nobody."""
        return bool(self._subscribers.get(kind))

    def publish(self, event: Event) -> None:
        """Tell everybody. A subscriber that fails is logged and does not stop the others."""
        for callback in tuple(self._subscribers.get(type(event), ())):
            try:
                callback(event)
            except Exception:
                log.exception("a subscriber of %s failed", type(event).__name__, extra=_about(event))


def _about(event: Event) -> LogFields:
    queue: Queue | None = getattr(event, "queue", None)
    position: Position | None = getattr(event, "position", None)
    return about(
        queues=[] if queue is None else [queue.name], messages=[] if position is None else [position.id]
    )
