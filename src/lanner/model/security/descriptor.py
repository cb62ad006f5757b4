"""Security descriptors and their self-relative binary form (MS-DTYP 2.4.5 and 2.4.6).

Reading keeps what has a meaning: every entry, known or not, with its order, flags and application
data. It does not keep what 2.4.4.1 and 2.4.5 declare to be filler: spare room at the end of a list,
and spare bytes behind an entry that takes no application data.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from typing import Final, TypeVar

from lanner.model.errors import InvalidSecurityDescriptorError
from lanner.model.security.ace import (
    DACL_TYPES,
    MAX_ACL_SIZE,
    OBJECT_TYPES,
    SACL_TYPES,
    Ace,
    AceType,
    OpaqueAce,
    ace_to_bytes,
    read_ace,
)
from lanner.model.security.sid import MAX_SUBAUTHORITIES, Reader, Sid

__all__ = ["Acl", "AclRevision", "Control", "SecurityDescriptor"]

# A full list of domain accounts: 64 KiB at 36 bytes an entry. Each access check walks all of it.
MAX_ACES: Final = 1820

_HEADER = struct.Struct("<BBH4I")
_ACL_HEADER = struct.Struct("<BBHHH")

# What the header, two lists and two SIDs can fill at most; anything longer is padding.
MAX_DESCRIPTOR_SIZE: Final = _HEADER.size + 2 * (MAX_ACL_SIZE + 8 + 4 * MAX_SUBAUTHORITIES)

_Part = TypeVar("_Part")


class Control(IntFlag):
    """The control bits of a descriptor (MS-DTYP 2.4.6)."""

    OWNER_DEFAULTED = 0x0001
    GROUP_DEFAULTED = 0x0002
    DACL_PRESENT = 0x0004
    DACL_DEFAULTED = 0x0008
    SACL_PRESENT = 0x0010
    SACL_DEFAULTED = 0x0020
    DACL_TRUSTED = 0x0040
    SERVER_SECURITY = 0x0080
    DACL_COMPUTED_INHERITANCE_REQUIRED = 0x0100
    SACL_COMPUTED_INHERITANCE_REQUIRED = 0x0200
    DACL_AUTO_INHERITED = 0x0400
    SACL_AUTO_INHERITED = 0x0800
    DACL_PROTECTED = 0x1000
    SACL_PROTECTED = 0x2000
    RM_CONTROL_VALID = 0x4000
    SELF_RELATIVE = 0x8000


class AclRevision(IntEnum):
    """The two layouts of a list (MS-DTYP 2.4.5)."""

    STANDARD = 2
    WITH_OBJECTS = 4


@dataclass(frozen=True, slots=True)
class Acl:
    """A list of entries, in the order in which they are consulted (MS-DTYP 2.4.5)."""

    aces: tuple[Ace | OpaqueAce, ...] = ()
    revision: AclRevision = AclRevision.STANDARD

    def __post_init__(self) -> None:
        if len(self.aces) > MAX_ACES:
            raise InvalidSecurityDescriptorError(f"an access control list has at most {MAX_ACES} entries")
        if any(ace.type in OBJECT_TYPES for ace in self.aces):
            object.__setattr__(self, "revision", AclRevision.WITH_OBJECTS)

    def to_bytes(self) -> bytes:
        """The packet form."""
        entries = b"".join(map(ace_to_bytes, self.aces))
        size = _ACL_HEADER.size + len(entries)
        if size > MAX_ACL_SIZE:
            raise InvalidSecurityDescriptorError(f"an access control list has at most {MAX_ACL_SIZE} bytes")
        return _ACL_HEADER.pack(self.revision, 0, size, len(self.aces), 0) + entries

    @classmethod
    def read(cls, reader: Reader) -> Acl:
        """Read the packet form and leave the reader behind it."""
        revision, _, size, count, _ = _ACL_HEADER.unpack(reader.take(_ACL_HEADER.size, "a list's header"))
        if revision not in (AclRevision.STANDARD, AclRevision.WITH_OBJECTS):
            raise InvalidSecurityDescriptorError(
                f"an access control list has revision 2 or 4, not {revision}"
            )
        if size < _ACL_HEADER.size or count > MAX_ACES:
            raise InvalidSecurityDescriptorError(
                f"an access control list of {size} bytes cannot have {count} entries",
                hint=f"at most {MAX_ACES}",
            )
        inside = Reader(reader.take(size - _ACL_HEADER.size, "an access control list"))
        return cls(tuple(read_ace(inside) for _ in range(count)), AclRevision(revision))


@dataclass(frozen=True, slots=True)
class SecurityDescriptor:
    """Who owns an object and who may do what with it (MS-DTYP 2.4.6).

    ``dacl=None`` means that nothing restricts access; an empty ``Acl`` means that nothing is
    granted. The control bits for a list's presence and for the self-relative form are filled in.
    """

    owner: Sid | None = None
    group: Sid | None = None
    dacl: Acl | None = None
    sacl: Acl | None = None
    control: Control = Control.SELF_RELATIVE
    resource_manager_control: int = 0

    def __post_init__(self) -> None:
        _refuse_strangers(self.dacl, SACL_TYPES, "the access list")
        _refuse_strangers(self.sacl, DACL_TYPES, "the audit list")
        if not 0 <= self.resource_manager_control <= 0xFF:
            raise InvalidSecurityDescriptorError("the resource manager's control bits are one byte")
        implied = Control.SELF_RELATIVE
        if self.resource_manager_control:
            implied |= Control.RM_CONTROL_VALID
        if self.dacl is not None:
            implied |= Control.DACL_PRESENT
        if self.sacl is not None:
            implied |= Control.SACL_PRESENT
        object.__setattr__(self, "control", Control(self.control) | implied)

    @classmethod
    def from_sddl(cls, text: str, domain: Sid | None = None) -> SecurityDescriptor:
        """Read the text form; ``domain`` is what aliases such as ``DA`` refer to (MS-DTYP 2.5.1)."""
        from lanner.model.security.sddl import parse_sddl  # the text form is written in terms of this class

        return parse_sddl(text, domain)

    def to_sddl(self) -> str:
        """The text form (MS-DTYP 2.5.1); it has no letters for some control bits, see ``sddl``."""
        from lanner.model.security.sddl import format_sddl

        return format_sddl(self)

    def to_bytes(self) -> bytes:
        """The self-relative form, its parts in the order that 2.4.6 note 72 describes."""
        parts = (self.sacl, self.dacl, self.owner, self.group)
        offsets, tail = [], b""
        for part in parts:
            offsets.append(0 if part is None else _HEADER.size + len(tail))
            tail += b"" if part is None else part.to_bytes()
        sacl, dacl, owner, group = offsets
        return _HEADER.pack(1, self.resource_manager_control, self.control, owner, group, sacl, dacl) + tail

    @classmethod
    def from_bytes(cls, data: bytes) -> SecurityDescriptor:
        """Read the self-relative form; the bytes hold the descriptor and nothing behind it."""
        if len(data) > MAX_DESCRIPTOR_SIZE:
            raise InvalidSecurityDescriptorError(f"a descriptor has at most {MAX_DESCRIPTOR_SIZE} bytes")
        header = Reader(data).take(_HEADER.size, "a security descriptor's header")
        revision, rm_control, bits, *offsets = _HEADER.unpack(header)
        control = Control(bits)
        if revision != 1 or Control.SELF_RELATIVE not in control:
            raise InvalidSecurityDescriptorError("a descriptor has revision 1 and is self-relative")
        ends = [_HEADER.size]
        owner, group = (_part_at(data, offset, Sid.read, ends) for offset in offsets[:2])
        sacl, dacl = (_part_at(data, offset, Acl.read, ends) for offset in offsets[2:])
        for name, part, flag in (("SACL", sacl, Control.SACL_PRESENT), ("DACL", dacl, Control.DACL_PRESENT)):
            if part is not None and flag not in control:
                # Guessing here would decide between "no list" and this list.
                raise InvalidSecurityDescriptorError(f"the descriptor has a {name} that it says is absent")
        if len(data) != max(ends):
            raise InvalidSecurityDescriptorError(f"{len(data) - max(ends)} bytes follow the descriptor")
        return cls(owner, group, dacl, sacl, control, rm_control if control & Control.RM_CONTROL_VALID else 0)


def _part_at(data: bytes, offset: int, read: Callable[[Reader], _Part], ends: list[int]) -> _Part | None:
    """Read the part at an offset, zero meaning none, and note where it ends."""
    if offset == 0:
        return None
    if offset < _HEADER.size:
        raise InvalidSecurityDescriptorError(f"offset {offset} lies within the descriptor's header")
    reader = Reader(data, offset)
    part = read(reader)
    ends.append(reader.at)
    return part


def _refuse_strangers(acl: Acl | None, strangers: frozenset[AceType], where: str) -> None:
    for ace in acl.aces if acl else ():
        if ace.type in strangers:
            raise InvalidSecurityDescriptorError(
                f"an entry of type {AceType(ace.type).name} does not belong in {where}",
                hint="D: allows and denies, S: audits (MS-DTYP 2.4.5)",
            )
