"""The audit: was every message delivered exactly once and in order, as far as the histories tell?

It works on silver, where each message is one row, and on the arrivals of each stream in the order of the
receiving manager's LSNs, so that no clock decides about order. Times matter in one place alone: what
happened in the last ``grace`` seconds may still be on its way, or be known to one manager and not yet to
the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any, TypeAlias

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from lanner.pipeline.bronze import Bronze, Coverage
from lanner.pipeline.findings import FINDINGS, Audit, Kind, Severity, Verdict
from lanner.pipeline.silver import Silver
from lanner.pipeline.tables import Part, Tables

__all__ = ["GRACE", "VERSION", "audit", "findings", "read_findings"]

TABLE = "audit"
VERSION = 1

GRACE = 300.0
"""Seconds that a message may be under way, and that clocks may disagree."""

SHOWN = 1000
"""Findings in the verdict itself."""

Rule: TypeAlias = tuple[Column, list[Column]]
"""When something is wrong with a message, and what is said about it."""

_FIELDS = [field.name for field in FINDINGS.fields if field.name != "events"]
_EVENT_FIELDS = (
    "manager",
    "lsn",
    "time",
    "event",
    "queue",
    "message_class",
    "stream",
    "sequence",
    "reason",
    "peer",
)


def audit(
    tables: Tables, bronze: Bronze, silver: Silver, *, grace: float = GRACE, until: float | None = None
) -> Audit:
    """Judge everything that is in silver, write the findings, and say the verdict.

    ``until`` is the time up to which all histories are complete. Otherwise a manager's is known up to
    its last event, or to when it was last read.
    """
    coverage = bronze.coverage()
    known_until = _known_until(bronze, coverage, until)
    messages = silver.messages().filter(F.col("kind") != "receipt")
    hosts = _hosts(messages, coverage)
    found = findings(messages, coverage, known_until, hosts, grace).persist()
    proved = _with_proof(found, bronze)
    manifest = tables.manifest(TABLE, VERSION)
    path = tables.write(proved.coalesce(1), f"{TABLE}/commit={manifest.commit + 1:010}")
    tables.commit(TABLE, manifest.with_parts({"findings": Part(path=path)}))
    written = read_findings(tables)
    counts = {
        f"{row['kind']} ({row['severity']})": row["count"]
        for row in written.groupBy("kind", "severity").count().orderBy("kind", "severity").collect()
    }
    total = messages.agg(
        F.count("*").alias("messages"),
        F.count(F.when((F.col("waiting") > 0) & (F.col("arrivals") == 0) & (F.col("endings") == 0), 1)).alias(
            "waiting"
        ),
        F.count(F.when(_is_gone() & ~_is_observed(hosts), 1)).alias("unobserved"),
    ).collect()[0]
    streams = messages.filter(F.col("stream").isNotNull()).select("sender_id", "stream").distinct().count()
    found.unpersist()
    shown = written.orderBy(_gravity(), "kind", "message_id").limit(SHOWN).collect()
    return Audit(
        verdict=_verdict(counts),
        messages=total["messages"],
        streams=streams,
        waiting=total["waiting"],
        unobserved=total["unobserved"],
        counts=counts,
        managers=[one._asdict() | {"missing": one.missing} for one in coverage],
        until=max(known_until.values(), default=0.0),
        findings=[row.asDict(recursive=True) for row in shown],
    )


def read_findings(tables: Tables) -> DataFrame:
    """The findings of the last audit."""
    parts = tables.manifest(TABLE, VERSION).parts.values()
    return tables.read([part.path for part in parts], FINDINGS)


def findings(
    messages: DataFrame,
    coverage: list[Coverage],
    known_until: Mapping[str, float],
    hosts: Mapping[str, str],
    grace: float,
) -> DataFrame:
    """Everything that is wrong, without the events that prove it."""
    last = F.lit(max(known_until.values(), default=0.0))
    unordered = _order(messages)
    rules = [
        _lost(hosts, known_until, grace),
        _duplicated(),
        _received_twice(),
        _unacknowledged(last, grace),
        _unsent(coverage, grace),
    ]
    kinds = [
        _by_rules(messages, rules),
        unordered.filter(F.col("arrived_sequence") <= F.col("highest")).select(*_out_of_order()),
        *_gaps(messages, unordered.filter(F.col("arrived_previous") > F.col("highest"))),
        _missing_history(messages, coverage),
    ]
    return reduce(DataFrame.unionByName, kinds)


def _by_rules(messages: DataFrame, rules: list[Rule]) -> DataFrame:
    """What one row alone tells: all rules in one pass over the messages."""
    found = F.array_compact(F.array(*(F.when(condition, F.struct(*what)) for condition, what in rules)))
    return messages.select(F.explode(found).alias("one")).select("one.*")


def _known_until(bronze: Bronze, coverage: list[Coverage], until: float | None) -> dict[str, float]:
    """Up to when each manager's history is known, by the manager's name."""
    complete = bronze.complete_until()
    known: dict[str, float] = {}
    for one in coverage:
        best = max(one.last_time, until or 0.0, complete.get(one.manager_id, 0.0))
        known[one.manager] = max(best, known.get(one.manager, 0.0))
    return known


# Who is who.


def _host() -> Column:
    """The machine that a destination names."""
    name = F.lower(F.col("destination"))
    over_http = F.regexp_extract(name, r"^direct=https?://([^/:]+)", 1)
    otherwise = F.regexp_extract(name, r"^direct=(?:os|tcp):([^\\]+)", 1)
    return F.when(over_http != "", over_http).otherwise(otherwise)


def _hosts(messages: DataFrame, coverage: list[Coverage]) -> dict[str, str]:
    """Which manager a host name means: its own name, and whatever name messages arrived there under."""
    named = {one.manager.lower(): one.manager for one in coverage}
    arrived = messages.filter(F.col("arrived_by").isNotNull() & (_host() != ""))
    for row in arrived.groupBy(_host().alias("host")).agg(F.max("arrived_by").alias("manager")).collect():
        named.setdefault(row["host"], row["manager"])
    return named


def _is_gone() -> Column:
    """Nobody has it, and nobody has given it up."""
    accounted = F.col("arrivals") + F.col("endings")
    return (F.col("copies") > 0) & (accounted < F.col("copies")) & (F.col("waiting") <= 0)


def _is_observed(hosts: Mapping[str, str]) -> Column:
    return _host().isin(list(hosts)) | F.col("arrived_by").isNotNull()


# What can be wrong.


def _finding(kind: Kind, severity: Column | Severity, detail: Column) -> list[Column]:
    return [
        F.lit(kind.value).alias("kind"),
        (F.lit(severity.value) if isinstance(severity, Severity) else severity).alias("severity"),
        F.col("message_id"),
        F.coalesce(F.col("sent_by"), F.col("sender_id")).alias("sender"),
        F.col("destination"),
        F.coalesce(F.col("arrived_stream"), F.col("stream")).alias("stream"),
        F.coalesce(F.col("arrived_sequence"), F.col("sequence")).alias("sequence"),
        detail.alias("detail"),
    ]


def _lost(hosts: Mapping[str, str], known_until: Mapping[str, float], grace: float) -> Rule:
    pairs = [F.lit(part) for host, name in hosts.items() for part in (host, known_until.get(name, 0.0))]
    known = F.create_map(*pairs)[_host()] if pairs else F.lit(0.0)
    since = F.coalesce(F.col("left_at"), F.col("last_time")).cast("double")
    is_known = F.coalesce(known.cast("double") >= since + grace, F.lit(False))
    severity = (
        F.when(F.col("is_express"), Severity.DOUBT.value)
        .when(is_known, Severity.VIOLATION.value)
        .otherwise(Severity.DOUBT.value)
    )
    detail = (
        F.when(
            F.col("is_express"),
            "an express message was handed over and did not arrive; a restart may lose one",
        )
        .when(~is_known, "it was handed over, and the history of its destination does not go on long enough")
        .when(F.col("acknowledgments") > 0, "its arrival was acknowledged, and it did not arrive")
        .otherwise("it was handed over and did not arrive")
    )
    return _is_gone() & _is_observed(hosts), _finding(Kind.LOST, severity, detail)


def _duplicated() -> Rule:
    twice = (F.col("arrivals") > 1) & (F.col("arrivals") > F.col("copies"))
    detail = F.format_string("it was put into its queue %d times", F.col("arrivals"))
    return twice, _finding(Kind.DUPLICATED, Severity.VIOLATION, detail)


def _received_twice() -> Rule:
    # A history that begins in the middle has receives of what came before it.
    more = (F.col("excess_receives") > 0) & (F.col("arrivals") > 0)
    detail = F.format_string("it was received %d times", F.col("receives"))
    return more, _finding(Kind.DUPLICATED, Severity.VIOLATION, detail)


def _order(messages: DataFrame) -> DataFrame:
    """The arrivals of each stream with the highest number that came before."""
    queue = Window.partitionBy("sender_id", "arrived_stream", "arrived_by", "arrived_queue")
    before = queue.orderBy("arrived_lsn").rowsBetween(Window.unboundedPreceding, -1)
    arrivals = messages.filter(F.col("arrived_stream").isNotNull()).select(
        "message_id",
        "sent_by",
        "sender_id",
        "destination",
        "stream",
        "sequence",
        "arrived_stream",
        "arrived_sequence",
        "arrived_previous",
        "arrived_by",
        "arrived_queue",
        "arrived_lsn",
    )
    return arrivals.withColumn("highest", F.max("arrived_sequence").over(before)).filter(
        F.col("highest").isNotNull()
        & ((F.col("arrived_sequence") <= F.col("highest")) | (F.col("arrived_previous") > F.col("highest")))
    )


def _out_of_order() -> list[Column]:
    detail = F.format_string("number %d came after %d", F.col("arrived_sequence"), F.col("highest"))
    return _finding(Kind.OUT_OF_ORDER, Severity.VIOLATION, detail)


def _gaps(messages: DataFrame, seen_by_receiver: DataFrame) -> list[DataFrame]:
    """Numbers that did not arrive although later ones did, as the sender and the receiver know them."""
    reached = (
        messages.filter(F.col("arrived_stream").isNotNull())
        .groupBy("sender_id", F.col("arrived_stream").alias("stream"))
        .agg(F.max("arrived_sequence").alias("reached"))
    )
    absent = messages.filter(
        F.col("stream").isNotNull() & (F.col("arrivals") == 0) & (F.col("copies") > 0)
    ).join(reached, ["sender_id", "stream"])
    ended, waits = F.col("endings") > 0, F.col("waiting") > 0
    detail = F.when(
        ended,
        F.concat(
            F.col("ended_event"),
            F.lit(" at "),
            F.col("ended_by"),
            F.lit(": "),
            F.coalesce("ended_reason", F.lit("")),
        ),
    ).otherwise(F.when(waits, "it still waits to be sent").otherwise("nothing says what became of it"))
    severity = (
        F.when(ended, Severity.EXPLAINED.value)
        .when(waits, Severity.DOUBT.value)
        .otherwise(Severity.VIOLATION.value)
    )
    gaps = absent.filter(F.col("sequence") < F.col("reached")).select(*_finding(Kind.GAP, severity, detail))
    sent = messages.filter(F.col("stream").isNotNull()).select(
        F.col("sender_id").alias("s"), F.col("stream").alias("t"), F.col("sequence").alias("n")
    )
    unknown = seen_by_receiver.join(
        sent,
        (F.col("s") == F.col("sender_id"))
        & (F.col("t") == F.col("arrived_stream"))
        & (F.col("n") > F.col("highest"))
        & (F.col("n") < F.col("arrived_sequence")),
        "left_anti",
    )
    between = F.format_string(
        "number %d came after %d and names %d as the one before",
        F.col("arrived_sequence"),
        F.col("highest"),
        F.col("arrived_previous"),
    )
    return [gaps, unknown.select(*_finding(Kind.GAP, Severity.DOUBT, between))]


def _unacknowledged(last: Column, grace: float) -> Rule:
    waits = (
        F.col("stream").isNotNull()
        & (F.col("arrivals") > 0)
        & (F.col("acknowledgments") == 0)
        & (F.col("endings") == 0)
        & F.col("sent_queue").contains("=")
        & (F.col("last_time").cast("double") + grace < last)
    )
    detail = F.when(F.col("receives") > 0, "it was received, and its sender has no receipt").otherwise(
        "it arrived, and its sender has no receipt; it may have asked for one when it is received"
    )
    return waits, _finding(Kind.UNACKNOWLEDGED, Severity.DOUBT, detail)


def _unsent(coverage: list[Coverage], grace: float) -> Rule:
    """Of managers whose history is here, from its first LSN on or from long before the arrival."""
    starts = {
        one.manager_id: 0.0 if one.first_lsn == 1 and not one.missing else one.first_time for one in coverage
    }
    pairs = [F.lit(part) for identifier, start in starts.items() for part in (identifier, start)]
    start = F.create_map(*pairs)[F.col("sender_id")] if pairs else F.lit(None).cast("double")
    arrived = (F.col("arrivals") > 0) | (F.col("forwards") > 0)
    at = F.coalesce(F.col("arrived_at"), F.col("first_time")).cast("double")
    severity = F.when((start == 0) | (at > start + grace), Severity.VIOLATION.value).otherwise(
        Severity.DOUBT.value
    )
    gone = [one.manager_id for one in coverage if one.missing]
    severity = (
        F.when(F.col("sender_id").isin(gone), Severity.DOUBT.value).otherwise(severity) if gone else severity
    )
    detail = F.lit("it arrived, and its sender did not send it")
    condition = arrived & (F.col("copies") == 0) & start.isNotNull()
    return condition, _finding(Kind.UNSENT, severity, detail)


def _missing_history(messages: DataFrame, coverage: list[Coverage]) -> DataFrame:
    rows: list[tuple[Any, ...]] = [
        (
            Kind.HISTORY.value,
            Severity.DOUBT.value,
            None,
            one.manager,
            None,
            None,
            None,
            f"{one.missing:,} events between {one.first_lsn:,} and {one.last_lsn:,} are missing",
        )
        for one in coverage
        if one.missing > 0
    ]
    schema = StructType([FINDINGS[name] for name in _FIELDS])
    return messages.sparkSession.createDataFrame(rows, schema)


# The whole.


def _with_proof(found: DataFrame, bronze: Bronze) -> DataFrame:
    """Each finding with all events of its message, in the order of time."""
    if not found.take(1):
        return found.sparkSession.createDataFrame([], FINDINGS)
    keys = found.select("message_id").filter(F.col("message_id").isNotNull()).distinct()
    events = bronze.events().join(keys, "message_id", "left_semi")
    proof = events.groupBy("message_id").agg(
        F.array_sort(
            F.collect_list(F.struct("time", *(name for name in _EVENT_FIELDS if name != "time")))
        ).alias("e")
    )
    ordered = F.transform("e", lambda one: F.struct(*(one[name].alias(name) for name in _EVENT_FIELDS)))
    return found.join(proof, "message_id", "left").select(*_FIELDS, ordered.alias("events"))


def _gravity() -> Column:
    """What refutes comes first, what is explained last."""
    order = F.array(*(F.lit(severity.value) for severity in Severity))
    return F.array_position(order, F.col("severity"))


def _verdict(counts: Mapping[str, int]) -> Verdict:
    if any(f"({Severity.VIOLATION})" in name for name in counts):
        return Verdict.REFUTED
    if any(f"({Severity.DOUBT})" in name for name in counts):
        return Verdict.DOUBTED
    return Verdict.PROVED
