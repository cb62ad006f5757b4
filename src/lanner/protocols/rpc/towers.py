"""Protocol towers: an interface and where it is, as the endpoint mapper tells it (C706 appendix L)."""

from __future__ import annotations

import ipaddress
import struct
from dataclasses import dataclass
from uuid import UUID

from lanner.protocols.rpc.errors import NdrError
from lanner.protocols.rpc.interface import InterfaceId
from lanner.protocols.rpc.pdu import NDR20

__all__ = ["MAX_TOWER", "Tower"]

MAX_TOWER = 2_000
"""Octets of a tower (MS-RPCE 2.2.1.2.2)."""

MAX_FLOORS = 6
"""Floors of a tower (MS-RPCE 3.1.3.5.3)."""

UUID_FLOOR = 0x0D
CONNECTION_ORIENTED = 0x0B
TCP = 0x07
IP = 0x09


@dataclass(frozen=True, slots=True)
class Tower:
    """An interface over TCP: five floors."""

    interface: InterfaceId
    port: int = 0
    address: str = "0.0.0.0"  # noqa: S104 - not bound: towers that ask have no address
    transfer: InterfaceId = NDR20
    is_tcp: bool = True
    """False for towers of other protocols, which nothing here is reached by."""

    def encode(self) -> bytes:
        """As octets; always little-endian but for the port and the address."""
        floors = [
            _syntax_floor(self.interface),
            _syntax_floor(self.transfer),
            (bytes([CONNECTION_ORIENTED]), struct.pack("<H", 0)),
            (bytes([TCP]), struct.pack(">H", self.port)),
            (bytes([IP]), ipaddress.IPv4Address(self.address).packed),
        ]
        parts = [struct.pack("<H", len(floors))]
        for left, right in floors:
            parts.append(struct.pack("<H", len(left)) + left + struct.pack("<H", len(right)) + right)
        return b"".join(parts)

    @classmethod
    def decode(cls, data: bytes) -> Tower:
        """From octets; what is no tower is an NdrError."""
        floors = _floors(data)
        if len(floors) < 3:
            raise NdrError(f"a tower of {len(floors)} floors")
        interface, transfer = _syntax(floors[0]), _syntax(floors[1])
        protocols = [left[0] for left, _ in floors[2:] if left]
        is_tcp = protocols[:2] == [CONNECTION_ORIENTED, TCP] and len(floors[3][1]) == 2
        port = int.from_bytes(floors[3][1], "big") if is_tcp else 0
        address = "0.0.0.0"  # noqa: S104
        if len(floors) > 4 and floors[4][0] == bytes([IP]) and len(floors[4][1]) == 4:
            address = str(ipaddress.IPv4Address(floors[4][1]))
        return cls(interface, port, address, transfer, is_tcp)


_Floor = tuple[bytes, bytes]


def _syntax_floor(syntax: InterfaceId) -> _Floor:
    left = bytes([UUID_FLOOR]) + syntax.uuid.bytes_le + struct.pack("<H", syntax.major)
    return left, struct.pack("<H", syntax.minor)


def _syntax(floor: _Floor) -> InterfaceId:
    left, right = floor
    if len(left) != 19 or left[0] != UUID_FLOOR or len(right) != 2:
        raise NdrError("a floor of a tower that names no interface")
    (major,) = struct.unpack_from("<H", left, 17)
    return InterfaceId(UUID(bytes_le=left[1:17]), major, int.from_bytes(right, "little"))


def _floors(data: bytes) -> list[_Floor]:
    count, position = _take_number(data, 0)
    if count > MAX_FLOORS:
        raise NdrError(f"a tower of {count} floors")
    floors = []
    for _ in range(count):
        left, position = _take(data, position)
        right, position = _take(data, position)
        floors.append((left, right))
    return floors


def _take_number(data: bytes, position: int) -> tuple[int, int]:
    if position + 2 > len(data):
        raise NdrError("a tower ends in the middle of a floor")
    return int.from_bytes(data[position : position + 2], "little"), position + 2


def _take(data: bytes, position: int) -> tuple[bytes, int]:
    size, position = _take_number(data, position)
    if position + size > len(data):
        raise NdrError("a tower ends in the middle of a floor")
    return data[position : position + size], position + size
