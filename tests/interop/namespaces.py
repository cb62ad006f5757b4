"""Hosts and networks of their own, in network namespaces that are made and removed again."""

from __future__ import annotations

import os
import shutil
import subprocess
from types import TracebackType

import pytest

__all__ = ["Hosts"]

COMMAND_SECONDS = 20.0


class Hosts:
    """Several hosts on several networks. ``ip`` makes them; ``nft`` loses packets between them."""

    def __init__(self) -> None:
        self._prefix = f"ln{os.getpid()}"
        self._made: list[str] = []
        self._ports = 0

    def __enter__(self) -> Hosts:
        for program, package in (("ip", "iproute2"), ("nft", "nftables")):
            if shutil.which(program) is None:
                pytest.skip(f"the program {program} is missing (package {package})")
        if os.geteuid() != 0:
            pytest.skip("only root may make network namespaces")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name in reversed(self._made):
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)

    def add_network(self, name: str) -> None:
        """Make a switch."""
        self._add(name)
        self.run(name, "ip", "link", "add", "br0", "type", "bridge", "mcast_snooping", "0")
        self.run(name, "ip", "link", "set", "br0", "up")

    def add_host(self, name: str, *links: tuple[str, str, str]) -> None:
        """Make a host with interfaces, each on a network: (interface, network, address/length)."""
        self._add(name)
        for interface, network, address in links:
            self._ports += 1
            port = f"p{self._ports}"
            _run(
                *("ip", "link", "add", interface, "netns", self._full(name)),
                *("type", "veth", "peer", "name", port, "netns", self._full(network)),
            )
            self.run(network, "ip", "link", "set", port, "master", "br0", "up")
            self.run(name, "ip", "addr", "add", address, "brd", "+", "dev", interface)
            self.run(name, "ip", "link", "set", interface, "up")

    def run(self, host: str, *command: str) -> None:
        """Run a command on a host, and see it succeed."""
        _run(*self.command(host, *command))

    def command(self, host: str, *command: str) -> list[str]:
        """A command line that runs on a host."""
        return ["ip", "netns", "exec", self._full(host), *command]

    def drop(self, host: str, rule: str) -> None:
        """Lose what arrives at a host and matches a rule of nftables."""
        self.heal(host)
        chain = (
            f"table ip loss {{\n chain in {{\n type filter hook input priority 0;\n {rule} drop\n }}\n}}\n"
        )
        command = self.command(host, "nft", "-f", "-")
        done = subprocess.run(command, input=chain, text=True, capture_output=True, timeout=COMMAND_SECONDS)
        assert done.returncode == 0, done.stderr

    def heal(self, host: str) -> None:
        """Lose nothing."""
        self.run(host, "nft", "flush", "ruleset")

    def _add(self, name: str) -> None:
        full = self._full(name)
        made = subprocess.run(["ip", "netns", "add", full], capture_output=True, text=True)
        if made.returncode != 0:
            pytest.skip(f"network namespaces cannot be made here: {made.stderr.strip()}")
        self._made.append(full)
        self.run(name, "ip", "link", "set", "lo", "up")

    def _full(self, name: str) -> str:
        return f"{self._prefix}{name}"


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_SECONDS)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
