"""Which queue a message that comes in is for (MC-MQSRM 3.1.5.1.3), and whether everyone may send there.

Most messages go to few queues, so what was found is remembered: as long as the queue is there, its security
descriptor is the same, and nobody redirects.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from lanner.manager.queues import Queue
from lanner.manager.transfers import Transfers
from lanner.model.errors import InvalidNameError
from lanner.model.format_name import DirectName, parse_format_name
from lanner.model.security import EVERYONE, SecurityDescriptor, Token
from lanner.protocols.srmp.redirection import Redirections
from lanner.protocols.srmp.wire.queue_uri import format_name_of

__all__ = ["Destination", "Destinations"]

MAX_REMEMBERED = 10_000
MAX_REMEMBERED_LENGTH = 300
"""Destinations that are remembered, and how long the URL of each may be: senders choose them."""

_EVERYONE = Token(EVERYONE)


class Destination(NamedTuple):
    """Where a message goes."""

    name: DirectName
    queue: Queue | None
    is_local: bool
    """Whether it stays on this machine."""
    is_redirected: bool = False
    """Whether an administrator has said that it goes there."""


class Destinations:
    """Finds destinations, and remembers them."""

    def __init__(self, transfers: Transfers, redirections: Callable[[], Redirections]) -> None:
        self._transfers = transfers
        self._redirections = redirections
        self._redirected_by = redirections()
        self._known: dict[tuple[str, str], Destination] = {}
        self._open: dict[int, SecurityDescriptor | None] = {}

    def find(self, uri: str, our_address: str) -> Destination:
        """Find where a message to ``uri`` goes, which reached us at an address. Raises InvalidNameError."""
        redirections = self._redirections()
        if redirections is not self._redirected_by:
            self._known.clear()
            self._redirected_by = redirections
        known = self._known.get((uri, our_address))
        if known is not None and known.queue is not None and not known.queue.is_deleted:
            return known
        destination = self._find(uri, our_address, redirections)
        if destination.queue is not None and len(uri) <= MAX_REMEMBERED_LENGTH:
            if len(self._known) >= MAX_REMEMBERED:
                self._known.clear()
            self._known[uri, our_address] = destination
        return destination

    def check_access(self, queue: Queue) -> None:
        """Refuse a message to a queue that not everyone may send to (3.1.5.1.12)."""
        if queue.id not in self._open or self._open[queue.id] is not queue.security:
            self._transfers.check_access(queue, _EVERYONE)
            self._open[queue.id] = queue.security

    def _find(self, uri: str, our_address: str, redirections: Redirections) -> Destination:
        name = _parse(uri)
        if not self._is_local(name.host, our_address):
            return Destination(name, None, is_local=False)
        target = redirections.inbound_target(uri)
        if target != uri:
            name = _parse(target)
            if not self._is_local(name.host, our_address):
                return Destination(name, None, is_local=False, is_redirected=True)
        return Destination(name, self._transfers.local_queue(name), is_local=True)

    def _is_local(self, host: str, our_address: str) -> bool:
        return host == our_address or self._transfers.is_local_host(host)


def _parse(uri: str) -> DirectName:
    name = parse_format_name(format_name_of(uri) or uri)
    if not isinstance(name, DirectName):
        raise InvalidNameError(f"{uri[:100]!r} is no URL of a queue")
    return name
