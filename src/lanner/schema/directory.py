"""The directory, as it goes over the API."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from lanner.schema.base import In, Out

__all__ = ["DirectoryAnswer", "ReplaceDirectoryRequest"]


class ReplaceDirectoryRequest(In, frozen=True, kw_only=True):
    """Another enterprise."""

    text: Annotated[str, Meta(min_length=1, max_length=60_000_000, description="A directory file")]


class DirectoryAnswer(Out, frozen=True, kw_only=True):
    """What the manager knows of its enterprise."""

    enterprise: str
    online: bool
    """Whether the directory could be read last time; if not, this is the last good one."""
    problem: str
    read_at: float
    manager: str
    """The name of this manager in it; empty if the directory does not know it."""
    sites: tuple[str, ...]
    """The sites of this manager."""
    routing: bool
    directory_servers: tuple[str, ...]
    """DirectoryServerList: from the directory and from discovery, the first to be tried first."""
    connected_networks: tuple[str, ...]
    """ConnectedNetworkIdentifierList."""
    machines: int
    queues: int
    text: str
    """The whole of it as a directory file."""
