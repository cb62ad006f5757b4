"""Active Directory as a directory (``lanner.directory.base.Directory``)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from uuid import UUID

from lanner.directory.base import (
    DirectoryError,
    ObjectNotFound,
    QueryHandle,
    ReadOnlyDirectory,
)
from lanner.directory.ldap.changes import Changes
from lanner.directory.ldap.errors import MalformedEntryError
from lanner.directory.ldap.schema import Tree
from lanner.directory.ldap.servers import Ldap, Servers
from lanner.directory.ldap.settings import LdapSettings
from lanner.directory.ldap.snapshot import Problems, read_all, read_root
from lanner.model.directory_query import AttributeFilter, ObjectType, SortOrder, select
from lanner.model.enterprise import DirectoryObject, EnterpriseMap, Machine, PublicQueue

__all__ = ["LdapDirectory"]

log = logging.getLogger(__name__)

_LOGGED = 10
"""Malformed entries that are logged one by one after each reading."""


class LdapDirectory:
    """A forest of Active Directory, read whole and changed one object at a time.

    Identifiers are the directory's own: what is created gets one from it, whatever its ``id`` was. Connected
    networks and addresses are not kept there (MS-MQDSSM 3.1.6.20.1).
    """

    def __init__(self, settings: LdapSettings, ldap: Ldap | None = None) -> None:
        """Connect when first asked; ``ldap`` takes the place of the servers in tests."""
        self.settings = settings
        self.problems: tuple[MalformedEntryError, ...] = ()
        """Entries, or values of them, that the newest snapshot leaves out."""
        self._ldap: Ldap = ldap or Servers(settings)
        self._stamp: tuple[str, int] | None = None
        self._current: EnterpriseMap | None = None
        self._turn = asyncio.Lock()

    async def read(self) -> EnterpriseMap:
        """The enterprise; the same object as before if the directory has not changed."""
        async with self._turn:
            return await self._read()

    async def check_online(self) -> bool:
        """Whether a server answers and lets us in."""
        try:
            await self._root()
        except DirectoryError:
            return False
        return True

    async def create_queue(self, queue: PublicQueue) -> UUID:
        """Publish a queue; the directory gives its identifier."""
        return await self.create_object(queue)

    async def delete_queue(self, identifier: UUID) -> None:
        """Take a queue out of the directory."""
        await self.delete_object(ObjectType.QUEUE, identifier)

    async def publish_machine(self, machine: Machine) -> None:
        """Create or update a queue manager, found by identifier or else by its computer's name."""
        async with self._turn:
            await (await self._changes()).publish(machine)

    async def create_object(self, item: DirectoryObject) -> UUID:
        """Create Directory Object (MS-MQDMPR 3.1.7.1.18, MS-MQDSSM 3.1.6.1)."""
        async with self._turn:
            return await (await self._changes()).create(item)

    async def delete_object(self, kind: ObjectType, identifier: UUID) -> None:
        """Delete Directory Object (MS-MQDMPR 3.1.7.1.19, MS-MQDSSM 3.1.6.2)."""
        async with self._turn:
            await (await self._changes()).delete(kind, identifier)

    async def write_object(self, item: DirectoryObject) -> None:
        """Write Directory (MS-MQDMPR 3.1.7.1.24, MS-MQDSSM 3.1.6.7)."""
        async with self._turn:
            await (await self._changes()).write(item)

    async def read_object(self, kind: ObjectType, filters: Sequence[AttributeFilter] = ()) -> DirectoryObject:
        """Read Directory (MS-MQDMPR 3.1.7.1.20, MS-MQDSSM 3.1.6.3)."""
        found = await self._select(kind, filters)
        if not found:
            raise ObjectNotFound(f"no {kind} in the directory is as asked for")
        return found[0]

    async def read_begin(
        self, kind: ObjectType, filters: Sequence[AttributeFilter] = (), order: Sequence[SortOrder] = ()
    ) -> QueryHandle:
        """Read Directory Begin (MS-MQDMPR 3.1.7.1.21, MS-MQDSSM 3.1.6.4)."""
        return QueryHandle(await self._select(kind, filters, order))

    async def read_next(self, handle: QueryHandle) -> DirectoryObject | None:
        """Read Directory Next (MS-MQDMPR 3.1.7.1.22, MS-MQDSSM 3.1.6.5)."""
        return next(handle.items, None)

    async def read_end(self, handle: QueryHandle) -> None:
        """Read Directory End (MS-MQDMPR 3.1.7.1.23, MS-MQDSSM 3.1.6.6)."""
        handle.items = iter(())

    async def replace_all(self, text: str) -> None:  # noqa: ARG002  # the protocol's
        """Refused: a forest belongs to more than the queues in it."""
        raise ReadOnlyDirectory(
            "Active Directory is not replaced by a file",
            hint="change single objects, or use a directory file",
        )

    async def close(self) -> None:
        """Hang up."""
        await self._ldap.close()

    async def _select(
        self, kind: ObjectType, filters: Sequence[AttributeFilter], order: Sequence[SortOrder] = ()
    ) -> list[DirectoryObject]:
        if kind is ObjectType.CONNECTED_NETWORK:  # 3.1.6.3
            raise DirectoryError("Active Directory keeps no connected networks")
        return select(await self.read(), kind, filters, order)

    async def _root(self) -> Tree:
        return await read_root(self._ldap, self.settings.base)

    async def _changes(self) -> Changes:
        # Asked anew each time: a connection that broke is found before anything is changed.
        return Changes(self._ldap, await self._root())

    async def _read(self) -> EnterpriseMap:
        tree = await self._root()
        # The number counts one server's changes. It is read first: what changes meanwhile is read again.
        if self._current is not None and tree.stamp == self._stamp and tree.stamp[1] >= 0:
            return self._current
        problems = Problems()
        found = await read_all(self._ldap, tree, problems)
        self._tell(problems)
        if self._current is None or not _same(self._current, found):
            self._current = found
        self._stamp = tree.stamp
        return self._current

    def _tell(self, problems: Problems) -> None:
        found = tuple(problems.listed)
        if [str(one) for one in found] != [str(one) for one in self.problems]:
            for problem in found[:_LOGGED]:
                log.warning("left out of the directory: %s", problem.message)
            if problems.count > _LOGGED:
                log.warning("left out of the directory: %d more", problems.count - _LOGGED)
        self.problems = found


def _same(one: EnterpriseMap, other: EnterpriseMap) -> bool:
    return all(
        getattr(one, part) == getattr(other, part)
        for part in ("enterprise", "sites", "links", "networks", "machines", "queues")
    )
