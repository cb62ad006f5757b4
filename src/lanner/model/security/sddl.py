"""The text form of security descriptors (SDDL, MS-DTYP 2.5.1).

Read: owner, group and both lists, with entries that allow, deny or audit (A, D, AU) and their object
variants (OA, OD, OU). An entry of another kind is refused by name, in both directions: none is
dropped. Text has no letters for a few control bits (who defaulted what, trust, the resource
manager's byte), so those do not survive it; no access decision depends on them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NoReturn
from uuid import UUID

from lanner.model.errors import InvalidSecurityDescriptorError
from lanner.model.security.ace import AccessMask, Ace, AceFlag, AceType, OpaqueAce
from lanner.model.security.descriptor import MAX_ACES, Acl, Control, SecurityDescriptor
from lanner.model.security.sid import Sid

__all__ = ["format_sddl", "parse_sddl"]

# Two full lists, with room for the longest ordinary entry: hexadecimal rights, two GUIDs, a domain SID.
MAX_SDDL_LENGTH: Final = 2 * MAX_ACES * 160

_SUPPORTED: Final = (
    "an entry is (type;flags;rights;object;inherited object;account), of type A, D, AU, OA, OD or OU"
)
_TYPES: Final = {
    "A": AceType.ACCESS_ALLOWED,
    "D": AceType.ACCESS_DENIED,
    "AU": AceType.SYSTEM_AUDIT,
    "OA": AceType.ACCESS_ALLOWED_OBJECT,
    "OD": AceType.ACCESS_DENIED_OBJECT,
    "OU": AceType.SYSTEM_AUDIT_OBJECT,
}
_TYPE_LETTERS: Final = {kind: letters for letters, kind in _TYPES.items()}
_REFUSED: Final = {
    **dict.fromkeys(("XA", "XD", "XU", "ZA"), "conditional"),
    "RA": "resource attribute",
    "ML": "mandatory label",
    "SP": "central policy",
}
_FLAGS: Final = {
    "CI": AceFlag.CONTAINER_INHERIT,
    "OI": AceFlag.OBJECT_INHERIT,
    "NP": AceFlag.NO_PROPAGATE_INHERIT,
    "IO": AceFlag.INHERIT_ONLY,
    "ID": AceFlag.INHERITED,
    "SA": AceFlag.SUCCESSFUL_ACCESS,
    "FA": AceFlag.FAILED_ACCESS,
}
_COMMON_RIGHTS: Final = {
    "GA": AccessMask.GENERIC_ALL,
    "GR": AccessMask.GENERIC_READ,
    "GW": AccessMask.GENERIC_WRITE,
    "GX": AccessMask.GENERIC_EXECUTE,
    "SD": AccessMask.DELETE,
    "RC": AccessMask.READ_CONTROL,
    "WD": AccessMask.WRITE_DAC,
    "WO": AccessMask.WRITE_OWNER,
}
# Read, for the sake of texts that Windows wrote, which spells a queue's low bits with the letters of
# a directory object. Never written: on a queue, "WP" does not mean what it says.
_FOREIGN_RIGHTS: Final = {
    "CC": 0x1, "DC": 0x2, "LC": 0x4, "SW": 0x8, "RP": 0x10, "WP": 0x20, "DT": 0x40, "LO": 0x80, "CR": 0x100,
    "FA": 0x1F01FF, "FX": 0x1200A0, "FW": 0x120116, "FR": 0x120089,
    "KA": 0xF003F, "KR": 0x20019, "KX": 0x20019, "KW": 0x20006,
}  # fmt: skip
_RIGHTS: Final[Mapping[str, int]] = {**_COMMON_RIGHTS, **_FOREIGN_RIGHTS}

# A list that is present and null. Beyond the grammar of 2.5.1.1, but Windows reads and writes it, and
# without it a null list and an absent one would be the same text.
_NULL_ACL: Final = "NO_ACCESS_CONTROL"
_DACL_FLAGS: Final = {
    "P": Control.DACL_PROTECTED,
    "AR": Control.DACL_COMPUTED_INHERITANCE_REQUIRED,
    "AI": Control.DACL_AUTO_INHERITED,
    _NULL_ACL: Control.DACL_PRESENT,
}
_SACL_FLAGS: Final = {
    "P": Control.SACL_PROTECTED,
    "AR": Control.SACL_COMPUTED_INHERITANCE_REQUIRED,
    "AI": Control.SACL_AUTO_INHERITED,
    _NULL_ACL: Control.SACL_PRESENT,
}

_ACCOUNT = re.compile(r"S-1-(?:0X[0-9A-F]{12}|[0-9]+)(?:-[0-9]+)*|[A-Z]{2}")
_ACL_FLAG = re.compile("|".join((_NULL_ACL, "AR", "AI", "P")))
_ENTRY = re.compile(r"\(([^()]*)\)")
_ENTRY_TYPE = re.compile(r"\(([A-Z]*)")
_GUID = re.compile(r"[0-9A-F]{8}(?:-[0-9A-F]{4}){3}-[0-9A-F]{12}")
_NUMBERS: Final = (
    (re.compile(r"0X([0-9A-F]{1,8})"), 16),
    (re.compile(r"0([0-7]{1,11})"), 8),
    (re.compile(r"([0-9]{1,10})"), 10),
)


class _Scanner:
    """Walks through a text and knows where it is, for the errors."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def accept(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Step over the pattern if it is next."""
        match = pattern.match(self.text, self.at)
        if match is not None:
            self.at = match.end()
        return match

    def starts(self, token: str) -> bool:
        """Step over a fixed token if it is next."""
        found = self.text.startswith(token, self.at)
        self.at += len(token) * found
        return found

    def fail(self, expected: str, hint: str = "") -> NoReturn:
        """Say what was expected here and what is there instead."""
        rest = self.text[self.at : self.at + 20]
        place = f"at character {self.at + 1}, found {rest!r}" if rest else "at the end"
        raise InvalidSecurityDescriptorError(f"expected {expected} {place}", hint=hint)


def parse_sddl(text: str, domain: Sid | None = None) -> SecurityDescriptor:
    """Read a descriptor's text form; ``domain`` is what aliases such as ``DA`` refer to."""
    if len(text) > MAX_SDDL_LENGTH:
        raise InvalidSecurityDescriptorError(f"a descriptor's text has at most {MAX_SDDL_LENGTH} characters")
    if not text.isascii():
        # Also keeps upper() honest: some other letters turn into ASCII ones.
        raise InvalidSecurityDescriptorError("a descriptor's text is ASCII")
    scanner = _Scanner(text.strip().upper())  # the grammar's letters have no case (RFC 5234)
    owner = _account(scanner, domain) if scanner.starts("O:") else None
    group = _account(scanner, domain) if scanner.starts("G:") else None
    dacl, dacl_bits = _acl(scanner, _DACL_FLAGS, domain) if scanner.starts("D:") else (None, Control(0))
    sacl, sacl_bits = _acl(scanner, _SACL_FLAGS, domain) if scanner.starts("S:") else (None, Control(0))
    if scanner.at != len(scanner.text):
        scanner.fail("the next part", "the parts are O:, G:, D: and S:, in this order; " + _SUPPORTED)
    return SecurityDescriptor(owner, group, dacl, sacl, dacl_bits | sacl_bits)


def _account(scanner: _Scanner, domain: Sid | None) -> Sid:
    match = scanner.accept(_ACCOUNT)
    if match is None:
        scanner.fail("an account", "use an alias such as WD, or a SID such as S-1-1-0")
    return _sid(match[0], domain)


def _sid(text: str, domain: Sid | None) -> Sid:
    return Sid.parse(text) if text.startswith("S-") else Sid.from_alias(text, domain)


def _acl(scanner: _Scanner, letters: dict[str, Control], domain: Sid | None) -> tuple[Acl | None, Control]:
    bits = Control(0)
    while match := scanner.accept(_ACL_FLAG):
        bits |= letters[match[0]]
    aces = []
    while scanner.text.startswith("(", scanner.at):
        aces.append(_ace(scanner, domain))
    if letters[_NULL_ACL] not in bits:
        return Acl(tuple(aces)), bits
    if aces:
        raise InvalidSecurityDescriptorError(f"a list marked {_NULL_ACL} has no entries")
    return None, bits


def _ace(scanner: _Scanner, domain: Sid | None) -> Ace:
    kind = _ENTRY_TYPE.match(scanner.text, scanner.at)
    if kind is not None and kind[1] in _REFUSED:
        scanner.fail(
            "an entry that can be honoured", f"this one is a {_REFUSED[kind[1]]} entry; {_SUPPORTED}"
        )
    match = scanner.accept(_ENTRY)
    if match is None:
        scanner.fail("an entry in parentheses", _SUPPORTED)
    fields = match[1].split(";")
    if len(fields) != 6 or fields[0] not in _TYPES:
        _refuse(match[0], "an entry", _SUPPORTED)
    return Ace(
        _TYPES[fields[0]],
        _sid(fields[5], domain),
        _rights(fields[2]),
        AceFlag(_combine(fields[1], _FLAGS, "flags")),
        _guid(fields[3]),
        _guid(fields[4]),
    )


def _refuse(text: str, what: str, hint: str) -> NoReturn:
    raise InvalidSecurityDescriptorError(f"{text[:200]!r} is not {what}", hint=hint)


def _rights(text: str) -> int:
    for pattern, base in _NUMBERS:
        if match := pattern.fullmatch(text):
            return int(match[1], base)  # Ace refuses what exceeds 32 bits
    return _combine(text, _RIGHTS, "rights")


def _combine(text: str, letters: Mapping[str, int], what: str) -> int:
    """Add up two-letter codes."""
    pairs = [text[at : at + 2] for at in range(0, len(text), 2)]
    total = 0
    for pair in pairs:
        if pair not in letters:
            _refuse(text, f"a set of {what}", f"{pair!r} is unknown; known are {', '.join(letters)}")
        total |= letters[pair]
    return total


def _guid(text: str) -> UUID | None:
    if text and _GUID.fullmatch(text) is None:
        _refuse(text, "a GUID", "object types look like 01234567-89AB-CDEF-0123-456789ABCDEF")
    return UUID(text) if text else None


def format_sddl(descriptor: SecurityDescriptor) -> str:
    """Write a descriptor's text form, or say which entry has none."""
    parts = []
    if descriptor.owner is not None:
        parts.append(f"O:{_account_text(descriptor.owner)}")
    if descriptor.group is not None:
        parts.append(f"G:{_account_text(descriptor.group)}")
    parts.append(_acl_text("D:", descriptor.dacl, descriptor.control, _DACL_FLAGS))
    parts.append(_acl_text("S:", descriptor.sacl, descriptor.control, _SACL_FLAGS))
    return "".join(parts)


def _account_text(sid: Sid) -> str:
    return sid.alias or str(sid)


def _acl_text(prefix: str, acl: Acl | None, control: Control, letters: dict[str, Control]) -> str:
    if letters[_NULL_ACL] not in control:
        return ""
    flags = [name for name, bit in letters.items() if bit in control and name != _NULL_ACL]
    body = [_NULL_ACL] if acl is None else [_ace_text(ace) for ace in acl.aces]
    return "".join([prefix, *flags, *body])


def _ace_text(ace: Ace | OpaqueAce) -> str:
    known_flags = sum(_FLAGS.values())
    if isinstance(ace, OpaqueAce) or ace.type not in _TYPE_LETTERS or ace.flags & ~known_flags:
        raise InvalidSecurityDescriptorError(
            f"an entry of type {ace.type:#04x} and flags {ace.flags:#04x} has no text form here",
            hint="keep this descriptor in its binary form",
        )
    flags = "".join(letters for letters, flag in _FLAGS.items() if flag in ace.flags)
    guids = ";".join(str(guid or "") for guid in (ace.object_type, ace.inherited_object_type))
    return f"({_TYPE_LETTERS[ace.type]};{flags};{_rights_text(ace.mask)};{guids};{_account_text(ace.sid)})"


def _rights_text(mask: int) -> str:
    if mask and not mask & ~sum(_COMMON_RIGHTS.values()):
        return "".join(letters for letters, right in _COMMON_RIGHTS.items() if mask & right)
    return f"0x{mask:x}"
