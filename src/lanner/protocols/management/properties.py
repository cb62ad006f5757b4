"""What can be asked: the properties of a machine and of a queue (MS-MQMR 2.2.3, MS-MQMQ 2.3.11, 2.3.12).

One table for server and client. People say ``message-count``; the name in the specification, with or without
``PROPID_MGMT_QUEUE_``, is understood too.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, IntEnum
from functools import lru_cache

from lanner.model.errors import InvalidPropertyError
from lanner.protocols.management.variant import VECTOR, VariantType
from lanner.protocols.management.wire import ObjectType

__all__ = [
    "MACHINE_PROPERTIES",
    "QUEUE_PROPERTIES",
    "Applies",
    "MachineProperty",
    "Property",
    "QueueProperty",
    "Shape",
    "find_property",
    "properties_of",
]


class MachineProperty(IntEnum):
    """PROPID_MGMT_MSMQ_... (MS-MQMR 2.2.3.1)."""

    ACTIVEQUEUES = 1
    PRIVATEQ = 2
    DSSERVER = 3
    CONNECTED = 4
    TYPE = 5
    BYTES_IN_ALL_QUEUES = 6


class QueueProperty(IntEnum):
    """PROPID_MGMT_QUEUE_... (MS-MQMR 2.2.3.2)."""

    PATHNAME = 1
    FORMATNAME = 2
    TYPE = 3
    LOCATION = 4
    XACT = 5
    FOREIGN = 6
    MESSAGE_COUNT = 7
    BYTES_IN_QUEUE = 8
    JOURNAL_MESSAGE_COUNT = 9
    BYTES_IN_JOURNAL = 10
    STATE = 11
    NEXTHOPS = 12
    EOD_LAST_ACK = 13
    EOD_LAST_ACK_TIME = 14
    EOD_LAST_ACK_COUNT = 15
    EOD_FIRST_NON_ACK = 16
    EOD_LAST_NON_ACK = 17
    EOD_NEXT_SEQ = 18
    EOD_NO_READ_COUNT = 19
    EOD_NO_ACK_COUNT = 20
    EOD_RESEND_TIME = 21
    EOD_RESEND_INTERVAL = 22
    EOD_RESEND_COUNT = 23
    EOD_SOURCE_INFO = 24
    CONNECTION_HISTORY = 25
    SUBQUEUE_COUNT = 26
    SUBQUEUE_NAMES = 27


class Applies(Enum):
    """Which queues have a property; for the others it is VT_NULL."""

    ALL = "all queues"
    OUTGOING = "outgoing queues"
    LOCAL = "queues of this machine"


class Shape(Enum):
    """How a value is to be understood beyond its type."""

    PLAIN = "plain"
    TIME = "time"
    """Seconds since 1970."""
    SEQUENCE = "sequence"
    """A SEQUENCE_INFO (MS-MQMQ 2.2.5.1)."""
    SOURCES = "sources"
    """Six lists about incoming streams (MS-MQMQ 2.3.12.24)."""
    CONNECTIONS = "connections"
    """Four lists about attempts to connect (MS-MQMQ 2.3.12.25)."""


@dataclass(frozen=True, slots=True)
class Property:
    """One property."""

    id: MachineProperty | QueueProperty
    name: str
    """As people say it."""
    type: int
    """Its variant type."""
    meaning: str
    applies: Applies = Applies.ALL
    shape: Shape = Shape.PLAIN

    @property
    def official_name(self) -> str:
        """As the specification writes it."""
        kind = "MSMQ" if isinstance(self.id, MachineProperty) else "QUEUE"
        return f"PROPID_MGMT_{kind}_{self.id.name}"


_TEXT = VariantType.LPWSTR
_TEXTS = VECTOR | VariantType.LPWSTR
_NUMBER = VariantType.UI4
_TIME = VariantType.I4
_BLOB = VariantType.BLOB
_VARIANTS = VECTOR | VariantType.VARIANT
_OUT, _HERE = Applies.OUTGOING, Applies.LOCAL
_M, _Q = MachineProperty, QueueProperty

MACHINE_PROPERTIES: dict[int, Property] = {
    each.id: each
    for each in (
        Property(_M.ACTIVEQUEUES, "active-queues", _TEXTS, "queues with messages in them or open"),
        Property(_M.PRIVATEQ, "private-queues", _TEXTS, "the path names of all private queues"),
        Property(_M.DSSERVER, "directory-server", _TEXT, "the current directory server"),
        Property(_M.CONNECTED, "connected", _TEXT, "whether messages are exchanged with other machines"),
        Property(_M.TYPE, "type", _TEXT, "the versions of the queue manager and its system"),
        Property(_M.BYTES_IN_ALL_QUEUES, "bytes-in-all-queues", VariantType.I8, "bytes of all messages"),
    )
}

QUEUE_PROPERTIES: dict[int, Property] = {
    each.id: each
    for each in (
        Property(_Q.PATHNAME, "path-name", _TEXT, "the path name"),
        Property(_Q.FORMATNAME, "format-name", _TEXT, "the format name"),
        Property(_Q.TYPE, "type", _TEXT, "PUBLIC, PRIVATE, MACHINE, CONNECTOR or MULTICAST"),
        Property(_Q.LOCATION, "location", _TEXT, "LOCAL, or REMOTE for an outgoing queue"),
        Property(_Q.XACT, "transactional", _TEXT, "YES, NO or UNKNOWN"),
        Property(_Q.FOREIGN, "foreign", _TEXT, "whether it is on a foreign system: YES, NO or UNKNOWN"),
        Property(_Q.MESSAGE_COUNT, "message-count", _NUMBER, "messages in it"),
        Property(_Q.BYTES_IN_QUEUE, "bytes", _NUMBER, "bytes of the messages in it"),
        Property(_Q.JOURNAL_MESSAGE_COUNT, "journal-message-count", _NUMBER, "messages in its journal"),
        Property(_Q.BYTES_IN_JOURNAL, "journal-bytes", _NUMBER, "bytes of the messages in its journal"),
        Property(_Q.STATE, "state", _TEXT, "how it stands with its destination"),
        Property(_Q.NEXTHOPS, "next-hops", _TEXTS, "where its messages go next", _OUT),
        Property(
            _Q.EOD_LAST_ACK,
            "last-acknowledged",
            _BLOB,
            "the last message whose arrival was acknowledged",
            _OUT,
            Shape.SEQUENCE,
        ),
        Property(
            _Q.EOD_LAST_ACK_TIME,
            "last-acknowledged-time",
            _TIME,
            "when the last order acknowledgment came",
            _OUT,
            Shape.TIME,
        ),
        Property(
            _Q.EOD_LAST_ACK_COUNT,
            "last-acknowledged-count",
            _NUMBER,
            "how often an order acknowledgment came",
            _OUT,
        ),
        Property(
            _Q.EOD_FIRST_NON_ACK,
            "first-unacknowledged",
            _BLOB,
            "the first message sent whose arrival was not acknowledged",
            _OUT,
            Shape.SEQUENCE,
        ),
        Property(
            _Q.EOD_LAST_NON_ACK,
            "last-unacknowledged",
            _BLOB,
            "the last message sent whose arrival was not acknowledged",
            _OUT,
            Shape.SEQUENCE,
        ),
        Property(
            _Q.EOD_NEXT_SEQ, "next-sequence", _BLOB, "the next message to be sent", _OUT, Shape.SEQUENCE
        ),
        Property(_Q.EOD_NO_READ_COUNT, "unread-count", _NUMBER, "arrived, and not received there yet", _OUT),
        Property(_Q.EOD_NO_ACK_COUNT, "unacknowledged-count", _NUMBER, "sent, and not acknowledged", _OUT),
        Property(_Q.EOD_RESEND_TIME, "resend-time", _TIME, "when they are sent again", _OUT, Shape.TIME),
        Property(
            _Q.EOD_RESEND_INTERVAL, "resend-interval", _NUMBER, "seconds until they are sent again", _OUT
        ),
        Property(_Q.EOD_RESEND_COUNT, "resend-count", _NUMBER, "how often they were sent again", _OUT),
        Property(
            _Q.EOD_SOURCE_INFO,
            "sources",
            _VARIANTS,
            "the streams of transactional messages that come in",
            _HERE,
            Shape.SOURCES,
        ),
        Property(
            _Q.CONNECTION_HISTORY,
            "connection-history",
            _VARIANTS,
            "the latest attempts to connect",
            _OUT,
            Shape.CONNECTIONS,
        ),
        Property(_Q.SUBQUEUE_COUNT, "subqueue-count", _NUMBER, "how many subqueues it has", _HERE),
        Property(_Q.SUBQUEUE_NAMES, "subqueues", _TEXTS, "the names of its subqueues", _HERE),
    )
}


def properties_of(kind: ObjectType) -> dict[int, Property]:
    """The properties of a machine, a queue, or a session, which has none."""
    if kind is ObjectType.MACHINE:
        return MACHINE_PROPERTIES
    return QUEUE_PROPERTIES if kind is ObjectType.QUEUE else {}


@lru_cache(maxsize=256)
def find_property(kind: ObjectType, name: str) -> Property:
    """Find a property by what somebody calls it; a wrong name is answered with the nearest right one."""
    known = properties_of(kind)
    wanted = name.casefold().replace("_", "-")
    for each in known.values():
        official = each.official_name.casefold().replace("_", "-")
        short = each.id.name.casefold().replace("_", "-")
        if wanted in (each.name, official, short):
            return each
    names = [each.name for each in known.values()]
    close = difflib.get_close_matches(wanted, names, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]}?" if close else f"there are {_list(names)}"
    raise InvalidPropertyError(f"a {kind.name.lower()} has no property {name!r}", hint=hint)


def _list(names: Iterable[str]) -> str:
    return ", ".join(names)
