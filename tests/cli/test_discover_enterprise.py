"""Which enterprise ``lanner discover`` asks for when it is not told: a manager's, the settings', or none."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.cli.test_commands import done, failed
from tests.cli.test_discover import Servers, discover
from tests.protocols.discovery.samples import ENTERPRISE, OTHER_SITE

from lanner.config import load_config
from lanner.directory.ldap import once
from lanner.directory.ldap.settings import LdapSettings
from lanner.directory.local_file import load
from lanner.model.enterprise import EnterpriseMap
from lanner.protocols.discovery import survey as survey_module
from lanner.protocols.discovery.wire import decode_request
from lanner.service import Service

FILE = f"""
[enterprise]
name = "Contoso"
id = "{ENTERPRISE}"
[[site]]
name = "London"
[[manager]]
name = "LON-1"
sites = ["London"]
"""


@pytest.fixture
def servers() -> Iterator[Servers]:
    both = Servers()
    both.start()
    yield both
    both.stop()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of our own, without settings and without a manager."""
    for name in ("LANNER_API", "LANNER_TOKEN", "LANNER_MANAGER_DATA", "LANNER_DIRECTORY_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The packets that were sent."""
    sent: list[bytes] = []
    real = survey_module._ask

    def ask(network: Any, packet: bytes, *others: Any) -> Any:
        sent.append(packet)
        return real(network, packet, *others)

    monkeypatch.setattr(survey_module, "_ask", ask)
    return sent


@contextmanager
def manager(data: Path, **flags: object) -> Iterator[Service]:
    """A whole manager, on a loop of its own."""
    given = {
        "manager.data": str(data), "manager.name": "LON-1", "api.port": 0, "srmp.enabled": False,
        "network.discovery": False, **flags,
    }  # fmt: skip
    service = Service(load_config(environment={}, flags=given))
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    def wait(work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, loop).result(20)

    try:
        wait(service.start())
        yield service
        wait(service.stop())
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def test_without_anything_it_says_what_to_give_and_sends_nothing(asked: list[bytes]) -> None:
    said = failed(discover())
    assert "\n" not in said
    assert "no manager that runs here knows an enterprise, and the settings name no directory" in said
    assert "--enterprise ID" in said
    # 2.2.2: EnterpriseID is the asker's own; nobody's is not sent.
    assert asked == []


def test_the_file_that_the_settings_name(servers: Servers, folder: Path, asked: list[bytes]) -> None:
    (folder / "enterprise.toml").write_text(FILE)
    (folder / "lanner.toml").write_text(
        f'[directory]\nfile = "enterprise.toml"\n[network]\ndiscovery_port = {servers.port}\n'
    )
    assert "LON, LON-2" in done(discover())
    assert decode_request(asked[0]).enterprise_id == ENTERPRISE


def test_a_directory_file(servers: Servers, folder: Path) -> None:
    (folder / "contoso.toml").write_text(FILE)
    assert "LON, LON-2" in done(discover("--enterprise", "contoso.toml", "--port", servers.port))
    (folder / "contoso.toml").write_text("[enterprise]\nnme = 1")
    assert "contoso.toml" in failed(discover("--enterprise", "contoso.toml", "--port", servers.port))


def test_the_manager_that_runs_here(servers: Servers, folder: Path) -> None:
    (folder / "enterprise.toml").write_text(FILE)
    options = ("--port", servers.port)
    with manager(folder / "lanner-data", **{"directory.file": str(folder / "enterprise.toml")}):
        assert "LON, LON-2" in done(discover(*options))
        # It knows best, whatever the settings have come to say.
        (folder / "other.toml").write_text(FILE.replace(str(ENTERPRISE), str(OTHER_SITE)))
        (folder / "lanner.toml").write_text('[directory]\nfile = "other.toml"\n')
        assert "LON, LON-2" in done(discover(*options))
    said = failed(discover(*options))
    assert f"of the enterprise {OTHER_SITE} of other.toml" in said


def test_the_manager_of_the_settings_and_the_one_that_is_named(servers: Servers, folder: Path) -> None:
    (folder / "enterprise.toml").write_text(FILE)
    options = ("--port", servers.port)
    with manager(folder / "elsewhere", **{"directory.file": str(folder / "enterprise.toml")}):
        assert "LON, LON-2" in done(discover("--data", folder / "elsewhere", *options))
        assert "--enterprise ID" in failed(discover(*options))
        (folder / "lanner.toml").write_text('[manager]\ndata = "elsewhere"\n')
        assert "LON, LON-2" in done(discover(*options))
    # One that was named must be there.
    assert "no queue manager is running on nowhere" in failed(discover("--data", "nowhere", *options))


def test_a_manager_without_a_directory_leaves_it_to_the_settings(servers: Servers, folder: Path) -> None:
    options = ("--port", servers.port)
    with manager(folder / "lanner-data"):
        assert "--enterprise ID" in failed(discover(*options))
        (folder / "enterprise.toml").write_text(FILE)
        (folder / "lanner.toml").write_text('[directory]\nfile = "enterprise.toml"\n')
        assert "LON, LON-2" in done(discover(*options))


def test_a_directory_over_ldap(
    servers: Servers, folder: Path, monkeypatch: pytest.MonkeyPatch, asked: list[bytes]
) -> None:
    (folder / "lanner.toml").write_text('[ldap]\nservers = ["dc1"]\ngssapi = true\n')
    read: list[LdapSettings] = []

    def read_once(settings: LdapSettings) -> EnterpriseMap:
        read.append(settings)
        return load(FILE.encode(), "a directory").map

    monkeypatch.setattr(once, "read_once", read_once)
    assert "LON, LON-2" in done(discover("--port", servers.port))
    assert decode_request(asked[0]).enterprise_id == ENTERPRISE
    assert read[0].servers == ("dc1",)


def test_a_directory_over_ldap_that_is_away(folder: Path) -> None:
    (folder / "password").touch(0o600)
    (folder / "password").write_text("secret\n")
    (folder / "lanner.toml").write_text(
        '[ldap]\nservers = ["127.0.0.1:1"]\nuser = "ada@x"\npassword_file = "password"\n'
    )
    said = failed(discover())
    assert said.startswith("lanner: ")
    assert "\n" not in said
    assert "127.0.0.1:1" in said
