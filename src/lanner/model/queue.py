"""What a queue is (MS-MQDMPR 3.1.1.2 and 3.1.1.3)."""

from __future__ import annotations

import ipaddress
from enum import Enum, IntEnum, StrEnum
from uuid import UUID

import msgspec

from lanner.model.errors import InvalidPropertyError
from lanner.model.message import INFINITE

__all__ = [
    "NULL_GUID",
    "OutgoingState",
    "QueueAccess",
    "QueueKind",
    "QueuePrivacy",
    "QueueProperties",
    "SeekAction",
    "ShareMode",
]

NULL_GUID = UUID(int=0)

MAX_QUEUE_LABEL_LENGTH = 124
"""PROPID_Q_LABEL holds at most this many characters."""

MAX_RETRIES = 1_000_000
"""A poison threshold above this is a typing error, not a policy."""


class QueueKind(StrEnum):
    """What sort of queue it is, and so where its properties are kept."""

    PRIVATE = "private"
    PUBLIC = "public"
    SYSTEM = "system"
    JOURNAL = "journal"
    SUBQUEUE = "subqueue"
    OUTGOING = "outgoing"


class QueuePrivacy(IntEnum):
    """Which messages the queue takes, by their encryption on the way."""

    NONE = 0
    OPTIONAL = 1
    BODY = 2


class QueueAccess(Enum):
    """What a queue is opened for (MS-MQDMPR 3.1.1.17)."""

    RECEIVE = "receive"
    SEND = "send"
    PEEK = "peek"
    MOVE = "move"
    RECEIVE_ADMIN = "receive-admin"
    PEEK_ADMIN = "peek-admin"

    @property
    def reads(self) -> bool:
        """Whether messages can be looked at."""
        return self not in (QueueAccess.SEND, QueueAccess.MOVE)

    @property
    def consumes(self) -> bool:
        """Whether messages can be taken out."""
        return self in (QueueAccess.RECEIVE, QueueAccess.RECEIVE_ADMIN)

    @property
    def is_admin(self) -> bool:
        """Whether outgoing queues are meant."""
        return self in (QueueAccess.RECEIVE_ADMIN, QueueAccess.PEEK_ADMIN)


class ShareMode(Enum):
    """Whether others may read the queue meanwhile (MS-MQDMPR 3.1.1.17)."""

    DENY_NONE = "deny-none"
    DENY_RECEIVE = "deny-receive"


class SeekAction(Enum):
    """Which message a read by lookup identifier means (MS-MQDMPR 3.1.1.17)."""

    FIRST = "first"
    PREVIOUS = "previous"
    CURRENT = "current"
    NEXT = "next"
    LAST = "last"


class OutgoingState(StrEnum):
    """How an outgoing queue stands with its destination (MS-MQDMPR 3.1.1.3)."""

    CONNECTED = "connected"
    DISCONNECTED = "disconnected"
    DISCONNECTING = "disconnecting"
    INACTIVE = "inactive"
    LOCKED = "locked"
    NEED_VALIDATION = "need-validation"
    WAITING = "waiting"
    ON_HOLD = "on-hold"


class QueueProperties(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True):
    """The properties that an administrator sets; the defaults are those of MS-MQDMPR 3.1.7.1.33."""

    label: str = ""
    transactional: bool = False
    journaling: bool = False
    quota: int = INFINITE
    """Kilobytes."""
    journal_quota: int = INFINITE
    """Kilobytes."""
    base_priority: int = 0
    authentication: bool = False
    privacy: QueuePrivacy = QueuePrivacy.OPTIONAL
    multicast_address: str = ""
    """``address:port``, or nothing."""
    type_id: UUID = NULL_GUID
    max_aborts: int = 0
    """After this many aborted receives a message moves to ``;poison``; 0 means never."""

    def check(self) -> None:
        """Refuse properties that no queue can have."""
        if len(self.label) > MAX_QUEUE_LABEL_LENGTH:
            raise InvalidPropertyError(
                f"the label has {len(self.label)} characters; the limit is {MAX_QUEUE_LABEL_LENGTH}"
            )
        for name, value, low, high in (
            ("quota", self.quota, 0, INFINITE),
            ("journal_quota", self.journal_quota, 0, INFINITE),
            ("base_priority", self.base_priority, -0x8000, 0x7FFF),
            ("max_aborts", self.max_aborts, 0, MAX_RETRIES),
        ):
            if not low <= value <= high:
                raise InvalidPropertyError(f"{name} {value} is not between {low} and {high}")
        if self.multicast_address:
            _check_multicast_address(self.multicast_address)
            if self.transactional:
                raise InvalidPropertyError(
                    "a transactional queue cannot have a multicast address",
                    hint="multicast messages are never transactional: make the queue non-transactional",
                )


def _check_multicast_address(text: str) -> None:
    address, _, port = text.rpartition(":")
    try:
        right = ipaddress.IPv4Address(address).is_multicast and port.isdigit() and int(port) <= 0xFFFF
    except ValueError:
        right = False
    if not right:
        raise InvalidPropertyError(
            f"{text!r} is not a multicast address", hint="write it as 234.1.1.1:8001 (224.0.0.0/4, a port)"
        )
