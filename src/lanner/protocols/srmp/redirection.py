"""Redirections: which URL is meant when another is said (MC-MQSRM 3.1.1.1.7 to 3.1.1.1.10).

A ``from`` may end in an asterisk, which stands for whatever follows. URLs compare without case, and with the
port of their scheme whether or not it is written. The first that matches counts.
"""

from __future__ import annotations

import re
from enum import StrEnum
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from lanner.model.errors import InvalidNameError, InvalidPropertyError
from lanner.model.format_name import DirectName, parse_format_name

__all__ = ["Redirection", "RedirectionKind", "Redirections", "matches"]

MAX_REDIRECTIONS = 1_000
"""In each list: every message is compared with all of them."""

MAX_URL_LENGTH = 2_048

_URL = re.compile(r"https?://[^\s/?#]+(/[^\s?#]*)?", re.IGNORECASE)
_BEGINNING = re.compile(r"https?://[^\s?#]*", re.IGNORECASE)
"""What may stand before an asterisk."""
_DEFAULT_PORT = re.compile(r"^(http://[^/]*?):80(?=/|$)|^(https://[^/]*?):443(?=/|$)")


class RedirectionKind(StrEnum):
    """Which of the lists is meant."""

    INBOUND = "inbound"
    OUTBOUND = "outbound"
    RECEIPTS = "receipts"
    EXCEPTION = "exception"
    DEFAULT_RECEIPTS = "default-receipts"


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
        lists = (self.inbound, self.outbound, self.receipts)
        if max(map(len, (*lists, self.outbound_exceptions))) > MAX_REDIRECTIONS:
            raise InvalidPropertyError(f"there are more than {MAX_REDIRECTIONS:,} redirections of a kind")
        for entries in lists:
            for entry in entries:
                _check_pattern(entry.from_)
                _check_url(entry.to)
        for pattern in self.outbound_exceptions:
            _check_pattern(pattern)
        for entry in self.inbound:
            _check_queue(entry.to)
        if self.default_receipts:
            _check_url(self.default_receipts)

    def adding(self, kind: RedirectionKind, from_: str, to: str, *, is_first: bool = False) -> Redirections:
        """With one more, behind the others or before them. One with the same ``from`` is replaced."""
        if not from_ and kind is not RedirectionKind.DEFAULT_RECEIPTS:
            raise InvalidPropertyError(f"{kind}: it is not said from which URL")
        if not to and kind is not RedirectionKind.EXCEPTION:
            raise InvalidPropertyError(f"{kind}: it is not said to which URL")
        if kind is RedirectionKind.DEFAULT_RECEIPTS:
            _check_unused(kind, from_)
            return replace(self, default_receipts=to)
        if kind is RedirectionKind.EXCEPTION:
            _check_unused(kind, to)
            patterns = [pattern for pattern in self.outbound_exceptions if not _is_same(pattern, from_)]
            return replace(self, outbound_exceptions=(*patterns, from_))
        entries = list(self._entries(kind))
        added = Redirection(from_=from_, to=to)
        places = [place for place, entry in enumerate(entries) if _is_same(entry.from_, from_)]
        if places and not is_first:
            entries[places[0]] = added
        else:
            entries = [entry for entry in entries if not _is_same(entry.from_, from_)]
            entries.insert(0 if is_first else len(entries), added)
        return replace(self, **{kind.value: tuple(entries)})

    def removing(self, kind: RedirectionKind, from_: str = "") -> Redirections:
        """Without one."""
        if kind is RedirectionKind.DEFAULT_RECEIPTS:
            _check_unused(kind, from_)
            left = replace(self, default_receipts="")
        elif kind is RedirectionKind.EXCEPTION:
            patterns = [pattern for pattern in self.outbound_exceptions if not _is_same(pattern, from_)]
            left = replace(self, outbound_exceptions=tuple(patterns))
        else:
            entries = [entry for entry in self._entries(kind) if not _is_same(entry.from_, from_)]
            left = replace(self, **{kind.value: tuple(entries)})
        if left == self:
            of = f" from {from_}" if from_ else ""
            raise InvalidPropertyError(
                f"nothing is redirected{of} ({kind})", hint="see what is: lanner srmp redirect list"
            )
        return left

    def _entries(self, kind: RedirectionKind) -> tuple[Redirection, ...]:
        entries: tuple[Redirection, ...] = getattr(self, kind.value)
        return entries

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


def _is_same(pattern: str, other: str) -> bool:
    return _canonical(pattern) == _canonical(other)


def _check_unused(kind: RedirectionKind, url: str) -> None:
    if url:
        raise InvalidPropertyError(f"{kind}: it takes one URL")


def _check_pattern(pattern: str) -> None:
    beginning = pattern.removesuffix("*")
    if beginning == pattern or len(pattern) > MAX_URL_LENGTH or not _BEGINNING.fullmatch(beginning):
        _check_url(beginning)


def _check_queue(url: str) -> None:
    try:
        name = parse_format_name(f"DIRECT={url}")
    except InvalidNameError as error:
        raise InvalidPropertyError(f"{url[:80]!r} is no queue: {error}") from error
    if not isinstance(name, DirectName):
        raise InvalidPropertyError(f"{url[:80]!r} is no queue")


def _check_url(url: str) -> None:
    if len(url) > MAX_URL_LENGTH or not _URL.fullmatch(url) or not _has_host(url):
        raise InvalidPropertyError(
            f"{url[:80]!r} is not a URL", hint="write it as http://host/msmq/private$/queue, or http://host/*"
        )


def _has_host(url: str) -> bool:
    """Whether a connection could be made: what stands before the path is a name and a port."""
    try:
        parts = urlsplit(url)
        return bool(parts.hostname) and parts.port != 0 and "@" not in parts.netloc
    except ValueError:
        return False
