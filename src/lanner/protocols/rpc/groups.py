"""Association groups: the associations of one client, which share context handles (MS-RPCE 3.3.1.5.7)."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

from lanner.protocols.rpc.handles import HandleTable

__all__ = ["Group", "Groups"]


@dataclass
class Group:
    """One group, and where it came from."""

    id: int
    host: str
    members: int = 0
    handles: HandleTable = field(default_factory=HandleTable)


class Groups:
    """The groups of a server."""

    def __init__(self) -> None:
        self._groups: dict[int, Group] = {}

    def __len__(self) -> int:
        return len(self._groups)

    def join(self, identifier: int, host: str) -> Group | None:
        """A new group for zero; an existing one for its identifier, from the host that began it alone."""
        if identifier == 0:
            group = Group(self._unused(), host)
            self._groups[group.id] = group
        else:
            found = self._groups.get(identifier)
            if found is None or found.host != host:
                return None
            group = found
        group.members += 1
        return group

    def leave(self, group: Group) -> None:
        """An association is over; with the last one, the handles run down (3.3.3.7.1)."""
        group.members -= 1
        if not group.members:
            group.handles.clear()
            self._groups.pop(group.id, None)

    def _unused(self) -> int:
        while True:
            # Not to be guessed: whoever has it could join.
            identifier = secrets.randbelow(0xFFFF_FFFF) + 1
            if identifier not in self._groups:
                return identifier
