"""Objects to attributes and back: every field that Active Directory keeps, and malformed entries."""

from __future__ import annotations

import struct
from typing import Any
from uuid import UUID, uuid4

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.directory.ldap.test_names import QUEUE_NAMES

from lanner.directory.base import DirectoryError
from lanner.directory.ldap import dn, reading, writing
from lanner.directory.ldap.entry import Entry
from lanner.directory.ldap.errors import MalformedEntryError
from lanner.directory.ldap.queue_names import stored_name
from lanner.directory.ldap.schema import COMPUTER, READ
from lanner.model.enterprise import (
    DirectoryServerType,
    Enterprise,
    Machine,
    OperatingSystemType,
    PublicQueue,
    RoutingLink,
    Site,
)
from lanner.model.queue import QueuePrivacy, QueueProperties

GUID = UUID("ac89d14e-700b-4d53-8096-d3b503c8b2a6")
NUMBERS = st.integers(0, 0xFFFFFFFF)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=100)
PEERS = [uuid4() for _ in range(4)]
NAMES = {peer: f"CN=msmq,CN=M{number},CN=Computers,DC=t" for number, peer in enumerate(PEERS)}
KNOWN = {dn.key(name.upper()): peer for peer, name in NAMES.items()}
LISTS = st.lists(st.sampled_from(PEERS), unique=True).map(lambda found: tuple(sorted(found)))
BASE: dict[str, tuple[bytes, ...]] = {
    "objectGUID": (GUID.bytes_le,),
    "whenCreated": (b"20000101000000.0Z",),
    "whenChanged": (b"20000101000001.0Z",),
    "nTSecurityDescriptor": (b"sd",),
}
TIMES: dict[str, Any] = {"create_time": 946684800, "modify_time": 946684801}
MACHINE_DN = "CN=msmq,CN=LON-1,CN=Computers,DC=t"


def entry(name: str, values: dict[str, Any], **others: tuple[bytes, ...]) -> Entry:
    return Entry(name, BASE | {key: found for key, found in values.items() if found} | others)


def refuse(problem: MalformedEntryError) -> None:
    raise problem


def read_any(kind: str, values: dict[str, tuple[bytes, ...]]) -> object:
    sites = {dn.key("CN=London,DC=t"): PEERS[0]}
    link: dict[str, tuple[bytes, ...]] = {
        "mSMQSite1": (b"CN=London,DC=t",),
        "mSMQSite2": (b"CN=London,DC=t",),
    }
    match kind:
        case "enterprise":
            return reading.read_enterprise(Entry("CN=MsmqServices", BASE | values), "DC=t")
        case "site":
            return reading.read_site(Entry("CN=London,DC=t", BASE | values))
        case "link":
            return reading.read_link(Entry("CN=l,DC=t", BASE | link | values), sites, KNOWN, refuse)
        case "machine":
            found = Entry(MACHINE_DN, BASE | values)
            return reading.read_machine(found, Entry("CN=LON-1,DC=t", values), KNOWN, refuse)
    return reading.read_queue(Entry(f"CN=q,{MACHINE_DN}", BASE | values), GUID, "")


@given(st.booleans(), st.booleans(), NUMBERS, st.booleans())
def test_enterprise(weakened: bool, notified: bool, time_to_live: int, old: bool) -> None:
    meant = Enterprise(
        id=GUID,
        name="DC=t",
        weakened_security=weakened,
        change_notification=notified,
        default_time_to_live=time_to_live,
        old_directory=old,
        security=b"sd",
    )
    assert (
        reading.read_enterprise(entry("CN=MsmqServices", writing.enterprise_attributes(meant)), "DC=t")
        == meant
    )


@given(st.booleans(), st.booleans(), TEXTS.filter(bool))
def test_site(foreign: bool, migrated: bool, name: str) -> None:
    path = dn.child(name, "CN=Sites,DC=t")
    meant = Site(id=GUID, name=name, foreign=foreign, migrated=migrated, full_path=path, security=b"sd")
    found = entry(path, writing.site_attributes(meant), cn=(name.encode(),))
    assert reading.read_site(found) == meant


@given(st.integers(-(2**31), 2**31 - 1), LISTS, TEXTS)
def test_link(cost: int, gates: tuple[UUID, ...], description: str) -> None:
    sites = {PEERS[0]: "CN=London,CN=Sites,DC=t", PEERS[1]: "CN=Paris,CN=Sites,DC=t"}
    keys = {dn.key(name.lower()): site for site, name in sites.items()}
    meant = RoutingLink(
        id=GUID,
        site1=PEERS[0],
        site2=PEERS[1],
        cost=cost,
        gates=gates,
        description=description,
        full_path="CN=l,DC=t",
    )
    values = writing.link_attributes(meant, sites, [NAMES[gate] for gate in gates])
    assert reading.read_link(entry("CN=l,DC=t", values), keys, KNOWN, refuse) == meant
    assert writing.link_name(meant) == PEERS[0].hex + PEERS[1].hex


MACHINES = st.builds(
    Machine,
    id=st.just(GUID),
    name=st.just("LON-1"),
    sites=LISTS,
    routing=st.booleans(),
    in_routing=LISTS,
    out_routing=LISTS,
    directory_server=st.booleans(),
    directory_server_type=st.sampled_from(DirectoryServerType),
    foreign=st.booleans(),
    supporting_server=st.booleans(),
    remote_access_server=st.booleans(),
    clustered=st.just(False),
    address=st.just(""),
    networks=st.just(()),
    qualified_name=st.just("lon-1.t"),
    os_version=st.just("12"),
    version=TEXTS,
    os_type=st.sampled_from(OperatingSystemType),
    quota=NUMBERS,
    journal_quota=NUMBERS,
    full_path=st.just(MACHINE_DN),
    create_time=st.just(TIMES["create_time"]),
    modify_time=st.just(TIMES["modify_time"]),
    encryption_keys=st.binary(max_size=20),
    signing_keys=st.just(b""),
    security=st.just(b"sd"),
)


@given(MACHINES)
def test_machine(meant: Machine) -> None:
    if not meant.directory_server:  # nobody asks then, and the directory does not keep it
        meant = msgspec.structs.replace(meant, directory_server_type=DirectoryServerType.STANDALONE)
    values = writing.machine_attributes(
        meant, [NAMES[one] for one in meant.in_routing], [NAMES[one] for one in meant.out_routing]
    )
    computer = Entry("CN=LON-1", {"dNSHostName": (b"lon-1.t",), "operatingSystemVersion": (b"12",)})
    assert reading.read_machine(entry(MACHINE_DN, values), computer, KNOWN, refuse) == meant
    settings = writing.settings_attributes(meant, GUID)
    assert settings["mSMQQMID"] == (GUID.bytes_le,)
    for one, other in (
        ("mSMQServices", "mSMQServiceType"),
        ("mSMQRoutingService", "mSMQRoutingServices"),
        ("mSMQDsService", "mSMQDsServices"),
        ("mSMQDependentClientService", "mSMQDependentClientServices"),
    ):
        assert settings[one] == values[other]


QUEUES = st.builds(
    QueueProperties,
    label=TEXTS,
    transactional=st.booleans(),
    journaling=st.booleans(),
    quota=NUMBERS,
    journal_quota=NUMBERS,
    base_priority=st.integers(-0x8000, 0x7FFF),
    authentication=st.booleans(),
    privacy=st.sampled_from(QueuePrivacy),
    multicast_address=st.just(""),
    type_id=st.uuids(),
    max_aborts=st.just(0),
)


@given(QUEUES, QUEUE_NAMES.filter(lambda name: name.lower() not in ("private$", "system$")))
def test_queue(properties: QueueProperties, name: str) -> None:
    path = dn.child(stored_name(name).common_name, MACHINE_DN)
    meant = PublicQueue(
        id=GUID,
        path=f"lon-1\\{name}".lower(),
        manager=PEERS[0],
        properties=properties,
        qualified_path=f"lon-1.t\\{name}".lower(),
        full_path=path,
        security=b"sd",
        **TIMES,
    )
    as_given = msgspec.structs.replace(meant, path=f"LON-1\\{name}")
    found = entry(path, writing.queue_attributes(as_given))
    assert reading.read_queue(found, PEERS[0], "LON-1.t") == meant


def test_what_is_left_out_has_the_defaults_of_the_specification() -> None:
    enterprise = reading.read_enterprise(entry("CN=MsmqServices", {}), "DC=t")
    assert enterprise.default_time_to_live == 345_600
    assert enterprise.change_notification
    assert enterprise.old_directory
    assert not enterprise.weakened_security
    machine = reading.read_machine(entry(MACHINE_DN, {}), None, {}, refuse)
    assert (machine.quota, machine.journal_quota) == (0x00100000, 0xFFFFFFFF)
    assert machine == Machine(id=GUID, name="LON-1", full_path=MACHINE_DN, security=b"sd", **TIMES)
    queue = reading.read_queue(entry(f"CN=q,{MACHINE_DN}", {}), GUID, "")
    assert queue.properties == QueueProperties()
    assert queue.qualified_path == ""


def test_a_cluster_says_so_in_its_principal_name() -> None:
    computer = Entry("CN=c", {"servicePrincipalName": (b"HOST/c", b"MSClusterVirtualServer/c")})
    assert reading.read_machine(entry(MACHINE_DN, {}), computer, {}, refuse).clustered


def test_certificates_have_their_digests_beside_them() -> None:
    one = bytes(range(16)) + bytes(16) + struct.pack("<I", 3) + b"abc"
    two = bytes(16) + bytes(16) + struct.pack("<I", 0)
    machine = Machine(id=GUID, name="m", signing_keys=struct.pack("<I", 2) + one + two)
    values = writing.certificate_attributes(machine)
    assert values["mSMQDigests"] == (bytes(range(16)), bytes(16))
    for wrong in (b"x", struct.pack("<I", 3) + one + two, struct.pack("<I", 1) + one + two):
        with pytest.raises(DirectoryError, match="MQUSERSIGNCERTS"):
            writing.certificate_attributes(msgspec.structs.replace(machine, signing_keys=wrong))


def test_numbers_that_do_not_fit() -> None:
    with pytest.raises(DirectoryError, match="32 bits"):
        writing.enterprise_attributes(Enterprise(id=GUID, name="", default_time_to_live=2**32))


@pytest.mark.parametrize(
    ("kind", "attribute", "value"),
    [
        ("enterprise", "mSMQVersion", b"7"),
        ("enterprise", "mSMQCSPName", b"maybe"),
        ("enterprise", "mSMQNameStyle", b"2"),
        ("enterprise", "mSMQLongLived", b"for ever"),
        ("enterprise", "objectGUID", b"1"),
        ("site", "cn", b""),
        ("site", "mSMQNt4Stub", b"x"),
        ("link", "mSMQCost", b""),
        ("link", "mSMQSite1", b"no name"),
        ("link", "mSMQSite2", b"CN=Nowhere,DC=t"),
        ("link", "mSMQSiteGates", b"CN=gone,DC=t"),
        ("machine", "mSMQSites", b"15 bytes are few"[:15]),
        ("machine", "mSMQOSType", b"7"),
        ("machine", "whenCreated", b"then"),
        ("machine", "mSMQRoutingServices", b"ja"),
        ("machine", "mSMQInRoutingServers", b"CN=gone,DC=t"),
        ("machine", "mSMQOutRoutingServers", b"\xff"),
        ("queue", "mSMQPrivacyLevel", b"3"),
        ("queue", "mSMQQueueType", b"0"),
        ("queue", "mSMQLabelEx", b"\xc3"),
        ("queue", "mSMQQueueQuota", b"99999999999"),
    ],
)
def test_malformed_values_are_named(kind: str, attribute: str, value: bytes) -> None:
    with pytest.raises(MalformedEntryError, match=attribute):
        read_any(kind, {"cn": (b"London",), "mSMQCost": (b"1",), attribute: (value,)})


@pytest.mark.parametrize("name", ["CN=q", "nothing", r"CN=a\5Cb,CN=msmq,CN=c d", "CN=,CN=msmq,CN=LON-1"])
def test_queues_and_managers_with_names_that_cannot_be(name: str) -> None:
    with pytest.raises(MalformedEntryError, match="distinguishedName"):
        reading.read_queue(entry(name, {}), GUID, "")
    with pytest.raises(MalformedEntryError, match="distinguishedName"):
        reading.read_machine(entry(f"CN=msmq{name[2:4]},CN=", {}), None, {}, refuse)


@given(
    st.sampled_from(["enterprise", "site", "link", "machine", "queue"]),
    st.dictionaries(
        st.sampled_from(sorted({name for names in (*READ.values(), COMPUTER) for name in names})),
        st.lists(st.one_of(st.binary(max_size=20), st.sampled_from([b"TRUE", b"1", bytes(16)])), max_size=3),
    ),
)
def test_any_entry_is_an_object_or_a_named_error(kind: str, values: dict[str, list[bytes]]) -> None:
    try:
        read_any(kind, {name: tuple(found) for name, found in values.items()})
    except MalformedEntryError as error:
        assert str(error).startswith(error.dn)  # noqa: PT017  # either outcome is right
