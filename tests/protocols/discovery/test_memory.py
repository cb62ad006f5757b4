"""What discovery found before a restart: bytes both ways, damage, and what an endpoint does with it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

import pytest
from tests.protocols.discovery.samples import ENTERPRISE, NETWORK, OTHER_SITE, SITE

from lanner.protocols.discovery import client, endpoint
from lanner.protocols.discovery.endpoint import DiscoveryEndpoint, Identity
from lanner.protocols.discovery.memory import FoundLists, Memory, decode, encode

SERVER = Identity(ENTERPRISE, "SRV", (OTHER_SITE,), True, (NETWORK,), ("BSC",))
CLIENT = Identity(ENTERPRISE, "CLI", (SITE,))
FOUND = FoundLists.of(CLIENT, ("SRV", "BSC"), (NETWORK,))
PATIENCE = 5.0


class Held:
    """A storage in memory."""

    def __init__(self, data: bytes | None = None) -> None:
        self.data = data
        self.writes = 0
        self.problem = ""

    async def read(self) -> bytes | None:
        return self.data

    def write(self, data: bytes | None, failed: Callable[[str], None]) -> None:
        self.writes += 1
        if self.problem:
            failed(self.problem)
        else:
            self.data = data

    @property
    def found(self) -> FoundLists | None:
        return decode(self.data) if self.data is not None else None


def one(identity: Identity, held: Held, address: str, port: int = 0) -> DiscoveryEndpoint:
    return DiscoveryEndpoint(identity, interfaces=(address,), port=port, memory=Memory(held))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@pytest.fixture(autouse=True)
def _short_timers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "WAIT_FOR_RESPONSE", 0.2)
    monkeypatch.setattr(endpoint, "ASK_AGAIN_SECONDS", 0.1)


# The bytes.


def test_both_ways() -> None:
    assert decode(encode(FOUND)) == FOUND
    empty = FoundLists.of(CLIENT, (), ())
    assert decode(encode(empty)) == empty


def test_damage_is_noticed_wherever_it_is() -> None:
    data = encode(FOUND)
    for length in range(len(data)):
        with pytest.raises(ValueError, match=r"form|damaged"):
            decode(data[:length])
    for index in range(len(data)):
        with pytest.raises(ValueError, match=r"form|damaged"):
            decode(data[:index] + bytes((data[index] ^ 0x20,)) + data[index + 1 :])


# Restarts.


async def test_the_lists_survive_a_restart_and_the_network_is_asked_again() -> None:
    held = Held()
    server = one(SERVER, Held(), "127.0.2.1")
    await server.start()
    before = one(CLIENT, held, "127.0.1.1", server.port)
    await before.start()
    await until(lambda: before.directory_server_list == ("SRV", "BSC"))
    await before.stop()
    assert held.found == FOUND
    # 3.1.3: no address is a successful one after a start, so that it asks.
    after = one(CLIENT, held, "127.0.1.1", server.port)
    await after.start()
    assert after.directory_server_list == ("SRV", "BSC")
    assert after.connected_network_identifier_list == (NETWORK,)
    await until(lambda: server.answered == 2)
    await after.stop()
    await server.stop()


async def test_when_nobody_answers_after_a_restart_the_lists_stay() -> None:
    held = Held(encode(FOUND))
    alone = one(CLIENT, held, "127.0.1.1", 9)
    await alone.start()
    assert not await alone.get_directory_server_list()
    assert alone.directory_server_list == ("SRV", "BSC")
    assert alone.connected_network_identifier_list == (NETWORK,)
    await alone.stop()
    assert held.found == FOUND


async def test_our_own_site_says_no_list_and_the_one_of_before_the_restart_stays() -> None:
    # 3.1.5.2: DirectoryServiceServerSize is zero, and DirectoryServerList is not populated.
    server = one(replace(SERVER, site_ids=(SITE,)), Held(), "127.0.2.1")
    await server.start()
    held = Held(encode(FoundLists.of(CLIENT, ("OLD",), (UUID(int=9),))))
    after = one(CLIENT, held, "127.0.1.1", server.port)
    await after.start()
    await until(lambda: after.connected_network_identifier_list == (NETWORK,))
    assert after.directory_server_list == ("OLD",)
    await after.stop()
    await server.stop()
    assert held.found == FoundLists.of(CLIENT, ("OLD",), (NETWORK,))


@pytest.mark.parametrize(
    "other",
    [
        replace(CLIENT, enterprise_id=UUID(int=5)),
        replace(CLIENT, site_ids=(OTHER_SITE,)),
        replace(CLIENT, directory_servers=("NEW",)),
        replace(CLIENT, connected_networks=(UUID(int=6),)),
    ],
    ids=["enterprise", "site", "servers", "networks"],
)
async def test_what_was_found_for_another_identity_does_not_count(other: Identity) -> None:
    held = Held(encode(FOUND))
    after = one(other, held, "127.0.1.1", 9)
    await after.start()
    assert after.directory_server_list == other.directory_servers
    assert after.connected_network_identifier_list == other.connected_networks
    await after.stop()
    assert held.found == FoundLists.of(other, other.directory_servers, other.connected_networks)


async def test_another_name_of_the_computer_changes_nothing() -> None:
    after = one(replace(CLIENT, computer_name="RENAMED"), Held(encode(FOUND)), "127.0.1.1", 9)
    await after.start()
    assert after.directory_server_list == ("SRV", "BSC")
    await after.stop()


async def test_a_directory_server_has_its_lists_from_the_directory() -> None:
    held = Held(encode(FOUND))
    server = one(SERVER, held, "127.0.2.1")
    await server.start()
    assert server.directory_server_list == ("SRV", "BSC")
    assert held.data is None
    server.adopt(replace(CLIENT, directory_servers=("SRV",)))
    assert held.found == FoundLists.of(replace(CLIENT, directory_servers=("SRV",)), ("SRV",), ())
    await server.stop()


@pytest.mark.parametrize("data", [b"", b"rubbish", encode(FOUND)[:-1]])
async def test_damage_is_logged_and_it_begins_anew(data: bytes, caplog: pytest.LogCaptureFixture) -> None:
    held = Held(data)
    after = one(CLIENT, held, "127.0.1.1", 9)
    await after.start()
    assert after.directory_server_list == ()
    assert "what was found before cannot be read, and is looked for anew" in caplog.text
    await after.stop()
    assert held.found == FoundLists.of(CLIENT, (), ())


async def test_what_could_not_be_kept_is_kept_the_next_time(caplog: pytest.LogCaptureFixture) -> None:
    held = Held()
    held.problem = "the disk is full"
    memory = Memory(held)
    memory.keep(FOUND)
    assert "what was found is not kept: the disk is full" in caplog.text
    held.problem = ""
    memory.keep(FOUND)
    assert held.found == FOUND
    memory.keep(FOUND)
    assert held.writes == 2, "what is kept is not written again"
