"""One look at a directory over LDAP, for commands that do not stay."""

from __future__ import annotations

import asyncio

from lanner.directory.ldap.directory import LdapDirectory
from lanner.directory.ldap.settings import LdapSettings
from lanner.model.enterprise import EnterpriseMap

__all__ = ["read_once"]


def read_once(settings: LdapSettings) -> EnterpriseMap:
    """Connect, read the enterprise, and hang up."""

    async def read() -> EnterpriseMap:
        directory = LdapDirectory(settings)
        try:
            return await directory.read()
        finally:
            await directory.close()

    return asyncio.run(read())
