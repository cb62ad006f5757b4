"""Progress: for a person at a terminal, and for nobody else."""

from __future__ import annotations

import asyncio
import os
import pty
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.client.conftest import ServiceThread
from typer.testing import CliRunner

from lanner.cli.app import app
from lanner.client import Client, transport
from lanner.schema.messages import MessageIn
from lanner.store import Store

QUEUE = r".\private$\orders"
MESSAGES = 1500


@pytest.fixture
def service(tmp_path: Path) -> Iterator[ServiceThread]:
    thread = ServiceThread(tmp_path / "data")
    thread.start()
    with Client.connect(data=str(thread.data)) as client:
        client.create_queue(QUEUE)
        for _ in range(3):
            client.send_many(QUEUE, [MessageIn(body=b"x", durable=True)] * (MESSAGES // 3))
    yield thread
    thread.stop()


def run_at_terminal(service: ServiceThread, *arguments: str) -> str:
    """Run a command with its standard error on a terminal; what the terminal got."""
    terminal, standard_error = pty.openpty()
    termios.tcsetwinsize(terminal, (24, 100))
    got: list[bytes] = []

    def listen() -> None:
        try:
            while piece := os.read(terminal, 65_536):
                got.append(piece)
        except OSError:  # nobody is at the other end any more
            pass

    listening = threading.Thread(target=listen)
    listening.start()
    ended = subprocess.run(
        [sys.executable, "-m", "lanner", *arguments, "--data", str(service.data)],
        stdout=subprocess.PIPE,
        stderr=standard_error,
        env={**os.environ, "TERM": "xterm"},
        timeout=60,
        check=False,
    )
    os.close(standard_error)
    listening.join(10)
    os.close(terminal)
    assert ended.returncode == 0, (ended.stdout, got)
    return b"".join(got).decode()


@pytest.mark.parametrize("command", ["backup", "compact"])
def test_what_takes_long_is_waited_for(
    service: ServiceThread, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    work = getattr(Store, command)

    async def slow(*arguments: Any) -> int:
        await asyncio.sleep(0.3)
        return int(await work(*arguments))

    monkeypatch.setattr(transport, "ANSWER_SECONDS", 0.1)
    monkeypatch.setattr(Store, command, slow)
    result = CliRunner().invoke(app, [command, "--data", str(service.data)])
    assert result.exit_code == 0, result.output


COMMANDS = [
    (("history", "export", "h.jsonl"), "1,000 rows"),
    (("history", "export", "h.parquet", "--format", "parquet"), "bytes"),
    (("history", "export", "-"), "1,000 rows"),
    (("backup", "NAME"), "copying the store"),
    (("compact",), "compacting the store"),
]


@pytest.mark.parametrize(("command", "shown"), COMMANDS, ids=lambda value: "".join(value[:2]))
def test_progress_is_shown_at_a_terminal_alone(
    service: ServiceThread,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
    shown: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    first, second, third = ([word.replace("NAME", f"{n}.db") for word in command] for n in "123")
    assert shown in run_at_terminal(service, *first)
    assert run_at_terminal(service, *second, "--json") == ""
    silent = subprocess.run(
        [sys.executable, "-m", "lanner", *third, "--data", str(service.data)],
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (silent.returncode, silent.stderr) == (0, b"")
    if command[:2] == ("history", "export") and "parquet" not in command:
        rows = silent.stdout if command[2] == "-" else (tmp_path / command[2]).read_bytes()
        assert len(rows.splitlines()) == MESSAGES
