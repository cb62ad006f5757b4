"""A stream goes through a third queue manager, over bad networks, and any of the three is killed."""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import AsyncExitStack
from pathlib import Path

from tests.scenarios.lossy_proxy import LossyProxy, Weather
from tests.scenarios.srmp_process import SrmpProcess

from lanner.client import AsyncClient
from lanner.schema.messages import MessageIn

QUEUE = r".\private$\stream"
COUNT = 3_000
KILLS = 5
ARRIVAL_SECONDS = 60.0
NAMES = "names = { alpha = '127.0.0.1', beta = '127.0.0.1', gamma = '127.0.0.1' }"
WEATHER = Weather(largest_cut=100_000)


async def send(alpha: SrmpProcess, address: str, chance: random.Random) -> None:
    async with alpha.client() as client:
        first = 0
        while first < COUNT:
            size = min(chance.randint(1, 50), COUNT - first)
            messages = [MessageIn(label=str(number)) for number in range(first, first + size)]
            await client.send_many(address, messages, key=str(first), transactional=True)
            first += size


async def kill(machines: list[SrmpProcess], chance: random.Random) -> None:
    for _ in range(KILLS):
        await asyncio.sleep(chance.uniform(0.2, 0.8))
        victim = chance.choice(machines)
        victim.kill()
        await victim.start()


async def wait_until_settled(beta: AsyncClient, alpha: AsyncClient, address: str) -> None:
    deadline = time.monotonic() + ARRIVAL_SECONDS
    while (await beta.queue(QUEUE)).messages < COUNT or (await alpha.queue(address)).messages:
        left = (await alpha.queue(address)).messages
        assert time.monotonic() < deadline, f"{(await beta.queue(QUEUE)).messages} arrived, {left} left"
        await asyncio.sleep(0.1)


async def test_a_stream_through_a_third_manager(tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    alpha, beta, gamma = (SrmpProcess(tmp_path / name, name) for name in ("alpha", "beta", "gamma"))
    proxies = [
        LossyProxy(machine.port, seed + number, WEATHER)
        for number, machine in enumerate((alpha, beta, gamma))
    ]
    async with AsyncExitStack() as stack:
        ports = []
        for proxy in proxies:
            ports.append(await proxy.start())
            stack.push_async_callback(proxy.stop)
        for machine, port in zip((alpha, beta, gamma), ports, strict=True):
            passes_on = "forward = true" if machine is gamma else ""
            machine.configure(f"http://{machine.name}:{port}", network=NAMES, srmp=passes_on)
            stack.callback(machine.end)
            await machine.start()
        address = f"DIRECT=HTTP://beta:{ports[1]}/msmq/private$/stream"
        async with beta.client() as receiver, alpha.client() as sender:
            await receiver.create_queue(QUEUE, transactional=True)
            await sender.add_redirection(
                "outbound", f"http://beta:{ports[1]}/*", f"http://gamma:{ports[2]}/msmq/"
            )
            await asyncio.gather(send(alpha, address, chance), kill([alpha, beta, gamma], chance))
            for proxy in proxies:
                proxy.calm_down()
            await wait_until_settled(receiver, sender, address)
            arrived = [int(message.label) async for message in receiver.browse(QUEUE, bodies=False)]
        assert arrived == list(range(COUNT))
        assert proxies[2].met.total() > 0  # it did go that way
        for machine in (alpha, beta, gamma):
            assert machine.complaints() == []
