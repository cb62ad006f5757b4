"""A declarative set of queues: compared with what is there, it gives a plan; the plan is applied."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum

import msgspec

from lanner.manager.info import QueueInfo
from lanner.model.errors import InvalidNameError, InvalidPropertyError
from lanner.model.names import QueueKind as PathKind
from lanner.model.path_name import LOCAL_COMPUTER, PathName, parse_path_name
from lanner.model.queue import QueueKind, QueueProperties
from lanner.model.security import SecurityDescriptor

__all__ = ["DeclaredQueue", "Plan", "PlannedChange", "PlannedStep", "make_plan"]


class DeclaredQueue(msgspec.Struct, frozen=True, kw_only=True):
    """A queue as it should be."""

    path: str
    properties: QueueProperties = QueueProperties()
    security: str = ""
    """SDDL; nothing leaves the descriptor as it is, or as the default."""


class PlannedChange(StrEnum):
    """What a step does."""

    CREATE = "create"
    CHANGE = "change"
    DELETE = "delete"


class PlannedStep(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to do to one queue."""

    change: PlannedChange
    path: str
    declared: DeclaredQueue | None = None
    differences: tuple[str, ...] = ()
    """For people: ``quota: 100 -> 200``."""
    messages: int = 0
    """For a deletion: how many messages go with the queue."""

    def __str__(self) -> str:
        text = f"{self.change.value} {self.path}"
        if self.differences:
            text += ": " + ", ".join(self.differences)
        if self.messages:
            text += f" (and its {self.messages:,} messages)"
        return text


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What it takes to get from what is there to what should be."""

    steps: tuple[PlannedStep, ...]

    @property
    def is_empty(self) -> bool:
        """Whether everything is as it should be."""
        return not self.steps

    def __str__(self) -> str:
        return "\n".join(map(str, self.steps)) or "nothing to do"


def make_plan(
    declared: Iterable[DeclaredQueue],
    existing: Iterable[QueueInfo],
    *,
    prune: bool = False,
    is_local: Callable[[str], bool] = LOCAL_COMPUTER.__eq__,
) -> Plan:
    """Compare. ``prune`` deletes the private and public queues that nobody declares.

    Everything that could not be applied is refused here, before anything is changed.
    ``is_local`` tells whether a computer's name means this machine.
    """
    infos = {parse_path_name(info.path).key: info for info in existing}
    there = {key: info for key, info in infos.items() if _is_declarable(info)}
    wanted = _by_key(declared, is_local)
    for key in wanted.keys() & infos.keys() - there.keys():
        raise InvalidNameError(f"{infos[key].path} belongs to the manager and cannot be declared")
    steps = [_step(queue, there.get(key)) for key, queue in wanted.items()]
    if prune:
        steps.extend(
            PlannedStep(change=PlannedChange.DELETE, path=info.path, messages=info.messages)
            for key, info in there.items()
            if key not in wanted
        )
    return Plan(steps=tuple(step for step in steps if step is not None))


def _is_declarable(info: QueueInfo) -> bool:
    return info.kind in (QueueKind.PRIVATE, QueueKind.PUBLIC)


def _by_key(
    declared: Iterable[DeclaredQueue], is_local: Callable[[str], bool]
) -> Mapping[str, DeclaredQueue]:
    wanted: dict[str, DeclaredQueue] = {}
    for queue in declared:
        path = _local(parse_path_name(queue.path), is_local)
        if path.key in wanted:
            raise InvalidPropertyError(f"{queue.path} is declared twice")
        queue.properties.check()
        if queue.security:
            SecurityDescriptor.from_sddl(queue.security)
        wanted[path.key] = msgspec.structs.replace(queue, path=str(path))
    return wanted


def _local(path: PathName, is_local: Callable[[str], bool]) -> PathName:
    if not is_local(path.computer):
        raise InvalidNameError(
            f"{path} is on another machine", hint="declare it there, or write . for this one"
        )
    if path.subqueue or path.journal or path.kind is PathKind.SYSTEM:
        raise InvalidNameError(
            f"{path} is a journal, subqueue or system queue",
            hint="declare the queue itself: these come with it",
        )
    return path.with_computer(LOCAL_COMPUTER)


def _step(queue: DeclaredQueue, there: QueueInfo | None) -> PlannedStep | None:
    if there is None:
        return PlannedStep(change=PlannedChange.CREATE, path=queue.path, declared=queue)
    differences = [
        f"{name}: {_show(getattr(there.properties, name))} -> {_show(getattr(queue.properties, name))}"
        for name in QueueProperties.__struct_fields__
        if getattr(there.properties, name) != getattr(queue.properties, name)
    ]
    if there.properties.transactional != queue.properties.transactional:
        raise InvalidPropertyError(
            f"{queue.path} is {'' if there.properties.transactional else 'not '}transactional, "
            "and that cannot be changed",
            hint="declare it as it is, or under another name",
        )
    if queue.security and SecurityDescriptor.from_sddl(queue.security).to_sddl() != there.security:
        differences.append(f"security: {there.security} -> {queue.security}")
    if not differences:
        return None
    return PlannedStep(
        change=PlannedChange.CHANGE, path=there.path, declared=queue, differences=tuple(differences)
    )


def _show(value: object) -> str:
    return repr(value) if isinstance(value, str) else str(value)
