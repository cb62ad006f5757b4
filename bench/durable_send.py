"""In-process durable send, batches of 500 x 1 KB, against RabbitMQ with a window of 500.

Rounds alternate between the three, so that a slow moment of the machine meets all of them. RabbitMQ is
driven by a lean client over loopback, each queue type in the faster of two ways (batches, sliding
window); Lanner is driven in-process, one batch after the other.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from bench.load import manager_at, open_handles, recoverable
from bench.measure import Rounds, Target, disk_directory, print_report
from bench.peers.rabbitmq import publish_window, rabbitmq_node

COUNT = 50_000
BATCH = 500
ROUNDS = 5


async def send_batches(directory: Path) -> float:
    """Messages per second of one manager that starts empty."""
    async with manager_at(directory) as manager:
        sender, _ = open_handles(manager)
        begin = time.perf_counter()
        for _ in range(COUNT // BATCH):
            await manager.enqueue_messages(sender, recoverable(BATCH))
        return COUNT / (time.perf_counter() - begin)


def main() -> list[Target]:
    ours = Rounds("Lanner, batches of 500", "messages/s", [])
    windows = {kind: {"batches": [], "sliding": []} for kind in ("classic", "quorum")}  # type: dict[str, dict[str, list[float]]]
    with disk_directory() as directory, rabbitmq_node(directory) as node:
        for number in range(ROUNDS):
            ours.values.append(asyncio.run(send_batches(directory / f"lanner-{number}")))
            for kind in ("classic", "quorum"):
                result = publish_window(node.port, kind, COUNT, server_pid=node.pid)
                windows[kind]["batches"].append(result.batch.rate)
                windows[kind]["sliding"].append(result.sliding.rate)
    peers = {}
    lines: list[object] = [ours]
    for kind, variants in windows.items():
        rounds = [
            Rounds(f"RabbitMQ {kind}, {variant}", "messages/s", rates) for variant, rates in variants.items()
        ]
        lines.extend(rounds)
        peers[kind] = max(one.median for one in rounds)
    targets = [
        Target("durable send against RabbitMQ classic v1", ours.median / peers["classic"], 3),
        Target("durable send against RabbitMQ quorum", ours.median / peers["quorum"], 2),
    ]
    print_report("Durable send, batches of 500 x 1 KB", [*lines, *targets])
    return targets


if __name__ == "__main__":
    main()
