"""What has to be done from time to time: retention, and closing gaps in the store."""

from __future__ import annotations

import logging

from lanner.manager.clock import Timer
from lanner.manager.core import Core
from lanner.model.errors import LannerError

__all__ = ["Maintenance"]

log = logging.getLogger(__name__)


class Maintenance:
    """Runs at every interval of the settings, one round at a time."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._timer: Timer | None = None
        self._stopped = False

    def start(self) -> None:
        """Set the timer for the next round."""
        deadline = self._core.clock.monotonic() + self._core.settings.maintenance_interval
        self._timer = self._core.clock.call_at(deadline, lambda: self._core.spawn(self._round()))

    def stop(self) -> None:
        """Begin no further round."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()

    async def _round(self) -> None:
        try:
            await self.run()
        except LannerError as error:
            log.warning("maintenance could not finish: %s", error)
        if not self._stopped:
            self.start()

    async def run(self) -> None:
        """Apply retention to history and outcomes, and close gaps in segments."""
        settings, store, now = self._core.settings, self._core.store, self._core.clock.time()
        trimmed = await store.history.trim(
            before=now - settings.history_age, max_bytes=settings.history_bytes
        )
        if trimmed:
            log.info("dropped %d history rows that are beyond retention", trimmed)
        await store.forget_outcomes(now - settings.outcome_age)
        await store.tidy()
