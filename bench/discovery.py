"""Discovery: requests that a directory server answers, and a flood beside which others are still answered.

The server is a process of its own on loopback. With its limit raised, one asker keeps some requests under way
and counts the replies. The ratio beside it is taken in the same run: a bare loop of recvfrom and sendto that
answers everything with bytes that were made before. With the default limit, one address floods while others
ask.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import select
import socket
import statistics
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from uuid import UUID, uuid4

import uvloop

from bench.measure import Rounds, Target, print_report
from lanner.protocols.discovery.endpoint import DiscoveryEndpoint, Identity
from lanner.protocols.discovery.rate_limit import RateLimits
from lanner.protocols.discovery.wire import TopologyClientRequest, decode_reply

ENTERPRISE, SITE, OTHER_SITE = UUID(int=1), UUID(int=2), UUID(int=3)
SERVERS = tuple(f"DIRECTORY-{number}" for number in range(8))
IDENTITY = Identity(ENTERPRISE, "DIRECTORY-0", (SITE,), True, (UUID(int=4), UUID(int=5)), SERVERS)
RAISED = RateLimits(per_source=1e9, burst=10**9, total=1e9, total_burst=10**9)

ADDRESS = "127.0.2.1"
UNDER_WAY = 64
ROUND_SECONDS = 2.0
ROUNDS = 5

FLOOD_SECONDS = 6.0
OTHERS = 50
PATIENCE = 1.0
"""Seconds after which one of the others asks again."""


def main() -> list[Target]:
    answered = Rounds("requests answered, limit raised", "a second", [])
    bare = Rounds("a bare loop of recvfrom and sendto", "a second", [])
    cpu = Rounds("processor time of a request, server", "us", [])
    with _process(_serve, RAISED) as (port, pid), _process(_echo, RAISED) as (echo_port, _):
        for _ in range(ROUNDS):
            before = _cpu_seconds(pid)
            rate, count = _ask(port)
            answered.values.append(rate)
            cpu.values.append((_cpu_seconds(pid) - before) / count * 1e6)
            bare.values.append(_ask(echo_port)[0])
    limits = RateLimits()
    with _process(_serve, limits) as (port, pid):
        sent, got, seconds, waits, tries = _flood(port)
    allowed = limits.burst + limits.per_source * seconds
    targets = [
        Target("requests answered", answered.median, 10_000, unit="a second"),
        Target("replies to a flood against what its limit allows", got / allowed, 1.0, at_least=False),
        Target("others that were answered during the flood", len(waits) / OTHERS, 1.0, unit="of all"),
    ]
    typical, slowest = (statistics.median(waits), max(waits)) if waits else (0.0, 0.0)
    lines = [
        answered,
        cpu,
        bare,
        f"against the bare loop: {answered.median / bare.median:.2f} x",
        f"a flood of {sent / seconds:,.0f} requests a second got {got} replies in {seconds:.1f} s, "
        f"{allowed:.0f} are allowed",
        f"{len(waits)} of {OTHERS} others were answered during it, after {typical * 1e3:.1f} ms "
        f"(slowest {slowest * 1e3:.0f}), with {tries} requests",
    ]
    print_report("Discovery", [*lines, *targets])
    return targets


# The servers.


def _serve(limits: RateLimits, ready: Connection) -> None:
    async def run() -> None:
        endpoint = DiscoveryEndpoint(IDENTITY, interfaces=(ADDRESS,), port=0, limits=limits)
        await endpoint.start()
        ready.send(endpoint.port)
        await asyncio.Event().wait()

    uvloop.run(run())


def _echo(_: RateLimits, ready: Connection) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as bound:
        bound.bind((ADDRESS, 0))
        ready.send(bound.getsockname()[1])
        reply = bytes(300)
        while True:
            sender = bound.recvfrom(256)[1]
            bound.sendto(reply, sender)


@contextlib.contextmanager
def _process(run: Callable[[RateLimits, Connection], None], limits: RateLimits) -> Iterator[tuple[int, int]]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=run, args=(limits, theirs), daemon=True)
    process.start()
    try:
        assert ours.poll(30)
        assert process.pid is not None
        yield ours.recv(), process.pid
    finally:
        process.terminate()
        process.join()


def _cpu_seconds(pid: int) -> float:
    with open(f"/proc/{pid}/stat") as file:  # noqa: PTH123
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# Those who ask.


def _asker(address: str) -> socket.socket:
    asker = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    asker.bind((address, 0))
    return asker


def _ask(port: int) -> tuple[float, int]:
    """Keep requests under way; says how many replies a second came, and how many in all."""
    request = TopologyClientRequest(ENTERPRISE, uuid4(), OTHER_SITE).encode()
    with _asker("127.0.9.1") as asker:
        asker.connect((ADDRESS, port))
        asker.settimeout(1.0)
        for _ in range(UNDER_WAY):
            asker.send(request)
        count, began = 0, time.perf_counter()
        while (passed := time.perf_counter() - began) < ROUND_SECONDS:
            for _ in range(UNDER_WAY):
                asker.recv(2048)
                asker.send(request)
            count += UNDER_WAY
        return count / passed, count


def _flood(port: int) -> tuple[int, int, float, list[float], int]:
    """Flood from one address; others ask meanwhile, each from its own, and again after a second."""
    request = TopologyClientRequest(ENTERPRISE, uuid4(), OTHER_SITE).encode()
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    flooder = context.Process(target=_flood_from, args=(request, port, theirs), daemon=True)
    flooder.start()
    assert ours.poll(30)
    ours.recv()
    time.sleep(0.3)
    waits, tries = [], 0
    for number in range(OTHERS):
        with _asker(f"127.0.10.{number + 1}") as other:
            began = time.perf_counter()
            while not ours.poll():
                other.sendto(request, (ADDRESS, port))
                tries += 1
                if select.select([other], [], [], PATIENCE)[0]:
                    decode_reply(other.recv(2048))
                    waits.append(time.perf_counter() - began)
                    break
    assert ours.poll(60)
    sent, got, seconds = ours.recv()
    flooder.join()
    return sent, got, seconds, waits, tries


def _flood_from(request: bytes, port: int, report: Connection) -> None:
    with _asker("127.0.9.1") as asker:
        asker.connect((ADDRESS, port))
        asker.setblocking(False)
        report.send("flooding")
        sent = got = 0
        began = time.perf_counter()
        while time.perf_counter() - began < FLOOD_SECONDS:
            for _ in range(100):
                with contextlib.suppress(BlockingIOError):
                    asker.send(request)
                    sent += 1
            with contextlib.suppress(BlockingIOError):
                while asker.recv(2048):
                    got += 1
        seconds = time.perf_counter() - began
        time.sleep(0.2)
        with contextlib.suppress(BlockingIOError):
            while asker.recv(2048):
                got += 1
        report.send((sent, got, seconds))


if __name__ == "__main__":
    main()
