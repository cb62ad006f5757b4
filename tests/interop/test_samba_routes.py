"""Routes of an enterprise in a Samba domain controller are those of the same enterprise in a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.interop.ldap_enterprise import TEXT, with_identifiers
from tests.interop.samba import USER, DomainController
from tests.pipeline.conftest import spark as spark
from typer.testing import CliRunner

from lanner.cli.app import app
from lanner.pipeline.enterprise import read_enterprise
from lanner.pipeline.settings import load_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest.importorskip("pyspark", reason="the package pyspark is missing (extra lanner[spark])")
pytestmark = [pytest.mark.interop, pytest.mark.filterwarnings("ignore:ssl.match_hostname")]  # ldap3 uses it

TABLES = ("sources", "gates", "pairs")


@pytest.fixture
def settings_file(controller: DomainController, tmp_path: Path) -> Path:
    """What ``lanner serve`` would be started with."""
    file = tmp_path / "ldap.toml"
    file.write_text(
        f"[ldap]\nservers = ['{controller.address}']\nuser = '{USER}'\n"
        f"password_file = '{controller.password_file}'\nca_file = '{controller.ca_file}'\n"
    )
    return file


def test_ldap_and_a_file_give_the_same_tables(
    spark: SparkSession,
    settings_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("lanner.pipeline.start.make_session", lambda *_: spark)
    monkeypatch.setattr(spark, "stop", lambda: None)

    def tables(lake: str, *options: str) -> dict[str, list[Any]]:
        command = ["pipeline", "routes", "--to", str(tmp_path / lake), "--json", "--path", "LON-1:ROM-1"]
        outcome = CliRunner().invoke(app, [*command, *options])
        assert outcome.exit_code == 0, outcome.output
        done = json.loads(outcome.stdout)
        read = {name: spark.read.parquet(f"{done['tables']}/{name}").collect() for name in TABLES}
        return {name: sorted(map(tuple, rows)) for name, rows in read.items()} | {"paths": done["paths"]}

    over_ldap = tables("ldap", "--config", str(settings_file))
    file = tmp_path / "enterprise.toml"
    found = read_enterprise(load_settings(file=settings_file, environment={}))
    file.write_text(with_identifiers(TEXT, found))
    assert tables("file", "--directory", str(file)) == over_ldap
    # Five sites and the gate that belongs to two; London, Paris, Rome and Oslo reach each other.
    assert [row[3] for row in over_ldap["sources"] if row[1] == "gate"] == ["LON-GW"]
    assert len(over_ldap["sources"]) == 6
    assert {row[1] for row in over_ldap["gates"]} >= {"LON-GW", "PAR-GW", "PAR-GW2", "ROM-GW"}
    assert over_ldap["paths"][0]["hops"][-1] == "ROM-1"


def test_a_wrong_password_is_said_in_one_line(settings_file: Path, tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("wrong")
    options = ["--config", str(settings_file), "--to", str(tmp_path / "lake")]
    outcome = CliRunner().invoke(
        app, ["pipeline", "routes", *options], env={"LANNER_LDAP_PASSWORD_FILE": str(password)}
    )
    assert outcome.exit_code == 1
    [line] = outcome.stderr.strip().splitlines()
    assert "password is wrong" in line
