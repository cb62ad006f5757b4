"""An enterprise as a file, and the same put into a directory over LDAP."""

from __future__ import annotations

import re
from typing import Any
from uuid import UUID

import msgspec

from lanner.directory.ldap.directory import LdapDirectory
from lanner.model.enterprise import EnterpriseMap, Machine, PublicQueue, RoutingLink, Site
from lanner.model.queue import NULL_GUID

__all__ = ["LONG_NAME", "TEXT", "build", "routing_part", "with_identifiers"]

LONG_NAME = "a-queue-with-a-name=that/is<longer>than#sixty-three-characters-and-has-marks=of/its#own"

TEXT = rf"""
[enterprise]
name = "DC=msmq,DC=test"
change_notification = true
default_time_to_live = 345600

[[site]]
name = "Default-First-Site-Name"
[[site]]
name = "London"
[[site]]
name = "Paris"
[[site]]
name = "Rome"
[[site]]
name = "Oslo"
foreign = true

[[link]]
sites = ["London", "Paris"]
cost = 3
gates = ["LON-GW", "PAR-GW", "PAR-GW2"]
description = "the tunnel"
[[link]]
sites = ["Paris", "Rome"]
cost = 5
gates = ["PAR-GW", "PAR-GW2", "ROM-GW"]
[[link]]
sites = ["London", "Rome"]
cost = 20
gates = ["LON-GW", "ROM-GW"]
[[link]]
sites = ["London", "Oslo"]
cost = 999999
gates = ["LON-GW"]

[[manager]]
name = "LON-GW"
sites = ["London", "Oslo"]
routing = true
directory_server = true
directory_server_type = "primary-enterprise-controller"
version = "Lanner"
os_type = "win-server"
[[manager]]
name = "PAR-GW"
sites = ["Paris"]
routing = true
supporting_server = true
remote_access_server = true
[[manager]]
name = "PAR-GW2"
sites = ["Paris"]
routing = true
[[manager]]
name = "ROM-GW"
sites = ["Rome"]
routing = true
quota = 4294967295
journal_quota = 1000
[[manager]]
name = "LON-1"
sites = ["London"]
out_routing = ["LON-RS"]
[[manager]]
name = "LON-RS"
sites = ["London"]
routing = true
[[manager]]
name = "PAR-1"
sites = ["Paris"]
in_routing = ["PAR-GW", "PAR-GW2"]
[[manager]]
name = "ROM-1"
sites = ["Rome"]
[[manager]]
name = "OSLO-1"
sites = ["Oslo"]
foreign = true

[[queue]]
path = 'LON-1\orders'
label = "Orders, größer"
transactional = true
journaling = true
quota = 5000
type = "11111111-2222-3333-4444-555555555555"
[[queue]]
path = 'ROM-1\ticks'
multicast_address = "234.1.1.1:8001"
base_priority = -5
privacy = "body"
authentication = true
journal_quota = 77
[[queue]]
path = 'ROM-1\{LONG_NAME}'
"""


async def build(directory: LdapDirectory, meant: EnterpriseMap) -> None:
    """Put an enterprise into a directory whose computers exist."""
    present = {site.name: site.id for site in (await directory.read()).sites}
    known: dict[UUID, UUID] = {}
    await directory.write_object(meant.enterprise)
    for site in meant.sites:
        known[site.id] = present.get(site.name) or await directory.create_object(site)
    for machine in meant.machines:
        first = _renamed(machine, known, in_routing=(), out_routing=(), id=NULL_GUID)
        known[machine.id] = await directory.create_object(first)
    for machine in meant.machines:
        if machine.in_routing or machine.out_routing:
            await directory.write_object(_renamed(machine, known))
    for link in meant.links:
        await directory.create_object(_renamed(link, known))
    for queue in meant.queues:
        await directory.create_queue(msgspec.structs.replace(queue, id=NULL_GUID))


def with_identifiers(text: str, found: EnterpriseMap) -> str:
    """The same file with the identifiers that a directory gave."""
    identifiers: dict[str, UUID] = {found.enterprise.name: found.enterprise.id}
    identifiers |= {site.name: site.id for site in found.sites}
    identifiers |= {machine.name: machine.id for machine in found.machines}
    identifiers |= {queue.path: queue.id for queue in found.queues}

    def added(line: re.Match[str]) -> str:
        name = line[2] if line[2] in identifiers else line[2].lower()
        return f'{line[0]}\nid = "{identifiers[name]}"'

    return re.sub(r"""^(?:name|path) = (["'])(.*)\1$""", added, text, flags=re.MULTILINE)


def routing_part(source: EnterpriseMap) -> list[Any]:
    """All that a file can say of an enterprise, in an order of its own."""
    return [
        msgspec.structs.replace(source.enterprise, security=b""),
        sorted((_plain(site) for site in source.sites), key=lambda site: site.name),
        sorted((_plain(link) for link in source.links), key=lambda link: (link.site1, link.site2)),
        sorted((_plain(machine) for machine in source.machines), key=lambda machine: machine.name),
        sorted((_plain(queue) for queue in source.queues), key=lambda queue: queue.path),
    ]


def _renamed(item: Any, known: dict[UUID, UUID], **others: Any) -> Any:
    fields = {name: getattr(item, name) for name in item.__struct_fields__} | others
    for name, value in fields.items():
        if isinstance(value, UUID):
            fields[name] = known.get(value, value)
        elif isinstance(value, tuple):
            fields[name] = tuple(known.get(one, one) for one in value)
    return type(item)(**fields)


def _plain(item: Any) -> Any:
    """Without what the directory adds by itself, and with lists in one order."""
    if isinstance(item, RoutingLink):
        gates = tuple(sorted(item.gates))
        return msgspec.structs.replace(item, full_path="", gates=gates, id=NULL_GUID)
    if isinstance(item, Site):
        return msgspec.structs.replace(item, full_path="", security=b"")
    added = {"full_path": "", "security": b"", "create_time": 0, "modify_time": 0}
    if isinstance(item, PublicQueue):
        return msgspec.structs.replace(
            item, **added, qualified_path="", path=item.path.lower(), manager=NULL_GUID
        )
    assert isinstance(item, Machine)
    lists = {name: tuple(sorted(getattr(item, name))) for name in ("sites", "in_routing", "out_routing")}
    return msgspec.structs.replace(item, **added, **lists, qualified_name="", os_version="")
