"""What a deep queue costs: per message sent and received, at restart, and in memory.

Two managers, one with 1,000 waiting messages and one with 1,000,000, each in a process of its own, take
turns in sending and receiving batches. Memory is what the process has grown by when it has opened the
store, divided by the messages waiting in it.
"""

from __future__ import annotations

import asyncio
import resource
import subprocess
import sys
import time
from pathlib import Path

from bench.load import manager_at, open_handles, recoverable
from bench.measure import Rounds, Target, disk_directory, print_report

SHALLOW = 1_000
DEEP = 1_000_000
BATCH = 500
BATCHES_PER_ROUND = 20
ROUNDS = 7


async def fill(directory: Path, depth: int) -> None:
    """Put durable messages into a new manager's queue."""
    async with manager_at(directory) as manager:
        sender, _ = open_handles(manager)
        for _ in range(depth // BATCH):
            await manager.enqueue_messages(sender, recoverable(BATCH))


async def serve(directory: Path) -> None:
    """Open the store, report, then send and receive a round for each line of input."""
    before = _resident_bytes()
    begin = time.perf_counter()
    async with manager_at(directory) as manager:
        seconds = time.perf_counter() - begin
        print(seconds, _resident_bytes() - before, flush=True)
        sender, receiver = open_handles(manager)
        while await asyncio.to_thread(sys.stdin.readline):
            begin = time.perf_counter()
            for _ in range(BATCHES_PER_ROUND):
                await manager.enqueue_messages(sender, recoverable(BATCH))
                await manager.dequeue_messages(receiver, BATCH)
            print((time.perf_counter() - begin) / (BATCH * BATCHES_PER_ROUND) * 1e6, flush=True)


def _resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


class _Worker:
    """A manager in a process of its own."""

    def __init__(self, directory: Path) -> None:
        command = [sys.executable, "-m", "bench.queue_depth", "--worker", str(directory)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        open_seconds, grown = self._line().split()
        self.open_seconds = float(open_seconds)
        self.grown_bytes = int(grown)

    def round(self) -> float:
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()
        return float(self._line())

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()


def main() -> list[Target]:
    shallow = Rounds(f"send and receive with {SHALLOW:,} waiting", "us/message", [])
    deep = Rounds(f"send and receive with {DEEP:,} waiting", "us/message", [])
    with disk_directory() as directory:
        asyncio.run(fill(directory / "shallow", SHALLOW))
        asyncio.run(fill(directory / "deep", DEEP))
        few, many = _Worker(directory / "shallow"), _Worker(directory / "deep")
        few.round()
        many.round()
        for _ in range(ROUNDS):
            shallow.values.append(few.round())
            deep.values.append(many.round())
        few.close()
        many.close()
    targets = [
        Target(
            "cost with 1,000,000 waiting against 1,000", deep.median / shallow.median, 1.3, at_least=False
        ),
        Target("restart with 1,000,000 waiting", many.open_seconds, 5, at_least=False, unit="s"),
        Target("memory per waiting message", many.grown_bytes / DEEP, 400, at_least=False, unit="bytes"),
    ]
    print_report("Queue depth", [shallow, deep, *targets])
    return targets


if __name__ == "__main__":
    if "--worker" in sys.argv:
        asyncio.run(serve(Path(sys.argv[-1])))
    else:
        main()
