"""Where the parts of a multipart message lie (MC-MQSRM 2.2.2; RFC 2046 5.1, RFC 2387).

A part that says its own Content-Length ends there; only for one that does not is the boundary searched for.
So a body may hold the boundary's bytes. In the samples of section 4 no line break stands before a boundary;
one that does belongs to the boundary. Nothing is copied: a part is where it begins and where it ends.
"""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

from lanner.protocols.srmp.wire.faults import FaultSink, WireFault
from lanner.protocols.srmp.wire.limits import (
    MAX_BOUNDARY_BYTES,
    MAX_CONTENT_TYPE_BYTES,
    MAX_PART_HEADER_BYTES,
    MAX_PARTS,
)

__all__ = ["ContentType", "Part", "find_parts", "parse_content_type"]

_SECTION = "2.2.2"

_MEDIA_TYPE = re.compile(rb"\s*([!-:<-~]+)\s*")
_PARAMETER = re.compile(rb';\s*([!#-:<>-~]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([!#-:<-~]*))\s*', re.DOTALL)
_QUOTED_PAIR = re.compile(rb"\\(.)", re.DOTALL)

# The headers exactly as the samples have them; other orders and other headers are read line by line.
_USUAL_HEADERS = re.compile(
    rb"\r\nContent-Type: ([!-~][ -~]{0,200})\r\nContent-Length: ([0-9]{1,10})\r\n"
    rb"(?:Content-Id: ([!-~]{1,200})\r\n)?\r\n"
)
_HEADERS_END = re.compile(rb"\r\n\r\n")
_PADDING = re.compile(rb"[ \t]*\r\n")
_LINE_FOLD = re.compile(rb"\r\n[ \t]+")


class ContentType(msgspec.Struct, frozen=True, gc=False):
    """What a Content-Type header says."""

    media_type: str
    """In small letters, without parameters."""
    boundary: bytes = b""


class Part(msgspec.Struct, frozen=True, gc=False):
    """One part of a multipart message: its headers, and where its content lies."""

    content_type: bytes
    content_id: bytes
    start: int
    end: int


@lru_cache(maxsize=256)
def parse_content_type(value: bytes) -> ContentType:
    """Read the value of a Content-Type header. Raises WireFault."""
    if len(value) > MAX_CONTENT_TYPE_BYTES:
        raise WireFault(_SECTION, "Content-Type", f"it is longer than {MAX_CONTENT_TYPE_BYTES} bytes")
    match = _MEDIA_TYPE.match(value)
    if match is None:
        raise WireFault(_SECTION, "Content-Type", "there is none")
    media_type = match[1].decode("ascii").lower()
    boundary = b""
    position = match.end()
    while position < len(value):
        parameter = _PARAMETER.match(value, position)
        if parameter is None:
            break
        if parameter[1].lower() == b"boundary":
            quoted = parameter[2]
            boundary = _QUOTED_PAIR.sub(rb"\1", quoted) if quoted is not None else parameter[3]
        position = parameter.end()
    if media_type.startswith("multipart/") and not 1 <= len(boundary) <= MAX_BOUNDARY_BYTES:
        raise WireFault(_SECTION, "Content-Type", f"no boundary of 1 to {MAX_BOUNDARY_BYTES} bytes")
    return ContentType(media_type, boundary)


@lru_cache(maxsize=256)
def _boundary_expression(delimiter: bytes) -> re.Pattern[bytes]:
    """Find a delimiter with the line break before it, and what must come after it."""
    return re.compile(rb"(?:\r\n)?" + re.escape(delimiter) + rb"(?=--|[ \t]*\r\n)")


def find_parts(data: bytes | memoryview, boundary: bytes, sink: FaultSink) -> list[Part]:
    """Find the parts of a multipart message, in order. Raises WireFault, or as the sink does."""
    delimiter = b"--" + boundary
    parts: list[Part] = []
    position = _find_first(data, delimiter)
    while data[position : position + 2] != b"--":
        if len(parts) == MAX_PARTS:
            raise WireFault(_SECTION, "MIME", f"there are more than {MAX_PARTS} parts")
        content_type, content_id, length, start = _read_headers(data, position)
        part_end, position = _find_end(data, delimiter, start, length, sink)
        parts.append(Part(content_type, content_id, start, part_end))
    return parts


def _find_first(data: bytes | memoryview, delimiter: bytes) -> int:
    if data[: len(delimiter)] == delimiter:
        return len(delimiter)
    # RFC 2046 lets text stand before the first boundary; no more of it than headers is looked through.
    match = _boundary_expression(delimiter).search(data, 0, MAX_PART_HEADER_BYTES)
    if match is None:
        raise WireFault(_SECTION, "MIME", "the body does not begin with its boundary")
    return match.end()


def _find_end(
    data: bytes | memoryview, delimiter: bytes, start: int, length: int | None, sink: FaultSink
) -> tuple[int, int]:
    """Return where the content ends, and where what follows the delimiter begins."""
    if length is not None:
        end = start + length
        for line_break in (0, 2):
            after = end + line_break + len(delimiter)
            if data[end + line_break : after] == delimiter and data[end : end + line_break] in (b"", b"\r\n"):
                return end, after
        if end > len(data):
            problem = f"it is {length}, but only {len(data) - start} bytes follow"
        else:
            problem = f"it is {length}, but no boundary stands behind as many bytes"
        sink.fault(_SECTION, "Content-Length", problem)
    match = _boundary_expression(delimiter).search(data, start)
    if match is None:
        raise WireFault(_SECTION, "MIME", "a part has no boundary at its end")
    return match.start(), match.end()


def _read_headers(data: bytes | memoryview, position: int) -> tuple[bytes, bytes, int | None, int]:
    """Return a part's Content-Type, Content-Id and Content-Length, and where its content begins."""
    usual = _USUAL_HEADERS.match(data, position)
    if usual is not None:
        return usual[1], usual[3] or b"", int(usual[2]), usual.end()
    padding = _PADDING.match(data, position)
    if padding is None:
        raise WireFault(_SECTION, "MIME", "a boundary is not at the end of its line")
    # From the line break that ends the boundary's line: a part may have no headers at all.
    limit = padding.end() + MAX_PART_HEADER_BYTES
    end = _HEADERS_END.search(data, padding.end() - 2, limit)
    if end is None:
        raise WireFault(
            _SECTION, "MIME", f"the headers of a part do not end within {MAX_PART_HEADER_BYTES} bytes"
        )
    headers = _parse_headers(bytes(data[padding.end() : end.start()]))
    length = headers.get(b"content-length")
    if length is not None and not (length.isdigit() and len(length) <= 10):
        raise WireFault(_SECTION, "Content-Length", f"{length[:40]!r} is not a number")
    content_type = headers.get(b"content-type", b"")
    content_id = headers.get(b"content-id", b"")
    return content_type, content_id, None if length is None else int(length), end.end()


def _parse_headers(block: bytes) -> dict[bytes, bytes]:
    headers: dict[bytes, bytes] = {}
    for line in _LINE_FOLD.sub(b" ", block).split(b"\r\n"):
        if not line:
            continue
        name, colon, value = line.partition(b":")
        name = name.strip().lower()
        if not colon or not name:
            raise WireFault(_SECTION, "MIME", f"a line is not a header: {line[:40]!r}")
        if name in headers:
            shown = name.decode("latin-1")
            raise WireFault(_SECTION, shown, "the header is there more than once")
        headers[name] = value.strip()
    return headers
