"""A directory as one TOML file: writing it.

What is left out of the file is what a file cannot say: security descriptors and public keys, and those
properties of a queue that are no directory attributes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Any, TypeVar
from uuid import UUID

import msgspec

from lanner.directory.file_schema import TABLES, Key
from lanner.model.directory_query import ObjectType, type_of
from lanner.model.enterprise import DirectoryObject, EnterpriseMap, PublicQueue, RoutingLink
from lanner.model.queue import NULL_GUID, QueueProperties

__all__ = ["TABLE_OF", "as_written", "dump", "dump_object"]

_Object = TypeVar("_Object", bound=DirectoryObject)

TABLE_OF = {
    ObjectType.ENTERPRISE: "enterprise",
    ObjectType.SITE: "site",
    ObjectType.ROUTING_LINK: "link",
    ObjectType.CONNECTED_NETWORK: "network",
    ObjectType.QUEUE_MANAGER: "manager",
    ObjectType.QUEUE: "queue",
}
"""The file's name for each kind of object."""

_UNWRITTEN = ("security", "encryption_keys", "signing_keys")

_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def as_written(item: _Object) -> _Object:
    """The object without what a file cannot say."""
    changes: dict[str, Any] = {name: b"" for name in _UNWRITTEN if getattr(item, name, b"")}
    if isinstance(item, PublicQueue):
        known = {key.field for key in TABLES["queue"].values() if key.of_queue}
        changes["properties"] = QueueProperties(**{name: getattr(item.properties, name) for name in known})
    return msgspec.structs.replace(item, **changes) if changes else item


def dump(source: EnterpriseMap) -> str:
    """Write an enterprise so that reading it gives the same again, identifiers and all."""
    parts: Iterable[DirectoryObject] = (
        source.enterprise,
        *source.sites,
        *source.networks,
        *source.links,
        *source.machines,
        *source.queues,
    )
    return "\n".join(dump_object(source, part) for part in parts)


def dump_object(source: EnterpriseMap, item: DirectoryObject) -> str:
    """Write one object as a table of the file, with the names that the enterprise has for others."""
    table = TABLE_OF[type_of(item)]
    header = f"[{table}]" if table == "enterprise" else f"[[{table}]]"
    lines = (f"{name} = {value}" for name, value in _pairs(source, item, TABLES[table]))
    return "\n".join((header, *lines)) + "\n"


def _pairs(source: EnterpriseMap, item: DirectoryObject, keys: dict[str, Key]) -> Iterator[tuple[str, str]]:
    defaults = dict(
        zip(type(item).__struct_fields__[::-1], type(item).__struct_defaults__[::-1], strict=False)
    )
    for name, key in keys.items():
        if isinstance(item, RoutingLink) and name == "sites":
            yield name, _shown([_name_of(source, "site", one) for one in (item.site1, item.site2)])
            continue
        if key.of_queue:
            properties = item.properties  # type: ignore[union-attr]
            value, default = getattr(properties, key.field), getattr(QueueProperties(), key.field)
        else:
            value, default = getattr(item, key.field), defaults.get(key.field)
        if value in (default, NULL_GUID):
            continue
        if key.refers_to:
            value = (
                _name_of(source, key.refers_to, value)
                if isinstance(value, UUID)
                else [_name_of(source, key.refers_to, one) for one in value]
            )
        yield name, _shown(value)


def _name_of(source: EnterpriseMap, table: str, identifier: UUID) -> str:
    """The name that will be read as this identifier; the identifier itself if no name will."""
    match table:
        case "site":
            site = source.site(identifier)
            is_right = site is not None and source.site_named(site.name) is site
            return site.name if site and is_right else str(identifier)
        case "network":
            network = source.network(identifier)
            return network.name if network else str(identifier)
        case _:
            machine = source.machine(identifier)
            is_right = machine is not None and source.machine_named(machine.name) is machine
            return machine.name if machine and is_right else str(identifier)


def _shown(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case Enum():
            return _shown(value.value if isinstance(value.value, str) else value.name.lower())
        case int():
            return str(value)
        case list() | tuple():
            return f"[{', '.join(map(_shown, value))}]"
        case _:
            return _quoted(str(value))


def _quoted(text: str) -> str:
    if "\\" in text and "'" not in text and text.isprintable():
        return f"'{text}'"  # paths read better so
    return '"' + "".join(_ESCAPES.get(letter) or _escaped(letter) for letter in text) + '"'


def _escaped(letter: str) -> str:
    return letter if letter.isprintable() else f"\\U{ord(letter):08x}"
