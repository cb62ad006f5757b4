"""How the value of each property comes from the live manager (MS-MQMR 3.1.4.1).

Nothing is opened, made or waited for. Numbers that do not fit their type are the greatest that does.
"""

from __future__ import annotations

import platform
import struct
from collections.abc import Callable
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from lanner import __version__
from lanner.manager import QueueManager
from lanner.manager.queues import OutgoingQueue, Queue
from lanner.model.codes import StatusCode
from lanner.model.errors import LannerError
from lanner.model.format_name import (
    ConnectorName,
    DirectName,
    FormatName,
    MachineName,
    MulticastName,
    PrivateName,
    PublicName,
)
from lanner.model.names import QueueKind as PathKind
from lanner.model.names import canonical_host, is_address
from lanner.model.queue import OutgoingState, QueueKind
from lanner.model.transfer import Connection, ConnectionStatus, Sequence
from lanner.protocols.management.properties import (
    MACHINE_PROPERTIES,
    QUEUE_PROPERTIES,
    Applies,
    MachineProperty,
    QueueProperty,
)
from lanner.protocols.management.variant import NULL, VECTOR, Variant, VariantType

__all__ = ["CONNECTION_CODES", "STATES", "machine_value", "queue_value"]

MAX_UI4 = 0xFFFF_FFFF
MAX_I4 = 0x7FFF_FFFF

UNKNOWN = "UNKNOWN"


def machine_value(manager: QueueManager, number: int) -> Variant:
    """The value of a property of the machine."""
    value = _MACHINE[MachineProperty(number)](manager)
    return NULL if value is None else Variant(MACHINE_PROPERTIES[number].type, value)


def queue_value(manager: QueueManager, queue: Queue, number: int) -> Variant:
    """The value of a property of a queue."""
    applies = QUEUE_PROPERTIES[number].applies
    is_outgoing = isinstance(queue, OutgoingQueue)
    if (applies is Applies.OUTGOING and not is_outgoing) or (applies is Applies.LOCAL and is_outgoing):
        return NULL
    value = _QUEUE[QueueProperty(number)](manager, queue)
    return NULL if value is None else Variant(QUEUE_PROPERTIES[number].type, value)


# The machine.


def _active_queues(manager: QueueManager) -> list[str]:
    """Queue.Active of MS-MQDMPR 3.1.1.2, and by the glossary of MS-MQMR also every queue with messages."""
    transfers = manager.transfers
    return [
        transfers.format_name(queue)
        for queue in transfers.every_queue()
        if not queue.is_deleted and (queue.handles or len(queue.messages))
    ]


def _local_path(manager: QueueManager, queue: Queue) -> str:
    # Its name has "." for the computer. A machine may have many thousands, all asked for at once.
    return manager.name + queue.name.removeprefix(".")


def _private_queues(manager: QueueManager) -> list[str]:
    return [
        _local_path(manager, queue)
        for queue in manager.transfers.every_queue()
        if queue.kind is QueueKind.PRIVATE and not queue.is_deleted
    ]


def _directory_server(manager: QueueManager) -> str | None:
    """The first of DirectoryServerList; ourselves, if we are one."""
    known, own = manager.enterprise.map, manager.enterprise.machine
    if known is None:
        return None
    servers = [machine for machine in known.machines if machine.directory_server]
    servers.sort(key=lambda machine: own is None or machine.id != own.id)
    return rf"\\{servers[0].name}" if servers else None


def _type(_: QueueManager) -> str:
    return f"Lanner {__version__}, {platform.system()} {platform.release()} ({platform.machine()})"


_MACHINE: dict[MachineProperty, Callable[[QueueManager], Any]] = {
    MachineProperty.ACTIVEQUEUES: _active_queues,
    MachineProperty.PRIVATEQ: _private_queues,
    MachineProperty.DSSERVER: _directory_server,
    MachineProperty.CONNECTED: lambda manager: "CONNECTED" if manager.is_online else "DISCONNECTED",
    MachineProperty.TYPE: _type,
    MachineProperty.BYTES_IN_ALL_QUEUES: lambda manager: manager.total_bytes,
}


# What a queue is.


def _path_name(manager: QueueManager, queue: Queue) -> str | None:
    if not isinstance(queue, OutgoingQueue):
        return _local_path(manager, queue)
    try:
        return manager.get_queue_path(queue.destination)[0]
    except LannerError:
        return None  # it has none, or the directory does not tell it


def _queue_type(_: QueueManager, queue: Queue) -> str | None:
    if isinstance(queue, OutgoingQueue):
        return _destination_type(queue.destination)
    top = queue.parent or queue  # a journal and a subqueue are as their queue
    return _LOCAL_TYPES.get(top.kind)


_LOCAL_TYPES = {QueueKind.PUBLIC: "PUBLIC", QueueKind.PRIVATE: "PRIVATE", QueueKind.SYSTEM: "MACHINE"}
_PATH_TYPES = {PathKind.PUBLIC: "PUBLIC", PathKind.PRIVATE: "PRIVATE", PathKind.SYSTEM: "MACHINE"}
_NAME_TYPES: dict[type[FormatName], str] = {
    PublicName: "PUBLIC",
    PrivateName: "PRIVATE",
    MachineName: "MACHINE",
    ConnectorName: "CONNECTOR",
    MulticastName: "MULTICAST",
}


def _destination_type(name: FormatName) -> str | None:
    return _PATH_TYPES[name.kind] if isinstance(name, DirectName) else _NAME_TYPES.get(type(name))


def _transactional(manager: QueueManager, queue: Queue) -> str:
    if not isinstance(queue, OutgoingQueue):
        return "YES" if queue.properties.transactional else "NO"
    # What the destination is, is its manager's business; the directory, or what was sent there, may tell.
    name = queue.destination
    known = manager.enterprise.find_queue(name) if isinstance(name, PublicName) else None
    if known is not None:
        return "YES" if known.properties.transactional else "NO"
    return "YES" if queue.messages.transactional_count else UNKNOWN


def _foreign(manager: QueueManager, queue: Queue) -> str:
    if manager.enterprise.is_offline:
        return "NO" if _queue_type(manager, queue) == "PRIVATE" else UNKNOWN
    machine = manager.enterprise.machine
    if isinstance(queue, OutgoingQueue):
        known = manager.enterprise.map
        name = queue.destination
        if known is not None and isinstance(name, PrivateName):
            machine = known.machine(name.machine_id)
        elif known is not None and isinstance(name, PublicName):
            public = known.queue(name.queue_id)
            machine = known.host_of(public) if public is not None else None
    return "YES" if machine is not None and machine.foreign else "NO"


# Where it stands.

LOCAL_STATE = "LOCAL CONNECTION"

STATES = {
    OutgoingState.CONNECTED: "CONNECTED",
    OutgoingState.DISCONNECTED: "DISCONNECTED",
    OutgoingState.DISCONNECTING: "DISCONNECTING",
    OutgoingState.INACTIVE: "INACTIVE",
    OutgoingState.LOCKED: "LOCKED",
    OutgoingState.NEED_VALIDATION: "NEED VALIDATION",
    OutgoingState.WAITING: "WAITING",
    OutgoingState.ON_HOLD: "ONHOLD",
}
"""The words of MS-MQMR 3.1.4.1; MS-MQMQ 2.3.12.11 has all of them but LOCKED."""


def _next_hops(manager: QueueManager, queue: Queue) -> list[str] | None:
    assert isinstance(queue, OutgoingQueue)
    if queue.state is OutgoingState.CONNECTED:
        if isinstance(queue.destination, MulticastName):
            return [manager.transfers.format_name(queue)]
        return [_hop(queue.peer)] if queue.peer else [_hop(each) for each in queue.next_hops]
    return [_hop(each) for each in queue.next_hops] if queue.state is OutgoingState.WAITING else None


def _hop(text: str) -> str:
    """An address as MS-MQMQ 2.3.12.12 writes it. It has no form for a name, which is then shown as it is."""
    host = canonical_host(_host(text))
    if not is_address(host):
        return text
    return f"IP={host}" if ip_address(host).version == 4 else f"IPv6={host}"


def _host(text: str) -> str:
    """The host of a URL, or of what is a host alone."""
    return (urlsplit(text).hostname or text) if "://" in text else text


# Its stream.


def _sequence(place: Sequence | None) -> bytes | None:
    """SEQUENCE_INFO (MS-MQMQ 2.2.5.1)."""
    if place is None:
        return None
    return struct.pack(
        "<QII", place.stream, min(max(place.number, 0), MAX_UI4), min(max(place.previous, 0), MAX_UI4)
    )


def _last_acknowledged(queue: OutgoingQueue) -> bytes | None:
    # Only while something waits for its acknowledgment (3.1.4.1).
    return _sequence(queue.transfer.last_acknowledged) if queue.transfer.unacknowledged else None


def _outgoing(read: Callable[[OutgoingQueue], Any]) -> Callable[[QueueManager, Queue], Any]:
    def value(_: QueueManager, queue: Queue) -> Any:
        assert isinstance(queue, OutgoingQueue)
        return read(queue)

    return value


def _sources(_: QueueManager, queue: Queue) -> list[Variant]:
    """Six lists with an entry for each stream (MS-MQMQ 2.3.12.24)."""
    streams = list(queue.incoming_transfers.values())
    return [
        Variant(VECTOR | VariantType.LPWSTR, [each.format_name for each in streams]),
        Variant(VECTOR | VariantType.CLSID, [each.sender for each in streams]),
        Variant(VECTOR | VariantType.UI8, [each.stream for each in streams]),
        Variant(VECTOR | VariantType.UI4, [_count(each.number) for each in streams]),
        Variant(VECTOR | VariantType.I4, [_time(each.last_access) for each in streams]),
        Variant(VECTOR | VariantType.UI4, [_count(each.rejections) for each in streams]),
    ]


# Its connections.

CONNECTION_CODES = {
    ConnectionStatus.IN_PROCESS: 0x0000_0000,
    ConnectionStatus.ESTABLISH_PACKET_RECEIVED: 0x0000_0001,
    ConnectionStatus.ESTABLISHED: 0x0000_0002,
    ConnectionStatus.UNKNOWN_FAILURE: 0x8000_0000,
    ConnectionStatus.PING_FAILURE: 0x8000_0001,
    ConnectionStatus.SOCKET_CREATE_FAILURE: 0x8000_0002,
    ConnectionStatus.SOCKET_BIND_FAILURE: 0x8000_0003,
    ConnectionStatus.SOCKET_CONNECT_FAILURE: 0x8000_0004,
    ConnectionStatus.TCP_NOT_ENABLED: 0x8000_0005,
    ConnectionStatus.SOCKET_SEND_FAILURE: 0x8000_0006,
    ConnectionStatus.CONNECTION_NOT_READY: 0x8000_0007,
    ConnectionStatus.DNS_FAILURE: 0x8000_0008,
    ConnectionStatus.CERTIFICATE_VALIDATION_FAILURE: 0x8000_0009,
    ConnectionStatus.CONNECTION_LIMIT_REACHED: 0x8000_000A,
    ConnectionStatus.CONNECTION_REFUSED: 0x8000_000B,
    ConnectionStatus.ROUTING_DATA_NOT_AVAILABLE: 0x8000_000C,
    ConnectionStatus.LOW_RESOURCE: 0x8000_000D,
}
"""The values of MS-MQMQ 2.3.12.25."""

_FAILED = StatusCode.MQ_ERROR - (1 << 32)
"""The HRESULT of a connection that failed, as the signed number that the list holds."""


def _connections(queue: OutgoingQueue) -> list[Variant]:
    """Four lists with an entry for each attempt (MS-MQMQ 2.3.12.25).

    The last one is a list of lists, which a variant can only be as a list of variants.
    """
    attempts = list(queue.connections)
    addresses = [Variant(VECTOR | VariantType.LPWSTR, [_address(each)]) for each in attempts]
    return [
        Variant(VECTOR | VariantType.UI4, [CONNECTION_CODES[each.status] for each in attempts]),
        Variant(VECTOR | VariantType.I4, [_time(each.time) for each in attempts]),
        Variant(VECTOR | VariantType.I4, [_FAILED if each.status.is_failure else 0 for each in attempts]),
        Variant(VECTOR | VariantType.VARIANT, addresses),
    ]


def _address(attempt: Connection) -> str:
    host = _host(attempt.address)
    return host if is_address(host) else rf"\\{host}"


def _count(number: float) -> int:
    return min(int(number), MAX_UI4)


def _time(seconds: float) -> int:
    return min(int(seconds), MAX_I4)


def _journal(queue: Queue) -> tuple[int, int]:
    """Messages and bytes; none without a journal."""
    journal = queue.journal
    return (0, 0) if journal is None else (len(journal.messages), journal.messages.bytes)


_Q = QueueProperty

_QUEUE: dict[QueueProperty, Callable[[QueueManager, Queue], Any]] = {
    _Q.PATHNAME: _path_name,
    _Q.FORMATNAME: lambda manager, queue: manager.transfers.format_name(queue),
    _Q.TYPE: _queue_type,
    _Q.LOCATION: lambda _, queue: "REMOTE" if isinstance(queue, OutgoingQueue) else "LOCAL",
    _Q.XACT: _transactional,
    _Q.FOREIGN: _foreign,
    _Q.MESSAGE_COUNT: lambda _, queue: _count(len(queue.messages)),
    _Q.BYTES_IN_QUEUE: lambda _, queue: _count(queue.messages.bytes),
    _Q.JOURNAL_MESSAGE_COUNT: lambda _, queue: _count(_journal(queue)[0]),
    _Q.BYTES_IN_JOURNAL: lambda _, queue: _count(_journal(queue)[1]),
    _Q.STATE: lambda _, queue: (
        STATES[queue.state] if isinstance(queue, OutgoingQueue) else "LOCAL CONNECTION"
    ),
    _Q.NEXTHOPS: _next_hops,
    _Q.EOD_LAST_ACK: _outgoing(_last_acknowledged),
    _Q.EOD_LAST_ACK_TIME: _outgoing(lambda queue: _time(queue.transfer.last_acknowledgment_time)),
    _Q.EOD_LAST_ACK_COUNT: _outgoing(lambda queue: _count(queue.transfer.last_acknowledgment_count)),
    _Q.EOD_FIRST_NON_ACK: _outgoing(lambda queue: _sequence(queue.transfer.first_unacknowledged)),
    _Q.EOD_LAST_NON_ACK: _outgoing(lambda queue: _sequence(queue.transfer.last_unacknowledged)),
    _Q.EOD_NEXT_SEQ: _outgoing(lambda queue: _sequence(queue.transfer.next_sequence)),
    _Q.EOD_NO_READ_COUNT: _outgoing(lambda queue: _count(queue.transfer.unread)),
    _Q.EOD_NO_ACK_COUNT: _outgoing(lambda queue: _count(queue.transfer.unacknowledged)),
    _Q.EOD_RESEND_TIME: _outgoing(lambda queue: _time(queue.transfer.resend_time)),
    _Q.EOD_RESEND_INTERVAL: _outgoing(lambda queue: _count(queue.transfer.resend_interval)),
    _Q.EOD_RESEND_COUNT: _outgoing(lambda queue: _count(queue.transfer.resends)),
    _Q.EOD_SOURCE_INFO: _sources,
    _Q.CONNECTION_HISTORY: _outgoing(_connections),
    _Q.SUBQUEUE_COUNT: lambda _, queue: _count(len(queue.subqueues)),
    _Q.SUBQUEUE_NAMES: lambda _, queue: [each.path.subqueue for each in queue.subqueues.values()],
}
