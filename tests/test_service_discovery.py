"""Discovery inside of whole managers: what was found is there after a restart."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from lanner.client import AsyncClient
from lanner.config import LoadedConfig, load_config
from lanner.protocols.discovery import client as client_session
from lanner.schema.directory import DirectoryAnswer
from lanner.service import Service, running
from lanner.store import Changes

PATIENCE = 10.0

ENTERPRISE = """
[enterprise]
name = "Contoso"
[[site]]
name = "London"
[[site]]
name = "Paris"
[[network]]
name = "Coast"
[[manager]]
name = "PAR-DS"
sites = ["Paris"]
directory_server = true
[[manager]]
name = "LON-1"
sites = ["London"]
"""

SERVERS = (
    ENTERPRISE
    + """
[[manager]]
name = "PAR-BSC"
sites = ["Paris"]
directory_server = true
"""
)
"""What the server's directory says, and the client's does not yet."""


def settings(folder: Path, name: str, address: str, port: int, text: str) -> LoadedConfig:
    folder.mkdir(exist_ok=True)
    (folder / "enterprise.toml").write_text(text)
    flags = {
        "manager.name": name,
        "manager.data": str(folder / "data"),
        "api.port": 0,
        "srmp.enabled": False,
        "network.listen": address,
        "network.discovery_port": port,
        "directory.file": str(folder / "enterprise.toml"),
    }
    return load_config(environment={}, flags=flags)


async def known(service: Service) -> DirectoryAnswer:
    """What ``lanner directory show`` shows."""
    async with AsyncClient.connect(data=service.config.data) as client:
        return await client.directory()


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.1.1", 0))
        return int(probe.getsockname()[1])


async def test_what_was_found_survives_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_session, "WAIT_FOR_RESPONSE", 0.2)
    port = free_port()
    client = settings(tmp_path / "client", "LON-1", "127.0.1.1", port, ENTERPRISE)
    server = settings(tmp_path / "server", "PAR-DS", "127.0.2.1", port, SERVERS)
    async with running(server), running(client) as (service, _):
        async with asyncio.timeout(PATIENCE):
            while (found := await known(service)).directory_servers != ("PAR-DS", "PAR-BSC"):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
    assert found.connected_networks
    # The server is gone, and the directory's own list is shorter.
    async with running(client) as (service, _):
        again = await known(service)
    assert again.directory_servers == found.directory_servers
    assert again.connected_networks == found.connected_networks
    # Another word of the directory is a newer one.
    changed = settings(
        tmp_path / "client", "LON-1", "127.0.1.1", port, ENTERPRISE.replace("PAR-DS", "PAR-PSC")
    )
    async with running(changed) as (service, _):
        assert (await known(service)).directory_servers == ("PAR-PSC",)


async def test_a_damaged_value_does_not_stop_the_manager(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    client = settings(tmp_path, "LON-1", "127.0.1.1", free_port(), ENTERPRISE)
    async with running(client) as (service, _):
        changes = Changes()
        changes.state.append(("discovery", "found", b"\0\1\2"))
        await service.manager.transfers.finish(changes)
    async with running(client) as (service, _):
        assert (await known(service)).directory_servers == ("PAR-DS",)
    assert "what was found before cannot be read, and is looked for anew" in caplog.text
    caplog.clear()
    async with running(client):
        pass
    assert "cannot be read" not in caplog.text
