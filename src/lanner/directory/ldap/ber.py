"""The part of ASN.1's basic encoding that LDAP uses (RFC 2251 5.1): definite lengths, tags of one byte.

Reading is bounds-checked: a value ends where its length says, inside of the one that holds it.
"""

from __future__ import annotations

__all__ = [
    "BerError",
    "Reader",
    "boolean",
    "enumerated",
    "header_size",
    "integer",
    "octets",
    "sequence",
    "tagged",
]

BOOLEAN, INTEGER, OCTETS, ENUMERATED, SEQUENCE, SET = 0x01, 0x02, 0x04, 0x0A, 0x30, 0x31

_MAX_LENGTH_BYTES = 4
"""Four bytes count to 4 GB; whoever sends more of them sends no LDAP."""

_MAX_INTEGER_BYTES = 8
"""LDAP's integers have 31 bits."""


class BerError(ValueError):
    """Bytes that are no such encoding."""


def tagged(tag: int, content: bytes) -> bytes:
    """A value with its tag and length."""
    size = len(content)
    if size < 0x80:
        return bytes((tag, size)) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(length))) + length + content


def sequence(*parts: bytes, tag: int = SEQUENCE) -> bytes:
    """Values one after the other."""
    return tagged(tag, b"".join(parts))


def octets(value: bytes | str, tag: int = OCTETS) -> bytes:
    """A string of bytes; a text becomes UTF-8."""
    return tagged(tag, value.encode() if isinstance(value, str) else value)


def integer(value: int, tag: int = INTEGER) -> bytes:
    """A number in the fewest bytes that hold it and its sign."""
    spare = value if value >= 0 else ~value
    return tagged(tag, value.to_bytes(spare.bit_length() // 8 + 1, "big", signed=True))


def enumerated(value: int) -> bytes:
    """One of several."""
    return integer(value, ENUMERATED)


def boolean(value: bool) -> bytes:
    """True or false."""
    return tagged(BOOLEAN, b"\xff" if value else b"\x00")


def header_size(second: int) -> int:
    """How many bytes tag and length have together, by the second of them."""
    if second < 0x80:
        return 2
    count = second & 0x7F
    if not 1 <= count <= _MAX_LENGTH_BYTES:
        raise BerError(f"a length of {count} bytes")
    return 2 + count


class Reader:
    """Reads the values between two positions of some bytes."""

    __slots__ = ("_data", "_end", "_position")

    def __init__(self, data: bytes, start: int = 0, end: int | None = None) -> None:
        self._data = data
        self._position = start
        self._end = len(data) if end is None else end

    @property
    def at_end(self) -> bool:
        """Whether nothing is left."""
        return self._position >= self._end

    def peek(self) -> int:
        """The tag of the next value, or -1."""
        return -1 if self.at_end else self._data[self._position]

    def next(self) -> tuple[int, Reader]:
        """The next value: its tag, and a reader of its content."""
        start = self._position
        if start + 2 > self._end:
            raise BerError("a value is cut off in its header")
        tag, second = self._data[start], self._data[start + 1]
        if tag & 0x1F == 0x1F:
            raise BerError("a tag of several bytes")
        content = start + header_size(second)
        if content > self._end:
            raise BerError("a value is cut off in its length")
        length = second if second < 0x80 else int.from_bytes(self._data[start + 2 : content], "big")
        if length > self._end - content:
            raise BerError(f"a value of {length} bytes where {self._end - content} are left")
        self._position = content + length
        return tag, Reader(self._data, content, content + length)

    def expect(self, tag: int) -> Reader:
        """The content of the next value, which has this tag."""
        found, content = self.next()
        if found != tag:
            raise BerError(f"tag {found:#04x} where {tag:#04x} belongs")
        return content

    def rest(self) -> bytes:
        """All that is left, as bytes."""
        start, self._position = self._position, self._end
        return self._data[start : self._end]

    def octets(self, tag: int = OCTETS) -> bytes:
        """The next value as bytes."""
        return self.expect(tag).rest()

    def text(self, tag: int = OCTETS) -> str:
        """The next value as text."""
        try:
            return self.octets(tag).decode()
        except UnicodeDecodeError:
            raise BerError("a text is not UTF-8") from None

    def integer(self, tag: int = INTEGER) -> int:
        """The next value as a number."""
        content = self.octets(tag)
        if not 1 <= len(content) <= _MAX_INTEGER_BYTES:
            raise BerError(f"a number of {len(content)} bytes")
        return int.from_bytes(content, "big", signed=True)
