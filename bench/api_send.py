"""Durable sends through the API: batches of 100 through the client, and single ones from 32 connections.

Batches are compared with the same batches in-process. Single sends use a lean client, as RabbitMQ's do: one
epoll loop over raw sockets with a request that is built once, each connection with one message in flight.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import msgspec

from bench.http_load import post_in_turn
from bench.load import BODY, QUEUE, manager_at, open_handles, recoverable
from bench.measure import Rounds, Target, disk_directory, print_report
from bench.peers.rabbitmq import publish_connections, rabbitmq_node
from bench.service import RunningService, running_service
from lanner.client import AsyncClient, MessageIn

BATCH = 100
BATCHES = 100
CONNECTIONS = 32
PER_CONNECTION = 300
ROUNDS = 5


async def in_process(directory: Path) -> float:
    """Messages per second of batches in-process."""
    async with manager_at(directory) as manager:
        sender, _ = open_handles(manager)
        begin = time.perf_counter()
        for _ in range(BATCHES):
            await manager.enqueue_messages(sender, recoverable(BATCH))
        return BATCH * BATCHES / (time.perf_counter() - begin)


async def through_client(service: RunningService) -> float:
    """Messages per second of the same batches through the client."""
    async with AsyncClient.connect(data=service.data) as client:
        begin = time.perf_counter()
        for _ in range(BATCHES):
            await client.send_many(QUEUE, [MessageIn(body=BODY, durable=True) for _ in range(BATCH)])
        return BATCH * BATCHES / (time.perf_counter() - begin)


def single_sends(service: RunningService) -> float:
    """Messages per second of 32 connections with one message in flight each."""
    body = msgspec.msgpack.encode({"queue": QUEUE, "messages": [{"body": BODY, "durable": True}]})
    head = (
        "POST /v1/messages/send HTTP/1.1\r\nHost: bench\r\nContent-Type: application/msgpack\r\n"
        f"Authorization: Bearer {service.token}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    request = head.encode() + body
    return post_in_turn(
        service.port, lambda _: request, CONNECTIONS, PER_CONNECTION, server_pid=service.pid
    ).rate


def main() -> list[Target]:
    inside = Rounds("in-process, batches of 100", "messages/s", [])
    outside = Rounds("through the client, batches of 100", "messages/s", [])
    single = Rounds("32 connections, one message each", "messages/s", [])
    rabbit = Rounds("RabbitMQ classic v1, 32 connections", "messages/s", [])
    with (
        disk_directory() as directory,
        rabbitmq_node(directory) as node,
        running_service(directory / "service") as service,
    ):
        asyncio.run(_create_queue(service))
        for number in range(ROUNDS):
            inside.values.append(asyncio.run(in_process(directory / f"inside-{number}")))
            outside.values.append(asyncio.run(through_client(service)))
            single.values.append(single_sends(service))
            result = publish_connections(
                node.port, "classic", CONNECTIONS, PER_CONNECTION, server_pid=node.pid
            )
            rabbit.values.append(result.rate)
    targets = [
        Target("batches through the client against in-process", outside.median / inside.median, 0.5),
        Target("single sends against RabbitMQ classic v1", single.median / rabbit.median, 0.7),
    ]
    print_report("Durable sends through the API", [inside, outside, single, rabbit, *targets])
    return targets


async def _create_queue(service: RunningService) -> None:
    async with AsyncClient.connect(data=service.data) as client:
        await client.create_queue(QUEUE)


if __name__ == "__main__":
    main()
