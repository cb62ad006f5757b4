"""Traffic on loopback as tshark reads it."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

__all__ = ["Capture", "capturing"]

WRONG = "_ws.malformed or _ws.expert.severity >= 8388608"
"""Malformed packets, and whatever a dissector calls an error."""


class Capture:
    """What went over some TCP ports, all of it DCE/RPC."""

    def __init__(self, path: Path, ports: Sequence[int]) -> None:
        self.path = path
        self.ports = tuple(ports)

    def tshark(self, *arguments: str) -> str:
        """What tshark prints."""
        decoding = [item for port in self.ports for item in ("-d", f"tcp.port=={port},dcerpc")]
        return subprocess.run(
            ["tshark", "-r", str(self.path), *decoding, *arguments],
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    def wrong(self) -> str:
        """Packets that tshark finds something wrong with."""
        return self.tshark("-Y", WRONG)

    def rows(self, condition: str, *fields: str) -> list[list[str]]:
        """The fields of every packet that fulfils a condition; one that is there several times has commas."""
        named = [item for field in fields for item in ("-e", field)]
        shown = self.tshark("-Y", condition, "-T", "fields", *named)
        return [line.split("\t") for line in shown.splitlines()]


@asynccontextmanager
async def capturing(path: Path, ports: Sequence[int]) -> AsyncIterator[Capture]:
    """Capture for the length of a block; what was captured can be read after it."""
    for program in ("tshark", "dumpcap"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    dumpcap = await asyncio.create_subprocess_exec(
        *("dumpcap", "-q", "-P", "-i", "lo", "-f", " or ".join(f"tcp port {port}" for port in ports)),
        *("-w", str(path)),
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        assert dumpcap.stderr is not None
        said = b""
        while b"File:" not in said:
            line = await asyncio.wait_for(dumpcap.stderr.readline(), 20)
            if not line:
                pytest.skip(f"dumpcap cannot capture here: {said.decode().strip()}")
            said += line
        await asyncio.sleep(0.5)  # it says that before it captures
        yield Capture(path, ports)
        await asyncio.sleep(1)  # what is in the kernel's buffer
    finally:
        if dumpcap.returncode is None:
            dumpcap.terminate()
            await dumpcap.wait()
