from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812
from tests.pipeline.histories import Fleet, identifier
from tests.pipeline.lake import Lake


def test_events_are_kept_by_day_and_manager(spark: SparkSession, tmp_path: Path) -> None:
    fleet = Fleet(datetime(2026, 3, 1, 23, 59, 59, tzinfo=UTC))
    fleet.deliver("alpha", "beta", 2)
    lake = Lake(spark, tmp_path)
    facts = lake.bronze.add(fleet.frame(spark), "000001")
    assert (facts["events"], facts["faulty"]) == (8, 0)
    assert facts["days"] == ["2026-03-01", "2026-03-02"]
    events = tmp_path / "bronze" / "batch=000001" / "commit=0000000001" / "table=events"
    assert {path.name for path in (events / "day=2026-03-02").iterdir()} == {"manager=alpha", "manager=beta"}
    rows = lake.bronze.events().orderBy("manager", "lsn").collect()
    assert [(row["manager"], row["lsn"]) for row in rows] == sorted(
        (row["manager"], row["lsn"]) for row in fleet.rows
    )


def test_a_batch_that_is_written_again_is_written_over(spark: SparkSession, tmp_path: Path) -> None:
    fleet = Fleet()
    fleet.deliver("alpha", "beta", 2)
    lake = Lake(spark, tmp_path)
    lake.bronze.add(fleet.frame(spark), "1")
    lake.bronze.add(fleet.frame(spark), "1")
    assert lake.bronze.events().count() == 8
    assert [one.missing for one in lake.bronze.coverage()] == [0, 0]


def test_events_of_an_earlier_batch_are_left_out(spark: SparkSession, tmp_path: Path) -> None:
    fleet = Fleet()
    fleet.deliver("alpha", "beta", 2)
    lake = Lake(spark, tmp_path)
    lake.bronze.add(fleet.frame(spark, fleet.rows[:5]), "1")
    assert lake.bronze.add(fleet.frame(spark), "2")["events"] == 3
    doubled = fleet.frame(spark).unionByName(fleet.frame(spark))
    assert lake.bronze.add(doubled, "3")["events"] == 0
    assert lake.bronze.events().count() == 8


def test_a_new_manager_with_an_old_name_counts_anew(spark: SparkSession, tmp_path: Path) -> None:
    fleet = Fleet()
    fleet.deliver("alpha", "beta", 1)
    lake = Lake(spark, tmp_path)
    lake.bronze.add(fleet.frame(spark), "1")
    replaced = fleet.frame(spark).withColumn("manager_id", F.lit(identifier("other")))
    assert lake.bronze.add(replaced, "2")["events"] == 4


def test_what_is_no_event_goes_into_quarantine(spark: SparkSession, tmp_path: Path) -> None:
    fleet = Fleet()
    good = fleet.deliver("alpha", "beta", 1)[0]
    for wrong in (
        {"event": "teleported"},
        {"message_id": "nonsense"},
        {"time": datetime(1970, 1, 1, tzinfo=UTC)},
        {"time": datetime(2999, 1, 1, tzinfo=UTC)},
        {"size": -1},
        {"lsn": 0},
        {"manager": ""},
    ):
        fleet.note("gamma", "sent", ".\\private$\\q", good["message"]).update(wrong)
    fleet.note("gamma", "sent", ".\\private$\\q", good["message"], body=b"x" * 4_000_000)
    lake = Lake(spark, tmp_path)
    facts = lake.bronze.add(fleet.frame(spark), "1")
    assert (facts["events"], facts["faulty"]) == (5, 7)
    found = {row["fault"] for row in lake.bronze.quarantine().collect()}
    assert found == {
        "the event is unknown: teleported",
        "its message has no identifier",
        "its clock is wrong",
        "its clock is ahead of time",
        "its size is wrong",
        "it has no LSN",
        "it does not say which manager it is from",
    }
    assert lake.bronze.events().filter(F.length("body") == 4_000_000).count() == 1


def test_an_export_without_identifiers_gets_them_from_what_was_sent(
    spark: SparkSession, tmp_path: Path
) -> None:
    fleet = Fleet()
    fleet.deliver("alpha", "beta", 1)
    lake = Lake(spark, tmp_path)
    lake.bronze.add(fleet.frame(spark).drop("manager_id"), "1")
    found = {one.manager: one.manager_id for one in lake.bronze.coverage()}
    assert found == {"alpha": identifier("alpha"), "beta": "beta"}
