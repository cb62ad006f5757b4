"""What can be set about a queue manager."""

from __future__ import annotations

import msgspec

from lanner.model.errors import InvalidPropertyError
from lanner.model.message import INFINITE

__all__ = ["ManagerSettings"]

DAY = 86_400


class ManagerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Limits and retention of one queue manager. Times are seconds, quotas kilobytes."""

    aliases: tuple[str, ...] = ()
    """Other names of this machine, beside its own, ``localhost`` and ``.``."""
    quota: int = 8 * 1024 * 1024
    """All messages in all queues (QueueManagerQuota): 8 GB."""
    journal_quota: int = INFINITE
    """The system journal and the dead-letter queues together (JournalQuota)."""
    history_bodies: bool = False
    """Whether history rows of sent and arrived messages carry the body."""
    history_age: float = 30 * DAY
    history_bytes: int = 4 * 1024**3
    outcome_age: float = 7 * DAY
    """How long a key is remembered."""
    maintenance_interval: float = 600.0
    """How often retention is applied."""
    cache_bytes: int = 32 * 1024 * 1024
    """Recently sent messages kept in memory, so that receiving them needs no read."""

    def check(self) -> None:
        """Refuse settings that cannot be meant."""
        for name in ("quota", "journal_quota"):
            if not 0 <= getattr(self, name) <= INFINITE:
                raise InvalidPropertyError(f"{name} is not between 0 and {INFINITE}")
        for name in ("history_age", "history_bytes", "outcome_age", "cache_bytes"):
            if getattr(self, name) < 0:
                raise InvalidPropertyError(f"{name} is negative")
        if self.maintenance_interval <= 0:
            raise InvalidPropertyError("maintenance_interval is not positive")
