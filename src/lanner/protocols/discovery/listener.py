"""The server's sockets."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from lanner.model.errors import ListenError
from lanner.protocols.discovery.flood_filter import FloodWatch
from lanner.protocols.discovery.incidents import Incidents
from lanner.protocols.discovery.interfaces import networks_at
from lanner.protocols.discovery.server import Reply, ServerSession
from lanner.protocols.discovery.sockets import DatagramSocket

__all__ = ["EVERYWHERE", "Listener"]

log = logging.getLogger(__name__)

EVERYWHERE = "0.0.0.0"  # noqa: S104 - a broadcast is heard there alone, or on its own address

REQUEST_BYTES = 256
"""The longest request has 184 bytes. What is cut off here was too long anyway."""


class Listener:
    """Listens for requests and answers them, until its socket cannot be opened."""

    def __init__(
        self,
        session: ServerSession,
        interfaces: Sequence[str],
        port: int,
        rejections: Incidents,
        on_terminated: Callable[[], None],
    ) -> None:
        self.session = session
        self.port = port
        self.answered = 0
        self._interfaces = tuple(interfaces)
        self._rejections = rejections
        self._on_terminated = on_terminated
        self._failures = Incidents(log, logging.WARNING, "the network failed")
        self._flooding = Incidents(log, logging.WARNING, "a flood is dropped for a while")
        self._floods = FloodWatch()
        self._filter_timer: asyncio.TimerHandle | None = None
        self._sockets: list[DatagramSocket] = []
        self._loop = asyncio.get_running_loop()

    def start(self) -> None:
        """Open the sockets (3.2.3)."""
        if self.session.start() is not None:
            self._open()

    def stop(self) -> None:
        """Close them."""
        self.session.stop()
        self._close()
        if self._filter_timer is not None:
            self._filter_timer.cancel()

    def _open(self) -> None:
        self._close()
        try:
            if self._interfaces:
                self._open_each()
            else:
                self._listen(EVERYWHERE, None)
        except OSError as error:
            self._close()
            self.session.open_failed()
            where = " and ".join(self._interfaces) or EVERYWHERE
            raise ListenError(
                f"cannot listen on {where}, UDP port {self.port}: {error.strerror or error}",
                hint="another program has the port, or the address is not of this machine: choose another",
            ) from error
        self.session.opened()
        if self._floods.blocked:
            self._filter()

    def _open_each(self) -> None:
        """Listen on some interfaces alone: each has a socket for its address and one for its broadcasts."""
        networks = networks_at(self._interfaces)
        missing = set(self._interfaces) - {network.address for network in networks}
        if missing:
            raise OSError(f"no interface that is up has the address {' or '.join(sorted(missing))}")
        for network in networks:
            answering = self._listen(network.address, None)
            if network.broadcast != network.address and not network.is_remote_access:
                self._listen(network.broadcast, answering)

    def _listen(self, address: str, answering: DatagramSocket | None) -> DatagramSocket:
        """Open a socket. What comes to a broadcast address is answered from our own."""

        def take(packet: bytes, sender: tuple[str, int]) -> None:
            self._take(packet, sender, answering or opened)

        # Several managers of one computer hear its broadcasts; nobody else may take what is sent to us.
        opened = DatagramSocket(
            address,
            self.port,
            take,
            self._fail,
            packet_bytes=REQUEST_BYTES,
            is_shared=answering is not None,
        )
        self._sockets.append(opened)
        self.port = opened.port
        return opened

    def _close(self) -> None:
        for opened in self._sockets:
            opened.close()
        self._sockets.clear()

    def _take(self, packet: bytes, sender: tuple[str, int], answering: DatagramSocket) -> None:
        now = self._loop.time()
        address, port = sender
        if port == 0 or address == EVERYWHERE:
            # Nothing can be sent there; trying it would only have us reopen the socket.
            self._discard("its sender has no address", address, now)
            return
        answer = self.session.receive(packet, address, now)
        if not isinstance(answer, Reply):
            self._discard(answer.reason, address, now)
            return
        try:
            answering.send(answer.packet, sender)
        except OSError as error:
            self._fail(error, address)
        else:
            self.answered += 1

    def _discard(self, reason: str, address: str, now: float) -> None:
        self._rejections.note(reason, address, now)
        if self._floods.note(address, now):
            self._flooding.note(reason, address, now)
            self._filter()

    def _filter(self) -> None:
        """Drop floods before they fill the queue, until their time is over."""
        until = self._floods.release(self._loop.time())
        for opened in self._sockets:
            opened.drop(self._floods.blocked)
        if self._filter_timer is not None:
            self._filter_timer.cancel()
            self._filter_timer = None
        if until is not None:
            self._filter_timer = self._loop.call_at(until, self._filter)

    def _fail(self, error: OSError, address: str = "receiving") -> None:
        """A network error closes and reopens the socket; where that fails, the server terminates (3.2.5)."""
        now = self._loop.time()
        self._failures.note(error, address, now)
        if self.session.send_failed(now) is not None:
            try:
                self._open()
            except ListenError as failure:
                log.error("discovery: requests are no longer answered: %s", failure)
                self._on_terminated()
