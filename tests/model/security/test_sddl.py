from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanner.model.errors import InvalidSecurityDescriptorError
from lanner.model.security import (
    ADMINISTRATORS,
    ANONYMOUS,
    EVERYONE,
    LOCAL_SYSTEM,
    AccessMask,
    Ace,
    AceFlag,
    AceType,
    Acl,
    Control,
    OpaqueAce,
    QueueRight,
    SecurityDescriptor,
    Sid,
)
from lanner.model.security.sddl import MAX_SDDL_LENGTH

DOMAIN = Sid.parse("S-1-5-21-1-2-3")
GUID = "01234567-89ab-cdef-0123-456789abcdef"

# Each text is written exactly as it is read.
CANONICAL = [
    "",
    "O:BA",
    "G:SY",
    "O:S-1-5-21-1-2-3-1001G:S-1-0x123456789ABC-1D:",
    "O:S-1-5D:",
    "D:",
    "S:",
    "D:S:",
    "D:PARAIS:PARAI",
    "D:NO_ACCESS_CONTROL",
    "D:PNO_ACCESS_CONTROLS:NO_ACCESS_CONTROL",
    "D:(A;;0x24;;;WD)(D;;0x4;;;AN)",
    "D:(A;CIOINPIOID;GAGRGWGXSDRCWDWO;;;OW)",
    "D:(A;;0x0;;;PS)",
    "D:(A;;0x80000001;;;CO)",
    f"D:(OA;;0x10;{GUID};;WD)(OD;;0x20;;{GUID};WD)(OA;;GA;;;WD)",
    f"S:(AU;SAFA;GA;;;WD)(OU;SA;GA;{GUID};{GUID};WD)",
]

sids = st.sampled_from([EVERYONE, ANONYMOUS, ADMINISTRATORS, LOCAL_SYSTEM]) | st.builds(
    Sid, st.integers(0, 2**48 - 1), st.lists(st.integers(0, 2**32 - 1), max_size=15).map(tuple)
)
masks = (
    st.integers(0, 2**32 - 1) | st.sampled_from(AccessMask).map(int) | st.sampled_from(QueueRight).map(int)
)
ace_flags = st.integers(0, 255).map(lambda bits: AceFlag(bits & ~0x20))  # 0x20 has no letters


def acls(plain: list[AceType], of_objects: AceType) -> st.SearchStrategy[Acl]:
    guids = st.none() | st.uuids()
    entries = st.builds(Ace, st.sampled_from(plain), sids, masks, ace_flags)
    entries |= st.builds(Ace, st.just(of_objects), sids, masks, ace_flags, guids, guids)
    return st.builds(Acl, st.lists(entries, max_size=4).map(tuple))


DACLS = acls([AceType.ACCESS_ALLOWED, AceType.ACCESS_DENIED], AceType.ACCESS_DENIED_OBJECT)
SACLS = acls([AceType.SYSTEM_AUDIT], AceType.SYSTEM_AUDIT_OBJECT)
PRESENCE = Control.DACL_PRESENT | Control.SACL_PRESENT


@st.composite
def descriptors(draw: st.DrawFn) -> SecurityDescriptor:
    dacl, sacl = draw(st.none() | DACLS), draw(st.none() | SACLS)
    control = Control(draw(st.sampled_from([0, PRESENCE])))
    # A list that is not there has nothing to protect or inherit, and no text to say so.
    if dacl is not None or control:
        control |= draw(st.sampled_from([Control(0), Control.DACL_PROTECTED, Control.DACL_AUTO_INHERITED]))
    if sacl is not None or control & PRESENCE:
        control |= draw(st.sampled_from([Control(0), Control.SACL_COMPUTED_INHERITANCE_REQUIRED]))
    return SecurityDescriptor(draw(st.none() | sids), draw(st.none() | sids), dacl, sacl, control)


def parse(text: str) -> SecurityDescriptor:
    return SecurityDescriptor.from_sddl(text)


def only_ace(text: str) -> Ace | OpaqueAce:
    dacl = parse(f"D:{text}").dacl
    assert dacl is not None
    (ace,) = dacl.aces
    return ace


def mask_of(rights: str) -> int:
    ace = only_ace(f"(A;;{rights};;;WD)")
    assert isinstance(ace, Ace)
    return ace.mask


@pytest.mark.parametrize("text", CANONICAL)
def test_canonical_texts_both_ways(text: str) -> None:
    descriptor = parse(text)
    assert descriptor.to_sddl() == text
    assert SecurityDescriptor.from_bytes(descriptor.to_bytes()).to_sddl() == text
    assert parse(text.lower()) == descriptor
    assert parse(f"  {text}\n") == descriptor


@pytest.mark.parametrize("text", CANONICAL)
def test_a_cut_text_is_refused_or_means_what_it_says(text: str) -> None:
    for size in range(len(text)):
        read_or_refuse(text[:size])


@given(descriptors())
def test_text_round_trip(descriptor: SecurityDescriptor) -> None:
    assert parse(descriptor.to_sddl()) == descriptor


PIECES = [
    "O:",
    "G:",
    "D:",
    "S:",
    "(",
    ")",
    ";",
    "A",
    "XA",
    "GA",
    "WD",
    "S-1-5-7",
    "0x",
    "07",
    "NO_ACCESS_CONTROL",
    "P",
]


@given(st.text() | st.lists(st.sampled_from(PIECES)).map("".join) | st.text(alphabet="OGDSA():;0x1-WBP"))
def test_random_text_raises_one_error_alone(text: str) -> None:
    read_or_refuse(text)


@given(descriptors(), st.data())
def test_damaged_text_raises_one_error_alone(descriptor: SecurityDescriptor, choose: st.DataObject) -> None:
    text = descriptor.to_sddl()
    at = choose.draw(st.integers(0, len(text)))
    read_or_refuse(text[:at] + choose.draw(st.text(max_size=2)) + text[at + 1 :])


def read_or_refuse(text: str) -> None:
    try:
        descriptor = parse(text)
    except InvalidSecurityDescriptorError:
        return
    assert parse(descriptor.to_sddl()) == descriptor


@pytest.mark.parametrize(
    ("rights", "mask"),
    [
        ("GA", 0x10000000), ("GX", 0x20000000), ("GW", 0x40000000), ("GR", 0x80000000),
        ("SD", 0x10000), ("RC", 0x20000), ("WD", 0x40000), ("WO", 0x80000),
        ("RCWD", 0x60000), ("GRGR", 0x80000000),
        ("CCDCLCSWRPWPSDRCWDWO", QueueRight.QUEUE_GENERIC_ALL), ("DTLOCR", 0x1C0),
        ("FA", 0x1F01FF), ("KA", 0xF003F),
        ("0x24", 0x24), ("0XFFFFFFFF", 0xFFFFFFFF), ("044", 0o44), ("36", 36), ("0", 0), ("", 0),
    ],
)  # fmt: skip
def test_rights(rights: str, mask: int) -> None:
    assert mask_of(rights) == mask


@pytest.mark.parametrize("right", list(QueueRight))
def test_every_queue_right_by_its_number(right: QueueRight) -> None:
    assert mask_of(hex(right)) == right


@pytest.mark.parametrize(
    "rights", ["0x", "0x100000000", "4294967296", "9" * 5000, "-1", "0xG", "GQ", "G", "GAG", "G A"]
)
def test_what_are_no_rights(rights: str) -> None:
    with pytest.raises(InvalidSecurityDescriptorError):
        mask_of(rights)


def test_object_entries() -> None:
    assert only_ace(f"(OD;IO;0x1;{GUID};;BA)") == Ace(
        AceType.ACCESS_DENIED_OBJECT, ADMINISTRATORS, 1, AceFlag.INHERIT_ONLY, UUID(GUID)
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('D:(XA;;GA;;;WD;(Title=="VP"))', "conditional entry.*A, D, AU, OA, OD or OU"),
        ("D:(XD;;GA;;;WD;(Exists x))", "conditional entry"),
        ("D:(A;;GA;;;WD)(ZA;;GA;;;WD;(x))", "character 15.*conditional entry"),
        ('S:(RA;;;;;WD;("x",TI,0,1))', "resource attribute entry"),
        ("S:(ML;;NW;;;HI)", "mandatory label entry"),
        ("S:(SP;;;;;S-1-17-1)", "central policy entry"),
        ("D:(AL;;GA;;;WD)", "not an entry"),
        ("D:(A;;GA;;;WD", "in parentheses"),
        ("D:(A;;GA;;WD)", "not an entry"),
        ("D:(A;;GA;;;WD;)", "not an entry"),
        ("D:(A;;GA;;;)", "names no account"),
        ("D:(A;;GA;;;DA)", "no domain is given"),
        ("D:(A;ZZ;GA;;;WD)", "'ZZ' is unknown"),
        ("D:(A;;GA;x;;WD)", "not a GUID"),
        (f"D:(A;;GA;{GUID};;WD)", "names no object type"),
        ("D:(AU;SA;GA;;;WD)", "does not belong in the access list"),
        ("S:(A;;GA;;;WD)", "does not belong in the audit list"),
        ("D:NO_ACCESS_CONTROL(A;;GA;;;WD)", "has no entries"),
        ("D:X", "at character 3, found 'X'"),
        ("G:BAO:BA", "in this order"),
        ("O:", "an account at the end"),
        ("O:S-1-5-99999999999", "not a SID"),
        ("O:\N{LATIN SMALL LETTER LONG S}Y", "ASCII"),
        ("x" * (MAX_SDDL_LENGTH + 1), "at most"),
    ],
)  # fmt: skip
def test_what_is_refused_and_why(text: str, why: str) -> None:
    with pytest.raises(InvalidSecurityDescriptorError, match=f"(?i){why}"):
        parse(text)


def test_a_domain_gives_a_meaning_to_its_aliases() -> None:
    descriptor = SecurityDescriptor.from_sddl("O:DAD:(A;;GA;;;DU)", DOMAIN)
    assert descriptor.to_sddl() == "O:S-1-5-21-1-2-3-512D:(A;;GA;;;S-1-5-21-1-2-3-513)"


@pytest.mark.parametrize(
    "ace",
    [
        OpaqueAce(0x77, AceFlag(0), b""),
        Ace(AceType.ACCESS_DENIED_CALLBACK, EVERYONE, 1, application_data=b"artx"),
        Ace(AceType.ACCESS_ALLOWED, EVERYONE, 1, AceFlag(0x20)),
    ],
)
def test_an_entry_without_text_form_is_not_dropped(ace: Ace | OpaqueAce) -> None:
    with pytest.raises(InvalidSecurityDescriptorError, match="binary form"):
        SecurityDescriptor(dacl=Acl((ace,))).to_sddl()
