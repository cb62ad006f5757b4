from __future__ import annotations

import struct
from collections.abc import Sequence
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanner.model.errors import InvalidSecurityDescriptorError
from lanner.model.security import (
    ADMINISTRATORS,
    EVERYONE,
    Ace,
    AceFlag,
    AceType,
    Acl,
    AclRevision,
    Control,
    OpaqueAce,
    SecurityDescriptor,
    Sid,
)
from lanner.model.security.descriptor import MAX_ACES, MAX_DESCRIPTOR_SIZE

# MS-DTYP 2.5.1.4.
TEXT = "O:BAG:BAD:P(A;CIOI;GRGX;;;BU)(A;CIOI;GA;;;BA)(A;CIOI;GA;;;SY)(A;CIOI;GA;;;CO)S:P(AU;FA;GR;;;WD)"
DATA = bytes.fromhex(
    """
    01 00 14 b0 90 00 00 00 a0 00 00 00 14 00 00 00
    30 00 00 00 02 00 1c 00 01 00 00 00 02 80 14 00
    00 00 00 80 01 01 00 00 00 00 00 01 00 00 00 00
    02 00 60 00 04 00 00 00 00 03 18 00 00 00 00 a0
    01 02 00 00 00 00 00 05 20 00 00 00 21 02 00 00
    00 03 18 00 00 00 00 10 01 02 00 00 00 00 00 05
    20 00 00 00 20 02 00 00 00 03 14 00 00 00 00 10
    01 01 00 00 00 00 00 05 12 00 00 00 00 03 14 00
    00 00 00 10 01 01 00 00 00 00 00 03 00 00 00 00
    01 02 00 00 00 00 00 05 20 00 00 00 20 02 00 00
    01 02 00 00 00 00 00 05 20 00 00 00 20 02 00 00
    """
)

GUID = UUID("01234567-89ab-cdef-0123-456789abcdef")
ALLOW = AceType.ACCESS_ALLOWED
WORLD = EVERYONE.to_bytes()

ACCESS_TYPES = [
    t for t in AceType if t.name.startswith("ACCESS_") and t is not AceType.ACCESS_ALLOWED_COMPOUND
]
AUDIT_TYPES = [t for t in AceType if t.name.startswith("SYSTEM_AUDIT")]
ACCESS_OPAQUE = [AceType.ACCESS_ALLOWED_COMPOUND, 0x14, 0xFF]
AUDIT_OPAQUE = [AceType.SYSTEM_ALARM, AceType.SYSTEM_MANDATORY_LABEL, AceType.SYSTEM_RESOURCE_ATTRIBUTE, 0x14]

sids = st.builds(Sid, st.integers(0, 2**48 - 1), st.lists(st.integers(0, 2**32 - 1), max_size=15).map(tuple))
ace_flags = st.integers(0, 255).map(AceFlag)
dwords = st.lists(st.binary(min_size=4, max_size=4), max_size=4).map(b"".join)


@st.composite
def aces(draw: st.DrawFn, kinds: Sequence[AceType]) -> Ace:
    kind = draw(st.sampled_from(kinds))
    guids = st.none() | st.uuids() if kind.name.endswith("OBJECT") else st.none()
    data = dwords if "CALLBACK" in kind.name else st.just(b"")
    mask = draw(st.integers(0, 2**32 - 1))
    return Ace(kind, draw(sids), mask, draw(ace_flags), draw(guids), draw(guids), draw(data))


def acls(kinds: Sequence[AceType], opaque: Sequence[int]) -> st.SearchStrategy[Acl]:
    entries = aces(kinds) | st.builds(OpaqueAce, st.sampled_from(opaque), ace_flags, dwords)
    return st.builds(Acl, st.lists(entries, max_size=4).map(tuple), st.sampled_from(AclRevision))


descriptors = st.builds(
    SecurityDescriptor,
    st.none() | sids,
    st.none() | sids,
    st.none() | acls(ACCESS_TYPES, ACCESS_OPAQUE),
    st.none() | acls(AUDIT_TYPES, AUDIT_OPAQUE),
    st.integers(0, 0xFFFF).map(Control),
    st.integers(0, 0xFF),
)


def build(control: int = 0x8004, dacl: bytes = b"", *, offset: int = 20, revision: int = 1) -> bytes:
    return struct.pack("<BBH4I", revision, 0, control, 0, 0, 0, offset) + dacl


def build_acl(entries: bytes, count: int = 1, *, revision: int = 2, spare: int = 0) -> bytes:
    return struct.pack("<BBHHH", revision, 0, 8 + len(entries) + spare, count, 0) + entries + bytes(spare)


def build_ace(body: bytes, kind: int = 0, *, size: int | None = None) -> bytes:
    return struct.pack("<BBH", kind, 0, 4 + len(body) if size is None else size) + body


def read_only_ace(entry: bytes) -> Ace | OpaqueAce:
    dacl = SecurityDescriptor.from_bytes(build(dacl=build_acl(entry))).dacl
    assert dacl is not None
    (ace,) = dacl.aces
    return ace


def test_the_published_example_both_ways() -> None:
    descriptor = SecurityDescriptor.from_sddl(TEXT)
    assert descriptor.to_bytes() == DATA
    assert SecurityDescriptor.from_bytes(DATA) == descriptor
    assert SecurityDescriptor.from_bytes(DATA).to_sddl() == TEXT


def test_a_cut_or_longer_packet_is_refused() -> None:
    for size in range(len(DATA)):
        with pytest.raises(InvalidSecurityDescriptorError):
            SecurityDescriptor.from_bytes(DATA[:size])
    with pytest.raises(InvalidSecurityDescriptorError, match="1 bytes follow"):
        SecurityDescriptor.from_bytes(DATA + b"\0")


@given(descriptors)
def test_bytes_round_trip(descriptor: SecurityDescriptor) -> None:
    assert SecurityDescriptor.from_bytes(descriptor.to_bytes()) == descriptor


@given(st.binary(max_size=200))
def test_random_bytes_raise_one_error_alone(data: bytes) -> None:
    read_or_refuse(data)


@given(descriptors.map(SecurityDescriptor.to_bytes), st.data())
def test_damaged_bytes_raise_one_error_alone(data: bytes, choose: st.DataObject) -> None:
    damaged = bytearray(data)
    for _ in range(choose.draw(st.integers(1, 4))):
        damaged[choose.draw(st.integers(0, len(data) - 1))] = choose.draw(st.integers(0, 255))
    read_or_refuse(bytes(damaged))


def read_or_refuse(data: bytes) -> None:
    try:
        descriptor = SecurityDescriptor.from_bytes(data)
    except InvalidSecurityDescriptorError:
        return
    assert SecurityDescriptor.from_bytes(descriptor.to_bytes()) == descriptor


def test_a_null_list_is_not_an_empty_one() -> None:
    absent, null, empty = (
        SecurityDescriptor.from_bytes(data)
        for data in (build(0x8000, offset=0), build(0x8004, offset=0), build(dacl=build_acl(b"", 0)))
    )
    assert absent.dacl is None
    assert null.dacl is None
    assert Control.DACL_PRESENT in null.control
    assert empty.dacl == Acl()
    assert len({absent.to_bytes(), null.to_bytes(), empty.to_bytes()}) == 3


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (build(revision=2, dacl=build_acl(b"", 0)), "revision 1"),
        (build(0x0004, build_acl(b"", 0)), "self-relative"),
        (build(0x8000, build_acl(b"", 0)), "says is absent"),
        (build(offset=12, dacl=build_acl(b"", 0)), "within the descriptor's header"),
        (build(offset=0xFFFF_FFFF), "only 0 are left"),
        (build(dacl=build_acl(b"", 0, revision=3)), "revision 2 or 4"),
        (build(dacl=build_acl(b"", MAX_ACES + 1)), "at most 1820"),
        (build(dacl=struct.pack("<BBHHH", 2, 0, 7, 0, 0)), "7 bytes cannot have 0 entries"),
        (build(dacl=build_acl(b"", 1)), "an entry's header takes"),
        (build(dacl=build_acl(build_ace(bytes(4) + WORLD, size=22))), "multiple of 4"),
        (build(dacl=build_acl(build_ace(b"", size=0))), "multiple of 4"),
        (build(dacl=build_acl(build_ace(bytes(4) + WORLD, size=64))), "an entry takes"),
        (build(dacl=build_acl(build_ace(bytes(4)))), "a SID's header takes"),
        (build(dacl=build_acl(build_ace(bytes(4) + b"\4\0\0\0" + WORLD, kind=5))), "object flags 0x4"),
        (build(dacl=build_acl(build_ace(bytes(4) + WORLD, kind=2))), "SYSTEM_AUDIT does not belong"),
        (bytes(MAX_DESCRIPTOR_SIZE + 1), "at most"),
    ],
)  # fmt: skip
def test_what_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(InvalidSecurityDescriptorError, match=why):
        SecurityDescriptor.from_bytes(data)


def test_spare_room_inside_a_list_and_an_entry_is_skipped() -> None:
    entry = build_ace(struct.pack("<I", 4) + WORLD + b"spare...")
    descriptor = SecurityDescriptor.from_bytes(build(dacl=build_acl(entry, spare=12)))
    assert descriptor == SecurityDescriptor(dacl=Acl((Ace.allow(EVERYONE, 4),)))


def test_parts_may_stand_in_any_order_and_be_shared() -> None:
    owner = ADMINISTRATORS.to_bytes()
    header = struct.pack("<BBH4I", 1, 0, 0x8004, 28, 28, 0, 28 + len(owner))
    data = header + b"a gap..." + owner + build_acl(b"", 0)
    assert SecurityDescriptor.from_bytes(data) == SecurityDescriptor(ADMINISTRATORS, ADMINISTRATORS, Acl())


def test_an_object_entry_is_read_with_its_types() -> None:
    body = struct.pack("<II", 0x10, 3) + GUID.bytes_le + UUID(int=0).bytes_le + WORLD
    ace = read_only_ace(build_ace(body, kind=5))
    assert ace == Ace(
        AceType.ACCESS_ALLOWED_OBJECT, EVERYONE, 0x10, object_type=GUID, inherited_object_type=UUID(int=0)
    )
    assert Acl((ace,)).revision is AclRevision.WITH_OBJECTS


def test_a_conditional_entry_keeps_its_condition() -> None:
    ace = read_only_ace(build_ace(struct.pack("<I", 4) + WORLD + b"artx\0\0\0\0", kind=0x0A))
    assert isinstance(ace, Ace)
    assert ace.application_data == b"artx\0\0\0\0"
    assert ace.denies
    assert ace.is_conditional


def test_an_unknown_entry_survives() -> None:
    entry = build_ace(b"whatever it is..", kind=0x77)
    data = build(dacl=build_acl(entry))
    assert read_only_ace(entry) == OpaqueAce(0x77, AceFlag(0), b"whatever it is..")
    assert SecurityDescriptor.from_bytes(data).to_bytes() == data


def test_the_resource_managers_byte_counts_only_with_its_bit() -> None:
    plain = bytearray(build(0x8000, offset=0))
    plain[1] = 7
    marked = bytearray(build(0xC000, offset=0))
    marked[1] = 7
    assert SecurityDescriptor.from_bytes(bytes(plain)).resource_manager_control == 0
    assert SecurityDescriptor.from_bytes(bytes(marked)).to_bytes() == marked


def test_limits_hold_when_writing_too() -> None:
    big = tuple(OpaqueAce(0x77, AceFlag(0), bytes(0x8000)) for _ in range(2))
    with pytest.raises(InvalidSecurityDescriptorError, match="65535 bytes"):
        Acl(big).to_bytes()
    with pytest.raises(InvalidSecurityDescriptorError, match="does not fit"):
        Acl((OpaqueAce(0x77, AceFlag(0), bytes(0x10000)),)).to_bytes()
    with pytest.raises(InvalidSecurityDescriptorError, match="at most 1820"):
        Acl((Ace.allow(EVERYONE, 1),) * (MAX_ACES + 1))
    full = SecurityDescriptor(dacl=Acl((Ace.allow(Sid(5, (21, 1, 2, 3, 4)), 1),) * MAX_ACES))
    assert SecurityDescriptor.from_bytes(full.to_bytes()) == full


def test_values_that_cannot_be_written_are_refused_early() -> None:
    with pytest.raises(InvalidSecurityDescriptorError, match="32 bits"):
        Ace.allow(EVERYONE, 2**32)
    with pytest.raises(InvalidSecurityDescriptorError, match="OpaqueAce"):
        Ace(AceType.SYSTEM_MANDATORY_LABEL, EVERYONE, 1)
    with pytest.raises(InvalidSecurityDescriptorError, match="no object type"):
        Ace(ALLOW, EVERYONE, 1, object_type=GUID)
    with pytest.raises(InvalidSecurityDescriptorError, match="callback entries"):
        Ace(ALLOW, EVERYONE, 1, application_data=b"1234")
    with pytest.raises(InvalidSecurityDescriptorError, match="no OpaqueAce"):
        OpaqueAce(ALLOW, AceFlag(0), b"")
    with pytest.raises(InvalidSecurityDescriptorError, match="one byte"):
        SecurityDescriptor(resource_manager_control=256)
    with pytest.raises(InvalidSecurityDescriptorError, match="audit list"):
        SecurityDescriptor(sacl=Acl((Ace.deny(EVERYONE, 1),)))
