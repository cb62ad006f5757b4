"""Distinguished names as text (RFC 4514): taken apart, put together, compared."""

from __future__ import annotations

import string
from collections.abc import Iterator

from lanner.directory.base import InvalidDirectoryError

__all__ = ["MAX_DN_LENGTH", "child", "key", "parent", "parts", "value"]

MAX_DN_LENGTH = 8192
"""Many times a queue's longest name under the deepest tree; a longer one would only cost time."""

_SPECIAL = frozenset(',+"\\<>;=')
_HEX = frozenset(string.hexdigits)


def parts(dn: str) -> list[tuple[str, str]]:
    """The types and values of a name, the first first: ``[("CN", "msmq"), ("CN", "LON-1"), ...]``."""
    if len(dn) > MAX_DN_LENGTH:
        raise _wrong(dn, f"has more than {MAX_DN_LENGTH} characters")
    found = []
    for rdn in _split(dn):
        kind, separator, text = rdn.partition("=")
        if not separator or not kind.strip():
            raise _wrong(dn, f"has the part {rdn[:64]!r} without a type")
        found.append((kind.strip(), _unescaped(dn, text)))
    return found


def value(dn: str, number: int = 0) -> str:
    """The value of one part of a name, counted from the first."""
    found = parts(dn)
    if number >= len(found):
        raise _wrong(dn, "is too short")
    return found[number][1]


def parent(dn: str, levels: int = 1) -> str:
    """The name of what holds it."""
    rest = _split(dn)[levels:]
    if not rest:
        raise _wrong(dn, "has nothing above it")
    return ",".join(part.strip() for part in rest)


def child(name: str, above: str) -> str:
    """The name of something called ``name`` under another."""
    return f"CN={_escaped(name)},{above}"


def key(dn: str) -> tuple[tuple[str, str], ...]:
    """A name in the one form to compare by: Active Directory's names have no case."""
    return tuple((kind.casefold(), text.casefold()) for kind, text in parts(dn))


def _escaped(text: str) -> str:
    shown = "".join(f"\\{one}" if one in _SPECIAL else "\\00" if one == "\0" else one for one in text)
    if text[:1] in ("#", " "):
        shown = "\\" + shown
    # One blank alone is the first and the last, and escaped already.
    return f"{shown[:-1]}\\ " if len(text) > 1 and text[-1] == " " else shown


def _split(dn: str) -> list[str]:
    return list(_split_escaped(dn)) if "\\" in dn else dn.split(",")  # most have no escapes


def _split_escaped(dn: str) -> Iterator[str]:
    start = position = 0
    while position < len(dn):
        if dn[position] == "\\":
            position += 1
        elif dn[position] == ",":
            yield dn[start:position]
            start = position + 1
        position += 1
    yield dn[start:]


def _unescaped(dn: str, text: str) -> str:
    # Blanks around a value are not part of it; those that are, are escaped.
    if "\\" not in text:
        return text.strip(" ")
    text = text.lstrip(" ")
    found = bytearray()
    kept = 0
    position = 0
    while position < len(text):
        if text[position] != "\\":
            found += text[position].encode()
            if text[position] != " ":
                kept = len(found)
            position += 1
            continue
        following = text[position + 1 : position + 3]
        if len(following) == 2 and _HEX.issuperset(following):
            found.append(int(following, 16))
            position += 3
        elif following:
            found += following[0].encode()
            position += 2
        else:
            raise _wrong(dn, "ends in the middle of an escape")
        kept = len(found)
    try:
        return found[:kept].decode()
    except UnicodeDecodeError:
        raise _wrong(dn, "is not UTF-8") from None


def _wrong(dn: str, what: str) -> InvalidDirectoryError:
    return InvalidDirectoryError(f"the distinguished name {dn[:128]!r} {what}")
