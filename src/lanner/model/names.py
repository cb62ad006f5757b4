"""The parts that queue names are made of, and the rules each part follows (MS-MQMQ 2.1).

Path names and format names are built from the same computers, queues, subqueues and suffixes. Their
rules stand here once; the two grammars are in ``path_name`` and ``format_name``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from ipaddress import ip_address
from uuid import UUID

from lanner.model.errors import InvalidNameError

__all__ = [
    "ILLEGAL_IN_QUEUE",
    "MAX_COMPUTER_LENGTH",
    "MAX_NAME_LENGTH",
    "MAX_QUEUE_LENGTH",
    "MAX_SUBQUEUE_LENGTH",
    "NOT_A_COMPUTER",
    "Name",
    "QueueKind",
    "QueuePart",
    "QueueSuffix",
    "canonical_host",
    "check_computer",
    "check_part",
    "check_queue",
    "check_subqueue",
    "check_whole",
    "is_address",
    "machine_queue_suffix",
    "quote",
    "read_guid",
    "read_queue_part",
    "read_suffix",
]

# Room for the thousand elements that a multiple-element name may have, at an ordinary length of 65
# characters each. A longer name is refused before anything else looks at it.
MAX_NAME_LENGTH = 65_536

# MS-MQMQ 2.1.1.
MAX_COMPUTER_LENGTH = 256
MAX_QUEUE_LENGTH = 124
MAX_SUBQUEUE_LENGTH = 32

# How much of a wrong part an error message repeats.
_QUOTED_LENGTH = 60

_PRIVATE = "private$"
_SYSTEM = "system$"
_JOURNAL = "journal"

# Deviation from MS-MQMQ 2.1.1, which lets a computer's name have any visible character: these four would
# make the name read as something else (a separator, a separator typed wrongly, the next element of a
# multiple-element name, a format name), and no host has them.
_ILLEGAL_IN_COMPUTER = re.compile(r"[^\x21-\x7E]|[\\/,=]")
# The class of MSMQ 4.0 to 6.0, which is the same for a queue and a subqueue.
ILLEGAL_IN_QUEUE = re.compile(r"[^\x21\x23-\x2A\x2D-\x3A\x3C-\x5B\x5D-\x7F]")
_NOT_ASCII = re.compile(r"[^\x00-\x7F]")
_GUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")

# Whoever writes these in the place of the computer has left the computer out.
NOT_A_COMPUTER = frozenset({"private", _PRIVATE, _SYSTEM})


class QueueKind(Enum):
    """Which of the three forms of MS-MQMQ 2.1.1 a queue's path has."""

    PUBLIC = "public"
    PRIVATE = "private"
    SYSTEM = "system"


class QueueSuffix(IntEnum):
    """What a name means beside the queue or computer itself (MS-MQMQ 2.2.11).

    A subqueue is kept by its name, so ``SUBQUEUE`` is for the wire alone.
    """

    NONE = 0
    JOURNAL = 1
    DEADLETTER = 2
    DEADXACT = 3
    XACTONLY = 4
    SUBQUEUE = 5

    @property
    def is_read_only(self) -> bool:
        """Whether only the queue manager itself puts messages there."""
        return self in _MACHINE_QUEUES.values()


_MACHINE_QUEUES = {
    suffix.name.lower(): suffix
    for suffix in (QueueSuffix.JOURNAL, QueueSuffix.DEADLETTER, QueueSuffix.DEADXACT)
}


class Name:
    """A name that compares without case, as hosts and queues do."""

    __slots__ = ()

    @property
    def key(self) -> str:
        """The name in the one spelling to compare and index by."""
        return str(self).casefold()

    def __eq__(self, other: object) -> bool:
        return self.key == other.key if isinstance(other, Name) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.key)


def quote(text: str) -> str:
    """Show a part of a name in a message: escaped, and cut if it is very long."""
    return repr(text if len(text) <= _QUOTED_LENGTH else f"{text[:_QUOTED_LENGTH]}...")


def check_whole(text: str) -> None:
    """Refuse a name that is too long to look at, or that has a character no part of any name allows."""
    if len(text) > MAX_NAME_LENGTH:
        raise InvalidNameError(f"the name has {len(text)} characters; the limit is {MAX_NAME_LENGTH}")
    # Some letters outside ASCII turn into ASCII ones when their case changes, and would pass for a keyword.
    if found := _NOT_ASCII.search(text):
        raise InvalidNameError(
            f"the name has {found[0]!r} at position {found.start() + 1}; only ASCII characters are allowed"
        )


def check_part(what: str, text: str, limit: int, illegal: re.Pattern[str]) -> None:
    """Refuse a part that is empty, too long, or has a character that matches ``illegal``."""
    if not text:
        raise InvalidNameError(f"the {what} is empty")
    if len(text) > limit:
        raise InvalidNameError(f"the {what} {quote(text)} has {len(text)} characters; the limit is {limit}")
    if found := illegal.search(text):
        raise InvalidNameError(
            f"the {what} {quote(text)} has {found[0]!r} at position {found.start() + 1}, "
            "which is not allowed there"
        )


def check_computer(text: str) -> None:
    """Refuse what cannot be a computer's name (MS-MQMQ 2.1.1); ``.`` is the local one."""
    check_part("computer name", text, MAX_COMPUTER_LENGTH, _ILLEGAL_IN_COMPUTER)
    if text.lower() in NOT_A_COMPUTER:
        raise InvalidNameError(f"{quote(text)} stands where the computer name belongs")
    if ":" in text and not is_address(text):
        raise InvalidNameError(f"the computer name {quote(text)} has ':' but is not an IPv6 address")


def canonical_host(host: str) -> str:
    """Give an IPv6 address its one shortest spelling, and any other host back as it is."""
    return str(ip_address(host)) if ":" in host and is_address(host) else host


def is_address(text: str) -> bool:
    """Tell whether this is an IPv4 or IPv6 address, without brackets."""
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def check_queue(kind: QueueKind, text: str) -> None:
    """Refuse what cannot be the name of such a queue (MS-MQMQ 2.1.1)."""
    check_part("queue name", text, MAX_QUEUE_LENGTH, ILLEGAL_IN_QUEUE)
    if kind is QueueKind.PUBLIC and text.lower() in (_PRIVATE, _SYSTEM):
        raise InvalidNameError(f"there is no queue name after {text!r}")


def check_subqueue(text: str, suffix: QueueSuffix = QueueSuffix.NONE) -> None:
    """Refuse what cannot be the name of a subqueue of a queue with such a suffix (MS-MQMQ 2.1.1)."""
    check_part("subqueue name", text, MAX_SUBQUEUE_LENGTH, ILLEGAL_IN_QUEUE)
    if text.lower() == _JOURNAL:
        raise InvalidNameError(f"{text!r} names the queue's journal and cannot be a subqueue's name")
    if suffix is not QueueSuffix.NONE:
        raise InvalidNameError(f"a {suffix.name} has no subqueues, so not {text!r} either")


def machine_queue_suffix(text: str) -> QueueSuffix:
    """Tell which of a computer's own queues this is: ``NONE`` if it is none of the three."""
    return _MACHINE_QUEUES.get(text.lower(), QueueSuffix.NONE)


def read_guid(text: str) -> UUID:
    """Read a GUID as MS-MQMQ 2.1.3 writes it: five groups of hexadecimal digits, without braces."""
    if not _GUID.fullmatch(text):
        raise InvalidNameError(
            f"{quote(text)} is not a GUID: 8, 4, 4, 4 and 12 hexadecimal digits with '-' between them"
        )
    return UUID(text)


def read_suffix(pieces: Sequence[str]) -> tuple[str, QueueSuffix]:
    """Read what follows a queue, split at each semicolon, as a subqueue's name or a suffix.

    A journal has no subqueues and a subqueue no journal: MS-MQMQ 2.2.11 has one place for both.
    """
    if not pieces:
        return "", QueueSuffix.NONE
    if len(pieces) > 1:
        raise InvalidNameError(f"one subqueue or journal may follow a queue, not {len(pieces)} of them")
    if not pieces[0]:
        raise InvalidNameError("there is nothing after the ';'")
    if pieces[0].lower() == _JOURNAL:
        return "", QueueSuffix.JOURNAL
    return pieces[0], QueueSuffix.NONE


@dataclass(frozen=True, slots=True)
class QueuePart:
    """All of a path that stands behind the computer: read, and not yet checked."""

    kind: QueueKind
    queue: str
    subqueue: str
    suffix: QueueSuffix


def read_queue_part(segments: Sequence[Sequence[str]]) -> QueuePart:
    """Read a path's segments, each split at its semicolons, as one of the forms of MS-MQMQ 2.1.1."""
    *markers, (queue, *suffixes) = segments
    if markers:
        _check_private_marker(markers)
        return QueuePart(QueueKind.PRIVATE, queue, *read_suffix(suffixes))
    if queue.lower() == _SYSTEM and suffixes:
        return QueuePart(QueueKind.SYSTEM, suffixes[0], *read_suffix(suffixes[1:]))
    return QueuePart(QueueKind.PUBLIC, queue, *read_suffix(suffixes))


def _check_private_marker(markers: Sequence[Sequence[str]]) -> None:
    if len(markers) > 1:
        raise InvalidNameError(f"the path has {len(markers) + 1} parts after the computer; the limit is 2")
    marker = ";".join(markers[0])
    if marker.lower() != _PRIVATE:
        raise InvalidNameError(
            f"between the computer and the queue only {_PRIVATE!r} may stand, not {quote(marker)}"
        )
