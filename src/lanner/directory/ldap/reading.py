"""Entries as the model's objects (MS-MQDSSM 3.1.6.11). Pure functions.

Distinguished names in values become identifiers by the tables that the caller gives: what was read of
queue managers and sites.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from uuid import UUID

from lanner.directory.base import InvalidDirectoryError
from lanner.directory.ldap import dn
from lanner.directory.ldap.entry import Entry
from lanner.directory.ldap.errors import MalformedEntryError
from lanner.directory.ldap.queue_names import restored_name
from lanner.model.enterprise import (
    DirectoryServerType,
    Enterprise,
    Machine,
    OperatingSystemType,
    PublicQueue,
    RoutingLink,
    Site,
)
from lanner.model.errors import LannerError
from lanner.model.message import INFINITE
from lanner.model.names import QueueKind, check_computer, check_queue
from lanner.model.queue import NULL_GUID, QueuePrivacy, QueueProperties

__all__ = [
    "DEFAULT_TIME_TO_LIVE",
    "OS_TYPES",
    "SERVER_TYPES",
    "Identifiers",
    "read_enterprise",
    "read_link",
    "read_machine",
    "read_queue",
    "read_site",
]

DEFAULT_TIME_TO_LIVE = 345_600
"""Seconds, where the directory says nothing (note <13>)."""

OLD_DIRECTORY, NEW_DIRECTORY = 3, 200
_DEFAULT_QUOTA = 0x0010_0000
_CLUSTERED = b"MSClusterVirtualServer"
_REMOTE_ACCESS = 0x10

OS_TYPES = {
    0x000: OperatingSystemType.OTHER,
    0x100: OperatingSystemType.FOREIGN,
    0x200: OperatingSystemType.WIN95,
    0x300: OperatingSystemType.WIN_CLIENT,
    0x400: OperatingSystemType.WIN_SERVER,
    0x500: OperatingSystemType.WIN_ENT,
}
"""mSMQOSType (3.1.6.11.1.2)."""

SERVER_TYPES = {
    0x2: DirectoryServerType.BACKUP_SITE_CONTROLLER,
    0x4: DirectoryServerType.PRIMARY_SITE_CONTROLLER,
    0x8: DirectoryServerType.PRIMARY_ENTERPRISE_CONTROLLER,
}
"""Bits of mSMQServiceType (3.1.6.11.1.5)."""

Identifiers = Mapping[tuple[tuple[str, str], ...], UUID]
"""Identifiers by ``dn.key`` of their objects."""

Report = Callable[[MalformedEntryError], None]
"""Is told of a value that is left out."""


def read_enterprise(entry: Entry, forest: str) -> Enterprise:
    """An mSMQEnterpriseSettings object (3.1.6.11.3)."""
    version = entry.integer("mSMQVersion")
    if version not in (None, OLD_DIRECTORY, NEW_DIRECTORY):
        raise entry.wrong("mSMQVersion", f"{version} is neither {OLD_DIRECTORY} nor {NEW_DIRECTORY}")
    notified = entry.text("mSMQCSPName", "Y")
    if notified not in ("Y", "N"):
        raise entry.wrong("mSMQCSPName", f"{notified[:32]!r} is neither Y nor N")
    return Enterprise(
        id=entry.identifier(),
        name=forest,
        weakened_security=entry.boolean("mSMQNameStyle"),
        change_notification=notified == "Y",
        default_time_to_live=entry.unsigned("mSMQLongLived", DEFAULT_TIME_TO_LIVE),
        old_directory=version in (None, OLD_DIRECTORY),
        security=_security(entry),
    )


def read_site(entry: Entry) -> Site:
    """A site object (3.1.6.11.4)."""
    name = entry.text("cn")
    if not name:
        raise entry.wrong("cn", "is missing")
    return Site(
        id=entry.identifier(),
        name=name,
        foreign=entry.boolean("mSMQSiteForeign"),
        # Deviation: without it the specification sees an error, but sites that MSMQ did not make lack it.
        migrated=entry.integer("mSMQNt4Stub") == 1,
        full_path=entry.dn,
        security=_security(entry),
    )


def read_link(entry: Entry, sites: Identifiers, machines: Identifiers, report: Report) -> RoutingLink:
    """An mSMQSiteLink object (3.1.6.11.5)."""
    cost = entry.integer("mSMQCost")
    if cost is None:
        raise entry.wrong("mSMQCost", "is missing")
    return RoutingLink(
        id=entry.identifier(),
        site1=_site(entry, "mSMQSite1", sites),
        site2=_site(entry, "mSMQSite2", sites),
        cost=cost,
        # Deviation from 3.1.6.11.5.3, for which a gate that is gone spoils the link: the others work.
        gates=_known(entry, "mSMQSiteGates", machines, report),
        description=entry.text("description"),
        full_path=entry.dn,
    )


def read_machine(entry: Entry, computer: Entry | None, machines: Identifiers, report: Report) -> Machine:
    """An mSMQConfiguration object, with the computer object that holds it (3.1.6.11.1)."""
    # Deviation: a computer that cannot be read, or has no DNS name yet, spoils nothing.
    about = computer or Entry(entry.dn, {})
    services = entry.unsigned("mSMQServiceType", 0)
    is_directory_server = entry.boolean("mSMQDsServices")
    return Machine(
        id=entry.identifier(),
        name=_computer_name(entry, 1),
        sites=tuple(sorted(entry.guids("mSMQSites"), key=lambda one: one.int)),
        routing=entry.boolean("mSMQRoutingServices"),
        in_routing=_known(entry, "mSMQInRoutingServers", machines, report),
        out_routing=_known(entry, "mSMQOutRoutingServers", machines, report),
        directory_server=is_directory_server,
        directory_server_type=_server_type(services, is_directory_server),
        foreign=entry.boolean("mSMQForeign"),
        supporting_server=entry.boolean("mSMQDependentClientServices"),
        remote_access_server=bool(services & _REMOTE_ACCESS),
        clustered=any(_CLUSTERED in one for one in about.values("servicePrincipalName")),
        qualified_name=about.text("dNSHostName"),
        version=entry.text("mSMQComputerTypeEx"),
        os_version=about.text("operatingSystemVersion"),
        os_type=_os_type(entry),
        quota=entry.unsigned("mSMQQuota", _DEFAULT_QUOTA),
        journal_quota=entry.unsigned("mSMQJournalQuota", INFINITE),
        full_path=entry.dn,
        create_time=entry.time("whenCreated"),
        modify_time=entry.time("whenChanged"),
        encryption_keys=entry.octets("mSMQEncryptKey") or b"",
        signing_keys=about.octets("mSMQSignCertificates") or b"",
        security=_security(entry),
    )


def read_queue(entry: Entry, machine: UUID, host_name: str) -> PublicQueue:
    """An mSMQQueue object of a queue manager and its computer's DNS name (3.1.6.11.2)."""
    common_name = _part(entry, 0)
    name = restored_name(common_name, entry.text("mSMQQueueNameExt"))
    try:
        check_queue(QueueKind.PUBLIC, name)
    except LannerError as error:
        raise entry.wrong("distinguishedName", error.message) from None
    return PublicQueue(
        id=entry.identifier(),
        path=f"{_computer_name(entry, 2)}\\{name}".lower(),
        manager=machine,
        properties=_properties(entry),
        qualified_path=f"{host_name}\\{name}".lower() if host_name else "",
        full_path=entry.dn,
        create_time=entry.time("whenCreated"),
        modify_time=entry.time("whenChanged"),
        security=_security(entry),
    )


def _properties(entry: Entry) -> QueueProperties:
    privacy = entry.unsigned("mSMQPrivacyLevel", QueuePrivacy.OPTIONAL)
    if privacy not in QueuePrivacy.__members__.values():
        raise entry.wrong("mSMQPrivacyLevel", f"{privacy} is not 0, 1 or 2")
    properties = QueueProperties(
        label=entry.text("mSMQLabelEx"),
        transactional=entry.boolean("mSMQTransactional"),
        journaling=entry.boolean("mSMQJournal"),
        quota=entry.unsigned("mSMQQueueQuota", INFINITE),
        journal_quota=entry.unsigned("mSMQQueueJournalQuota", INFINITE),
        base_priority=entry.integer("mSMQBasePriority") or 0,
        authentication=entry.boolean("mSMQAuthenticate"),
        privacy=QueuePrivacy(privacy),
        multicast_address=entry.text("MSMQ-MulticastAddress"),
        type_id=entry.guid("mSMQQueueType") or NULL_GUID,
    )
    try:
        properties.check()
    except LannerError as error:
        raise entry.wrong("properties", error.message) from None
    return properties


def _security(entry: Entry) -> bytes:
    """A security descriptor as it is. Deviation: one that we may not read is empty, not an error."""
    return entry.octets("nTSecurityDescriptor") or b""


def _server_type(services: int, is_directory_server: bool) -> DirectoryServerType:
    for bit, kind in SERVER_TYPES.items():
        if is_directory_server and services & bit:
            return kind
    return DirectoryServerType.STANDALONE


def _os_type(entry: Entry) -> OperatingSystemType:
    number = entry.unsigned("mSMQOSType", 0)
    if number not in OS_TYPES:
        raise entry.wrong("mSMQOSType", f"{number:#x} is not a known system")
    return OS_TYPES[number]


def _site(entry: Entry, attribute: str, sites: Identifiers) -> UUID:
    name = entry.text(attribute)
    if not name:
        raise entry.wrong(attribute, "is missing")
    found = sites.get(_key(entry, attribute, name))
    if found is None:
        raise entry.wrong(attribute, f"there is no site {name[:128]}")
    return found


def _known(entry: Entry, attribute: str, machines: Identifiers, report: Report) -> tuple[UUID, ...]:
    """Queue managers by their names; those that are gone are left out (3.1.6.11.1.3)."""
    found = []
    for name in entry.texts(attribute):
        identifier = machines.get(_key(entry, attribute, name))
        if identifier is None:
            report(entry.wrong(attribute, f"there is no queue manager {name[:128]}"))
        else:
            found.append(identifier)
    return tuple(sorted(found, key=lambda one: one.int))  # a directory's values have no order


def _key(entry: Entry, attribute: str, name: str) -> tuple[tuple[str, str], ...]:
    try:
        return dn.key(name)
    except InvalidDirectoryError as error:
        raise entry.wrong(attribute, error.message) from None


def _part(entry: Entry, number: int) -> str:
    try:
        return dn.value(entry.dn, number)
    except InvalidDirectoryError as error:
        raise entry.wrong("distinguishedName", error.message) from None


def _computer_name(entry: Entry, number: int) -> str:
    name = _part(entry, number)
    try:
        check_computer(name)
    except LannerError as error:
        raise entry.wrong("distinguishedName", error.message) from None
    return name
