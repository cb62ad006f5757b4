"""What stands for options that are left out, and which option goes where."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.pipeline.histories import Fleet
from tests.pipeline.machines import DURABLE, Machine
from tests.pipeline.test_jobs import DIRECTORY, export
from typer.testing import CliRunner

from lanner.cli.app import app
from lanner.config import Config, load_config
from lanner.model.errors import InvalidPropertyError
from lanner.pipeline import audit, command, start
from lanner.pipeline.enterprise import read_enterprise
from lanner.pipeline.settings import ELSEWHERE, JobSettings, PipelineSettings, load_settings

FILE = """
[manager]
quota = 5
[pipeline]
lake = "from-file"
managers = ["http://one:1", "http://two:2"]
grace = 7
[pipeline.spark]
"spark.executor.memory" = "2g"
"""


class Started(Exception):  # noqa: N818  # a session was asked for, which is all that is to be known
    pass


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Instead of a session: what it was to be made of."""
    seen: list[Any] = []

    def make(*arguments: Any) -> None:
        seen.extend(arguments)
        raise Started

    monkeypatch.setattr(command, "make_session", make)
    monkeypatch.setattr(start, "make_session", make)
    return seen


@pytest.fixture
def one_session(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command runs in the session of the tests, and leaves it as it is."""
    monkeypatch.setattr(command, "make_session", lambda *_: spark)
    monkeypatch.setattr(start, "make_session", lambda *_: spark)
    monkeypatch.setattr(spark, "stop", lambda: None)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def in_one_line(arguments: list[str]) -> str:
    outcome = CliRunner().invoke(app, ["pipeline", *arguments])
    assert outcome.exit_code == 1, outcome.output
    [line] = outcome.stderr.strip().splitlines()
    return str(line)


def test_the_pipeline_reads_what_a_manager_reads(here: Path) -> None:
    (here / "lanner.toml").write_text(FILE)
    environment = {"LANNER_PIPELINE_GRACE": "8", "LANNER_PIPELINE_SPARK": "spark.a=1,spark.b=2"}
    whole = load_config(environment=environment)
    alone = load_settings(environment=environment)
    assert whole.config.pipeline == alone.pipeline
    assert alone.pipeline == PipelineSettings(
        lake="from-file",
        managers=("http://one:1", "http://two:2"),
        grace=8,
        spark={"spark.a": "1", "spark.b": "2"},
    )
    assert whole.source_of("pipeline.grace") == "environment LANNER_PIPELINE_GRACE"
    assert load_settings(flags={"pipeline.grace": 9.0, "pipeline.lake": None}).pipeline.grace == 9


def test_every_section_is_read_or_known_to_be_elsewhere() -> None:
    assert set(Config.__struct_fields__) == set(JobSettings.__struct_fields__) | ELSEWHERE


def test_the_default_of_grace_is_that_of_the_audit() -> None:
    assert PipelineSettings().grace == audit.GRACE


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[pipline]\nlake = 'x'", "did you mean pipeline.lake"),
        ("[pipeline]\ngrace = -1", "pipeline.grace"),
        ("[pipeline]\nmanagers = 'http://one:1'", "pipeline.managers"),
        ("[pipeline.spark]\nmemory = '1g'", "begin with spark"),
        ("[pipeline.spark]\nspark.executor.memory = '1g'", "pipeline.spark"),
        ("[pipeline.spark]\n'spark.master' = 'yarn'", "write it as pipeline.master"),
        ("[pipeline.spark]\n'spark.sql.session.timeZone' = 'CET'", "UTC"),
        ("[directory]\nfile = 'x'\n[ldap]\nservers = ['dc']\ngssapi = true", "both set"),
    ],
)
def test_a_wrong_setting_is_told_by_both(here: Path, text: str, said: str) -> None:
    (here / "lanner.toml").write_text(text)
    for load in (load_config, load_settings):
        with pytest.raises(InvalidPropertyError, match=said):
            load(environment={})


def test_settings_need_no_pyspark() -> None:
    code = (
        "import sys; import lanner.config, lanner.pipeline.settings, lanner.pipeline.enterprise;"
        "sys.exit('pyspark' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_an_option_wins_over_the_file(here: Path, asked: list[Any]) -> None:
    (here / "other.toml").write_text(FILE + '[log]\nlevel = "info"\n')
    given = ["refresh", "--config", "other.toml", "--master", "local[1]"]
    with pytest.raises(Started):
        command.main(given)
    CliRunner().invoke(app, ["pipeline", *given])
    assert asked == ["local[1]", {"spark.executor.memory": "2g"}] * 2


def test_jobs_run_with_settings_alone(here: Path, one_session: None, spark: SparkSession) -> None:
    fleet = Fleet()
    fleet.deliver("alpha", "beta", 2)
    fleet.acknowledge(fleet.send("alpha", "beta", "another"))
    fleet.wait(3600)
    fleet.deliver("alpha", "beta", 1)
    export(spark, fleet, here / "exports")
    (here / "enterprise.toml").write_text(DIRECTORY)
    lake = here / "the lake"
    (here / "lanner.toml").write_text(
        f"[pipeline]\nlake = '{lake}'\ngrace = 7200\n[directory]\nfile = 'enterprise.toml'\n"
    )

    def done(*arguments: str, code: int = 0) -> dict[str, Any]:
        outcome = CliRunner().invoke(app, ["pipeline", *arguments, "--json"])
        assert outcome.exit_code == code, outcome.output
        found: dict[str, Any] = json.loads(outcome.stdout)
        return found

    assert done("ingest", "--path", str(here / "exports"))["events"] == 14
    assert done("refresh")["batches"]
    # What was confirmed an hour ago and did not arrive is a doubt with the file's grace, else a loss.
    assert done("audit", code=3)["counts"] == {"lost (doubt)": 1}
    assert done("audit", "--grace", "60", code=4)["counts"] == {"lost (violation)": 1}
    assert done("routes", "--path", "alpha:beta")["paths"][0]["hops"] == ["alpha", "beta"]
    assert spark.read.parquet(f"{lake}/routes/pairs").count() == 4
    assert command.main(["audit"]) == 3


def test_managers_and_their_token_come_from_settings(
    here: Path, one_session: None, machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.client.send(DURABLE, b"body", durable=True)
    token = machine.data / "token"
    (here / "lanner.toml").write_text(
        f"[pipeline]\nlake = '{here}/lake'\nmanagers = ['{machine.url}']\ntoken_file = '{token}'\n"
    )
    assert command.main(["ingest"]) == 0
    assert json.loads(capsys.readouterr().out)["events"] == 1
    machine.client.receive(DURABLE)
    outcome = CliRunner().invoke(app, ["pipeline", "ingest", "--json"])
    assert json.loads(outcome.stdout)["events"] == 1


def test_what_to_do_is_said_in_one_line(
    here: Path, one_session: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "pipeline.managers" in in_one_line(["ingest"])
    assert "give either" in in_one_line(["ingest", "--managers", "http://x", "--path", "y"])
    assert "ldap.servers" in in_one_line(["routes"])
    assert "cannot be read" in in_one_line(["routes", "--directory", "none.toml"])
    assert "cannot read none.toml" in in_one_line(["audit", "--config", "none.toml"])
    for job, said in (("ingest", "pipeline.managers"), ("routes", "pipeline.directory")):
        assert command.main([job]) == 1
        [line] = capsys.readouterr().err.strip().splitlines()
        assert said in line


def test_a_failure_of_spark_is_said_in_one_line(
    here: Path, one_session: None, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = str(here / "lake")
    cases: list[tuple[list[str], str]] = [
        (["ingest", "--path", str(here / "none"), "--to", lake], "there is no history at"),
        (["ingest", "--managers", "http://127.0.0.1:9", "--to", lake], "there is no token for"),
        (["refresh", "--to", "nonsense://x/lake"], 'No FileSystem for scheme "nonsense"'),
    ]
    for arguments, said in cases:
        assert command.main(arguments) == 1
        assert said in capsys.readouterr().err.strip().splitlines()[-1]
        outcome = CliRunner().invoke(app, ["pipeline", *arguments, "--json"])
        assert outcome.exit_code == 1
        [line] = outcome.stderr.strip().splitlines()
        assert said in line
        assert "Traceback" not in line


def test_a_file_comes_before_the_directory_of_the_manager(here: Path) -> None:
    for name in ("One", "Two"):
        (here / f"{name}.toml").write_text(DIRECTORY.replace('"Test"', f'"{name}"'))
    one, two = {"directory.file": "One.toml"}, {"pipeline.directory": "Two.toml"}
    ldap = {"ldap.servers": ["dc"], "ldap.gssapi": True}
    for flags, name in ((one, "One"), (one | two, "Two"), (ldap | two, "Two")):
        assert read_enterprise(load_settings(environment={}, flags=flags)).enterprise.name == name


def test_a_master_that_is_none_is_told_without_java() -> None:
    with pytest.raises(InvalidPropertyError, match="no master"):
        start.make_session("spark-1:7077")


def test_spark_submit_has_the_master(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    start.check_master("")
    with pytest.raises(InvalidPropertyError, match="spark-submit --master yarn"):
        start.check_master("yarn")
