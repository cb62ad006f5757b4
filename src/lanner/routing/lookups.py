"""What MS-MQBR looks up in the directory before it decides (MS-MQBR 3.1.5.4 to 3.1.5.9).

Where the text takes "one of" several gates or routing servers, these functions give all of them, the best
first: one that has not just failed, then the one from which the rest of the way costs least, then
the smallest identifier (decision 22).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from uuid import UUID

from lanner.model.directory_query import AttributeFilter, ObjectType, select
from lanner.model.enterprise import DirectoryObject, Machine
from lanner.routing.topology import Topology

__all__ = [
    "get_directory_data",
    "get_queue_manager",
    "get_routing_server",
    "get_site_gate",
    "get_site_gate_for_site",
    "is_site_gate",
]


def get_queue_manager(topology: Topology, machine: UUID) -> Machine | None:
    """GetQueueManager (MS-MQBR 3.1.5.4)."""
    return topology.machines.get(machine)


def get_routing_server(
    topology: Topology,
    machine: UUID,
    destination: Machine | None = None,
    failed: Collection[UUID] = (),
) -> tuple[Machine, ...]:
    """GetRoutingServer (MS-MQBR 3.1.5.5): the routing servers of a queue manager's sites, the best first."""
    source = get_queue_manager(topology, machine)
    if source is None:
        return ()
    return _ranked(topology, topology.vantage(source).routers, destination, failed)


def get_site_gate(
    topology: Topology,
    machine: UUID,
    destination: Machine | None = None,
    failed: Collection[UUID] = (),
) -> tuple[Machine, ...]:
    """GetSiteGate (MS-MQBR 3.1.5.6): the gates of a queue manager's sites, the best first."""
    source = get_queue_manager(topology, machine)
    if source is None:
        return ()
    return _ranked(topology, topology.vantage(source).gates, destination, failed)


def get_site_gate_for_site(
    topology: Topology, site: UUID, failed: Collection[UUID] = ()
) -> tuple[Machine, ...]:
    """GetSiteGateForSite (MS-MQBR 3.1.5.7): the gates of a site, the best first."""
    gates = topology.gates_of(site)
    return tuple(sorted(gates, key=lambda gate: gate.id in failed)) if failed else gates


def is_site_gate(topology: Topology, machine: UUID) -> bool:
    """IsSiteGate (MS-MQBR 3.1.5.8): whether one of its sites has it as a gate, and it routes."""
    return topology.is_gate(machine)


def get_directory_data(
    topology: Topology, kind: ObjectType | str, filters: Iterable[AttributeFilter] = ()
) -> list[DirectoryObject]:
    """GetDirectoryData (MS-MQBR 3.1.5.9), from the snapshot that Read Directory filled."""
    return select(topology.enterprise, kind, filters)


def _ranked(
    topology: Topology,
    found: tuple[Machine, ...],
    destination: Machine | None,
    failed: Collection[UUID],
) -> tuple[Machine, ...]:
    # Those of one site are equally far from everything, so the costs are looked up only if there are more.
    if destination is not None and any(one.sites != found[0].sites for one in found):
        costs = {one.id: topology.cost_from(one, destination) for one in found}
        found = tuple(sorted(found, key=lambda one: costs[one.id]))
    if failed:
        found = tuple(sorted(found, key=lambda one: one.id in failed))
    return found
