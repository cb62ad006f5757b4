"""An entry of the directory, and its values read as what they should be.

Whatever is not so is a MalformedEntryError that names the entry and the attribute.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from uuid import UUID

from lanner.directory.ldap.errors import MalformedEntryError

__all__ = ["MAX_OCTETS", "MAX_TEXT", "MAX_VALUES", "Entry"]

MAX_VALUES = 256
"""Values of one attribute, as the directory file has it for one list."""

MAX_TEXT = 1024
"""Characters of a text; the schema's longest, a description, has as many."""

MAX_OCTETS = 1024 * 1024
"""Bytes of one value: mSMQSignCertificates may have as many by the schema."""

_GUID_LENGTH = 16
_TIME = re.compile(rb"(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(?:\.\d{1,9})?Z")
_CUT = ";range="
_BOOLEANS = {b"TRUE": True, b"FALSE": False, b"1": True, b"0": False}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Entry:
    """A distinguished name with attributes. Names of attributes have no case."""

    __slots__ = ("_attributes", "_cut", "dn")

    def __init__(self, dn: str, attributes: Mapping[str, Sequence[bytes]]) -> None:
        self.dn = dn
        self._attributes = {name.casefold(): tuple(values) for name, values in attributes.items()}
        self._cut = {name.partition(_CUT)[0] for name in self._attributes if _CUT in name}

    def __repr__(self) -> str:
        return f"Entry({self.dn!r})"

    def wrong(self, attribute: str, what: str) -> MalformedEntryError:
        """The error for a value of this entry."""
        return MalformedEntryError(self.dn, attribute, what)

    def values(self, name: str) -> tuple[bytes, ...]:
        """All values of an attribute."""
        key = name.casefold()
        found = self._attributes.get(key, ())
        # A server that has more values than it likes to send says so in the attribute's name.
        if key in self._cut:
            raise self.wrong(name, f"has more values than {MAX_VALUES}")
        if len(found) > MAX_VALUES:
            raise self.wrong(name, f"has {len(found)} values; the limit is {MAX_VALUES}")
        return found

    def octets(self, name: str) -> bytes | None:
        """The value of an attribute that has one at most."""
        found = self.values(name)
        if len(found) > 1:
            raise self.wrong(name, f"has {len(found)} values where one belongs")
        if found and len(found[0]) > MAX_OCTETS:
            raise self.wrong(name, f"has {len(found[0]):,} bytes; the limit is {MAX_OCTETS:,}")
        return found[0] if found else None

    def text(self, name: str, default: str = "") -> str:
        """A directory string."""
        found = self.octets(name)
        return default if found is None else self._text(name, found)

    def texts(self, name: str) -> tuple[str, ...]:
        """Several directory strings, or distinguished names."""
        return tuple(self._text(name, one) for one in self.values(name))

    def boolean(self, name: str, default: bool = False) -> bool:
        """A boolean. MS-MQDSSM writes 1 and 0 of them; LDAP's syntax has TRUE and FALSE."""
        found = self.values(name)[:1]  # mSMQSiteForeign may have several by the schema
        if not found:
            return default
        try:
            return _BOOLEANS[found[0].upper()]
        except KeyError:
            raise self.wrong(name, f"{found[0][:32]!r} is neither TRUE nor FALSE") from None

    def integer(self, name: str) -> int | None:
        """A number of 32 bits with a sign, or one of 32 bits without."""
        found = self.values(name)[:1]  # mSMQNt4Stub may have several by the schema
        if not found:
            return None
        digits = found[0].removeprefix(b"-")
        if not digits.isdigit() or len(digits) > 10:
            raise self.wrong(name, f"{found[0][:32]!r} is not a number")
        number = int(found[0])
        if not -0x8000_0000 <= number <= 0xFFFF_FFFF:
            raise self.wrong(name, f"{number} does not fit into 32 bits")
        return number

    def unsigned(self, name: str, default: int) -> int:
        """A number of 32 bits without a sign, which LDAP keeps with one: -1 is 0xFFFFFFFF."""
        found = self.integer(name)
        return default if found is None else found & 0xFFFF_FFFF

    def guid(self, name: str) -> UUID | None:
        """An identifier: 16 bytes, the first three fields little-endian (MS-DTYP 2.3.4.2)."""
        found = self.octets(name)
        return None if found is None else self._guid(name, found)

    def identifier(self) -> UUID:
        """The entry's own identifier, which it must have."""
        found = self.guid("objectGUID")
        if found is None:
            raise self.wrong("objectGUID", "is missing")
        return found

    def guids(self, name: str) -> tuple[UUID, ...]:
        """Several identifiers."""
        return tuple(self._guid(name, one) for one in self.values(name))

    def time(self, name: str) -> int:
        """A generalized time as seconds since 1970, which must be there."""
        found = self.octets(name)
        if found is None:
            raise self.wrong(name, "is missing")
        fields = _TIME.fullmatch(found)
        if fields is not None:
            year, month, day, hour, minute, second = map(int, fields.groups())
            with suppress(ValueError):  # a month 13
                moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
                return int((moment - _EPOCH).total_seconds())
        raise self.wrong(name, f"{found[:32]!r} is not a time")

    def _text(self, name: str, found: bytes) -> str:
        try:
            text = found.decode()
        except UnicodeDecodeError:
            raise self.wrong(name, "is not UTF-8") from None
        if len(text) > MAX_TEXT:
            raise self.wrong(name, f"has {len(text):,} characters; the limit is {MAX_TEXT:,}")
        return text

    def _guid(self, name: str, found: bytes) -> UUID:
        if len(found) != _GUID_LENGTH:
            raise self.wrong(name, f"has {len(found)} bytes; an identifier has {_GUID_LENGTH}")
        return UUID(bytes_le=found)
