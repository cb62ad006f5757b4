"""What a body of 4 MB costs in memory on its way over SRMP, on either side, as a multiple of its size.

The peak of the resident memory of each process while the message passes, above what it had before.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from bench.measure import Rounds, Target, disk_directory, print_report
from bench.service import RunningService, running_service
from lanner.client import AsyncClient
from lanner.model.message import MAX_MESSAGE_SIZE

ROUNDS = 5
QUEUE = r".\private$\large"
WAIT_SECONDS = 30.0


def _memory(pid: int, field: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"no {field} in the status of {pid}")


def _forget_peak(pid: int) -> None:
    Path(f"/proc/{pid}/clear_refs").write_text("5")


async def _queue_one(source: RunningService, url: str) -> None:
    """Let one message wait in an outgoing queue that is paused."""
    async with AsyncClient.connect(data=source.data) as here:
        await here.send(url, b"small", durable=True)
        await here.pause_queue(url)
        await here.send(url, bytes(MAX_MESSAGE_SIZE), durable=True)


async def _pass_one(source: RunningService, target: RunningService, url: str) -> tuple[float, float]:
    """The peaks of sender and receiver while the message passes."""
    async with AsyncClient.connect(data=source.data) as here, AsyncClient.connect(data=target.data) as there:
        await _until(there, 1)
        before = [_memory(each.pid, "VmRSS") for each in (source, target)]
        for each in (source, target):
            _forget_peak(each.pid)
        await here.resume_queue(url)
        await _until(there, 2)
        peaks = [_memory(each.pid, "VmHWM") for each in (source, target)]
    sender, receiver = (peak - rest for peak, rest in zip(peaks, before, strict=True))
    return sender / MAX_MESSAGE_SIZE, receiver / MAX_MESSAGE_SIZE


async def _until(there: AsyncClient, count: int) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while (await there.queue(QUEUE)).messages < count:
        if time.monotonic() > deadline:
            raise RuntimeError("the message did not arrive")
        await asyncio.sleep(0.01)


async def _create(target: RunningService) -> None:
    async with AsyncClient.connect(data=target.data) as client:
        await client.create_queue(QUEUE)


def main() -> list[Target]:
    sending = Rounds("4 MB, the sender's peak", "x its size", [])
    receiving = Rounds("4 MB, the receiver's peak", "x its size", [])
    for _ in range(ROUNDS):
        with disk_directory() as directory, running_service(directory / "target") as target:
            asyncio.run(_create(target))
            url = f"DIRECT=HTTP://127.0.0.1:{target.srmp_port}/msmq/private$/large"
            with running_service(directory / "source", name="SOURCE") as source:
                asyncio.run(_queue_one(source, url))
            # Started anew, so that what it took to get the message in does not count.
            with running_service(directory / "source", name="SOURCE") as source:
                sender, receiver = asyncio.run(_pass_one(source, target, url))
            sending.values.append(sender)
            receiving.values.append(receiver)
    targets = [
        Target("memory of a 4 MB body, sender", sending.median, 4, at_least=False),
        Target("memory of a 4 MB body, receiver", receiving.median, 4, at_least=False),
    ]
    print_report("SRMP, memory", [sending, receiving, *targets])
    return targets


if __name__ == "__main__":
    main()
