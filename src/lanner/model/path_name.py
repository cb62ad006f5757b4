"""Path names: a computer and a queue on it (MS-MQMQ 2.1.1), and names of whichever sort a person types."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Self

from lanner.model.direct_name import DirectName, DirectProtocol
from lanner.model.errors import InvalidNameError
from lanner.model.format_name import FormatName, read_format_name
from lanner.model.name_hints import FORMAT_NAME_PREFIX, looks_like_format_name, parse_or_suggest
from lanner.model.names import (
    Name,
    QueueKind,
    QueueSuffix,
    canonical_host,
    check_computer,
    check_queue,
    check_subqueue,
    machine_queue_suffix,
    read_queue_part,
)

__all__ = ["LOCAL_COMPUTER", "PathName", "QueueKind", "parse_name", "parse_path_name"]

LOCAL_COMPUTER = "."

_EXAMPLE = r".\private$\orders"
_URL = re.compile(r"https?:", re.IGNORECASE)
_DIRECT_PREFIX = re.compile(r"DIRECT=(?:OS|TCP):", re.IGNORECASE)

_MARKERS = {QueueKind.PUBLIC: "", QueueKind.PRIVATE: "private$\\", QueueKind.SYSTEM: "system$;"}


@dataclass(frozen=True, slots=True, eq=False)
class PathName(Name):
    r"""A queue on a computer, by name: ``.\private$\orders`` (MS-MQMQ 2.1.1)."""

    computer: str
    queue: str
    kind: QueueKind = QueueKind.PUBLIC
    subqueue: str = ""
    journal: bool = False

    def __post_init__(self) -> None:
        check_computer(self.computer)
        check_queue(self.kind, self.queue)
        if self.subqueue:
            check_subqueue(self.subqueue, self.suffix)
        if self.journal and self.kind is QueueKind.SYSTEM:
            raise InvalidNameError(f"the system queue {self.queue!r} has no journal")
        # One spelling for one address, or equal names would differ.
        object.__setattr__(self, "computer", canonical_host(self.computer))

    @property
    def is_private(self) -> bool:
        """Whether this is a private queue."""
        return self.kind is QueueKind.PRIVATE

    @property
    def is_local(self) -> bool:
        """Whether the computer is given as ``.``; the local one has other names too."""
        return self.computer == LOCAL_COMPUTER

    @property
    def suffix(self) -> QueueSuffix:
        """Which journal or dead-letter queue this is, if any."""
        if self.kind is QueueKind.SYSTEM:
            return machine_queue_suffix(self.queue)
        return QueueSuffix.JOURNAL if self.journal else QueueSuffix.NONE

    @property
    def is_read_only(self) -> bool:
        """Whether this is a journal or a dead-letter queue, to which nobody can send."""
        return self.suffix.is_read_only

    def with_computer(self, computer: str) -> Self:
        """Name the same queue on another computer."""
        return replace(self, computer=computer)

    def to_direct_os(self) -> DirectName:
        """Give the direct format name of this queue, by computer name (MS-MQMQ 2.1.2)."""
        is_system = self.kind is QueueKind.SYSTEM
        if is_system and self.suffix is QueueSuffix.NONE:
            raise InvalidNameError(f"the system queue {self.queue!r} has no direct format name")
        return DirectName(
            DirectProtocol.OS,
            self.computer,
            "" if is_system else self.queue,
            is_private=self.is_private,
            subqueue=self.subqueue,
            suffix=self.suffix,
        )

    def __str__(self) -> str:
        suffix = ";journal" if self.journal else f";{self.subqueue}" if self.subqueue else ""
        return f"{self.computer}\\{_MARKERS[self.kind]}{self.queue}{suffix}"


def parse_path_name(text: str) -> PathName:
    """Read a path name.

    Raises InvalidNameError, which says what is wrong and suggests the nearest right path name.
    """
    return parse_or_suggest(text, _read_path_name, adapt=_without_direct, example=_EXAMPLE)


def parse_name(text: str) -> PathName | FormatName:
    """Read whichever a person types: a path name, or a format name with or without ``FormatName:``.

    Raises InvalidNameError, which says what is wrong and suggests the nearest right name of either sort.
    """
    return parse_or_suggest(text, _read_name, example=_EXAMPLE)


def _without_direct(text: str) -> str:
    return _DIRECT_PREFIX.sub("", text, count=1)


def _read_name(text: str) -> PathName | FormatName:
    if text[: len(FORMAT_NAME_PREFIX)].lower() == FORMAT_NAME_PREFIX:
        return read_format_name(text[len(FORMAT_NAME_PREFIX) :])
    return read_format_name(text) if looks_like_format_name(text) else _read_path_name(text)


def _read_path_name(text: str) -> PathName:
    _check_is_path_name(text)
    computer, backslash, path = text.partition("\\")
    if not backslash:
        raise InvalidNameError("there is no backslash between a computer name and a queue name")
    check_computer(computer)
    part = read_queue_part([segment.split(";") for segment in path.split("\\")])
    journal = part.suffix is QueueSuffix.JOURNAL
    return PathName(computer, part.queue, part.kind, part.subqueue, journal)


def _check_is_path_name(text: str) -> None:
    if not text:
        raise InvalidNameError("the name is empty")
    if _URL.match(text):
        raise InvalidNameError("a URL alone is not a name: DIRECT= must stand before it")
    if looks_like_format_name(text):
        raise InvalidNameError("this is a format name where a path name is needed")
