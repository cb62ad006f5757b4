"""The two calls of qmmgmt as stubs: what goes in and what comes out (MS-MQMR 2.2, 3.1.4, 6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from uuid import UUID

from lanner.protocols.management.queue_format import QueueFormat, read_queue_format, write_queue_format
from lanner.protocols.management.variant import NULL, Variant, read_variants, write_variants
from lanner.protocols.rpc.interface import InterfaceId
from lanner.protocols.rpc.ndr import NdrError, NdrReader, NdrWriter

__all__ = [
    "ACTION",
    "GET_INFO",
    "MACHINE",
    "MAX_PROPERTIES",
    "QMMGMT",
    "ActionCall",
    "GetInfoAnswer",
    "GetInfoCall",
    "ManagementObject",
    "ObjectType",
    "decode_action",
    "decode_action_answer",
    "decode_get_info",
    "decode_get_info_answer",
    "encode_action",
    "encode_action_answer",
    "encode_get_info",
    "encode_get_info_answer",
]

QMMGMT = InterfaceId(UUID("41208ee0-e970-11d1-9b9e-00e02c064c39"), 1, 0)
"""The interface (MS-MQMR 1.9)."""

GET_INFO = 0
"""R_QMMgmtGetInfo."""
ACTION = 1
"""R_QMMgmtAction."""

MAX_PROPERTIES = 128
"""Properties of one call: [range(1,128)] (MS-MQMR 3.1.4.1)."""

REMEMBERED_STUB = 2_048
"""Octets of a question that is remembered with what it means: all 27 properties of a queue take about 800."""

MAX_ACTION = 64
"""Characters of an action: the longest that there is has ten."""


class ObjectType(IntEnum):
    """What a call is about (MgmtObjectType, MS-MQMR 2.2.2.1)."""

    MACHINE = 1
    QUEUE = 2
    SESSION = 3


@dataclass(frozen=True, slots=True)
class ManagementObject:
    """MGMT_OBJECT (MS-MQMR 2.2.1.2)."""

    type: ObjectType
    queue: QueueFormat | None = None
    """For a queue; None is a NULL pointer."""


MACHINE = ManagementObject(ObjectType.MACHINE)


@dataclass(frozen=True, slots=True)
class GetInfoCall:
    """R_QMMgmtGetInfo: which properties of what."""

    object: ManagementObject
    properties: tuple[int, ...]
    variants: Sequence[Variant]
    """What the client has put where the values go."""


@dataclass(frozen=True, slots=True)
class GetInfoAnswer:
    """The values, and the status. With an error, the values mean nothing."""

    variants: Sequence[Variant]
    status: int


@dataclass(frozen=True, slots=True)
class ActionCall:
    """R_QMMgmtAction: what to do with what."""

    object: ManagementObject
    action: str


# MGMT_OBJECT: an enumeration of 16 bits at 0, the union's tag at 2, the arm at 4.


def _read_object(reader: NdrReader) -> ManagementObject:
    reader.align(4)
    number = reader.enum16("type")
    tag = reader.enum16("the union's tag")
    if tag != number:
        raise NdrError(f"the object is of type {number}, its union of {tag}")
    try:
        kind = ObjectType(number)
    except ValueError:
        raise NdrError(f"{number} is no type of a management object") from None
    if kind is not ObjectType.QUEUE:
        reader.u32("Reserved")
        return ManagementObject(kind)
    return ManagementObject(kind, read_queue_format(reader) if reader.pointer("pQueueFormat") else None)


def _write_object(writer: NdrWriter, given: ManagementObject) -> None:
    writer.align(4)
    writer.enum16(given.type)
    writer.enum16(given.type)
    if given.type is not ObjectType.QUEUE:
        writer.u32(0)
        return
    writer.pointer(given.queue is not None)
    if given.queue is not None:
        write_queue_format(writer, given.queue)


# R_QMMgmtGetInfo.


def encode_get_info(
    target: ManagementObject, properties: Sequence[int], *, big_endian: bool = False
) -> bytes:
    """Ask for properties; the values are VT_NULL, as they have to be."""
    return _encode_get_info(target, tuple(properties), big_endian)


@lru_cache(maxsize=256)
def _encode_get_info(target: ManagementObject, properties: tuple[int, ...], big_endian: bool) -> bytes:
    writer = NdrWriter(big_endian)
    _write_object(writer, target)
    writer.u32(len(properties))
    writer.conformance(len(properties))
    for number in properties:
        writer.u32(number)
    write_variants(writer, [NULL] * len(properties))
    return writer.getvalue()


def decode_get_info(stub: bytes, *, big_endian: bool = False) -> GetInfoCall:
    """Read what is asked for. Whatever follows, such as a verification trailer, is let be."""
    if len(stub) <= REMEMBERED_STUB:
        return _remembered_get_info(stub, big_endian)
    return _decode_get_info(stub, big_endian)


@lru_cache(maxsize=256)
def _remembered_get_info(stub: bytes, big_endian: bool) -> GetInfoCall:
    # Who watches a machine asks the same again and again.
    return _decode_get_info(stub, big_endian)


def _decode_get_info(stub: bytes, big_endian: bool) -> GetInfoCall:
    reader = NdrReader(stub, big_endian)
    target = _read_object(reader)
    count = reader.ranged(reader.u32("cp"), 1, MAX_PROPERTIES, "cp")
    properties = reader.conformant_array(
        reader.u32, limit=MAX_PROPERTIES, expected=count, item_size=4, field="aProp"
    )
    variants = read_variants(reader, count, "apVar")
    reader.tolerate_trailer()
    return GetInfoCall(target, tuple(properties), variants)


def encode_get_info_answer(variants: Sequence[Variant], status: int) -> bytes:
    """Answer with the values."""
    writer = NdrWriter()
    write_variants(writer, variants)
    writer.u32(status)
    return writer.getvalue()


def decode_get_info_answer(stub: bytes, count: int) -> GetInfoAnswer:
    """Read as many values as were asked for, and the status."""
    reader = NdrReader(stub)
    variants = read_variants(reader, count, "apVar")
    status = reader.u32("the status")
    reader.tolerate_trailer()
    return GetInfoAnswer(variants, status)


# R_QMMgmtAction.


def encode_action(target: ManagementObject, action: str, *, big_endian: bool = False) -> bytes:
    """Ask for something to be done."""
    writer = NdrWriter(big_endian)
    _write_object(writer, target)
    writer.wide_string(action)
    return writer.getvalue()


def decode_action(stub: bytes, *, big_endian: bool = False) -> ActionCall:
    """Read what is to be done.

    The interface does not declare the action [string]; the text says that it is a string that ends with a
    null (3.1.4.2), and one character alone could name none.
    """
    reader = NdrReader(stub, big_endian)
    target = _read_object(reader)
    action = reader.wide_string(limit=MAX_ACTION, field="lpwszAction")
    reader.tolerate_trailer()
    return ActionCall(target, action)


def encode_action_answer(status: int) -> bytes:
    """Say how it ended."""
    writer = NdrWriter()
    writer.u32(status)
    return writer.getvalue()


def decode_action_answer(stub: bytes) -> int:
    """Read how it ended."""
    reader = NdrReader(stub)
    status = reader.u32("the status")
    reader.tolerate_trailer()
    return status
