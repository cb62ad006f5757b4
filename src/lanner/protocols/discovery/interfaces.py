"""The networks that this computer is on: IPv4 addresses with somewhere to broadcast to."""

from __future__ import annotations

import ctypes
import socket
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address, IPv4Interface

from lanner.protocols.discovery.client import Network

__all__ = ["machine_networks", "networks_at"]

_UP, _BROADCAST, _LOOPBACK, _POINT_TO_POINT = 0x1, 0x2, 0x8, 0x10  # netdevice(7)


class _Address(ctypes.Structure):
    """``struct sockaddr_in``."""

    _fields_ = (("family", ctypes.c_ushort), ("port", ctypes.c_ushort), ("address", ctypes.c_ubyte * 4))


class _Entry(ctypes.Structure):
    """``struct ifaddrs``, getifaddrs(3)."""


_Entry._fields_ = (
    ("next", ctypes.POINTER(_Entry)),
    ("name", ctypes.c_char_p),
    ("flags", ctypes.c_uint),
    ("address", ctypes.POINTER(_Address)),
    ("netmask", ctypes.POINTER(_Address)),
    ("other", ctypes.POINTER(_Address)),  # the broadcast address, or the far end of a line
    ("data", ctypes.c_void_p),
)


def machine_networks(*, with_loopback: bool = False) -> tuple[Network, ...]:
    """All networks of the computer that are up, in the system's order (3.1.4.1)."""
    networks = (_network(entry) for entry in _entries() if with_loopback or not entry.flags & _LOOPBACK)
    return tuple(network for network in networks if network is not None)


def networks_at(addresses: Sequence[str]) -> tuple[Network, ...]:
    """The networks that these addresses are on, or all; an address that is not ours is left out."""
    if not addresses:
        return machine_networks()
    ours = {network.address: network for network in machine_networks(with_loopback=True)}
    for address in addresses:
        # Every address of 127.0.0.0/8 is ours, though only one is listed.
        if address.startswith("127.") and "127.0.0.1" in ours:
            ours.setdefault(address, Network(address, ours["127.0.0.1"].broadcast))
    return tuple(ours[address] for address in addresses if address in ours)


def _network(entry: _Entry) -> Network | None:
    address = _text(entry.address)
    if entry.flags & _POINT_TO_POINT:
        # There is one other there. A dialled line is one of these.
        far_end = _text(entry.other)
        return Network(address, far_end, is_remote_access=True) if far_end else None
    broadcast = _text(entry.other) if entry.flags & _BROADCAST else ""
    if broadcast in ("", "0.0.0.0", address):  # noqa: S104 - compared, not bound
        broadcast = str(IPv4Interface(f"{address}/{_text(entry.netmask)}").network.broadcast_address)
    return Network(address, broadcast) if broadcast != address else None


def _entries() -> Iterator[_Entry]:
    """The entries of ``getifaddrs`` that are up and have an IPv4 address."""
    system = ctypes.CDLL(None, use_errno=True)
    first = ctypes.POINTER(_Entry)()
    if system.getifaddrs(ctypes.byref(first)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, "the interfaces cannot be listed")
    try:
        at = first
        while at:
            entry = at.contents
            if entry.flags & _UP and entry.address and entry.address.contents.family == socket.AF_INET:
                yield entry
            at = entry.next
    finally:
        system.freeifaddrs(first)


def _text(address: ctypes._Pointer[_Address]) -> str:
    if not address or address.contents.family != socket.AF_INET:
        return ""
    return str(IPv4Address(bytes(address.contents.address)))
