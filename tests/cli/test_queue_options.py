"""The options of queues: `create` and `set` have the same ones, and each arrives."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from tests.client.conftest import ServiceThread
from typer.testing import CliRunner

from lanner.cli.app import app

QUEUE = r".\private$\orders"
TYPE_ID = "400d837b-f90e-4ab3-b6ce-c68c298e1a8c"

OPTIONS = [
    ("--journal", None, "journaling", True),
    ("--authenticated", None, "authentication", True),
    ("--label", "Orders", "label", "Orders"),
    ("--quota", "7", "quota", 7),
    ("--journal-quota", "8", "journal_quota", 8),
    ("--multicast", "234.1.1.1:8001", "multicast_address", "234.1.1.1:8001"),
    ("--max-aborts", "3", "max_aborts", 3),
    ("--base-priority", "5", "base_priority", 5),
    ("--privacy", "body", "privacy", "body"),
    ("--type-id", TYPE_ID, "type_id", TYPE_ID),
]


@pytest.fixture
def service(tmp_path: Path) -> Iterator[ServiceThread]:
    thread = ServiceThread(tmp_path / "data")
    thread.start()
    yield thread
    thread.stop()


def run(service: ServiceThread, *arguments: str) -> dict[str, Any]:
    result = CliRunner().invoke(app, [*arguments, "--json", "--data", str(service.data)])
    assert result.exit_code == 0, result.output
    return dict(json.loads(result.stdout))


ALL = [word for option, value, _, _ in OPTIONS for word in (option, value) if word is not None]
ARRIVED = {name: value for _, _, name, value in OPTIONS}


@pytest.mark.parametrize("command", ["create", "set"])
def test_every_option_arrives(service: ServiceThread, command: str) -> None:
    if command == "set":
        before = run(service, "queue", "create", QUEUE)
        assert (
            not ARRIVED.items() & {name: value for name, value in before.items() if name in ARRIVED}.items()
        )
    run(service, "queue", command, QUEUE, *ALL)
    assert run(service, "queue", "show", QUEUE).items() >= ARRIVED.items()
    run(service, "queue", "set", QUEUE, "--no-journal", "--no-authenticated")
    changed = {**ARRIVED, "journaling": False, "authentication": False}
    assert run(service, "queue", "show", QUEUE).items() >= changed.items()  # what is not given stays


def test_who_may_do_what_arrives(service: ServiceThread) -> None:
    run(service, "queue", "create", QUEUE, "--security", "O:SYG:SYD:(A;;GA;;;BA)")
    administrators = run(service, "queue", "show", QUEUE)["access"]
    run(service, "queue", "set", QUEUE, "--security", "O:SYG:SYD:(A;;GA;;;WD)")
    everyone = run(service, "queue", "show", QUEUE)["access"]
    assert any("Everyone" in line for line in everyone)
    assert not any("Everyone" in line for line in administrators)


def test_both_commands_say_the_same_about_an_option() -> None:
    create, change = (_helps("queue", command) for command in ("create", "set"))
    assert create.pop("--transactional") == "Take transactional messages."
    assert create == change
    assert {option for option, *_ in OPTIONS} | {"--security"} <= create.keys()


def _helps(*path: str) -> dict[str, str]:
    """The help of each option of a command."""
    command: Any = typer.main.get_command(app)
    for name in path:
        command = command.commands[name]
    return {one.opts[0]: one.help for one in command.params if one.param_type_name == "option"}
