"""A survey takes every answer to its own request, once."""

from __future__ import annotations

import asyncio
from uuid import UUID

import pytest
from tests.protocols.discovery.samples import ENTERPRISE, NETWORK, OTHER_SITE, SITE, capture

from lanner.protocols.discovery.client import Network
from lanner.protocols.discovery.sockets import DatagramSocket
from lanner.protocols.discovery.survey import survey
from lanner.protocols.discovery.wire import DirectoryServer, TopologyServerReply, decode_request

LOOPBACK = Network("127.0.9.1", "127.255.255.255")


@pytest.mark.parametrize("copies", [1, 3])
async def test_answers_are_taken_once_and_the_rest_is_counted(copies: int) -> None:
    def answer(packet: bytes, sender: tuple[str, int]) -> None:
        request = decode_request(packet)
        assert (request.enterprise_id, request.site_id) == (ENTERPRISE, SITE)
        reply = TopologyServerReply(request.request_id, (NETWORK,), OTHER_SITE, (DirectoryServer("A"),))
        stranger = TopologyServerReply(UUID(int=9), (NETWORK,))
        for bad in (b"", b"garbage", capture("4-request"), stranger.encode()):
            server.send(bad, sender)
        for _ in range(copies):
            server.send(reply.encode(), sender)

    server = DatagramSocket("0.0.0.0", 0, answer, lambda _: None, packet_bytes=2000)
    heard = await survey([LOOPBACK], ENTERPRISE, SITE, port=server.port, timeout=0.2)
    [found] = heard.answers
    assert found.network == LOOPBACK.address
    assert found.reply.servers == (DirectoryServer("A"),)
    assert heard.unreadable == 4
    assert heard.failures == ()
    server.close()


async def test_a_network_that_fails_is_said_and_the_waiting_is_spared() -> None:
    began = asyncio.get_running_loop().time()
    heard = await survey([Network("203.0.113.7", "203.0.113.255")], ENTERPRISE, SITE, port=9, timeout=30)
    assert heard.answers == ()
    assert heard.failures == ("203.0.113.7: Cannot assign requested address",)
    assert asyncio.get_running_loop().time() - began < 5
