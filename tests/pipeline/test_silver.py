from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.pipeline.histories import START, Fleet
from tests.pipeline.lake import Lake


def test_a_message_that_went_through_a_third_manager(spark: SparkSession, tmp_path: Path) -> None:
    fleet = Fleet()
    sent = fleet.send("alpha", "beta", label="hello", size=321)
    fleet.forward(sent, "gamma")
    fleet.arrive(sent)
    fleet.acknowledge(sent)
    fleet.receive(sent)
    lake = Lake(spark, tmp_path)
    lake.load(fleet.frame(spark))
    row = lake.messages()[sent["message"]]
    assert (row["state"], row["kind"], row["label"], row["size"]) == ("received", "message", "hello", 321)
    assert (row["sent_by"], row["arrived_by"], row["received_by"]) == ("alpha", "beta", "beta")
    assert (row["copies"], row["forwards"], row["arrivals"], row["receives"], row["waiting"]) == (
        1,
        1,
        1,
        1,
        0,
    )
    assert row["latency"] == pytest.approx(1.0)
    assert row["time_in_queue"] == pytest.approx(1.1)
    assert row["end_to_end"] == pytest.approx(2.1)
    hops = [(hop["from"], hop["to"], round(hop["seconds"], 2)) for hop in row["hops"]]
    assert hops == [("alpha", "gamma", 0.25), ("gamma", "beta", 0.75)]
    assert row["is_transactional"]
    assert not row["is_express"]


def test_the_life_of_a_dead_letter(spark: SparkSession, tmp_path: Path) -> None:
    fleet = Fleet()
    sent = fleet.send("alpha", "beta")
    again = {"destination": sent["url"], "peer": "http://beta"}
    fleet.note("alpha", "retransmitted", sent["url"], sent["message"], **again)
    fleet.note("beta", "rejected", ".\\private$\\orders", sent["message"], reason="not next", peer="x")
    ends = {"destination": sent["url"], "message_class": 0x8000, "reason": "no such queue"}
    fleet.note("alpha", "rejected", sent["url"], sent["message"], **ends)
    fleet.note("alpha", "dead-lettered", ".\\system$;deadxact", sent["message"], **ends)
    lake = Lake(spark, tmp_path)
    lake.load(fleet.frame(spark))
    row = lake.messages()[sent["message"]]
    assert row["state"] == "dead-lettered"
    assert (row["retransmissions"], row["refusals"], row["endings"], row["waiting"]) == (1, 1, 1, 0)
    assert (row["dead_letter_queue"], row["dead_letter_class"]) == (".\\system$;deadxact", 0x8000)
    assert (row["ended_event"], row["ended_reason"], row["ended_by"]) == (
        "rejected",
        "no such queue",
        "alpha",
    )


def test_late_events_complete_the_row_that_was_there(spark: SparkSession, tmp_path: Path) -> None:
    fleet = Fleet(datetime(2026, 3, 1, 23, 59, 58, tzinfo=UTC))
    done = fleet.deliver("alpha", "beta", 4)
    at_alpha = [row for row in fleet.rows if row["manager"] == "alpha"]
    at_beta = [row for row in fleet.rows if row["manager"] == "beta"]
    late = Lake(spark, tmp_path / "late")
    late.load(fleet.frame(spark, at_beta[4:]), "1")
    late.load(fleet.frame(spark, at_alpha), "2")
    late.load(fleet.frame(spark, at_beta[:4]), "3")
    at_once = Lake(spark, tmp_path / "once")
    at_once.load(fleet.frame(spark))
    assert len(done) == 4
    assert late.messages() == at_once.messages()


def test_a_refresh_without_news_does_nothing(spark: SparkSession, tmp_path: Path) -> None:
    fleet = Fleet()
    fleet.deliver("alpha", "beta", 1)
    lake = Lake(spark, tmp_path)
    lake.load(fleet.frame(spark))
    before = lake.silver.manifest()
    assert lake.silver.refresh().batches == ()
    lake.bronze.add(fleet.frame(spark), "1")  # the same batch, replayed
    assert lake.silver.refresh().batches == ()
    assert lake.silver.manifest() == before


def test_a_job_that_died_before_its_commit_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    fleet = Fleet()
    fleet.deliver("alpha", "beta", 1)
    lake = Lake(spark, tmp_path)
    lake.bronze.add(fleet.frame(spark), "1")
    # What an attempt that was killed has left: rows, and no manifest.
    fleet.frame(spark).write.parquet(str(tmp_path / "silver" / "commit=0000000001" / "day=2026-03-01"))
    lake.silver.refresh()
    assert len(lake.messages()) == 1


def test_clocks_that_disagree_give_no_latency_and_no_other_row(spark: SparkSession, tmp_path: Path) -> None:
    fleet = Fleet()
    fleet.skew["beta"] = -3600.0
    [sent] = fleet.deliver("alpha", "beta", 1)
    lake = Lake(spark, tmp_path)
    lake.load(fleet.frame(spark))
    row = lake.messages()[sent["message"]]
    assert row["clock_suspect"]
    assert row["latency"] is None
    assert row["time_in_queue"] == pytest.approx(1.1)
    assert row["hops"][0]["seconds"] == pytest.approx(-3599.5)
    assert row["sent_at"].astimezone(UTC) == START
