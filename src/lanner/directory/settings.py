"""Where an enterprise is described, and how often to look there."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from lanner.directory.ldap.settings import LdapSettings
from lanner.model.errors import InvalidPropertyError

__all__ = ["DirectorySettings", "check_one_directory"]


class DirectorySettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[directory]``: where sites, links, queue managers and public queues are described."""

    file: str = ""
    """A file that describes the enterprise; empty for none."""
    file_interval: Annotated[float, Meta(gt=0, le=86_400)] = 2.0
    """Seconds after which it is looked whether the file has changed."""
    ldap_interval: Annotated[float, Meta(gt=0, le=86_400)] = 60.0
    """Seconds after which it is looked whether the directory over LDAP has changed."""


def check_one_directory(directory: DirectorySettings, ldap: LdapSettings) -> None:
    """Raise if LDAP is set in a way that cannot work, or beside a file."""
    if not ldap.servers:
        return
    ldap.check()
    if directory.file:
        raise InvalidPropertyError(
            "directory.file and ldap.servers are both set", hint="a manager has one directory"
        )
