"""``lanner route``: what it prints for people and programs, and how it ends."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner, Result

from lanner.cli.app import app

ENTERPRISE = """
[enterprise]
name = "Contoso"
[[site]]
name = "London"
[[site]]
name = "Paris"
[[site]]
name = "New-York"
[[site]]
name = "Island"
[[link]]
sites = ["London", "Paris"]
cost = 3
gates = ["LON-GW", "PAR-GW"]
[[link]]
sites = ["Paris", "New-York"]
cost = 2
gates = ["PAR-GW", "NYC-GW"]
[[link]]
sites = ["London", "New-York"]
cost = 7
gates = ["LON-GW", "NYC-GW"]
[[manager]]
name = "LON-GW"
sites = ["London"]
routing = true
[[manager]]
name = "PAR-GW"
sites = ["Paris"]
routing = true
[[manager]]
name = "NYC-GW"
sites = ["New-York"]
routing = true
[[manager]]
name = "LON-1"
sites = ["London"]
[[manager]]
name = "NYC-1"
sites = ["New-York"]
[[manager]]
name = "ISL-1"
sites = ["Island"]
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "contoso.toml"
    path.write_text(ENTERPRISE)
    return str(path)


def route(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["route", *arguments])


def told(*arguments: str) -> list[dict[str, object]]:
    result = route(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_table(file: str) -> None:
    assert told("table", "lon-gw", "--enterprise", file) == [
        {"site": "London", "next": "London", "cost": 0, "gates": ["LON-GW"]},
        {"site": "Paris", "next": "Paris", "cost": 3, "gates": ["PAR-GW"]},
        {"site": "New-York", "next": "Paris", "cost": 5, "gates": ["PAR-GW"]},
    ]
    shown = route("table", "LON-GW", "--enterprise", file).stdout
    assert "next site" in shown
    assert "New-York" in shown


def test_the_table_of_somebody_who_is_no_gate_is_empty(file: str) -> None:
    assert "is no site gate" in route("table", "LON-1", "--enterprise", file).stdout
    assert told("table", "LON-1", "--enterprise", file) == []


def test_explain(file: str) -> None:
    assert told("explain", "LON-1", "NYC-1", "--enterprise", file) == [
        {
            "hops": ["LON-1", "LON-GW", "PAR-GW", "NYC-GW", "NYC-1"],
            "cost": 5,
            "steps": [
                {"at": "LON-1", "rule": "MS-MQBR 3.1.5.1", "next": ["LON-GW"]},
                {"at": "LON-GW", "rule": "MS-MQBR 3.1.5.3", "next": ["PAR-GW"]},
                {"at": "PAR-GW", "rule": "MS-MQBR 3.1.5.3", "next": ["NYC-GW"]},
                {"at": "NYC-GW", "rule": "MS-MQBR 3.1.5.3", "next": ["NYC-1"]},
            ],
        }
    ]
    shown = route("explain", "LON-1", "NYC-1", "--enterprise", file).stdout
    assert shown.startswith("LON-1 -> LON-GW -> PAR-GW -> NYC-GW -> NYC-1, cost 5\n")
    assert "link London-Paris, cost 3" in shown
    assert "not site New-York: over it the way costs 7 + 0 = 7, not 5" in shown


def test_explain_around_a_manager_that_is_down(file: str) -> None:
    [found] = told("explain", "LON-1", "NYC-1", "--down", "PAR-GW", "--enterprise", file)
    assert found["cost"] == 7


def test_unreachable_exits_3_and_says_at_which_hop_and_why(file: str) -> None:
    result = route("explain", "LON-1", "ISL-1", "--enterprise", file)
    assert result.exit_code == 3
    assert result.stdout.startswith("LON-1 -> LON-GW -> ? (ISL-1)\n")
    assert result.stderr == (
        "lanner: ISL-1 cannot be reached from LON-1: at LON-GW, Island has no gate "
        "(name one in the gates of its link)\n"
    )
    result = route("explain", "LON-1", "ISL-1", "--enterprise", file, "--json")
    assert result.exit_code == 3
    assert json.loads(result.stdout)["unreachable"]["at"] == "LON-GW"


def test_whatif(file: str) -> None:
    [found] = told("whatif", "--set-cost", "London-Paris=9", "--enterprise", file)
    changed = {(one["from"], one["to"]): one for one in found["changed"]}  # type: ignore[attr-defined]
    assert changed["London", "New-York"]["after"] == {
        "cost": 7,
        "sites": ["London", "New-York"],
        "gates": ["LON-GW", "NYC-GW"],
    }
    assert changed["London", "New-York"]["added_cost"] == 2
    assert found["unreachable"] == []
    shown = route("whatif", "--set-cost", "London-Paris=9", "--down", "LON-GW", "--enterprise", file).stdout
    assert "of 12 pairs of sites, 4 change: 4 become unreachable" in shown
    assert "LON-1: no routing server of its site is up" in shown


def test_whatif_names_the_gates_if_only_they_change(tmp_path: Path) -> None:
    path = tmp_path / "two.toml"
    more = '[[manager]]\nname = "PAR-GW2"\nsites = ["Paris"]\nrouting = true\n'
    path.write_text(ENTERPRISE.replace('"PAR-GW", "NYC-GW"]', '"PAR-GW", "PAR-GW2", "NYC-GW"]') + more)
    rows = told("table", "LON-GW", "--enterprise", str(path))
    gates = rows[1]["gates"]
    assert isinstance(gates, list)
    best, other = gates
    shown = route("whatif", "--down", str(best), "--enterprise", str(path)).stdout
    assert f"LON-GW - {best} (3)" in shown
    assert f"LON-GW - {other} (3)" in shown
    assert "+0" in shown


def test_site_names_with_hyphens(file: str) -> None:
    [found] = told("whatif", "--set-cost", "New-York-London=1", "--enterprise", file)
    assert found["changed"]


def test_wrong_questions_are_answered_in_one_line(file: str) -> None:
    for arguments, answer in (
        (("explain", "LON-1", "NYC-9"), "lanner: there is no manager 'NYC-9' (did you mean NYC-1?)\n"),
        (("whatif", "--set-cost", "Lundon-Paris=2"), "lanner: there is no link 'Lundon-Paris' (did you mean"),
        (("whatif", "--set-cost", "London-Paris"), "lanner: 'London-Paris' is not a link and a cost"),
        (("whatif", "--set-cost", "London-Paris=0"), "lanner: the cost 0 is not between 1 and 999,999\n"),
        (("whatif", "--set-cost", "London-Island=2"), "lanner: there is no link between Island and London\n"),
        (("whatif",), "lanner: nothing would change (say --set-cost"),
        (("map", "-o", "/nowhere/x.svg"), "lanner: /nowhere/x.svg cannot be written: No such file"),
        (("map", "-o", "-", "--site", "Rome"), "lanner: there is no site 'Rome'"),
    ):
        result = route(*arguments, "--enterprise", file)
        assert result.exit_code == 1
        assert result.stderr.startswith(answer), result.stderr
        assert result.stderr.count("\n") == 1


def test_files_that_are_not_there_or_wrong(tmp_path: Path) -> None:
    result = route("table", "X", "--enterprise", str(tmp_path / "none.toml"))
    assert result.stderr.startswith("lanner: ")
    assert "none.toml cannot be read: No such file" in result.stderr
    wrong = tmp_path / "wrong.toml"
    wrong.write_text("[[site]]\nname = 1\n")
    result = route("table", "X", "--enterprise", str(wrong))
    assert result.exit_code == 1
    assert "there is no [enterprise] table" in result.stderr


def test_map(file: str, tmp_path: Path) -> None:
    output = tmp_path / "map.svg"
    result = route("map", "-o", str(output), "--site", "london", "--enterprise", file)
    assert result.exit_code == 0
    assert "4 sites and 3 links are drawn" in result.stdout
    drawn = ElementTree.parse(output).getroot()
    assert drawn.tag.endswith("svg")
    assert "London" in "".join(drawn.itertext())
    assert told("map", "-o", str(output), "--enterprise", file)[0]["sites"] == 4
    assert route("map", "-o", "-", "--enterprise", file).stdout.startswith("<svg ")


def test_help_does_not_load_what_computes_routes() -> None:
    code = (
        "import sys; from lanner.cli.app import app\n"
        "assert not {'scipy', 'numpy'} & set(sys.modules), 'loaded'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
