"""Where the enterprise comes from whose routes are to be found. Nothing here needs pyspark."""

from __future__ import annotations

from pathlib import Path

from lanner.directory.ldap.once import read_once
from lanner.directory.local_file import load_file
from lanner.model.enterprise import EnterpriseMap
from lanner.model.errors import InvalidPropertyError
from lanner.pipeline.settings import JobSettings

__all__ = ["read_enterprise"]


def read_enterprise(settings: JobSettings) -> EnterpriseMap:
    """Read the file that was named for the pipeline, or else the directory that a manager here would have."""
    file = settings.pipeline.directory or settings.directory.file
    if file:
        try:
            return load_file(Path(file)).map
        except OSError as error:
            raise InvalidPropertyError(f"{file} cannot be read: {error.strerror or error}") from None
    if settings.ldap.servers:
        return read_once(settings.ldap)
    raise InvalidPropertyError(
        "there is no enterprise to find routes in",
        hint="give --directory FILE, or set pipeline.directory, directory.file or ldap.servers",
    )
