"""One row per message, from its events: the aggregation behind silver.

Everything is found by one grouping. When late events come, the row is made anew from all of them.
"""

from __future__ import annotations

from enum import IntFlag, auto
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from lanner.model.history import HistoryEvent as Event
from lanner.pipeline import meaning
from lanner.pipeline.columns import list_of, struct

__all__ = ["EVENT_FIELDS", "SILVER", "messages_of", "to_events"]

EVENT_FIELDS = (
    "manager",
    "lsn",
    "time",
    "event",
    "queue",
    "message_class",
    "size",
    "label",
    "destination",
    "stream",
    "sequence",
    "previous",
    "reason",
)
"""What silver needs of each event, besides its marks."""

ROWS_PER_TASK = 250_000
"""Events that one task groups in memory."""

HOPS = list_of("from string, to string, from_time timestamp, to_time timestamp, seconds double")
SILVER = struct(
    "message_id string, sender_id string, kind string, label string, size bigint, destination string, "
    "is_transactional boolean, is_express boolean, copies int, "
    "sent_at timestamp, sent_by string, sent_queue string, sent_lsn bigint, stream bigint, sequence bigint, "
    "forwards int, transmissions int, retransmissions int, duplicates int, refusals int, left_at timestamp, "
    "arrived_at timestamp, arrived_by string, arrived_queue string, arrived_lsn bigint, "
    "arrived_stream bigint, arrived_sequence bigint, arrived_previous bigint, arrivals int, "
    "received_at timestamp, received_by string, received_queue string, receives int, excess_receives int, "
    "acknowledged_at timestamp, acknowledgments int, "
    "ended_at timestamp, ended_by string, ended_event string, ended_class int, ended_reason string, "
    "endings int, "
    "dead_lettered_at timestamp, dead_lettered_by string, dead_letter_queue string, dead_letter_class int, "
    "dead_letter_reason string, waiting int, state string, "
    "latency double, time_in_queue double, end_to_end double, clock_suspect boolean, "
    "first_time timestamp, last_time timestamp, day date",
    hops=HOPS,
)
"""The columns of silver; docs/pipeline-tables.md says what each means."""

_PUT_EVENTS = (Event.SENT, Event.ARRIVED, Event.DEAD_LETTERED, Event.RETURNED)


class Mark(IntFlag):
    """What an event may mean for its message."""

    SENT = auto()
    ONWARD = auto()
    FINAL = auto()
    TRANSMITTED = auto()
    RETRANSMITTED = auto()
    DUPLICATE = auto()
    REFUSED = auto()
    RECEIVED = auto()
    TAKEN = auto()
    PUT = auto()
    SETTLED = auto()
    ENDED = auto()
    DEAD = auto()
    WAITS = auto()
    LEFT = auto()
    TRANSACTIONAL = auto()
    EXPRESS = auto()


def _conditions() -> dict[Mark, Column]:
    received = meaning.happened(Event.RECEIVED) & ~meaning.is_outgoing()
    # Journals and the system's queues keep a message that has ended: to take it from there is not to
    # receive it again.
    in_queue = ~F.col("queue").contains(";") & ~meaning.is_outgoing()
    return {
        Mark.SENT: meaning.happened(Event.SENT),
        Mark.ONWARD: meaning.onward_arrival(),
        Mark.FINAL: meaning.final_arrival(),
        Mark.TRANSMITTED: meaning.happened(Event.TRANSMITTED),
        Mark.RETRANSMITTED: meaning.happened(Event.RETRANSMITTED),
        Mark.DUPLICATE: meaning.happened(Event.DUPLICATE),
        Mark.REFUSED: meaning.happened(Event.REJECTED) & ~meaning.ending(),
        Mark.RECEIVED: received,
        Mark.TAKEN: received & in_queue,
        Mark.PUT: meaning.happened(*_PUT_EVENTS) & in_queue,
        Mark.SETTLED: meaning.happened(Event.ACKNOWLEDGED) & F.col("reason").isNull(),
        Mark.ENDED: meaning.ending(),
        Mark.DEAD: meaning.happened(Event.DEAD_LETTERED),
        Mark.WAITS: meaning.entry_here(),
        Mark.LEFT: meaning.exit_here(),
        Mark.TRANSACTIONAL: F.col("transaction_id").isNotNull() | F.col("stream").isNotNull(),
        Mark.EXPRESS: F.coalesce(F.col("reason") == "express", F.lit(False)),
    }


def to_events(events: DataFrame) -> DataFrame:
    """The events that are about a message that can be told from others.

    What each means is found here, once, and put into the bits of one number: the grouping asks two dozen
    times, and a bit is cheaper than the words.
    """
    bits = [F.when(condition, mark.value).otherwise(0) for mark, condition in _conditions().items()]
    marks = reduce(Column.bitwiseOR, bits).alias("marks")
    known = events.filter(F.col("message_id") != meaning.NO_MESSAGE)
    return known.select("message_id", *EVENT_FIELDS, marks)


def _is(mark: Mark) -> Column:
    return F.col("marks").bitwiseAND(F.lit(mark.value)) != 0


def _first(condition: Column, *fields: str) -> Column:
    return F.min(F.when(condition, F.struct("time", "manager", "lsn", *fields)))


def _count(condition: Column) -> Column:
    return F.count(F.when(condition, 1)).cast("int")


def messages_of(events: DataFrame, count: int = 0) -> DataFrame:
    """Group events into messages; ``count`` is about how many events there are."""
    # Events of one message are in several files, so grouping them before they are together gains nothing.
    tasks = max(2, count // ROWS_PER_TASK + 1)
    events = events.repartition(tasks, "message_id")
    # What a manager knows of its own message stands in the row of its sending, or else of its arrival.
    rank = F.when(_is(Mark.SENT), 0).when(_is(Mark.ONWARD), 1).when(_is(Mark.FINAL), 2).otherwise(3)
    way = F.when(rank < 3, F.struct(rank.alias("rank"), "time", "manager"))
    about = F.struct(
        rank.alias("rank"),
        "time",
        "lsn",
        "size",
        "message_class",
        "label",
        "destination",
        _is(Mark.TRANSACTIONAL).alias("is_transactional"),
        _is(Mark.EXPRESS).alias("is_express"),
    )
    grouped = events.groupBy("message_id").agg(
        F.collect_list(way).alias("way"),
        F.min(about).alias("about"),
        _first(_is(Mark.SENT), "queue", "stream", "sequence").alias("s"),
        _count(_is(Mark.SENT)).alias("copies"),
        _count(_is(Mark.ONWARD)).alias("forwards"),
        _count(_is(Mark.TRANSMITTED)).alias("transmissions"),
        _count(_is(Mark.RETRANSMITTED)).alias("retransmissions"),
        _count(_is(Mark.DUPLICATE)).alias("duplicates"),
        _count(_is(Mark.REFUSED)).alias("refusals"),
        F.max(F.when(_is(Mark.LEFT), F.col("time"))).alias("left_at"),
        _first(_is(Mark.FINAL), "queue", "stream", "sequence", "previous").alias("a"),
        _count(_is(Mark.FINAL)).alias("arrivals"),
        _first(_is(Mark.RECEIVED), "queue").alias("r"),
        _count(_is(Mark.RECEIVED)).alias("receives"),
        (_count(_is(Mark.TAKEN)) - _count(_is(Mark.PUT))).alias("excess_receives"),
        F.min(F.when(_is(Mark.SETTLED), F.col("time"))).alias("acknowledged_at"),
        _count(_is(Mark.SETTLED)).alias("acknowledgments"),
        _first(_is(Mark.ENDED), "event", "message_class", "reason").alias("e"),
        _count(_is(Mark.ENDED)).alias("endings"),
        _first(_is(Mark.DEAD), "queue", "message_class", "reason").alias("d"),
        (_count(_is(Mark.WAITS)) - _count(_is(Mark.LEFT))).alias("waiting"),
        F.min("time").alias("first_time"),
        F.max("time").alias("last_time"),
    )
    return _shaped(grouped)


def _shaped(grouped: DataFrame) -> DataFrame:
    ordered = grouped.withColumn("way", F.array_sort("way"))
    hops = F.zip_with(
        F.slice("way", F.lit(1), F.greatest(F.size("way") - 1, F.lit(0))),
        F.slice("way", F.lit(2), F.greatest(F.size("way") - 1, F.lit(0))),
        lambda one, other: F.struct(
            one["manager"].alias("from"),
            other["manager"].alias("to"),
            one["time"].alias("from_time"),
            other["time"].alias("to_time"),
            _seconds(other["time"], one["time"]).alias("seconds"),
        ),
    )
    columns = {
        "sender_id": meaning.lineage(),
        "kind": meaning.message_kind(F.col("about.message_class"), F.col("about.label")),
        "label": F.col("about.label"),
        "size": F.col("about.size"),
        "destination": F.col("about.destination"),
        "is_transactional": F.col("about.is_transactional"),
        "is_express": F.col("about.is_express"),
        "sent_at": F.col("s.time"),
        "sent_by": F.col("s.manager"),
        "sent_queue": F.col("s.queue"),
        "sent_lsn": F.col("s.lsn"),
        "stream": F.col("s.stream"),
        "sequence": F.col("s.sequence"),
        "arrived_at": F.col("a.time"),
        "arrived_by": F.col("a.manager"),
        "arrived_queue": F.col("a.queue"),
        "arrived_lsn": F.col("a.lsn"),
        "arrived_stream": F.col("a.stream"),
        "arrived_sequence": F.col("a.sequence"),
        "arrived_previous": F.col("a.previous"),
        "received_at": F.col("r.time"),
        "received_by": F.col("r.manager"),
        "received_queue": F.col("r.queue"),
        "ended_at": F.col("e.time"),
        "ended_by": F.col("e.manager"),
        "ended_event": F.col("e.event"),
        "ended_class": F.col("e.message_class"),
        "ended_reason": F.col("e.reason"),
        "dead_lettered_at": F.col("d.time"),
        "dead_lettered_by": F.col("d.manager"),
        "dead_letter_queue": F.col("d.queue"),
        "dead_letter_class": F.col("d.message_class"),
        "dead_letter_reason": F.col("d.reason"),
        "state": _state(),
        "latency": _unless_negative(_seconds(F.col("a.time"), F.col("s.time"))),
        "time_in_queue": _unless_negative(_seconds(F.col("r.time"), F.col("a.time"))),
        "end_to_end": _unless_negative(_seconds(F.col("r.time"), F.col("s.time"))),
        "clock_suspect": F.coalesce(
            (F.col("a.time") < F.col("s.time")) | (F.col("r.time") < F.col("s.time")), F.lit(False)
        ),
        "hops": hops,
        "day": F.to_date("first_time"),
    }
    return ordered.withColumns(columns).select(*SILVER.names)


def _state() -> Column:
    """Where it is, by what is known."""
    return (
        F.when(F.col("d").isNotNull(), "dead-lettered")
        .when(F.col("r").isNotNull(), "received")
        .when(F.col("e").isNotNull(), F.col("e.event"))
        .when(F.col("a").isNotNull(), "arrived")
        .when(F.col("waiting") > 0, "waiting")
        .otherwise("in flight")
    )


def _seconds(later: Column, earlier: Column) -> Column:
    return later.cast("double") - earlier.cast("double")


def _unless_negative(seconds: Column) -> Column:
    """A negative time says that two clocks disagree, and nothing else."""
    return F.when(seconds >= 0, seconds)
