"""A Lanner service in a process of its own, for the benchmarks of its API."""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["RunningService", "running_service"]

START_SECONDS = 30.0
STOP_SECONDS = 15.0


@dataclass(frozen=True)
class RunningService:
    """Where it is, and its token."""

    url: str
    token: str
    pid: int
    data: Path
    srmp_port: int

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])


@contextlib.contextmanager
def running_service(data: Path, *, name: str = "BENCH") -> Iterator[RunningService]:
    """Start ``lanner serve`` on free ports of loopback, and stop it at the end."""
    srmp_port = _free_port()
    command = [
        sys.executable,
        "-m",
        "lanner",
        "serve",
        "--data",
        str(data),
        "--api-port",
        "0",
        "--srmp-port",
        str(srmp_port),
        "--srmp-url",
        f"http://127.0.0.1:{srmp_port}",
        "--name",
        name,
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        address = data / "api.address"
        deadline = time.monotonic() + START_SECONDS
        while not address.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("lanner serve did not start")
            time.sleep(0.05)
        url = address.read_text().strip()
        yield RunningService(url, (data / "token").read_text().strip(), process.pid, data, srmp_port)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(STOP_SECONDS)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    assert isinstance(port, int)
    return port
