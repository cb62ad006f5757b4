"""An enterprise as a whole: a snapshot of its directory with the indexes that everybody needs.

Routing, discovery, the checks and the directories work on this and on nothing else. A snapshot never
changes; a change makes another one (``changed``). It can hold what is wrong, too: two queue managers
with one identifier, links to nowhere. Lookups then find the first, and the checks find the rest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, TypeVar
from uuid import UUID

from lanner.model.directory_objects import (
    MAX_LINK_COST,
    MIN_LINK_COST,
    ConnectedNetwork,
    DirectoryObject,
    DirectoryServerType,
    Enterprise,
    Machine,
    OperatingSystemType,
    PublicQueue,
    RoutingLink,
    Site,
    derived_id,
)

__all__ = [
    "MAX_LINK_COST",
    "MIN_LINK_COST",
    "ConnectedNetwork",
    "DirectoryObject",
    "DirectoryServerType",
    "Enterprise",
    "EnterpriseMap",
    "Machine",
    "OperatingSystemType",
    "PublicQueue",
    "RoutingLink",
    "Site",
    "derived_id",
]

_Key = TypeVar("_Key", bound=Hashable)
_Item = TypeVar("_Item")


@dataclass(frozen=True, eq=False)
class EnterpriseMap:
    """All directory objects of one enterprise at one moment.

    It compares by identity, so that what was computed from a snapshot can be kept beside it.
    """

    enterprise: Enterprise
    sites: tuple[Site, ...] = ()
    links: tuple[RoutingLink, ...] = ()
    networks: tuple[ConnectedNetwork, ...] = ()
    machines: tuple[Machine, ...] = ()
    queues: tuple[PublicQueue, ...] = ()

    def changed(self, **parts: Any) -> EnterpriseMap:
        """The same enterprise with other parts: ``changed(links=...)``."""
        return replace(self, **parts)

    # By identifier.

    def site(self, identifier: UUID) -> Site | None:
        """The site with this identifier."""
        return self._sites_by_id.get(identifier)

    def link(self, identifier: UUID) -> RoutingLink | None:
        """The routing link with this identifier."""
        return self._links_by_id.get(identifier)

    def network(self, identifier: UUID) -> ConnectedNetwork | None:
        """The connected network with this identifier."""
        return self._networks_by_id.get(identifier)

    def machine(self, identifier: UUID) -> Machine | None:
        """The queue manager with this identifier."""
        return self.machines_by_id.get(identifier)

    def queue(self, identifier: UUID) -> PublicQueue | None:
        """The public queue with this identifier."""
        return self._queues_by_id.get(identifier)

    # By name, without case.

    def site_named(self, name: str) -> Site | None:
        """The site with this name."""
        return self._sites_by_name.get(name.casefold())

    def network_named(self, name: str) -> ConnectedNetwork | None:
        """The connected network with this name."""
        return self._networks_by_name.get(name.casefold())

    def machine_named(self, name: str) -> Machine | None:
        """The queue manager with this computer name, short or fully qualified."""
        key = name.casefold()
        return self._machines_by_name.get(key) or self._machines_by_qualified_name.get(key)

    def queue_at(self, path: str) -> PublicQueue | None:
        """The public queue with this path name, by short or fully qualified computer name."""
        key = path.casefold()
        return self._queues_by_path.get(key) or self._queues_by_qualified_path.get(key)

    def find_machine(self, text: str) -> Machine | None:
        """The queue manager that a person means: by name, qualified name or identifier."""
        found = self.machine_named(text)
        if found is not None:
            return found
        try:
            return self.machine(UUID(text))
        except ValueError:
            return None

    def find_site(self, text: str) -> Site | None:
        """The site that a person means: by name or identifier."""
        found = self.site_named(text)
        if found is not None:
            return found
        try:
            return self.site(UUID(text))
        except ValueError:
            return None

    def host_of(self, queue: PublicQueue) -> Machine | None:
        """The queue manager that hosts a public queue."""
        return self.machine(queue.manager) or self.machine_named(queue.computer)

    # What belongs together.

    def machines_in(self, site: UUID) -> tuple[Machine, ...]:
        """The queue managers of a site, in the order of their identifiers."""
        return self._machines_by_site.get(site, ())

    def routing_servers_in(self, site: UUID) -> tuple[Machine, ...]:
        """The routing servers of a site, in the order of their identifiers."""
        return self._routing_servers_by_site.get(site, ())

    def links_of(self, site: UUID) -> tuple[RoutingLink, ...]:
        """The routing links of a site, in the order of the directory: wrong ones too."""
        return self._links_by_site.get(site, ())

    def gates_of(self, site: UUID) -> tuple[Machine, ...]:
        """SiteGateCollection (MS-MQDMPR 3.1.1.7) of a site, in the order of the identifiers.

        These are the queue managers that one of the site's links names as gates, that belong to the site
        (MS-MQBR 1.5) and that are routing servers (MS-MQBR 3.1.5.8).
        """
        return self._gates_by_site.get(site, ())

    def is_gate(self, identifier: UUID) -> bool:
        """Whether this queue manager is a gate of one of its sites."""
        return identifier in self._gate_ids

    def share_network(self, one: Machine, other: Machine) -> bool:
        """Whether two queue managers can connect directly (MS-MQBR 1.3.1).

        One that names no network is on all of them: MS-MQDMPR 3.1.1.1 gives an empty list by default.
        """
        return not one.networks or not other.networks or not set(one.networks).isdisjoint(other.networks)

    # The indexes, each made when it is first asked for.

    @cached_property
    def machines_by_id(self) -> Mapping[UUID, Machine]:
        """All queue managers by identifier; of two with the same, the first."""
        return _index(self.machines, lambda machine: machine.id)

    @cached_property
    def _sites_by_id(self) -> Mapping[UUID, Site]:
        return _index(self.sites, lambda site: site.id)

    @cached_property
    def _links_by_id(self) -> Mapping[UUID, RoutingLink]:
        return _index(self.links, lambda link: link.id)

    @cached_property
    def _networks_by_id(self) -> Mapping[UUID, ConnectedNetwork]:
        return _index(self.networks, lambda network: network.id)

    @cached_property
    def _queues_by_id(self) -> Mapping[UUID, PublicQueue]:
        return _index(self.queues, lambda queue: queue.id)

    @cached_property
    def _sites_by_name(self) -> Mapping[str, Site]:
        return _index(self.sites, lambda site: site.name.casefold())

    @cached_property
    def _networks_by_name(self) -> Mapping[str, ConnectedNetwork]:
        return _index(self.networks, lambda network: network.name.casefold())

    @cached_property
    def _machines_by_name(self) -> Mapping[str, Machine]:
        return _index(self.machines, lambda machine: machine.name.casefold())

    @cached_property
    def _machines_by_qualified_name(self) -> Mapping[str, Machine]:
        named = (machine for machine in self.machines if machine.qualified_name)
        return _index(named, lambda machine: machine.qualified_name.casefold())

    @cached_property
    def _queues_by_path(self) -> Mapping[str, PublicQueue]:
        return _index(self.queues, lambda queue: queue.path.casefold())

    @cached_property
    def _queues_by_qualified_path(self) -> Mapping[str, PublicQueue]:
        named = (queue for queue in self.queues if queue.qualified_path)
        return _index(named, lambda queue: queue.qualified_path.casefold())

    @cached_property
    def _machines_by_site(self) -> Mapping[UUID, tuple[Machine, ...]]:
        known = self.machines_by_id.values()  # of clones the first alone, here as everywhere
        return _by_site((site, machine) for machine in known for site in set(machine.sites))

    @cached_property
    def _routing_servers_by_site(self) -> Mapping[UUID, tuple[Machine, ...]]:
        routing = (machine for machine in self.machines_by_id.values() if machine.routes)
        return _by_site((site, machine) for machine in routing for site in set(machine.sites))

    @cached_property
    def _links_by_site(self) -> Mapping[UUID, tuple[RoutingLink, ...]]:
        links: defaultdict[UUID, list[RoutingLink]] = defaultdict(list)
        for link in self.links:
            for site in {link.site1, link.site2}:
                links[site].append(link)
        return MappingProxyType({site: tuple(of_site) for site, of_site in links.items()})

    @cached_property
    def _gates_by_site(self) -> Mapping[UUID, tuple[Machine, ...]]:
        named = {
            (site, gate) for link in self.links for gate in link.gates for site in (link.site1, link.site2)
        }
        found = ((site, self.machine(gate)) for site, gate in named)
        return _by_site(
            (site, machine)
            for site, machine in found
            if machine is not None and machine.routes and site in machine.sites and self.site(site)
        )

    @cached_property
    def _gate_ids(self) -> frozenset[UUID]:
        return frozenset(gate.id for gates in self._gates_by_site.values() for gate in gates)


def _index(items: Iterable[_Item], key: Callable[[_Item], _Key]) -> Mapping[_Key, _Item]:
    found: dict[_Key, _Item] = {}
    for item in items:
        found.setdefault(key(item), item)
    return MappingProxyType(found)


def _by_site(pairs: Iterable[tuple[UUID, Machine]]) -> Mapping[UUID, tuple[Machine, ...]]:
    found: defaultdict[UUID, list[Machine]] = defaultdict(list)
    for site, machine in pairs:
        found[site].append(machine)
    return MappingProxyType(
        {
            site: tuple(sorted(machines, key=lambda machine: machine.id.int))
            for site, machines in found.items()
        }
    )
