"""docs/routing.md says what the commands, keys and findings are, and its example is what is printed."""

from __future__ import annotations

import re
from pathlib import Path

import typer.main
from typer.testing import CliRunner

from lanner.cli import directory, route
from lanner.cli.app import app
from lanner.directory.check import Kind, check
from lanner.directory.file_schema import LIMITS, TABLES
from lanner.directory.local_file import load_file

ROOT = Path(__file__).parent.parent.parent
TEXT = (ROOT / "docs" / "routing.md").read_text()
EXAMPLE = ROOT / "examples" / "enterprise.toml"


def test_every_command_is_documented() -> None:
    for noun, group in (("route", route.app), ("directory", directory.app)):
        for name in typer.main.get_command(group).commands:  # type: ignore[attr-defined]
            assert f"`lanner {noun} {name} " in TEXT, name


def test_every_key_limit_and_finding_is_documented() -> None:
    for table, keys in TABLES.items():
        [row] = re.findall(rf"\| `\[+{table}\]+` \| (.*) \|", TEXT)
        assert set(re.findall(r"`(\w+)`", row)) == set(keys)
    for limit in LIMITS.values():
        assert f"{limit:,}" in TEXT
    for kind in Kind:
        assert f"`{kind}`" in TEXT


def test_the_example_is_right_and_printed_as_shown() -> None:
    assert check(*load_file(EXAMPLE)) == []
    shown = re.search(r"```console\n\$ lanner (.*)\n((?:.*\n)*?)```", TEXT)
    assert shown is not None
    command = shown[1].replace("examples/enterprise.toml", str(EXAMPLE)).split()
    assert CliRunner().invoke(app, command).stdout == shown[2]
