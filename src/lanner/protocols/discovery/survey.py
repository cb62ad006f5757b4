"""Asking every network at once, for people who want to see who is there.

The client of 3.1 stops at the first good answer, because a queue manager needs one. A survey sends the same
request and takes every answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID, uuid4

from lanner.protocols.discovery.client import Network
from lanner.protocols.discovery.sockets import DatagramSocket
from lanner.protocols.discovery.wire import (
    MAX_PACKET_BYTES,
    PacketFault,
    TopologyClientRequest,
    TopologyServerReply,
    decode_reply,
)

__all__ = ["MAX_ANSWERS", "Answer", "Survey", "survey"]

MAX_ANSWERS = 10_000
"""More would be no network but somebody who makes answers up."""


@dataclass(frozen=True)
class Answer:
    """A directory server that answered, and what it said."""

    address: str
    network: str
    reply: TopologyServerReply


@dataclass(frozen=True)
class Survey:
    """What was heard."""

    answers: tuple[Answer, ...]
    failures: tuple[str, ...]
    """Networks that could not be asked, and why."""
    unreadable: int
    """Packets that are no answer to our request."""


async def survey(
    networks: Sequence[Network], enterprise_id: UUID, site_id: UUID, *, port: int, timeout: float
) -> Survey:
    """Broadcast one request on each network, and listen for so many seconds."""
    request = TopologyClientRequest(enterprise_id, uuid4(), site_id)
    answers: dict[tuple[str, str], Answer] = {}
    failures: list[str] = []
    unreadable = 0

    def take(packet: bytes, address: str, network: str) -> None:
        nonlocal unreadable
        try:
            reply = decode_reply(packet)
        except PacketFault:
            unreadable += 1
            return
        if reply.correlation_id != request.request_id:
            unreadable += 1
        elif len(answers) < MAX_ANSWERS:
            answers.setdefault((address, network), Answer(address, network, reply))

    sockets = []
    try:
        for network in networks:
            try:
                sockets.append(_ask(network, request.encode(), port, take))
            except OSError as error:
                failures.append(f"{network.address}: {error.strerror or error}")
        if sockets:
            await asyncio.sleep(timeout)
    finally:
        for opened in sockets:
            opened.close()
    ordered = sorted(answers.values(), key=lambda answer: (answer.network, answer.address))
    return Survey(tuple(ordered), tuple(failures), unreadable)


def _ask(
    network: Network, packet: bytes, port: int, take: Callable[[bytes, str, str], None]
) -> DatagramSocket:
    opened = DatagramSocket(
        network.address,
        0,
        lambda answer, sender: take(answer, sender[0], network.address),
        lambda _: None,
        packet_bytes=MAX_PACKET_BYTES,
    )
    try:
        opened.send(packet, (network.broadcast, port))
    except OSError:
        opened.close()
        raise
    return opened
