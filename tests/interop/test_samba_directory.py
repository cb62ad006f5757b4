"""MS-MQDSSM against a real Samba domain controller. ldap3 is the client that nobody here wrote."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import permutations
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import msgspec
import pytest
from cryptography.hazmat.primitives import serialization
from tests.interop.ldap_clients import connect, independent
from tests.interop.ldap_enterprise import LONG_NAME, TEXT, routing_part, with_identifiers
from tests.interop.samba import DOMAIN, DomainController, authority

from lanner.directory.base import (
    Directory,
    DirectoryError,
    DirectoryOffline,
    ObjectAlreadyExists,
    ObjectNotFound,
    ReadOnlyDirectory,
)
from lanner.directory.ldap.directory import LdapDirectory
from lanner.directory.ldap.errors import InvalidLdapSettingsError, LoginRefusedError, UntrustedServerError
from lanner.directory.ldap.settings import parse_url
from lanner.directory.local_file import load
from lanner.model.directory_query import AttributeFilter, ObjectType, Operator
from lanner.model.enterprise import Machine, PublicQueue, RoutingLink, Site
from lanner.model.queue import NULL_GUID, QueueProperties
from lanner.routing.explain import explain
from lanner.routing.topology import Topology

pytestmark = [pytest.mark.interop, pytest.mark.filterwarnings("ignore:ssl.match_hostname")]  # ldap3 uses it
ldap3 = pytest.importorskip("ldap3", reason="the package ldap3 is missing")

CONFIGURATION = f"CN=Configuration,{DOMAIN}"


@pytest.fixture
async def directory(controller: DomainController) -> AsyncIterator[LdapDirectory]:
    opened = connect(controller)
    yield opened
    await opened.close()


def raw(running: DomainController, dn: str, *names: str) -> dict[str, Any]:
    """What an independent client reads of an entry."""
    with independent(running) as client:
        assert client.search(dn, "(objectClass=*)", ldap3.BASE, attributes=list(names)), client.result
        return dict(client.response[0]["raw_attributes"])


# What was put in comes out.


async def test_reads_back_what_was_built(directory: LdapDirectory) -> None:
    assert isinstance(directory, Directory)
    found = await directory.read()
    assert directory.problems == ()
    meant = load(with_identifiers(TEXT, found).encode()).map
    assert routing_part(found) == routing_part(meant)


async def test_a_file_and_the_directory_explain_every_pair_alike(directory: LdapDirectory) -> None:
    found = await directory.read()
    meant = load(with_identifiers(TEXT, found).encode()).map
    over_ldap, from_file = Topology(found), Topology(meant)
    pairs = list(permutations([machine.id for machine in meant.machines], 2))
    assert len(pairs) == 72
    reached = 0
    for source, destination in pairs:
        one, other = explain(over_ldap, source, destination), explain(from_file, source, destination)
        assert one == other
        assert one.as_json() == other.as_json()
        reached += one.is_reached
    assert reached > 60


async def test_what_a_computer_says_is_read_with_its_manager(directory: LdapDirectory) -> None:
    machine = (await directory.read()).machine_named("lon-1.msmq.test")
    assert machine is not None
    assert (machine.name, machine.os_version) == ("LON-1", "12 (bookworm)")
    assert machine.full_path == f"CN=msmq,CN=LON-1,CN=Computers,{DOMAIN}"
    assert machine.create_time > 1_700_000_000
    assert machine.security
    queue = (await directory.read()).queue_at(r"lon-1.msmq.test\orders")
    assert queue is not None
    assert queue.manager == machine.id


async def test_another_client_sees_the_attributes_of_the_specification(
    controller: DomainController, directory: LdapDirectory
) -> None:
    found = await directory.read()
    gate = found.machine_named("LON-GW")
    london, oslo = found.site_named("London"), found.site_named("Oslo")
    assert gate
    assert london
    assert oslo
    attributes = raw(controller, gate.full_path, "mSMQServiceType", "mSMQSites", "mSMQRoutingServices")
    assert attributes["mSMQServiceType"] == [b"9"]
    assert set(attributes["mSMQSites"]) == {london.id.bytes_le, oslo.id.bytes_le}
    assert attributes["mSMQRoutingServices"] == [b"TRUE"]
    for site in ("London", "Oslo"):
        settings = f"CN=MSMQ Settings,CN=LON-GW,CN=Servers,CN={site},CN=Sites,{CONFIGURATION}"
        attributes = raw(controller, settings, "mSMQQMID", "mSMQServices", "mSMQDsService")
        assert attributes["mSMQQMID"] == [gate.id.bytes_le]
        assert attributes["mSMQServices"] == [b"9"]
        assert attributes["mSMQDsService"] == [b"TRUE"]
    rome = found.machine_named("ROM-GW")
    assert rome is not None
    assert raw(controller, rome.full_path, "mSMQQuota")["mSMQQuota"] == [b"-1"]


async def test_a_long_name_is_kept_in_two_attributes(
    controller: DomainController, directory: LdapDirectory
) -> None:
    queue = (await directory.read()).queue_at(f"ROM-1\\{LONG_NAME}")
    assert queue is not None
    assert raw(controller, queue.full_path, "mSMQQueueNameExt")["mSMQQueueNameExt"]


# Changes.


async def test_creates_writes_and_deletes_a_queue(directory: LdapDirectory) -> None:
    before = await directory.read()
    assert await directory.read() is before
    queue = PublicQueue(id=NULL_GUID, path=r"PAR-1\new", properties=QueueProperties(label="one"))
    identifier = await directory.create_queue(queue)
    with pytest.raises(ObjectAlreadyExists, match="PAR-1"):
        await directory.create_queue(queue)
    after = await directory.read()
    assert after is not before
    made = after.queue(identifier)
    assert made is not None
    assert made.properties.label == "one"

    changed = msgspec.structs.replace(made, properties=QueueProperties(quota=9))
    await directory.write_object(changed)
    by_identifier = AttributeFilter("Identifier", Operator.EQUALS, identifier)
    written = await directory.read_object(ObjectType.QUEUE, [by_identifier])
    assert isinstance(written, PublicQueue)
    assert written.properties == QueueProperties(quota=9)

    await directory.delete_queue(identifier)
    assert (await directory.read()).queue(identifier) is None
    with pytest.raises(ObjectNotFound, match=str(identifier)):
        await directory.delete_queue(identifier)
    with pytest.raises(ObjectNotFound, match="NOWHERE"):
        await directory.create_queue(PublicQueue(id=NULL_GUID, path=r"NOWHERE\new"))
    with pytest.raises(ObjectNotFound, match="publish"):
        await directory.create_queue(PublicQueue(id=NULL_GUID, path=r"NEW-2\new"))


async def test_publishes_a_manager(controller: DomainController, directory: LdapDirectory) -> None:
    start = await directory.read()
    paris, rome = start.site_named("Paris"), start.site_named("Rome")
    assert paris
    assert rome
    machine = Machine(id=uuid4(), name="NEW-1", sites=(paris.id,), routing=True, version="1")
    await directory.publish_machine(machine)
    made = (await directory.read()).machine_named("NEW-1")
    assert made is not None
    assert (made.sites, made.routing, made.version) == ((paris.id,), True, "1")
    settings = f"CN=MSMQ Settings,CN=NEW-1,CN=Servers,CN={{}},CN=Sites,{CONFIGURATION}"
    assert raw(controller, settings.format("Paris"), "mSMQRoutingService")["mSMQRoutingService"] == [b"TRUE"]

    # Again, as it is: nothing is written. Then elsewhere, found by its name.
    same = await directory.read()
    await directory.publish_machine(made)
    assert await directory.read() is same
    await directory.publish_machine(msgspec.structs.replace(machine, sites=(rome.id,), version="2"))
    moved = (await directory.read()).machine_named("NEW-1")
    assert moved is not None
    assert (moved.id, moved.sites, moved.version) == (made.id, (rome.id,), "2")
    assert raw(controller, settings.format("Rome"), "mSMQQMID")["mSMQQMID"] == [made.id.bytes_le]
    with pytest.raises(AssertionError, match="noSuchObject"):
        raw(controller, settings.format("Paris"), "mSMQQMID")

    await directory.delete_object(ObjectType.QUEUE_MANAGER, made.id)
    assert (await directory.read()).machine_named("NEW-1") is None
    with pytest.raises(AssertionError, match="noSuchObject"):
        raw(controller, settings.format("Rome"), "mSMQQMID")


async def test_sites_and_links_come_and_go(directory: LdapDirectory) -> None:
    start = await directory.read()
    london, gate = start.site_named("London"), start.machine_named("LON-GW")
    assert london
    assert gate
    bern = await directory.create_object(Site(id=NULL_GUID, name="Bern, west + east"))
    link = RoutingLink(id=NULL_GUID, site1=london.id, site2=bern, cost=4, gates=(gate.id, uuid4()))
    identifier = await directory.create_object(link)
    made = (await directory.read()).link(identifier)
    assert made is not None
    assert (made.site1, made.site2, made.cost, made.gates) == (london.id, bern, 4, (gate.id,))
    await directory.write_object(msgspec.structs.replace(made, cost=6, gates=(), description="d"))
    written = (await directory.read()).link(identifier)
    assert written is not None
    assert (written.cost, written.gates, written.description) == (6, (), "d")
    with pytest.raises(DirectoryError, match="Site"):
        await directory.create_object(msgspec.structs.replace(link, site2=uuid4()))
    await directory.delete_object(ObjectType.ROUTING_LINK, identifier)
    await directory.delete_object(ObjectType.SITE, bern)
    after = await directory.read()
    assert after.link(identifier) is None
    assert after.site(bern) is None


async def test_an_ordinary_user_reads_and_changes_nothing(
    controller: DomainController, directory: LdapDirectory, tmp_path: Path
) -> None:
    controller.add_user("reader", "An0ther!pass")
    password = tmp_path / "password"
    password.write_text("An0ther!pass")
    reader = connect(controller, user="reader@msmq.test", password_file=str(password))
    found = await reader.read()
    assert routing_part(found) == routing_part(await directory.read())
    assert all(machine.security for machine in found.machines)
    with pytest.raises(ReadOnlyDirectory, match="does not allow"):
        await reader.create_queue(PublicQueue(id=NULL_GUID, path=r"LON-1\forbidden"))
    with pytest.raises(ReadOnlyDirectory, match="does not allow"):
        await reader.delete_queue(found.queues[0].id)
    await reader.close()


async def test_what_the_directory_does_not_keep_is_refused(directory: LdapDirectory) -> None:
    with pytest.raises(DirectoryError, match="networks"):
        await directory.read_begin(ObjectType.CONNECTED_NETWORK)
    with pytest.raises(DirectoryError, match="Enterprise"):
        await directory.create_object((await directory.read()).enterprise)
    london = (await directory.read()).site_named("London")
    assert london is not None
    with pytest.raises(DirectoryError, match="other objects under it"):
        await directory.delete_object(ObjectType.SITE, london.id)


# Connections.


async def test_more_entries_than_a_page(controller: DomainController) -> None:
    directory = connect(controller, page_size=7)
    london = (await directory.read()).site_named("London")
    assert london is not None
    await directory.publish_machine(Machine(id=NULL_GUID, name="BULK-1", sites=(london.id,)))
    made: list[UUID] = []
    for number in range(40):
        made.append(await directory.create_queue(PublicQueue(id=NULL_GUID, path=f"BULK-1\\q{number:03}")))
    found = await directory.read()
    assert [queue.id for queue in found.queues if queue.computer == "bulk-1"] == made
    for identifier in made:
        await directory.delete_queue(identifier)
    bulk = (await directory.read()).machine_named("BULK-1")
    assert bulk is not None
    await directory.delete_object(ObjectType.QUEUE_MANAGER, bulk.id)
    await directory.close()


async def test_start_tls(controller: DomainController) -> None:
    directory = connect(controller, f"ldap://{controller.address}", start_tls=True)
    assert (await directory.read()).machine_named("LON-1")
    await directory.close()


@pytest.mark.parametrize("scheme", ["ldap", "ldaps"])
async def test_kerberos(controller: DomainController, monkeypatch: pytest.MonkeyPatch, scheme: str) -> None:
    pytest.importorskip("gssapi", reason="the package gssapi is missing (extra lanner[kerberos])")
    for name, value in controller.kerberos.items():
        monkeypatch.setenv(name, value)
    ca_file = str(controller.ca_file)
    settings = parse_url(f"{scheme}://{controller.address}", gssapi=True, ca_file=ca_file, page_size=3)
    without = LdapDirectory(settings)
    (controller.folder / "tickets").unlink(missing_ok=True)
    with pytest.raises(LoginRefusedError, match="Kerberos"):
        await without.read()
    controller.log_in()
    directory = LdapDirectory(settings)
    assert (await directory.read()).machine_named("LON-1")
    identifier = await directory.create_queue(PublicQueue(id=NULL_GUID, path=r"LON-1\by-ticket"))
    await directory.delete_queue(identifier)
    await directory.close()


async def test_a_dead_first_server(controller: DomainController) -> None:
    directory = connect(controller, f"ldaps://127.0.0.1:9,{controller.address}:636")
    assert (await directory.read()).machine_named("LON-1")
    assert await directory.check_online()
    await directory.close()


async def test_a_server_that_takes_connections_and_says_nothing(controller: DomainController) -> None:
    async def silent(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(30)
        writer.close()

    mute = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = mute.sockets[0].getsockname()[1]
    directory = connect(controller, f"ldaps://127.0.0.1:{port},{controller.address}:636", connect_seconds=0.5)
    assert (await directory.read()).machine_named("LON-1")
    await directory.close()
    mute.close()


async def test_a_wrong_password(controller: DomainController, tmp_path: Path) -> None:
    wrong = tmp_path / "password"
    wrong.write_text("wrong")
    directory = connect(controller, password_file=str(wrong))
    with pytest.raises(LoginRefusedError, match="password is wrong"):
        await directory.read()
    assert not await directory.check_online()


@pytest.mark.parametrize("start_tls", [False, True])
async def test_an_authority_that_is_not_trusted(
    controller: DomainController, tmp_path: Path, start_tls: bool
) -> None:
    other = tmp_path / "other.pem"
    other.write_bytes(authority("Another")[0].public_bytes(serialization.Encoding.PEM))
    url = f"{'ldap' if start_tls else 'ldaps'}://{controller.address}"
    directory = connect(controller, url, ca_file=str(other), start_tls=start_tls)
    with pytest.raises(UntrustedServerError, match="certificate"):
        await directory.read()
    assert not await directory.check_online()


async def test_a_password_needs_tls(controller: DomainController) -> None:
    with pytest.raises(InvalidLdapSettingsError, match="never sent without TLS"):
        connect(controller, f"ldap://{controller.address}")


async def test_offline_and_back(controller: DomainController, directory: LdapDirectory) -> None:
    before = await directory.read()
    controller.stop()
    try:
        with pytest.raises(DirectoryOffline):
            await directory.read()
        assert not await directory.check_online()
    finally:
        controller.start()
    assert await directory.check_online()
    assert routing_part(await directory.read()) == routing_part(before)
