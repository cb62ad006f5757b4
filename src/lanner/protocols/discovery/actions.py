"""What client and server both say of a packet."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Discarded"]


@dataclass(frozen=True, slots=True)
class Discarded:
    """A packet was not for us, and why."""

    reason: str
