"""Who is dropped and for how long, and the kernel's filter itself."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator

import pytest
from tests.protocols.discovery.samples import ENTERPRISE, NETWORK, OTHER_SITE, REQUEST

from lanner.protocols.discovery import flood_filter
from lanner.protocols.discovery.endpoint import DiscoveryEndpoint, Identity
from lanner.protocols.discovery.flood_filter import (
    BLOCK_SECONDS,
    FLOOD_PACKETS,
    MAX_BLOCKED,
    MAX_WATCHED,
    FloodWatch,
    attach,
)
from lanner.protocols.discovery.sockets import DatagramSocket

NOW = 1000.0


def flood(watch: FloodWatch, source: str, now: float = NOW) -> bool:
    return [watch.note(source, now) for _ in range(FLOOD_PACKETS)][-1]


def test_a_flood_is_dropped_and_let_go_again() -> None:
    watch = FloodWatch()
    assert not any(watch.note("a", NOW) for _ in range(FLOOD_PACKETS - 1))
    assert watch.note("a", NOW)
    assert not watch.note("a", NOW)
    assert watch.release(NOW + 1) == NOW + BLOCK_SECONDS
    assert list(watch.blocked) == ["a"]
    assert watch.release(NOW + BLOCK_SECONDS) is None
    assert not watch.blocked


def test_a_flood_that_goes_on_is_dropped_again() -> None:
    watch = FloodWatch()
    assert flood(watch, "a")
    watch.release(NOW + BLOCK_SECONDS)
    assert flood(watch, "a", NOW + BLOCK_SECONDS + 0.1)


def test_a_slow_sender_is_never_dropped() -> None:
    watch = FloodWatch()
    assert not any(watch.note("a", NOW + number * BLOCK_SECONDS / 100) for number in range(10_000))


def test_so_many_are_dropped_and_so_many_are_watched() -> None:
    watch = FloodWatch()
    for number in range(MAX_BLOCKED + 5):
        flood(watch, f"flood {number}")
    assert len(watch.blocked) == MAX_BLOCKED
    for number in range(MAX_WATCHED * 2):
        watch.note(f"source {number}", NOW)
    assert len(watch._counts) <= MAX_WATCHED


@pytest.fixture
def bound() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind(("127.0.2.1", 0))
        one.settimeout(0.2)
        yield one


def hears(bound: socket.socket, address: str) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.bind((address, 0))
        sender.sendto(b"x", bound.getsockname())
    try:
        return bool(bound.recvfrom(10)[1][0] == address)
    except TimeoutError:
        return False


def test_the_kernel_drops_these_and_nobody_else(bound: socket.socket) -> None:
    assert hears(bound, "127.0.9.1")
    attach(bound, ["127.0.9.1", "127.0.9.2"])
    assert [hears(bound, f"127.0.9.{number}") for number in (1, 2, 3)] == [False, False, True]
    attach(bound, ["127.0.9.2"])
    assert [hears(bound, f"127.0.9.{number}") for number in (1, 2)] == [True, False]
    attach(bound, [])
    assert hears(bound, "127.0.9.2")


def test_as_many_as_can_be_blocked_fit_a_filter(bound: socket.socket) -> None:
    attach(bound, [f"127.1.{number}.1" for number in range(MAX_BLOCKED)])
    dropped = [hears(bound, f"127.1.{number}.1") for number in (0, MAX_BLOCKED - 1, MAX_BLOCKED)]
    assert dropped == [False, False, True]


async def test_a_flooded_server_drops_the_flood_and_lets_it_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flood_filter, "BLOCK_SECONDS", 0.5)
    server = DiscoveryEndpoint(
        Identity(ENTERPRISE, "SRV", (OTHER_SITE,), True, (NETWORK,)), interfaces=("127.0.2.1",), port=0
    )
    await server.start()
    received: list[bytes] = []
    peer = DatagramSocket(
        "127.0.9.1", 0, lambda packet, _: received.append(packet), lambda _: None, packet_bytes=2000
    )
    for number in range(FLOOD_PACKETS * 4):
        peer.send(REQUEST.encode(), ("127.0.2.1", server.port))
        if number % 50 == 0:
            await asyncio.sleep(0.001)
    counted = server.rejections.count
    assert FLOOD_PACKETS <= counted < FLOOD_PACKETS * 2
    assert 1 <= len(received) <= 20
    # A bucket of two a second has filled a little when the time is over.
    await asyncio.sleep(1.2)
    before = len(received)
    peer.send(REQUEST.encode(), ("127.0.2.1", server.port))
    await asyncio.sleep(0.1)
    assert len(received) == before + 1
    peer.close()
    await server.stop()
