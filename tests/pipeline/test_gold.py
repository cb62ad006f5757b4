from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.pipeline.histories import Fleet
from tests.pipeline.lake import Lake

ORDERS = ".\\private$\\orders"


def rows(frame: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict() for row in frame.orderBy("hour").collect()]


def test_hours_of_a_queue(spark: SparkSession, tmp_path: Path) -> None:
    fleet = Fleet()
    fleet.deliver("alpha", "beta", 3)
    left = [fleet.send("alpha", "beta") for _ in range(2)]
    for sent in left:
        fleet.arrive(sent)
    fleet.wait(3600)
    fleet.receive(left[0])
    lake = Lake(spark, tmp_path)
    lake.load(fleet.frame(spark))
    lake.gold.refresh()
    first, second = rows(lake.gold.queue_hours().filter(f"manager = 'beta' and queue = r'{ORDERS}'"))
    assert (first["arrived"], first["received"], first["change"], first["backlog"]) == (5, 3, 2, 2)
    assert (second["arrived"], second["received"], second["change"], second["backlog"]) == (0, 1, -1, 1)
    assert (first["bytes_in"], first["bytes_out"]) == (500, 300)
    assert first["latency_p50"] == pytest.approx(0.5)
    assert second["wait_p90"] > 3600
    routes = rows(lake.gold.route_hours())
    assert [(row["from_manager"], row["to_manager"], row["messages"]) for row in routes] == [
        ("alpha", "beta", 5)
    ]


def test_a_late_hour_changes_what_follows(spark: SparkSession, tmp_path: Path) -> None:
    fleet = Fleet()
    for _ in range(3):
        fleet.arrive(fleet.send("alpha", "beta"))
        fleet.wait(86_400)
    lake = Lake(spark, tmp_path)
    lake.load(fleet.frame(spark, fleet.rows[2:]), "1")
    lake.gold.refresh()
    queue = f"manager = 'beta' and queue = r'{ORDERS}'"
    assert [row["backlog"] for row in rows(lake.gold.queue_hours().filter(queue))] == [1, 2]
    lake.load(fleet.frame(spark, fleet.rows[:2]), "2")
    assert lake.gold.refresh() == ("2026-03-01",)
    assert [row["backlog"] for row in rows(lake.gold.queue_hours().filter(queue))] == [1, 2, 3]
    assert lake.gold.refresh() == ()


def test_dead_letters_by_reason_and_slow_consumers(spark: SparkSession, tmp_path: Path) -> None:
    fleet = Fleet()
    sent = [fleet.send("alpha", "beta") for _ in range(3)]
    for one in sent:
        fleet.arrive(one)
    fleet.wait(120)
    fleet.receive(sent[0])
    ends = {"message_class": 0xC002, "destination": sent[1]["url"]}
    fleet.note("beta", "expired", ORDERS, sent[1]["message"], **ends)
    fleet.note(
        "beta", "dead-lettered", ".\\system$;deadletter", sent[1]["message"], reason="too late", **ends
    )
    lake = Lake(spark, tmp_path)
    lake.load(fleet.frame(spark))
    lake.gold.refresh()
    [dead] = rows(lake.gold.dead_letter_hours())
    assert (dead["reason"], dead["messages"], dead["message_class"]) == ("too late", 1, 0xC002)
    hours = {row["queue"]: row for row in rows(lake.gold.queue_hours().filter("manager = 'beta'"))}
    assert hours[ORDERS]["is_slow"]
    assert hours[ORDERS]["backlog"] == 1
    assert not hours[".\\system$;deadletter"]["is_slow"]
