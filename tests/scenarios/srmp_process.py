"""A queue manager in a process of its own, which can be killed and comes back on the same data and ports."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx

from lanner.client import AsyncClient

START_SECONDS = 20.0
STOP_SECONDS = 15.0
PATIENCE = 40.0

TIMERS = """
retransmission = 0.1
response_timeout = 1.0
resend = [0.5, 0.5, 1.0]
coalescing = 0.05
coalescing_limit = 0.3
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class SrmpProcess:
    """``lanner serve`` with short timers."""

    def __init__(self, directory: Path, name: str) -> None:
        directory.mkdir()
        self.name = name
        self.data = directory / "data"
        self.log = directory / "log"
        self.api_port = free_port()
        self.port = free_port()
        self._settings = directory / "lanner.toml"
        self._process: subprocess.Popen[bytes] | None = None

    def configure(self, url: str, *, network: str = "", srmp: str = "") -> None:
        """``url`` is where others reach it; the others are more lines of their sections."""
        self._settings.write_text(
            f"[manager]\ndata = '{self.data}'\nname = '{self.name}'\n"
            f"[api]\nport = {self.api_port}\n"
            f"[network]\nsrmp_port = {self.port}\n{network}\n"
            f"[srmp]\nurl = '{url}'\n{TIMERS}{srmp}\n"
        )

    async def start(self) -> None:
        command = [sys.executable, "-m", "lanner", "serve", "--config", str(self._settings)]
        clean = {name: value for name, value in os.environ.items() if not name.startswith("LANNER_")}
        with self.log.open("a") as log:
            self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log, env=clean)
        async with asyncio.timeout(START_SECONDS), httpx.AsyncClient() as http:
            while not await self._is_ready(http):
                assert self._process.poll() is None, self.log.read_text()[-4000:]
                await asyncio.sleep(0.02)

    async def _is_ready(self, http: httpx.AsyncClient) -> bool:
        try:
            return (await http.get(f"http://127.0.0.1:{self.api_port}/health/ready")).status_code == 200
        except httpx.TransportError:
            return False

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait(STOP_SECONDS)

    def stop(self) -> None:
        assert self._process is not None
        self._process.terminate()
        assert self._process.wait(STOP_SECONDS) == 0

    def end(self) -> None:
        """Let nothing of it stay behind, whatever has happened."""
        if self.is_running:
            self.kill()

    def client(self) -> AsyncClient:
        return AsyncClient.connect(data=self.data, patience=PATIENCE)

    def complaints(self) -> list[str]:
        """Lines of the log that say that something is broken."""
        lines = self.log.read_text().splitlines()
        return [line for line in lines if line.startswith("Traceback") or line.split()[1:2] == ["error"]]
