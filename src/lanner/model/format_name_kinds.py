"""The kinds of format names as values: all of MS-MQMQ 2.1 but the direct ones, which have a module.

A value checks itself when it is made, so one that exists is right: ``parse_format_name(str(name))``
gives an equal name back.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Address
from typing import Self
from uuid import UUID

from lanner.model.errors import InvalidNameError
from lanner.model.names import Name, QueueSuffix, check_part, check_subqueue, check_whole

__all__ = [
    "MAX_DOMAIN_LENGTH",
    "MAX_ELEMENTS",
    "MAX_PORT",
    "ConnectorName",
    "DistributionListName",
    "FormatName",
    "MachineName",
    "MulticastName",
    "MultipleName",
    "PrivateName",
    "PublicName",
    "SingleQueueName",
    "check_element_count",
]

# Each element makes the queue manager copy the message once; a thousand copies are a mailing, more a flood.
MAX_ELEMENTS = 1000

MAX_DOMAIN_LENGTH = 255
MAX_PORT = 65_535
_MAX_PRIVATE_NUMBER = 0xFFFF_FFFF

# MS-MQMQ 2.1.5 allows every visible character; a comma would start the next element (2.1.7).
_ILLEGAL_IN_DOMAIN = re.compile(r"[^\x21-\x7E]|,")


class FormatName(Name):
    """Any format name; what it does not have, such as a subqueue, is empty."""

    __slots__ = ()

    @property
    def subqueue(self) -> str:
        """The subqueue's name, or an empty string."""
        return ""

    @property
    def suffix(self) -> QueueSuffix:
        """What the name means beside the queue or computer itself."""
        return QueueSuffix.NONE

    @property
    def is_read_only(self) -> bool:
        """Whether this is a journal or a dead-letter queue, to which nobody can send."""
        return self.suffix.is_read_only

    @property
    def elements(self) -> tuple[FormatName, ...]:
        """The names that a message to this one goes to: itself, unless it has several elements."""
        return (self,)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SingleQueueName(FormatName):
    """What names of one application queue share: a subqueue or a journal may follow."""

    subqueue: str = ""
    suffix: QueueSuffix = QueueSuffix.NONE

    def with_subqueue(self, subqueue: str) -> Self:
        """Name a subqueue of this queue, in the place of any that is named now."""
        check_subqueue(subqueue)
        return replace(self, subqueue=subqueue)

    def without_subqueue(self) -> Self:
        """Name the queue that this subqueue belongs to."""
        return replace(self, subqueue="")

    def journal(self) -> Self:
        """Name this queue's journal."""
        if self.is_read_only:
            raise InvalidNameError(f"{self} has no journal: it is itself a read-only queue")
        return replace(self, suffix=QueueSuffix.JOURNAL)

    def _check_suffix(self, *allowed: QueueSuffix) -> None:
        if self.suffix is not QueueSuffix.NONE and self.suffix not in allowed:
            raise InvalidNameError(f"a name of this kind has no suffix {self.suffix.name}")
        if self.subqueue:
            check_subqueue(self.subqueue, self.suffix)

    def _suffix_text(self, encode: Callable[[str], str] = str) -> str:
        if self.subqueue:
            return f";{encode(self.subqueue)}"
        return _suffix_text(self.suffix)


def _suffix_text(suffix: QueueSuffix) -> str:
    return f";{suffix.name}" if suffix else ""


@dataclass(frozen=True, slots=True, eq=False)
class PublicName(SingleQueueName):
    """A public queue by its identifier in the directory (MS-MQMQ 2.1.3)."""

    queue_id: UUID

    def __post_init__(self) -> None:
        self._check_suffix(QueueSuffix.JOURNAL)

    def __str__(self) -> str:
        return f"PUBLIC={self.queue_id}{self._suffix_text()}"


@dataclass(frozen=True, slots=True, eq=False)
class PrivateName(SingleQueueName):
    """A private queue by its computer's identifier and its number there (MS-MQMQ 2.1.4)."""

    machine_id: UUID
    number: int

    def __post_init__(self) -> None:
        if not 0 <= self.number <= _MAX_PRIVATE_NUMBER:
            raise InvalidNameError(f"the private queue's number {self.number:#x} is not one of 32 bits")
        self._check_suffix(QueueSuffix.JOURNAL)

    def __str__(self) -> str:
        return f"PRIVATE={self.machine_id}\\{self.number:x}{self._suffix_text()}"


@dataclass(frozen=True, slots=True, eq=False)
class DistributionListName(FormatName):
    """A distribution list in the directory, with the domain that keeps it if given (MS-MQMQ 2.1.5)."""

    list_id: UUID
    domain: str = ""

    def __post_init__(self) -> None:
        if self.domain:
            check_part("domain name", self.domain, MAX_DOMAIN_LENGTH, _ILLEGAL_IN_DOMAIN)

    def __str__(self) -> str:
        return f"DL={self.list_id}@{self.domain}" if self.domain else f"DL={self.list_id}"


@dataclass(frozen=True, slots=True, eq=False)
class MachineName(FormatName):
    """A computer's journal or one of its dead-letter queues (MS-MQMQ 2.1.6)."""

    machine_id: UUID
    suffix: QueueSuffix = QueueSuffix.NONE

    def __post_init__(self) -> None:
        if self.suffix is not QueueSuffix.NONE and not self.suffix.is_read_only:
            raise InvalidNameError(f"a machine name has no suffix {self.suffix.name}")

    def __str__(self) -> str:
        return f"MACHINE={self.machine_id}{_suffix_text(self.suffix)}"


@dataclass(frozen=True, slots=True, eq=False)
class ConnectorName(FormatName):
    """A connector's queue, or its queue for transactional messages (MS-MQMQ 2.1.6)."""

    connector_id: UUID
    is_transactional: bool = False

    @property
    def suffix(self) -> QueueSuffix:
        """``XACTONLY`` for the transactional queue (MS-MQMQ 2.2.11)."""
        return QueueSuffix.XACTONLY if self.is_transactional else QueueSuffix.NONE

    def __str__(self) -> str:
        return f"CONNECTOR={self.connector_id}{_suffix_text(self.suffix)}"


@dataclass(frozen=True, slots=True, eq=False)
class MulticastName(FormatName):
    """Every queue that listens to an IPv4 multicast address and port (MS-MQMQ 2.1.6)."""

    address: IPv4Address
    port: int

    def __post_init__(self) -> None:
        if not self.address.is_multicast:
            raise InvalidNameError(f"{self.address} is not a multicast address: these begin with 224 to 239")
        if not 0 <= self.port <= MAX_PORT:
            raise InvalidNameError(f"the port {self.port} is not between 0 and {MAX_PORT}")

    def __str__(self) -> str:
        return f"MULTICAST={self.address}:{self.port}"


@dataclass(frozen=True, slots=True, eq=False)
class MultipleName(FormatName):
    """Several format names that one message goes to (MS-MQMQ 2.1.7)."""

    # field() hides the base's property of the same name, which would be taken for a default.
    elements: tuple[FormatName, ...] = field()

    def __post_init__(self) -> None:
        count = len(self.elements)
        if count < 2:
            raise InvalidNameError(f"a multiple-element name has two elements or more, not {count}")
        check_element_count(count)
        for index, element in enumerate(self.elements):
            if reason := _why_no_element(element):
                raise InvalidNameError(f"element {index + 1} of {count}, {element}, {reason}")
        check_whole(str(self))

    def __str__(self) -> str:
        return ",".join(map(str, self.elements))


def check_element_count(count: int) -> None:
    """Refuse a multiple-element name before its elements are read."""
    if count > MAX_ELEMENTS:
        raise InvalidNameError(f"the name has {count} elements; the limit is {MAX_ELEMENTS}")


def _why_no_element(element: FormatName) -> str:
    if isinstance(element, MultipleName):
        return "has several elements itself"
    if isinstance(element, MachineName) or element.is_read_only:
        return "is read-only, and nothing can be sent there"
    return ""
