"""A report as one HTML file: what went where, how fast, and what went wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from lanner.model.codes import describe_class
from lanner.pipeline.bronze import Bronze
from lanner.pipeline.charts import bars, flow_map, lines
from lanner.pipeline.findings import Audit, Verdict
from lanner.pipeline.gold import Gold

__all__ = ["render"]

MAX_ROWS = 15
HOUR = 3600.0

_STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, 'DejaVu Sans', Arial, sans-serif; color: #1d2733; background: #f4f6f9;
  margin: 0; padding: 24px; }
main { max-width: 960px; margin: 0 auto; }
h1 { font-size: 26px; margin: 0 0 4px; } h2 { font-size: 18px; margin: 0 0 10px; }
section { background: #fff; border: 1px solid #dde3ea; border-radius: 8px; padding: 18px 22px; margin: 16px 0;
  overflow-x: auto; }
.numbers { display: flex; flex-wrap: wrap; gap: 12px; }
.numbers div { background: #fff; border: 1px solid #dde3ea; border-radius: 8px; padding: 10px 14px;
  min-width: 84px; }
.numbers b { display: block; font-size: 22px; } .note { color: #51606f; }
.proved { color: #2e8b57; } .doubted { color: #b7791f; } .refuted { color: #c0392b; }
svg { max-width: 100%; height: auto; } svg text { font-size: 12px; fill: #51606f; }
svg text.strong { font-weight: 600; fill: #1d2733; font-size: 13px; } svg text.small { font-size: 11px; }
svg text.strong, svg text.small, svg text.on-top { paint-order: stroke; stroke: #fff; stroke-width: 3px; }
.legend span { margin-right: 16px; }
.legend i { display: inline-block; width: 12px; height: 12px; margin-right: 5px; border-radius: 2px; }
table { border-collapse: collapse; width: 100%; } th { text-align: left; color: #51606f; font-weight: 600; }
td, th { padding: 4px 10px 4px 0; border-bottom: 1px solid #edf0f4; vertical-align: top; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
"""


def render(gold: Gold, bronze: Bronze, judged: Audit, *, title: str, now: float) -> str:
    """Make the page."""
    queues, routes = gold.queue_hours(), gold.route_hours()
    dead = gold.dead_letter_hours()
    sections = [
        _section("Traffic over time", lines(_traffic(queues), "messages an hour")),
        _section(
            "Time from sending to arrival",
            lines(_latency(routes), "seconds", logarithmic=True),
            "Per hop, over all routes; the middle of all hours' values, weighted by their messages.",
        ),
        _section("The flows", flow_map(_flows(routes), _dead_by_manager(dead))),
        _section("Dead letters by reason", bars(_reasons(dead), "messages")),
        _section(
            "The slowest routes",
            bars(_slowest(routes), "s"),
            "The slowest hundredth of each route's messages.",
        ),
        _section("Queues that fill up", _queue_table(queues)),
        _section("The audit", _audit_words(judged)),
    ]
    made = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d %H:%M UTC")
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head>'
        f'<body><main><h1>{escape(title)}</h1><p class="note">{_span(bronze)}; made {made}</p>'
        f"{_numbers(queues, dead, bronze, judged)}{''.join(sections)}</main></body></html>\n"
    )


def _section(title: str, content: str, note: str = "") -> str:
    words = f'<p class="note">{escape(note)}</p>' if note else ""
    return f"<section><h2>{escape(title)}</h2>{content}{words}</section>"


def _span(bronze: Bronze) -> str:
    coverage = bronze.coverage()
    if not coverage:
        return "no history has been read in"
    first, last = min(one.first_time for one in coverage), max(one.last_time for one in coverage)
    form = "%Y-%m-%d %H:%M"
    begin, end = (datetime.fromtimestamp(time, UTC).strftime(form) for time in (first, last))
    return f"{len(coverage):,} managers from {begin} to {end} UTC"


def _numbers(queues: DataFrame, dead: DataFrame, bronze: Bronze, judged: Audit) -> str:
    local = queues.filter(~F.col("queue").contains("="))
    total = local.agg(
        F.sum(F.col("sent") + F.col("arrived")).alias("arrived"), F.sum("received").alias("received")
    ).collect()[0]
    letters = dead.agg(F.sum("messages").alias("n")).collect()[0]["n"] or 0
    faulty = sum(part.facts["faulty"] for part in bronze.manifest().parts.values())
    shown = (
        ("messages", f"{judged.messages:,}", ""),
        ("arrived", f"{total['arrived'] or 0:,}", ""),
        ("received", f"{total['received'] or 0:,}", ""),
        ("on their way", f"{judged.waiting:,}", ""),
        ("dead letters", f"{letters:,}", "refuted" if letters else ""),
        ("in quarantine", f"{faulty:,}", "doubted" if faulty else ""),
        ("exactly once", judged.verdict.value, judged.verdict.value),
    )
    boxes = "".join(f'<div><b class="{kind}">{value}</b>{name}</div>' for name, value, kind in shown)
    return f'<div class="numbers">{boxes}</div>'


def _traffic(queues: DataFrame) -> dict[str, list[tuple[float, float]]]:
    local = ~F.col("queue").contains("=")
    rows = (
        queues.groupBy("hour")
        .agg(
            F.sum("sent").alias("sent"),
            F.sum(F.when(local, F.col("sent") + F.col("arrived")).otherwise(0)).alias("arrived"),
            F.sum("received").alias("received"),
            F.sum("retransmitted").alias("sent again"),
        )
        .orderBy("hour")
        .collect()
    )
    by_hour = {row["hour"].timestamp(): row for row in rows}
    # An hour without a row had no traffic: a line that skips it would show some.
    hours = np.arange(min(by_hour), max(by_hour) + 1, HOUR) if by_hour else ()
    return {
        name: [(hour, float(by_hour[hour][name]) if hour in by_hour else 0.0) for hour in map(float, hours)]
        for name in ("sent", "arrived", "received", "sent again")
    }


def _latency(routes: DataFrame) -> dict[str, list[tuple[float, float]]]:
    names = {"half": "latency_p50", "nine of ten": "latency_p90", "99 of 100": "latency_p99"}
    means = [
        (F.sum(F.col(column) * F.col("messages")) / F.sum("messages")).alias(name)
        for name, column in names.items()
    ]
    rows = (
        routes.filter(F.col("latency_p50").isNotNull()).groupBy("hour").agg(*means).orderBy("hour").collect()
    )
    return {name: [(row["hour"].timestamp(), row[name]) for row in rows] for name in names} if rows else {}


def _flows(routes: DataFrame) -> list[tuple[str, str, int]]:
    rows = routes.groupBy("from_manager", "to_manager").agg(F.sum("messages").alias("n")).collect()
    return [(row["from_manager"], row["to_manager"], row["n"]) for row in rows]


def _dead_by_manager(dead: DataFrame) -> dict[str, int]:
    return {
        row["manager"]: row["n"]
        for row in dead.groupBy("manager").agg(F.sum("messages").alias("n")).collect()
    }


def _reasons(dead: DataFrame) -> list[tuple[str, float]]:
    rows = dead.groupBy("message_class").agg(F.sum("messages").alias("n")).collect()
    return [(describe_class(row["message_class"]), float(row["n"])) for row in rows]


def _slowest(routes: DataFrame) -> list[tuple[str, float]]:
    rows = (
        routes.groupBy("from_manager", "to_manager")
        .agg(F.max("latency_p99").alias("p99"))
        .filter(F.col("p99").isNotNull())
        .orderBy(F.desc("p99"))
        .limit(MAX_ROWS)
        .collect()
    )
    return [(f"{row['from_manager']} to {row['to_manager']}", row["p99"]) for row in rows]


def _queue_table(queues: DataFrame) -> str:
    local = queues.filter(~F.col("queue").contains("="))
    rows = (
        local.groupBy("manager", "queue")
        .agg(
            F.max_by("backlog", "hour").alias("backlog"),
            F.max("wait_p90").alias("wait"),
            F.max("is_slow").alias("is_slow"),
        )
        .filter(F.col("backlog") > 0)
        .orderBy(F.desc("backlog"))
        .limit(MAX_ROWS)
        .collect()
    )
    return _table(
        ("manager", "queue", "messages in it", "nine of ten waited (s)", "slow"),
        [
            (
                row["manager"],
                row["queue"],
                f"{row['backlog']:,}",
                "" if row["wait"] is None else f"{row['wait']:,.2f}",
                "yes" if row["is_slow"] else "",
            )
            for row in rows
        ],
        numbers=(2, 3),
    )


def _audit_words(judged: Audit) -> str:
    words = {
        Verdict.PROVED: "Every message that can be judged was delivered exactly once and in order.",
        Verdict.DOUBTED: "Nothing is refuted, but not everything can be proved.",
        Verdict.REFUTED: "Exactly-once-in-order delivery is refuted.",
    }
    rows = [
        [one[name] or "" for name in ("kind", "severity", "message_id", "sender", "destination", "detail")]
        for one in judged.findings[:MAX_ROWS]
    ]
    counts = ", ".join(f"{count:,} {name}" for name, count in judged.counts.items())
    table = _table(("what", "is", "message", "sender", "destination", "detail"), rows) if rows else ""
    summary = f'<p class="{judged.verdict}">{words[judged.verdict]}</p>'
    return summary + (f"<p>{escape(counts)}</p>" if counts else "") + table


def _table(heads: Sequence[str], rows: Sequence[Sequence[Any]], numbers: Sequence[int] = ()) -> str:
    if not rows:
        return '<p class="note">There are none.</p>'

    def cells(tag: str, row: Sequence[Any]) -> Iterator[str]:
        for number, value in enumerate(row):
            kind = ' class="n"' if number in numbers else ""
            yield f"<{tag}{kind}>{escape(str(value))}</{tag}>"

    body = "".join(f"<tr>{''.join(cells('td', row))}</tr>" for row in rows)
    return f"<table><tr>{''.join(cells('th', heads))}</tr>{body}</table>"
