"""``lanner mgmt`` against a served manager, and its users."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from lanner.cli.app import app
from lanner.manager import QueueManager
from lanner.model.message import Delivery, Message
from lanner.model.queue import QueueProperties
from lanner.protocols.management.endpoint import ManagementEndpoint
from lanner.protocols.management.properties import MACHINE_PROPERTIES, QUEUE_PROPERTIES
from lanner.protocols.management.settings import USERS_NAME, ManagementSettings

ORDERS = r".\private$\orders"
FAR = "DIRECT=HTTP://there/msmq/private$/orders"


def run(*arguments: str, given: str = "") -> Result:
    return CliRunner().invoke(app, ["mgmt", *arguments], input=given)


class Served:
    """A manager and its management, for commands on another thread."""

    def __init__(self, manager: QueueManager, endpoint: ManagementEndpoint) -> None:
        self.manager = manager
        self.endpoint = endpoint

    async def run(self, *arguments: str, password: str = "secret", expected: int = 0) -> str:
        common = ["--port", str(self.endpoint.port), "--user", "ada", "--password-stdin"]
        result = await asyncio.to_thread(run, "127.0.0.1", *arguments, *common, given=f"{password}\n")
        assert result.exit_code == expected, result.output
        return result.output


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    added = await asyncio.to_thread(
        run, "user", "add", "ada", "--password-stdin", "--data", str(tmp_path), given="secret\n"
    )
    assert added.exit_code == 0, added.output
    async with await QueueManager.open(tmp_path / "store", name="here") as manager:
        await manager.create_queue(ORDERS, QueueProperties(journaling=True))
        await manager.send(ORDERS, Message(body=b"x"))
        settings = ManagementSettings(endpoint_mapper_port=0, administrators=("ada",))
        endpoint = ManagementEndpoint(manager, settings, "127.0.0.1", port=0, data=tmp_path)
        await endpoint.start()
        yield Served(manager, endpoint)
        await endpoint.stop()


# Getting.


async def test_the_machine(served: Served) -> None:
    told = await served.run("get", "machine")
    assert "connected            CONNECTED" in told
    assert r"active-queues        DIRECT=OS:here\private$\orders" in told
    assert r"private-queues       here\private$\orders" in told
    assert "directory-server     -" in told
    told = json.loads(await served.run("get", "machine", "connected", "private-queues", "--json"))
    assert told == {"connected": "CONNECTED", "private-queues": [r"here\private$\orders"]}


async def test_a_queue(served: Served) -> None:
    told = await served.run("get", "queue", ORDERS)
    assert "message-count          1\n" in told
    assert "state                  LOCAL CONNECTION" in told
    assert "next-hops" not in told, "it does not apply"
    assert "subqueues              none" in told
    told = json.loads(await served.run("get", "queue", ORDERS, "message-count", "next-hops", "--json"))
    assert told == {"message-count": 1, "next-hops": None}
    assert "next-hops  -" in await served.run("get", "queue", ORDERS, "next-hops")


async def test_errors_are_one_line_that_says_what_to_do(served: Served) -> None:
    told = await served.run("get", "queue", FAR, expected=1)
    assert told.startswith("lanner: the server answered with MQ_ERROR_QUEUE_NOT_FOUND (it has no such")
    assert "did you mean message-count?" in await served.run(
        "get", "queue", ORDERS, "mesage-count", expected=1
    )
    without = run("get", "machine")
    assert without.exit_code == 1
    assert without.output == "lanner: no host is named (lanner mgmt HOST get machine)\n"


async def test_a_wrong_password_and_no_password(served: Served) -> None:
    told = await served.run("get", "machine", password="guessed", expected=1)
    assert told.startswith("lanner: ")
    assert "standard input has no password" in await served.run("get", "machine", password="", expected=1)
    result = await asyncio.to_thread(run, "127.0.0.1", "get", "machine", "--password-stdin", given="x\n")
    assert "a password is for somebody" in result.output


async def test_nobody_is_there() -> None:
    result = await asyncio.to_thread(run, "127.0.0.1", "get", "machine", "--port", "1")
    assert result.exit_code == 1
    assert "cannot be reached" in result.output
    assert "is management enabled there" in result.output
    result = await asyncio.to_thread(run, "127.0.0.1", "get", "machine", "--mapper-port", "1")
    assert "say --port" in result.output


def test_a_target_is_for_kerberos_alone() -> None:
    result = run("127.0.0.1", "get", "machine", "--port", "1", "--target", "mail1")
    assert result.exit_code == 1
    assert result.output == "lanner: --target is for Kerberos (say --kerberos too)\n"


async def test_through_the_endpoint_mapper(served: Served) -> None:
    mapper = str(served.endpoint.mapper_port)
    result = await asyncio.to_thread(
        run, "127.0.0.1", "get", "machine", "connected", "--mapper-port", mapper,
        "--user", "ada", "--password-stdin", given="secret\n",
    )  # fmt: skip
    assert result.output == "connected  CONNECTED\n"


# Doing.


async def test_actions(served: Served) -> None:
    assert await served.run("action", "machine", "disconnect") == "DISCONNECT of 127.0.0.1 is done\n"
    assert not served.manager.is_online
    await served.run("action", "machine", "connect")
    await served.run("action", "machine", "tidy")
    await served.manager.send(FAR, Message(delivery=Delivery.RECOVERABLE))
    assert await served.run("action", "queue", FAR, "pause") == f"PAUSE of {FAR} is done\n"
    assert "ONHOLD" in await served.run("get", "queue", FAR, "state")
    await served.run("action", "queue", FAR, "eod_resend")
    told = json.loads(await served.run("action", "queue", FAR, "resume", "--json"))
    assert told == {"action": "RESUME", "queue": FAR}
    assert "connect, disconnect, tidy" in await served.run("action", "machine", "purge", expected=1)
    told_wrong = await served.run("action", "queue", ORDERS, "pause", expected=1)
    assert "that is done to outgoing queues alone" in told_wrong


# Watching.


async def test_watching(served: Served) -> None:
    await served.manager.create_queue(r".\private$\empty")
    for _ in range(3):
        await served.manager.send(FAR, Message(delivery=Delivery.RECOVERABLE))
    told = await served.run("watch", "--rounds", "2", "--interval", "0.1")
    assert told.count("127.0.0.1: connected") == 2
    lines = [line.split() for line in told.splitlines() if "DIRECT" in line]
    assert [line[0] for line in lines[:3]] == [
        FAR,
        r"DIRECT=OS:here\private$\orders",
        r"DIRECT=OS:here\private$\empty",
    ]
    assert lines[0][1] == "3"
    assert lines[0][-1] == "inactive"
    assert lines[1][-1] == "local"
    told = await served.run("watch", "--rounds", "1", "--limit", "1", "--json")
    found = json.loads(told)
    assert [each["name"] for each in found["queues"]] == [FAR]
    assert found["left_out"] == 2


# Users.


def test_users(tmp_path: Path) -> None:
    data = ("--data", str(tmp_path))
    assert run("user", "list", *data).output == "no users\n"
    for name in ("bob", "ada"):
        result = run("user", "add", name, "--password-stdin", *data, given="secret\n")
        assert f"{name} was added" in result.output
        assert "management.administrators" in result.output
    again = run("user", "add", "Ada", "--password-stdin", *data, given="another\n")
    assert "has another password" in again.output
    assert run("user", "list", *data).output == "Ada\nbob\n"
    assert run("user", "list", "--json", *data).output == '{"name":"Ada"}\n{"name":"bob"}\n'
    file = tmp_path / USERS_NAME
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "secret" not in file.read_text()
    assert "was removed" in run("user", "remove", "bob", *data).output
    gone = run("user", "remove", "bob", *data)
    assert gone.exit_code == 1
    assert "there is no user bob" in gone.output
    assert run("user", "list", "--file", str(file)).output == "Ada\n"


def test_users_of_no_manager(tmp_path: Path) -> None:
    result = run("user", "list", "--data", str(tmp_path / "nowhere"))
    assert result.exit_code == 1
    assert "there is no directory" in result.output


# Help.


def test_the_host_comes_first() -> None:
    assert "HOST get|action|watch" in run("--help").output
    assert "HOST get|action|watch" in run("somewhere").output


def test_the_commands_load_nothing_of_the_protocol() -> None:
    code = "import sys, lanner.cli.app; print([m for m in sys.modules if 'spnego' in m or 'management' in m])"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == "[]\n"
    fastest = min(_help_seconds() for _ in range(5))
    assert fastest < 0.3, f"lanner --help took {fastest:.2f} s of the processor"


def _help_seconds() -> float:
    """Processor time: what else the machine does meanwhile does not count."""
    before = os.times()
    subprocess.run([sys.executable, "-m", "lanner", "--help"], capture_output=True, check=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def test_everything_is_documented() -> None:
    text = (Path(__file__).parents[2] / "docs" / "management.md").read_text()
    for name in ManagementSettings.__struct_fields__:
        assert f"`{name}`" in text, name
    for known in (MACHINE_PROPERTIES, QUEUE_PROPERTIES):
        for each in known.values():
            assert f"`{each.name}`" in text, each.name
    for command in ("get machine", "get queue", "action machine", "action queue", "watch"):
        assert f"`lanner mgmt HOST {command}" in text, command


def test_the_file_that_the_settings_name_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lanner.toml").write_text('[management]\nusers = "who.txt"\n')
    assert "was added to who.txt" in run("user", "add", "ada", "--password-stdin", given="x\n").output
    assert run("user", "list").output == "ada\n"
    assert (tmp_path / "who.txt").exists()
