"""The service is killed with -9 under load from 32 clients that retry with the same key.

Shown: every message that was acknowledged is there, none is there twice, and a client that retries across
the restart gets an answer. The service keeps its port, so clients find it again as they would in life.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import httpx
import pytest

from lanner.client import AsyncClient

QUEUE = r".\private$\orders"
CLIENTS = 32
START_SECONDS = 20.0
PATIENCE = 30.0


class KilledService:
    """``lanner serve`` in a process of its own, on one port for good."""

    def __init__(self, data: Path) -> None:
        self.data = data
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]

    async def start(self) -> None:
        command = [
            sys.executable,
            "-m",
            "lanner",
            "serve",
            "--data",
            str(self.data),
            "--api-port",
            str(self.port),
            "--srmp-port",
            "0",
        ]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        async with asyncio.timeout(START_SECONDS), httpx.AsyncClient() as http:
            while not await self._is_ready(http):
                assert self._process.poll() is None, "the service did not start"
                await asyncio.sleep(0.02)

    async def _is_ready(self, http: httpx.AsyncClient) -> bool:
        try:
            return (await http.get(f"http://127.0.0.1:{self.port}/health/ready")).status_code == 200
        except httpx.TransportError:
            return False

    def kill(self) -> None:
        os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait(10)

    def stop(self) -> None:
        self._process.terminate()
        assert self._process.wait(15) == 0


async def send_until(client: AsyncClient, name: str, stopped: asyncio.Event, acknowledged: list[str]) -> None:
    number = 0
    while not stopped.is_set():
        label = f"{name}-{number}"
        await client.send(QUEUE, b"x" * 200, label=label, durable=True, key=label)
        acknowledged.append(label)
        number += 1


async def run_with_kills(service: KilledService, kills: int, seed: int) -> list[str]:
    """Let 32 clients send while the service is killed and started again."""
    chance = random.Random(seed)
    acknowledged: list[str] = []
    stopped = asyncio.Event()
    async with AsyncClient.connect(data=service.data, patience=PATIENCE) as client:
        senders = [
            asyncio.create_task(send_until(client, f"client{n}", stopped, acknowledged))
            for n in range(CLIENTS)
        ]
        for _ in range(kills):
            await _progress(acknowledged)
            await asyncio.sleep(chance.uniform(0.0, 0.5))
            service.kill()
            await service.start()
        await _progress(acknowledged)
        stopped.set()
        await asyncio.gather(*senders)
    return acknowledged


async def _progress(acknowledged: list[str]) -> None:
    """Let every client get something through, however busy the machine is."""
    wanted = len(acknowledged) + CLIENTS
    for _ in range(int(PATIENCE / 0.02)):
        if len(acknowledged) >= wanted:
            return
        await asyncio.sleep(0.02)
    pytest.fail("the clients get nothing through")


async def check(service: KilledService, acknowledged: list[str]) -> None:
    async with AsyncClient.connect(data=service.data) as client:
        there = Counter([message.label async for message in client.browse(QUEUE, bodies=False)])
    assert [label for label, count in there.items() if count > 1] == []
    assert set(acknowledged) - set(there) == set()
    assert len(acknowledged) > CLIENTS


async def proof(data: Path, kills: int) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    service = KilledService(data)
    await service.start()
    async with AsyncClient.connect(data=data) as client:
        await client.create_queue(QUEUE)
    acknowledged = await run_with_kills(service, kills, seed)
    await check(service, acknowledged)
    service.stop()


async def test_nothing_acknowledged_is_lost_and_nothing_is_there_twice(tmp_path: Path) -> None:
    await proof(tmp_path / "data", kills=3)


@pytest.mark.soak
async def test_the_same_over_many_kills(tmp_path: Path) -> None:
    await proof(tmp_path / "data", kills=100)


async def test_a_stop_by_signal_is_clean_and_quick(tmp_path: Path) -> None:
    service = KilledService(tmp_path / "data")
    await service.start()
    async with AsyncClient.connect(data=tmp_path / "data") as client:
        await client.create_queue(QUEUE)
        await client.send(QUEUE, b"kept", durable=True)
        waiting = asyncio.create_task(client.receive(QUEUE + ";none", wait=60))
        await asyncio.sleep(0.1)
        begin = time.monotonic()
        service.stop()
        assert time.monotonic() - begin < 10
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    await service.start()
    async with AsyncClient.connect(data=tmp_path / "data") as client:
        assert [message.body async for message in client.browse(QUEUE)] == [b"kept"]
    service.stop()
