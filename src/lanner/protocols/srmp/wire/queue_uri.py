"""How a queue is written inside an envelope, and how outside (MC-MQSRM 2.2.4.2, 2.2.4.4, 3.1.5.1.1)."""

from __future__ import annotations

from lanner.protocols.srmp.wire.elements import LABEL_PREFIX

__all__ = ["format_name_of", "is_destination", "is_http", "uri_of"]

_DIRECT = "DIRECT="
_HTTP = ("http://", "https://")
_MULTICAST = "msmq:multicast="


def is_http(uri: str) -> bool:
    """Whether the URI names a queue by HTTP or HTTPS."""
    return uri[:8].lower().startswith(_HTTP)


def is_destination(uri: str) -> bool:
    """Whether the URI can stand in a ``to`` element (2.2.4.2)."""
    return is_http(uri) or uri[: len(_MULTICAST)].lower() == _MULTICAST


def format_name_of(uri: str) -> str | None:
    """Return the format name that a URI stands for, or None where 3.1.5.1.1 knows none.

    The text leaves "DIRECT=" away in all but the destination; a format name needs it everywhere.
    """
    if is_http(uri):
        return _DIRECT + uri
    return uri[len(LABEL_PREFIX) :] if uri[: len(LABEL_PREFIX)].upper() == LABEL_PREFIX else None


def uri_of(format_name: str) -> str:
    """Return the URI that stands for a format name."""
    direct, uri = format_name[: len(_DIRECT)], format_name[len(_DIRECT) :]
    if direct.upper() != _DIRECT or not is_http(uri):
        return LABEL_PREFIX + format_name
    # 2.2.4.2 has the scheme in small letters, and a format name may have it in large ones.
    scheme, colon, rest = uri.partition(":")
    return scheme.lower() + colon + rest
