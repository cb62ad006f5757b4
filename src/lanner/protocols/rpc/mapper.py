"""The endpoint mapper: which port an interface is on (C706 appendix O, MS-RPCE 2.2.1.2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from uuid import UUID

from lanner.protocols.rpc.errors import FaultStatus, NdrError, RpcFault
from lanner.protocols.rpc.interface import Access, CallContext, InterfaceId, RpcInterface
from lanner.protocols.rpc.ndr import NULL_HANDLE, ContextHandle, NdrReader, NdrWriter
from lanner.protocols.rpc.towers import MAX_TOWER, Tower
from lanner.protocols.rpc.verification import check_trailer

__all__ = [
    "MAPPER",
    "Entry",
    "Operation",
    "lookup_request",
    "map_request",
    "mapper_interface",
    "read_lookup_response",
    "read_map_response",
]

MAPPER = InterfaceId(UUID("e1af8308-5d1f-11c9-91a4-08002b14a0fa"), 3, 0)

MAX_ENTRIES = 500
"""What a client may ask for at once (MS-RPCE 2.2.1.2.4)."""

MAX_MAPPER_REQUEST = 4_096
"""A tower of 2,000 octets and some numbers: anybody may ask, so nobody gets more room than that."""

ANNOTATION = 64
"""Octets of an annotation with its closing null (ept_max_annotation_size)."""

NOT_REGISTERED = int(FaultStatus.NO_MORE_ENTRIES)
CANNOT_PERFORM = 0x6D8
"""EPT_S_CANT_PERFORM_OP (MS-RPCE 2.2.1.2.1)."""

NIL = UUID(int=0)


class Operation(IntEnum):
    """The operations that MS-RPCE leaves."""

    LOOKUP = 2
    MAP = 3
    HANDLE_FREE = 4


class Inquiry(IntEnum):
    """inquiry_type (MS-RPCE 2.2.1.2.4)."""

    ALL = 0
    BY_INTERFACE = 1
    BY_OBJECT = 2
    BY_BOTH = 3


@dataclass(frozen=True, slots=True)
class Entry:
    """One element of the endpoint map."""

    tower: Tower
    object_uuid: UUID = NIL
    annotation: str = ""


def mapper_interface(entries: Callable[[], Sequence[Entry]]) -> RpcInterface:
    """The interface, over what is registered at the moment of a call. Anybody may ask."""

    async def lookup(context: CallContext, stub: bytes) -> bytes:
        return _lookup(entries(), context, NdrReader(stub, context.big_endian))

    async def map_(context: CallContext, stub: bytes) -> bytes:
        return _map(entries(), context, NdrReader(stub, context.big_endian))

    async def free(context: CallContext, stub: bytes) -> bytes:
        reader = NdrReader(stub, context.big_endian)
        handle = reader.context_handle()
        check_trailer(context, reader.tolerate_trailer())
        writer = NdrWriter()
        writer.context_handle(context.handles.close(handle))
        writer.u32(0)
        return writer.getvalue()

    return RpcInterface(
        MAPPER.uuid,
        MAPPER.major,
        MAPPER.minor,
        {Operation.LOOKUP: lookup, Operation.MAP: map_, Operation.HANDLE_FREE: free},
        access=Access.EVERYBODY,
        max_request=MAX_MAPPER_REQUEST,
    )


# The server.


def _version_fits(asked: InterfaceId, has: InterfaceId, option: int) -> bool:
    """vers_option (MS-RPCE 2.2.1.2.4)."""
    if asked.uuid != has.uuid:
        return False
    match option:
        case 1:  # all
            return True
        case 2:  # compatible
            return has.major == asked.major and has.minor >= asked.minor
        case 3:  # exact
            return (has.major, has.minor) == (asked.major, asked.minor)
        case 4:  # major only
            return has.major == asked.major
        case 5:  # up to
            return (has.major, has.minor) <= (asked.major, asked.minor)
    return False


def _rest(
    context: CallContext, handle: ContextHandle, limit: int, find: Callable[[], list[Entry]]
) -> tuple[ContextHandle, list[Entry]]:
    """The next elements of a search, and its handle where there are more."""
    if handle.is_null:
        found = find()
    else:
        held = context.handles.get(handle)
        if not isinstance(held, list):
            raise RpcFault(FaultStatus.CONTEXT_MISMATCH, "a handle of something else")
        found = held
        context.handles.close(handle)
    page, more = found[:limit], found[limit:]
    return (context.handles.open(more) if more else NULL_HANDLE), page


def _lookup(entries: Sequence[Entry], context: CallContext, reader: NdrReader) -> bytes:
    inquiry = reader.u32("inquiry_type")
    uuid = reader.guid("object") if reader.pointer("object") else NIL
    interface = None
    if reader.pointer("Ifid"):
        interface = InterfaceId(reader.guid("Ifid"), reader.u16("Ifid"), reader.u16("Ifid"))
    option = reader.u32("vers_option")
    handle = reader.context_handle("entry_handle")
    limit = reader.ranged(reader.u32("max_ents"), 0, MAX_ENTRIES, "max_ents")
    check_trailer(context, reader.tolerate_trailer())

    def fits(entry: Entry) -> bool:
        by_interface = inquiry in (Inquiry.BY_INTERFACE, Inquiry.BY_BOTH)
        if by_interface and (
            interface is None or not _version_fits(interface, entry.tower.interface, option)
        ):
            return False
        return inquiry not in (Inquiry.BY_OBJECT, Inquiry.BY_BOTH) or entry.object_uuid == uuid

    if inquiry > Inquiry.BY_BOTH:
        return _lookup_response(NULL_HANDLE, limit, [], CANNOT_PERFORM)
    handle, page = _rest(context, handle, limit, lambda: [entry for entry in entries if fits(entry)])
    return _lookup_response(handle, limit, page, 0 if page else NOT_REGISTERED)


def _lookup_response(handle: ContextHandle, limit: int, page: list[Entry], status: int) -> bytes:
    writer = NdrWriter()
    writer.context_handle(handle)
    writer.u32(len(page))
    writer.conformance(limit)
    writer.variance(len(page))
    for entry in page:
        writer.guid(entry.object_uuid)
        writer.pointer()
        writer.defer(lambda tower=entry.tower: _write_tower(writer, tower))  # type: ignore[misc]
        text = entry.annotation.encode("ascii", "replace")[: ANNOTATION - 1] + b"\0"
        writer.variance(len(text))
        writer.octets(text)
    writer.resolve()
    writer.u32(status)
    return writer.getvalue()


def _map(entries: Sequence[Entry], context: CallContext, reader: NdrReader) -> bytes:
    uuid = reader.guid("obj") if reader.pointer("obj") else NIL
    asked = _read_tower(reader) if reader.pointer("map_tower") else None
    handle = reader.context_handle("entry_handle")
    limit = reader.ranged(reader.u32("max_towers"), 0, MAX_ENTRIES, "max_towers")
    check_trailer(context, reader.tolerate_trailer())

    def fits(entry: Entry) -> bool:
        tower = entry.tower
        return (
            asked is not None
            and asked.is_tcp
            and asked.transfer == tower.transfer
            and _version_fits(asked.interface, tower.interface, 2)
            and entry.object_uuid in (NIL, uuid)
        )

    handle, page = _rest(context, handle, limit, lambda: [entry for entry in entries if fits(entry)])
    writer = NdrWriter()
    writer.context_handle(handle)
    writer.u32(len(page))
    writer.conformance(limit)
    writer.variance(len(page))
    for entry in page:
        writer.pointer()
        writer.defer(lambda tower=entry.tower: _write_tower(writer, tower))  # type: ignore[misc]
    writer.resolve()
    writer.u32(0 if page else NOT_REGISTERED)
    return writer.getvalue()


# Both sides.


def _write_tower(writer: NdrWriter, tower: Tower) -> None:
    """twr_t: a structure that ends in a conformant array, whose count stands before it."""
    octets = tower.encode()
    writer.conformance(len(octets))
    writer.u32(len(octets))
    writer.octets(octets)
    writer.align(4)


def _read_tower(reader: NdrReader) -> Tower:
    count = reader.conformance(limit=MAX_TOWER, field="tower")
    length = reader.u32("tower_length")
    if length != count:
        raise NdrError(f"a tower of {length} octets in an array of {count}")
    return Tower.decode(reader.take(length, "tower"))


# The client.


def map_request(tower: Tower, handle: ContextHandle = NULL_HANDLE, limit: int = 4) -> bytes:
    """The stub of ept_map."""
    writer = NdrWriter()
    writer.pointer()
    writer.guid(NIL)
    writer.pointer()
    _write_tower(writer, tower)
    writer.context_handle(handle)
    writer.u32(limit)
    return writer.getvalue()


def read_map_response(stub: bytes, big_endian: bool = False) -> tuple[ContextHandle, list[Tower], int]:
    """The handle, the towers and the status that ept_map returned."""
    reader = NdrReader(stub, big_endian)
    handle = reader.context_handle("entry_handle")
    count = reader.ranged(reader.u32("num_towers"), 0, MAX_ENTRIES, "num_towers")
    maximum = reader.u32("ITowers")
    actual = reader.variance(min(maximum, MAX_ENTRIES), field="ITowers", expected=count)
    towers: list[Tower] = []
    for _ in range(actual):
        if reader.pointer("ITowers"):
            reader.defer(lambda: towers.append(_read_tower(reader)))
    reader.resolve()
    status = reader.u32("status")
    reader.tolerate_trailer()
    return handle, towers, status


def lookup_request(handle: ContextHandle = NULL_HANDLE, limit: int = 100) -> bytes:
    """The stub of ept_lookup for everything there is."""
    writer = NdrWriter()
    writer.u32(Inquiry.ALL)
    writer.pointer(False)
    writer.pointer(False)
    writer.u32(1)
    writer.context_handle(handle)
    writer.u32(limit)
    return writer.getvalue()


def read_lookup_response(stub: bytes, big_endian: bool = False) -> tuple[ContextHandle, list[Entry], int]:
    """The handle, the entries and the status that ept_lookup returned."""
    reader = NdrReader(stub, big_endian)
    handle = reader.context_handle("entry_handle")
    count = reader.ranged(reader.u32("num_ents"), 0, MAX_ENTRIES, "num_ents")
    maximum = reader.u32("entries")
    reader.variance(min(maximum, MAX_ENTRIES), field="entries", expected=count)
    found: list[tuple[UUID, str]] = []
    towers: list[Tower] = []
    for _ in range(count):
        uuid = reader.guid("object")
        if reader.pointer("tower"):
            reader.defer(lambda: towers.append(_read_tower(reader)))
        length = reader.variance(ANNOTATION, field="annotation")
        found.append((uuid, reader.take(length).rstrip(b"\0").decode("ascii", "replace")))
    reader.resolve()
    status = reader.u32("status")
    reader.tolerate_trailer()
    if len(towers) != len(found):
        raise NdrError("an entry without a tower")
    entries = [Entry(tower, uuid, text) for tower, (uuid, text) in zip(towers, found, strict=True)]
    return handle, entries, status
