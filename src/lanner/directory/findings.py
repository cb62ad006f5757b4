"""What is wrong with a directory: one finding each, with its place and what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from uuid import UUID

import msgspec

from lanner.directory.file_schema import nearest
from lanner.directory.places import Places
from lanner.model.enterprise import ConnectedNetwork, EnterpriseMap, Machine, Site

__all__ = ["Finding", "Kind", "Namer", "Severity"]

MAX_SUGGESTIONS = 20
"""How often a wrong name is compared with all right ones: 0.1 s each, and nobody reads more."""

MAX_COMPARED = 10_000
"""Right names that a wrong one is compared with."""


class Severity(StrEnum):
    """How bad it is."""

    ERROR = "error"
    """Messages will not arrive, or not where they should."""
    WARNING = "warning"
    """It works, but probably not as meant."""


class Kind(StrEnum):
    """Which check found it."""

    SAME_IDENTIFIER = "same-identifier"
    SAME_NAME = "same-name"
    UNKNOWN_SITE = "unknown-site"
    UNKNOWN_MANAGER = "unknown-manager"
    UNKNOWN_NETWORK = "unknown-network"
    GATE_OUTSIDE = "gate-outside-sites"
    GATE_NOT_ROUTING = "gate-not-routing"
    GATES_APART = "gates-share-no-network"
    NO_GATE = "site-without-gate"
    COST = "cost-out-of-range"
    LINK_TO_ITSELF = "link-to-itself"
    PARALLEL_LINKS = "parallel-links"
    UNREACHABLE_SITE = "unreachable-site"
    NO_SITE = "manager-without-site"
    ISOLATED_ROUTER = "isolated-routing-server"
    ONE_WAY = "one-way-routing-list"
    LIST_NOT_ROUTING = "listed-not-routing"
    LIST_OUTSIDE = "listed-outside-site"
    UNKNOWN_HOST = "unknown-host"
    UNREADABLE = "unreadable"


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong."""

    severity: Severity
    kind: Kind
    place: str
    what: str
    fix: str

    def __str__(self) -> str:
        return f"{self.severity}: {self.place}: {self.what} ({self.fix})"


class Namer:
    """Says where an object stands and what it is called, for a file or any other directory."""

    def __init__(
        self, source: EnterpriseMap, places: Places | None = None, unknown: Mapping[UUID, str] | None = None
    ) -> None:
        self.source = source
        self.places = places
        self.unknown = unknown or {}
        self._suggestions = 0

    def place(self, table: str, number: int, key: str = "") -> str:
        """Where the object with this number among its kind stands, as exactly as can be said."""
        if self.places is not None:
            return self.places.shown(table, number, key)
        match table:
            case "site":
                site = self.source.sites[number]
                return site.full_path or f"site {site.name}"
            case "link":
                link = self.source.links[number]
                return link.full_path or f"link {self.site(link.site1)}-{self.site(link.site2)}"
            case "queue":
                return self.source.queues[number].path
            case _:
                machine = self.source.machines[number]
                return machine.full_path or f"manager {machine.name}"

    def site(self, identifier: UUID) -> str:
        """A site's name."""
        found = self.source.site(identifier)
        return found.name if found else self._unknown(identifier)

    def machine(self, identifier: UUID) -> str:
        """A queue manager's name."""
        found = self.source.machine(identifier)
        return found.name if found else self._unknown(identifier)

    def network(self, identifier: UUID) -> str:
        """A connected network's name."""
        found = self.source.network(identifier)
        return found.name if found else self._unknown(identifier)

    def nearest(self, name: str, known: Sequence[Site | ConnectedNetwork | Machine]) -> str:
        """The right name that was probably meant, as a hint, or nothing."""
        self._suggestions += 1
        if self._suggestions > MAX_SUGGESTIONS:
            return ""
        return nearest(name, (one.name for one in known[:MAX_COMPARED]))

    def _unknown(self, identifier: UUID) -> str:
        return self.unknown.get(identifier, str(identifier))
