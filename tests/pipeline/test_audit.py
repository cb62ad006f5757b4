"""Every kind of fault is put into a history that is otherwise clean, and found; clean histories give none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyspark.sql import SparkSession
from tests.pipeline.histories import Fleet, identifier
from tests.pipeline.lake import Lake

from lanner.pipeline.findings import Verdict

ORDERS = ".\\private$\\orders"


def clean() -> Fleet:
    fleet = Fleet()
    fleet.deliver("alpha", "beta", 3)
    through = fleet.send("alpha", "beta")
    fleet.forward(through, "gamma")
    fleet.forward(through, "gamma")  # it was sent again on the way, and recognised
    fleet.note("alpha", "retransmitted", through["url"], through["message"], destination=through["url"])
    fleet.arrive(through)
    about = {"destination": through["url"], "reason": "it came before"}
    fleet.note("beta", "duplicate", ORDERS, through["message"], **about)
    fleet.acknowledge(through)
    fleet.receive(through)
    fleet.note("beta", "returned", ORDERS, through["message"], destination=through["url"])
    fleet.receive(through)
    fleet.deliver("gamma", "beta", 2)
    local = fleet.new_message("alpha")
    fleet.note("alpha", "sent", ".\\private$\\local", local, destination="DIRECT=OS:alpha\\private$\\local")
    receipt = fleet.new_message("beta")
    back = "DIRECT=HTTP://alpha/msmq/private$/order_queue$"
    told = {"message_class": 255, "label": "QM Ordering Ack", "destination": back}
    fleet.note("beta", "sent", back, receipt, **told)
    fleet.note("beta", "transmitted", back, receipt, **told)
    fleet.note("alpha", "acknowledged", through["url"], receipt, reason="stream 1, number 4", **told)
    return fleet


def end(fleet: Fleet) -> None:
    """Time goes on, and everybody has something to tell."""
    fleet.wait(3600)
    for name in ("alpha", "beta", "gamma"):
        fleet.deliver(name, name, 0)
        message = fleet.new_message(name)
        fleet.note(
            name, "sent", ".\\private$\\later", message, destination=f"DIRECT=OS:{name}\\private$\\later"
        )


def lost(fleet: Fleet) -> str:
    sent = fleet.send("alpha", "beta", "other")
    fleet.acknowledge(sent)
    return str(sent["message"])


def lost_on_the_way(fleet: Fleet) -> str:
    sent = fleet.send("alpha", "beta", stream=None, sequence=None, previous=None)
    fleet.note("alpha", "transmitted", sent["url"], sent["message"], peer="http://gamma", message_class=2)
    fleet.forward(sent, "gamma")
    return str(sent["message"])


def arrived_twice(fleet: Fleet) -> str:
    [sent] = fleet.deliver("alpha", "beta")
    fleet.arrive(sent)
    return str(sent["message"])


def received_twice(fleet: Fleet) -> str:
    [sent] = fleet.deliver("alpha", "beta")
    fleet.receive(sent)
    return str(sent["message"])


def out_of_order(fleet: Fleet) -> str:
    first, second = fleet.send("alpha", "beta"), fleet.send("alpha", "beta")
    for sent in (second, first):
        fleet.arrive(sent, previous=0)
        fleet.acknowledge(sent)
    return str(first["message"])


def unexplained_gap(fleet: Fleet) -> str:
    sent = fleet.send("alpha", "beta")
    fleet.acknowledge(sent)
    fleet.deliver("alpha", "beta")
    return str(sent["message"])


def explained_gap(fleet: Fleet) -> str:
    sent = fleet.send("alpha", "beta")
    ends = {
        "message_class": 0x8002,
        "reason": "the time to reach the queue ran out",
        "destination": sent["url"],
    }
    fleet.note("alpha", "expired", sent["url"], sent["message"], stream=sent["stream"], **ends)
    fleet.deliver("alpha", "beta")
    return str(sent["message"])


def purged_gap(fleet: Fleet) -> str:
    sent = fleet.send("alpha", "beta")
    ends = {"message_class": 0xC001, "reason": "the queue was purged", "destination": sent["url"]}
    fleet.note("alpha", "purged", sent["url"], sent["message"], **ends)
    fleet.deliver("alpha", "beta")
    return str(sent["message"])


def unacknowledged(fleet: Fleet) -> str:
    sent = fleet.send("alpha", "beta")
    fleet.arrive(sent)
    return str(sent["message"])


def unsent(fleet: Fleet) -> str:
    message = fleet.new_message("alpha")
    fleet.note("beta", "arrived", ORDERS, message, destination="DIRECT=HTTP://beta/msmq/private$/orders")
    return message


@pytest.mark.parametrize(
    ("fault", "kind", "severity", "verdict"),
    [
        (lost, "lost", "violation", Verdict.REFUTED),
        (lost_on_the_way, "lost", "violation", Verdict.REFUTED),
        (arrived_twice, "duplicated", "violation", Verdict.REFUTED),
        (received_twice, "duplicated", "violation", Verdict.REFUTED),
        (out_of_order, "out of order", "violation", Verdict.REFUTED),
        (unexplained_gap, "gap", "violation", Verdict.REFUTED),
        (explained_gap, "gap", "explained", Verdict.PROVED),
        (purged_gap, "gap", "explained", Verdict.PROVED),
        (unacknowledged, "unacknowledged", "doubt", Verdict.DOUBTED),
        (unsent, "unsent", "violation", Verdict.REFUTED),
    ],
)
def test_each_fault_is_found_with_its_proof(
    spark: SparkSession,
    tmp_path: Path,
    fault: Callable[[Fleet], str],
    kind: str,
    severity: str,
    verdict: Verdict,
) -> None:
    fleet = clean()
    message = fault(fleet)
    end(fleet)
    lake = Lake(spark, tmp_path)
    lake.load(fleet.frame(spark))
    found = lake.audit()
    assert found.verdict is verdict
    about = [one for one in found.findings if one["message_id"] == message]
    assert [(one["kind"], one["severity"]) for one in about if one["kind"] == kind] == [(kind, severity)]
    # A message that was lost in the middle of a stream leaves a gap as well; nothing else is said of anybody.
    assert {one["kind"] for one in about} <= {kind, "lost", "gap"}
    assert {one["message_id"] for one in found.findings} == {message}
    events = [(one["manager"], one["lsn"]) for one in about[0]["events"]]
    assert sorted(events) == sorted(
        (row["manager"], row["lsn"]) for row in fleet.rows if row["message_id"] == message
    )
    msgspec.json.encode(found)


def test_clean_data_give_no_findings(spark: SparkSession, tmp_path: Path) -> None:
    fleet = clean()
    end(fleet)
    lake = Lake(spark, tmp_path)
    lake.load(fleet.frame(spark))
    found = lake.audit()
    assert (found.verdict, found.findings, found.counts, found.exit_code) == (Verdict.PROVED, [], {}, 0)
    assert found.messages == 10


def test_what_has_just_been_handed_over_is_a_doubt(spark: SparkSession, tmp_path: Path) -> None:
    fleet = clean()
    lost(fleet)
    lake = Lake(spark, tmp_path)
    lake.load(fleet.frame(spark))
    assert lake.audit().counts == {"lost (doubt)": 1}
    later: dict[str, Any] = {"until": fleet.now.timestamp() + 3600}
    assert lake.audit(**later).counts == {"lost (violation)": 1}


def test_what_refutes_is_shown_first(spark: SparkSession, tmp_path: Path) -> None:
    fleet = clean()
    explained_gap(fleet)
    arrived_twice(fleet)
    lost(fleet)  # its destination's history ends with it, so it is a doubt
    lake = Lake(spark, tmp_path)
    lake.load(fleet.frame(spark))
    shown = [one["severity"] for one in lake.audit().findings]
    assert set(shown) == {"violation", "doubt", "explained"}
    assert shown == sorted(shown, key=["violation", "doubt", "explained"].index)


def test_only_a_manager_that_had_nothing_more_to_tell_can_refute(spark: SparkSession, tmp_path: Path) -> None:
    fleet = clean()
    lost(fleet)
    lake = Lake(spark, tmp_path)
    lake.load(fleet.frame(spark))
    later = fleet.now.timestamp() + 3600
    lake.bronze.note_complete([identifier("alpha")], later)
    assert lake.audit().verdict is Verdict.DOUBTED
    lake.bronze.note_complete([identifier("beta")], later)
    lake.bronze.note_complete([identifier("beta")], later - 7200)
    assert lake.audit().verdict is Verdict.REFUTED


def test_missing_history_is_said(spark: SparkSession, tmp_path: Path) -> None:
    fleet = clean()
    end(fleet)
    lake = Lake(spark, tmp_path)
    # Nothing hangs on the retransmission, so nothing but the hole itself is to be found.
    lake.load(fleet.frame(spark, [row for row in fleet.rows if row["event"] != "retransmitted"]))
    found = lake.audit()
    assert found.counts == {"history (doubt)": 1}
    assert found.exit_code == 3


def test_messages_to_strangers_are_counted_and_not_judged(spark: SparkSession, tmp_path: Path) -> None:
    fleet = clean()
    sent = fleet.send("alpha", "windows-box")
    fleet.acknowledge(sent)
    end(fleet)
    lake = Lake(spark, tmp_path)
    lake.load(fleet.frame(spark))
    found = lake.audit()
    assert (found.verdict, found.unobserved) == (Verdict.PROVED, 1)
