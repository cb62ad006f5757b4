"""Creating, writing and deleting objects over LDAP (MS-MQDSSM 3.1.6.1, 3.1.6.2 and 3.1.6.7)."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import suppress
from uuid import UUID

from lanner.directory.base import DirectoryError, ObjectAlreadyExists, ObjectNotFound
from lanner.directory.ldap import dn, writing
from lanner.directory.ldap.entry import Entry
from lanner.directory.ldap.queue_names import stored_name
from lanner.directory.ldap.schema import CLASSES, CONFIGURATION, ENTERPRISE, SETTINGS, Tree
from lanner.directory.ldap.servers import Ldap
from lanner.directory.ldap.wire import AllOf, AnyOf, Equal, Present, Scope
from lanner.directory.ldap.writing import Values
from lanner.model.directory_query import ObjectType, type_of
from lanner.model.enterprise import DirectoryObject, Enterprise, Machine, PublicQueue, RoutingLink, Site
from lanner.model.queue import NULL_GUID

__all__ = ["Changes"]

log = logging.getLogger(__name__)

_MAX_NAMESAKES = 16
"""Computers of one name in one domain; there is one, or somebody made a mistake."""

_NEVER_WRITTEN = frozenset({"mSMQTransactional", "mSMQQueueNameExt"})
"""Of a queue that exists (3.1.6.7.2.2): both are as it was created."""


class Changes:
    """Changes of one forest."""

    def __init__(self, ldap: Ldap, tree: Tree) -> None:
        self._ldap = ldap
        self._tree = tree

    async def create(self, item: DirectoryObject) -> UUID:
        """Create Directory Object (3.1.6.1). The directory gives the identifier, not the caller."""
        match item:
            case PublicQueue():
                return await self._create_queue(item)
            case Machine():
                return await self._create_machine(item)
            case Site():
                name = dn.child(item.name, self._tree.sites)
                return await self._add(name, "site", writing.site_attributes(item), item.security)
            case RoutingLink():
                name = dn.child(writing.link_name(item), self._tree.services)
                return await self._add(name, "mSMQSiteLink", await self._link(item), b"")
        raise DirectoryError(f"Active Directory takes no new {type_of(item)}")

    async def write(self, item: DirectoryObject) -> None:
        """Write Directory (3.1.6.7): every attribute that differs is replaced."""
        match item:
            case PublicQueue():
                queue = writing.queue_attributes(item)
                values = {name: values for name, values in queue.items() if name not in _NEVER_WRITTEN}
                entry = await self._found(ObjectType.QUEUE, item.id, values)
            case Machine():
                await self.write_machine(item, await self._manager(item.id))
                return
            case Site():
                values = writing.site_attributes(item)
                entry = await self._found(ObjectType.SITE, item.id, values)
            case RoutingLink():
                values = await self._link(item)
                entry = await self._found(ObjectType.ROUTING_LINK, item.id, values)
            case Enterprise():
                values = writing.enterprise_attributes(item)
                entry = await self._at(self._tree.services, ENTERPRISE, (*values, "nTSecurityDescriptor"))
            case _:
                raise DirectoryError(f"Active Directory keeps no {type_of(item)}")
        # Only a routing link has no security of its own (3.1.6.7.5).
        await self._replace(entry, values, getattr(item, "security", b""))

    async def delete(self, kind: ObjectType, identifier: UUID) -> None:
        """Delete Directory Object (3.1.6.2)."""
        if kind not in CLASSES or kind is ObjectType.ENTERPRISE:
            raise DirectoryError(f"Active Directory does not let a {kind} be deleted from here")
        entry = await self._found(kind, identifier, ("mSMQSites",))
        await self._ldap.delete(entry.dn)
        if kind is ObjectType.QUEUE_MANAGER:
            for site in entry.guids("mSMQSites"):
                await self._remove_settings(dn.value(entry.dn, 1), site)

    async def publish(self, machine: Machine) -> None:
        """Create what the directory says of a queue manager, or bring it up to date.

        One that the directory knows by the computer's name, with another identifier, is the same one.
        """
        try:
            known = await self._manager(machine.id)
        except ObjectNotFound:
            computer = await self._computer(machine.name)
            try:
                known = await self._at(dn.child("msmq", computer), CONFIGURATION, _MANAGER)
            except ObjectNotFound:
                await self._create_machine(machine)
                return
        await self.write_machine(machine, known)

    async def write_machine(self, machine: Machine, known: Entry) -> None:
        """Write what differs, on all objects that a queue manager has (3.1.6.7.1)."""
        before = set(known.guids("mSMQSites"))
        await self._replace(known, await self._machine(machine), machine.security)
        await self._write_certificates(machine, dn.parent(known.dn))
        after = set(machine.sites) if writing.has_settings(machine) else set()
        computer = dn.value(known.dn, 1)
        for site in sorted(before - after, key=lambda one: one.int):
            await self._remove_settings(computer, site)
        await self._put_settings(machine, computer, known.identifier())

    # Queues and queue managers.

    async def _create_queue(self, queue: PublicQueue) -> UUID:
        if queue.manager != NULL_GUID:
            host = (await self._manager(queue.manager)).dn
        else:
            host = dn.child("msmq", await self._computer(queue.computer))
        name = dn.child(stored_name(queue.name).common_name, host)
        try:
            return await self._add(name, "mSMQQueue", writing.queue_attributes(queue), queue.security)
        except ObjectNotFound:
            raise ObjectNotFound(
                f"the computer {queue.computer} has no queue manager in the directory",
                hint="publish the queue manager first",
            ) from None
        except ObjectAlreadyExists:
            raise ObjectAlreadyExists(f"{queue.path} is in the directory already") from None

    async def _create_machine(self, machine: Machine) -> UUID:
        if not machine.sites:  # 3.1.6.1.1.1
            raise DirectoryError(f"{machine.name} belongs to no site", hint="name at least one")
        computer = await self._computer(machine.name)
        name = dn.child("msmq", computer)
        identifier = await self._add(name, CONFIGURATION, await self._machine(machine), machine.security)
        if machine.signing_keys:
            await self._ldap.modify(computer, writing.certificate_attributes(machine))
        await self._put_settings(machine, dn.value(computer), identifier)
        return identifier

    async def _write_certificates(self, machine: Machine, computer: str) -> None:
        values = writing.certificate_attributes(machine)
        # A computer's certificates are taken away by nobody: a manager that has none says nothing of them.
        if machine.signing_keys:
            await self._replace(await self._at(computer, "computer", tuple(values)), values, b"")

    async def _machine(self, machine: Machine) -> Values:
        return writing.machine_attributes(
            machine, await self._names(machine.in_routing), await self._names(machine.out_routing)
        )

    async def _link(self, link: RoutingLink) -> Values:
        sites = {}
        for site in (link.site1, link.site2):
            try:
                sites[site] = (await self._found(ObjectType.SITE, site)).dn
            except ObjectNotFound as error:  # a GenericError (3.1.6.1.4.4), not that the link is not found
                raise DirectoryError(error.message) from None
        return writing.link_attributes(link, sites, await self._names(link.gates))

    async def _names(self, machines: Iterable[UUID]) -> list[str]:
        """The names of queue managers; those that are not there are left out (3.1.6.1.1.6)."""
        names = []
        for identifier in machines:
            try:
                names.append((await self._found(ObjectType.QUEUE_MANAGER, identifier)).dn)
            except ObjectNotFound as error:
                log.warning("left out of a list of queue managers: %s", error.message)
        return names

    # Settings: the same roles once more, in each site (3.1.6.7.1.9).

    async def _put_settings(self, machine: Machine, computer: str, identifier: UUID) -> None:
        if not writing.has_settings(machine):
            return
        values = writing.settings_attributes(machine, identifier)
        for site in machine.sites:
            try:
                site_dn = (await self._found(ObjectType.SITE, site)).dn
            except ObjectNotFound:
                continue  # the specification skips it
            server = dn.child(computer, dn.child("Servers", site_dn))
            try:
                entry = await self._at(dn.child("MSMQ Settings", server), "mSMQSettings", SETTINGS)
            except ObjectNotFound:
                # The specification takes the parents for granted; only domain controllers have them.
                await self._ensure(dn.parent(server), "serversContainer")
                await self._ensure(server, "server")
                await self._add(dn.child("MSMQ Settings", server), "mSMQSettings", values, b"")
            else:
                await self._replace(entry, values, b"")

    async def _remove_settings(self, computer: str, site: UUID) -> None:
        with suppress(ObjectNotFound):
            site_dn = (await self._found(ObjectType.SITE, site)).dn
            server = dn.child(computer, dn.child("Servers", site_dn))
            await self._ldap.delete(dn.child("MSMQ Settings", server))

    async def _ensure(self, name: str, kind: str) -> None:
        with suppress(ObjectAlreadyExists):
            await self._ldap.add(name, {"objectClass": (kind.encode(),)})

    # Entries.

    async def _computer(self, name: str) -> str:
        """The computer object of this name, anywhere in the domain.

        Deviation from 2.2.1, which has them all in CN=Computers: domain controllers and those that
        administrators moved are elsewhere.
        """
        named = AnyOf((Equal("cn", name), Equal("dNSHostName", name)))
        wanted = AllOf((Equal("objectClass", "computer"), named))
        domain = self._tree.domain
        found = await self._ldap.search(domain, Scope.SUBTREE, wanted, ("cn",), limit=_MAX_NAMESAKES)
        if not found:
            raise ObjectNotFound(
                f"no computer in {domain} is called {name}",
                hint="join it to the domain, or create its account",
            )
        usual = dn.key(dn.child(name, dn.child("Computers", domain)))
        return next((entry.dn for entry in found if dn.key(entry.dn) == usual), found[0].dn)

    async def _manager(self, identifier: UUID) -> Entry:
        return await self._found(ObjectType.QUEUE_MANAGER, identifier, _MANAGER)

    async def _found(self, kind: ObjectType, identifier: UUID, attributes: Iterable[str] = ()) -> Entry:
        """The object with this identifier.

        Deviation from 3.1.6.19, whose filter Active Directory answers in its global catalog alone: the
        name ``<GUID=...>`` finds the same object in every part of the forest that the server holds.
        """
        wanted = ("objectGUID", "nTSecurityDescriptor", *attributes)
        try:
            return await self._at(f"<GUID={identifier}>", CLASSES[kind], wanted)
        except ObjectNotFound:
            raise ObjectNotFound(f"no {kind} has the identifier {identifier}") from None

    async def _at(self, name: str, kind: str, attributes: Iterable[str]) -> Entry:
        wanted = Equal("objectClass", kind)
        found = await self._ldap.search(name, Scope.BASE, wanted, tuple(attributes), limit=1)
        if not found:
            raise ObjectNotFound(f"{name} is not a {kind}")
        return found[0]

    async def _add(self, name: str, kind: str, values: Values, security: bytes) -> UUID:
        """Create Object Using LDAP (3.1.6.12). Without a descriptor, the directory's own default stands."""
        given = {attribute: found for attribute, found in values.items() if found}
        if security:
            given["nTSecurityDescriptor"] = (security,)
        await self._ldap.add(name, {"objectClass": (kind.encode(),), **given})
        found = await self._ldap.search(name, Scope.BASE, Present("objectClass"), ("objectGUID",), limit=1)
        if not found:
            raise DirectoryError(f"{name} was added and cannot be read")
        return found[0].identifier()

    async def _replace(self, entry: Entry, values: Values, security: bytes) -> None:
        """Set Object Properties and Set Object Security (3.1.6.16, 3.1.6.17), as far as they differ."""
        changed = {name: new for name, new in values.items() if sorted(entry.values(name)) != sorted(new)}
        if security and entry.octets("nTSecurityDescriptor") != security:
            changed["nTSecurityDescriptor"] = (security,)
        if changed:
            await self._ldap.modify(entry.dn, changed)


_MANAGER = (
    *("objectGUID", "nTSecurityDescriptor"),
    *writing.machine_attributes(Machine(id=NULL_GUID, name=""), (), ()),
)
"""What is read of a queue manager before it is written."""
