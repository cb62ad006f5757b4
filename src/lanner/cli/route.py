"""``lanner route``: how messages travel, why, and what a change would do.

What computes the routes is imported by the commands that need it: it takes longer to load than ``--help``.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lanner.cli.command import Session, talks_to_manager
from lanner.cli.enterprise import EnterpriseOption, enterprise_of, find_machine, find_pair, find_site
from lanner.cli.output import print_json, print_table, printable
from lanner.model.errors import InvalidPropertyError, LannerError

if TYPE_CHECKING:
    from uuid import UUID

    from lanner.model.enterprise import EnterpriseMap
    from lanner.routing.explain import Explanation, Step
    from lanner.routing.whatif import Change, Route, WhatIf

__all__ = ["app"]

app = typer.Typer(help="How messages travel between sites, and why.", no_args_is_help=True)

EXIT_UNREACHABLE = 3

SHOWN_CHANGES = 50
"""Changed pairs that a person is shown; ``--json`` has all."""

_DownOption = Annotated[
    list[str] | None,
    typer.Option("--down", help="A manager that is down. Can be repeated.", metavar="MANAGER"),
]


@app.command()
@talks_to_manager
def table(
    session: Session,
    manager: Annotated[str, typer.Argument(help="A site gate.")],
    enterprise: EnterpriseOption = None,
) -> None:
    """Show the routing table of a site gate: for each site the next one, and the cost (MS-MQBR 3.1.1.2)."""
    from lanner.routing.topology import Topology

    source = enterprise_of(session, enterprise)
    machine = find_machine(source, manager)
    topology = Topology(source)
    if not topology.is_gate(machine.id):
        if not session.as_json:
            typer.echo(f"{machine.name} is no site gate: it has no routing table (MS-MQBR 3.1.3.1)")
        return
    rows = [
        (
            topology.site_name(row.destination_site),
            topology.site_name(row.next_hop_site),
            row.cost,
            [gate.name for gate in topology.gates_of(row.next_hop_site)],
        )
        for row in topology.table(machine.sites)
    ]
    rows.sort(key=lambda row: (row[2], row[0].casefold()))
    if session.as_json:
        for site, ahead, cost, gates in rows:
            print_json({"site": site, "next": ahead, "cost": cost, "gates": gates})
        return
    shown = [(site, ahead, cost, ", ".join(gates)) for site, ahead, cost, gates in rows]
    print_table(("site", "next site", "cost", "gates there"), shown, empty="the table is empty")


@app.command()
@talks_to_manager
def explain(
    session: Session,
    source: Annotated[str, typer.Argument(help="The manager that sends.")],
    destination: Annotated[str, typer.Argument(help="The manager that receives.", metavar="DEST")],
    down: _DownOption = None,
    enterprise: EnterpriseOption = None,
) -> None:
    """Say how a message travels: every hop, the rule that chose it, the costs, and what lost.

    Exits with 3 if the destination cannot be reached, and says at which hop and why.
    """
    from lanner.routing.explain import explain as explained
    from lanner.routing.topology import Topology

    whole = enterprise_of(session, enterprise)
    topology = Topology(whole, [find_machine(whole, name).id for name in down or ()])
    found = explained(topology, find_machine(whole, source).id, find_machine(whole, destination).id)
    if session.as_json:
        print_json(found.as_json())
    else:
        _print_explanation(found, destination)
    if not found.is_reached:
        typer.echo(
            f"lanner: {destination} cannot be reached from {source}: at {found.stopped_at}, {found.why}"
            + (f" ({found.hint})" if found.hint else ""),
            err=True,
        )
        raise typer.Exit(EXIT_UNREACHABLE)


@app.command()
@talks_to_manager
def whatif(
    session: Session,
    set_cost: Annotated[
        list[str] | None,
        typer.Option(
            "--set-cost", help="Another cost for a link. Can be repeated.", metavar="SITE-SITE=COST"
        ),
    ] = None,
    down: _DownOption = None,
    enterprise: EnterpriseOption = None,
) -> None:
    """Say which pairs of sites would get another route, which would lose theirs, and what it would cost."""
    from lanner.routing.whatif import what_if

    source = enterprise_of(session, enterprise)
    costs = dict(_cost(source, text) for text in set_cost or ())
    if not costs and not down:
        raise InvalidPropertyError(
            "nothing would change", hint="say --set-cost London-Paris=9 or --down LON-GW"
        )
    found = what_if(source, costs=costs, down=[find_machine(source, name).id for name in down or ()])
    if session.as_json:
        print_json(_whatif_json(found))
    else:
        _print_whatif(found)


@app.command("map")
@talks_to_manager
def draw_map(
    session: Session,
    output: Annotated[Path, typer.Option("--output", "-o", help="The SVG file; - for standard output.")],
    site: Annotated[
        str | None, typer.Option("--site", help="The site whose least-cost tree is drawn.")
    ] = None,
    down: _DownOption = None,
    enterprise: EnterpriseOption = None,
) -> None:
    """Draw the sites, their links with costs, their gates, and the least-cost tree of a site, as SVG."""
    from lanner.routing.map_svg import draw
    from lanner.routing.topology import Topology

    source = enterprise_of(session, enterprise)
    topology = Topology(source, [find_machine(source, name).id for name in down or ()])
    drawn = draw(topology, find_site(source, site).id if site else None)
    if str(output) == "-":
        sys.stdout.write(drawn)
        return
    try:
        output.write_text(drawn, encoding="utf-8")
    except OSError as error:
        raise LannerError(f"{output} cannot be written: {error.strerror or error}") from None
    if session.as_json:
        print_json({"file": str(output), "sites": len(source.sites), "links": len(source.links)})
    else:
        typer.echo(f"{len(source.sites):,} sites and {len(source.links):,} links are drawn in {output}")


def _cost(source: EnterpriseMap, text: str) -> tuple[frozenset[UUID], int]:
    pair, equals, cost = text.rpartition("=")
    if not equals or not cost.strip().isdigit() or len(cost) > 9:
        raise InvalidPropertyError(f"{text!r} is not a link and a cost", hint="write it as London-Paris=9")
    return find_pair(source, pair), int(cost)


def _print_explanation(found: Explanation, destination: str) -> None:
    way = " -> ".join(found.hops)
    typer.echo(
        printable(f"{way}, cost {found.cost:,}" if found.is_reached else f"{way} -> ? ({destination})")
    )
    for number, step in enumerate(found.steps, 1):
        _print_step(number, step)


def _print_step(number: int, step: Step) -> None:
    lines = [f"{number}. {step.at} -> {step.next[0]}", f"   {step.rule}: {step.why}"]
    if step.crossing:
        lines.append(
            f"   link {step.crossing.from_site}-{step.crossing.to_site}, cost {step.crossing.cost:,}"
        )
    lines += [f"   not {one.what}: {one.why}" for one in step.alternatives]
    typer.echo("\n".join(map(printable, lines)))


def _whatif_json(found: WhatIf) -> dict[str, object]:
    return {
        "pairs": found.pairs,
        "changed": [
            {
                "from": change.source,
                "to": change.destination,
                "before": _route_json(change.before),
                "after": _route_json(change.after),
                "added_cost": change.added_cost,
            }
            for change in found.changes
        ],
        "unreachable": [{"from": one.source, "to": one.destination} for one in found.unreachable],
        "added_cost": found.added_cost,
        "managers": [{"name": one.name, "why": one.why} for one in found.stranded],
    }


def _route_json(route: Route | None) -> dict[str, object] | None:
    if route is None:
        return None
    return {"cost": route.cost, "sites": list(route.sites), "gates": list(route.gates)}


def _print_whatif(found: WhatIf) -> None:
    lost = len(found.unreachable)
    typer.echo(
        f"of {found.pairs:,} pairs of sites, {len(found.changes):,} change: {lost:,} become unreachable, "
        f"the others cost {found.added_cost:+,} together"
    )
    rows = [
        (change.source, change.destination, *_shown(change), _added(change))
        for change in found.changes[:SHOWN_CHANGES]
    ]
    if rows:
        print_table(("from", "to", "before", "after", "added"), rows, empty="")
    if len(found.changes) > SHOWN_CHANGES:
        typer.echo(f"and {len(found.changes) - SHOWN_CHANGES:,} more: --json has all")
    for one in found.stranded[:SHOWN_CHANGES]:
        typer.echo(printable(f"{one.name}: {one.why}"))
    if len(found.stranded) > SHOWN_CHANGES:
        typer.echo(f"and {len(found.stranded) - SHOWN_CHANGES:,} more managers: --json has all")


def _shown(change: Change) -> tuple[str, str]:
    """The sites of both ways; their gates if the sites are the same."""
    before, after = change.before, change.after
    by_gates = before is not None and after is not None and before.sites == after.sites

    def words(route: Route | None) -> str:
        if route is None:
            return "unreachable"
        way = route.gates if by_gates and before and after and before.gates != after.gates else route.sites
        return printable(f"{' - '.join(way)} ({route.cost:,})")

    return words(before), words(after)


def _added(change: Change) -> str:
    return "" if change.added_cost is None else f"{change.added_cost:+,}"
