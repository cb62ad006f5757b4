"""A stream of octets cut into PDUs."""

from __future__ import annotations

from lanner.protocols.rpc.codec import read_header
from lanner.protocols.rpc.pdu import HEADER_SIZE, MAX_FRAGMENT

__all__ = ["Framer"]


class Framer:
    """Collects octets until a PDU is whole. It never holds more than one fragment and what came with it."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._need = HEADER_SIZE

    @property
    def is_waiting(self) -> bool:
        """Whether the beginning of a PDU is here, and its end is not."""
        return bool(self._data)

    @property
    def held(self) -> int:
        """Octets that wait for the rest."""
        return len(self._data)

    def feed(self, data: bytes) -> list[bytes]:
        """Take octets; says which PDUs are whole. A header that cannot be one is a ProtocolError."""
        self._data += data
        pdus = []
        position = 0
        while len(self._data) - position >= self._need:
            if self._need == HEADER_SIZE:
                self._need = read_header(bytes(self._data[position : position + HEADER_SIZE])).length
                assert self._need <= MAX_FRAGMENT
                if len(self._data) - position < self._need:
                    break
            pdus.append(bytes(self._data[position : position + self._need]))
            position += self._need
            self._need = HEADER_SIZE
        del self._data[:position]
        return pdus
