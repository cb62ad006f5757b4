"""The packets of MS-MQSD 2.2, bytes both ways.

    request   header  EnterpriseID  RequestID  SiteID  [IPXNetworkCount  IPXNetworkNumberArray]
    reply     header  CorrelationID  ConnectedNetworkCount  ConnectedNetworkMask  DirectoryServiceServerSize
              ConnectedNetworkArray  [RespondingSiteID  DirectoryServiceServerArray]

Integers are little-endian, GUIDs as in MS-DTYP 2.3.4, names UTF-16LE. What is read is checked whole: a packet
is either a structure or a `PacketFault`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from uuid import UUID

from lanner.protocols.discovery.reader import PacketFault, PacketReader

__all__ = [
    "DirectoryServer",
    "MAX_ENTRIES",
    "MAX_PACKET_BYTES",
    "PacketFault",
    "PacketType",
    "TopologyClientRequest",
    "TopologyPacketHeader",
    "TopologyServerReply",
    "answering",
    "decode",
    "decode_reply",
    "decode_request",
]

MAX_PACKET_BYTES = 65_507
"""What one UDP datagram over IPv4 can carry: nothing longer can arrive."""

MAX_ENTRIES = 32
"""IPXNetworkCount and ConnectedNetworkCount are 1 to 32 (2.2.2, 2.2.3)."""

IPX_MIN_BYTES = 8
"""IPXNetworkCount and one entry: with less, both are taken as not present (3.2.5.1)."""

_HEADER, _REQUEST, _REPLY = "2.2.1", "2.2.2", "2.2.3"


class PacketType(IntEnum):
    """2.2.1 Type."""

    REQUEST = 1
    REPLY = 2


@dataclass(frozen=True, slots=True)
class TopologyPacketHeader:
    """2.2.1 TopologyPacketHeader. Version and Reserved are zero when sent, and anything when read."""

    type: int
    version: int = 0
    reserved: int = 0

    def encode(self) -> bytes:
        """As it goes over the network."""
        return bytes((self.version, self.type)) + self.reserved.to_bytes(2, "little")

    @classmethod
    def read(cls, reader: PacketReader) -> TopologyPacketHeader:
        """Read a header, whatever its type."""
        version, kind = reader.take(2, "Version and Type")
        return cls(kind, version, reader.number(2, "Reserved"))


@dataclass(frozen=True, slots=True)
class TopologyClientRequest:
    """2.2.2 TopologyClientRequest. Over IP it has no IPX networks."""

    enterprise_id: UUID
    request_id: UUID
    site_id: UUID
    ipx_networks: tuple[int, ...] = ()

    def encode(self) -> bytes:
        """As it goes over the network."""
        parts = [
            TopologyPacketHeader(PacketType.REQUEST).encode(),
            self.enterprise_id.bytes_le,
            self.request_id.bytes_le,
            self.site_id.bytes_le,
        ]
        if self.ipx_networks:
            _check_count(len(self.ipx_networks), "IPXNetworkCount", _REQUEST)
            parts.append(len(self.ipx_networks).to_bytes(4, "little"))
            parts += (number.to_bytes(4, "little") for number in self.ipx_networks)
        return b"".join(parts)


@dataclass(frozen=True, slots=True)
class DirectoryServer:
    """One entry of a DirectoryServiceServerArray (2.2.3)."""

    name: str
    supports_ip: bool = True
    supports_ipx: bool = False

    def __str__(self) -> str:
        return f"{self.supports_ip:d}{self.supports_ipx:d}{self.name}"

    @classmethod
    def parse(cls, text: str) -> DirectoryServer:
        """Read an entry: two flags and a name."""
        if len(text) < 3 or text[0] not in "01" or text[1] not in "01":
            raise PacketFault("an entry of DirectoryServiceServerArray is two flags and a name", _REPLY)
        return cls(text[2:], text[0] == "1", text[1] == "1")


@dataclass(frozen=True, slots=True)
class TopologyServerReply:
    """2.2.3 TopologyServerReply. A server of the asker's own site sends neither site nor servers."""

    correlation_id: UUID
    connected_networks: tuple[UUID, ...]
    responding_site_id: UUID | None = None
    servers: tuple[DirectoryServer, ...] = ()
    connected_network_mask: int = 0

    @property
    def is_from_our_site(self) -> bool:
        """Whether DirectoryServiceServerSize is zero."""
        return not self.servers

    def encode(self) -> bytes:
        """As it goes over the network."""
        _check_count(len(self.connected_networks), "ConnectedNetworkCount", _REPLY)
        if (self.responding_site_id is None) != (not self.servers):
            raise PacketFault("RespondingSiteID and DirectoryServiceServerArray come together", _REPLY)
        array = _encode_servers(self.servers)
        return b"".join(
            (
                TopologyPacketHeader(PacketType.REPLY).encode(),
                self.correlation_id.bytes_le,
                len(self.connected_networks).to_bytes(4, "little"),
                self.connected_network_mask.to_bytes(4, "little"),
                len(array).to_bytes(4, "little"),
                *(network.bytes_le for network in self.connected_networks),
                self.responding_site_id.bytes_le if self.responding_site_id is not None else b"",
                array,
            )
        )


def answering(reply: bytes, request_id: UUID) -> bytes:
    """The same reply to another request: nothing but the CorrelationID differs (2.2.3)."""
    return reply[:4] + request_id.bytes_le + reply[20:]


def decode(data: bytes) -> TopologyClientRequest | TopologyServerReply:
    """Read a packet of either type."""
    header = TopologyPacketHeader.read(PacketReader(data, _HEADER))
    if header.type == PacketType.REQUEST:
        return decode_request(data)
    if header.type == PacketType.REPLY:
        return decode_reply(data)
    raise PacketFault(f"Type {header.type:#04x} is neither a request nor a reply", _HEADER)


def decode_request(data: bytes) -> TopologyClientRequest:
    """Read a request. One to seven bytes after SiteID are no IPX fields and mean nothing (3.2.5.1)."""
    reader = PacketReader(data, _REQUEST)
    _check_type(reader, PacketType.REQUEST)
    ids = reader.guid("EnterpriseID"), reader.guid("RequestID"), reader.guid("SiteID")
    if reader.remaining < IPX_MIN_BYTES:
        return TopologyClientRequest(*ids)
    count = reader.number(4, "IPXNetworkCount")
    _check_count(count, "IPXNetworkCount", _REQUEST)
    networks = tuple(reader.number(4, "IPXNetworkNumberArray") for _ in range(count))
    reader.finish()
    return TopologyClientRequest(*ids, networks)


def decode_reply(data: bytes) -> TopologyServerReply:
    """Read a reply."""
    reader = PacketReader(data, _REPLY)
    _check_type(reader, PacketType.REPLY)
    correlation_id = reader.guid("CorrelationID")
    count = reader.number(4, "ConnectedNetworkCount")
    _check_count(count, "ConnectedNetworkCount", _REPLY)
    mask = reader.number(4, "ConnectedNetworkMask")
    # Zero over IP, a bit for each network over IPX: anything else is neither.
    if mask and mask.bit_count() != count:
        raise reader.fault(f"ConnectedNetworkMask has {mask.bit_count()} bits for {count} networks")
    size = reader.number(4, "DirectoryServiceServerSize")
    networks = tuple(reader.guid("ConnectedNetworkArray") for _ in range(count))
    site_id: UUID | None = None
    servers: tuple[DirectoryServer, ...] = ()
    if size:
        site_id = reader.guid("RespondingSiteID")
        servers = _decode_servers(reader.take(size, "DirectoryServiceServerArray"))
    reader.finish()
    return TopologyServerReply(correlation_id, networks, site_id, servers, mask)


def _check_type(reader: PacketReader, expected: PacketType) -> None:
    found = TopologyPacketHeader.read(reader).type
    if found != expected:
        raise PacketFault(f"Type is {found:#04x}, not {expected:#04x}", _HEADER)


def _check_count(count: int, field: str, section: str) -> None:
    if not 1 <= count <= MAX_ENTRIES:
        raise PacketFault(f"{field} is {count}, not 1 to {MAX_ENTRIES}", section)


def _encode_servers(servers: tuple[DirectoryServer, ...]) -> bytes:
    if not servers:
        return b""
    for server in servers:
        if not server.name or "," in server.name or "\0" in server.name:
            raise PacketFault(f"{server.name!r} cannot be the name of a directory server", _REPLY)
    try:
        return (",".join(map(str, servers)) + "\0").encode("utf-16-le")
    except UnicodeEncodeError as error:
        raise PacketFault("a name has half a character", _REPLY) from error


def _decode_servers(array: bytes) -> tuple[DirectoryServer, ...]:
    """Read the list, whose closing null is one of its bytes, as section 4's reply shows."""
    try:
        text = array.decode("utf-16-le")
    except UnicodeDecodeError as error:
        raise PacketFault("DirectoryServiceServerArray is not Unicode text", _REPLY) from error
    if text.find("\0") != len(text) - 1:
        raise PacketFault("DirectoryServiceServerArray does not end at its null", _REPLY)
    return tuple(DirectoryServer.parse(entry) for entry in text[:-1].split(","))
