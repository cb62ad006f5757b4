"""Security identifiers: who an access control entry is about (MS-DTYP 2.4.2)."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from typing import Final

from lanner.model.errors import InvalidSecurityDescriptorError

__all__ = [
    "ADMINISTRATORS",
    "ANONYMOUS",
    "AUTHENTICATED_USERS",
    "EVERYONE",
    "LOCAL_SYSTEM",
    "OWNER_RIGHTS",
    "PRINCIPAL_SELF",
    "Reader",
    "Sid",
]

MAX_SUBAUTHORITIES: Final = 15  # MS-DTYP 2.4.2.2
_MAX_U32: Final = 0xFFFF_FFFF
_MAX_U48: Final = 0xFFFF_FFFF_FFFF
_NT_AUTHORITY: Final = 5
_NON_UNIQUE: Final = 21  # the first subauthority of every domain's and machine's own accounts
_GUEST_RID: Final = 501

_HEADER = struct.Struct("<BB6s")
_TEXT = re.compile(r"S-1-(0X[0-9A-F]{12}|[0-9]{1,10})((?:-[0-9]{1,10})*)", re.ASCII | re.IGNORECASE)


class Reader:
    """Reads forward through bytes, and refuses to go past their end.

    Every structure of this package is read through it, so none slices without a length check.
    """

    __slots__ = ("at", "data")

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data = data
        self.at = at

    def take(self, size: int, what: str) -> bytes:
        """The next ``size`` bytes; ``what`` they are goes into the error."""
        chunk = self.data[self.at : self.at + size]
        if len(chunk) != size:
            raise InvalidSecurityDescriptorError(
                f"{what} takes {size} bytes at offset {self.at}, but only {len(chunk)} are left"
            )
        self.at += size
        return chunk

    def rest(self) -> bytes:
        """Everything that is left."""
        return self.take(max(0, len(self.data) - self.at), "the rest")


@dataclass(frozen=True, slots=True, order=True)
class Sid:
    """The name of a user, group or other account (MS-DTYP 2.4.2).

    The string grammar wants at least one subauthority, but 2.4.2.4 lists identifiers without any
    (``S-1-5``) and the binary form allows them: they are read and written in both forms.
    """

    authority: int
    subauthorities: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.authority <= _MAX_U48:
            raise InvalidSecurityDescriptorError(f"a SID's authority has 48 bits, not {self.authority:#x}")
        if len(self.subauthorities) > MAX_SUBAUTHORITIES:
            raise InvalidSecurityDescriptorError(
                f"a SID has at most {MAX_SUBAUTHORITIES} subauthorities, not {len(self.subauthorities)}"
            )
        for subauthority in self.subauthorities:
            if not 0 <= subauthority <= _MAX_U32:
                raise InvalidSecurityDescriptorError(
                    f"a SID's subauthority has 32 bits, not {subauthority:#x}"
                )

    @classmethod
    def parse(cls, text: str) -> Sid:
        """Read the string form, such as ``S-1-5-32-544`` (MS-DTYP 2.4.2.1)."""
        match = _TEXT.fullmatch(text)
        if match is None:
            raise InvalidSecurityDescriptorError(
                f"{text[:200]!r} is not a SID", hint="a SID looks like S-1-5-32-544, at most 32 bits a number"
            )
        authority, rest = match.groups()
        hexadecimal = authority[:2] in ("0x", "0X")
        return cls(
            int(authority, 16) if hexadecimal else _decimal(authority, text),
            tuple(_decimal(part, text) for part in rest.split("-")[1:]),
        )

    def __str__(self) -> str:
        # From 2**32 on, an authority is written as twelve hexadecimal digits.
        authority = str(self.authority) if self.authority <= _MAX_U32 else f"0x{self.authority:012X}"
        return "-".join(["S", "1", authority, *map(str, self.subauthorities)])

    @classmethod
    def from_bytes(cls, data: bytes) -> Sid:
        """Read the packet form; the bytes hold the SID and nothing else (MS-DTYP 2.4.2.2)."""
        reader = Reader(data)
        sid = cls.read(reader)
        if reader.at != len(data):
            raise InvalidSecurityDescriptorError(f"{len(data) - reader.at} bytes follow the SID {sid}")
        return sid

    @classmethod
    def read(cls, reader: Reader) -> Sid:
        """Read the packet form and leave the reader behind it."""
        revision, count, authority = _HEADER.unpack(reader.take(_HEADER.size, "a SID's header"))
        if revision != 1:
            raise InvalidSecurityDescriptorError(f"a SID has revision 1, not {revision}")
        if count > MAX_SUBAUTHORITIES:
            raise InvalidSecurityDescriptorError(
                f"a SID has at most {MAX_SUBAUTHORITIES} subauthorities, not {count}"
            )
        words = reader.take(4 * count, "a SID's subauthorities")
        return cls(int.from_bytes(authority, "big"), struct.unpack(f"<{count}I", words))

    def to_bytes(self) -> bytes:
        """The packet form, little-endian (MS-DTYP 2.4.2.2)."""
        count = len(self.subauthorities)
        # The authority alone is big-endian: it is six separate bytes, not a number.
        header = _HEADER.pack(1, count, self.authority.to_bytes(6, "big"))
        return header + struct.pack(f"<{count}I", *self.subauthorities)

    def child(self, rid: int) -> Sid:
        """The account ``rid`` of this domain or machine."""
        return Sid(self.authority, (*self.subauthorities, rid))

    @classmethod
    def from_alias(cls, alias: str, domain: Sid | None = None) -> Sid:
        """Resolve a two-letter SDDL alias (MS-DTYP 2.5.1.1); some mean an account of ``domain``."""
        key = alias.upper() if alias.isascii() else alias
        if (known := _BY_ALIAS.get(key)) is not None:
            return known
        rid = _DOMAIN_RIDS.get(key)
        if rid is None:
            raise InvalidSecurityDescriptorError(
                f"{alias[:200]!r} names no account",
                hint="use an alias such as WD or BA, or a SID such as S-1-1-0",
            )
        if domain is None:
            raise InvalidSecurityDescriptorError(
                f"the alias {key} means an account of a domain, and no domain is given",
                hint=f"write the SID itself: S-1-5-21-<domain>-{rid}",
            )
        return domain.child(rid)

    @property
    def alias(self) -> str:
        """The SDDL alias that means this SID in every domain, or nothing."""
        return _WELL_KNOWN[self][0] if self in _WELL_KNOWN else ""

    @property
    def display_name(self) -> str:
        """A name for people: ``Everyone``, or the string form where there is none."""
        return _WELL_KNOWN[self][1] if self in _WELL_KNOWN else str(self)

    @property
    def is_guest(self) -> bool:
        """Whether this is the guest account of some domain or machine (MS-DTYP 2.4.2.4, GUEST)."""
        is_account = len(self.subauthorities) == 5 and self.subauthorities[0] == _NON_UNIQUE
        return self.authority == _NT_AUTHORITY and is_account and self.subauthorities[-1] == _GUEST_RID


def _decimal(digits: str, whole: str) -> int:
    value = int(digits)
    if value > _MAX_U32 or (digits[0] == "0" and digits != "0"):
        raise InvalidSecurityDescriptorError(
            f"{digits} in {whole!r} is not a 32-bit number", hint="decimal, without leading zeros"
        )
    return value


# MS-DTYP 2.4.2.4 and the alias table of 2.5.1.1: SID, alias (empty where there is none), name.
_TABLE: Final = (
    ("S-1-0-0", "", "Nobody"),
    ("S-1-1-0", "WD", "Everyone"),
    ("S-1-2-0", "", "Local logon"),
    ("S-1-2-1", "", "Console logon"),
    ("S-1-3-0", "CO", "Creator owner"),
    ("S-1-3-1", "CG", "Creator group"),
    ("S-1-3-4", "OW", "The owner"),
    ("S-1-5-1", "", "Dial-up logon"),
    ("S-1-5-2", "NU", "Network logon"),
    ("S-1-5-3", "", "Batch logon"),
    ("S-1-5-4", "IU", "Interactive logon"),
    ("S-1-5-6", "SU", "Service logon"),
    ("S-1-5-7", "AN", "Anonymous logon"),
    ("S-1-5-8", "", "Proxy"),
    ("S-1-5-9", "ED", "Enterprise domain controllers"),
    ("S-1-5-10", "PS", "Principal self"),
    ("S-1-5-11", "AU", "Authenticated users"),
    ("S-1-5-12", "RC", "Restricted code"),
    ("S-1-5-13", "", "Terminal server users"),
    ("S-1-5-14", "", "Remote interactive logon"),
    ("S-1-5-15", "", "This organization"),
    ("S-1-5-17", "", "Internet user"),
    ("S-1-5-18", "SY", "Local system"),
    ("S-1-5-19", "LS", "Local service"),
    ("S-1-5-20", "NS", "Network service"),
    ("S-1-5-32-544", "BA", "Administrators"),
    ("S-1-5-32-545", "BU", "Users"),
    ("S-1-5-32-546", "BG", "Guests"),
    ("S-1-5-32-547", "PU", "Power users"),
    ("S-1-5-32-548", "AO", "Account operators"),
    ("S-1-5-32-549", "SO", "Server operators"),
    ("S-1-5-32-550", "PO", "Printer operators"),
    ("S-1-5-32-551", "BO", "Backup operators"),
    ("S-1-5-32-552", "RE", "Replicator"),
    ("S-1-5-32-554", "RU", "Pre-Windows 2000 compatible access"),
    ("S-1-5-32-555", "RD", "Remote desktop users"),
    ("S-1-5-32-556", "NO", "Network configuration operators"),
    ("S-1-5-32-558", "MU", "Performance monitor users"),
    ("S-1-5-32-559", "LU", "Performance log users"),
    ("S-1-5-32-562", "", "Distributed COM users"),
    ("S-1-5-32-568", "IS", "IIS users"),
    ("S-1-5-32-569", "CY", "Cryptographic operators"),
    ("S-1-5-32-573", "ER", "Event log readers"),
    ("S-1-5-32-574", "CD", "Certificate service DCOM access"),
    ("S-1-5-32-575", "RA", "RDS remote access servers"),
    ("S-1-5-32-576", "ES", "RDS endpoint servers"),
    ("S-1-5-32-577", "MS", "RDS management servers"),
    ("S-1-5-32-578", "HA", "Hyper-V administrators"),
    ("S-1-5-32-579", "AA", "Access control assistance operators"),
    ("S-1-5-32-580", "RM", "Remote management users"),
    ("S-1-5-33", "WR", "Write-restricted code"),
    ("S-1-5-64-10", "", "NTLM authentication"),
    ("S-1-5-64-14", "", "SChannel authentication"),
    ("S-1-5-64-21", "", "Digest authentication"),
    ("S-1-5-80-0", "", "All services"),
    ("S-1-5-84-0-0-0-0-0", "UD", "User-mode drivers"),
    ("S-1-5-113", "", "Local accounts"),
    ("S-1-5-114", "", "Local accounts in Administrators"),
    ("S-1-5-1000", "", "Other organization"),
    ("S-1-15-2-1", "AC", "All app packages"),
    ("S-1-16-0", "", "Untrusted integrity level"),
    ("S-1-16-4096", "LW", "Low integrity level"),
    ("S-1-16-8192", "ME", "Medium integrity level"),
    ("S-1-16-8448", "MP", "Medium-plus integrity level"),
    ("S-1-16-12288", "HI", "High integrity level"),
    ("S-1-16-16384", "SI", "System integrity level"),
)
_WELL_KNOWN: Final = {Sid.parse(text): (alias, name) for text, alias, name in _TABLE}
_BY_ALIAS: Final = {alias: sid for sid, (alias, _) in _WELL_KNOWN.items() if alias}

# Aliases that stand for an account of a domain or machine, and its relative identifier (2.4.2.4).
_DOMAIN_RIDS: Final = {
    "RO": 498, "LA": 500, "LG": 501, "DA": 512, "DU": 513, "DG": 514, "DC": 515, "DD": 516,
    "CA": 517, "SA": 518, "EA": 519, "PA": 520, "CN": 522, "RS": 553,
}  # fmt: skip

EVERYONE: Final = _BY_ALIAS["WD"]
ANONYMOUS: Final = _BY_ALIAS["AN"]
AUTHENTICATED_USERS: Final = _BY_ALIAS["AU"]
ADMINISTRATORS: Final = _BY_ALIAS["BA"]
LOCAL_SYSTEM: Final = _BY_ALIAS["SY"]
OWNER_RIGHTS: Final = _BY_ALIAS["OW"]
PRINCIPAL_SELF: Final = _BY_ALIAS["PS"]
