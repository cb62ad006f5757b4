"""How a message travels from one queue manager to another, and why (``lanner route explain``).

The way is walked as the machines themselves would walk it: each hop decides anew, with what it knows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

from lanner.model.enterprise import Machine
from lanner.routing.alternatives import Alternative, alternatives
from lanner.routing.decision import Decision, NoRouteError
from lanner.routing.next_hops import decide
from lanner.routing.topology import Topology

__all__ = ["Crossing", "Explanation", "Step", "explain", "walk"]


@dataclass(frozen=True, slots=True)
class Crossing:
    """A link that a hop takes."""

    from_site: str
    to_site: str
    cost: int


@dataclass(frozen=True, slots=True)
class Step:
    """One hop: who decided, by which rule, for whom."""

    at: str
    rule: str
    next: tuple[str, ...]
    why: str
    crossing: Crossing | None = None
    alternatives: tuple[Alternative, ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """The whole way, or the part of it before it ended."""

    hops: tuple[str, ...]
    cost: int
    steps: tuple[Step, ...]
    stopped_at: str = ""
    """The machine that knew no next hop; empty if the destination is reached."""
    why: str = ""
    hint: str = ""

    @property
    def is_reached(self) -> bool:
        """Whether the way leads to the destination."""
        return not self.stopped_at

    def as_json(self) -> dict[str, object]:
        """What programs get."""
        steps = [{"at": step.at, "rule": step.rule, "next": list(step.next)} for step in self.steps]
        if self.is_reached:
            return {"hops": list(self.hops), "cost": self.cost, "steps": steps}
        unreachable = {"at": self.stopped_at, "why": self.why, "fix": self.hint}
        return {"hops": list(self.hops), "cost": None, "steps": steps, "unreachable": unreachable}


@dataclass(slots=True)
class _Way:
    hops: list[Machine] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    error: NoRouteError | None = None


def walk(topology: Topology, source: UUID, destination: UUID) -> tuple[list[Machine], NoRouteError | None]:
    """The machines on the way, the source first, and why it ended before the destination, if it did."""
    way = _walk(topology, source, destination)
    return way.hops, way.error


def explain(topology: Topology, source: UUID, destination: UUID) -> Explanation:
    """Say how a message travels between two queue managers of the directory, hop by hop."""
    way = _walk(topology, source, destination)
    target = topology.machines[destination]
    steps = tuple(
        _step(topology, here, target, decision)
        for here, decision in zip(way.hops, way.decisions, strict=False)
    )
    cost = sum(step.crossing.cost for step in steps if step.crossing)
    hops = tuple(machine.name for machine in way.hops)
    if way.error is None:
        return Explanation(hops, cost, steps)
    return Explanation(hops, cost, steps, way.error.at, way.error.why, way.error.hint)


def _walk(topology: Topology, source: UUID, destination: UUID) -> _Way:
    way = _Way([topology.machines[source]])
    seen = {source}
    while way.hops[-1].id != destination:
        try:
            decision = decide(topology, way.hops[-1].id, destination)
        except NoRouteError as error:
            way.error = error
            break
        chosen = decision.hops[0]
        # The rules exclude it; a message that went round for ever would be the worst way to learn otherwise.
        assert chosen.id not in seen, f"the route from {way.hops[0].name} loops at {chosen.name}"
        seen.add(chosen.id)
        way.decisions.append(decision)
        way.hops.append(chosen)
    return way


def _step(topology: Topology, here: Machine, target: Machine, decision: Decision) -> Step:
    return Step(
        at=here.name,
        rule=decision.section,
        next=tuple(hop.name for hop in decision.hops),
        why=decision.rule.value,
        crossing=_crossing(topology, here, decision),
        alternatives=tuple(alternatives(topology, here, target, decision)),
    )


def _crossing(topology: Topology, here: Machine, decision: Decision) -> Crossing | None:
    if decision.next_site is None:
        return None
    leaving = topology.table(here.sites).leaving_site(decision.next_site)
    graph = topology.graph
    cost = graph.cost(graph.index[leaving], graph.index[decision.next_site])
    return Crossing(topology.site_name(leaving), topology.site_name(decision.next_site), cost)
