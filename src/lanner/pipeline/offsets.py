"""Offsets: for each manager its identifier and the next LSN to read. Pure functions, no I/O.

As Kafka's, a starting offset is the first to be read and an ending offset the first not to be read. A
manager is known by its name, and by its identifier, which another manager with the same name does not have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from lanner.pipeline.errors import InvalidOptionError, tell_loss
from lanner.pipeline.options import EARLIEST, LATEST, OffsetWish

__all__ = ["Offsets", "Position", "Seen", "advance", "begin_of", "from_json", "resolve", "to_json"]

KAFKA_EARLIEST, KAFKA_LATEST = -2, -1


class Seen(NamedTuple):
    """A manager as it is now: what of its history is there, from ``first`` up to but without ``end``."""

    name: str
    id: str
    first: int
    end: int


class Position(NamedTuple):
    """How far a query has got with one manager."""

    id: str
    next: int
    since: int | None = None
    """Where its rows begin, if this manager was not there, or was another, at the start of the batch."""


Offsets = dict[str, Position]


def to_json(offsets: Offsets) -> dict[str, Any]:
    """The form in which Spark keeps offsets."""
    return {
        name: {"id": position.id, "next": position.next}
        | ({} if position.since is None else {"since": position.since})
        for name, position in sorted(offsets.items())
    }


def from_json(kept: Mapping[str, Any]) -> Offsets:
    """Read what :func:`to_json` wrote."""
    return {
        name: Position(fields["id"], fields["next"], fields.get("since")) for name, fields in kept.items()
    }


def resolve(wish: OffsetWish, managers: Sequence[Seen], *, fail: bool, partly: bool = False) -> Offsets:
    """Find what earliest, latest or JSON means for the managers that are there.

    ``partly`` allows names that nobody has, as when a manager is away.
    """
    if isinstance(wish, dict):
        _check_names(wish, managers, partly)
        return {seen.name: Position(seen.id, _lsn(wish[seen.name], seen, fail)) for seen in managers}
    return {seen.name: Position(seen.id, _named(wish, seen)) for seen in managers}


def _check_names(wish: Mapping[str, Any], managers: Sequence[Seen], partly: bool) -> None:
    there = {seen.name for seen in managers}
    if there - wish.keys():
        raise InvalidOptionError(f"the offsets do not name {', '.join(sorted(there - wish.keys()))}")
    if wish.keys() - there and not partly:
        raise InvalidOptionError(
            f"the offsets name {', '.join(sorted(wish.keys() - there))}, which is not among the managers",
            hint=f"there are {', '.join(sorted(there))}",
        )


def _named(name: str, seen: Seen) -> int:
    return seen.first if name == EARLIEST else seen.end


def _lsn(value: Any, seen: Seen, fail: bool) -> int:
    if isinstance(value, dict) and "next" in value:  # as a checkpoint has it
        if value.get("id", seen.id) != seen.id:
            tell_loss(_replaced(seen, str(value["id"])), fail=fail)
            return seen.first
        value = value["next"]
    if value in (EARLIEST, KAFKA_EARLIEST):
        return seen.first
    if value in (LATEST, KAFKA_LATEST):
        return seen.end
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise InvalidOptionError(f"the offset of {seen.name} is an LSN, earliest or latest, not {value!r}")
    if value > seen.end:
        raise InvalidOptionError(
            f"the offset {value} of {seen.name} is not written yet", hint=f"the last LSN is {seen.end - 1}"
        )
    if max(value, 1) < seen.first:
        tell_loss(_trimmed(seen, value), fail=fail)
    return max(value, seen.first)


def advance(start: Offsets, managers: Sequence[Seen], *, fail: bool, partly: bool = False) -> Offsets:
    """Say where everything that is there now ends, and tell what is lost since ``start``.

    ``partly`` says that not all managers answered: those that are missing stay where they are.
    """
    end = dict(start)
    for seen in managers:
        end[seen.name] = _advance(start.get(seen.name), seen, fail)
    gone = start.keys() - {seen.name for seen in managers}
    if gone and not partly:
        tell_loss(f"{', '.join(sorted(gone))}: no longer among the managers", fail=fail)
    return {
        name: position._replace(since=None) if name in gone else position for name, position in end.items()
    }


def _advance(position: Position | None, seen: Seen, fail: bool) -> Position:
    if position is None:  # a manager that has joined is read from its beginning
        return Position(seen.id, seen.end, seen.first)
    if position.id != seen.id:
        tell_loss(_replaced(seen, position.id), fail=fail)
        return Position(seen.id, seen.end, seen.first)
    if position.next > seen.end:
        tell_loss(
            f"{seen.name}: its history ends at LSN {seen.end - 1}, and LSN {position.next - 1} was read "
            "before: an older copy of its store was put back",
            fail=fail,
        )
    elif position.next < seen.first:
        tell_loss(_trimmed(seen, position.next), fail=fail)
    return Position(seen.id, seen.end)


def begin_of(name: str, start: Offsets, end: Position) -> int:
    """Where the rows of one manager in a batch begin."""
    if end.since is not None or name not in start:
        return end.since or 1
    return start[name].next


def _replaced(seen: Seen, former: str) -> str:
    return f"{seen.name}: another manager has its name now ({seen.id}; it was {former})"


def _trimmed(seen: Seen, wanted: int) -> str:
    return f"{seen.name}: LSN {wanted} to {seen.first - 1} were trimmed before they were read"
