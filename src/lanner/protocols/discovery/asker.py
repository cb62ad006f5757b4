"""The client's sockets and its timer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from lanner.protocols.discovery.actions import Discarded
from lanner.protocols.discovery.client import Action, Broadcast, ClientSession, Network
from lanner.protocols.discovery.incidents import Incidents
from lanner.protocols.discovery.sockets import DatagramSocket
from lanner.protocols.discovery.wire import MAX_PACKET_BYTES

__all__ = ["Asker"]

log = logging.getLogger(__name__)


class Asker:
    """Does what a client session says, and gives what is not about sockets to ``on_action``."""

    def __init__(
        self,
        session: ClientSession,
        port: int,
        rejections: Incidents,
        on_action: Callable[[Action], None],
    ) -> None:
        self.session = session
        self._port = port
        self._rejections = rejections
        self._on_action = on_action
        self._sockets: dict[str, DatagramSocket] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()

    def ask(self, networks: tuple[Network, ...]) -> None:
        """Get Directory Server List (3.1.4.1)."""
        self._perform(self.session.get_directory_server_list(networks, self._loop.time()))

    def stop(self) -> None:
        """Ask no more."""
        self.session.stop()
        self._settle()

    def _perform(self, actions: list[Action]) -> None:
        waiting = list(actions)
        try:
            while waiting:
                action = waiting.pop(0)
                if isinstance(action, Broadcast):
                    waiting += self._broadcast(action)
                else:
                    self._on_action(action)
        finally:
            self._settle()

    def _broadcast(self, action: Broadcast) -> list[Action]:
        network = action.network
        try:
            self._socket(network.address).send(action.packet, (network.broadcast, self._port))
        except OSError as error:
            log.warning("discovery: cannot ask on %s: %s", network.address, error)
            return self.session.network_failed(self._loop.time())
        return []

    def _socket(self, address: str) -> DatagramSocket:
        """A socket for each of our addresses: it tells over which network a reply comes."""
        opened = self._sockets.get(address)
        if opened is None:

            def take(packet: bytes, sender: tuple[str, int]) -> None:
                self._take(packet, sender[0], address)

            def fail(error: OSError) -> None:
                log.warning("discovery: the network of %s failed: %s", address, error)

            opened = DatagramSocket(address, 0, take, fail, packet_bytes=MAX_PACKET_BYTES)
            self._sockets[address] = opened
        return opened

    def _take(self, packet: bytes, source: str, address: str) -> None:
        now = self._loop.time()
        actions = self.session.receive(packet, address, now)
        if actions and isinstance(actions[0], Discarded):
            self._rejections.note(actions[0].reason, source, now)
        else:
            log.info("discovery: %s answered on %s", source, address)
            self._perform(actions)

    def _settle(self) -> None:
        """Keep sockets and timer as the session needs them."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.session.timer is not None:
            self._timer = self._loop.call_at(self.session.timer, self._expire)
        else:
            for opened in self._sockets.values():
                opened.close()
            self._sockets.clear()

    def _expire(self) -> None:
        self._timer = None
        # The loop may call a little before the time; the session goes by what it said.
        assert self.session.timer is not None
        self._perform(self.session.on_timer(max(self._loop.time(), self.session.timer)))
