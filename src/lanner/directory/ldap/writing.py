"""The model's objects as attributes of entries (MS-MQDSSM 3.1.6.1 and 3.1.6.7). Pure functions.

Each gives every attribute that the specification writes; one without values is to be absent, for Active
Directory has no empty values. Distinguished names for identifiers come from the caller.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from uuid import UUID

from lanner.directory.base import DirectoryError
from lanner.directory.ldap.queue_names import stored_name
from lanner.directory.ldap.reading import NEW_DIRECTORY, OLD_DIRECTORY, OS_TYPES, SERVER_TYPES
from lanner.model.enterprise import Enterprise, Machine, PublicQueue, RoutingLink, Site

__all__ = [
    "certificate_attributes",
    "enterprise_attributes",
    "has_settings",
    "link_attributes",
    "link_name",
    "machine_attributes",
    "queue_attributes",
    "settings_attributes",
    "site_attributes",
]

Values = dict[str, tuple[bytes, ...]]

_ROUTING, _REMOTE_ACCESS = 0x01, 0x10
_OS_NUMBERS = {kind: number for number, kind in OS_TYPES.items()}
_SERVER_BITS = {kind: bit for bit, kind in SERVER_TYPES.items()}

_COUNT = struct.Struct("<I")
_CERTIFICATE = struct.Struct("<16s16sI")


def enterprise_attributes(enterprise: Enterprise) -> Values:
    """Of an mSMQEnterpriseSettings object (3.1.6.7.3.2)."""
    return {
        "mSMQNameStyle": _boolean(enterprise.weakened_security),
        "mSMQCSPName": _text("Y" if enterprise.change_notification else "N"),
        "mSMQLongLived": _number(enterprise.default_time_to_live),
        "mSMQVersion": _number(OLD_DIRECTORY if enterprise.old_directory else NEW_DIRECTORY),
    }


def site_attributes(site: Site) -> Values:
    """Of a site object (3.1.6.1.3.2)."""
    return {
        "mSMQSiteForeign": _boolean(site.foreign),
        "mSMQNt4Stub": _number(int(site.migrated)),
    }


def link_attributes(link: RoutingLink, sites: Mapping[UUID, str], gates: Iterable[str]) -> Values:
    """Of an mSMQSiteLink object (3.1.6.1.4.2): names of its sites and gates are given."""
    return {
        "description": _text(link.description),
        "mSMQCost": _number(link.cost),
        "mSMQSite1": _text(sites[link.site1]),
        "mSMQSite2": _text(sites[link.site2]),
        "mSMQSiteGates": tuple(name.encode() for name in gates),
    }


def link_name(link: RoutingLink) -> str:
    """The common name of a link: the identifiers of its sites (3.1.6.1.4.2)."""
    return link.site1.hex + link.site2.hex


def machine_attributes(machine: Machine, in_routing: Iterable[str], out_routing: Iterable[str]) -> Values:
    """Of an mSMQConfiguration object (3.1.6.1.1.2): names of its routing servers are given."""
    return {
        "mSMQComputerTypeEx": _text(machine.version),
        "mSMQOSType": _number(_OS_NUMBERS[machine.os_type]),
        "mSMQServiceType": _number(_services(machine)),
        "mSMQQuota": _number(machine.quota),
        "mSMQJournalQuota": _number(machine.journal_quota),
        "mSMQForeign": _boolean(machine.foreign),
        "mSMQSites": tuple(one.bytes_le for one in machine.sites),
        "mSMQOutRoutingServers": tuple(name.encode() for name in out_routing),
        "mSMQInRoutingServers": tuple(name.encode() for name in in_routing),
        "mSMQRoutingServices": _boolean(machine.routing),
        "mSMQDsServices": _boolean(machine.directory_server),
        "mSMQDependentClientServices": _boolean(machine.supporting_server),
        "mSMQEncryptKey": (machine.encryption_keys,) if machine.encryption_keys else (),
    }


def has_settings(machine: Machine) -> bool:
    """Whether a queue manager has a settings object in each of its sites (3.1.6.20.1)."""
    return machine.routing or machine.directory_server or machine.supporting_server


def settings_attributes(machine: Machine, identifier: UUID) -> Values:
    """Of an mSMQSettings object, for the queue manager with this identifier (3.1.6.1.1.3)."""
    return {
        "mSMQQMID": (identifier.bytes_le,),
        "mSMQServices": _number(_services(machine)),
        "mSMQRoutingService": _boolean(machine.routing),
        "mSMQDsService": _boolean(machine.directory_server),
        "mSMQDependentClientService": _boolean(machine.supporting_server),
    }


def certificate_attributes(machine: Machine) -> Values:
    """Of a computer object: the certificates, and the digest of each (3.1.6.1.1.9)."""
    keys = machine.signing_keys
    return {"mSMQSignCertificates": (keys,) if keys else (), "mSMQDigests": _digests(keys) if keys else ()}


def queue_attributes(queue: PublicQueue) -> Values:
    """Of an mSMQQueue object (3.1.6.1.2.2)."""
    properties = queue.properties
    return {
        "mSMQLabelEx": _text(properties.label),
        "mSMQQueueType": (properties.type_id.bytes_le,),
        "mSMQJournal": _boolean(properties.journaling),
        "mSMQQueueQuota": _number(properties.quota),
        "mSMQQueueJournalQuota": _number(properties.journal_quota),
        "mSMQAuthenticate": _boolean(properties.authentication),
        "mSMQPrivacyLevel": _number(properties.privacy),
        "mSMQTransactional": _boolean(properties.transactional),
        "MSMQ-MulticastAddress": _text(properties.multicast_address),
        "mSMQBasePriority": _number(properties.base_priority),
        "mSMQQueueNameExt": _text(stored_name(queue.name).extension),
    }


def _services(machine: Machine) -> int:
    """mSMQServiceType (3.1.6.1.1.5)."""
    bits = _ROUTING if machine.routing else 0
    if machine.remote_access_server:
        bits |= _REMOTE_ACCESS
    if machine.directory_server:
        bits |= _SERVER_BITS.get(machine.directory_server_type, 0)
    return bits


def _digests(keys: bytes) -> tuple[bytes, ...]:
    """The digests in an MQUSERSIGNCERTS structure (MS-MQMQ 2.2.21)."""
    try:
        (count,) = _COUNT.unpack_from(keys)
        digests = []
        position = _COUNT.size
        for _ in range(count):
            digest, _, length = _CERTIFICATE.unpack_from(keys, position)
            digests.append(digest)
            position += _CERTIFICATE.size + length
    except struct.error:
        raise DirectoryError("the signing keys are no MQUSERSIGNCERTS structure") from None
    if position != len(keys):
        raise DirectoryError("the signing keys are no MQUSERSIGNCERTS structure: their length is wrong")
    return tuple(dict.fromkeys(digests))  # an attribute has each value once


def _text(value: str) -> tuple[bytes, ...]:
    return (value.encode(),) if value else ()


def _boolean(value: bool) -> tuple[bytes, ...]:
    return (b"TRUE" if value else b"FALSE",)


def _number(value: int) -> tuple[bytes, ...]:
    """A number of 32 bits, which LDAP keeps with a sign: 0xFFFFFFFF is -1."""
    if not -0x8000_0000 <= value <= 0xFFFF_FFFF:
        raise DirectoryError(f"{value} does not fit into the 32 bits that the directory has")
    return (str(value - 0x1_0000_0000 if value > 0x7FFF_FFFF else value).encode(),)
