from __future__ import annotations

import tracemalloc

import msgspec
import pytest
from hypothesis import given, settings
from tests.protocols.srmp.wire.samples import DURABLE, QM
from tests.protocols.srmp.wire.strategies import envelopes, messages

from lanner.protocols.srmp.wire import (
    Attachment,
    Envelope,
    SrmpMessage,
    WireFault,
    decode_request,
    encode_request,
)
from lanner.protocols.srmp.wire.limits import MAX_ENVELOPE_BYTES, MAX_PARTS, MAX_REQUEST_BYTES

ENVELOPE = encode_request(msgspec.structs.replace(DURABLE, body=None)).body


def _without_raw(message: SrmpMessage) -> SrmpMessage:
    return msgspec.structs.replace(message, raw_envelope=b"")


@given(messages)
@settings(max_examples=150, deadline=None)
def test_round_trip(message: SrmpMessage) -> None:
    encoded = encode_request(message)
    for body in (encoded.body, memoryview(encoded.body)):
        decoded = decode_request(encoded.content_type.encode(), body)
        assert _without_raw(decoded) == message
        assert decoded.raw_envelope in encoded.body


@given(envelopes)
@settings(max_examples=50, deadline=None)
def test_round_trip_without_a_payload(envelope: Envelope) -> None:
    encoded = encode_request(SrmpMessage(envelope=envelope))
    assert encoded.content_type == "text/xml"
    decoded = decode_request(b"text/xml", encoded.body)
    assert decoded == SrmpMessage(envelope=envelope, raw_envelope=encoded.body)


def test_the_headers_of_the_samples() -> None:
    encoded = encode_request(DURABLE)
    assert encoded.headers == (
        ("Content-Type", 'multipart/related; boundary="MSMQ - SOAP boundary, 1801"; type=text/xml'),
        ("Content-Length", str(len(encoded.body))),
        ("SOAPAction", '"MSMQMessage"'),
        ("Proxy-Accept", "NonInteractiveClient"),
    )


def test_the_form_of_the_samples() -> None:
    assert encode_request(DURABLE).body == (
        b"--MSMQ - SOAP boundary, 1801\r\nContent-Type: text/xml; charset=UTF-8\r\n"
        b"Content-Length: %d\r\n\r\n%b--MSMQ - SOAP boundary, 1801\r\n"
        b"Content-Type: application/octet-stream\r\nContent-Length: 13\r\n"
        b"Content-Id: body@caf195ea-615c-4264-ae08-11a4e60194c0\r\n\r\n"
        b"First Message--MSMQ - SOAP boundary, 1801--\r\n" % (len(ENVELOPE), ENVELOPE)
    )


def test_the_source_names_the_parts_where_nobody_else_does() -> None:
    encoded = encode_request(msgspec.structs.replace(DURABLE, content_suffix=""))
    assert f"Content-Id: body@{QM}\r\n".encode() in encoded.body


def test_the_payload_never_holds_the_boundary() -> None:
    body = b"--MSMQ - SOAP boundary, 1801--" * 3
    encoded = encode_request(msgspec.structs.replace(DURABLE, body=body))
    boundary = encoded.content_type.split('"')[1]
    assert boundary.encode() not in body
    # Also for a reader that searches for the boundary, as RFC 2046 would have it.
    searched = encoded.body.replace(b"Content-Length", b"X-Length")
    assert decode_request(encoded.content_type.encode(), searched).body == body


def test_empty_bodies_are_bodies() -> None:
    encoded = encode_request(msgspec.structs.replace(DURABLE, body=b"", extension=b""))
    decoded = decode_request(encoded.content_type.encode(), encoded.body)
    assert (decoded.body, decoded.extension) == (b"", b"")


def _multipart(*parts: tuple[bytes, bytes]) -> bytes:
    pieces = [b"--B\r\nContent-Length: %d\r\n\r\n%b" % (len(ENVELOPE), ENVELOPE)]
    for headers, content in parts:
        pieces.append(b"--B\r\n%bContent-Length: %d\r\n\r\n%b" % (headers, len(content), content))
    return b"".join(pieces) + b"--B--"


MULTIPART = b"multipart/related; boundary=B"


def test_parts_are_told_by_their_content_id() -> None:
    message = decode_request(
        MULTIPART,
        _multipart(
            (b"Content-Id: <extension@x>\r\n", b"more"),
            (b"Content-Id: image@x\r\nContent-Type: image/png\r\n", b"png"),
            (b"Content-Id: <body@y>\r\n", b"text"),
        ),
    )
    assert (message.body, message.extension, message.content_suffix) == (b"text", b"more", "y")
    assert message.attachments == (Attachment(content_id="image@x", content_type="image/png", data=b"png"),)


def test_a_part_without_a_name_is_the_body() -> None:
    assert decode_request(MULTIPART, _multipart((b"", b"text"))).body == b"text"
    message = decode_request(MULTIPART, _multipart((b"Content-Id: body@x\r\n", b"text"), (b"", b"other")))
    assert message.body == b"text"
    assert message.attachments[0].data == b"other"


@pytest.mark.parametrize("name", [b"body", b"extension"])
def test_nothing_may_be_there_twice(name: bytes) -> None:
    part = (b"Content-Id: %b@x\r\n" % name, b"text")
    with pytest.raises(WireFault, match="more than one"):
        decode_request(MULTIPART, _multipart(part, part))


@pytest.mark.parametrize(
    ("content_type", "body", "element"),
    [
        (b"text/plain", ENVELOPE, "Content-Type"),
        (b"application/soap+xml", ENVELOPE, "Content-Type"),
        (b"", ENVELOPE, "Content-Type"),
        (MULTIPART, ENVELOPE, "MIME"),
        (MULTIPART, b"--B--", "MIME"),
        (b"text/xml", b"", "Envelope"),
        (b"text/xml", b" " * (MAX_ENVELOPE_BYTES + 1), "Envelope"),
        (b"text/xml", bytes(MAX_REQUEST_BYTES + 1), "Content-Length"),
    ],
)
def test_what_is_no_request(content_type: bytes, body: bytes, element: str) -> None:
    with pytest.raises(WireFault) as caught:
        decode_request(content_type, body)
    assert caught.value.element == element
    assert caught.value.section.startswith("2.2")
    assert caught.value.section in str(caught.value)


def test_what_cannot_be_sent() -> None:
    for changed in (
        msgspec.structs.replace(DURABLE, content_suffix="a\r\nX: y"),
        msgspec.structs.replace(
            DURABLE, attachments=(Attachment(content_id="a", content_type="b", data=b""),) * (MAX_PARTS - 2)
        ),
        msgspec.structs.replace(
            DURABLE, attachments=(Attachment(content_id="a", content_type="b\n", data=b""),)
        ),
    ):
        with pytest.raises(WireFault) as caught:
            encode_request(changed)
        assert caught.value.section == "2.2.2"


def test_large_bodies_are_copied_once() -> None:
    size = 4 * 1024 * 1024
    message = msgspec.structs.replace(DURABLE, body=bytes(size))
    encoded = encode_request(message)
    content_type = encoded.content_type.encode()
    for form in (encoded.body, memoryview(encoded.body)):
        tracemalloc.start()
        decode_request(content_type, form)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert size <= peak < 1.1 * size
    tracemalloc.start()
    encode_request(message)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size <= peak < 1.1 * size
