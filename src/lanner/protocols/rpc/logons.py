"""How often a log-on may fail.

Each failure is drawn from two buckets that fill with time: one of the source's address, one of the address
and the user together. When a bucket is empty, log-ons are refused without looking at them. No bucket is for a
user alone: anybody could lock an administrator out with it.

There is a fixed number of buckets and a keyed hash says which is whose, so memory is constant, and no flood
pushes anybody's bucket out.
"""

from __future__ import annotations

import ipaddress
import logging
import secrets
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b

from lanner.protocols.rpc.accounts import Accounts
from lanner.protocols.rpc.errors import SecurityError
from lanner.protocols.rpc.notices import Notices

__all__ = ["Buckets", "LogonLimits", "Logons", "source_of"]

log = logging.getLogger(__name__)

BUCKETS = 4_096
"""Of each kind: 64 KiB. Two sources share one by chance, and nobody can arrange it without the key."""


MAX_LOGGED = 64
"""Characters of a name in the log; whoever fails to log on chooses it."""


@dataclass(frozen=True, slots=True)
class LogonLimits:
    """What can be set about it."""

    per_user: int = 5
    """Failures in a row for one user from one address: somebody who mistypes, not somebody who tries."""
    per_source: int = 20
    """Failures in a row from one address, whatever the users."""
    seconds: float = 30.0
    """After this time without failures, one more is allowed: 2,880 guesses a day."""


class Buckets:
    """Token buckets in constant memory."""

    def __init__(self, size: int, seconds: float, count: int = BUCKETS) -> None:
        self._size, self._seconds, self._count = float(size), seconds, count
        self._key = secrets.token_bytes(16)
        self._levels = array("d", [self._size]) * count
        self._times = array("d", [0.0]) * count

    def _fill(self, name: str, now: float) -> int:
        digest = blake2b(name.encode("utf-8", "replace"), key=self._key, digest_size=4).digest()
        index = int.from_bytes(digest, "little") % self._count
        passed = max(0.0, now - self._times[index])
        self._levels[index] = min(self._size, self._levels[index] + passed / self._seconds)
        self._times[index] = now
        return index

    def has(self, name: str, now: float) -> bool:
        """Whether there is one to draw."""
        return self._levels[self._fill(name, now)] >= 1.0

    def draw(self, name: str, now: float) -> bool:
        """Draw one, if there is one."""
        index = self._fill(name, now)
        if self._levels[index] < 1.0:
            return False
        self._levels[index] -= 1.0
        return True


def source_of(host: str) -> str:
    """Whose failures these are: an address, or the network of an IPv6 host, which has any number of them."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ipaddress.ip_network((address, 64), strict=False))
    return str(address)


class Logons:
    """Finds users for log-ons, and counts those that fail."""

    def __init__(
        self, accounts: Accounts, clock: Callable[[], float], limits: LogonLimits | None = None
    ) -> None:
        self.accounts = accounts
        self._clock = clock
        limits = limits or LogonLimits()
        self._users = Buckets(limits.per_user, limits.seconds)
        self._sources = Buckets(limits.per_source, limits.seconds)
        self._notices = Notices(log, logging.WARNING)

    @property
    def failures(self) -> int:
        """Log-ons that were refused."""
        return self._notices.count

    def find(self, user: str, source: str) -> bytes | None:
        """The hash of a user; refused where too many log-ons failed."""
        now = self._clock()
        if not self._sources.has(source, now) or not self._users.has(f"{source} {user.casefold()}", now):
            raise SecurityError("too many log-ons failed")
        return self.accounts.nt_hash(user)

    def failed(self, user: str, source: str, reason: str) -> None:
        """Somebody was refused."""
        now = self._clock()
        self._sources.draw(source, now)
        if user:
            self._users.draw(f"{source} {user.casefold()}", now)
        self._notices.note(now, "RPC: a log-on from %s as %r failed: %s", source, user[:MAX_LOGGED], reason)
