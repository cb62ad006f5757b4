"""UDP sockets on an event loop."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterable

from lanner.protocols.discovery.flood_filter import attach

__all__ = ["DatagramSocket"]

PACKETS_AT_ONCE = 64
"""So many packets are read before others on the event loop have their turn: a flood does not stop them."""

RECEIVE_BUFFER_BYTES = 1 << 20
"""Room in the kernel for what arrives meanwhile; it gives as much of it as it is set to."""


class DatagramSocket:
    """One bound socket. What arrives goes to ``on_packet`` with its sender, an error to ``on_failure``.

    asyncio's own transport keeps what cannot be sent at once in memory without end; here it is dropped, as
    a network may drop any datagram.
    """

    def __init__(
        self,
        address: str,
        port: int,
        on_packet: Callable[[bytes, tuple[str, int]], None],
        on_failure: Callable[[OSError], None],
        *,
        packet_bytes: int,
        is_shared: bool = False,
    ) -> None:
        self._on_packet = on_packet
        self._on_failure = on_failure
        self._packet_bytes = packet_bytes
        self._loop = asyncio.get_running_loop()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
            if is_shared:
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.bind((address, port))
        except OSError:
            self._socket.close()
            raise
        self._loop.add_reader(self._socket.fileno(), self._read)

    @property
    def port(self) -> int:
        """The port that it is bound to."""
        return int(self._socket.getsockname()[1])

    def send(self, packet: bytes, to: tuple[str, int]) -> None:
        """Send a packet, or lose it where the network takes no more. A network error is an OSError."""
        with contextlib.suppress(BlockingIOError):
            self._socket.sendto(packet, to)

    def drop(self, senders: Iterable[str]) -> None:
        """Have the kernel drop what these send, and take what everybody else does."""
        # Without filters, floods are discarded here: more work, and others may find the queue full.
        with contextlib.suppress(OSError):
            attach(self._socket, senders)

    def close(self) -> None:
        """Hear no more."""
        if self._socket.fileno() >= 0:
            self._loop.remove_reader(self._socket.fileno())
            self._socket.close()

    def _read(self) -> None:
        for _ in range(PACKETS_AT_ONCE):
            try:
                packet, sender = self._socket.recvfrom(self._packet_bytes)
            except BlockingIOError:
                return
            except OSError as error:
                self._on_failure(error)
                return
            self._on_packet(packet, sender)
            if self._socket.fileno() < 0:  # whoever took the packet closed us
                return
