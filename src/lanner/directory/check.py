"""The checks of a directory. Each is a function that yields what it finds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from uuid import UUID

from lanner.directory.check_links import LINK_CHECKS
from lanner.directory.check_machines import MACHINE_CHECKS
from lanner.directory.findings import Finding, Kind, Namer, Severity
from lanner.directory.places import Places
from lanner.model.enterprise import EnterpriseMap

__all__ = ["Finding", "Kind", "Severity", "check"]


def check(
    source: EnterpriseMap, places: Places | None = None, unknown: Mapping[UUID, str] | None = None
) -> list[Finding]:
    """Find everything that is wrong with an enterprise, errors first.

    For a file, ``places`` and ``unknown`` come from reading it, so that lines and wrong names can be told.
    """
    namer = Namer(source, places, unknown)
    found = [finding for one in _CHECKS for finding in one(source, namer)]
    return sorted(found, key=lambda finding: finding.severity is not Severity.ERROR)


def _same_identifiers(source: EnterpriseMap, namer: Namer) -> Iterator[Finding]:
    """Two objects with one identifier: cloned machines, above all."""
    for table, items in (
        ("site", source.sites),
        ("link", source.links),
        ("manager", source.machines),
        ("queue", source.queues),
    ):
        numbers: defaultdict[UUID, list[int]] = defaultdict(list)
        for number, item in enumerate(items):
            numbers[item.id].append(number)
        for identifier, same in numbers.items():
            if len(same) == 1:
                continue
            others = ", ".join(namer.place(table, number) for number in same[:-1])
            is_machine = table == "manager"
            names = ", ".join(source.machines[number].name for number in same) if is_machine else ""
            yield Finding(
                severity=Severity.ERROR,
                kind=Kind.SAME_IDENTIFIER,
                place=namer.place(table, same[-1], "id"),
                what=f"{len(same)} {table}s have the identifier {identifier}"
                + (
                    f": {names}; cloned machines get each other's messages"
                    if is_machine
                    else f": see {others}"
                ),
                fix="give each its own identifier"
                + ("; reinstall the clone's queue manager" if is_machine else ""),
            )


def _same_names(source: EnterpriseMap, namer: Namer) -> Iterator[Finding]:
    first: dict[str, int] = {}
    for number, machine in enumerate(source.machines):
        known = first.setdefault(machine.name.casefold(), number)
        if known != number and source.machines[known].id != machine.id:
            yield Finding(
                severity=Severity.ERROR,
                kind=Kind.SAME_NAME,
                place=namer.place("manager", number, "name"),
                what=f"{machine.name} is named twice; the other is at {namer.place('manager', known)}",
                fix="rename or remove one",
            )


def _unknown_hosts(source: EnterpriseMap, namer: Namer) -> Iterator[Finding]:
    for number, queue in enumerate(source.queues):
        if source.host_of(queue) is None:
            yield Finding(
                severity=Severity.ERROR,
                kind=Kind.UNKNOWN_HOST,
                place=namer.place("queue", number, "path"),
                what=f"no manager is called {queue.computer}",
                fix=namer.nearest(queue.computer, source.machines) or "add the manager, or remove the queue",
            )


_CHECKS: tuple[Callable[[EnterpriseMap, Namer], Iterator[Finding]], ...] = (
    _same_identifiers,
    _same_names,
    *LINK_CHECKS,
    *MACHINE_CHECKS,
    _unknown_hosts,
)
