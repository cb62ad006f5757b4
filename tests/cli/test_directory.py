"""``lanner directory``: import, export, check."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.test_route import ENTERPRISE
from typer.testing import CliRunner, Result

from lanner.cli.app import app
from lanner.directory.local_file import load_file


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "contoso.toml"
    path.write_text(ENTERPRISE)
    return path


def directory(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["directory", *map(str, arguments)])


def test_check_tells_place_and_fix_and_exits_1_for_errors(file: Path) -> None:
    result = directory("check", file)
    assert result.exit_code == 1
    assert f"error: {file}:10 ([[site]] 4): no usable links lead from Island to London" in result.stdout
    assert "    fix: add a link with gates at both ends" in result.stdout
    assert result.stdout.endswith("errors: 1, warnings: 0\n")
    [found] = [json.loads(line) for line in directory("check", file, "--json").stdout.splitlines()]
    assert found["kind"] == "unreachable-site"
    assert found["severity"] == "error"


def test_check_of_a_good_file(file: Path) -> None:
    text = file.read_text().replace('[[site]]\nname = "Island"\n', "")
    file.write_text(text.replace('[[manager]]\nname = "ISL-1"\nsites = ["Island"]\n', ""))
    result = directory("check", file)
    assert (result.exit_code, result.stdout) == (0, "nothing is wrong\n")


def test_check_of_a_file_that_cannot_be_read_at_all(file: Path) -> None:
    file.write_text("[enterprise]\nname = \n")
    result = directory("check", file)
    assert result.exit_code == 1
    assert f"error: {file}:2:8" in result.stdout
    assert json.loads(directory("check", file, "--json").stdout)["kind"] == "unreadable"


def test_check_of_other_sources(file: Path) -> None:
    for arguments, said in (
        (("ldap", "ldap://dc1"), "a password is never sent without TLS"),
        (("ldaps://dc1",), "there is nobody to log in as"),
        (("ldap", "gopher://dc1"), "is no LDAP URL"),
    ):
        assert said in directory("check", *arguments).stderr
    assert "one directory is checked at a time" in directory("check", file, file).stderr


def test_export_has_all_identifiers_and_reads_as_the_same(file: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.toml"
    assert "4 sites, 3 links" in directory("export", "-o", output, "--enterprise", file).stdout
    before, after = load_file(file).map, load_file(output).map
    assert after.machines == before.machines
    assert after.links == before.links
    assert output.read_text().count("\nid = ") == 1 + 4 + 3 + 6
    shown = directory("export", "--enterprise", file)
    assert shown.stdout == output.read_text()


def test_import_refuses_errors_unless_forced(file: Path, tmp_path: Path) -> None:
    target = tmp_path / "target.toml"
    result = directory("import", file, "--enterprise", target)
    assert result.exit_code == 1
    assert "was not imported: the checks find errors in it" in result.stderr
    assert not target.exists()
    result = directory("import", file, "--enterprise", target, "--force", "--json")
    assert json.loads(result.stdout) == {"sites": 4, "links": 3, "networks": 0, "managers": 6, "queues": 0}
    assert load_file(target).map.machines == load_file(file).map.machines


def test_what_cannot_be_written(file: Path) -> None:
    result = directory("export", "-o", "/nowhere/x.toml", "--enterprise", file)
    assert result.exit_code == 1
    assert "/nowhere/x.toml cannot be written: No such file" in result.stderr
