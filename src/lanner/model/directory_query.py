"""How directory objects are asked for: their types, the names of their attributes, filters, order.

MS-MQDMPR 3.1.7.1.20 and 3.1.7.1.21 name attributes as strings; here each finds its field. Routing
(MS-MQBR 3.1.5.9) and the directories use the same expressions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum, StrEnum
from typing import Any

import msgspec

from lanner.model.enterprise import DirectoryObject, EnterpriseMap
from lanner.model.errors import InvalidPropertyError

__all__ = ["AttributeFilter", "ObjectType", "Operator", "SortOrder", "attribute", "select", "type_of"]


class ObjectType(StrEnum):
    """The subtypes of DirectoryObject (MS-MQDMPR 3.1.1), by the names that events call them."""

    ENTERPRISE = "Enterprise"
    SITE = "Site"
    ROUTING_LINK = "RoutingLink"
    CONNECTED_NETWORK = "ConnectedNetwork"
    QUEUE_MANAGER = "QueueManager"
    QUEUE = "Queue"


class Operator(Enum):
    """How an attribute is compared (MS-MQDMPR 3.1.7.1.20)."""

    EQUALS = "EQUALS"
    NOT_EQUALS = "NOT-EQUALS"
    LESS_THAN = "LESS-THAN"
    GREATER_THAN = "GREATER-THAN"
    LESS_THAN_OR_EQUAL = "LESS-THAN-OR-EQUAL"
    GREATER_THAN_OR_EQUAL = "GREATER-THAN-OR-EQUAL"


class AttributeFilter(msgspec.Struct, frozen=True):
    """An attribute-filter expression (MS-MQDMPR 3.1.7.1.20): ``("Identifier", Operator.EQUALS, id)``."""

    attribute: str
    operator: Operator
    value: Any


class SortOrder(msgspec.Struct, frozen=True):
    """An attribute-sort-order value with its attribute (MS-MQDMPR 3.1.7.1.21); priority 0 sorts nothing."""

    attribute: str
    priority: int
    ascending: bool = True


_QUEUE_PROPERTIES = {
    "Label": "label",
    "Type": "type_id",
    "Journaling": "journaling",
    "Quota": "quota",
    "JournalQuota": "journal_quota",
    "Authentication": "authentication",
    "PrivacyLevel": "privacy",
    "Transactional": "transactional",
    "MulticastAddress": "multicast_address",
    "BasePriority": "base_priority",
}

_FIELDS: Mapping[ObjectType, Mapping[str, str]] = {
    ObjectType.ENTERPRISE: {
        "Name": "name",
        "WeakenedSecurity": "weakened_security",
        "NonLDAPCapableQueueManagerNotification": "change_notification",
        "DefaultTimeToLive": "default_time_to_live",
        "OldDirectory": "old_directory",
        "Security": "security",
    },
    ObjectType.SITE: {
        "Name": "name",
        "PrimarySiteController": "primary_site_controller",
        "FullPath": "full_path",
        "ForeignSite": "foreign",
        "MigratedFromMsmq10": "migrated",
        "Security": "security",
    },
    ObjectType.ROUTING_LINK: {
        "Description": "description",
        "FullPath": "full_path",
        "ActualCost": "cost",
        "Site1Identifier": "site1",
        "Site2Identifier": "site2",
        "SiteGateIdentifierList": "gates",
    },
    ObjectType.CONNECTED_NETWORK: {"Name": "name", "Security": "security"},
    ObjectType.QUEUE_MANAGER: {
        "ComputerName": "name",
        "QueueManagerVersion": "version",
        "OperatingSystemVersion": "os_version",
        "OperatingSystemType": "os_type",
        "QualifiedComputerName": "qualified_name",
        "CreateTime": "create_time",
        "ModifyTime": "modify_time",
        "QueueManagerQuota": "quota",
        "JournalQuota": "journal_quota",
        "ForeignSystem": "foreign",
        "FullPath": "full_path",
        "SiteIdentifierList": "sites",
        "ConnectedNetworkIdentifierList": "networks",
        "OutRoutingServerIdentifierList": "out_routing",
        "InRoutingServerIdentifierList": "in_routing",
        "DirectoryServer": "directory_server",
        "RemoteAccessServer": "remote_access_server",
        "RoutingServer": "routing",
        "SupportingServer": "supporting_server",
        "DirectoryServerType": "directory_server_type",
        "PublicEncryptionKeyList": "encryption_keys",
        "PublicSigningKeyList": "signing_keys",
        "Security": "security",
        "Clustered": "clustered",
    },
    ObjectType.QUEUE: {
        "Pathname": "path",
        "QualifiedPathname": "qualified_path",
        "FullPath": "full_path",
        "CreateTime": "create_time",
        "ModifyTime": "modify_time",
        "Security": "security",
    },
}

_COLLECTIONS = {
    ObjectType.SITE: "sites",
    ObjectType.ROUTING_LINK: "links",
    ObjectType.CONNECTED_NETWORK: "networks",
    ObjectType.QUEUE_MANAGER: "machines",
    ObjectType.QUEUE: "queues",
}

_TYPES = {
    "Enterprise": ObjectType.ENTERPRISE,
    "Site": ObjectType.SITE,
    "RoutingLink": ObjectType.ROUTING_LINK,
    "ConnectedNetwork": ObjectType.CONNECTED_NETWORK,
    "Machine": ObjectType.QUEUE_MANAGER,
    "PublicQueue": ObjectType.QUEUE,
}


def type_of(item: DirectoryObject) -> ObjectType:
    """Which subtype of DirectoryObject this is."""
    return _TYPES[type(item).__name__]


def attribute(item: DirectoryObject, name: str) -> Any:
    """The value of an attribute by the specification's name for it."""
    if name == "Identifier":
        return item.id
    kind = type_of(item)
    if kind is ObjectType.QUEUE and name in _QUEUE_PROPERTIES:
        return getattr(item.properties, _QUEUE_PROPERTIES[name])  # type: ignore[union-attr]
    try:
        return getattr(item, _FIELDS[kind][name])
    except KeyError:
        known = ", ".join(sorted((*_FIELDS[kind], "Identifier")))
        raise InvalidPropertyError(f"a {kind} has no attribute {name!r}", hint=f"it has {known}") from None


def select(
    source: EnterpriseMap,
    kind: ObjectType | str,
    filters: Iterable[AttributeFilter] = (),
    order: Sequence[SortOrder] = (),
) -> list[DirectoryObject]:
    """All objects of a type that satisfy every filter, in the order asked for."""
    kind = ObjectType(kind)
    filters = list(filters)
    found: list[DirectoryObject] = (
        [source.enterprise] if kind is ObjectType.ENTERPRISE else list(getattr(source, _COLLECTIONS[kind]))
    )
    for one in filters:
        found = [item for item in found if _matches(attribute(item, one.attribute), one)]
    # Sorting is stable, so the least important comes first.
    for one_order in sorted(order, key=lambda entry: entry.priority):
        if one_order.priority:
            found.sort(
                key=lambda item: _comparable(attribute(item, one_order.attribute)),
                reverse=not one_order.ascending,
            )
    return found


def _matches(value: Any, one: AttributeFilter) -> bool:
    left, right = _comparable(value), _comparable(one.value)
    match one.operator:
        case Operator.EQUALS:
            return bool(left == right)
        case Operator.NOT_EQUALS:
            return bool(left != right)
    if type(left) is not type(right):
        raise InvalidPropertyError(f"{one.attribute} cannot be ordered against {one.value!r}")
    match one.operator:
        case Operator.LESS_THAN:
            return bool(left < right)
        case Operator.GREATER_THAN:
            return bool(left > right)
        case Operator.LESS_THAN_OR_EQUAL:
            return bool(left <= right)
        case _:
            return bool(left >= right)


def _comparable(value: Any) -> Any:
    """Names compare without case; lists and enumerations by what they hold."""
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, str):
        return value.casefold()
    if isinstance(value, list | tuple):
        return tuple(_comparable(part) for part in value)
    return value
