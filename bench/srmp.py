"""SRMP: posts of durable messages from 32 connections, and messages from one manager to another.

The posts are compared with RabbitMQ's classic v1 and quorum queues, confirmed and persistent, 32 connections
with one message each. Manager to manager is measured from the first send to the moment when the last message
is in the destination queue, in batches of 100, and compared with the posts.
"""

from __future__ import annotations

import asyncio
import time
from functools import partial
from uuid import uuid4

from bench.http_load import post_in_turn
from bench.load import BODY
from bench.measure import Rounds, Target, disk_directory, print_report
from bench.peers.rabbitmq import QueueType, publish_connections, rabbitmq_node
from bench.service import RunningService, running_service
from lanner.client import AsyncClient, MessageIn
from lanner.model.message_id import MessageId
from lanner.protocols.srmp import wire

CONNECTIONS = 32
PER_CONNECTION = 300
ROUNDS = 5
TRANSFERRED = 10_000
BATCH = 100
WAIT_SECONDS = 120.0

QUEUE = r".\private$\bench"
STREAM_QUEUE = r".\private$\stream"

FIRST_NUMBER = 10_000_000
"""Message numbers have one length, so that a request can be made by replacing one."""


def post_maker(port: int) -> tuple[bytes, bytes]:
    """Make the two halves of a request around the number of its message."""
    source = uuid4()
    envelope = wire.Envelope(
        path=wire.Path(
            action="MSMQ:bench",
            to=f"http://localhost:{port}/msmq/private$/bench",
            id=MessageId.of(source, FIRST_NUMBER),
        ),
        properties=wire.Properties(expires_at=wire.NEVER, sent_at=int(time.time())),
        services=wire.Services(durable=True),
        msmq=wire.Msmq(message_class=0, priority=3, body_type=0, source_qm=source, ttrq=wire.NEVER),
    )
    encoded = wire.encode_request(wire.SrmpMessage(envelope=envelope, body=BODY))
    headers = "".join(f"{name}: {value}\r\n" for name, value in encoded.headers)
    head = f"POST /msmq/private$/bench HTTP/1.1\r\nHost: localhost:{port}\r\n{headers}\r\n"
    request = head.encode() + encoded.body
    before, _, after = request.partition(str(FIRST_NUMBER).encode())
    return before, after


def _request(before: bytes, after: bytes, first: int, index: int) -> bytes:
    return b"%b%d%b" % (before, first + index, after)


async def _prepare(service: RunningService) -> None:
    async with AsyncClient.connect(data=service.data) as client:
        await client.create_queue(QUEUE)
        await client.create_queue(STREAM_QUEUE, transactional=True)


async def _transfer(source: RunningService, target: RunningService, *, as_stream: bool) -> float:
    """Messages per second from one manager to another."""
    name = STREAM_QUEUE if as_stream else QUEUE
    url = f"DIRECT=HTTP://127.0.0.1:{target.srmp_port}/msmq/private$/{name.rpartition(chr(92))[2]}"
    async with AsyncClient.connect(data=source.data) as here, AsyncClient.connect(data=target.data) as there:
        before = (await there.queue(name)).messages
        begin = time.perf_counter()
        for _ in range(TRANSFERRED // BATCH):
            batch = [MessageIn(body=BODY, durable=True) for _ in range(BATCH)]
            if as_stream:
                async with here.transaction() as transaction:
                    await transaction.send_many(url, batch)
            else:
                await here.send_many(url, batch)
        deadline = time.monotonic() + WAIT_SECONDS
        while (await there.queue(name)).messages < before + TRANSFERRED:
            if time.monotonic() > deadline:
                raise RuntimeError("the messages did not arrive")
            await asyncio.sleep(0.005)
        seconds = time.perf_counter() - begin
        await there.purge_queue(name)
        return TRANSFERRED / seconds


def main() -> list[Target]:
    posts = Rounds("posts on 32 connections", "messages/s", [])
    cpu = Rounds("processor time of a post, server", "us", [])
    classic = Rounds("RabbitMQ classic v1, 32 connections", "messages/s", [])
    classic_cpu = Rounds("processor time of a message, RabbitMQ classic v1", "us", [])
    quorum = Rounds("RabbitMQ quorum, 32 connections", "messages/s", [])
    durable = Rounds("manager to manager, durable", "messages/s", [])
    stream = Rounds("manager to manager, stream", "messages/s", [])
    with (
        disk_directory() as directory,
        rabbitmq_node(directory) as node,
        running_service(directory / "target") as target,
        running_service(directory / "source", name="SOURCE") as source,
    ):
        asyncio.run(_prepare(target))
        before, after = post_maker(target.srmp_port)
        for number in range(ROUNDS):
            first = FIRST_NUMBER + number * CONNECTIONS * PER_CONNECTION
            posted = post_in_turn(
                target.srmp_port,
                partial(_request, before, after, first),
                CONNECTIONS,
                PER_CONNECTION,
                server_pid=target.pid,
            )
            posts.values.append(posted.rate)
            cpu.values.append(posted.server_cpu / posted.messages * 1e6)
            peers: tuple[tuple[QueueType, Rounds], ...] = (("classic", classic), ("quorum", quorum))
            for kind, rates in peers:
                result = publish_connections(
                    node.port,
                    kind,
                    CONNECTIONS,
                    PER_CONNECTION,
                    server_pid=node.pid,
                )
                rates.values.append(result.rate)
                if kind == "classic":
                    classic_cpu.values.append(result.server_cpu / result.messages * 1e6)
            durable.values.append(asyncio.run(_transfer(source, target, as_stream=False)))
            stream.values.append(asyncio.run(_transfer(source, target, as_stream=True)))
    targets = [
        Target("posts against RabbitMQ classic v1", posts.median / classic.median, 1.25),
        Target("posts against RabbitMQ quorum", posts.median / quorum.median, 1.0),
        Target("manager to manager against posts", durable.median / posts.median, 0.5),
        Target("streams against durable messages", stream.median / durable.median, 0.8),
    ]
    print_report("SRMP", [posts, cpu, classic, classic_cpu, quorum, durable, stream, *targets])
    return targets


if __name__ == "__main__":
    main()
