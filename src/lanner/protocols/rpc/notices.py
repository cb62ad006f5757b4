"""What peers do wrong, said in the log now and then: a flood fills no disk."""

from __future__ import annotations

import logging

__all__ = ["Notices"]

LOG_SECONDS = 1.0
"""At most one line of a kind in this time; those in between are counted in the next."""


class Notices:
    """Counts what happens often, and logs one of it in a while."""

    def __init__(self, log: logging.Logger, level: int) -> None:
        self.count = 0
        self._log = log
        self._level = level
        self._said = 0
        self._said_at = float("-inf")

    def note(self, now: float, text: str, *values: object) -> None:
        """It happened once more."""
        self.count += 1
        if now - self._said_at < LOG_SECONDS:
            self._log.debug(text, *values)
            return
        more = self.count - self._said - 1
        self._log.log(self._level, text + (f"; and {more} more before" if more else ""), *values)
        self._said, self._said_at = self.count, now
