"""The directory over a server in memory: snapshots, changes, what is malformed, and being away."""

from __future__ import annotations

import logging
import struct
from uuid import uuid4

import msgspec
import pytest
from tests.directory.ldap.fake import CONFIGURATION, DOMAIN, FakeLdap

from lanner.directory.base import (
    Directory,
    DirectoryError,
    DirectoryOffline,
    InvalidDirectoryError,
    ObjectAlreadyExists,
    ObjectNotFound,
    ReadOnlyDirectory,
)
from lanner.directory.cache import decode, encode
from lanner.directory.ldap.directory import LdapDirectory
from lanner.directory.ldap.settings import parse_url
from lanner.model.directory_query import AttributeFilter, ObjectType, Operator, SortOrder
from lanner.model.enterprise import Enterprise, EnterpriseMap, Machine, PublicQueue, RoutingLink, Site
from lanner.model.queue import NULL_GUID, QueueProperties

SETTINGS = parse_url("ldaps://dc1", gssapi=True)
SERVERS = f"CN=Servers,CN=London,CN=Sites,{CONFIGURATION}"


@pytest.fixture
def server() -> FakeLdap:
    made = FakeLdap()
    for name in ("LON-1", "LON-GW", "PAR-GW"):
        made.computer(name, dNSHostName=(f"{name}.test".encode(),))
    return made


@pytest.fixture
def directory(server: FakeLdap) -> LdapDirectory:
    return LdapDirectory(SETTINGS, server)


async def fill(directory: LdapDirectory) -> EnterpriseMap:
    """London and Paris with a gate each, a link, and a queue."""
    london = await directory.create_object(Site(id=NULL_GUID, name="London"))
    paris = await directory.create_object(Site(id=NULL_GUID, name="Paris"))
    one = await directory.create_object(Machine(id=NULL_GUID, name="LON-GW", sites=(london,), routing=True))
    two = await directory.create_object(Machine(id=NULL_GUID, name="PAR-GW", sites=(paris,), routing=True))
    await directory.create_object(
        Machine(id=NULL_GUID, name="LON-1", sites=(london,), in_routing=(one,), out_routing=(one,))
    )
    await directory.create_object(
        RoutingLink(id=NULL_GUID, site1=london, site2=paris, cost=2, gates=(one, two))
    )
    await directory.create_queue(PublicQueue(id=NULL_GUID, path=r"LON-1\orders"))
    return await directory.read()


async def test_a_whole_enterprise(directory: LdapDirectory) -> None:
    assert isinstance(directory, Directory)
    found = await fill(directory)
    assert directory.problems == ()
    assert found.enterprise.name == DOMAIN
    assert [site.name for site in found.sites] == ["London", "Paris"]
    assert [machine.name for machine in found.machines] == ["LON-1", "LON-GW", "PAR-GW"]
    assert [queue.path for queue in found.queues] == [r"lon-1\orders"]
    assert found.queue_at(r"lon-1.test\orders") is found.queues[0]
    gate = found.machine_named("LON-GW")
    assert gate is not None
    assert found.machines[0].in_routing == found.machines[0].out_routing == (gate.id,)
    assert found.is_gate(gate.id)
    assert decode(encode(found)).machines == found.machines


async def test_nothing_is_read_again_before_something_changes(
    directory: LdapDirectory, server: FakeLdap
) -> None:
    first = await fill(directory)
    server.searches = 0
    assert await directory.read() is first
    assert server.searches == 1
    server.put(f"CN=somebody,{DOMAIN}", "user")
    assert await directory.read() is first  # read again, and found equal
    assert server.searches > 2
    server.set(first.queues[0].full_path, mSMQLabelEx=(b"new",))
    second = await directory.read()
    assert second is not first
    assert second.queues[0].properties.label == "new"


async def test_malformed_entries_are_left_out_and_named(
    directory: LdapDirectory, server: FakeLdap, caplog: pytest.LogCaptureFixture
) -> None:
    first = await fill(directory)
    machine = f"CN=msmq,CN=LON-1,CN=Computers,{DOMAIN}"
    server.put(f"CN=bad,{machine}", "mSMQQueue", mSMQPrivacyLevel=(b"9",))
    server.put(f"CN=Bern,CN=Sites,{CONFIGURATION}", "site", objectGUID=(b"short",))
    server.set(first.links[0].full_path, mSMQSite2=(f"CN=Bern,CN=Sites,{CONFIGURATION}".encode(),))
    server.set(machine, mSMQInRoutingServers=(f"CN=msmq,CN=GONE,CN=Computers,{DOMAIN}".encode(),))
    with caplog.at_level(logging.WARNING):
        second = await directory.read()
    assert [queue.name for queue in second.queues] == ["orders"]
    assert len(second.sites) == 2
    assert second.links == ()
    assert second.machines[0].in_routing == ()
    assert sorted(problem.attribute for problem in directory.problems) == [
        *("mSMQInRoutingServers", "mSMQPrivacyLevel", "mSMQSite2", "objectGUID"),
    ]
    assert len(caplog.records) == 4
    assert "CN=bad" in caplog.text
    server.changes += 1
    caplog.clear()
    await directory.read()
    assert not caplog.records  # once is enough


async def test_a_queue_without_a_manager_is_left_out(directory: LdapDirectory, server: FakeLdap) -> None:
    await fill(directory)
    server.put(f"CN=lost,CN=msmq,CN=GONE,CN=Computers,{DOMAIN}", "mSMQQueue")
    assert len((await directory.read()).queues) == 1
    assert "no queue manager holds" in str(directory.problems[0])


async def test_a_gate_that_is_gone_leaves_the_others(directory: LdapDirectory, server: FakeLdap) -> None:
    first = await fill(directory)
    gate = first.machine_named("PAR-GW")
    assert gate is not None
    await directory.delete_object(ObjectType.QUEUE_MANAGER, gate.id)
    second = await directory.read()
    assert second.links[0].gates == tuple(one for one in first.links[0].gates if one != gate.id)
    assert directory.problems[0].attribute == "mSMQSiteGates"


async def test_a_forest_without_msmq(directory: LdapDirectory, server: FakeLdap) -> None:
    await server.delete(f"CN=MsmqServices,CN=Services,{CONFIGURATION}")
    with pytest.raises(InvalidDirectoryError, match="MsmqServices"):
        await directory.read()


async def test_a_base_that_is_not_there(server: FakeLdap) -> None:
    directory = LdapDirectory(parse_url("ldaps://dc1/?DC=other", gssapi=True), server)
    with pytest.raises(InvalidDirectoryError, match="DC=other"):
        await directory.read()


async def test_away(directory: LdapDirectory, server: FakeLdap) -> None:
    await fill(directory)
    server.is_away = True
    with pytest.raises(DirectoryOffline):
        await directory.read()
    assert not await directory.check_online()
    server.is_away = False
    assert await directory.check_online()


# Changes.


async def test_settings_follow_the_roles(directory: LdapDirectory, server: FakeLdap) -> None:
    found = await fill(directory)
    gate, (london, paris) = found.machine_named("LON-GW"), found.sites
    assert gate is not None
    settings = f"CN=MSMQ Settings,CN=LON-GW,{SERVERS}"
    assert server.attributes(settings)["msmqroutingservice"] == (b"TRUE",)
    assert server.attributes(settings)["msmqqmid"] == (gate.id.bytes_le,)

    # Updated, moved, and taken away with the last role.
    await directory.write_object(msgspec.structs.replace(gate, supporting_server=True))
    assert server.attributes(settings)["msmqdependentclientservice"] == (b"TRUE",)
    both = msgspec.structs.replace(gate, sites=(london.id, paris.id))
    await directory.write_object(both)
    elsewhere = settings.replace("CN=London", "CN=Paris")
    assert server.attributes(elsewhere)["msmqservices"] == (b"1",)
    await directory.write_object(msgspec.structs.replace(gate, sites=(paris.id,)))
    with pytest.raises(KeyError):
        server.attributes(settings)
    await directory.write_object(msgspec.structs.replace(gate, sites=(paris.id,), routing=False))
    with pytest.raises(KeyError):
        server.attributes(elsewhere)


async def test_publishing_twice_writes_once(directory: LdapDirectory, server: FakeLdap) -> None:
    found = await fill(directory)
    server.computer("NEW")
    machine = Machine(id=uuid4(), name="NEW", sites=(found.sites[0].id,), version="1")
    await directory.publish_machine(machine)
    before = server.changes
    await directory.publish_machine(machine)
    assert server.changes == before
    await directory.publish_machine(msgspec.structs.replace(machine, version="2"))
    assert server.changes == before + 1
    published = (await directory.read()).machine_named("NEW")
    assert published is not None
    assert published.version == "2"


async def test_publishing_certificates(directory: LdapDirectory, server: FakeLdap) -> None:
    found = await fill(directory)
    keys = struct.pack("<I", 1) + bytes(range(16)) + bytes(16) + struct.pack("<I", 2) + b"xy"
    await directory.publish_machine(msgspec.structs.replace(found.machines[0], signing_keys=keys))
    computer = server.attributes(f"CN=LON-1,CN=Computers,{DOMAIN}")
    assert computer["msmqdigests"] == (bytes(range(16)),)
    assert (await directory.read()).machines[0].signing_keys == keys


async def test_computers_may_be_anywhere(directory: LdapDirectory, server: FakeLdap) -> None:
    found = await fill(directory)
    server.put(f"OU=Domain Controllers,{DOMAIN}", "organizationalUnit")
    server.put(f"CN=DC1,OU=Domain Controllers,{DOMAIN}", "computer", cn=(b"DC1",))
    await directory.publish_machine(Machine(id=NULL_GUID, name="DC1", sites=(found.sites[0].id,)))
    machine = (await directory.read()).machine_named("DC1")
    assert machine is not None
    assert machine.full_path == f"CN=msmq,CN=DC1,OU=Domain Controllers,{DOMAIN}"


async def test_what_cannot_be_created(directory: LdapDirectory) -> None:
    found = await fill(directory)
    london = found.sites[0].id
    with pytest.raises(ObjectNotFound, match="no computer"):
        await directory.create_object(Machine(id=NULL_GUID, name="GHOST", sites=(london,)))
    with pytest.raises(DirectoryError, match="no site"):
        await directory.create_object(Machine(id=NULL_GUID, name="LON-1"))
    with pytest.raises(ObjectAlreadyExists):
        await directory.create_object(Machine(id=NULL_GUID, name="LON-1", sites=(london,)))
    with pytest.raises(ObjectAlreadyExists, match="ORDERS"):
        await directory.create_queue(PublicQueue(id=NULL_GUID, path=r"lon-1\ORDERS"))
    with pytest.raises(ObjectAlreadyExists):
        await directory.create_object(msgspec.structs.replace(found.links[0], id=NULL_GUID))
    with pytest.raises(DirectoryError, match="no new Enterprise"):
        await directory.create_object(Enterprise(id=NULL_GUID, name="x"))
    with pytest.raises(ReadOnlyDirectory):
        await directory.replace_all("")


async def test_writing(directory: LdapDirectory, server: FakeLdap) -> None:
    found = await fill(directory)
    await directory.write_object(msgspec.structs.replace(found.enterprise, old_directory=True))
    await directory.write_object(msgspec.structs.replace(found.sites[0], foreign=True, security=b"other"))
    queue = msgspec.structs.replace(
        found.queues[0], properties=QueueProperties(label="l", transactional=True)
    )
    await directory.write_object(queue)
    after = await directory.read()
    assert after.enterprise.old_directory
    assert after.sites[0].foreign
    assert after.sites[0].security == b"other"
    # Whether a queue is transactional is settled when it is created (3.1.6.7.2.2).
    assert after.queues[0].properties == QueueProperties(label="l")
    with pytest.raises(ObjectNotFound, match="identifier"):
        await directory.write_object(msgspec.structs.replace(queue, id=uuid4()))


async def test_deleting(directory: LdapDirectory) -> None:
    found = await fill(directory)
    with pytest.raises(DirectoryError, match="under it"):
        await directory.delete_object(ObjectType.QUEUE_MANAGER, found.machines[0].id)
    await directory.delete_queue(found.queues[0].id)
    await directory.delete_object(ObjectType.QUEUE_MANAGER, found.machines[0].id)
    # The identifier of another kind of object is not one of a queue.
    with pytest.raises(ObjectNotFound):
        await directory.delete_queue(found.sites[0].id)
    for kind in (ObjectType.ENTERPRISE, ObjectType.CONNECTED_NETWORK):
        with pytest.raises(DirectoryError, match="deleted"):
            await directory.delete_object(kind, found.enterprise.id)


async def test_begin_next_end(directory: LdapDirectory) -> None:
    await fill(directory)
    routing = AttributeFilter("RoutingServer", Operator.EQUALS, True)
    order = [SortOrder("ComputerName", 1, ascending=False)]
    handle = await directory.read_begin(ObjectType.QUEUE_MANAGER, [routing], order)
    names = []
    while (one := await directory.read_next(handle)) is not None:
        assert isinstance(one, Machine)
        names.append(one.name)
    assert names == ["PAR-GW", "LON-GW"]
    handle = await directory.read_begin(ObjectType.QUEUE_MANAGER)
    await directory.read_end(handle)
    assert await directory.read_next(handle) is None
    with pytest.raises(DirectoryError, match="networks"):
        await directory.read_object(ObjectType.CONNECTED_NETWORK)
    with pytest.raises(ObjectNotFound):
        await directory.read_object(ObjectType.SITE, [AttributeFilter("Name", Operator.EQUALS, "Bern")])
