"""Discovery between hosts: real broadcasts, two sites, two networks, loss, and networks that fail.

network a (10.99.1.0/24)   client .9   Paris's server .1   a server of another enterprise .2
network b (10.99.2.0/24)   client .9   London's server .1
"""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

import pytest
from tests.interop.namespaces import Hosts

from lanner.protocols.discovery.rate_limit import RateLimits
from lanner.protocols.discovery.wire import TopologyClientRequest

pytestmark = pytest.mark.interop

HOST = Path(__file__).parent / "discovery_host.py"
PATIENCE = 20.0
WAIT = 1.0
"""Instead of 15 seconds; the session's tests have all of them."""

ENTERPRISE, STRANGER = UUID(int=1), UUID(int=2)
LONDON, PARIS, ROME = (uuid5(ENTERPRISE, name) for name in ("London", "Paris", "Rome"))
BACKBONE, COAST = (uuid5(ENTERPRISE, name) for name in ("Backbone", "Coast"))


class Host:
    """A process on a host, and what it says."""

    def __init__(self, hosts: Hosts, host: str, **settings: object) -> None:
        given = {key: str(value) if isinstance(value, UUID) else value for key, value in settings.items()}
        command = hosts.command(host, sys.executable, str(HOST), json.dumps({"wait": WAIT, **given}))
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self._said: queue.Queue[dict[str, Any]] = queue.Queue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def next(self, patience: float = PATIENCE) -> dict[str, Any]:
        return self._said.get(timeout=patience)

    def is_silent(self, seconds: float) -> bool:
        try:
            self._said.get(timeout=seconds)
        except queue.Empty:
            return True
        return False

    def stop(self) -> str:
        self._process.terminate()
        self._reader.join(PATIENCE)
        assert self._process.stderr is not None
        log = self._process.stderr.read()
        assert self._process.wait(PATIENCE) == 0, log
        assert "Traceback" not in log, log
        return log

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._said.put(json.loads(line))


@contextmanager
def running(hosts: Hosts, host: str, **settings: object) -> Iterator[Host]:
    process = Host(hosts, host, **settings)
    try:
        assert "started" in process.next()
        yield process
    finally:
        process.stop()


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    with Hosts() as made:
        made.add_network("a")
        made.add_network("b")
        made.add_host("par", ("eth0", "a", "10.99.1.1/24"))
        made.add_host("str", ("eth0", "a", "10.99.1.2/24"))
        made.add_host("lon", ("eth0", "b", "10.99.2.1/24"))
        made.add_host("cli", ("eth0", "a", "10.99.1.9/24"), ("eth1", "b", "10.99.2.9/24"))
        yield made


@pytest.fixture
def healthy(hosts: Hosts) -> Iterator[Hosts]:
    yield hosts
    hosts.heal("cli")
    for interface in ("eth0", "eth1"):
        hosts.run("cli", "ip", "link", "set", interface, "up")


@pytest.fixture(scope="module")
def servers(hosts: Hosts) -> Iterator[dict[str, Host]]:
    with (
        running(
            hosts, "par", server=True, enterprise=ENTERPRISE, name="PAR", site=PARIS, network=COAST
        ) as paris,
        running(
            hosts, "str", server=True, enterprise=STRANGER, name="STR", site=PARIS, network=COAST
        ) as other,
        running(
            hosts, "lon", server=True, enterprise=ENTERPRISE, name="LON", site=LONDON, network=BACKBONE
        ) as london,
    ):
        yield {"paris": paris, "stranger": other, "london": london}


def discover(hosts: Hosts, *arguments: object) -> subprocess.CompletedProcess[str]:
    program = (sys.executable, "-m", "lanner", "discover", "--timeout", "1", *map(str, arguments))
    return subprocess.run(hosts.command("cli", *program), capture_output=True, text=True, timeout=60)


def found(done: subprocess.CompletedProcess[str]) -> list[tuple[str, str, list[str]]]:
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    return [
        (each["address"], each["interface"], [server["name"] for server in each["servers"]])
        for each in answers
    ]


def client(hosts: Hosts, **settings: object) -> Any:
    return running(hosts, "cli", enterprise=ENTERPRISE, name="CLI", **settings)


@pytest.mark.usefixtures("servers")
def test_the_command_finds_the_servers_of_both_networks(healthy: Hosts) -> None:
    assert found(discover(healthy, "--enterprise", ENTERPRISE, "--json")) == [
        ("10.99.1.1", "10.99.1.9", ["PAR"]),
        ("10.99.2.1", "10.99.2.9", ["LON"]),
    ]


@pytest.mark.usefixtures("servers")
def test_the_command_asks_on_one_network(healthy: Hosts) -> None:
    done = discover(
        healthy, "--enterprise", ENTERPRISE, "--site", LONDON, "--interface", "10.99.2.9", "--json"
    )
    assert found(done) == [("10.99.2.1", "10.99.2.9", [])]


@pytest.mark.usefixtures("servers")
def test_the_command_finds_the_other_enterprise_when_asked(healthy: Hosts) -> None:
    assert found(discover(healthy, "--enterprise", STRANGER, "--json")) == [
        ("10.99.1.2", "10.99.1.9", ["STR"])
    ]


@pytest.mark.usefixtures("servers")
def test_the_command_says_what_to_do_when_all_is_lost(healthy: Hosts) -> None:
    healthy.drop("cli", "udp sport 1801")
    done = discover(healthy, "--enterprise", ENTERPRISE)
    assert done.returncode == 1
    asked = f"no directory server of the enterprise {ENTERPRISE} answered on 10.99.1.9, 10.99.2.9"
    assert f"{asked} (UDP port 1801) within 1 s" in done.stderr
    healthy.heal("cli")
    assert discover(healthy, "--enterprise", ENTERPRISE).returncode == 0


@pytest.mark.usefixtures("servers")
def test_a_client_of_london_hears_paris_first_and_then_its_own_site(healthy: Hosts) -> None:
    with client(healthy, site=LONDON) as asking:
        # Paris's list is replaced by what our own site's server says; it sends no list (3.1.5.2).
        assert asking.next() == {"servers": [], "networks": [str(BACKBONE)]}


@pytest.mark.usefixtures("servers")
def test_a_client_of_paris_has_its_own_site_and_the_list_of_london(healthy: Hosts) -> None:
    with client(healthy, site=PARIS) as asking:
        assert asking.next() == {"servers": ["LON"], "networks": [str(BACKBONE)]}


@pytest.mark.usefixtures("servers")
def test_a_client_of_neither_keeps_the_list_of_the_last_network(healthy: Hosts) -> None:
    with client(healthy, site=ROME) as asking:
        assert asking.next() == {"servers": ["LON"], "networks": [str(BACKBONE)]}


@pytest.mark.usefixtures("servers")
def test_a_list_of_the_first_network_counts_when_the_second_is_lost(healthy: Hosts) -> None:
    healthy.drop("cli", 'iifname "eth1" udp sport 1801')
    with client(healthy, site=ROME) as asking:
        assert asking.next() == {"servers": ["PAR"], "networks": [str(COAST)]}


@pytest.mark.usefixtures("servers")
def test_two_of_three_replies_are_lost_and_a_client_asks_until_it_hears_one(healthy: Hosts) -> None:
    healthy.drop("cli", "udp sport 1801 numgen inc mod 6 < 4")
    with client(healthy, site=ROME, again=0.3, wait=0.5) as asking:
        # The replies of two whole rounds are lost, those of the third arrive.
        assert asking.next()["servers"] == ["LON"]


@pytest.mark.usefixtures("servers")
def test_half_of_everything_is_lost_at_random(healthy: Hosts) -> None:
    healthy.drop("cli", "udp sport 1801 numgen random mod 100 < 50")
    with client(healthy, site=ROME, again=0.2, wait=0.4) as asking:
        assert asking.next()["servers"] in (["LON"], ["PAR"])


@pytest.mark.usefixtures("servers")
def test_a_network_that_is_down_is_not_asked(healthy: Hosts) -> None:
    healthy.run("cli", "ip", "link", "set", "eth1", "down")
    with client(healthy, site=ROME) as asking:
        assert asking.next() == {"servers": ["PAR"], "networks": [str(COAST)]}


@pytest.mark.usefixtures("servers")
def test_a_network_that_comes_up_later_is_found(healthy: Hosts) -> None:
    for interface in ("eth0", "eth1"):
        healthy.run("cli", "ip", "link", "set", interface, "down")
    with client(healthy, site=ROME, again=0.3) as asking:
        assert asking.is_silent(1.0)
        healthy.run("cli", "ip", "link", "set", "eth0", "up")
        assert asking.next()["servers"] == ["PAR"]


FLOOD_SECONDS = 12
"""Long enough for another host to start a command and ask, on a busy machine too."""

FLOOD = """
import socket, sys, time
flood = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
flood.connect(("10.99.1.1", 1801))
flood.setblocking(False)
packet, replies, ends = bytes.fromhex(sys.argv[1]), 0, time.monotonic() + float(sys.argv[2])
while time.monotonic() < ends:
    for _ in range(100):
        try: flood.send(packet)
        except OSError: pass
    try:
        while flood.recv(2000): replies += 1
    except BlockingIOError: pass
print(replies)
"""


@pytest.mark.usefixtures("servers")
def test_a_flood_from_one_host_gets_its_limit_and_another_host_is_answered(healthy: Hosts) -> None:
    packet = TopologyClientRequest(ENTERPRISE, UUID(int=9), ROME).encode().hex()
    command = healthy.command("str", sys.executable, "-c", FLOOD, packet, str(FLOOD_SECONDS))
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as flood:
        time.sleep(0.5)
        asked = ("--enterprise", ENTERPRISE, "--interface", "10.99.1.9", "--json")
        assert found(discover(healthy, *asked)) == [("10.99.1.1", "10.99.1.9", ["PAR"])]
        assert flood.poll() is None
        replies = int(flood.communicate(timeout=PATIENCE)[0])
    limits = RateLimits()
    assert 1 <= replies <= limits.burst + limits.per_source * (FLOOD_SECONDS + 0.5)


def test_a_server_whose_network_fails_reopens_its_socket_and_answers_again(healthy: Hosts) -> None:
    settings = {"server": True, "enterprise": ENTERPRISE, "name": "ALO", "site": PARIS, "network": COAST}
    healthy.add_host("alo", ("eth0", "a", "10.99.1.3/24"))
    server = Host(healthy, "alo", **settings)
    assert "started" in server.next()
    asked = ("--enterprise", ENTERPRISE, "--interface", "10.99.1.9", "--json")
    assert ("10.99.1.3", "10.99.1.9", ["ALO"]) in found(discover(healthy, *asked))
    # What comes from the client arrives, but nothing can be sent there.
    healthy.run("alo", "ip", "route", "add", "unreachable", "10.99.1.9/32")
    healthy.run("alo", "sysctl", "-qw", "net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.eth0.rp_filter=0")
    without = discover(healthy, *asked)
    assert "10.99.1.3" not in without.stdout
    healthy.run("alo", "ip", "route", "del", "unreachable", "10.99.1.9/32")
    deadline = time.monotonic() + PATIENCE
    while "10.99.1.3" not in discover(healthy, *asked).stdout:
        assert time.monotonic() < deadline
    assert "the network failed (10.99.1.9)" in server.stop()
