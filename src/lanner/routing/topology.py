"""A snapshot of the enterprise made ready for routing: its graph, and the tables of those who asked.

Everything in this package works on a ``Topology``. Like the snapshot it never changes; a change of the
directory, or another set of machines that are down, makes another one.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable
from functools import cached_property
from typing import TYPE_CHECKING
from uuid import UUID

from lanner.model.enterprise import EnterpriseMap, Machine
from lanner.routing.graph import SiteGraph
from lanner.routing.table import RoutingTable

if TYPE_CHECKING:
    from lanner.routing.decision import Decision

__all__ = ["Topology", "Vantage"]

MAX_TABLES = 256
"""Tables kept at a time. A manager needs one; 10,000 sites take 160 KB each, so this is 40 MB at most."""

MAX_REMEMBERED = 64
"""Sources whose decisions are remembered by site; a manager asks for itself alone."""

MAX_VANTAGES = 10_000
"""Queue managers whose surroundings are remembered at a time, at about 1 KB each."""


class Vantage:
    """What routing looks up again and again for one queue manager that has to decide.

    Identifiers hash slowly, so a decision should look at few of them.
    """

    __slots__ = ("gates", "is_gate", "machine", "next_site_decisions", "routers", "sites", "table")

    def __init__(self, topology: Topology, machine: Machine) -> None:
        self.machine = machine
        self.sites = frozenset(machine.sites)
        self.is_gate = topology.is_gate(machine.id)
        self.routers = topology.reachable(machine, topology.routing_servers_near(machine))
        """The routing servers of its sites that it can connect to, by identifier."""
        self.gates = topology.reachable(machine, topology.gates_near(machine))
        """The gates of its sites that it can connect to, by identifier."""
        self.table = topology.table(machine.sites) if self.is_gate else None
        self.next_site_decisions: dict[UUID, Decision] = {}
        """For a gate: what it decides for each next site when nobody has just failed."""


class Topology:
    """The enterprise as routing sees it."""

    def __init__(self, enterprise: EnterpriseMap, down: Collection[UUID] = ()) -> None:
        """Take a snapshot; ``down`` are queue managers that pass nothing on."""
        self.enterprise = enterprise
        self.down = frozenset(down)
        self.machines = dict(enterprise.machines_by_id)
        self._tables: OrderedDict[tuple[UUID, ...], RoutingTable] = OrderedDict()
        self._vantages: dict[int, Vantage] = {}
        self._remembered: dict[UUID, dict[int, tuple[UUID, ...]]] = {}
        self._gates: dict[UUID, tuple[Machine, ...]] = {}
        self._gate_ids = frozenset(gate.id for site in enterprise.sites for gate in self.gates_of(site.id))

    @cached_property
    def graph(self) -> SiteGraph:
        """The sites and the links that can be taken.

        Deviation from MS-MQBR 3.1.3.1, which takes all links: a site without a gate can neither be entered
        nor left (1.5), so a way through it fails where a longer one may succeed.
        """
        sites = (site.id for site in self.enterprise.sites)
        return SiteGraph(self.enterprise, [site for site in sites if not self.gates_of(site)])

    def table(self, sites: Iterable[UUID]) -> RoutingTable:
        """The routing table of a gate that belongs to these sites."""
        key = tuple(sites)
        table = self._tables.get(key)
        if table is None:
            table = self._tables[key] = RoutingTable(self.graph, key)
            if len(self._tables) > MAX_TABLES:
                self._tables.popitem(last=False)
        return table

    @cached_property
    def plain_destinations(self) -> dict[UUID, int]:
        """The site's number of each queue manager to which the way depends, elsewhere, on its site alone.

        That is not so for one of several sites, with in-routing servers, or that is a gate itself.
        """
        index = self.graph.index
        return {
            machine.id: index[machine.sites[0]]
            for machine in self.machines.values()
            if len(machine.sites) == 1
            and not machine.in_routing
            and machine.sites[0] in index
            and machine.id not in self._gate_ids
            and machine.id not in self.down
        }

    def remembered(self, source: UUID) -> dict[int, tuple[UUID, ...]]:
        """What a source has decided for plain destinations, by the number of their site."""
        found = self._remembered.get(source)
        if found is None:
            if len(self._remembered) >= MAX_REMEMBERED:
                self._remembered.clear()
            found = self._remembered[source] = {}
        return found

    def vantage(self, machine: Machine) -> Vantage:
        """The surroundings of a queue manager of this enterprise."""
        found = self._vantages.get(id(machine))  # the snapshot keeps it alive
        if found is None:
            if len(self._vantages) >= MAX_VANTAGES:
                self._vantages.clear()
            found = self._vantages[id(machine)] = Vantage(self, machine)
        return found

    def reachable(self, machine: Machine, others: Iterable[Machine]) -> tuple[Machine, ...]:
        """Those of the others that share a connected network with a queue manager."""
        return tuple(one for one in others if self.enterprise.share_network(machine, one))

    def gates_of(self, site: UUID) -> tuple[Machine, ...]:
        """SiteGateCollection of a site without those that are down, by identifier."""
        gates = self._gates.get(site)
        if gates is None:
            found = self.enterprise.gates_of(site)
            gates = self._gates[site] = tuple(gate for gate in found if gate.id not in self.down)
        return gates

    def site_name(self, site: UUID) -> str:
        """What people call a site."""
        found = self.enterprise.site(site)
        return found.name if found else str(site)

    def is_gate(self, identifier: UUID) -> bool:
        """Whether this queue manager is a gate, and up."""
        return identifier in self._gate_ids

    def routing_servers_near(self, machine: Machine) -> list[Machine]:
        """The other routing servers of a queue manager's sites that are up, by identifier."""
        found = {
            server.id: server
            for site in machine.sites
            for server in self.enterprise.routing_servers_in(site)
            if server.id not in self.down and server.id != machine.id
        }
        return sorted(found.values(), key=lambda server: server.id.int)

    def gates_near(self, machine: Machine) -> list[Machine]:
        """The gates of a queue manager's sites that are up, by identifier."""
        found = {gate.id: gate for site in machine.sites for gate in self.gates_of(site)}
        return sorted(found.values(), key=lambda gate: gate.id.int)

    def cost_from(self, machine: Machine, destination: Machine) -> float:
        """What the links from a routing server to a destination cost, by the sites of both."""
        if not set(machine.sites).isdisjoint(destination.sites):
            return 0.0
        # Links have one cost for both directions, so one table of the destination serves every source.
        table = self.table(destination.sites)
        usable = (site for site in machine.sites if self.gates_of(site))
        return min((table.cost(site) for site in usable), default=float("inf"))
