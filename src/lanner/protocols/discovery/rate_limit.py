"""How many replies a source gets.

A reply is larger than its request, and a sender's address can be forged: without a limit, a server would
multiply a flood onto whoever is named as the sender. Each source draws from a bucket of replies that fills
with time.

There is a fixed number of buckets, and a keyed hash says which one is a source's: memory is constant, no
flood can push another source's bucket out, and no source ever gets more than one bucket gives. Two sources
that share a bucket, which nobody can arrange without the key, share its replies.
"""

from __future__ import annotations

import secrets
from array import array
from dataclasses import dataclass
from hashlib import blake2b

__all__ = ["RateLimit", "RateLimits"]


@dataclass(frozen=True, slots=True)
class RateLimits:
    """What can be set about it."""

    per_source: float = 2.0
    """Replies a second to one address: a client asks once in 15 seconds (3.1.2.1), several may share one."""
    burst: int = 10
    """Replies that an address may get at once, after a silence."""
    total: float = 1_000.0
    """Replies a second to everybody: what a flood with forged senders can make us send, and spend."""
    total_burst: int = 2_000
    """Replies to everybody at once: a power cut ends, and a whole site asks in one moment."""


BUCKETS = 16_384
"""Buckets of sources: 256 KiB. A source shares its own with one of 16,384 others."""


class RateLimit:
    """Says whether a source may be answered now."""

    def __init__(self, limits: RateLimits | None = None, *, key: bytes | None = None) -> None:
        self.limits = limits or RateLimits()
        self._key = secrets.token_bytes(16) if key is None else key
        self._levels = array("d", [float(self.limits.burst)]) * BUCKETS
        self._times = array("d", [0.0]) * BUCKETS
        self._total = float(self.limits.total_burst)
        self._total_time = 0.0

    def allow(self, source: str, now: float) -> bool:
        """Draw one reply for this source, if there is one."""
        limits = self.limits
        digest = blake2b(source.encode(), key=self._key, digest_size=4).digest()
        index = int.from_bytes(digest, "little") % BUCKETS
        # A clock that steps back fills nothing.
        passed = max(0.0, now - self._times[index])
        level = min(float(limits.burst), self._levels[index] + passed * limits.per_source)
        self._levels[index], self._times[index] = level, now
        if level < 1.0:
            return False
        total = min(float(limits.total_burst), self._total + max(0.0, now - self._total_time) * limits.total)
        self._total, self._total_time = total, now
        if total < 1.0:
            return False
        self._levels[index] = level - 1.0
        self._total = total - 1.0
        return True
