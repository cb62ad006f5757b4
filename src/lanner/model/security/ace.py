"""The entries of an access control list (MS-DTYP 2.4.3 and 2.4.4)."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from typing import Final
from uuid import UUID

from lanner.model.errors import InvalidSecurityDescriptorError
from lanner.model.security.sid import Reader, Sid

__all__ = ["AccessMask", "Ace", "AceFlag", "AceType", "OpaqueAce", "ace_to_bytes", "read_ace"]

# AclSize and AceSize have 16 bits (MS-DTYP 2.4.4.1, 2.4.5).
MAX_ACL_SIZE: Final = 0xFFFF

_ACE_HEADER = struct.Struct("<BBH")
_U32 = struct.Struct("<I")
_GUID_SIZE: Final = 16
_OBJECT_TYPE_PRESENT: Final = 1
_INHERITED_OBJECT_TYPE_PRESENT: Final = 2


class AccessMask(IntFlag):
    """Rights with the same bit for every kind of object (MS-DTYP 2.4.3)."""

    DELETE = 0x0001_0000
    READ_CONTROL = 0x0002_0000
    WRITE_DAC = 0x0004_0000
    WRITE_OWNER = 0x0008_0000
    SYNCHRONIZE = 0x0010_0000
    ACCESS_SYSTEM_SECURITY = 0x0100_0000
    MAXIMUM_ALLOWED = 0x0200_0000
    GENERIC_ALL = 0x1000_0000
    GENERIC_EXECUTE = 0x2000_0000
    GENERIC_WRITE = 0x4000_0000
    GENERIC_READ = 0x8000_0000


class AceType(IntEnum):
    """Kinds of entry (MS-DTYP 2.4.4.1)."""

    ACCESS_ALLOWED = 0x00
    ACCESS_DENIED = 0x01
    SYSTEM_AUDIT = 0x02
    SYSTEM_ALARM = 0x03
    ACCESS_ALLOWED_COMPOUND = 0x04
    ACCESS_ALLOWED_OBJECT = 0x05
    ACCESS_DENIED_OBJECT = 0x06
    SYSTEM_AUDIT_OBJECT = 0x07
    SYSTEM_ALARM_OBJECT = 0x08
    ACCESS_ALLOWED_CALLBACK = 0x09
    ACCESS_DENIED_CALLBACK = 0x0A
    ACCESS_ALLOWED_CALLBACK_OBJECT = 0x0B
    ACCESS_DENIED_CALLBACK_OBJECT = 0x0C
    SYSTEM_AUDIT_CALLBACK = 0x0D
    SYSTEM_ALARM_CALLBACK = 0x0E
    SYSTEM_AUDIT_CALLBACK_OBJECT = 0x0F
    SYSTEM_ALARM_CALLBACK_OBJECT = 0x10
    SYSTEM_MANDATORY_LABEL = 0x11
    SYSTEM_RESOURCE_ATTRIBUTE = 0x12
    SYSTEM_SCOPED_POLICY_ID = 0x13


class AceFlag(IntFlag):
    """How an entry is inherited, and what an audit entry listens to (MS-DTYP 2.4.4.1)."""

    OBJECT_INHERIT = 0x01
    CONTAINER_INHERIT = 0x02
    NO_PROPAGATE_INHERIT = 0x04
    INHERIT_ONLY = 0x08
    INHERITED = 0x10
    SUCCESSFUL_ACCESS = 0x40
    FAILED_ACCESS = 0x80


NO_FLAGS: Final = AceFlag(0)

# Which entries belong in which list (2.4.5).
_DENIED = frozenset(t for t in AceType if t.name.startswith("ACCESS_DENIED"))
_ALLOWED = frozenset(t for t in AceType if t.name.startswith("ACCESS_ALLOWED"))
DACL_TYPES: Final = _ALLOWED | _DENIED
SACL_TYPES: Final = frozenset(AceType) - DACL_TYPES
_CONDITIONAL = frozenset(t for t in AceType if "CALLBACK" in t.name)
OBJECT_TYPES: Final = frozenset(t for t in AceType if t.name.endswith("OBJECT"))
# Lanner does not look into alarm, compound, label, attribute and policy entries: they stay bytes.
_INTERPRETED = frozenset(
    t for t in AceType if t.name.startswith(("ACCESS_", "SYSTEM_AUDIT")) and "COMPOUND" not in t.name
)


@dataclass(frozen=True, slots=True)
class Ace:
    """An entry that allows, denies or audits (MS-DTYP 2.4.4.2 to 2.4.4.12, 2.4.4.14)."""

    type: AceType
    sid: Sid
    mask: int
    flags: AceFlag = NO_FLAGS
    object_type: UUID | None = None
    inherited_object_type: UUID | None = None
    application_data: bytes = b""

    def __post_init__(self) -> None:
        if self.type not in _INTERPRETED:
            raise InvalidSecurityDescriptorError(f"an entry of type {self.type:#04x} is an OpaqueAce")
        if not 0 <= self.mask <= 0xFFFF_FFFF:
            raise InvalidSecurityDescriptorError(f"an access mask has 32 bits, not {self.mask:#x}")
        if not self.is_for_objects and (self.object_type or self.inherited_object_type):
            raise InvalidSecurityDescriptorError(f"an entry of type {self.type.name} names no object type")
        if self.application_data and (not self.is_conditional or len(self.application_data) % 4):
            raise InvalidSecurityDescriptorError(
                "application data belongs to callback entries, in multiples of 4 bytes"
            )

    @classmethod
    def allow(cls, sid: Sid, mask: int) -> Ace:
        """An entry that gives these rights."""
        return cls(AceType.ACCESS_ALLOWED, sid, int(mask))

    @classmethod
    def deny(cls, sid: Sid, mask: int) -> Ace:
        """An entry that refuses these rights."""
        return cls(AceType.ACCESS_DENIED, sid, int(mask))

    @property
    def denies(self) -> bool:
        """Whether the entry refuses rights rather than giving them."""
        return self.type in _DENIED

    @property
    def is_conditional(self) -> bool:
        """Whether the entry depends on an expression in its application data (2.4.4.17)."""
        return self.type in _CONDITIONAL

    @property
    def is_for_objects(self) -> bool:
        """Whether the entry has the layout with object types (2.4.4.3)."""
        return self.type in OBJECT_TYPES

    def body(self) -> bytes:
        """Everything behind the entry's header."""
        types = b""
        if self.is_for_objects:
            present = bool(self.object_type) * _OBJECT_TYPE_PRESENT
            present |= bool(self.inherited_object_type) * _INHERITED_OBJECT_TYPE_PRESENT
            guids = (guid.bytes_le for guid in (self.object_type, self.inherited_object_type) if guid)
            types = _U32.pack(present) + b"".join(guids)
        return _U32.pack(self.mask) + types + self.sid.to_bytes() + self.application_data


@dataclass(frozen=True, slots=True)
class OpaqueAce:
    """An entry that Lanner keeps and does not interpret."""

    type: int
    flags: AceFlag
    data: bytes

    def __post_init__(self) -> None:
        if not 0 <= self.type <= 0xFF or self.type in _INTERPRETED or len(self.data) % 4:
            raise InvalidSecurityDescriptorError(
                f"{len(self.data)} bytes of type {self.type:#x} are no OpaqueAce"
            )

    def body(self) -> bytes:
        """Everything behind the entry's header."""
        return self.data


def ace_to_bytes(ace: Ace | OpaqueAce) -> bytes:
    """The packet form of any entry (MS-DTYP 2.4.4.1)."""
    body = ace.body()
    size = _ACE_HEADER.size + len(body)
    if size > MAX_ACL_SIZE:
        raise InvalidSecurityDescriptorError(f"an entry of {size} bytes does not fit into a list")
    return _ACE_HEADER.pack(ace.type, ace.flags, size) + body


def read_ace(reader: Reader) -> Ace | OpaqueAce:
    """Read one entry and leave the reader behind it."""
    kind, flags, size = _ACE_HEADER.unpack(reader.take(_ACE_HEADER.size, "an entry's header"))
    if size < _ACE_HEADER.size or size % 4:
        raise InvalidSecurityDescriptorError(f"an entry's size is a multiple of 4, not {size}")
    body = reader.take(size - _ACE_HEADER.size, "an entry")
    if kind in _INTERPRETED:
        return _interpret(AceType(kind), AceFlag(flags), Reader(body))
    return OpaqueAce(kind, AceFlag(flags), body)


def _interpret(kind: AceType, flags: AceFlag, body: Reader) -> Ace:
    (mask,) = _U32.unpack(body.take(4, "an entry's mask"))
    object_type = inherited = None
    if kind in OBJECT_TYPES:
        (present,) = _U32.unpack(body.take(4, "an entry's object flags"))
        if present & ~(_OBJECT_TYPE_PRESENT | _INHERITED_OBJECT_TYPE_PRESENT):
            raise InvalidSecurityDescriptorError(f"the object flags {present:#x} are unknown")
        object_type = _read_guid(body) if present & _OBJECT_TYPE_PRESENT else None
        inherited = _read_guid(body) if present & _INHERITED_OBJECT_TYPE_PRESENT else None
    sid = Sid.read(body)
    data = body.rest() if kind in _CONDITIONAL else b""
    return Ace(kind, sid, mask, flags, object_type, inherited, data)


def _read_guid(reader: Reader) -> UUID:
    return UUID(bytes_le=reader.take(_GUID_SIZE, "an object type"))
