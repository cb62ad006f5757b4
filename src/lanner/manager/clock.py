"""Time as an argument: the real clock, and one that tests turn by hand."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections.abc import Callable
from typing import Protocol

__all__ = ["Clock", "ManualClock", "SystemClock", "Timer"]


class Timer(Protocol):
    """Something that will happen, unless it is cancelled."""

    def cancel(self) -> None:
        """Do not let it happen."""


class Clock(Protocol):
    """What the manager asks for the time.

    ``time`` is what stands in messages and in the history. ``monotonic`` is what time-outs and
    expiry run on: when somebody sets the machine's clock, no message expires early because of it.
    """

    def time(self) -> float:
        """Unix time in seconds."""

    def monotonic(self) -> float:
        """Seconds since some fixed moment; never goes back, never jumps."""

    def call_at(self, deadline: float, callback: Callable[[], None]) -> Timer:
        """Call back when ``monotonic`` reaches ``deadline``."""


class SystemClock:
    """The machine's clock and the running event loop's timers."""

    def time(self) -> float:
        """Unix time in seconds."""
        return time.time()

    def monotonic(self) -> float:
        """The event loop's own time."""
        return asyncio.get_running_loop().time()

    def call_at(self, deadline: float, callback: Callable[[], None]) -> Timer:
        """Set a timer on the event loop."""
        return asyncio.get_running_loop().call_at(deadline, callback)


class _ManualTimer:
    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class ManualClock:
    """A clock that stands still until it is told to go on."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self._wall = now
        self._elapsed = 0.0
        self._timers: list[tuple[float, int, _ManualTimer]] = []
        self._order = itertools.count()

    def time(self) -> float:
        """Unix time in seconds, as far as this clock has been turned."""
        return self._wall

    def monotonic(self) -> float:
        """Seconds that this clock has been turned by, jumps left out."""
        return self._elapsed

    def call_at(self, deadline: float, callback: Callable[[], None]) -> Timer:
        """Set a timer that :meth:`advance` fires."""
        timer = _ManualTimer(callback)
        heapq.heappush(self._timers, (deadline, next(self._order), timer))
        return timer

    def advance(self, seconds: float) -> None:
        """Let time pass: timers fire in order, each at its own moment."""
        end = self._elapsed + seconds
        while self._timers and self._timers[0][0] <= end:
            deadline, _, timer = heapq.heappop(self._timers)
            self._move_to(max(deadline, self._elapsed))
            if timer.callback is not None:
                timer.callback()
        self._move_to(end)

    def jump(self, seconds: float) -> None:
        """Set the wall clock forward or back, as an administrator or NTP does. No time passes."""
        self._wall += seconds

    def _move_to(self, elapsed: float) -> None:
        self._wall += elapsed - self._elapsed
        self._elapsed = elapsed
