"""What goes wrong with packets, counted, and said in the log now and then."""

from __future__ import annotations

import logging

__all__ = ["Incidents"]

LOG_SECONDS = 60.0
"""At most one line of a kind in this time: a flood fills no disk."""


class Incidents:
    """Counts what happens often, and logs one of it in a while."""

    def __init__(self, log: logging.Logger, level: int, what: str) -> None:
        self.count = 0
        self._log = log
        self._level = level
        self._what = what
        self._said = 0
        self._said_at = float("-inf")

    def note(self, reason: object, source: str, now: float) -> None:
        """It happened once more."""
        self.count += 1
        if now - self._said_at < LOG_SECONDS:
            self._log.debug("discovery: %s (%s): %s", self._what, source, reason)
            return
        more = self.count - self._said - 1
        text = "discovery: %s (%s): %s" + (f"; and {more} more before" if more else "")
        self._log.log(self._level, text, self._what, source, reason)
        self._said, self._said_at = self.count, now
