"""NDR 2.0: parameters of a call as octets (C706 chapter 14, MS-RPCE 2.2.4 and 3.1.1.5.3).

A primitive is aligned to its own size, counted from the beginning of the stub. An array or string brings its
counts. A pointer is a referent identifier in place, zero for NULL; what it points to follows the outermost
structure or array that holds the pointer, left to right and depth first. `defer` and `resolve` do that:

    count = reader.u32("count")
    present = reader.pointer_for(count, "names")      # NULL with a count is refused
    if present:
        reader.conformance(limit=64, expected=count, field="names")
        for _ in range(count):
            if reader.pointer("name"):
                reader.defer(lambda: names.append(reader.wide_string(limit=256, field="name")))
        reader.resolve()

Unions are read by hand: no interface here declares ms_union, so the arm takes its own alignment.
Everything that a peer counts is checked against a limit that the caller names and against the octets that are
there, before anything is reserved for it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from lanner.protocols.rpc.errors import NdrError

__all__ = ["MAX_DEFERRED_DEPTH", "NULL_HANDLE", "ContextHandle", "NdrError", "NdrReader", "NdrWriter"]

T = TypeVar("T")

MAX_DEFERRED_DEPTH = 32
"""How deep pointees may hold pointers: no interface of MSMQ needs more than four, and Python's stack ends."""

NIL = UUID(int=0)

FIRST_REFERENT = 0x00020000
"""Where referent identifiers begin. Any number but zero would do; this one is what captures show."""


@dataclass(frozen=True, slots=True)
class ContextHandle:
    """A context handle: 20 octets that the server gave out (C706 14.2, MS-RPCE 2.2.1.1.4)."""

    attributes: int = 0
    uuid: UUID = NIL

    @property
    def is_null(self) -> bool:
        """Whether it is no handle yet, or no more."""
        return self.attributes == 0 and self.uuid.int == 0


NULL_HANDLE = ContextHandle()


class NdrReader:
    """Reads parameters one after the other, and never past the end."""

    __slots__ = ("_data", "_deferred", "_depth", "_order", "_position")

    def __init__(self, data: bytes, big_endian: bool = False) -> None:
        self._data = data
        self._order = ">" if big_endian else "<"
        self._position = 0
        self._deferred: list[Callable[[], object]] = []
        self._depth = 0

    @property
    def position(self) -> int:
        """Octets read so far, gaps included."""
        return self._position

    @property
    def remaining(self) -> int:
        """Octets that nobody has read."""
        return len(self._data) - self._position

    # Primitives.

    def align(self, size: int) -> None:
        """Skip the gap before something of this alignment. What is in it does not matter (14.2.2)."""
        gap = -self._position % size
        if gap:
            self.take(gap, "a gap")

    def take(self, size: int, field: str = "octets") -> bytes:
        """Read so many octets as they are."""
        end = self._position + size
        if size < 0 or end > len(self._data):
            raise NdrError(f"{field} needs {size} octets at {self._position}, {self.remaining} are left")
        taken = self._data[self._position : end]
        self._position = end
        return taken

    def _number(self, form: str, size: int, field: str) -> int:
        position = self._position + -self._position % size
        end = position + size
        if end > len(self._data):
            raise NdrError(f"{field} needs {size} octets at {position}, the stub has {len(self._data)}")
        self._position = end
        number: int = struct.unpack_from(self._order + form, self._data, position)[0]
        return number

    def u8(self, field: str = "octet") -> int:
        """An unsigned integer of 8 bits."""
        return self._number("B", 1, field)

    def u16(self, field: str = "short") -> int:
        """An unsigned integer of 16 bits."""
        return self._number("H", 2, field)

    def i16(self, field: str = "short") -> int:
        """A signed integer of 16 bits."""
        return self._number("h", 2, field)

    def u32(self, field: str = "long") -> int:
        """An unsigned integer of 32 bits."""
        return self._number("I", 4, field)

    def i32(self, field: str = "long") -> int:
        """A signed integer of 32 bits."""
        return self._number("i", 4, field)

    def u64(self, field: str = "hyper") -> int:
        """An unsigned integer of 64 bits."""
        return self._number("Q", 8, field)

    def i64(self, field: str = "hyper") -> int:
        """A signed integer of 64 bits."""
        return self._number("q", 8, field)

    def enum16(self, field: str = "enum") -> int:
        """An enumeration: 16 bits on the wire unless it is v1_enum (14.2.5, MS-RPCE 2.2.4.6)."""
        value = self._number("H", 2, field)
        if value > 0x7FFF:
            raise NdrError(f"{field} is {value}, an enumeration ends at 32767")
        return value

    def ranged(self, value: int, low: int, high: int, field: str) -> int:
        """Refuse a number outside what [range] declares (MS-RPCE 2.2.4.14)."""
        if not low <= value <= high:
            raise NdrError(f"{field} is {value}, not {low} to {high}")
        return value

    def guid(self, field: str = "guid") -> UUID:
        """A GUID: a structure of numbers, aligned to 4 (MS-DTYP 2.3.4)."""
        self.align(4)
        raw = self.take(16, field)
        return UUID(bytes=raw) if self._order == ">" else UUID(bytes_le=raw)

    def context_handle(self, field: str = "handle") -> ContextHandle:
        """A context handle."""
        return ContextHandle(self.u32(field), self.guid(field))

    # Pointers.

    def pointer(self, field: str = "pointer") -> int:
        """A unique or full pointer: its referent identifier, zero for NULL."""
        return self._number("I", 4, field)

    def reference(self, field: str = "pointer") -> int:
        """An embedded reference pointer, which is never NULL (MS-RPCE 3.1.1.5.3.2)."""
        referent = self.pointer(field)
        if not referent:
            raise NdrError(f"{field} is NULL, and must not be")
        return referent

    def pointer_for(self, count: int, field: str = "pointer") -> int:
        """A pointer to so many elements: NULL with a count is refused (MS-RPCE 3.1.1.5.3.2)."""
        referent = self.pointer(field)
        if not referent and count:
            raise NdrError(f"{field} is NULL with a count of {count}")
        return referent

    def defer(self, read: Callable[[], object]) -> None:
        """Read what a pointer points to when its turn comes."""
        self._deferred.append(read)

    def resolve(self) -> None:
        """Read everything deferred: in order, and what a pointee defers right after it (14.3.12.3)."""
        deferred, self._deferred = self._deferred, []
        if not deferred:
            return
        if self._depth >= MAX_DEFERRED_DEPTH:
            raise NdrError(f"pointers lie deeper than {MAX_DEFERRED_DEPTH}")
        self._depth += 1
        for read in deferred:
            read()
            self.resolve()
        self._depth -= 1

    # Arrays and strings.

    def conformance(
        self, *, limit: int, expected: int | None = None, item_size: int = 1, field: str = "array"
    ) -> int:
        """The maximum count of a conformant array.

        It is what another parameter says, if one does (``expected``, MS-RPCE 3.1.1.5.3.1), at most ``limit``,
        and no more than the octets left can hold. An element takes at least ``item_size`` octets.
        """
        count = self.u32(field)
        if expected is not None and count != expected:
            raise NdrError(f"{field} has {count} elements, its count says {expected}")
        if count > limit:
            raise NdrError(f"{field} has {count} elements, more than {limit}")
        if count * item_size > self.remaining:
            raise NdrError(f"{field} has {count} elements, only {self.remaining} octets are left")
        return count

    def variance(self, maximum: int, *, field: str = "array", expected: int | None = None) -> int:
        """The offset, which is zero, and the actual count of a varying array, at most its maximum."""
        offset, count = self.u32(field), self.u32(field)
        if offset:
            raise NdrError(f"{field} begins at element {offset}")
        if count > maximum:
            raise NdrError(f"{field} has {count} elements, and room for {maximum}")
        if expected is not None and count != expected:
            raise NdrError(f"{field} has {count} elements, its count says {expected}")
        return count

    def conformant_array(
        self,
        read: Callable[[], T],
        *,
        limit: int,
        expected: int | None = None,
        item_size: int = 1,
        field: str = "array",
    ) -> list[T]:
        """A conformant array; what its elements point to is still to be resolved."""
        count = self.conformance(limit=limit, expected=expected, item_size=item_size, field=field)
        return [read() for _ in range(count)]

    def varying_array(
        self, read: Callable[[], T], *, limit: int, item_size: int = 1, field: str = "array"
    ) -> list[T]:
        """A conformant varying array; what its elements point to is still to be resolved."""
        maximum = self._bounded_maximum(limit, field)
        count = self.variance(maximum, field=field)
        if count * item_size > self.remaining:
            raise NdrError(f"{field} has {count} elements, only {self.remaining} octets are left")
        return [read() for _ in range(count)]

    def conformant_bytes(self, *, limit: int, expected: int | None = None, field: str = "octets") -> bytes:
        """A conformant array of octets."""
        return self.take(self.conformance(limit=limit, expected=expected, field=field), field)

    def wide_string(self, *, limit: int, field: str = "string") -> str:
        """A conformant varying string of wchar_t. ``limit`` counts characters without the closing null."""
        count = self._string_length(limit, field)
        raw = self.take(count * 2, field)
        if raw[-2:] != b"\0\0":
            raise NdrError(f"{field} has no closing null")
        try:
            text = raw[:-2].decode("utf-16-be" if self._order == ">" else "utf-16-le")
        except UnicodeDecodeError as error:
            raise NdrError(f"{field} is no UTF-16: {error.reason}") from error
        return self._without_null(text, field)

    def ascii_string(self, *, limit: int, field: str = "string") -> str:
        """A conformant varying string of octets. ``limit`` counts characters without the closing null."""
        count = self._string_length(limit, field)
        raw = self.take(count, field)
        if raw[-1:] != b"\0":
            raise NdrError(f"{field} has no closing null")
        return self._without_null(raw[:-1].decode("latin-1"), field)

    def _string_length(self, limit: int, field: str) -> int:
        maximum = self._bounded_maximum(limit + 1, field)
        count = self.variance(maximum, field=field)
        if not count:
            raise NdrError(f"{field} has no closing null")
        return count

    def _bounded_maximum(self, limit: int, field: str) -> int:
        # The maximum is room that the sender had; only what is actually there takes any here.
        maximum = self.u32(field)
        if maximum > limit:
            raise NdrError(f"{field} has room for {maximum} elements, more than {limit}")
        return maximum

    @staticmethod
    def _without_null(text: str, field: str) -> str:
        if "\0" in text:
            raise NdrError(f"{field} ends before its closing null")
        return text

    # The end.

    def finish(self) -> None:
        """Refuse octets that are left over, and pointees that nobody has read."""
        self._check_resolved()
        if self.remaining:
            raise NdrError(f"{self.remaining} octets follow the last parameter")

    def tolerate_trailer(self) -> bytes:
        """End here, whatever follows, and say what does: a verification trailer may (MS-RPCE 2.2.2.13)."""
        self._check_resolved()
        return self.take(self.remaining)

    def _check_resolved(self) -> None:
        if self._deferred:
            raise NdrError("what a pointer points to was not read")


class NdrWriter:
    """Writes parameters one after the other, little-endian unless told otherwise."""

    __slots__ = ("_data", "_deferred", "_order", "_referent")

    def __init__(self, big_endian: bool = False) -> None:
        self._data = bytearray()
        self._order = ">" if big_endian else "<"
        self._deferred: list[Callable[[], object]] = []
        self._referent = FIRST_REFERENT

    @property
    def position(self) -> int:
        """Octets written so far."""
        return len(self._data)

    def getvalue(self) -> bytes:
        """The stub."""
        assert not self._deferred, "what a pointer points to was not written"
        return bytes(self._data)

    # Primitives.

    def align(self, size: int) -> None:
        """Fill the gap before something of this alignment with zeros."""
        self._data.extend(bytes(-len(self._data) % size))

    def octets(self, data: bytes) -> None:
        """Octets as they are."""
        self._data.extend(data)

    def _number(self, form: str, size: int, value: int) -> None:
        gap = -len(self._data) % size
        if gap:
            self._data.extend(bytes(gap))
        try:
            self._data.extend(struct.pack(self._order + form, value))
        except struct.error as error:
            raise NdrError(f"{value} does not go into {size} octets") from error

    def u8(self, value: int) -> None:
        """An unsigned integer of 8 bits."""
        self._number("B", 1, value)

    def u16(self, value: int) -> None:
        """An unsigned integer of 16 bits."""
        self._number("H", 2, value)

    def i16(self, value: int) -> None:
        """A signed integer of 16 bits."""
        self._number("h", 2, value)

    def u32(self, value: int) -> None:
        """An unsigned integer of 32 bits."""
        self._number("I", 4, value)

    def i32(self, value: int) -> None:
        """A signed integer of 32 bits."""
        self._number("i", 4, value)

    def u64(self, value: int) -> None:
        """An unsigned integer of 64 bits."""
        self._number("Q", 8, value)

    def i64(self, value: int) -> None:
        """A signed integer of 64 bits."""
        self._number("q", 8, value)

    def enum16(self, value: int) -> None:
        """An enumeration of 16 bits."""
        if not 0 <= value <= 0x7FFF:
            raise NdrError(f"{value} is no value of an enumeration")
        self._number("H", 2, value)

    def guid(self, value: UUID) -> None:
        """A GUID, aligned to 4."""
        self.align(4)
        self._data.extend(value.bytes if self._order == ">" else value.bytes_le)

    def context_handle(self, handle: ContextHandle) -> None:
        """A context handle."""
        self.u32(handle.attributes)
        self.guid(handle.uuid)

    # Pointers.

    def pointer(self, is_present: bool = True) -> None:
        """A pointer: a fresh referent identifier, or NULL."""
        if not is_present:
            self.u32(0)
            return
        self.u32(self._referent)
        self._referent += 4

    def defer(self, write: Callable[[], object]) -> None:
        """Write what a pointer points to when its turn comes."""
        self._deferred.append(write)

    def resolve(self) -> None:
        """Write everything deferred, in the order that a reader expects."""
        deferred, self._deferred = self._deferred, []
        for write in deferred:
            write()
            self.resolve()

    # Arrays and strings.

    def conformance(self, count: int) -> None:
        """The maximum count of a conformant array."""
        self.u32(count)

    def variance(self, count: int) -> None:
        """The offset and the actual count of a varying array."""
        self.u32(0)
        self.u32(count)

    def conformant_bytes(self, data: bytes) -> None:
        """A conformant array of octets."""
        self.conformance(len(data))
        self.octets(data)

    def wide_string(self, text: str) -> None:
        """A conformant varying string of wchar_t with its closing null."""
        raw = (text + "\0").encode("utf-16-be" if self._order == ">" else "utf-16-le", "surrogatepass")
        self.conformance(len(raw) // 2)
        self.variance(len(raw) // 2)
        self.octets(raw)

    def ascii_string(self, text: str) -> None:
        """A conformant varying string of octets with its closing null."""
        raw = (text + "\0").encode("latin-1")
        self.conformance(len(raw))
        self.variance(len(raw))
        self.octets(raw)
