"""Several LDAP servers as one: the first that works is used until it fails, then the next.

MS-MQDSSM 3.1.1.6 keeps a connection while operations overlap; here one is kept until it breaks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from lanner.directory.base import DirectoryError, DirectoryOffline, InvalidDirectoryError
from lanner.directory.ldap.connection import Connection
from lanner.directory.ldap.entry import Entry
from lanner.directory.ldap.errors import LoginRefusedError, UntrustedServerError
from lanner.directory.ldap.settings import LdapSettings
from lanner.directory.ldap.wire import Attributes, Filter, Scope

__all__ = ["Ldap", "Servers"]

_Answer = TypeVar("_Answer")


class Ldap(Protocol):
    """What a directory needs of LDAP. Every method may raise DirectoryOffline."""

    async def search(
        self, base: str, scope: Scope, wanted: Filter, attributes: Sequence[str], *, limit: int
    ) -> list[Entry]:
        """All entries that match; more than ``limit`` are an InvalidDirectoryError."""
        ...

    async def add(self, dn: str, attributes: Attributes) -> None:
        """Make an entry."""
        ...

    async def modify(self, dn: str, attributes: Attributes) -> None:
        """Replace attributes; one without values is taken away."""
        ...

    async def delete(self, dn: str) -> None:
        """Take an entry away."""
        ...

    async def close(self) -> None:
        """Hang up."""
        ...


class Servers:
    """The servers of the settings (``Ldap``)."""

    def __init__(self, settings: LdapSettings) -> None:
        settings.check()
        self._settings = settings
        self._servers = settings.listed
        self._first = 0
        self._connection: Connection | None = None
        self._turn = asyncio.Lock()

    async def search(
        self, base: str, scope: Scope, wanted: Filter, attributes: Sequence[str], *, limit: int
    ) -> list[Entry]:
        """All entries that match; if the server fails meanwhile, the next is asked."""
        return await self._run(
            lambda connection: connection.search(base, scope, wanted, attributes, limit=limit), retry=True
        )

    # A change whose answer is lost may have been made: whoever asked for it decides.

    async def add(self, dn: str, attributes: Attributes) -> None:
        """Make an entry."""
        await self._run(lambda connection: connection.add(dn, attributes))

    async def modify(self, dn: str, attributes: Attributes) -> None:
        """Replace attributes of an entry."""
        await self._run(lambda connection: connection.modify(dn, attributes))

    async def delete(self, dn: str) -> None:
        """Take an entry away."""
        await self._run(lambda connection: connection.delete(dn))

    async def close(self) -> None:
        """Hang up."""
        async with self._turn:
            await self._drop()

    async def _run(
        self, operation: Callable[[Connection], Awaitable[_Answer]], *, retry: bool = False
    ) -> _Answer:
        async with self._turn:
            connection = self._connection or await self._connect()
            try:
                return await self._try(operation, connection)
            except DirectoryOffline:
                # One that was kept may have been closed while nobody used it.
                if not retry:
                    raise
            return await self._try(operation, await self._connect())

    async def _try(
        self, operation: Callable[[Connection], Awaitable[_Answer]], connection: Connection
    ) -> _Answer:
        try:
            return await operation(connection)
        except DirectoryOffline:
            await self._drop()
            self._first = (self._first + 1) % len(self._servers)
            raise
        except (InvalidDirectoryError, LoginRefusedError):
            # Answers that were not read to their end, or that nobody can decrypt.
            await self._drop()
            raise
        except DirectoryError:
            raise  # an answer that says no leaves the connection in step
        except BaseException:
            await self._drop()
            raise

    async def _connect(self) -> Connection:
        count = len(self._servers)
        failures: list[DirectoryOffline] = []
        for number in range(self._first, self._first + count):
            try:
                self._connection = await Connection.open(self._settings, self._servers[number % count])
            except DirectoryOffline as error:
                # A login that is refused goes no further: trying it everywhere would lock the account.
                failures.append(error)
                continue
            self._first = number % count
            return self._connection
        if count == 1:
            raise failures[0]
        untrusted = all(isinstance(one, UntrustedServerError) for one in failures)
        raise (UntrustedServerError if untrusted else DirectoryOffline)(
            "no LDAP server can be used: " + "; ".join(one.message for one in failures),
            hint=next((one.hint for one in failures if one.hint), ""),
        )

    async def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()
