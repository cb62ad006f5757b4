"""The client of MS-MQSD 3.1: asks one network after the other for directory servers.

Theory of operation. *Get Directory Server List* broadcasts a request on the first network and waits. A
server of our own site answers without a list, one of another site with its list. An answer of our own site
ends the waiting on this network. The first list of another site is held, and the time for our own site to
answer begins again; the second one ends the waiting. When the last network is done, what was heard populates
the queue manager's lists.

The state follows from two elements of 3.1.1.2: is CurrentNetworkIndex the last one, and is
LastTopologyServerReply empty?

    IDLE           nothing is asked
    ASKING         more networks follow, nothing is held
    HOLDING        more networks follow, the list of another site is held
    ASKING_LAST    on the last network, nothing is held
    HOLDING_LAST   on the last network, the list of another site is held

    state        | get list      | own site's reply | other site's reply | timer or failure  | other packet
    -------------+---------------+------------------+--------------------+-------------------+-------------
    IDLE         | ask the first | discard          | discard            | nothing           | discard
    ASKING       | nothing       | ask the next     | hold, wait again   | ask the next      | discard
    HOLDING      | nothing       | ask the next     | ask the next       | ask the next      | discard
    ASKING_LAST  | nothing       | populate         | hold, wait again   | populate, or fail | discard
    HOLDING_LAST | nothing       | populate         | populate           | populate          | discard

*Ask the first* leads to ASKING or ASKING_LAST, or completes at once where 3.1.4.1 has nothing to do; without
any network it fails. *Ask the next* leads to ASKING or ASKING_LAST. *Populate* and *fail* lead to IDLE.
ASKING_LAST fails at its timer if no network has answered (3.1.6.1). Stopping leads to IDLE from anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias
from uuid import UUID, uuid4

from lanner.protocols.discovery.actions import Discarded
from lanner.protocols.discovery.wire import (
    PacketFault,
    TopologyClientRequest,
    TopologyServerReply,
    decode_reply,
)

__all__ = [
    "Action",
    "Broadcast",
    "ClientSession",
    "ClientState",
    "Completed",
    "Network",
    "PopulateConnectedNetworkIdentifierList",
    "PopulateDirectoryServerList",
    "WAIT_FOR_RESPONSE",
]

WAIT_FOR_RESPONSE = 15.0
"""Seconds of the Wait For Response Timer (3.1.2.1)."""


@dataclass(frozen=True, slots=True)
class Network:
    """An entry of NetworkAddressList: our address there, and where a broadcast goes."""

    address: str
    broadcast: str
    is_remote_access: bool = False
    """A dialled line, what 3.1.4.1 calls a Remote Access Service address."""


@dataclass(frozen=True, slots=True)
class Broadcast:
    """Send a packet to everybody on a network."""

    network: Network
    packet: bytes


@dataclass(frozen=True, slots=True)
class PopulateDirectoryServerList:
    """3.1.7.1."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PopulateConnectedNetworkIdentifierList:
    """3.1.7.2."""

    identifiers: tuple[UUID, ...]


@dataclass(frozen=True, slots=True)
class Completed:
    """Get Directory Server List has ended, well or not."""

    succeeded: bool
    reason: str


Action: TypeAlias = (
    Broadcast | PopulateDirectoryServerList | PopulateConnectedNetworkIdentifierList | Completed | Discarded
)


class ClientState(Enum):
    """Where a session is; the table above says what it does there."""

    IDLE = "idle"
    ASKING = "asking"
    HOLDING = "holding"
    ASKING_LAST = "asking the last network"
    HOLDING_LAST = "holding on the last network"


class ClientSession:
    """The state machine. The elements of 3.1.1.2 have their names."""

    def __init__(
        self, enterprise_id: UUID, site_id: UUID, *, make_request_id: Callable[[], UUID] = uuid4
    ) -> None:
        self.enterprise_id = enterprise_id
        self.site_id = site_id
        self.request_id = UUID(int=0)
        self.last_successful_network_address = ""
        self.valid_last_successful_network_address = False
        self.last_topology_server_reply: TopologyServerReply | None = None
        self.topology_server_reply_received = False
        self.network_address_list: tuple[Network, ...] = ()
        self.current_network_index = 0
        self.timer: float | None = None
        """When the Wait For Response Timer expires; none where it is stopped."""
        self._is_asking = False
        self._latest: TopologyServerReply | None = None
        self._make_request_id = make_request_id

    @property
    def number_of_network_addresses(self) -> int:
        """NumberOfNetworkAddresses."""
        return len(self.network_address_list)

    @property
    def state(self) -> ClientState:
        """Where in the table we are."""
        if not self._is_asking:
            return ClientState.IDLE
        if self.last_topology_server_reply is None:
            return ClientState.ASKING_LAST if self._is_last else ClientState.ASKING
        return ClientState.HOLDING_LAST if self._is_last else ClientState.HOLDING

    @property
    def _is_last(self) -> bool:
        return self.current_network_index == self.number_of_network_addresses

    @property
    def _network(self) -> Network:
        return self.network_address_list[self.current_network_index - 1]  # counted from 1 (3.1.4.1, 3.1.5.1)

    # Events.

    def get_directory_server_list(self, networks: Sequence[Network], now: float) -> list[Action]:
        """3.1.4.1. Whoever asks while we are asking gets the same answer."""
        if self._is_asking:
            return []
        self.network_address_list = tuple(networks)
        if not any(network.address == self.last_successful_network_address for network in networks):
            # An address that the computer has lost is no valid one any more (3.1.1.2).
            self.valid_last_successful_network_address = False
        if self.valid_last_successful_network_address and not any(each.is_remote_access for each in networks):
            return [Completed(True, f"known already from {self.last_successful_network_address}")]
        if not networks:
            return [Completed(False, "there is no network to ask")]
        self.request_id = self._make_request_id()
        self.current_network_index = 0
        self.topology_server_reply_received = False
        self._latest = None
        self._is_asking = True
        return [self._send(now)]

    def receive(self, packet: bytes, network: str, now: float) -> list[Action]:
        """3.1.5.2: a packet came to our address on a network."""
        if not self._is_asking:
            return [Discarded("nothing is being asked")]
        if network != self._network.address:
            return [Discarded(f"it came over {network}, not over {self._network.address}")]
        try:
            reply = decode_reply(packet)
        except PacketFault as fault:
            return [Discarded(str(fault))]
        if reply.correlation_id != self.request_id:
            return [Discarded("its CorrelationID is not that of our request")]
        return self._take(reply, now)

    def on_timer(self, now: float) -> list[Action]:
        """3.1.6.1 No Server Response, if it is time."""
        if self.timer is None or now < self.timer:
            return []
        return self._no_response(now)

    def network_failed(self, now: float) -> list[Action]:
        """The request could not be sent: nobody on this network will answer, and there is no need to wait."""
        return self._no_response(now) if self._is_asking else []

    def stop(self) -> None:
        """Ask no more."""
        self._is_asking = False
        self.timer = None

    # What they do.

    def _send(self, now: float) -> Broadcast:
        """3.1.5.1."""
        self.current_network_index += 1
        self.last_topology_server_reply = None
        self.timer = now + WAIT_FOR_RESPONSE
        request = TopologyClientRequest(self.enterprise_id, self.request_id, self.site_id)
        return Broadcast(self._network, request.encode())

    def _take(self, reply: TopologyServerReply, now: float) -> list[Action]:
        held = self.last_topology_server_reply is not None
        self._latest = reply
        if reply.is_from_our_site:
            self._succeed_here()
            if self._is_last:
                return self._complete()
            self.last_topology_server_reply = reply  # until the next request empties it
            return [self._send(now)]
        if not held:
            self._succeed_here()
            self.last_topology_server_reply = reply
            self.timer = now + WAIT_FOR_RESPONSE
            return []
        if not self._is_last:
            return [self._send(now)]
        self._succeed_here()
        return self._complete()

    def _succeed_here(self) -> None:
        self.topology_server_reply_received = True
        self.last_successful_network_address = self._network.address
        self.valid_last_successful_network_address = True

    def _no_response(self, now: float) -> list[Action]:
        if not self._is_last:
            return [self._send(now)]
        if self.last_topology_server_reply is None and not self.topology_server_reply_received:
            self.valid_last_successful_network_address = False
            self.stop()
            return [Completed(False, f"no answer on {self.number_of_network_addresses} networks")]
        return self._complete()

    def _complete(self) -> list[Action]:
        """Populate the lists and end.

        Deviation: 3.1.5.1 empties LastTopologyServerReply with every request, and on the last network an
        answer of our own site is not copied to it, so that what was heard would be lost. Where it is empty,
        the last reply to this request stands for it, which is what 3.1.1.2 calls it.
        """
        reply = self.last_topology_server_reply or self._latest
        assert reply is not None
        self.stop()
        actions: list[Action] = []
        if reply.servers:
            actions.append(PopulateDirectoryServerList(tuple(server.name for server in reply.servers)))
        actions.append(PopulateConnectedNetworkIdentifierList(reply.connected_networks))
        actions.append(Completed(True, f"answered on {self.last_successful_network_address}"))
        return actions
