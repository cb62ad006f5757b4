"""Durable sends from 32 concurrent clients, one message each: how many messages share an fsync.

The workload runs in a process of its own under strace, which counts the fsync calls of all threads: those
of commits and those of copying the log back. Without strace the store's own count of commits is used.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from bench.load import manager_at, open_handles, recoverable
from bench.measure import Rounds, Target, disk_directory, print_report

CLIENTS = 32
PER_CLIENT = 500
MESSAGES = CLIENTS * PER_CLIENT
ROUNDS = 3

_SYNC_CALLS = re.compile(r"^.*\s(\d+)\s+(?:\d+\s+)?f(?:data)?sync$", re.MULTILINE)


async def _clients(directory: Path) -> tuple[float, int]:
    async with manager_at(directory) as manager:
        sender, _ = open_handles(manager)
        commits = manager.store.statistics.commits

        async def client() -> None:
            for _ in range(PER_CLIENT):
                await manager.enqueue_messages(sender, recoverable(1))

        begin = time.perf_counter()
        await asyncio.gather(*(client() for _ in range(CLIENTS)))
        seconds = time.perf_counter() - begin
        return MESSAGES / seconds, manager.store.statistics.commits - commits


def _count_syncs(directory: Path) -> int:
    report = directory / "strace.txt"
    command = ["strace", "-f", "-c", "-e", "trace=fsync,fdatasync", "-o", str(report)]
    worker = [sys.executable, "-m", "bench.group_commit", "--worker", str(directory / "traced")]
    subprocess.run([*command, *worker], check=True, timeout=300)
    return sum(int(count) for count in _SYNC_CALLS.findall(report.read_text()))


def main() -> list[Target]:
    rate = Rounds("32 clients, one message each", "messages/s", [])
    shared = Rounds("messages per commit", "messages", [])
    with disk_directory() as directory:
        for number in range(ROUNDS):
            per_second, commits = asyncio.run(_clients(directory / str(number)))
            rate.values.append(per_second)
            shared.values.append(MESSAGES / commits)
        lines: list[object] = [rate, shared]
        per_sync = shared.median
        if shutil.which("strace"):
            syncs = _count_syncs(directory)
            per_sync = MESSAGES / syncs
            lines.append(
                f"strace counted {syncs:,} fsync calls for {MESSAGES:,} messages, start and stop included"
            )
        else:
            lines.append("strace is not installed: commits were counted instead of fsync calls")
    target = Target("messages per fsync from 32 clients", per_sync, 20, unit="messages")
    print_report("Group commit", [*lines, target])
    return [target]


if __name__ == "__main__":
    if "--worker" in sys.argv:
        asyncio.run(_clients(Path(sys.argv[-1])))
    else:
        main()
