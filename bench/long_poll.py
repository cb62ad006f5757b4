"""Clients that wait: what 500 of them cost, and how soon a message reaches its reader.

And how long a person waits for ``lanner --help``.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from bench.load import BODY, QUEUE
from bench.measure import Rounds, Target, disk_directory, print_report
from bench.service import running_service
from lanner.client import AsyncClient

WAITING = 500
QUIET_SECONDS = 5.0
MESSAGES = 200
HELP_ROUNDS = 10


async def measure(data: Path, pid: int) -> tuple[float, list[float]]:
    """CPU share of the service while 500 clients wait, and the milliseconds from send to receipt."""
    async with AsyncClient.connect(data=data) as client:
        await client.create_queue(QUEUE)
        arrivals: asyncio.Queue[float] = asyncio.Queue()

        async def read_for_ever() -> None:
            while True:
                if await client.receive(QUEUE, wait=60):
                    arrivals.put_nowait(time.perf_counter())

        readers = [asyncio.create_task(read_for_ever()) for _ in range(WAITING)]
        await asyncio.sleep(3)
        before = _cpu_seconds(pid)
        await asyncio.sleep(QUIET_SECONDS)
        share = (_cpu_seconds(pid) - before) / QUIET_SECONDS
        delays = []
        for _ in range(MESSAGES):
            begin = time.perf_counter()
            await client.send(QUEUE, BODY)
            delays.append((await arrivals.get() - begin) * 1000)
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)
        return share, delays


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _help_seconds() -> float:
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-m", "lanner", "--help"], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def main() -> list[Target]:
    with disk_directory() as directory, running_service(directory / "service") as service:
        share, delays = asyncio.run(measure(service.data, service.pid))
    delay = Rounds("send, store and receive by one of 500 waiting clients", "ms", delays)
    help_time = Rounds("lanner --help", "s", [_help_seconds() for _ in range(HELP_ROUNDS)])
    targets = [
        Target("CPU share of 500 waiting clients", share, 0.01, at_least=False, unit="of a core"),
        Target("a message reaches its reader", statistics.median(delays), 5, at_least=False, unit="ms"),
        Target("lanner --help", help_time.median, 0.3, at_least=False, unit="s"),
    ]
    print_report("Waiting clients", [delay, help_time, *targets])
    return targets


if __name__ == "__main__":
    main()
