"""The server of MS-MQSD 3.2: answers requests of our enterprise.

Theory of operation. A server listens, and each request is answered by itself: there are no timers and no
private data elements. What has a state is the socket: a network error when sending closes and reopens it
(3.2.5).

    CLOSED      not started, or terminated
    OPENING     the socket is to be opened
    LISTENING   requests are answered

    state     | start        | opened       | open failed       | packet           | send failed  | stop
    ----------+--------------+--------------+-------------------+------------------+--------------+----------
    CLOSED    | open:OPENING | nothing      | nothing           | discard          | nothing      | nothing
    OPENING   | nothing      | to LISTENING | terminated:CLOSED | discard          | nothing      | to CLOSED
    LISTENING | nothing      | nothing      | nothing           | reply or discard | open:OPENING | to CLOSED

A socket that was reopened a moment ago is not reopened at the next error. A packet is answered if it is a
request, names our enterprise, and its sender has replies left. The specification has neither of the last two
rules; without them, a server would multiply whatever is sent to it in somebody else's name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias
from uuid import UUID

from lanner.model.errors import InvalidPropertyError
from lanner.protocols.discovery.actions import Discarded
from lanner.protocols.discovery.rate_limit import RateLimit
from lanner.protocols.discovery.wire import (
    MAX_ENTRIES,
    DirectoryServer,
    PacketFault,
    TopologyClientRequest,
    TopologyServerReply,
    answering,
    decode_request,
)

__all__ = ["MAX_REPLY_BYTES", "Offer", "OpenSocket", "Reply", "ServerSession", "ServerState", "Terminated"]

MAX_REPLY_BYTES = 1_472
"""One unfragmented Ethernet frame. Fragments get lost together, and a longer reply multiplies more."""

REOPEN_SECONDS = 1.0
"""The socket is reopened once in this time: what waits in it is lost, and a forged sender that cannot be
reached would have us lose it with every packet."""


@dataclass(frozen=True, slots=True)
class OpenSocket:
    """Open the socket; close it before, if it is open."""


@dataclass(frozen=True, slots=True)
class Terminated:
    """The server has ended, because its socket cannot be opened (3.2.5)."""


@dataclass(frozen=True, slots=True)
class Reply:
    """Send a packet to the sender of the request."""

    packet: bytes


Answer: TypeAlias = Reply | Discarded


class ServerState(Enum):
    """Where a session is; the table above says what it does there."""

    CLOSED = "closed"
    OPENING = "opening"
    LISTENING = "listening"


@dataclass(frozen=True)
class Offer:
    """The shared data elements of 3.2.1.1: what a server says of itself.

    A server of several sites counts as one of the asker's own if it is in that site, and as one of its first
    site otherwise. The names come first that are to be tried first.
    """

    enterprise_id: UUID
    site_ids: tuple[UUID, ...]
    connected_networks: tuple[UUID, ...]
    directory_servers: tuple[str, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.connected_networks) <= MAX_ENTRIES:
            raise InvalidPropertyError(
                f"a directory server is in 1 to {MAX_ENTRIES} connected networks, not in "
                f"{len(self.connected_networks)}",
                hint="say in the directory which networks it is in",
            )
        if not self.site_ids:
            raise InvalidPropertyError(
                "a directory server is in no site", hint="say in the directory which sites it is in"
            )
        if not self.directory_servers:
            raise InvalidPropertyError("a directory server offers at least its own name")
        # A name that cannot be sent is refused here, not when somebody asks.
        self._longest(self.directory_servers)
        if len(self._longest(self.directory_servers[:1])) > MAX_REPLY_BYTES:
            raise InvalidPropertyError(f"the name {self.directory_servers[0][:20]}... is too long")

    def fitting_servers(self) -> tuple[str, ...]:
        """The servers that one packet can name, from the first."""
        names = self.directory_servers
        room = MAX_REPLY_BYTES - len(self._longest(names[:1]))
        count = 1
        while count < len(names) and (room := room - _entry_bytes(names[count])) >= 0:
            count += 1
        return names[:count]

    def reply(
        self, request: TopologyClientRequest, servers: Sequence[DirectoryServer], *, over_ipx: bool = False
    ) -> TopologyServerReply:
        """3.2.5.1, from the second step on."""
        # Over IPX, one bit for every network that is listed.
        mask = (1 << len(self.connected_networks)) - 1 if over_ipx else 0
        if request.site_id in self.site_ids:
            return TopologyServerReply(
                request.request_id, self.connected_networks, connected_network_mask=mask
            )
        return TopologyServerReply(
            request.request_id, self.connected_networks, self.site_ids[0], tuple(servers), mask
        )

    def _longest(self, names: Sequence[str]) -> bytes:
        """A reply to another site with these names."""
        nobody = UUID(int=0)
        servers = tuple(map(DirectoryServer, names))
        try:
            return TopologyServerReply(nobody, self.connected_networks, nobody, servers).encode()
        except PacketFault as fault:
            raise InvalidPropertyError(
                str(fault), hint="a computer name has neither commas nor nulls"
            ) from fault


def _entry_bytes(name: str) -> int:
    """A comma, two flags and a name, in UTF-16."""
    return len(f",10{name}".encode("utf-16-le"))


class ServerSession:
    """The state machine."""

    def __init__(self, offer: Offer, rate_limit: RateLimit) -> None:
        self.state = ServerState.CLOSED
        self._rate_limit = rate_limit
        self._reopened_at = float("-inf")
        self.change(offer)

    def change(self, offer: Offer) -> None:
        """Say this from now on."""
        self.offer = offer
        self._servers = tuple(map(DirectoryServer, offer.fitting_servers()))
        self._replies: dict[tuple[bool, bool], bytes] = {}

    @property
    def offered_servers(self) -> tuple[str, ...]:
        """The names that a reply has room for."""
        return tuple(server.name for server in self._servers)

    def start(self) -> OpenSocket | None:
        """3.2.3: begin to listen."""
        if self.state is not ServerState.CLOSED:
            return None
        self.state = ServerState.OPENING
        return OpenSocket()

    def opened(self) -> None:
        """The socket is open."""
        if self.state is ServerState.OPENING:
            self.state = ServerState.LISTENING

    def open_failed(self) -> Terminated | None:
        """The socket cannot be opened: the server terminates (3.2.5)."""
        if self.state is not ServerState.OPENING:
            return None
        self.state = ServerState.CLOSED
        return Terminated()

    def send_failed(self, now: float) -> OpenSocket | None:
        """A network error when sending: close and reopen the socket (3.2.5), if that is not just done."""
        if self.state is not ServerState.LISTENING or now - self._reopened_at < REOPEN_SECONDS:
            return None
        self._reopened_at = now
        self.state = ServerState.OPENING
        return OpenSocket()

    def stop(self) -> None:
        """Answer no more."""
        self.state = ServerState.CLOSED

    def receive(self, packet: bytes, source: str, now: float, *, over_ipx: bool = False) -> Answer:
        """3.2.5.1: a packet came from an address."""
        if self.state is not ServerState.LISTENING:
            return Discarded("the server is not listening")
        try:
            request = decode_request(packet)
        except PacketFault as fault:
            return Discarded(str(fault))
        if request.enterprise_id != self.offer.enterprise_id:
            return Discarded("it is of another enterprise")
        if not self._rate_limit.allow(source, now):
            return Discarded("its sender has had its share of replies")
        return Reply(self._reply(request, over_ipx))

    def _reply(self, request: TopologyClientRequest, over_ipx: bool) -> bytes:
        """A reply is made once for each kind of asker: making it takes as long as all the rest."""
        kind = request.site_id in self.offer.site_ids, over_ipx
        reply = self._replies.get(kind)
        if reply is None:
            made = self.offer.reply(request, self._servers, over_ipx=over_ipx)
            reply = self._replies[kind] = made.encode()
        return answering(reply, request.request_id)
