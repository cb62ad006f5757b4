"""Redirections: which URL is meant when another is said (MC-MQSRM 3.1.1.1.7 to 3.1.1.1.10).

A ``from`` may end in an asterisk, which stands for whatever follows. URLs compare without case, and with the
port of their scheme whether or not it is written. The first that matches counts.
"""

from __future__ import annotations

import re

import msgspec

from lanner.model.errors import InvalidPropertyError

__all__ = ["Redirection", "Redirections", "matches"]

MAX_REDIRECTIONS = 1_000
"""In each list: every message is compared with all of them."""

MAX_URL_LENGTH = 2_048

_URL = re.compile(r"https?://[^\s/?#]+(/[^\s?#]*)?", re.IGNORECASE)
_DEFAULT_PORT = re.compile(r"^(http://[^/]*?):80(?=/|$)|^(https://[^/]*?):443(?=/|$)")


class Redirection(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"from_": "from"}
):
    """From one URL to another (3.1.1.1.10)."""

    from_: str
    to: str


class Redirections(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that an administrator has redirected."""

    inbound: tuple[Redirection, ...] = ()
    """Messages that come for one queue and go into another (3.1.1.1.10.2)."""
    outbound: tuple[Redirection, ...] = ()
    """Destinations that are reached through another host (3.1.1.1.10.1)."""
    outbound_exceptions: tuple[str, ...] = ()
    """Destinations that are reached directly all the same (3.1.1.1.9)."""
    receipts: tuple[Redirection, ...] = ()
    """Where stream receipts are to be sent, by destination (3.1.1.1.10.3)."""
    default_receipts: str = ""
    """Where they are to be sent otherwise; nothing for this manager's own URL (3.1.1.1.8)."""

    def check(self) -> None:
        """Refuse what cannot be meant."""
        for entries in (self.inbound, self.outbound, self.receipts):
            if len(entries) > MAX_REDIRECTIONS:
                raise InvalidPropertyError(f"there are more than {MAX_REDIRECTIONS:,} redirections of a kind")
            for entry in entries:
                _check_url(entry.from_.removesuffix("*"))
                _check_url(entry.to)
        for pattern in self.outbound_exceptions:
            _check_url(pattern.removesuffix("*"))
        if self.default_receipts:
            _check_url(self.default_receipts)

    def inbound_target(self, url: str) -> str:
        """Which queue a message that came for ``url`` goes into."""
        return _first(self.inbound, url) or url

    def outbound_host(self, url: str) -> str:
        """The URL whose host is connected to for a destination."""
        redirected = _first(self.outbound, url)
        if redirected is None or any(matches(pattern, url) for pattern in self.outbound_exceptions):
            return url
        return redirected

    def receipts_url(self, url: str, own: str) -> str:
        """Where receipts for a stream to ``url`` are to be sent."""
        return _first(self.receipts, url) or self.default_receipts or own


def matches(pattern: str, url: str) -> bool:
    """Whether a URL is meant by a pattern."""
    wanted = pattern.removesuffix("*")
    if wanted != pattern:
        return _canonical(url).startswith(_canonical(wanted))
    return _canonical(url) == _canonical(pattern)


def _first(redirections: tuple[Redirection, ...], url: str) -> str | None:
    return next((entry.to for entry in redirections if matches(entry.from_, url)), None)


def _canonical(url: str) -> str:
    return _DEFAULT_PORT.sub(r"\1\2", url.casefold())


def _check_url(url: str) -> None:
    if len(url) > MAX_URL_LENGTH or not _URL.fullmatch(url):
        raise InvalidPropertyError(
            f"{url[:80]!r} is not a URL", hint="write it as http://host/msmq/private$/queue, or http://host/*"
        )
