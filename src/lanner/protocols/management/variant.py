"""PROPVARIANT: a value that says its own type (MS-MQMQ 2.2.12, 2.2.13), and its NDR form.

The union is not declared ms_union, so its arm has the arm's own alignment: the structure begins at a
multiple of 8 (its widest arm), the type stands at 0, the union's tag at 8, an arm of 1 or 2 octets at 10, one
of 4 octets or with a pointer at 12, one of 8 octets at 16. What an arm points to follows the array that the
variant is in.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any
from uuid import UUID

import msgspec

from lanner.protocols.rpc.ndr import NdrError, NdrReader, NdrWriter

__all__ = [
    "EMPTY",
    "MAX_BLOB",
    "MAX_ELEMENTS",
    "MAX_TEXT",
    "NULL",
    "VECTOR",
    "Variant",
    "VariantType",
    "read_variants",
    "write_variants",
]

MAX_ELEMENTS = 262_144
"""Elements of a vector: a machine with more queues than this is managed by other means."""

MAX_TEXT = 65_536
"""Characters of a string: what the longest format name has."""

MAX_BLOB = 65_536
"""Octets of a blob; the only one of this interface has 16."""

_RESERVED = bytes(6)

_SMALLEST = 10
"""Octets that the shortest variant takes: up to the end of the union's tag."""


class VariantType(IntEnum):
    """What a variant holds (VARENUM, MS-MQMQ 2.2.12)."""

    EMPTY = 0
    NULL = 1
    I2 = 2
    I4 = 3
    BOOL = 11
    VARIANT = 12
    I1 = 16
    UI1 = 17
    UI2 = 18
    UI4 = 19
    I8 = 20
    UI8 = 21
    LPWSTR = 31
    BLOB = 65
    CLSID = 72


VECTOR = 0x1000
"""VT_VECTOR: several values of the type that it stands with."""


class Variant(msgspec.Struct, frozen=True, gc=False):
    """A type and a value: a number, ``bool``, ``str``, ``bytes``, UUID, a list of them, or None.

    None is the value of EMPTY and NULL, and of a string, blob or GUID whose pointer is NULL.
    """

    type: int
    value: Any = None

    def __str__(self) -> str:
        return f"{type_name(self.type)} {self.value!r}"


EMPTY = Variant(VariantType.EMPTY)
NULL = Variant(VariantType.NULL)


def type_name(number: int) -> str:
    """A type as the specification writes it, or its number."""
    try:
        base = f"VT_{VariantType(number & ~VECTOR).name}"
    except ValueError:
        return f"{number:#06x}"
    return f"VT_VECTOR|{base}" if number & VECTOR else base


# Reading.

_Fill = Callable[[Any], None]
_Read = Callable[[NdrReader, _Fill], None]


def read_variants(reader: NdrReader, count: int, field: str) -> list[Variant]:
    """A conformant array of so many variants, with everything that they point to."""
    reader.conformance(limit=MAX_ELEMENTS, expected=count, item_size=_SMALLEST, field=field)
    found = [_read_variant(reader) for _ in range(count)]
    reader.resolve()
    return found


def _read_variant(reader: NdrReader) -> Variant:
    reader.align(8)
    kind = reader.u16("vt")
    reader.take(6, "reserved fields")  # ignored, whatever they are (MS-MQMQ 2.2.13.1)
    tag = reader.u16("the union's tag")
    if tag != kind:
        raise NdrError(f"the variant is of type {type_name(kind)}, its union of {type_name(tag)}")
    if kind in (VariantType.NULL, VariantType.EMPTY):
        return NULL if kind == VariantType.NULL else EMPTY
    scalar = _SCALARS.get(kind)
    if scalar is not None:
        return Variant(kind, scalar(reader))
    read = _POINTERS.get(kind)
    if read is None:
        raise NdrError(f"{type_name(kind)} is no type of a variant")
    variant = Variant(kind)
    # A value behind a pointer comes later; until then nobody sees the variant.
    read(reader, lambda value: msgspec.structs.force_setattr(variant, "value", value))
    return variant


def _read_bool(reader: NdrReader) -> bool:
    number = reader.u16("boolVal")
    if number not in (0, 0xFFFF):
        raise NdrError(f"boolVal is {number:#06x}, neither VARIANT_TRUE nor VARIANT_FALSE")
    return bool(number)


def _read_i1(reader: NdrReader) -> int:
    number = reader.u8("cVal")
    return number - 256 if number > 127 else number


def _read_text(reader: NdrReader, fill: _Fill) -> None:
    if reader.pointer("pwszVal"):
        reader.defer(lambda: fill(reader.wide_string(limit=MAX_TEXT, field="pwszVal")))


def _read_guid(reader: NdrReader, fill: _Fill) -> None:
    if reader.pointer("puuid"):
        reader.defer(lambda: fill(reader.guid("puuid")))


def _read_blob(reader: NdrReader, fill: _Fill) -> None:
    size = reader.u32("cbSize")
    if reader.pointer_for(size, "pBlobData"):
        reader.defer(lambda: fill(reader.conformant_bytes(limit=MAX_BLOB, expected=size, field="pBlobData")))
    else:
        fill(b"")


def _read_vector(read_item: Callable[[NdrReader], Any], item_size: int) -> _Read:
    def read(reader: NdrReader, fill: _Fill) -> None:
        count = reader.u32("cElems")
        if not reader.pointer_for(count, "pElems"):
            fill([])
            return

        def read_elements() -> None:
            reader.conformance(limit=MAX_ELEMENTS, expected=count, item_size=item_size, field="pElems")
            fill([read_item(reader) for _ in range(count)])

        reader.defer(read_elements)

    return read


def _read_texts(reader: NdrReader, fill: _Fill) -> None:
    count = reader.u32("cElems")
    if not reader.pointer_for(count, "pElems"):
        fill([])
        return

    def read_elements() -> None:
        reader.conformance(limit=MAX_ELEMENTS, expected=count, item_size=4, field="pElems")
        texts: list[str | None] = [None] * count
        for index in range(count):
            if reader.pointer("pElems"):
                reader.defer(lambda at=index: texts.__setitem__(at, _wide(reader)))  # type: ignore[misc]
        fill(texts)

    reader.defer(read_elements)


def _wide(reader: NdrReader) -> str:
    return reader.wide_string(limit=MAX_TEXT, field="pElems")


def _read_variant_vector(reader: NdrReader, fill: _Fill) -> None:
    count = reader.u32("cElems")
    if reader.pointer_for(count, "pElems"):
        reader.defer(lambda: fill(_read_nested(reader, count)))
    else:
        fill([])


def _read_nested(reader: NdrReader, count: int) -> list[Variant]:
    reader.conformance(limit=MAX_ELEMENTS, expected=count, item_size=_SMALLEST, field="pElems")
    return [_read_variant(reader) for _ in range(count)]


_SCALARS: dict[int, Callable[[NdrReader], Any]] = {
    VariantType.I1: _read_i1,
    VariantType.UI1: NdrReader.u8,
    VariantType.I2: NdrReader.i16,
    VariantType.UI2: NdrReader.u16,
    VariantType.I4: NdrReader.i32,
    VariantType.UI4: NdrReader.u32,
    VariantType.I8: NdrReader.i64,
    VariantType.UI8: NdrReader.u64,
    VariantType.BOOL: _read_bool,
}

_POINTERS: dict[int, _Read] = {
    VariantType.CLSID: _read_guid,
    VariantType.BLOB: _read_blob,
    VariantType.LPWSTR: _read_text,
    VECTOR | VariantType.UI1: _read_vector(NdrReader.u8, 1),
    VECTOR | VariantType.UI2: _read_vector(NdrReader.u16, 2),
    VECTOR | VariantType.I4: _read_vector(NdrReader.i32, 4),
    VECTOR | VariantType.UI4: _read_vector(NdrReader.u32, 4),
    VECTOR | VariantType.UI8: _read_vector(NdrReader.u64, 8),
    VECTOR | VariantType.CLSID: _read_vector(NdrReader.guid, 16),
    VECTOR | VariantType.LPWSTR: _read_texts,
    VECTOR | VariantType.VARIANT: _read_variant_vector,
}
"""These and the scalars are the arms of tag_inner_PROPVARIANT (MS-MQMQ 2.2.13.1); there are no others."""


# Writing.


def write_variants(writer: NdrWriter, variants: Sequence[Variant]) -> None:
    """A conformant array of variants, with everything that they point to."""
    _write_elements(writer, variants)
    writer.resolve()


def _write_elements(writer: NdrWriter, variants: Sequence[Variant]) -> None:
    writer.conformance(len(variants))
    for variant in variants:
        _write_variant(writer, variant)


def _write_variant(writer: NdrWriter, variant: Variant) -> None:
    kind = variant.type
    writer.align(8)
    writer.u16(kind)
    writer.octets(_RESERVED)
    writer.u16(kind)
    if kind in (VariantType.NULL, VariantType.EMPTY):
        return
    write = _WRITERS.get(kind)
    if write is None:
        raise NdrError(f"{type_name(kind)} is no type of a variant")
    write(writer, variant.value)


def _write_i1(writer: NdrWriter, value: int) -> None:
    try:
        writer.octets(struct.pack("b", value))
    except struct.error as error:
        raise NdrError(f"{value} does not go into one octet") from error


def _write_text(writer: NdrWriter, value: str | None) -> None:
    writer.pointer(value is not None)
    if value is not None:
        writer.defer(lambda: writer.wide_string(value))


def _write_guid(writer: NdrWriter, value: UUID | None) -> None:
    writer.pointer(value is not None)
    if value is not None:
        writer.defer(lambda: writer.guid(value))


def _write_blob(writer: NdrWriter, value: bytes) -> None:
    writer.u32(len(value))
    writer.pointer(bool(value))
    if value:
        writer.defer(lambda: writer.conformant_bytes(value))


def _write_vector(write_item: Callable[[NdrWriter, Any], None]) -> Callable[[NdrWriter, Any], None]:
    def write(writer: NdrWriter, values: Sequence[Any]) -> None:
        writer.u32(len(values))
        writer.pointer(bool(values))

        def write_elements() -> None:
            writer.conformance(len(values))
            for value in values:
                write_item(writer, value)

        if values:
            writer.defer(write_elements)

    return write


_WRITERS: dict[int, Callable[[NdrWriter, Any], None]] = {
    VariantType.I1: _write_i1,
    VariantType.UI1: NdrWriter.u8,
    VariantType.I2: NdrWriter.i16,
    VariantType.UI2: NdrWriter.u16,
    VariantType.I4: NdrWriter.i32,
    VariantType.UI4: NdrWriter.u32,
    VariantType.I8: NdrWriter.i64,
    VariantType.UI8: NdrWriter.u64,
    VariantType.BOOL: lambda writer, value: writer.u16(0xFFFF if value else 0),
    VariantType.CLSID: _write_guid,
    VariantType.BLOB: _write_blob,
    VariantType.LPWSTR: _write_text,
    VECTOR | VariantType.UI1: _write_vector(NdrWriter.u8),
    VECTOR | VariantType.UI2: _write_vector(NdrWriter.u16),
    VECTOR | VariantType.I4: _write_vector(NdrWriter.i32),
    VECTOR | VariantType.UI4: _write_vector(NdrWriter.u32),
    VECTOR | VariantType.UI8: _write_vector(NdrWriter.u64),
    VECTOR | VariantType.CLSID: _write_vector(NdrWriter.guid),
    VECTOR | VariantType.LPWSTR: _write_vector(_write_text),
    VECTOR | VariantType.VARIANT: _write_vector(_write_variant),
}
