"""The networks of this computer, against what the system says elsewhere."""

from __future__ import annotations

import ctypes
import socket

import pytest

from lanner.protocols.discovery import interfaces
from lanner.protocols.discovery.client import Network
from lanner.protocols.discovery.interfaces import machine_networks, networks_at

LOOPBACK = Network("127.0.0.1", "127.255.255.255")


def test_loopback_is_there_when_it_is_wanted() -> None:
    assert LOOPBACK in machine_networks(with_loopback=True)
    assert LOOPBACK not in machine_networks()


def test_every_network_can_be_bound_and_has_a_broadcast_address() -> None:
    for network in machine_networks(with_loopback=True):
        assert network.broadcast != network.address
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind((network.address, 0))


def test_addresses_are_looked_up_in_the_order_given() -> None:
    found = networks_at(["127.0.5.1", "203.0.113.7", "127.0.0.1"])
    assert found == (Network("127.0.5.1", "127.255.255.255"), LOOPBACK)


def test_without_addresses_all_are_meant() -> None:
    assert networks_at([]) == machine_networks()


def entry(flags: int, address: str, netmask: str, other: str) -> interfaces._Entry:
    def place(text: str) -> object:
        if not text:
            return None
        packed = (ctypes.c_ubyte * 4)(*socket.inet_aton(text))
        return ctypes.pointer(interfaces._Address(socket.AF_INET, 0, packed))

    return interfaces._Entry(None, b"x", flags, place(address), place(netmask), place(other), None)


@pytest.mark.parametrize(
    ("flags", "other", "expected"),
    [
        (0x3, "10.0.0.255", Network("10.0.0.5", "10.0.0.255")),
        (0x3, "", Network("10.0.0.5", "10.0.0.255")),
        (0x3, "0.0.0.0", Network("10.0.0.5", "10.0.0.255")),
        (0x3, "10.0.0.5", Network("10.0.0.5", "10.0.0.255")),
        (0x11, "10.0.0.1", Network("10.0.0.5", "10.0.0.1", is_remote_access=True)),
        (0x11, "", None),
    ],
)
def test_what_an_entry_of_the_system_means(flags: int, other: str, expected: Network | None) -> None:
    assert interfaces._network(entry(flags, "10.0.0.5", "255.255.255.0", other)) == expected


def test_an_address_alone_on_its_network_has_nobody_to_ask() -> None:
    assert interfaces._network(entry(0x3, "10.0.0.5", "255.255.255.255", "10.0.0.5")) is None
