"""What routing costs: a gate's table, a decision, and a large directory file.

The table of one gate among 10,000 sites with four links each is measured against scipy's bare Dijkstra
over the same matrix and against networkx over the same graph, in turns. Each runs a few times in its turn,
and the fastest counts, in processor time, so that neither caches that another left cold nor other programs
of the machine are measured. Decisions are asked of a gate whose table is made, for 50,000 destinations all
over the enterprise. The file with 100,000 managers is read in a process of its own, so that its memory can
be told.
"""

from __future__ import annotations

import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

from scipy.sparse.csgraph import dijkstra

from bench.measure import Rounds, Target, disk_directory, print_report
from bench.peers import PeerMissingError
from lanner.directory.local_file import load_file
from lanner.model.enterprise import Enterprise, EnterpriseMap, Machine, RoutingLink, Site, derived_id
from lanner.routing.graph import SiteGraph
from lanner.routing.next_hops import get_next_hops
from lanner.routing.table import RoutingTable
from lanner.routing.topology import Topology

SITES = 10_000
DEGREE = 4
MANAGERS = 100_000
FILE_SITES = 1_000
DESTINATIONS = 50_000
ROUNDS = 11
REPEATS = 5


def main() -> list[Target]:
    return [*_tables(), *_decisions(), *_import()]


def _tables() -> list[Target]:
    try:
        import networkx  # type: ignore[import-untyped]
    except ImportError:
        raise PeerMissingError("networkx", "networkx") from None
    peer = networkx.random_regular_graph(DEGREE, SITES, seed=1)
    costs = random.Random(1)
    for _, _, link in peer.edges(data=True):
        link["weight"] = costs.randint(1, 20)
    source = _enterprise([(one, other, link["weight"]) for one, other, link in peer.edges(data=True)])
    begin = time.perf_counter()
    graph = SiteGraph(source)
    made = (time.perf_counter() - begin) * 1e3
    root = source.sites[0].id
    ours, bare, other = _in_turns(
        lambda: RoutingTable(graph, (root,)),
        lambda: dijkstra(graph.matrix, indices=[graph.index[root]]),
        lambda: networkx.single_source_dijkstra_path_length(peer, 0),
    )
    rounds = [
        Rounds("Lanner's table", "ms", ours),
        Rounds("scipy's bare Dijkstra", "ms", bare),
        Rounds("networkx's costs", "ms", other),
    ]
    targets = [
        Target("table against scipy's bare Dijkstra", rounds[0].median / rounds[1].median, 3, at_least=False),
        Target("networkx against the table", rounds[2].median / rounds[0].median, 5),
    ]
    title = f"Routing table of one gate, {SITES:,} sites, degree {DEGREE}"
    print_report(title, [*rounds, f"the graph, once for a snapshot: {made:,.1f} ms", *targets])
    return targets


def _enterprise(links: list[tuple[int, int, int]]) -> EnterpriseMap:
    """Sites with one gate each; their numbers are in their identifiers, shuffled."""
    sites = tuple(Site(id=derived_id("site", str(number)), name=str(number)) for number in range(SITES))
    gates = tuple(
        Machine(id=derived_id("gate", site.name), name=f"G{site.name}", sites=(site.id,), routing=True)
        for site in sites
    )
    return EnterpriseMap(
        enterprise=Enterprise(id=derived_id("enterprise", "bench"), name="bench"),
        sites=sites,
        links=tuple(
            RoutingLink(
                id=UUID(int=number),
                site1=sites[one].id,
                site2=sites[other].id,
                cost=cost,
                gates=(gates[one].id, gates[other].id),
            )
            for number, (one, other, cost) in enumerate(links)
        ),
        machines=gates,
    )


def _in_turns(*actions: Callable[[], object]) -> list[list[float]]:
    values: list[list[float]] = [[] for _ in actions]
    for _ in range(ROUNDS):
        for action, taken in zip(actions, values, strict=True):
            taken.append(min(_processor_ms(action) for _ in range(REPEATS)))
    return values


def _processor_ms(action: Callable[[], object]) -> float:
    begin = time.process_time()
    action()
    return (time.process_time() - begin) * 1e3


def _decisions() -> list[Target]:
    numbers = random.Random(2)
    links = [
        (number, (number + step) % SITES, numbers.randint(1, 20))
        for number in range(SITES)
        for step in (1, 97)
    ]
    source = _enterprise(links)
    clients = tuple(
        Machine(id=derived_id("m", str(number)), name=f"M{number}", sites=(source.sites[number % SITES].id,))
        for number in range(MANAGERS)
    )
    source = source.changed(machines=(*source.machines, *clients))
    topology = Topology(source)
    rows = []
    for name, here in (("a gate", source.machines[0]), ("a client", clients[0])):
        destinations = [machine.id for machine in numbers.sample(clients, DESTINATIONS)]
        get_next_hops(topology, here.id, destinations[0])
        rates = []
        for _ in range(ROUNDS):
            begin = time.process_time()
            for destination in destinations:
                get_next_hops(topology, here.id, destination)
            rates.append(DESTINATIONS / (time.process_time() - begin))
        rows.append(Rounds(f"decisions of {name}", "a second", rates))
    target = Target("GetNextHops on a warm table", rows[0].median, 200_000, unit="a second")
    print_report(f"Decisions, {MANAGERS:,} managers in {SITES:,} sites", [*rows, target])
    return [target]


def _import() -> list[Target]:
    with disk_directory() as directory:
        path = directory / "enterprise.toml"
        path.write_text(_file())
        size = path.stat().st_size
        command = [sys.executable, "-m", "bench.routing", "--import", str(path)]
        answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    targets = [
        Target("import", float(answer[0]), 20, at_least=False, unit="s"),
        Target("memory of the import", float(answer[1]), 1000, at_least=False, unit="MB"),
    ]
    print_report(f"Import of {MANAGERS:,} managers from a file of {size / 1e6:,.1f} MB", targets)
    return targets


def _file() -> str:
    numbers = random.Random(3)
    parts = ['[enterprise]\nname = "Bench"\n']
    parts += [f'[[site]]\nname = "S{number}"\n' for number in range(FILE_SITES)]
    for number in range(FILE_SITES):
        for other in {(number + 1) % FILE_SITES, numbers.randrange(FILE_SITES)} - {number}:
            parts.append(
                f'[[link]]\nsites = ["S{number}", "S{other}"]\ncost = {numbers.randint(1, 20)}\n'
                f'gates = ["M{number}", "M{other}"]\n'
            )
    parts += [
        f'[[manager]]\nname = "M{number}"\nsites = ["S{number % FILE_SITES}"]\n'
        f'routing = {str(number < FILE_SITES).lower()}\naddress = "10.1.{number >> 8 & 255}.{number & 255}"\n'
        for number in range(MANAGERS)
    ]
    return "\n".join(parts)


def _import_alone(path: Path) -> None:
    begin = time.perf_counter()
    loaded = load_file(path)
    Topology(loaded.map)
    seconds = time.perf_counter() - begin
    assert len(loaded.map.machines) == MANAGERS
    print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--import"]:
        _import_alone(Path(sys.argv[2]))
    else:
        main()
