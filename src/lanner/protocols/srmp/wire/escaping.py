"""Text for XML (XML 1.0, sections 2.2, 2.4 and 2.11)."""

from __future__ import annotations

import re

from lanner.protocols.srmp.wire.faults import WireFault

__all__ = ["escape"]

_IMPOSSIBLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_SPECIAL = re.compile('["&<>\r\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]')
# A carriage return written as itself would be read as a line feed.
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\r": "&#13;"})


def escape(text: str, section: str, element: str) -> str:
    """Write text so that a reader gets it back. Raises WireFault for a character that XML cannot hold."""
    if _SPECIAL.search(text) is None:
        return text
    impossible = _IMPOSSIBLE.search(text)
    if impossible is not None:
        raise WireFault(section, element, f"XML cannot hold the character U+{ord(impossible[0]):04X}")
    return text.translate(_ESCAPES)
