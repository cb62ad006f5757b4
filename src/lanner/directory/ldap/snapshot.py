"""A whole enterprise read over LDAP.

An entry that cannot be understood is left out and reported, so that one broken queue does not hide all
others. MS-MQDSSM 3.1.6.11 fails for such an object too, and for that object alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar
from uuid import UUID

from lanner.directory.base import InvalidDirectoryError, ObjectNotFound
from lanner.directory.file_schema import LIMITS
from lanner.directory.ldap import dn
from lanner.directory.ldap.entry import Entry
from lanner.directory.ldap.errors import MalformedEntryError
from lanner.directory.ldap.reading import read_enterprise, read_link, read_machine, read_queue, read_site
from lanner.directory.ldap.schema import CLASSES, COMPUTER, READ, ROOT, Tree
from lanner.directory.ldap.servers import Ldap
from lanner.directory.ldap.wire import AnyOf, Equal, Present, Scope
from lanner.model.directory_query import ObjectType
from lanner.model.enterprise import EnterpriseMap, Machine

__all__ = ["MAX_PROBLEMS", "Problems", "read_all", "read_root"]

MAX_PROBLEMS = 1000
"""More malformed entries than people read; the rest are counted."""

COMPUTERS_AT_ONCE = 50
"""How many computers one search asks for by name."""

_LIMITS = {
    ObjectType.SITE: LIMITS["site"],
    ObjectType.ROUTING_LINK: LIMITS["link"],
    ObjectType.QUEUE_MANAGER: LIMITS["manager"],
    ObjectType.QUEUE: LIMITS["queue"],
}

_Item = TypeVar("_Item")
_Key = tuple[tuple[str, str], ...]


class Problems:
    """What was left out of a snapshot, and why."""

    def __init__(self) -> None:
        self.listed: list[MalformedEntryError] = []
        self.count = 0

    def report(self, problem: MalformedEntryError) -> None:
        """Remember one."""
        self.count += 1
        if len(self.listed) < MAX_PROBLEMS:
            self.listed.append(problem)

    def sift(self, entries: Iterable[Entry], read: Callable[[Entry], _Item]) -> list[_Item]:
        """Read entries, and leave out those that cannot be read."""
        found = []
        for entry in entries:
            try:
                found.append(read(entry))
            except MalformedEntryError as problem:
                self.report(problem)
        return found


async def read_root(ldap: Ldap, base: str) -> Tree:
    """What the server says of itself."""
    found = await ldap.search("", Scope.BASE, Present("objectClass"), ROOT, limit=1)
    if not found:
        raise InvalidDirectoryError("the server says nothing of itself", hint="it is no domain controller")
    return Tree.of(found[0], base)


async def read_all(ldap: Ldap, tree: Tree, problems: Problems) -> EnterpriseMap:
    """Read everything, in a fixed order whatever the server's is."""
    settings = await _settings(ldap, tree)
    sites = await _entries(ldap, ObjectType.SITE, tree.sites, Scope.ONE_LEVEL)
    links = await _entries(ldap, ObjectType.ROUTING_LINK, tree.services, Scope.ONE_LEVEL)
    managers = await _entries(ldap, ObjectType.QUEUE_MANAGER, tree.domain, Scope.SUBTREE)
    computers = await _computers(ldap, tree, [entry for entry in managers if _is_well_named(entry)])
    queues = await _entries(ldap, ObjectType.QUEUE, tree.domain, Scope.SUBTREE)
    found = _Found(tree.forest, settings, sites, links, managers, computers, queues)
    # A hundred thousand entries take seconds, in which messages go on.
    return await asyncio.to_thread(_assembled, found, problems)


class _Found(NamedTuple):
    forest: str
    settings: Entry
    sites: list[Entry]
    links: list[Entry]
    managers: list[Entry]
    computers: dict[_Key, Entry]
    queues: list[Entry]


def _assembled(found: _Found, problems: Problems) -> EnterpriseMap:
    sites = problems.sift(found.sites, read_site)
    site_ids = {dn.key(site.full_path): site.id for site in sites}
    machine_ids = dict(problems.sift(found.managers, _identified))
    machines = problems.sift(
        (entry for entry in found.managers if _key_or_none(entry) in machine_ids),
        lambda entry: read_machine(entry, found.computers.get(_above(entry)), machine_ids, problems.report),
    )
    links = problems.sift(found.links, lambda entry: read_link(entry, site_ids, machine_ids, problems.report))
    hosts = {dn.key(machine.full_path): machine for machine in machines}
    queues = problems.sift(found.queues, lambda entry: read_queue(entry, *_host(entry, hosts)))
    return EnterpriseMap(
        enterprise=read_enterprise(found.settings, found.forest),
        sites=tuple(sorted(sites, key=lambda site: site.name.casefold())),
        links=tuple(sorted(links, key=lambda link: link.full_path.casefold())),
        machines=tuple(sorted(machines, key=lambda one: (one.name.casefold(), one.id.int))),
        queues=tuple(sorted(queues, key=lambda queue: (queue.path, queue.id.int))),
    )


async def _settings(ldap: Ldap, tree: Tree) -> Entry:
    hint = "MSMQ's services are not set up in this forest, or we may not read them"
    wanted = Equal("objectClass", CLASSES[ObjectType.ENTERPRISE])
    try:
        found = await ldap.search(tree.services, Scope.BASE, wanted, READ[ObjectType.ENTERPRISE], limit=1)
    except ObjectNotFound:
        found = []
    if not found:
        raise InvalidDirectoryError(f"{tree.services} is not in the directory", hint=hint)
    return found[0]


async def _entries(ldap: Ldap, kind: ObjectType, base: str, scope: Scope) -> list[Entry]:
    wanted = Equal("objectClass", CLASSES[kind])
    try:
        return await ldap.search(base, scope, wanted, READ[kind], limit=_LIMITS[kind])
    except ObjectNotFound:
        raise InvalidDirectoryError(
            f"{base} is not in the directory", hint="check the setting base, or leave it out"
        ) from None


async def _computers(ldap: Ldap, tree: Tree, managers: list[Entry]) -> dict[_Key, Entry]:
    """The computer objects of these queue managers, by ``dn.key``."""
    found: dict[_Key, Entry] = {}
    names = [dn.parent(entry.dn) for entry in managers]
    for start in range(0, len(names), COMPUTERS_AT_ONCE):
        asked = names[start : start + COMPUTERS_AT_ONCE]
        wanted = AnyOf(tuple(Equal("distinguishedName", name) for name in asked))
        for entry in await ldap.search(tree.domain, Scope.SUBTREE, wanted, COMPUTER, limit=len(asked)):
            found[dn.key(entry.dn)] = entry
    return found


def _identified(entry: Entry) -> tuple[_Key, UUID]:
    return _key_of(entry), entry.identifier()


def _is_well_named(entry: Entry) -> bool:
    return len(_key_or_none(entry) or ()) > 1


def _key_or_none(entry: Entry) -> _Key | None:
    try:
        return dn.key(entry.dn)
    except InvalidDirectoryError:
        return None


def _above(entry: Entry) -> _Key:
    try:
        return dn.key(dn.parent(entry.dn))
    except InvalidDirectoryError as error:
        raise entry.wrong("distinguishedName", error.message) from None


def _key_of(entry: Entry) -> _Key:
    try:
        return dn.key(entry.dn)
    except InvalidDirectoryError as error:
        raise entry.wrong("distinguishedName", error.message) from None


def _host(entry: Entry, hosts: dict[_Key, Machine]) -> tuple[UUID, str]:
    machine = hosts.get(_above(entry))
    if machine is None:
        raise entry.wrong("distinguishedName", "no queue manager holds the queue")
    return machine.id, machine.qualified_name
