"""How messages go between queue managers: what is known about connections and sequences.

The shared state of MS-MQDMPR 3.1.1.3 to 3.1.1.5, which protocols keep and administrators look at.
"""

from __future__ import annotations

from enum import StrEnum
from uuid import UUID

import msgspec

__all__ = [
    "FORGOTTEN_AFTER",
    "Connection",
    "ConnectionStatus",
    "IncomingTransfer",
    "OutgoingTransfer",
    "Sequence",
]


class ConnectionStatus(StrEnum):
    """The result of an attempt to connect (MS-MQDMPR 3.1.1.3)."""

    IN_PROCESS = "in-process"
    ESTABLISH_PACKET_RECEIVED = "establish-packet-received"
    ESTABLISHED = "established"
    UNKNOWN_FAILURE = "unknown-failure"
    PING_FAILURE = "ping-failure"
    SOCKET_CREATE_FAILURE = "socket-create-failure"
    SOCKET_BIND_FAILURE = "socket-bind-failure"
    SOCKET_CONNECT_FAILURE = "socket-connect-failure"
    TCP_NOT_ENABLED = "tcp-not-enabled"
    SOCKET_SEND_FAILURE = "socket-send-failure"
    CONNECTION_NOT_READY = "connection-not-ready"
    DNS_FAILURE = "dns-failure"
    CERTIFICATE_VALIDATION_FAILURE = "certificate-validation-failure"
    CONNECTION_LIMIT_REACHED = "connection-limit-reached"
    CONNECTION_REFUSED = "connection-refused"
    ROUTING_DATA_NOT_AVAILABLE = "routing-data-not-available"
    LOW_RESOURCE = "low-resource"

    @property
    def is_failure(self) -> bool:
        """Whether the attempt has failed."""
        return self not in _NO_FAILURE

    @property
    def words(self) -> str:
        """For people."""
        return self.value.replace("-", " ")


_NO_FAILURE = (
    ConnectionStatus.IN_PROCESS,
    ConnectionStatus.ESTABLISH_PACKET_RECEIVED,
    ConnectionStatus.ESTABLISHED,
)


class Connection(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One attempt to connect, as it stood at a time (ConnectionHistory of MS-MQDMPR 3.1.1.3)."""

    status: ConnectionStatus
    time: float
    address: str
    detail: str = ""
    """What went wrong, in words."""

    def __str__(self) -> str:
        return f"{self.status.words} at {self.address}{f': {self.detail}' if self.detail else ''}"


class Sequence(msgspec.Struct, frozen=True, gc=False):
    """A place in a stream: SEQUENCE_INFO of MS-MQMQ 2.2.5."""

    stream: int
    number: int
    previous: int


FORGOTTEN_AFTER = 3
"""Resends in a row without a receipt after which a destination may have forgotten the stream."""


class OutgoingTransfer(msgspec.Struct, kw_only=True):
    """How far a stream has got from an outgoing queue (OutgoingTransferInfo, MS-MQDMPR 3.1.1.4)."""

    first_unacknowledged: Sequence | None = None
    last_acknowledged: Sequence | None = None
    last_acknowledgment_count: int = 0
    last_acknowledgment_time: float = 0.0
    last_unacknowledged: Sequence | None = None
    next_sequence: Sequence | None = None
    unacknowledged: int = 0
    unread: int = 0
    """Acknowledged, and still waiting to be received there."""
    resends: int = 0
    fruitless_resends: int = 0
    """Those in a row after which no receipt came in time."""
    resend_interval: float = 0.0
    resend_time: float = 0.0

    @property
    def may_be_forgotten(self) -> bool:
        """Whether the destination seems to know the stream no more, or cannot send receipts any more.

        Receipts came once, so its first message is not among those that are sent again: a queue that was made
        anew there waits for it in vain.
        """
        last = self.last_acknowledged
        was_known = last is not None and last.number > 0
        return was_known and self.unacknowledged > 0 and self.fruitless_resends >= FORGOTTEN_AFTER


class IncomingTransfer(msgspec.Struct, kw_only=True):
    """How far a stream has come in (IncomingTransactionalTransferInfo, MS-MQDMPR 3.1.1.5)."""

    format_name: str
    sender: UUID
    stream: int
    number: int
    last_access: float
    rejections: int = 0
