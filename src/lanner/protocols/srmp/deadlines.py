"""Several deadlines on one timer."""

from __future__ import annotations

from collections.abc import Callable

from lanner.manager import Clock, Timer

__all__ = ["Deadlines"]


class Deadlines:
    """Calls back when one of its deadlines has come.

    A deadline that is moved to later leaves the timer as it is: when it fires, it is set anew. So a
    deadline that moves with every message costs a dictionary entry.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._deadlines: dict[Callable[[], None], float] = {}
        self._timer: Timer | None = None
        self._timer_at = 0.0

    def set(self, callback: Callable[[], None], seconds: float) -> None:
        """Call back after some time, instead of when it was set before."""
        at = self._clock.monotonic() + seconds
        self._deadlines[callback] = at
        if self._timer is None or at < self._timer_at:
            self._arm(at)

    def clear(self, callback: Callable[[], None]) -> None:
        """Do not call back."""
        self._deadlines.pop(callback, None)

    def is_set(self, callback: Callable[[], None]) -> bool:
        """Whether a deadline is set."""
        return callback in self._deadlines

    def seconds_left(self, callback: Callable[[], None]) -> float | None:
        """How long it is until a deadline, if it is set."""
        at = self._deadlines.get(callback)
        return None if at is None else max(0.0, at - self._clock.monotonic())

    def stop(self) -> None:
        """Forget all."""
        self._deadlines.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = at
        self._timer = self._clock.call_at(at, self._fire)

    def _fire(self) -> None:
        self._timer = None
        now = self._clock.monotonic()
        due = [(callback, at) for callback, at in self._deadlines.items() if at <= now]
        later = [at for at in self._deadlines.values() if at > now]
        if later:
            self._arm(min(later))
        for callback, at in due:
            # One that came before may have cleared or moved it.
            if self._deadlines.get(callback) == at:
                del self._deadlines[callback]
                callback()
