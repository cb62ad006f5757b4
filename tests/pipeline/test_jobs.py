"""The jobs from exported files to the page, and the commands that run them."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812
from tests.pipeline.histories import Fleet, identifier
from tests.pipeline.machines import DURABLE, Machine
from tests.routing.worlds import world
from typer.testing import CliRunner

from lanner.cli.app import app
from lanner.directory.local_file import load_file
from lanner.pipeline import command, jobs
from lanner.pipeline.findings import Verdict
from lanner.pipeline.jobs import Lake

DIRECTORY = """
[enterprise]
name = "Test"
[[site]]
name = "London"
[[site]]
name = "Paris"
[[manager]]
name = "alpha"
sites = ["London"]
routing = true
[[manager]]
name = "beta"
sites = ["Paris"]
routing = true
[[link]]
sites = ["London", "Paris"]
cost = 3
gates = ["alpha", "beta"]
"""

SCENARIOS = """
[[scenario]]
name = "dearer"
cost = [["London", "Paris", 9]]
[[scenario]]
name = "beta down"
down = ["beta"]
"""


def export(spark: SparkSession, fleet: Fleet, directory: Path) -> None:
    """One Parquet file for each manager, as ``lanner history export`` writes them: nobody's name in it."""
    directory.mkdir()
    for manager in fleet.lsn:
        rows = fleet.frame(spark).filter(F.col("manager") == manager).drop("manager", "manager_id")
        pyarrow.parquet.write_table(rows.toArrow(), directory / f"{manager}.parquet")


def test_from_exports_to_the_page(spark: SparkSession, tmp_path: Path) -> None:
    fleet = Fleet()
    fleet.deliver("alpha", "beta", 5)
    export(spark, fleet, tmp_path / "exports")
    root = str(tmp_path / "lake")
    # Identifiers come from a second look at the same files, which must not filter the first.
    assert jobs.ingest_files(spark, root, str(tmp_path / "exports"))["events"] == 20
    assert jobs.ingest_files(spark, root, str(tmp_path / "exports"))["events"] == 20
    coverage = Lake.at(spark, root).bronze.coverage()
    assert {one.manager: one.events for one in coverage} == {"alpha": 10, "beta": 10}
    assert identifier("alpha") in {one.manager_id for one in coverage}
    page = tmp_path / "report.html"
    steps: list[str] = []
    judged = jobs.write_report(spark, root, str(page), title="Five <messages>", say=steps.append)
    assert judged.verdict is Verdict.PROVED
    assert steps == ["messages (silver)", "envelopes", "hours (gold)", "judging", "drawing"]
    text = page.read_text()
    assert "Five &lt;messages&gt;" in text
    assert text.count("<svg") == 4
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")  # nothing is loaded from anywhere
    (tmp_path / "enterprise.toml").write_text(DIRECTORY)
    (tmp_path / "changes.toml").write_text(SCENARIOS)
    done = jobs.run_routes(
        spark,
        root,
        load_file(tmp_path / "enterprise.toml").map,
        pairs=[("alpha", "beta")],
        scenarios=str(tmp_path / "changes.toml"),
    )
    assert done["changes"] == {"dearer": 2, "beta down": 4 - 2}
    assert done["paths"][0]["hops"] == ["alpha", "beta"]
    load = spark.read.parquet(f"{root}/routes/link_load").collect()
    assert [(row["from_site"], row["to_site"], row["messages"]) for row in load] == [("London", "Paris", 5)]


def test_damaged_lines_go_into_quarantine(spark: SparkSession, tmp_path: Path) -> None:
    fleet = Fleet()
    fleet.deliver("alpha", "beta", 1)
    lines = []
    for row in fleet.rows:
        written = {name: value for name, value in row.items() if name not in ("manager", "manager_id")}
        written["time"] = row["time"].timestamp()
        written["body"] = base64.b64encode(b"body").decode()
        if written["stream"] is not None:
            written["stream"] = 2**64 - 5
        if row["manager"] == "alpha":
            lines.append(json.dumps(written))
    lines.insert(1, lines[0][:50])
    lines.append("\x00\x01 not JSON")
    (tmp_path / "alpha.jsonl").write_text("\n".join(lines) + "\n")
    root = str(tmp_path / "lake")
    facts = jobs.ingest_files(spark, root, str(tmp_path / "alpha.jsonl"))
    assert (facts["events"], facts["faulty"]) == (2, 2)
    lake = Lake.at(spark, root)
    [first, _] = lake.bronze.events().orderBy("lsn").collect()
    assert (first["manager"], first["stream"], bytes(first["body"])) == ("alpha", -5, b"body")
    assert first["time"].timestamp() == fleet.rows[0]["time"].timestamp()
    assert {row["raw"] for row in lake.bronze.quarantine().collect()} == {lines[1], lines[-1]}


def test_commands_do_not_need_pyspark_to_be_listed() -> None:
    code = "import sys; import lanner.cli.app; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_missing_pyspark_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    outcome = CliRunner().invoke(app, ["pipeline", "refresh"])
    assert outcome.exit_code == 1
    assert "pip install 'lanner[spark]'" in outcome.stderr
    assert len(outcome.stderr.strip().splitlines()) == 1


def test_a_missing_java_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    outcome = CliRunner().invoke(app, ["pipeline", "refresh"])
    assert outcome.exit_code == 1
    assert "openjdk-17-jre-headless" in outcome.stderr


def run_alone(directory: Path, *arguments: str, **spark: str) -> subprocess.CompletedProcess[str]:
    """The command in a process, and with a Java, of its own."""
    settings = ",".join(f"spark.{name}={value}" for name, value in spark.items())
    return subprocess.run(
        [sys.executable, "-m", "lanner", "pipeline", *arguments],
        cwd=directory,
        env=os.environ | {"LANNER_PIPELINE_SPARK": settings},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_spark_and_java_say_nothing_of_themselves(tmp_path: Path) -> None:
    outcome = run_alone(tmp_path, "refresh")
    assert outcome.returncode == 0, outcome.stderr
    assert all(re.fullmatch(r" *[0-9.]+ s  .+", line) for line in outcome.stderr.splitlines())


def test_a_java_that_does_not_start_is_said_in_one_line(tmp_path: Path) -> None:
    outcome = run_alone(tmp_path, "refresh", **{"driver.memory": "much"})
    assert outcome.returncode == 1
    [started, said] = outcome.stderr.splitlines()
    assert "starting Spark" in started
    assert said.startswith("lanner: Java could not be started for Spark (look at pipeline.spark")


def test_the_audit_ends_with_its_verdict(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet = Fleet()
    [sent] = fleet.deliver("alpha", "beta", 1)
    fleet.arrive(sent)
    lake = Lake.at(spark, str(tmp_path))
    lake.bronze.add(fleet.frame(spark), "1")
    lake.silver.refresh()
    monkeypatch.setattr(command, "make_session", lambda *_: spark)
    assert command.main(["audit", "--to", str(tmp_path)]) == 4
    found = json.loads(capsys.readouterr().out)
    assert (found["verdict"], found["counts"]) == ("refuted", {"duplicated (violation)": 1})
    assert len(found["findings"][0]["events"]) == 5


def test_a_wrong_scenario_is_told(tmp_path: Path) -> None:
    file = tmp_path / "changes.toml"
    file.write_text('[[scenario]]\nname = "x"\ndown = ["nobody"]\n')
    with pytest.raises(Exception, match="nobody is not in the directory"):
        jobs.read_scenarios(file, world({"AB": 1}))


def test_managers_are_read_once_and_what_is_new_later(
    spark: SparkSession, tmp_path: Path, machine: Machine
) -> None:
    root = str(tmp_path / "lake")
    options = {"token": machine.token}
    for number in range(3):
        machine.client.send(DURABLE, f"body {number}".encode(), durable=True)
    assert jobs.ingest_managers(spark, root, machine.url, options=options)["events"] == 3
    machine.client.receive(DURABLE)
    assert jobs.ingest_managers(spark, root, machine.url, options=options)["events"] == 1
    assert jobs.ingest_managers(spark, root, machine.url, options=options)["events"] == 0
    jobs.refresh(spark, root)
    states = [row["state"] for row in Lake.at(spark, root).silver.messages().collect()]
    assert sorted(states) == ["arrived", "arrived", "received"]
    assert jobs.run_audit(spark, root).verdict is Verdict.PROVED


def test_a_checkpoint_that_is_gone_costs_nothing(
    spark: SparkSession, machine: Machine, tmp_path: Path
) -> None:
    root = str(tmp_path / "lake")
    options = {"token": machine.token}
    for count in (3, 2):  # two batches
        machine.send(count)
        assert jobs.ingest_managers(spark, root, machine.url, options=options)["events"] == count
    shutil.rmtree(tmp_path / "lake" / "_checkpoints")
    machine.send(1)
    assert jobs.ingest_managers(spark, root, machine.url, options=options)["events"] == 1
    events = Lake.at(spark, root).bronze.events()
    assert sorted(row["lsn"] for row in events.select("lsn").collect()) == list(range(1, 7))


def test_what_managers_had_to_tell_is_known_to_be_complete(
    spark: SparkSession, machine: Machine, tmp_path: Path
) -> None:
    root = str(tmp_path / "lake")
    before = time.time()
    for _ in range(2):  # there is nothing to read, and that is known, too
        jobs.ingest_managers(spark, root, machine.url, options={"token": machine.token})
    complete = Lake.at(spark, root).bronze.complete_until()
    assert complete.keys() == {machine.id}
    assert before <= complete[machine.id] <= time.time()
