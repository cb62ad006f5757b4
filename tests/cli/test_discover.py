"""``lanner discover`` on loopback: what it prints, and what it says when nobody answers."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest
from tests.cli.test_commands import done, failed, lines
from tests.protocols.discovery.samples import ENTERPRISE, NETWORK, OTHER_SITE, SITE
from typer.testing import CliRunner, Result

from lanner.cli.app import app
from lanner.protocols.discovery.endpoint import DiscoveryEndpoint, Identity

HELP_SECONDS = 2.0
"""Four times and more what it takes, on a machine that others use."""


class Servers:
    """Two directory servers of two sites, on a loop of their own."""

    def __init__(self) -> None:
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._started: list[DiscoveryEndpoint] = []

    def start(self) -> None:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(10)

    async def _start(self) -> None:
        for name, site, address in (("LON", SITE, "127.0.2.1"), ("PAR", OTHER_SITE, "127.0.3.1")):
            identity = Identity(ENTERPRISE, name, (site,), True, (NETWORK,), (f"{name}-2",))
            endpoint = DiscoveryEndpoint(identity, interfaces=(address,), port=self.port)
            await endpoint.start()
            self._started.append(endpoint)
            self.port = endpoint.port

    def stop(self) -> None:
        for endpoint in self._started:
            asyncio.run_coroutine_threadsafe(endpoint.stop(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@pytest.fixture
def servers() -> Iterator[Servers]:
    both = Servers()
    both.start()
    yield both
    both.stop()


def discover(*arguments: object) -> Result:
    command = ["discover", "--interface", "127.0.0.1", "--timeout", "0.4", *map(str, arguments)]
    return CliRunner().invoke(app, command)


def test_a_table_of_those_that_answered(servers: Servers) -> None:
    shown = done(discover("--enterprise", ENTERPRISE, "--port", servers.port))
    [london] = [line for line in shown.splitlines() if "127.0.2.1" in line]
    assert "LON, LON-2" in london
    assert str(SITE) in london
    [paris] = [line for line in shown.splitlines() if "127.0.3.1" in line]
    assert "PAR, PAR-2" in paris
    assert str(NETWORK) in paris


def test_a_server_of_our_own_site_sends_no_list(servers: Servers) -> None:
    shown = done(discover("--enterprise", ENTERPRISE, "--site", SITE, "--port", servers.port))
    [london] = [line for line in shown.splitlines() if "127.0.2.1" in line]
    assert "your own" in london
    assert "LON" not in london


def test_json_for_programs(servers: Servers) -> None:
    options = ("--enterprise", ENTERPRISE, "--site", SITE, "--port", servers.port, "--json")
    london, paris = lines(discover(*options))
    assert london == {
        "address": "127.0.2.1",
        "interface": "127.0.0.1",
        "is_own_site": True,
        "site": str(SITE),
        "servers": [],
        "connected_networks": [str(NETWORK)],
    }
    assert paris["servers"] == [
        {"name": "PAR", "ip": True, "ipx": False},
        {"name": "PAR-2", "ip": True, "ipx": False},
    ]
    assert paris["site"] == str(OTHER_SITE)
    assert json.dumps(paris)


def test_when_nobody_answers_it_says_what_to_do(servers: Servers) -> None:
    said = failed(discover("--enterprise", SITE, "--port", servers.port))
    assert f"no directory server of the enterprise {SITE} answered on 127.0.0.1" in said
    assert f"(UDP port {servers.port}) within 0.4 s" in said
    assert "firewall" in said
    assert "--enterprise" not in said


def test_a_wrong_identifier_is_shown_a_right_one() -> None:
    said = failed(discover("--enterprise", "contoso"))
    assert "--enterprise 'contoso' is no identifier and no directory file (an identifier looks like" in said
    assert "--site" in failed(discover("--site", "london"))


def test_an_address_that_is_not_ours_is_answered_with_ours() -> None:
    said = failed(CliRunner().invoke(app, ["discover", "--interface", "192.0.2.99"]))
    assert "192.0.2.99 is no address of this machine (it has 127.0.0.1" in said


def test_the_command_does_not_slow_down_the_others() -> None:
    program = "import sys, lanner.cli.app; print(sorted(name for name in sys.modules if 'discovery' in name))"
    began = time.monotonic()
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    assert loaded == "[]\n"
    assert time.monotonic() - began < HELP_SECONDS
