"""However a history is cut into batches, the tables in the end are those of one batch."""

from __future__ import annotations

import os
import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.pipeline.histories import Fleet
from tests.pipeline.lake import Lake

MANAGERS = ("alpha", "beta", "gamma")


def three_days(chance: random.Random) -> Fleet:
    """Messages of three managers, some of which end badly, or late, or not at all."""
    fleet = Fleet(datetime(2026, 3, 1, 20, 0, tzinfo=UTC))
    waiting: list[dict[str, Any]] = []
    for _ in range(60):
        fleet.wait(chance.uniform(0, 3600))
        sender, receiver = chance.sample(MANAGERS, 2)
        sent = fleet.send(sender, receiver)
        if chance.random() < 0.1:
            ends = {"destination": sent["url"], "message_class": 0x8003, "reason": "time"}
            fleet.note(sender, "expired", sent["url"], sent["message"], **ends)
            continue
        fleet.arrive(sent)
        fleet.acknowledge(sent)
        waiting.append(sent)
        while waiting and chance.random() < 0.5:
            fleet.receive(waiting.pop(chance.randrange(len(waiting))))
    return fleet


def cut(fleet: Fleet, chance: random.Random, batches: int, *, late: bool) -> list[list[dict[str, Any]]]:
    """The rows in several batches: in the order of time, or each manager read at other times."""
    if not late:
        edges = sorted(chance.sample(range(1, len(fleet.rows)), batches - 1))
        return [fleet.rows[begin:end] for begin, end in zip([0, *edges], [*edges, None], strict=True)]
    parts: list[list[dict[str, Any]]] = [[] for _ in range(batches)]
    for manager in MANAGERS:
        rows = [row for row in fleet.rows if row["manager"] == manager]
        edges = sorted(chance.sample(range(1, len(rows)), batches - 1))
        for part, begin, end in zip(parts, [0, *edges], [*edges, None], strict=True):
            part.extend(rows[begin:end])
    return parts


def rows_of(frame: DataFrame) -> list[str]:
    return sorted(str(row.asDict(recursive=True)) for row in frame.collect())


def tables_of(lake: Lake) -> dict[str, list[str]]:
    gold = lake.gold
    return {
        "messages": rows_of(lake.silver.messages()),
        "queues": rows_of(gold.queue_hours()),
        "routes": rows_of(gold.route_hours()),
        "dead letters": rows_of(gold.dead_letter_hours()),
    }


def prove(spark: SparkSession, root: Path, seed: int, batches: int, *, late: bool) -> None:
    chance = random.Random(seed)
    fleet = three_days(chance)
    whole, cut_up = Lake(spark, root / "whole"), Lake(spark, root / "cut")
    whole.load(fleet.frame(spark))
    whole.gold.refresh()
    for number, rows in enumerate(cut(fleet, chance, batches, late=late)):
        cut_up.load(fleet.frame(spark, rows), str(number))
        cut_up.gold.refresh()
    assert tables_of(cut_up) == tables_of(whole)
    assert cut_up.audit().counts == whole.audit().counts


def test_messages_of_one_day_from_two_batches(spark: SparkSession, tmp_path: Path) -> None:
    fleet = Fleet()
    first = fleet.deliver("alpha", "beta", 3)
    count = len(fleet.rows)
    second = fleet.deliver("beta", "alpha", 2)
    lake = Lake(spark, tmp_path)
    lake.load(fleet.frame(spark, fleet.rows[:count]), "1")
    lake.load(fleet.frame(spark, fleet.rows[count:]), "2")
    assert lake.messages().keys() == {sent["message"] for sent in first + second}


@pytest.mark.parametrize("late", [False, True])
def test_batches_make_no_difference(spark: SparkSession, tmp_path: Path, late: bool) -> None:
    prove(spark, tmp_path, seed=int(late), batches=3, late=late)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(int(os.environ.get("LANNER_SOAK_SPLITS", "10"))))
def test_many_ways_to_cut(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    prove(spark, tmp_path, seed=100 + seed, batches=5, late=bool(seed % 2))
