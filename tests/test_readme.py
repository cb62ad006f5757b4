"""What the README shows is what happens."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

README = (Path(__file__).parent.parent / "README.md").read_text()
START_SECONDS = 20.0


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    """A directory in which ``lanner serve`` runs as ``make run`` does it, but for the port."""
    command = [sys.executable, "-m", "lanner", "serve", "--api-port", "0", "--srmp-port", "0"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + START_SECONDS
    while not (tmp_path / "lanner-data" / "api.address").exists():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    yield tmp_path
    process.terminate()
    assert process.wait(15) == 0


def run(command: list[str], directory: Path) -> str:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    finished = subprocess.run(
        command, cwd=directory, capture_output=True, text=True, timeout=60, env={**os.environ, "PATH": path}
    )
    assert finished.stderr == ""
    assert finished.returncode == 0
    return finished.stdout


def test_the_first_session(directory: Path) -> None:
    session = re.search(r"```console\n(.*?)```", README, re.DOTALL)
    assert session is not None
    said = [run(["bash", "-c", line.removeprefix("$ ")], directory) for line in session[1].splitlines()]
    assert "ten apples" in said[2]
    assert "the time to be received ran out" in said[5]
    assert "1 messages wait" in said[6]
    assert "sent to DIRECT=OS:" in said[7]
    assert '"label":"second"' in said[8]
    assert "dead-lettered" in said[9]


def test_two_queue_managers(tmp_path: Path) -> None:
    session = re.findall(r"```console\n(.*?)```", README, re.DOTALL)[1]
    script = "\n".join(line.removeprefix("$ ") for line in session.splitlines())
    # The default ports may be taken on this machine.
    script = script.replace(
        "--data london --name LONDON", "--data london --name LONDON --api-port 0 --srmp-port 8080"
    )
    script = script.replace("--api-port 8091", "--api-port 0")
    for port, free in zip(("8080", "8090"), free_ports(2), strict=True):
        script = script.replace(port, str(free))
    # The shell tells about the process that was killed.
    said = run(["bash", "-c", f"exec 2>&1\n{script}"], tmp_path)
    assert "connection refused" in said
    received = said[said.index("lookup id") :]
    places = [received.index(f"order {number}") for number in range(1, 7)]
    assert places == sorted(places)
    assert re.search("^without a receipt +0$", said, re.MULTILINE)


def test_the_enterprise(tmp_path: Path) -> None:
    section = README[README.index("## An enterprise") :]
    block = re.search(r"```\n(.*?)```", section, re.DOTALL)
    assert block is not None
    examples = Path(__file__).parent.parent / "examples"
    said = [
        run(["bash", "-c", line.replace("examples/", f"{examples}/")], tmp_path)
        for line in block[1].splitlines()
    ]
    assert "nothing is wrong" in said[0]
    assert "LON-1 -> LON-GW -> PAR-GW -> ROM-GW -> ROM-1, cost 5" in said[1]
    assert "London" in said[2]
    assert (tmp_path / "map.svg").read_text().startswith("<svg")


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(each.getsockname()[1]) for each in sockets]
    for each in sockets:
        each.close()
    return ports


def test_the_client(directory: Path) -> None:
    run(["lanner", "queue", "create", r".\private$\orders"], directory)
    program = re.findall(r"```python\n(.*?)```", README, re.DOTALL)[0]
    assert run([sys.executable, "-c", program], directory) == "first b'ten apples'\n"


def test_the_queue_manager_in_a_program(tmp_path: Path) -> None:
    program = re.findall(r"```python\n(.*?)```", README, re.DOTALL)[1]
    promised = re.search(r"It prints:\n\n```\n(.*?)```", README, re.DOTALL)
    assert promised is not None
    assert run([sys.executable, "-c", program], tmp_path) == promised[1]
