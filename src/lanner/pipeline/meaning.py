"""What the events of the history mean for a message and its queue, as Spark expressions.

Who writes which row, and when, is in ``lanner.model.history`` and in the manager. In short: an outgoing
queue has a format name (``DIRECT=...``), a local one a path name (``.\\private$\\orders``); the class of a
row is a negative one where a message was given up, and the message's own where it was only not taken in.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from lanner.model.codes import MessageClass
from lanner.model.history import HistoryEvent

__all__ = [
    "NO_MESSAGE",
    "ending",
    "entry_here",
    "exit_here",
    "final_arrival",
    "happened",
    "is_outgoing",
    "lineage",
    "message_kind",
    "onward_arrival",
    "queue_in",
    "queue_out",
]

NO_MESSAGE = "00000000-0000-0000-0000-000000000000\\0"
"""The identifier of what could not be read, and of messages that have none."""

FIRST_NEGATIVE = MessageClass.NACK_BAD_DESTINATION_QUEUE.value
RECEIPT_LABEL = "QM Ordering Ack"

_ENDS = (HistoryEvent.EXPIRED, HistoryEvent.PURGED, HistoryEvent.DELETED, HistoryEvent.REJECTED)
_ENTRIES = (HistoryEvent.SENT, HistoryEvent.ARRIVED)
_KEPT = (HistoryEvent.MOVED, HistoryEvent.JOURNALED, HistoryEvent.DEAD_LETTERED, HistoryEvent.RETURNED)


def happened(*events: HistoryEvent) -> Column:
    """Whether the row is one of these events."""
    if len(events) == 1:
        return F.col("event") == F.lit(events[0].value)
    return F.col("event").isin([event.value for event in events])


def is_outgoing() -> Column:
    """Whether the row's queue leads to another machine."""
    return F.col("queue").contains("=")


def final_arrival() -> Column:
    """It is in its destination queue: sent into a local one, or arrived in one."""
    return happened(*_ENTRIES) & ~is_outgoing()


def onward_arrival() -> Column:
    """It has come to a machine on its way."""
    return happened(HistoryEvent.ARRIVED) & is_outgoing()


def entry_here() -> Column:
    """It is in an outgoing queue from now on."""
    return happened(*_ENTRIES) & is_outgoing()


def exit_here() -> Column:
    """It has left an outgoing queue: handed over, given up, or taken out."""
    settled = happened(HistoryEvent.ACKNOWLEDGED) & F.col("reason").isNull()
    given_up = happened(*_ENDS) & (F.col("message_class") >= FIRST_NEGATIVE)
    taken = happened(HistoryEvent.RECEIVED)
    return is_outgoing() & (happened(HistoryEvent.TRANSMITTED) | settled | given_up | taken)


def ending() -> Column:
    """It was given up somewhere, and will not be delivered from there."""
    refused = happened(HistoryEvent.REJECTED) & (F.col("message_class") < FIRST_NEGATIVE)
    return happened(*_ENDS) & ~refused


def queue_in() -> Column:
    """The row's queue has one message more."""
    return happened(*_ENTRIES, *_KEPT)


def queue_out() -> Column:
    """The row's queue has one message less. What moved away from elsewhere is told by ``reason``."""
    at_the_door = F.col("peer").isNotNull() & ~is_outgoing()
    dropped = happened(*_ENDS) & (F.col("message_class") >= FIRST_NEGATIVE) & ~at_the_door
    return exit_here() | dropped | happened(HistoryEvent.RECEIVED)


def lineage() -> Column:
    """The identifier of the machine that a message is from."""
    return F.substring_index(F.col("message_id"), "\\", 1)


def message_kind(message_class: Column, label: Column) -> Column:
    """``message``, ``acknowledgment`` (to an administration queue) or ``receipt`` (of a stream)."""
    return (
        F.when(label == RECEIPT_LABEL, "receipt")
        .when(message_class == MessageClass.NORMAL.value, "message")
        .when(message_class == MessageClass.ORDER_ACK.value, "receipt")
        .when(
            message_class.isin(MessageClass.ACK_REACH_QUEUE.value, MessageClass.ACK_RECEIVE.value),
            "acknowledgment",
        )
        .when(message_class >= FIRST_NEGATIVE, "acknowledgment")
        .otherwise("message")
    )
