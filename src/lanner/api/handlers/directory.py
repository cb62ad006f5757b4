"""The directory: what is known of the enterprise."""

from __future__ import annotations

from lanner.api.context import Api
from lanner.api.tokens import Caller
from lanner.directory.export import dump
from lanner.model.errors import QueueNotFoundError
from lanner.schema.base import In
from lanner.schema.directory import DirectoryAnswer, ReplaceDirectoryRequest

__all__ = ["refresh", "replace", "show"]


async def show(api: Api, caller: Caller, request: In) -> DirectoryAnswer:
    """Tell what is known of the enterprise."""
    enterprise = api.manager.enterprise
    known, own = enterprise.map, enterprise.machine
    if known is None:
        problem = enterprise.problem or "no directory is configured"
        raise QueueNotFoundError(f"nothing is known of an enterprise: {problem}", hint="set directory.file")
    sites = [known.site(site) for site in own.sites] if own is not None else []
    servers, networks = api.found_by_discovery()
    return DirectoryAnswer(
        enterprise=known.enterprise.name,
        online=not enterprise.is_offline,
        problem=enterprise.problem,
        read_at=enterprise.read_at,
        manager=own.name if own is not None else "",
        sites=tuple(site.name for site in sites if site is not None),
        routing=own is not None and own.routes,
        directory_servers=servers,
        connected_networks=tuple(str(network) for network in networks),
        machines=len(known.machines),
        queues=len(known.queues),
        text=dump(known),
    )


async def refresh(api: Api, caller: Caller, request: In) -> DirectoryAnswer:
    """Read the directory now."""
    await api.manager.enterprise.refresh()
    return await show(api, caller, request)


async def replace(api: Api, caller: Caller, request: ReplaceDirectoryRequest) -> DirectoryAnswer:
    """Take another enterprise."""
    await api.manager.enterprise.replace(request.text)
    return await show(api, caller, In())
