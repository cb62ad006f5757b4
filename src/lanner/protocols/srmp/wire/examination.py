"""What a captured request says, and everything that is wrong with it.

For people, not for receiving: it goes on where ``decode_request`` stops.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

import msgspec

from lanner.model.codes import describe_class
from lanner.protocols.srmp.wire.dates import read_date
from lanner.protocols.srmp.wire.elements import NEVER, SrmpMessage
from lanner.protocols.srmp.wire.envelope_reader import read_envelope_tree
from lanner.protocols.srmp.wire.faults import Fault, FaultCollector, WireFault
from lanner.protocols.srmp.wire.limits import MAX_REQUEST_BYTES
from lanner.protocols.srmp.wire.mime import Part, find_parts, parse_content_type
from lanner.protocols.srmp.wire.namespaces import SOAP
from lanner.protocols.srmp.wire.request import Payload, read_payload
from lanner.protocols.srmp.wire.xml_reader import Node, parse_xml

__all__ = ["Examination", "Field", "examine"]

_REQUEST_LINE = re.compile(rb"([A-Z]{3,10}) ([^\r\n]{1,2048}) HTTP/1\.[01]\r?\n")
_HEADER_LINES = re.compile(rb"([!-9;-~]{1,80}):[ \t]*([^\r\n]*(?:\r?\n[ \t][^\r\n]*)*)\r?\n")
_FIRST_LINE = re.compile(rb"--([^\r\n]{1,70})\r?\n")
_BARE_LINE_FEED = re.compile(rb"(?<!\r)\n")
_DATES = frozenset({"expiresAt", "sentAt", "receivedAt", "decidedAt", "TTrq"})
_SHOWN = 200
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Field(msgspec.Struct, frozen=True, gc=False):
    """One thing that the request says."""

    name: str
    """Where it stands: a header, or the elements down to it (``path/to``)."""
    value: str
    meaning: str = ""
    """The value in words, where it needs them."""


class Examination(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What was found."""

    kind: str
    """``request``, ``multipart`` or ``envelope``: what the bytes turned out to be."""
    fields: tuple[Field, ...]
    """Everything it says, in its own order."""
    faults: tuple[Fault, ...]
    """Everything that is not as the specification has it; some of it is accepted all the same."""
    message: SrmpMessage | None
    """The message, if a receiver would take it."""

    @property
    def is_acceptable(self) -> bool:
        """Whether a receiver would take the message."""
        return self.message is not None


def examine(raw: bytes) -> Examination:
    """Look at a captured HTTP request, a bare MIME body or a bare envelope, and find all that is wrong."""
    examiner = _Examiner()
    message = None
    try:
        if len(raw) > MAX_REQUEST_BYTES:
            raise WireFault(
                "2.2.2", "Content-Length", f"it is {len(raw):,} bytes; the limit is {MAX_REQUEST_BYTES:,}"
            )
        message = examiner.read(raw)
    except WireFault as fault:
        examiner.sink.fault(fault.section, fault.element, fault.message)
    return Examination(
        kind=examiner.kind,
        fields=tuple(examiner.fields),
        faults=tuple(examiner.sink.faults),
        message=message if examiner.sink.is_acceptable else None,
    )


class _Examiner:
    def __init__(self) -> None:
        self.kind = "envelope"
        self.fields: list[Field] = []
        self.sink = FaultCollector()

    def read(self, raw: bytes) -> SrmpMessage:
        line = _REQUEST_LINE.match(raw)
        if line is not None:
            self.kind = "request"
            return self.read_request(raw, line)
        text = raw.removeprefix(_BYTE_ORDER_MARK).lstrip()
        first = _FIRST_LINE.match(text)
        if first is not None:
            self.kind = "multipart"
            return self.read_multipart(self.with_line_breaks(text), first[1].rstrip())
        return self.read_envelope(text, Payload())

    def read_request(self, raw: bytes, line: re.Match[bytes]) -> SrmpMessage:
        method, target = (_show(part) for part in line.groups())
        self.fields.append(Field("method", method))
        self.fields.append(Field("target", target))
        if method != "POST":
            self.sink.fault("2.1.1", "method", f"a message is sent with POST, not with {method}")
        headers: dict[str, bytes] = {}
        position = line.end()
        while header := _HEADER_LINES.match(raw, position):
            name, value = _show(header[1]), b" ".join(header[2].split())
            self.fields.append(Field(name, _show(value)))
            headers[name.lower()] = value
            position = header.end()
        end = re.compile(rb"\r?\n").match(raw, position)
        if end is None:
            raise WireFault("2.1.1", "headers", "they do not end with an empty line")
        body = raw[end.end() :]
        self.check_headers(headers, len(body))
        content_type = parse_content_type(headers.get("content-type", b""))
        if content_type.media_type == "multipart/related":
            return self.read_multipart(self.with_line_breaks(body), content_type.boundary)
        if content_type.media_type != "text/xml":
            self.sink.fault("2.2.2", "Content-Type", "it is neither multipart/related nor text/xml")
        return self.read_envelope(body, Payload())

    def check_headers(self, headers: dict[str, bytes], length: int) -> None:
        # Neither stops a receiver: the web server in front has seen to the length already.
        if "soapaction" not in headers:
            self.sink.deviation("2.1.1", "SOAPAction", "the header is missing, which SOAP 1.1 demands")
        stated = headers.get("content-length")
        if stated is not None and stated != str(length).encode("ascii"):
            self.sink.deviation(
                "2.1.1", "Content-Length", f"it is {_show(stated)}, but {length} bytes are there"
            )

    def with_line_breaks(self, body: bytes) -> bytes:
        """Repair a capture whose line breaks were changed, so that there is something to look at."""
        if b"\r\n" in body or b"\n" not in body:
            return body
        self.sink.fault("2.2.2", "MIME", "lines end with LF and not with CR LF: was the capture converted?")
        return _BARE_LINE_FEED.sub(b"\r\n", body)

    def read_multipart(self, body: bytes, boundary: bytes) -> SrmpMessage:
        parts = find_parts(body, boundary, self.sink)
        if not parts:
            raise WireFault("2.2.2", "MIME", "there are no parts")
        envelope = parts[0]
        if not envelope.content_type.lower().startswith(b"text/xml"):
            self.sink.deviation("2.2.2", "Content-Type", "the first part is not said to be text/xml")
        for number, part in enumerate(parts, 1):
            self.add_part(number, part)
        payload = read_payload(body, parts[1:], self.sink)
        for attachment in payload.attachments:
            name = attachment.content_id or "without a Content-Id"
            self.sink.deviation("2.2.2", "MIME", f"a part is neither body nor extension: {name[:80]}")
        return self.read_envelope(body[envelope.start : envelope.end], payload)

    def add_part(self, number: int, part: Part) -> None:
        name = _show(part.content_id) or _show(part.content_type) or "no headers"
        self.fields.append(Field(f"part {number}", name, f"{part.end - part.start:,} bytes"))

    def read_envelope(self, data: bytes, payload: Payload) -> SrmpMessage:
        root = parse_xml(data)
        for child in root.children:
            self.add_fields(child, "" if child.namespace == SOAP else child.name)
        envelope = read_envelope_tree(root, data, self.sink)
        if envelope.not_understood is not None:
            name = envelope.not_understood.name
            self.sink.fault("2.2.2", name, 'nobody here knows it, and it is marked mustUnderstand="1"')
        if payload.body is not None and (
            envelope.delivery_receipt or envelope.commitment_receipt or envelope.stream_receipt
        ):
            self.sink.deviation("2.2.2", "MIME", "a receipt has a body, which is ignored")
        return SrmpMessage(
            envelope=envelope,
            body=payload.body,
            extension=payload.extension,
            content_suffix=payload.suffix,
            attachments=payload.attachments,
            raw_envelope=data,
        )

    def add_fields(self, node: Node, name: str) -> None:
        """List an element that holds no other, or what it holds."""
        for attribute in ("Algorithm", "URI"):
            value = node.attribute(attribute)
            if value is not None:
                self.fields.append(Field(f"{name} {attribute}", value[:_SHOWN]))
        if not node.children and name:
            value = node.text.strip()
            self.fields.append(Field(name, value[:_SHOWN], _meaning(node.name, value)))
        for child in node.children:
            self.add_fields(child, f"{name}/{child.name}" if name else child.name)


def _show(data: bytes) -> str:
    return data[:_SHOWN].decode("utf-8", "replace")


def _meaning(name: str, value: str) -> str:
    if name in _DATES:
        try:
            seconds = read_date(value)
        except ValueError:
            return ""
        return (
            "never" if seconds == NEVER else f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
        )
    if name == "Class" and value.isascii() and value.isdigit() and len(value) <= 5:
        return describe_class(int(value))
    return ""
