from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanner.model.security import (
    ADMINISTRATORS,
    ANONYMOUS,
    AUTHENTICATED_USERS,
    EVERYONE,
    OWNER_RIGHTS,
    AccessMask,
    Ace,
    AceFlag,
    AceType,
    Acl,
    OpaqueAce,
    QueueRight,
    SecurityDescriptor,
    Sid,
    Token,
    access_check,
    default_queue_descriptor,
    describe,
    granted_access,
)

ALICE = Sid.parse("S-1-5-21-1-2-3-1001")
GUEST = Sid.parse("S-1-5-21-1-2-3-501")
SELF = Sid.from_alias("PS")
NOBODY = Token.everyone_anonymous()
USER = Token.of_user(ALICE)
ADMIN = Token.of_user(ALICE, [ADMINISTRATORS])

SEND, PEEK, READ = QueueRight.WRITE_MESSAGE, QueueRight.PEEK_MESSAGE, QueueRight.RECEIVE_MESSAGE
EVERYTHING = QueueRight.QUEUE_GENERIC_ALL
OWNERS = QueueRight.GET_QUEUE_PERMISSIONS | QueueRight.CHANGE_QUEUE_PERMISSIONS
SINGLE_RIGHTS = list(QueueRight)  # iteration leaves the composite ones out


def of(*aces: Ace | OpaqueAce, owner: Sid | None = None) -> SecurityDescriptor:
    return SecurityDescriptor(owner, dacl=Acl(aces))


def sddl(text: str) -> SecurityDescriptor:
    return SecurityDescriptor.from_sddl(text)


def test_the_rights_have_their_published_values() -> None:
    assert [int(right) for right in SINGLE_RIGHTS] == [
        0x1, 0x2, 0x4, 0x8, 0x10, 0x20, 0x10000, 0x20000, 0x40000, 0x80000,
    ]  # fmt: skip
    composite = [READ, QueueRight.RECEIVE_JOURNAL_MESSAGE, QueueRight.QUEUE_GENERIC_READ]
    composite += [QueueRight.QUEUE_GENERIC_WRITE, EVERYTHING]
    assert [int(right) for right in composite] == [0x3, 0xA, 0x2002B, 0x20024, 0xF003F]
    assert "1048576" in repr(QueueRight(0x100000))


def test_tokens() -> None:
    assert ANONYMOUS in NOBODY
    assert EVERYONE in NOBODY
    assert AUTHENTICATED_USERS not in NOBODY
    assert all(sid in ADMIN for sid in (ALICE, EVERYONE, AUTHENTICATED_USERS, ADMINISTRATORS))
    assert ADMINISTRATORS not in USER
    assert Token.of_user(ANONYMOUS) == NOBODY
    assert AUTHENTICATED_USERS not in Token.of_user(GUEST)


# Descriptor, token, desired, and whether that is granted.
CASES = [
    ("a null list allows everything", sddl("O:BA"), NOBODY, EVERYTHING, True),
    ("a present null list too", sddl("D:NO_ACCESS_CONTROL"), NOBODY, EVERYTHING, True),
    ("an empty list allows nothing", sddl("D:"), ADMIN, PEEK, False),
    ("nothing is always granted", sddl("D:"), NOBODY, 0, True),
    ("a grant", of(Ace.allow(EVERYONE, SEND)), NOBODY, SEND, True),
    ("a grant of something else", of(Ace.allow(EVERYONE, SEND)), NOBODY, PEEK, False),
    ("a grant of half", of(Ace.allow(EVERYONE, PEEK)), NOBODY, READ, False),
    ("a grant in two halves", sddl("D:(A;;0x1;;;WD)(A;;0x2;;;AU)"), USER, READ, True),
    ("a grant to somebody else", of(Ace.allow(ADMINISTRATORS, SEND)), USER, SEND, False),
    ("a grant to a group", of(Ace.allow(ADMINISTRATORS, SEND)), ADMIN, SEND, True),
    ("a grant to the user", of(Ace.allow(ALICE, SEND)), USER, SEND, True),
    ("a denial first", of(Ace.deny(ANONYMOUS, SEND), Ace.allow(EVERYONE, SEND)), NOBODY, SEND, False),
    ("a denial of others", of(Ace.deny(ANONYMOUS, SEND), Ace.allow(EVERYONE, SEND)), USER, SEND, True),
    ("a denial too late", of(Ace.allow(EVERYONE, SEND), Ace.deny(ANONYMOUS, SEND)), NOBODY, SEND, True),
    ("a denial of a part", of(Ace.deny(EVERYONE, PEEK), Ace.allow(EVERYONE, READ)), USER, READ, False),
    ("a denial of the rest", of(Ace.deny(EVERYONE, PEEK), Ace.allow(EVERYONE, READ)), USER, 0x1, True),
    ("generic all", sddl("D:(A;;GA;;;WD)"), NOBODY, EVERYTHING, True),
    ("generic read receives", sddl("D:(A;;GR;;;WD)"), NOBODY, READ, True),
    ("generic read does not send", sddl("D:(A;;GR;;;WD)"), NOBODY, SEND, False),
    ("generic write sends", sddl("D:(A;;GW;;;WD)"), NOBODY, SEND, True),
    ("generic execute is nothing", sddl("D:(A;;GX;;;WD)"), NOBODY, PEEK, False),
    ("a generic request", sddl("D:(A;;0x20024;;;WD)"), NOBODY, AccessMask.GENERIC_WRITE, True),
    ("a generic request for more", sddl("D:(A;;0x4;;;WD)"), NOBODY, AccessMask.GENERIC_WRITE, False),
    ("a generic denial", sddl("D:(D;;GA;;;AN)(A;;0x4;;;WD)"), NOBODY, SEND, False),
    ("an unknown right is not granted", sddl("D:(A;;GA;;;WD)"), NOBODY, SEND | 0x100000, False),
    ("an unknown right named by number", sddl("D:(A;;0x100000;;;WD)"), NOBODY, 0x100000, True),
    ("inherit-only grants nothing", sddl("D:(A;IO;GA;;;WD)"), NOBODY, SEND, False),
    ("inherit-only denies nothing", sddl("D:(D;OIIO;GA;;;WD)(A;;GA;;;WD)"), NOBODY, SEND, True),
    ("inherited entries count", sddl("D:(A;ID;GA;;;WD)"), NOBODY, SEND, True),
    ("creator owner is a placeholder", sddl(f"O:{ALICE}D:(A;;GA;;;CO)"), USER, SEND, False),
    ("a queue has no self", of(Ace.allow(SELF, SEND)), Token(ALICE, frozenset({SELF})), SEND, False),
    ("auditing takes a privilege", sddl("O:BA"), ADMIN, AccessMask.ACCESS_SYSTEM_SECURITY, False),
    ("the owner's own rights", sddl(f"O:{ALICE}D:"), USER, OWNERS, True),
    ("the owner's rights are no more", sddl(f"O:{ALICE}D:"), USER, OWNERS | PEEK, False),
    ("ownership through a group", sddl("O:BAD:"), ADMIN, OWNERS, True),
    ("somebody else's queue", sddl("O:BAD:"), USER, OWNERS, False),
    ("an owner cannot be locked out", sddl("O:BAD:(D;;GA;;;WD)"), ADMIN, OWNERS, True),
    ("except by owner rights", sddl("O:BAD:(A;;0x20000;;;OW)"), ADMIN, OWNERS, False),
    ("owner rights may be none", sddl("O:BAD:(A;;0x0;;;OW)"), ADMIN, OWNERS, False),
    ("owner rights give", sddl("O:BAD:(A;;0x4;;;OW)"), ADMIN, SEND, True),
    ("owner rights are the owner's", sddl("O:BAD:(A;;0x4;;;OW)"), USER, SEND, False),
    ("inherit-only owner rights do not count", sddl("O:BAD:(A;IO;0x4;;;OW)"), ADMIN, OWNERS, True),
    ("maximum allowed is something", sddl("D:(A;;0x4;;;WD)"), NOBODY, AccessMask.MAXIMUM_ALLOWED, True),
    ("maximum allowed is nothing", sddl("D:"), NOBODY, AccessMask.MAXIMUM_ALLOWED, False),
    ("maximum allowed and more", sddl("D:(A;;0x4;;;WD)"), NOBODY, AccessMask.MAXIMUM_ALLOWED | PEEK, False),
]


@pytest.mark.parametrize(
    ("descriptor", "token", "desired", "granted"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_access_check(descriptor: SecurityDescriptor, token: Token, desired: int, granted: bool) -> None:
    assert access_check(descriptor, token, desired) is granted


def test_an_entry_about_an_object_type_does_not_concern_a_queue() -> None:
    guid = UUID(int=1)
    grant = Ace(AceType.ACCESS_ALLOWED_OBJECT, EVERYONE, SEND, object_type=guid)
    denial = Ace(AceType.ACCESS_DENIED_OBJECT, EVERYONE, SEND, object_type=guid)
    assert not access_check(of(grant), USER, SEND)
    assert access_check(of(denial, Ace.allow(EVERYONE, SEND)), USER, SEND)


def test_an_object_entry_without_a_type_is_about_the_queue() -> None:
    assert access_check(sddl("D:(OA;;0x4;;;WD)"), USER, SEND)
    assert not access_check(sddl("D:(OD;;0x4;;;WD)(A;;0x4;;;WD)"), USER, SEND)


def test_a_condition_is_unknown_so_it_denies_and_does_not_grant() -> None:
    grant = Ace(AceType.ACCESS_ALLOWED_CALLBACK, EVERYONE, SEND, application_data=b"artx")
    denial = Ace(AceType.ACCESS_DENIED_CALLBACK, EVERYONE, SEND, application_data=b"artx")
    for check in (access_check(of(grant), USER, SEND), granted_access(of(grant), USER)):
        assert not check
    for check in (
        access_check(of(denial, Ace.allow(ALICE, SEND)), USER, SEND),
        granted_access(of(denial), USER),
    ):
        assert not check


def test_an_opaque_entry_decides_nothing() -> None:
    opaque = OpaqueAce(0x77, AceFlag(0), b"")
    assert granted_access(of(opaque, Ace.allow(EVERYONE, SEND)), USER) == SEND


@pytest.mark.parametrize(
    ("text", "token", "granted"),
    [
        ("O:BA", NOBODY, EVERYTHING),
        ("D:", NOBODY, QueueRight(0)),
        ("O:BAD:", ADMIN, OWNERS),
        ("O:BAD:(D;;GA;;;WD)", ADMIN, OWNERS),
        ("D:(A;;GW;;;WD)", NOBODY, QueueRight.QUEUE_GENERIC_WRITE),
        ("D:(A;;0x7;;;WD)(D;;0x4;;;AN)", NOBODY, READ),
        ("D:(A;;0xffffffff;;;WD)", NOBODY, EVERYTHING),
        ("D:(A;IO;GA;;;WD)", NOBODY, QueueRight(0)),
    ],
)
def test_granted_access(text: str, token: Token, granted: QueueRight) -> None:
    answer = granted_access(sddl(text), token)
    assert answer == granted
    assert isinstance(answer, QueueRight)


accounts = st.sampled_from([EVERYONE, ANONYMOUS, AUTHENTICATED_USERS, ADMINISTRATORS, ALICE, OWNER_RIGHTS])
masks = st.sampled_from([*SINGLE_RIGHTS, READ, EVERYTHING, AccessMask.GENERIC_READ, AccessMask.GENERIC_WRITE])
flags = st.sampled_from([AceFlag(0), AceFlag.INHERIT_ONLY])
entries = st.builds(
    Ace, st.sampled_from([AceType.ACCESS_ALLOWED, AceType.ACCESS_DENIED]), accounts, masks.map(int), flags
)
owners = st.none() | accounts
tokens = st.sampled_from([NOBODY, USER, ADMIN])


@given(st.lists(entries, max_size=6), owners, tokens)
def test_in_canonical_order_both_modes_agree(aces: list[Ace], owner: Sid | None, token: Token) -> None:
    descriptor = of(*sorted(aces, key=lambda ace: not ace.denies), owner=owner)
    granted = granted_access(descriptor, token)
    for right in SINGLE_RIGHTS:
        assert access_check(descriptor, token, right) == (right in granted)
    assert access_check(descriptor, token, granted)


@given(st.lists(entries, max_size=6), owners, tokens)
def test_in_any_order_what_is_granted_passes_the_check(
    aces: list[Ace], owner: Sid | None, token: Token
) -> None:
    descriptor = of(*aces, owner=owner)
    assert access_check(descriptor, token, granted_access(descriptor, token))


@given(st.lists(entries, max_size=6), owners)
def test_everything_can_be_described(aces: list[Ace], owner: Sid | None) -> None:
    lines = describe(of(*aces, owner=owner))
    assert len(lines) >= len(aces)
    assert all(line and line[0].isupper() for line in lines)


def test_the_default_of_somebody_unknown_is_open() -> None:
    descriptor = default_queue_descriptor()
    assert descriptor.to_sddl() == "O:AND:(A;;0xf003f;;;WD)(A;;0x4;;;AN)"
    assert access_check(descriptor, NOBODY, EVERYTHING)
    assert default_queue_descriptor(srmp=False).to_sddl() == "O:AND:(A;;0xf003f;;;WD)"
    assert default_queue_descriptor(ANONYMOUS) == descriptor


def test_the_default_of_a_guest_is_open() -> None:
    assert default_queue_descriptor(GUEST).to_sddl() == f"O:{GUEST}D:(A;;0xf003f;;;WD)(A;;0x4;;;AN)"


def test_the_default_of_a_user_is_theirs() -> None:
    descriptor = default_queue_descriptor(ALICE)
    assert descriptor.to_sddl() == f"O:{ALICE}D:(A;;0x20024;;;WD)(A;;0x4;;;AN)(A;;0xf003f;;;{ALICE})"
    assert (
        default_queue_descriptor(ALICE, srmp=False).to_sddl()
        == f"O:{ALICE}D:(A;;0x20020;;;WD)(A;;0xf003f;;;{ALICE})"
    )
    assert granted_access(descriptor, USER) == EVERYTHING
    assert granted_access(descriptor, NOBODY) == QueueRight.QUEUE_GENERIC_WRITE
    assert describe(descriptor) == [
        f"{ALICE} owns the queue and may read and change permissions",
        "Everyone may send messages, read properties and read permissions",
        "Anonymous logon may send messages",
        f"{ALICE} may do everything",
    ]


LATE = "The order counts: where two entries disagree about a right, the earlier one wins"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", ["Everyone may do everything: there is no access control list"]),
        (
            "O:BA",
            [
                "Administrators owns the queue and may read and change permissions",
                "Everyone may do everything: there is no access control list",
            ],
        ),
        ("D:", ["Nobody may do anything"]),
        (
            "O:BAD:",
            [
                "Administrators owns the queue and may read and change permissions",
                "Nobody may do anything, apart from the owner",
            ],
        ),
        (
            "D:(D;;0x4;;;AN)(A;;GA;;;WD)",
            ["Anonymous logon may not send messages", "Everyone may do everything"],
        ),
        (
            "D:(A;;GA;;;WD)(D;;0x7;;;AN)",
            ["Everyone may do everything", "Anonymous logon may not receive messages or send messages", LATE],
        ),
        ("D:(D;;GA;;;WD)", ["Everyone may not do anything", "Nobody may do anything"]),
        (
            "O:BAD:(A;;0x4;;;OW)",
            ["Administrators owns the queue", "The owner may send messages"],
        ),
        ("D:(A;;0x2;;;WD)", ["Everyone may peek at messages"]),
        ("D:(A;;0x1;;;WD)", ["Everyone may delete messages"]),
        ("D:(A;;0xa;;;WD)", ["Everyone may receive journal messages"]),
        ("D:(A;;0xb;;;WD)", ["Everyone may receive messages and receive journal messages"]),
        (
            "D:(A;;0xd0018;;;BU)",
            [
                "Users may delete journal messages, change properties, change permissions, "
                "delete the queue and take ownership"
            ],
        ),
        ("D:(A;;0x140;;;WD)", ["Everyone may use the unknown rights 0x140"]),
        ("D:(A;;0x1f01ff;;;WD)", ["Everyone may do everything"]),
        (
            "D:(A;;GX;;;WD)(A;;0x0;;;AN)(A;;0x4;;;AU)",
            [
                "An entry for Everyone names no right of a queue",
                "An entry for Anonymous logon names no right of a queue",
                "Authenticated users may send messages",
            ],
        ),
        (
            "D:(A;IO;GA;;;WD)",
            [
                "An entry of type 0x00 for Everyone has no effect: it is for inheritance only",
                "Nobody may do anything",
            ],
        ),
        (
            "D:(OD;;GA;01234567-89ab-cdef-0123-456789abcdef;;WD)(A;;GA;;;WD)",
            [
                "An entry of type 0x06 for Everyone has no effect: "
                "it is about an object type, which a queue does not have",
                "Everyone may do everything",
            ],
        ),
    ],
)
def test_words(text: str, lines: list[str]) -> None:
    assert describe(sddl(text)) == lines


def test_words_for_entries_without_text_form() -> None:
    denial = Ace(AceType.ACCESS_DENIED_CALLBACK, ANONYMOUS, SEND, application_data=b"artx")
    grant = Ace(AceType.ACCESS_ALLOWED_CALLBACK, EVERYONE, SEND, application_data=b"artx")
    assert describe(of(denial, grant, OpaqueAce(0x77, AceFlag(0), b""))) == [
        "Anonymous logon may not send messages: the entry has a condition, which Lanner does not evaluate",
        "Everyone may send messages on a condition, which Lanner does not evaluate and so never grants",
        "An entry of type 0x77 has no effect: Lanner does not interpret it",
        "Nobody may do anything",
    ]
