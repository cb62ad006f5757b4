"""Two managers that exchange messages, seen and steered over the management protocol."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.scenarios.srmp_machines import PATIENCE, Machine

from lanner.model.message import Delivery, Message
from lanner.protocols.management.client import ManagementClient
from lanner.protocols.management.endpoint import ManagementEndpoint
from lanner.protocols.management.settings import ManagementSettings

ORDERS = r".\private$\orders"
LATE = {"srmp_coalescing": 60.0, "srmp_coalescing_limit": 120.0}
"""A receiver that says nothing for a long time."""


@asynccontextmanager
async def managed(machine: Machine, data: Path) -> AsyncIterator[ManagementClient]:
    """A client of a machine's management."""
    settings = ManagementSettings(anonymous_loopback=True, endpoint_mapper=False)
    endpoint = ManagementEndpoint(machine.manager, settings, "127.0.0.1", port=0, data=data)
    await endpoint.start()
    async with await ManagementClient.connect("127.0.0.1", port=endpoint.port) as client:
        yield client
    await endpoint.stop()


@asynccontextmanager
async def running(machine: Machine) -> AsyncIterator[Machine]:
    await machine.start()
    try:
        yield machine
    finally:
        await machine.stop()


async def seen(
    client: ManagementClient, queue: str, condition: Callable[[dict[str, Any]], bool]
) -> dict[str, Any]:
    """Ask until a queue is as it is to be."""
    deadline = time.monotonic() + PATIENCE
    while not condition(found := await client.get_queue(queue)):
        assert time.monotonic() < deadline, found
        await asyncio.sleep(0.02)
    return found


@pytest.fixture
async def alpha(tmp_path: Path) -> AsyncIterator[Machine]:
    async with running(Machine(tmp_path, "alpha", srmp_resend=(60.0,))) as machine:
        yield machine


async def test_a_stream_from_both_sides(alpha: Machine, tmp_path: Path) -> None:
    async with running(Machine(tmp_path, "beta")) as beta:
        await beta.create("orders", transactional=True)
        address = beta.address("orders")
        await alpha.send_stream(address, *[Message(label=str(number)) for number in range(3)])
        await beta.until_count(ORDERS, 3)
        async with managed(alpha, tmp_path) as here, managed(beta, tmp_path) as there:
            # The receipt is counted when it comes, and the messages go when that is durable.
            out = await seen(
                here,
                address,
                lambda found: found["last-acknowledged-count"] > 0 and found["message-count"] == 0,
            )
            assert out["state"] == "CONNECTED"
            assert out["location"] == "REMOTE"
            assert out["next-hops"] == ["IP=127.0.0.1"]
            assert (out["message-count"], out["unacknowledged-count"]) == (0, 0)
            assert abs(out["last-acknowledged-time"] - time.time()) < 60
            assert out["next-sequence"].number == 4
            [*_, attempt] = out["connection-history"]
            assert (attempt.status, attempt.error) == ("established", 0)
            into = await there.get_queue(ORDERS, "sources", "message-count", "transactional")
            assert (into["message-count"], into["transactional"]) == (3, "YES")
            [source] = into["sources"]
            assert (source.sender, source.number, source.rejections) == (alpha.manager.identifier, 3, 0)
            assert source.stream == out["next-sequence"].stream
            assert abs(source.last_access - time.time()) < 60
        await beta.restart()
        async with managed(beta, tmp_path) as there:
            [again] = (await there.get_queue(ORDERS, "sources"))["sources"]
            assert (again.sender, again.stream, again.number) == (source.sender, source.stream, 3)
            assert abs(again.last_access - source.last_access) <= 1, "a restart is no access"


async def test_what_waits_for_its_acknowledgment_is_sent_again_when_asked(
    alpha: Machine, tmp_path: Path
) -> None:
    async with running(Machine(tmp_path, "beta", **LATE)) as beta:
        await beta.create("orders", transactional=True)
        address = beta.address("orders")
        await alpha.send_stream(address, *[Message(label=str(number)) for number in range(3)])
        await beta.until_count(ORDERS, 3)
        async with managed(alpha, tmp_path) as here:
            out = await seen(here, address, lambda found: found["unacknowledged-count"] == 3)
            places = [out[f"{which}-unacknowledged"].number for which in ("first", "last")]
            assert places == [1, 3]
            assert (out["resend-count"], out["resend-interval"]) == (0, 60)
            assert 0 < out["resend-time"] - time.time() <= 61
            assert out["last-acknowledged"].number == 0
            await here.act("EOD_RESEND", address)
            again = await seen(here, address, lambda found: found["unacknowledged-count"] == 3)
            assert again["resend-count"] == 1
        deadline = time.monotonic() + PATIENCE
        while await _duplicates(beta) < 3:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.02)
        assert await beta.labels(ORDERS) == ["0", "1", "2"], "once each"


async def _duplicates(machine: Machine) -> int:
    rows = await machine.manager.history.rows(1, machine.manager.history.last_lsn)
    return sum(row.event == "duplicate" for row in rows)


async def test_pause_and_resume(alpha: Machine, tmp_path: Path) -> None:
    async with running(Machine(tmp_path, "beta")) as beta:
        await beta.create("orders")
        address = beta.address("orders")
        await alpha.manager.send(address, Message(label="first", delivery=Delivery.RECOVERABLE))
        await beta.until_count(ORDERS, 1)
        async with managed(alpha, tmp_path) as here:
            await here.act("pause", address)
            await alpha.manager.send(address, Message(label="second", delivery=Delivery.RECOVERABLE))
            await asyncio.sleep(0.3)
            held = await here.get_queue(address, "state", "message-count", "next-hops")
            assert held == {"state": "ONHOLD", "message-count": 1, "next-hops": None}
            assert beta.count(ORDERS) == 1
            await here.act("resume", address)
        await beta.until_count(ORDERS, 2)


async def test_disconnect_and_connect(alpha: Machine, tmp_path: Path) -> None:
    async with running(Machine(tmp_path, "beta")) as beta:
        await beta.create("orders")
        address = beta.address("orders")
        async with managed(alpha, tmp_path) as here:
            await here.act("disconnect")
            await alpha.manager.send(address, Message(delivery=Delivery.RECOVERABLE))
            await asyncio.sleep(0.3)
            assert await here.get_machine("connected") == {"connected": "DISCONNECTED"}
            assert beta.count(ORDERS) == 0
            await here.act("connect")
        await beta.until_count(ORDERS, 1)


async def test_why_nothing_arrives_is_in_the_history_of_connections(alpha: Machine, tmp_path: Path) -> None:
    address = Machine(tmp_path, "gamma").address("orders")  # it was never started
    await alpha.manager.send(address, Message(delivery=Delivery.RECOVERABLE))
    async with managed(alpha, tmp_path) as here:
        found = await seen(here, address, lambda found: bool(found["connection-history"]))
        failed = await seen(
            here, address, lambda found: any(each.error for each in found["connection-history"])
        )
    assert found["message-count"] == 1
    attempt = next(each for each in failed["connection-history"] if each.error)
    assert attempt.status == "connection refused"
    assert attempt.addresses == (r"\\gamma",)
