"""Sockets and timers, on loopback: every manager has its own address there, and they hear its broadcasts."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from uuid import UUID

import pytest
from tests.protocols.discovery.samples import (
    ENTERPRISE,
    NETWORK,
    OTHER_REPLY,
    OTHER_SITE,
    REQUEST,
    SITE,
    capture,
)

from lanner.model.errors import InvalidPropertyError, ListenError
from lanner.protocols.discovery import client, endpoint
from lanner.protocols.discovery.endpoint import DiscoveryEndpoint, Identity
from lanner.protocols.discovery.flood_filter import FLOOD_PACKETS
from lanner.protocols.discovery.interfaces import networks_at
from lanner.protocols.discovery.rate_limit import RateLimits
from lanner.protocols.discovery.sockets import DatagramSocket
from lanner.protocols.discovery.survey import survey
from lanner.protocols.discovery.wire import decode_reply

SERVER = Identity(ENTERPRISE, "SRV", (OTHER_SITE,), True, (NETWORK,), ("BSC",))
CLIENT = Identity(ENTERPRISE, "CLI", (SITE,))
PATIENCE = 5.0

Start = Callable[..., "asyncio.Future[DiscoveryEndpoint]"]


@pytest.fixture(autouse=True)
def _short_timers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "WAIT_FOR_RESPONSE", 0.2)
    monkeypatch.setattr(endpoint, "ASK_AGAIN_SECONDS", 0.1)
    monkeypatch.setattr(endpoint, "LISTEN_AGAIN_SECONDS", 0.1)


@pytest.fixture
async def start() -> AsyncIterator[Callable[..., object]]:
    started: list[DiscoveryEndpoint] = []

    async def start_one(
        identity: Identity, address: str, port: int = 0, **others: object
    ) -> DiscoveryEndpoint:
        one = DiscoveryEndpoint(identity, interfaces=(address,), port=port, **others)  # type: ignore[arg-type]
        await one.start()
        started.append(one)
        return one

    yield start_one
    for one in started:
        await one.stop()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


class Peer:
    """A program that asks for itself."""

    def __init__(self, address: str = "127.0.9.1") -> None:
        self.received: list[bytes] = []
        self.socket = DatagramSocket(
            address, 0, lambda packet, _: self.received.append(packet), lambda _: None, packet_bytes=65_507
        )

    def ask(self, to: tuple[str, int], packet: bytes = b"") -> None:
        self.socket.send(packet or capture("4-request"), to)


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    one = Peer()
    yield one
    one.socket.close()


async def test_a_client_finds_a_server_by_broadcast(start: Start) -> None:
    server = await start(SERVER, "127.0.2.1")
    changes: list[int] = []
    found = await start(CLIENT, "127.0.1.1", server.port, on_change=lambda: changes.append(1))
    await until(lambda: bool(changes))
    assert found.directory_server_list == ("SRV", "BSC")
    assert found.connected_network_identifier_list == (NETWORK,)
    await asyncio.sleep(0.3)
    assert changes == [1]
    assert server.answered == 1


async def test_a_server_of_our_own_site_says_the_networks_and_we_keep_our_list(start: Start) -> None:
    server = await start(replace(SERVER, site_ids=(SITE,)), "127.0.2.1")
    found = await start(replace(CLIENT, directory_servers=("OLD",)), "127.0.1.1", server.port)
    await until(lambda: found.connected_network_identifier_list == (NETWORK,))
    assert found.directory_server_list == ("OLD",)


async def test_a_server_that_comes_later_is_found(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    probe = await start(SERVER, "127.0.2.1")
    port = probe.port
    await probe.stop()
    found = await start(CLIENT, "127.0.1.1", port)
    await asyncio.sleep(0.4)
    assert found.directory_server_list == ()
    assert "no directory server was found (asking again): no answer on 1 networks" in caplog.text
    await start(SERVER, "127.0.2.1", port)
    await until(lambda: found.directory_server_list == ("SRV", "BSC"))


async def test_two_servers_of_one_computer_hear_the_same_broadcast(start: Start) -> None:
    first = await start(SERVER, "127.0.2.1")
    second = await start(replace(SERVER, computer_name="TWO"), "127.0.3.1", first.port)
    heard = await survey(networks_at(["127.0.1.1"]), ENTERPRISE, SITE, port=first.port, timeout=0.3)
    assert [(answer.address, answer.reply.servers[0].name) for answer in heard.answers] == [
        ("127.0.2.1", "SRV"),
        ("127.0.3.1", "TWO"),
    ]
    assert (first.answered, second.answered) == (1, 1)


async def test_a_server_on_every_interface_hears_broadcasts_and_its_address(peer: Peer) -> None:
    server = DiscoveryEndpoint(SERVER, port=0)
    said = await server.start()
    assert said == f"UDP 0.0.0.0:{server.port}, as a directory server"
    for to in ("127.0.0.1", "127.255.255.255"):
        peer.ask((to, server.port))
    await until(lambda: len(peer.received) == 2)
    assert decode_reply(peer.received[0]).servers[0].name == "SRV"
    await server.stop()
    peer.ask(("127.0.0.1", server.port))
    await asyncio.sleep(0.1)
    assert len(peer.received) == 2


async def test_a_port_that_is_taken_is_said_at_the_start(start: Start) -> None:
    server = await start(SERVER, "127.0.2.1")
    with pytest.raises(ListenError, match=f"UDP port {server.port}: Address already in use"):
        await start(SERVER, "127.0.2.1", server.port)


async def test_an_address_that_is_not_ours_is_said_at_the_start(start: Start) -> None:
    with pytest.raises(ListenError, match=r"no interface that is up has the address 192\.0\.2\.77"):
        await start(SERVER, "192.0.2.77")


async def test_what_cannot_be_offered_is_refused_and_nothing_changes(start: Start) -> None:
    with pytest.raises(InvalidPropertyError, match="connected networks"):
        DiscoveryEndpoint(replace(SERVER, connected_networks=()))
    server = await start(SERVER, "127.0.2.1")
    with pytest.raises(InvalidPropertyError, match="no site"):
        server.adopt(replace(SERVER, site_ids=()))
    assert server.is_listening
    assert server.directory_server_list == ("SRV", "BSC")


async def test_a_change_of_the_directory_takes_effect_at_once(start: Start, peer: Peer) -> None:
    changes: list[int] = []
    server = await start(SERVER, "127.0.2.1", on_change=lambda: changes.append(1))
    port = server.port
    server.adopt(SERVER)
    assert changes == []
    other = UUID(int=77)
    server.adopt(replace(SERVER, directory_servers=("NEW", "srv"), connected_networks=(NETWORK, other)))
    assert changes == [1]
    assert server.port == port
    peer.ask(("127.0.2.1", port))
    await until(lambda: bool(peer.received))
    reply = decode_reply(peer.received[0])
    assert [each.name for each in reply.servers] == ["SRV", "NEW"]
    assert reply.connected_networks == (NETWORK, other)


async def test_a_server_becomes_a_client_and_a_server_again(start: Start) -> None:
    server = await start(SERVER, "127.0.2.1")
    changing = await start(replace(SERVER, computer_name="TWO"), "127.0.3.1", server.port)
    changing.adopt(CLIENT)
    await until(lambda: changing.directory_server_list == ("SRV", "BSC") and not changing.is_listening)
    changing.adopt(replace(SERVER, computer_name="TWO"))
    assert changing.is_listening
    assert changing.directory_server_list == ("TWO", "BSC")


async def test_reloading_asks_again_and_listens_again(start: Start) -> None:
    server = await start(SERVER, "127.0.2.1")
    found = await start(CLIENT, "127.0.1.1", server.port)
    await until(lambda: found.directory_server_list == ("SRV", "BSC"))
    server.adopt(replace(SERVER, directory_servers=("NEXT",)))
    assert found.reload() == [
        f"discovery looks at the network again: 127.0.1.1, as a client of UDP port {server.port}"
    ]
    await until(lambda: found.directory_server_list == ("SRV", "NEXT"))
    server.reload()
    assert server.is_listening


class BrokenNetwork:
    """Sending fails while it is broken; opening too, if that is wished."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_broken = False
        self.is_bound = True
        self.opened = 0
        send, bind = DatagramSocket.send, DatagramSocket.__init__

        def sending(one: DatagramSocket, packet: bytes, to: tuple[str, int]) -> None:
            if self.is_broken and packet[1] == 2:
                self.is_broken = False
                raise OSError(errno.ENETDOWN, "Network is down")
            send(one, packet, to)

        def binding(one: DatagramSocket, *arguments: object, **others: object) -> None:
            if not self.is_bound:
                raise OSError(errno.EADDRNOTAVAIL, "Cannot assign requested address")
            self.opened += 1
            bind(one, *arguments, **others)  # type: ignore[arg-type]

        monkeypatch.setattr(DatagramSocket, "send", sending)
        monkeypatch.setattr(DatagramSocket, "__init__", binding)


async def test_a_network_error_reopens_the_socket(
    start: Start, peer: Peer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    network = BrokenNetwork(monkeypatch)
    server = await start(SERVER, "127.0.2.1")
    port = server.port
    assert network.opened == 2  # one for the address, one for broadcasts
    network.is_broken = True
    peer.ask(("127.0.2.1", port))
    await until(lambda: network.opened == 4)
    assert "Network is down" in caplog.text
    assert server.port == port
    peer.ask(("127.0.2.1", port))
    peer.ask(("127.255.255.255", port))
    await until(lambda: len(peer.received) == 2)


async def test_a_socket_that_cannot_be_reopened_ends_the_listener_and_another_is_started(
    start: Start, peer: Peer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    network = BrokenNetwork(monkeypatch)
    server = await start(SERVER, "127.0.2.1")
    port = server.port
    network.is_broken, network.is_bound = True, False
    peer.ask(("127.0.2.1", port))
    await until(lambda: not server.is_listening)
    assert "requests are no longer answered" in caplog.text
    await until(lambda: "requests are not answered" in caplog.text)
    network.is_bound = True
    await until(lambda: server.is_listening)
    assert server.port == port
    peer.ask(("127.0.2.1", port))
    await until(lambda: len(peer.received) == 1)


async def test_a_client_whose_network_is_down_goes_on_to_the_next(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = await start(SERVER, "127.0.2.1")
    send = DatagramSocket.send

    def sending(one: DatagramSocket, packet: bytes, to: tuple[str, int]) -> None:
        if one._socket.getsockname()[0] == "127.0.1.1":
            raise OSError(errno.ENETUNREACH, "Network is unreachable")
        send(one, packet, to)

    monkeypatch.setattr(DatagramSocket, "send", sending)
    found = DiscoveryEndpoint(CLIENT, interfaces=("127.0.1.1", "127.0.1.2"), port=server.port)
    await found.start()
    await until(lambda: found.directory_server_list == ("SRV", "BSC"))
    await found.stop()


async def test_when_interfaces_cannot_be_listed_it_is_tried_again(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = await start(SERVER, "127.0.2.1")
    real = networks_at
    calls: list[int] = []

    def failing(addresses: tuple[str, ...]) -> tuple[client.Network, ...]:
        calls.append(1)
        if len(calls) == 1:
            raise OSError(errno.EMFILE, "Too many open files")
        return real(addresses)

    monkeypatch.setattr(endpoint, "networks_at", failing)
    found = await start(CLIENT, "127.0.1.1", server.port)
    await until(lambda: found.directory_server_list == ("SRV", "BSC"))


async def test_whoever_is_told_may_fail_and_discovery_goes_on(start: Start) -> None:
    def fail() -> None:
        raise RuntimeError("told")

    asyncio.get_running_loop().set_exception_handler(lambda *_: None)
    server = await start(SERVER, "127.0.2.1")
    found = await start(CLIENT, "127.0.1.1", server.port, on_change=fail)
    await until(lambda: found.directory_server_list == ("SRV", "BSC"))
    assert found._asker is not None
    assert found._asker._sockets == {}
    assert found._again is not None


async def test_the_list_can_be_waited_for(start: Start) -> None:
    server = await start(SERVER, "127.0.2.1")
    assert await server.get_directory_server_list()
    found = await start(CLIENT, "127.0.1.1", server.port)
    both = await asyncio.gather(found.get_directory_server_list(), found.get_directory_server_list())
    assert all(both)
    assert found.directory_server_list == ("SRV", "BSC")
    # From now on nothing is sent for it (3.1.4.1).
    answered = server.answered
    assert await found.get_directory_server_list()
    assert server.answered == answered == 1


async def test_whoever_waits_is_told_that_nobody_answered(start: Start) -> None:
    server = await start(SERVER, "127.0.2.1")
    await server.stop()
    found = await start(CLIENT, "127.0.1.1", server.port)
    given_up = asyncio.create_task(found.get_directory_server_list())
    await asyncio.sleep(0)
    given_up.cancel()
    assert await found.get_directory_server_list() is False
    waiting = asyncio.create_task(found.get_directory_server_list())
    await asyncio.sleep(0.01)
    await found.stop()
    assert await waiting is False
    assert await found.get_directory_server_list() is False


async def test_before_the_start_there_is_nothing_to_reload() -> None:
    assert DiscoveryEndpoint(CLIENT).reload() == []


async def test_the_client_leaves_no_socket_open(start: Start) -> None:
    server = await start(SERVER, "127.0.2.1")
    found = await start(CLIENT, "127.0.1.1", server.port)
    await until(lambda: found.directory_server_list == ("SRV", "BSC"))
    await asyncio.sleep(0)
    assert found._asker is not None
    assert found._asker._sockets == {}


@pytest.mark.parametrize("limits", [RateLimits(), RateLimits(per_source=0.5, burst=3)])
async def test_a_flood_gets_its_limit_and_others_are_answered(
    start: Start, peer: Peer, limits: RateLimits
) -> None:
    server = await start(SERVER, "127.0.2.1", limits=limits)
    loop = asyncio.get_running_loop()
    began = loop.time()
    for number in range(3000):
        peer.ask(("127.0.2.1", server.port))
        if number % 50 == 0:
            await asyncio.sleep(0)
    others = [Peer(f"127.0.10.{number}") for number in range(1, 6)]
    for other in others:
        other.ask(("127.0.2.1", server.port))
    await until(lambda: all(other.received for other in others))
    allowed = limits.burst + limits.per_source * (loop.time() - began)
    assert limits.burst <= len(peer.received) <= allowed
    assert server.rejections.count >= FLOOD_PACKETS
    for other in others:
        other.socket.close()


async def test_garbage_is_met_with_silence(
    start: Start, peer: Peer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    server = await start(SERVER, "127.0.2.1", limits=RateLimits(1e6, 10**6, 1e6, 10**6))
    request = capture("4-request")
    bad = [request[:length] for length in range(52)]
    bad += [bytes((0, kind, 0, 0)) + request[4:] for kind in range(256) if kind != 1]
    bad += [request + bytes(length) for length in (8, 200, 400, 9000, 60_000)]
    bad += [OTHER_REPLY.encode()]
    for number, packet in enumerate(bad):
        peer.ask(("127.0.2.1", server.port), packet or b"\0")
        if number % 20 == 0:
            await asyncio.sleep(0.001)
    await until(lambda: server.rejections.count == len(bad))
    assert peer.received == []
    assert len([line for line in caplog.text.splitlines() if "discarded" in line]) == 1
    peer.ask(("127.0.2.1", server.port), REQUEST.encode())
    await until(lambda: len(peer.received) == 1)


async def test_a_sender_without_a_port_is_not_answered(start: Start) -> None:
    server = await start(SERVER, "127.0.2.1")
    raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP) if _is_root() else None
    if raw is None:
        pytest.skip("only root may forge a packet")
    packet = REQUEST.encode()
    header = b"\0\0" + server.port.to_bytes(2, "big") + (8 + len(packet)).to_bytes(2, "big") + b"\0\0"
    with raw:
        raw.sendto(header + packet, ("127.0.2.1", 0))
    await until(lambda: server.rejections.count == 1)
    assert server.answered == 0


def _is_root() -> bool:
    return os.geteuid() == 0
