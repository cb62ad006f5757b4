"""Who may do what with a queue: rights, tokens, the access check, and all of it in words.

The check is that of MS-DTYP 2.5.3.2 for an object without parts and a caller without privileges. A
queue has no object types, so an entry that names one does not concern it. Lanner does not evaluate
conditions: they stay UNKNOWN, which 2.4.4.17.3 makes a denial deny and a grant not grant.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntFlag
from typing import Final

from lanner.model.security.ace import AccessMask, Ace, AceFlag, OpaqueAce
from lanner.model.security.descriptor import Acl, SecurityDescriptor
from lanner.model.security.sid import (
    ANONYMOUS,
    AUTHENTICATED_USERS,
    EVERYONE,
    OWNER_RIGHTS,
    PRINCIPAL_SELF,
    Sid,
)

__all__ = ["QueueRight", "Token", "access_check", "default_queue_descriptor", "describe", "granted_access"]


class QueueRight(IntFlag):
    """What one may do with a queue (MS-MQMQ 2.2.24, MQQUEUEACCESSMASK)."""

    DELETE_MESSAGE = 0x0000_0001
    PEEK_MESSAGE = 0x0000_0002
    WRITE_MESSAGE = 0x0000_0004
    DELETE_JOURNAL_MESSAGE = 0x0000_0008
    SET_QUEUE_PROPERTIES = 0x0000_0010
    GET_QUEUE_PROPERTIES = 0x0000_0020
    DELETE_QUEUE = 0x0001_0000
    GET_QUEUE_PERMISSIONS = 0x0002_0000
    CHANGE_QUEUE_PERMISSIONS = 0x0004_0000
    TAKE_QUEUE_OWNERSHIP = 0x0008_0000
    RECEIVE_MESSAGE = DELETE_MESSAGE | PEEK_MESSAGE
    RECEIVE_JOURNAL_MESSAGE = DELETE_JOURNAL_MESSAGE | PEEK_MESSAGE
    QUEUE_GENERIC_READ = (
        GET_QUEUE_PROPERTIES | GET_QUEUE_PERMISSIONS | RECEIVE_MESSAGE | RECEIVE_JOURNAL_MESSAGE
    )
    QUEUE_GENERIC_WRITE = GET_QUEUE_PROPERTIES | GET_QUEUE_PERMISSIONS | WRITE_MESSAGE
    QUEUE_GENERIC_ALL = (
        QUEUE_GENERIC_READ
        | QUEUE_GENERIC_WRITE
        | SET_QUEUE_PROPERTIES
        | DELETE_QUEUE
        | CHANGE_QUEUE_PERMISSIONS
        | TAKE_QUEUE_OWNERSHIP
    )


_EVERY_RIGHT: Final = QueueRight.QUEUE_GENERIC_ALL
_OWNERS_RIGHTS: Final = QueueRight.GET_QUEUE_PERMISSIONS | QueueRight.CHANGE_QUEUE_PERMISSIONS
_WORLD_RIGHTS: Final = QueueRight.GET_QUEUE_PROPERTIES | QueueRight.GET_QUEUE_PERMISSIONS

_GENERIC: Final = {
    AccessMask.GENERIC_READ: QueueRight.QUEUE_GENERIC_READ,
    AccessMask.GENERIC_WRITE: QueueRight.QUEUE_GENERIC_WRITE,
    AccessMask.GENERIC_EXECUTE: QueueRight(0),  # MS-MQMQ 2.2.24 gives it no meaning
    AccessMask.GENERIC_ALL: _EVERY_RIGHT,
}


def _queue_rights(mask: int) -> int:
    """Replace the generic bits of a mask by the queue rights they stand for (MS-DTYP 2.4.3).

    Windows does so when a descriptor is stored. Lanner keeps descriptors as they were given, so that
    they read back unchanged, and does it when they are used. The result is a plain number: inverting
    a flag loses the bits above its highest member, and a right that no queue has would seem granted.
    """
    rights = int(mask)
    for generic, meaning in _GENERIC.items():
        if mask & generic:
            rights = rights & ~int(generic) | int(meaning)
    return rights


@dataclass(frozen=True, slots=True)
class Token:
    """Who is asking: a user and every group that the user counts as (MS-DTYP 2.5.2)."""

    user: Sid
    groups: frozenset[Sid] = frozenset()

    @classmethod
    def everyone_anonymous(cls) -> Token:
        """Somebody who did not say who they are."""
        return cls(ANONYMOUS, frozenset({EVERYONE}))

    @classmethod
    def of_user(cls, user: Sid, groups: Iterable[Sid] = ()) -> Token:
        """A user who proved their identity; a guest proved nothing (2.4.2.4, AUTHENTICATED_USERS)."""
        implied = {EVERYONE} if user == ANONYMOUS or user.is_guest else {EVERYONE, AUTHENTICATED_USERS}
        return cls(user, frozenset(implied.union(groups)))

    def __contains__(self, sid: Sid) -> bool:
        """SidInToken (2.5.3.1.1), for an object that is no principal and so has no self."""
        return sid != PRINCIPAL_SELF and (sid == self.user or sid in self.groups)


def access_check(descriptor: SecurityDescriptor, token: Token, desired: int) -> bool:
    """Whether the token gets all of the desired rights (MS-DTYP 2.5.3.2)."""
    remaining = _queue_rights(desired)
    if remaining & AccessMask.ACCESS_SYSTEM_SECURITY:
        return False  # it takes a privilege, and tokens here have none
    if remaining & AccessMask.MAXIMUM_ALLOWED:
        granted = granted_access(descriptor, token)
        return bool(granted) and not remaining & ~(int(granted) | int(AccessMask.MAXIMUM_ALLOWED))
    if descriptor.dacl is None:
        return True
    remaining &= ~_implied_rights(descriptor, token)
    for ace in _applicable(descriptor, token):
        rights = _queue_rights(ace.mask)
        if ace.denies and rights & remaining:
            return False
        if _grants(ace):
            remaining &= ~rights
    return not remaining


def granted_access(descriptor: SecurityDescriptor, token: Token) -> QueueRight:
    """Every queue right that the token has: the MAXIMUM_ALLOWED mode (MS-DTYP 2.5.3.2).

    In this mode a denial wins wherever it stands in the list. In the ordinary mode the order counts,
    so a list that allows before it denies can grant a right there that is missing here.
    """
    if descriptor.dacl is None:
        return _EVERY_RIGHT
    allowed = denied = 0
    for ace in _applicable(descriptor, token):
        if ace.denies:
            denied |= _queue_rights(ace.mask)
        elif _grants(ace):
            allowed |= _queue_rights(ace.mask)
    # Deviation: the pseudocode loses the owner's implied rights at its last step, against its own comment.
    return QueueRight((allowed & ~denied | _implied_rights(descriptor, token)) & int(_EVERY_RIGHT))


def _implied_rights(descriptor: SecurityDescriptor, token: Token) -> int:
    """What an owner may do whatever the list says, unless the list speaks about owners."""
    return int(_OWNERS_RIGHTS) if _owns(descriptor, token) and not _limits_owner(descriptor) else 0


def _owns(descriptor: SecurityDescriptor, token: Token) -> bool:
    return descriptor.owner is not None and descriptor.owner in token


def _limits_owner(descriptor: SecurityDescriptor) -> bool:
    return any(ace.sid == OWNER_RIGHTS for ace in _effective(descriptor.dacl))


def _effective(acl: Acl | None) -> Iterator[Ace]:
    """The entries that concern the queue itself."""
    for ace in acl.aces if acl else ():
        if isinstance(ace, Ace) and not _why_without_effect(ace):
            yield ace


def _applicable(descriptor: SecurityDescriptor, token: Token) -> Iterator[Ace]:
    owns = _owns(descriptor, token)
    for ace in _effective(descriptor.dacl):
        if ace.sid in token or (owns and ace.sid == OWNER_RIGHTS):
            yield ace


def _grants(ace: Ace) -> bool:
    return not ace.denies and not ace.is_conditional


def _why_without_effect(ace: Ace | OpaqueAce) -> str:
    """Why an entry decides nothing about the queue; empty if it does decide."""
    if isinstance(ace, OpaqueAce):
        return "Lanner does not interpret it"
    if AceFlag.INHERIT_ONLY in ace.flags:
        return "it is for inheritance only"
    return "" if ace.object_type is None else "it is about an object type, which a queue does not have"


def default_queue_descriptor(owner: Sid | None = None, srmp: bool = True) -> SecurityDescriptor:
    """The descriptor of a queue that was created without one (MS-MQDMPR 3.1.7.1.3.1).

    An ``owner`` of None is somebody who is not a domain user. Without a directory the machine has no
    SID, so it gets no entry. ``srmp`` says whether messages can arrive over SRMP, where senders are
    anonymous. The section computes an owner without saying where it goes: here, into the descriptor.
    """
    owner = ANONYMOUS if owner is None else owner
    is_somebody = owner != ANONYMOUS and not owner.is_guest
    world = _WORLD_RIGHTS if is_somebody else _EVERY_RIGHT
    aces = [Ace.allow(EVERYONE, world | QueueRight.WRITE_MESSAGE if srmp else world)]
    if srmp:
        aces.append(Ace.allow(ANONYMOUS, QueueRight.WRITE_MESSAGE))
    if is_somebody:
        aces.append(Ace.allow(owner, _EVERY_RIGHT))
    return SecurityDescriptor(owner=owner, dacl=Acl(tuple(aces)))


# Rights in words, in the order in which a sentence names them. A peek goes unsaid next to a receive.
_WORDS: Final = (
    (QueueRight.RECEIVE_MESSAGE, "receive messages"),
    (QueueRight.RECEIVE_JOURNAL_MESSAGE, "receive journal messages"),
    (QueueRight.PEEK_MESSAGE, "peek at messages"),
    (QueueRight.DELETE_MESSAGE, "delete messages"),
    (QueueRight.DELETE_JOURNAL_MESSAGE, "delete journal messages"),
    (QueueRight.WRITE_MESSAGE, "send messages"),
    (QueueRight.GET_QUEUE_PROPERTIES, "read properties"),
    (QueueRight.SET_QUEUE_PROPERTIES, "change properties"),
    (QueueRight.GET_QUEUE_PERMISSIONS, "read permissions"),
    (QueueRight.CHANGE_QUEUE_PERMISSIONS, "change permissions"),
    (QueueRight.DELETE_QUEUE, "delete the queue"),
    (QueueRight.TAKE_QUEUE_OWNERSHIP, "take ownership"),
)


def describe(descriptor: SecurityDescriptor) -> list[str]:
    """Say in words who may do what: the owner first, then the entries in the order they are consulted."""
    lines = []
    implied = descriptor.owner is not None and not _limits_owner(descriptor)
    if descriptor.owner is not None:
        may = " and may read and change permissions" if implied else ""
        lines.append(f"{descriptor.owner.display_name} owns the queue{may}")
    if descriptor.dacl is None:
        return [*lines, "Everyone may do everything: there is no access control list"]
    lines += map(_entry_in_words, descriptor.dacl.aces)
    effective = list(_effective(descriptor.dacl))
    if not any(map(_grants, effective)):
        lines.append("Nobody may do anything" + ", apart from the owner" * implied)
    if _denies_late(effective):
        lines.append("The order counts: where two entries disagree about a right, the earlier one wins")
    return lines


def _entry_in_words(ace: Ace | OpaqueAce) -> str:
    if reason := _why_without_effect(ace):
        whom = "" if isinstance(ace, OpaqueAce) else f" for {ace.sid.display_name}"
        return f"An entry of type {ace.type:#04x}{whom} has no effect: {reason}"
    assert isinstance(ace, Ace)
    rights = _queue_rights(ace.mask)
    name = ace.sid.display_name
    if not rights:
        return f"An entry for {name} names no right of a queue"
    if not ace.denies:
        unless = " on a condition, which Lanner does not evaluate and so never grants" * ace.is_conditional
        return f"{name} may {_in_words(rights, 'do everything', 'and')}{unless}"
    unless = ": the entry has a condition, which Lanner does not evaluate" * ace.is_conditional
    return f"{name} may not {_in_words(rights, 'do anything', 'or')}{unless}"


def _in_words(rights: int, everything: str, joint: str) -> str:
    if rights & _EVERY_RIGHT == _EVERY_RIGHT:
        return everything
    words, unsaid = [], rights
    for right, word in _WORDS:
        # A receive shares its peek with the other receive, but each adds a bit not yet said.
        if rights & right == right and right & unsaid:
            words.append(word)
            unsaid &= ~int(right)
    if unsaid:
        words.append(f"use the unknown rights {unsaid:#x}")
    return _join(words, joint)


def _join(words: Sequence[str], joint: str) -> str:
    *first, last = words
    return f"{', '.join(first)} {joint} {last}" if first else last


def _denies_late(aces: Sequence[Ace]) -> bool:
    """Whether a denial stands behind a grant, against the canonical order (MS-DTYP 2.4.5)."""
    denials = [ace.denies for ace in aces]
    return denials != sorted(denials, reverse=True)
