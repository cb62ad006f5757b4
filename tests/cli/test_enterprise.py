"""The commands about routes and directories, with a running manager."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.client.conftest import ServiceThread
from typer.testing import CliRunner, Result

from lanner.cli.app import app

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "enterprise.toml"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[ServiceThread]:
    file = tmp_path / "enterprise.toml"
    file.write_text(EXAMPLE.read_text())
    thread = ServiceThread(
        tmp_path / "data",
        {"directory.file": str(file), "network.discovery_port": 0, "manager.name": "LON-GW"},
    )
    thread.start()
    yield thread
    thread.stop()


def run(service: ServiceThread, *arguments: str) -> Result:
    result = CliRunner().invoke(app, [*arguments, "--data", str(service.data)])
    assert result.exit_code == 0, result.output
    return result


def test_what_the_manager_knows_is_shown(service: ServiceThread) -> None:
    text = run(service, "directory", "show").stdout
    assert "Contoso" in text
    assert "London" in text
    shown = json.loads(run(service, "directory", "show", "--refresh", "--json").stdout)
    assert (shown["enterprise"], shown["manager"], shown["online"]) == ("Contoso", "LON-GW", True)


def test_routes_come_from_the_manager(service: ServiceThread) -> None:
    explained = json.loads(run(service, "route", "explain", "LON-1", "ROM-1", "--json").stdout)
    assert explained["hops"] == ["LON-1", "LON-GW", "PAR-GW", "ROM-GW", "ROM-1"]
    assert "Paris" in run(service, "route", "table", "LON-GW").stdout


def test_an_import_replaces_the_managers_directory(service: ServiceThread, tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    other.write_text(EXAMPLE.read_text().replace('name = "Contoso"', 'name = "Fabrikam"'))
    assert "imported" in run(service, "directory", "import", str(other)).stdout
    assert json.loads(run(service, "directory", "show", "--json").stdout)["enterprise"] == "Fabrikam"
    exported = run(service, "directory", "export").stdout
    assert "Fabrikam" in exported
