"""QUEUE_FORMAT: which queue is meant (MS-MQMQ 2.2.6 to 2.2.11), as format names and as NDR.

On the wire the union's tag, one octet, stands at 4 and every arm at 8: none of them is declared ms_union, and
all begin with something aligned to 4.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from functools import lru_cache
from ipaddress import IPv4Address
from uuid import UUID

from lanner.model.errors import InvalidNameError
from lanner.model.format_name import (
    ConnectorName,
    DirectName,
    DistributionListName,
    FormatName,
    MachineName,
    MulticastName,
    PrivateName,
    PublicName,
    read_format_name,
)
from lanner.model.names import QueueSuffix
from lanner.protocols.rpc.ndr import NdrError, NdrReader, NdrWriter

__all__ = [
    "MAX_NAME",
    "QueueFormat",
    "QueueFormatType",
    "from_format_name",
    "read_queue_format",
    "to_format_name",
    "write_queue_format",
]

MAX_NAME = 2_048
"""Characters of a direct name or a domain: the longest that MS-MQMQ 2.1 allows has some 450, a URL with
escapes three times that."""

FLAG_SYSTEM = 0x80
_SUFFIX_BITS = 0x0F
_NIL = UUID(int=0)
_DIRECT = "DIRECT="


class QueueFormatType(IntEnum):
    """The kinds of names (MS-MQMQ 2.2.6)."""

    UNKNOWN = 0
    PUBLIC = 1
    PRIVATE = 2
    DIRECT = 3
    MACHINE = 4
    CONNECTOR = 5
    DL = 6
    MULTICAST = 7
    SUBQUEUE = 8


@dataclass(frozen=True, slots=True)
class QueueFormat:
    """A name as it stands on the wire; what its kind does not have is empty."""

    kind: QueueFormatType
    suffix_and_flags: int = 0
    identifier: UUID = _NIL
    """Of the queue, the machine, the connector or the list."""
    number: int = 0
    """OBJECTID.Uniquifier, of a private queue."""
    text: str | None = None
    """A direct name without ``DIRECT=``, or the domain of a list."""
    address: int = 0
    port: int = 0

    @property
    def suffix(self) -> int:
        """Which journal, dead-letter queue or subqueue is meant (MS-MQMQ 2.2.11)."""
        return self.suffix_and_flags & _SUFFIX_BITS

    @property
    def flags(self) -> int:
        """Whether it is a system queue."""
        return self.suffix_and_flags & ~_SUFFIX_BITS


# As format names.

_KINDS = frozenset(QueueFormatType)
_SUFFIX_RULES: dict[int, tuple[frozenset[int], frozenset[int]]] = {
    QueueSuffix.NONE: (frozenset({0}), _KINDS - {QueueFormatType.MACHINE}),
    QueueSuffix.JOURNAL: (frozenset({FLAG_SYSTEM}), frozenset({1, 2, 3, 4})),
    QueueSuffix.DEADLETTER: (frozenset({FLAG_SYSTEM}), frozenset({3, 4})),
    QueueSuffix.DEADXACT: (frozenset({FLAG_SYSTEM}), frozenset({3, 4})),
    QueueSuffix.XACTONLY: (frozenset({0, FLAG_SYSTEM}), frozenset({QueueFormatType.CONNECTOR})),
    QueueSuffix.SUBQUEUE: (frozenset({0}), frozenset({QueueFormatType.SUBQUEUE})),
}
"""By suffix: the flags and the kinds that may stand with it (MS-MQMQ 2.2.7)."""


@lru_cache(maxsize=1024)
def to_format_name(given: QueueFormat) -> FormatName:
    """The name that is meant; raises InvalidNameError where the structure breaks MS-MQMQ 2.2.7."""
    flags, kinds = _SUFFIX_RULES.get(given.suffix, (frozenset(), frozenset()))
    if given.flags not in flags or given.kind not in kinds:
        raise InvalidNameError(
            f"a queue format of the kind {given.kind.name} cannot have the suffix and flags "
            f"{given.suffix_and_flags:#04x}"
        )
    return _name(given, QueueSuffix(given.suffix))


def _name(given: QueueFormat, suffix: QueueSuffix) -> FormatName:
    match given.kind:
        case QueueFormatType.PUBLIC:
            return PublicName(given.identifier, suffix=suffix)
        case QueueFormatType.PRIVATE:
            return PrivateName(given.identifier, given.number, suffix=suffix)
        case QueueFormatType.DIRECT:
            return _direct(given, suffix)
        case QueueFormatType.MACHINE:
            return MachineName(given.identifier, suffix)
        case QueueFormatType.CONNECTOR:
            return ConnectorName(given.identifier, is_transactional=suffix is QueueSuffix.XACTONLY)
        case QueueFormatType.DL:
            return DistributionListName(given.identifier, given.text or "")
        case QueueFormatType.MULTICAST:
            return _multicast(given)
        case QueueFormatType.SUBQUEUE:
            return _subqueue(given)
    raise InvalidNameError("a queue format of the kind UNKNOWN names no queue")


def _direct(given: QueueFormat, suffix: QueueSuffix) -> FormatName:
    name = _read_direct(given)
    if name.subqueue:
        raise InvalidNameError(f"{name} is a subqueue, which a queue format of the kind DIRECT cannot name")
    # The name has the suffix in it (MS-MQMQ 2.2.7); a client may say it in one place alone.
    if suffix in (name.suffix, QueueSuffix.NONE):
        return name
    if name.suffix is QueueSuffix.NONE and suffix is QueueSuffix.JOURNAL:
        return name.journal()
    raise InvalidNameError(f"{name} does not have the suffix {suffix.name} that the structure says")


def _subqueue(given: QueueFormat) -> FormatName:
    name = _read_direct(given)
    if not name.subqueue:
        raise InvalidNameError(f"{name} names no subqueue")
    return name


def _read_direct(given: QueueFormat) -> DirectName:
    if given.text is None:
        raise InvalidNameError("the direct name is missing")
    name = read_format_name(_DIRECT + given.text)
    if not isinstance(name, DirectName):
        raise InvalidNameError("the direct name has several elements")
    return name


def _multicast(given: QueueFormat) -> FormatName:
    # The text does not say in which order the octets of the address stand in the number. Written first to
    # last is how sockets keep them; the other order is understood where only it gives a multicast address.
    octets = given.address.to_bytes(4, "little")
    addresses = [IPv4Address(octets), IPv4Address(octets[::-1])]
    found = next((address for address in addresses if address.is_multicast), addresses[0])
    return MulticastName(found, given.port)


def from_format_name(name: FormatName) -> QueueFormat:
    """Put a name into the structure; raises InvalidNameError where that has no form for it."""
    found = _bare(name)
    if found.kind is QueueFormatType.SUBQUEUE:
        return replace(found, suffix_and_flags=int(QueueSuffix.SUBQUEUE))
    if name.subqueue:
        raise InvalidNameError(
            f"{name} cannot be sent: a subqueue is named by a direct name alone",
            hint=r"write it as DIRECT=OS:host\private$\queue;subqueue",
        )
    flags = FLAG_SYSTEM if name.suffix.is_read_only else 0
    return replace(found, suffix_and_flags=flags | name.suffix)


def _bare(name: FormatName) -> QueueFormat:
    match name:
        case PublicName():
            return QueueFormat(QueueFormatType.PUBLIC, identifier=name.queue_id)
        case PrivateName():
            return QueueFormat(QueueFormatType.PRIVATE, identifier=name.machine_id, number=name.number)
        case DirectName():
            kind = QueueFormatType.SUBQUEUE if name.subqueue else QueueFormatType.DIRECT
            return QueueFormat(kind, text=str(name).removeprefix(_DIRECT))
        case MachineName():
            return QueueFormat(QueueFormatType.MACHINE, identifier=name.machine_id)
        case ConnectorName():
            return QueueFormat(QueueFormatType.CONNECTOR, identifier=name.connector_id)
        case DistributionListName():
            return QueueFormat(QueueFormatType.DL, identifier=name.list_id, text=name.domain or None)
        case MulticastName():
            address = int.from_bytes(name.address.packed, "little")
            return QueueFormat(QueueFormatType.MULTICAST, address=address, port=name.port)
    raise InvalidNameError(f"{name} names more than one queue", hint="ask for each of them by itself")


# As NDR.

_GUID_KINDS = (QueueFormatType.PUBLIC, QueueFormatType.MACHINE, QueueFormatType.CONNECTOR)
_TEXT_KINDS = (QueueFormatType.DIRECT, QueueFormatType.SUBQUEUE)


def read_queue_format(reader: NdrReader) -> QueueFormat:
    """Read the structure and what it points to."""
    reader.align(4)
    number = reader.u8("m_qft")
    suffix_and_flags = reader.u8("m_SuffixAndFlags")
    reader.u16("m_reserved")  # a server must not use it (MS-MQMQ 2.2.7)
    tag = reader.u8("the union's tag")
    if tag != number:
        raise NdrError(f"m_qft is {number}, and its union has the tag {tag}")
    try:
        kind = QueueFormatType(number)
    except ValueError:
        raise NdrError(f"m_qft is {number}, which is no kind of a queue format") from None
    found = QueueFormat(kind, suffix_and_flags)
    if kind in _GUID_KINDS:
        return replace(found, identifier=reader.guid("m_gPublicID"))
    if kind is QueueFormatType.PRIVATE:
        return replace(found, identifier=reader.guid("Lineage"), number=reader.u32("Uniquifier"))
    if kind is QueueFormatType.MULTICAST:
        return replace(found, address=reader.u32("m_address"), port=reader.u32("m_port"))
    if kind is QueueFormatType.DL:
        return replace(found, identifier=reader.guid("m_DlGuid"), text=_read_text(reader, "m_pwzDomain"))
    if kind in _TEXT_KINDS:
        return replace(found, text=_read_text(reader, "m_pDirectID"))
    return found


def _read_text(reader: NdrReader, field: str) -> str | None:
    # Nothing else of the structure is deferred: what the pointer points to is next.
    return reader.wide_string(limit=MAX_NAME, field=field) if reader.pointer(field) else None


def write_queue_format(writer: NdrWriter, given: QueueFormat) -> None:
    """Write the structure and what it points to."""
    writer.align(4)
    writer.u8(given.kind)
    writer.u8(given.suffix_and_flags)
    writer.u16(0)
    writer.u8(given.kind)
    if given.kind in _GUID_KINDS:
        writer.guid(given.identifier)
    elif given.kind is QueueFormatType.PRIVATE:
        writer.guid(given.identifier)
        writer.u32(given.number)
    elif given.kind is QueueFormatType.MULTICAST:
        writer.u32(given.address)
        writer.u32(given.port)
    elif given.kind is QueueFormatType.DL:
        writer.guid(given.identifier)
        _write_text(writer, given.text)
    elif given.kind in _TEXT_KINDS:
        _write_text(writer, given.text)


def _write_text(writer: NdrWriter, text: str | None) -> None:
    writer.pointer(text is not None)
    if text is not None:
        writer.wide_string(text)
