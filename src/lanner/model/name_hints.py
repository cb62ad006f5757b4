r"""What a wrong name was probably meant to be.

People leave out a ``$``, write slashes for backslashes, or paste a URL. A few small repairs, each for one
such slip, are tried one after another; the first result that the parser accepts is suggested. So a
suggestion always parses, and no repair needs to be right for names it was not made for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from typing import TypeVar
from uuid import UUID

from lanner.model.direct_name import BAD_ESCAPE, DirectProtocol
from lanner.model.errors import InvalidNameError
from lanner.model.names import ILLEGAL_IN_QUEUE, NOT_A_COMPUTER, Name, check_whole, is_address

__all__ = ["FORMAT_NAME_PREFIX", "looks_like_format_name", "parse_or_suggest"]

# Applications write it before a format name where a path name could stand too.
FORMAT_NAME_PREFIX = "formatname:"

# Longer wrong names were made by a program or an attacker, and the repairs would be wasted on them.
_MAX_REPAIRED_LENGTH = 1024

_EXAMPLES = {
    "DIRECT": r"DIRECT=OS:host\private$\orders",
    "PUBLIC": "PUBLIC=2f0b2c8e-6f5d-4c58-9d6e-0a3b5c7d9e1f",
    "PRIVATE": r"PRIVATE=2f0b2c8e-6f5d-4c58-9d6e-0a3b5c7d9e1f\1a",
    "DL": "DL=2f0b2c8e-6f5d-4c58-9d6e-0a3b5c7d9e1f",
    "MACHINE": "MACHINE=2f0b2c8e-6f5d-4c58-9d6e-0a3b5c7d9e1f;DEADLETTER",
    "CONNECTOR": "CONNECTOR=2f0b2c8e-6f5d-4c58-9d6e-0a3b5c7d9e1f",
    "MULTICAST": "MULTICAST=234.1.1.1:8001",
}
_HTTP_EXAMPLE = "DIRECT=HTTP://host/msmq/private$/orders"

_BEGINS_WITH_KEYWORD = re.compile(r"[^\\/=]*=")
_PROTOCOL_ALONE = re.compile(r"(?:OS|TCP|IPX|HTTPS?):", re.IGNORECASE)
_KEYWORD = re.compile(r"([A-Z]{1,20})\s*[=:]\s*", re.IGNORECASE)
_DIRECT = re.compile(r"DIRECT=", re.IGNORECASE)
_PROTOCOL = re.compile(r"([A-Z]{1,20}):", re.IGNORECASE)
_DIRECT_TCP = re.compile(r"DIRECT=TCP:([^\\]*)", re.IGNORECASE)
_DIRECT_HTTP = re.compile(r"DIRECT=HTTPS?:", re.IGNORECASE)
_DIRECT_PATH = re.compile(r"DIRECT=(?:OS|TCP|IPX):", re.IGNORECASE)
_LOOSE_GUID = re.compile(r"([A-Z]+=)[{(]?([0-9A-F-]{32,40})[)}]?", re.IGNORECASE)

_N = TypeVar("_N", bound=Name)


def looks_like_format_name(text: str) -> bool:
    """Tell a format name, right or wrong, from a path name: it has a ``=`` before any separator."""
    return _BEGINS_WITH_KEYWORD.match(text) is not None


def _as_it_is(text: str) -> str:
    return text


def parse_or_suggest(
    text: str, read: Callable[[str], _N], *, example: str, adapt: Callable[[str], str] = _as_it_is
) -> _N:
    """Read a name; if it is wrong, complete the error with what may have been meant.

    ``adapt`` turns a name of the other sort into the sort that ``read`` takes; ``example`` is shown where
    there is nothing to suggest.
    """
    try:
        check_whole(text)
        return read(text)
    except InvalidNameError as error:
        wrong = error
    suggestion = _suggestion(text, read, adapt)
    if suggestion:
        hint = f"did you mean {suggestion}"
    else:
        hint = f"such a name looks like {_first_right((_example_like(text), example), read)}"
    raise InvalidNameError(wrong.message, hint=hint, suggestion=suggestion)


def _suggestion(text: str, read: Callable[[str], _N], adapt: Callable[[str], str]) -> str:
    if len(text) > _MAX_REPAIRED_LENGTH:
        return ""
    options = (option for candidate in _candidates(text) for option in (candidate, adapt(candidate)))
    return _first_right(options, read)


def _example_like(text: str) -> str:
    if _DIRECT_HTTP.match(text):
        return _HTTP_EXAMPLE
    return _EXAMPLES.get(text.partition("=")[0].upper(), "")


def _first_right(options: Iterable[str], read: Callable[[str], _N]) -> str:
    for option in options:
        try:
            return str(read(option))
        except InvalidNameError:
            continue
    return ""


def _candidates(text: str) -> Iterator[str]:
    """Give the name as it is, then after each further repair that changes it."""
    text = _trimmed(text)
    yield text
    elements = text.strip(",").split(",") if looks_like_format_name(text) else [text]
    for repair in _REPAIRS:
        elements = [repair(element) for element in elements]
        repaired = ",".join(elements)
        if repaired != text:
            text = repaired
            yield text


def _trimmed(text: str) -> str:
    text = text.strip(" \t\r\n\"'")
    if text[: len(FORMAT_NAME_PREFIX)].lower() == FORMAT_NAME_PREFIX:
        text = text[len(FORMAT_NAME_PREFIX) :].strip()
    return text


def _add_keyword(element: str) -> str:
    """``http://host/...`` or ``OS:host\\q``: the keyword is missing."""
    return f"DIRECT={element}" if _PROTOCOL_ALONE.match(element) else element


def _correct_keyword(element: str) -> str:
    """``DIRCT=...`` or ``DIRECT:...``: the keyword is misspelt."""
    found = _KEYWORD.match(element)
    nearest = get_close_matches(found[1].upper(), _EXAMPLES, n=1) if found else []
    return f"{nearest[0]}={element[found.end() :]}" if found and nearest else element


def _correct_protocol(element: str) -> str:
    """``DIRECT=host\\q``, ``DIRECT=//host/...`` or ``DIRECT=TPC:...``: no protocol, or a misspelt one."""
    keyword = _DIRECT.match(element)
    if not keyword:
        return element
    rest = element[keyword.end() :]
    if rest.startswith("//"):
        return f"DIRECT=HTTP:{rest}"
    found = _PROTOCOL.match(rest)
    if not found:
        return f"DIRECT=OS:{rest}"
    nearest = get_close_matches(found[1].upper(), list(DirectProtocol), n=1)
    return f"DIRECT={nearest[0]}:{rest[found.end() :]}" if nearest else element


def _correct_address(element: str) -> str:
    """``DIRECT=TCP:host\\q`` or ``DIRECT=TCP:[::1]\\q``: not an address, or one in brackets."""
    found = _DIRECT_TCP.match(element)
    if not found:
        return element
    host = found[1].strip("[]")
    protocol = DirectProtocol.TCP if is_address(host) else DirectProtocol.OS
    return f"DIRECT={protocol}:{host}{element[found.end() :]}"


def _correct_guid(element: str) -> str:
    """``PUBLIC={...}``: a GUID in braces, or without its hyphens."""
    found = _LOOSE_GUID.match(element)
    digits = found[2].replace("-", "") if found else ""
    if not found or len(digits) != 32:
        return element
    return f"{found[1]}{UUID(digits)}{element[found.end() :].replace('/', chr(92))}"


def _correct_url(element: str) -> str:
    """``DIRECT=HTTP:\\\\host\\private\\q?x``: backslashes, no ``msmq``, no ``$``, a query."""
    found = _DIRECT_HTTP.match(element)
    if not found:
        return element
    url = re.split(r"[?#]", element[found.end() :].replace("\\", "/"), maxsplit=1)[0]
    host, *segments = [segment for segment in url.split("/") if segment] or [""]
    if host.lower() == "msmq":  # the host itself is missing, and there is none to suggest
        return element
    if segments and (segments[0].lower() == "msmq" or _is_private_marker(segments[1:])):
        del segments[0]
    marker = ""
    if _is_private_marker(segments):
        del segments[0]
        marker = "private$/"
    name = BAD_ESCAPE.sub("%25", "%2F".join(segments))
    return f"{found[0]}//{_url_host(host)}/msmq/{marker}{name}"


def _is_private_marker(segments: list[str]) -> bool:
    """Whether the first of these is the marker of private queues, or meant to be, and a queue follows."""
    return len(segments) > 1 and segments[0].lower() in ("private", "private$")


def _url_host(host: str) -> str:
    if host == ".":
        return "localhost"
    return f"[{host}]" if ":" in host and is_address(host) else host


def _on_path(element: str, repair: Callable[[str], str]) -> str:
    """Repair the part of an element that has the form of a path name, if there is one."""
    direct = _DIRECT_PATH.match(element)
    if not direct and looks_like_format_name(element):
        return element
    start = direct.end() if direct else 0
    return element[:start] + repair(element[start:])


def _correct_separators(path: str) -> str:
    """``./private$/q`` or ``.\\\\private$\\\\q``: slashes, or backslashes escaped once too often."""
    if "/" in path.partition("\\")[0]:
        path = path.replace("/", "\\")
    return re.sub(r"\\+", r"\\", path)


def _correct_parts(path: str) -> str:
    """``private\\orders`` or ``host\\system\\journal``: the computer or a ``$`` is missing."""
    parts = path.lstrip("\\").split("\\")
    if len(parts) > 1 and parts[0].lower() in NOT_A_COMPUTER:
        parts = [".", *parts]
    if len(parts) == 3 and parts[1].lower() in ("system", "system$"):
        return f"{parts[0]}\\system$;{parts[2]}"
    if len(parts) == 3 and parts[1].lower() == "private":
        parts[1] = "private$"
    return "\\".join(parts)


def _add_computer(element: str) -> str:
    """``orders`` or ``system$;journal``: a queue alone, which is taken for a private one of this computer."""
    if "\\" in element or element in ("", ".") or looks_like_format_name(element):
        return element
    return f".\\{element}" if element.lower().startswith("system$;") else f".\\private$\\{element}"


def _replace_characters(path: str) -> str:
    """``.\\private$\\my orders``: a queue's name with characters that it cannot have."""
    before, backslash, queue = path.rpartition("\\")
    queue = ";".join(ILLEGAL_IN_QUEUE.sub("_", piece) for piece in queue.split(";"))
    # A name of which nothing would be left is no suggestion.
    return f"{before}{backslash}{queue}" if queue.strip("_") else path


_REPAIRS: tuple[Callable[[str], str], ...] = (
    str.strip,
    _add_keyword,
    _correct_keyword,
    _correct_protocol,
    _correct_address,
    _correct_guid,
    _correct_url,
    lambda element: _on_path(element, _correct_separators),
    lambda element: _on_path(element, _correct_parts),
    _add_computer,
    lambda element: _on_path(element, _replace_characters),
)
