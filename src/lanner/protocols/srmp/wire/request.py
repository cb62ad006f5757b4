"""One HTTP request and one SRMP message, both ways (MC-MQSRM 2.1.1, 2.2.2)."""

from __future__ import annotations

from hashlib import sha256

from lanner.protocols.srmp.wire.elements import Attachment, EncodedRequest, Envelope, SrmpMessage
from lanner.protocols.srmp.wire.envelope_expression import match_envelope
from lanner.protocols.srmp.wire.envelope_reader import read_envelope
from lanner.protocols.srmp.wire.envelope_writer import write_envelope
from lanner.protocols.srmp.wire.faults import RAISE, FaultSink, WireFault
from lanner.protocols.srmp.wire.limits import MAX_ENVELOPE_BYTES, MAX_PARTS, MAX_REQUEST_BYTES
from lanner.protocols.srmp.wire.mime import Part, find_parts, parse_content_type

__all__ = ["Payload", "decode_request", "encode_request", "read_payload"]

_SECTION = "2.2.2"

_BOUNDARY_START = "MSMQ - SOAP boundary, "
_BOUNDARY = _BOUNDARY_START + "1801"
_BOUNDARY_START_BYTES = _BOUNDARY_START.encode("ascii")


class Payload:
    """The parts beside the envelope, while they are being collected."""

    __slots__ = ("attachments", "body", "extension", "suffix")

    def __init__(self) -> None:
        self.body: bytes | None = None
        self.extension: bytes | None = None
        self.suffix = ""
        self.attachments: tuple[Attachment, ...] = ()


def decode_request(content_type: bytes, body: bytes | memoryview) -> SrmpMessage:
    """Read what a POST carried: ``multipart/related`` with the envelope first, or a bare ``text/xml``.

    Raises WireFault, which names the section that the bytes break.
    """
    if len(body) > MAX_REQUEST_BYTES:
        raise WireFault(
            _SECTION, "Content-Length", f"it is {len(body):,} bytes; the limit is {MAX_REQUEST_BYTES:,}"
        )
    kind = parse_content_type(content_type)
    if kind.media_type == "multipart/related":
        parts = find_parts(body, kind.boundary, RAISE)
        if not parts:
            raise WireFault(_SECTION, "MIME", "there are no parts")
        raw = _copy_envelope(body, parts[0].start, parts[0].end)
        payload = read_payload(body, parts[1:], RAISE)
        return SrmpMessage(
            envelope=_read_envelope(raw),
            body=payload.body,
            extension=payload.extension,
            content_suffix=payload.suffix,
            attachments=payload.attachments,
            raw_envelope=raw,
        )
    if kind.media_type != "text/xml":
        raise WireFault(
            _SECTION, "Content-Type", f"{kind.media_type[:60]} is neither multipart/related nor text/xml"
        )
    raw = _copy_envelope(body, 0, len(body))
    return SrmpMessage(envelope=_read_envelope(raw), raw_envelope=raw)


def _copy_envelope(data: bytes | memoryview, start: int, end: int) -> bytes:
    if end - start > MAX_ENVELOPE_BYTES:
        raise WireFault(
            "2.2", "Envelope", f"it has {end - start:,} bytes; the limit is {MAX_ENVELOPE_BYTES:,}"
        )
    return bytes(data[start:end])


def _read_envelope(raw: bytes) -> Envelope:
    envelope = match_envelope(raw)
    return read_envelope(raw, RAISE) if envelope is None else envelope


def read_payload(data: bytes | memoryview, parts: list[Part], sink: FaultSink) -> Payload:
    """Tell body and extension by their Content-Id, as the samples of section 4 do.

    A part without a Content-Id is the body, if there is no other; what is called otherwise is an attachment.
    """
    payload = Payload()
    for part in parts:
        content = bytes(data[part.start : part.end])
        content_id = part.content_id.decode("utf-8", "replace").strip("<>")
        name, _, suffix = content_id.partition("@")
        if name == "extension":
            if payload.extension is not None:
                sink.fault(_SECTION, "Content-Id", "there is more than one extension")
            payload.extension = content
            payload.suffix = payload.suffix or suffix
        elif name == "body" or (not content_id and payload.body is None):
            if payload.body is not None:
                sink.fault(_SECTION, "Content-Id", "there is more than one body")
            payload.body = content
            payload.suffix = suffix or payload.suffix
        else:
            content_type = part.content_type.decode("utf-8", "replace")
            attachment = Attachment(content_id=content_id, content_type=content_type, data=content)
            payload.attachments += (attachment,)
    return payload


def encode_request(message: SrmpMessage) -> EncodedRequest:
    """Write a message for a POST, its elements in the order of MC-MQSRM 3.1.7.2.4.

    Raises WireFault for what the protocol cannot say, such as a control character in a label.
    """
    envelope = write_envelope(message.envelope).encode("utf-8")
    if message.body is None and message.extension is None and not message.attachments:
        return EncodedRequest(content_type="text/xml", body=envelope)
    boundary = _choose_boundary(message)
    pieces = [
        f"--{boundary}\r\nContent-Type: text/xml; charset=UTF-8\r\n"
        f"Content-Length: {len(envelope)}\r\n\r\n".encode("ascii"),
        envelope,
    ]
    suffix = message.content_suffix
    if not suffix and message.envelope.msmq is not None:
        suffix = str(message.envelope.msmq.source_qm)
    if message.body is not None:
        _add_part(pieces, boundary, f"body@{suffix}", message.body)
    if message.extension is not None:
        _add_part(pieces, boundary, f"extension@{suffix}", message.extension)
    for attachment in message.attachments:
        _add_part(pieces, boundary, attachment.content_id, attachment.data, attachment.content_type)
    if len(message.attachments) > MAX_PARTS - 3:
        raise WireFault(_SECTION, "MIME", f"there are more than {MAX_PARTS} parts")
    pieces.append(f"--{boundary}--\r\n".encode("ascii"))
    return EncodedRequest(
        content_type=f'multipart/related; boundary="{boundary}"; type=text/xml', body=b"".join(pieces)
    )


def _choose_boundary(message: SrmpMessage) -> str:
    """Choose a boundary that the payload does not hold, for readers that search for it.

    It is nearly always the same one, so that readers can remember what it means. A payload that holds
    something like it is given its own digest, which it cannot hold.
    """
    payload = [message.body, message.extension, *(attachment.data for attachment in message.attachments)]
    if not any(data is not None and _BOUNDARY_START_BYTES in data for data in payload):
        return _BOUNDARY
    digest = sha256()
    for data in payload:
        digest.update(data or b"")
    return _BOUNDARY_START + digest.hexdigest()[:40]


def _add_part(
    pieces: list[bytes], boundary: str, content_id: str, data: bytes, content_type: str = ""
) -> None:
    if not (content_id.isprintable() and content_type.isprintable()):
        raise WireFault(_SECTION, "Content-Id", "a header of a part has a character that is not printable")
    header = (
        f"--{boundary}\r\nContent-Type: {content_type or 'application/octet-stream'}\r\n"
        f"Content-Length: {len(data)}\r\nContent-Id: {content_id}\r\n\r\n"
    )
    pieces.append(header.encode("utf-8"))
    pieces.append(data)
