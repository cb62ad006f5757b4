"""Whatever arrives, the wire layer of SRMP answers with a message or a WireFault, soon, and never grows."""

from __future__ import annotations

import time
import tracemalloc
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.protocols.srmp.wire.samples import VECTORS, split_request
from tests.protocols.srmp.wire.strategies import messages

from lanner.protocols.srmp.wire import SrmpMessage, WireFault, decode_request, encode_request, examine
from lanner.protocols.srmp.wire.limits import MAX_REQUEST_BYTES

EXAMPLES = 250
PATIENCE = 1.0
"""Seconds for one decode: a thousand times what any of them takes."""

REQUESTS = [path.read_bytes() for path in sorted(VECTORS.glob("*.http"))]
SPLIT = [split_request(raw) for raw in REQUESTS]
PIECES = [
    b"\r\n\r\n", b"--MSMQ - SOAP boundary, 1672", b"--", b"Content-Length: 99999999\r\n",
    b"Content-Length: -1\r\n", b"Content-Length: 0\r\n", b"<", b">", b"&", b"&#0;", b"&lol;", b"<![CDATA[",
    b"<!--", b"<?x?>", b"<!DOCTYPE x>", b"<path>", b"</path>", b'xmlns:a="', b"\x00", b"\xff\xfe", b"9" * 30,
    b"<stream>", b"T", b"=", b"a" * 5000,
]  # fmt: skip

changes = st.lists(
    st.tuples(st.floats(0, 1), st.integers(0, 60), st.sampled_from(PIECES) | st.binary(max_size=8)),
    min_size=1,
    max_size=5,
)


def _change(data: bytes, what: list[tuple[float, int, bytes]]) -> bytes:
    for where, removed, inserted in what:
        position = int(where * len(data))
        data = data[:position] + inserted + data[position + removed :]
    return data


def _feed(content_type: bytes, body: bytes) -> None:
    started = time.perf_counter()
    result, again = _decode(content_type, body), _decode(content_type, memoryview(body))
    assert time.perf_counter() - started < PATIENCE
    if isinstance(result, WireFault):
        assert isinstance(again, WireFault)
        assert result.section.startswith("2.")
        assert result.element
        assert 0 < len(str(result)) < 1000
    else:
        assert result == again
        # What was accepted can be passed on, or it is said why not.
        with suppress(WireFault):
            encoded = encode_request(result)
            decode_request(encoded.content_type.encode(), encoded.body)


def _decode(content_type: bytes, body: bytes | memoryview) -> SrmpMessage | WireFault:
    try:
        return decode_request(content_type, body)
    except WireFault as fault:
        return fault


@given(st.sampled_from(SPLIT) | st.tuples(st.binary(max_size=80), st.just(b"")), st.binary(max_size=500))
@settings(max_examples=EXAMPLES, deadline=None)
def test_random_bytes(request: tuple[bytes, bytes], body: bytes) -> None:
    _feed(request[0], body)
    examine(body)


@given(st.sampled_from(SPLIT), changes)
@settings(max_examples=EXAMPLES, deadline=None)
def test_damaged_samples(request: tuple[bytes, bytes], what: list[tuple[float, int, bytes]]) -> None:
    _feed(request[0], _change(request[1], what))


@given(messages, changes)
@settings(max_examples=EXAMPLES, deadline=None)
def test_damaged_messages(message: SrmpMessage, what: list[tuple[float, int, bytes]]) -> None:
    encoded = encode_request(message)
    _feed(encoded.content_type.encode(), _change(encoded.body, what))


@given(st.sampled_from(SPLIT), changes)
@settings(max_examples=EXAMPLES, deadline=None)
def test_damaged_content_types(request: tuple[bytes, bytes], what: list[tuple[float, int, bytes]]) -> None:
    _feed(_change(request[0], what), request[1])


@given(st.sampled_from(REQUESTS), changes)
@settings(max_examples=EXAMPLES, deadline=None)
def test_examining_damaged_requests(raw: bytes, what: list[tuple[float, int, bytes]]) -> None:
    examination = examine(_change(raw, what))
    assert examination.message is not None or examination.faults


@given(st.sampled_from(REQUESTS), changes)
@settings(max_examples=EXAMPLES, deadline=None)
def test_the_examination_refuses_what_the_decoder_refuses(
    raw: bytes, what: list[tuple[float, int, bytes]]
) -> None:
    head, _, body = raw.partition(b"\r\n\r\n")
    damaged = head + b"\r\n\r\n" + _change(body, what)
    examined, decoded = examine(damaged).message, _decode(*split_request(damaged))
    if isinstance(decoded, WireFault) or decoded.envelope.not_understood:
        assert examined is None
    else:
        assert examined == decoded


@pytest.mark.parametrize("request_", SPLIT)
def test_truncated_everywhere(request_: tuple[bytes, bytes]) -> None:
    content_type, body = request_
    for length in range(0, len(body), 3):
        # Nothing is lost by losing what follows the last boundary.
        if length < len(body) - 2:
            with pytest.raises(WireFault):
                decode_request(content_type, body[:length])


def _envelope(header: bytes) -> bytes:
    return (
        b'<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Header>%b</e:Header><e:Body/>'
        b"</e:Envelope>" % header
    )


ATTACKS = {
    "entity bomb": b"<!DOCTYPE a [<!ENTITY a 'ha'>"
    + b"".join(b"<!ENTITY a%d '%b'>" % (i, b"&a%d;" % (i - 1) * 9) for i in range(1, 30))
    + b"]><a>&a29;</a>",
    "quadratic entities": b"<!DOCTYPE a [<!ENTITY a '%b'>]><a>%b</a>" % (b"x" * 100_000, b"&a;" * 30_000),
    "external entity": b"<!DOCTYPE a [<!ENTITY a SYSTEM 'file:///dev/zero'>]><a>&a;</a>",
    "deep": _envelope(b"<a>" * 1_000_000),
    "deep but short": _envelope(b"<a>" * 80_000),
    "a million attributes": _envelope(b"<a %b/>" % b" ".join(b"a%d=''" % i for i in range(1_000_000))),
    "many attributes": _envelope(b"<a %b/>" % b" ".join(b"a%d=''" % i for i in range(25_000))),
    "many namespaces": _envelope(b"<a %b/>" % b" ".join(b"xmlns:a%d='u'" % i for i in range(13_000))),
    "many elements": _envelope(b"<a/>" * 60_000),
    "long name": _envelope(b"<%b/>" % (b"a" * 250_000)),
    "long text": _envelope(b"<a>%b</a>" % (b"x" * 250_000)),
    "many comments": _envelope(b"<!---->" * 35_000),
    "unclosed comment": _envelope(b"<!--" + b"-" * 200_000),
    "many escapes": _envelope(b"<a>%b</a>" % (b"&lt;" * 60_000)),
    "zeros": bytes(1_000_000),
    "spaces": b" " * 4_000_000,
}


@pytest.mark.parametrize("name", ATTACKS)
def test_attacks_by_xml(name: str) -> None:
    _feed_attack(b"text/xml", ATTACKS[name])


BOUNDARY = b"multipart/related; boundary=B"
MIME_ATTACKS = {
    "many parts": b"--B\r\n\r\n" * 400_000 + b"--B--",
    "no end": b"--B\r\n\r\n" + b"\r\n--" * 1_000_000,
    "nearly boundaries": b"--B\r\n\r\n" + b"--Bx" * 1_000_000,
    "padding": b"--B" + b" " * 4_000_000,
    "nearly boundaries with padding": b"--B\r\n\r\n" + b"--B        " * 350_000,
    "headers without end": b"--B\r\n" + b"A: b\r\n" * 600_000,
    "one long header": b"--B\r\nA: " + b"b" * 4_000_000,
    "folded headers": b"--B\r\nA: b" + b"\r\n " * 1_000_000,
    "preamble": b"x" * 4_000_000 + b"\r\n--B\r\n\r\n--B--",
    "large length": b"--B\r\nContent-Length: 9999999999\r\n\r\n" + b"x" * 1000,
}


@pytest.mark.parametrize("name", MIME_ATTACKS)
def test_attacks_by_mime(name: str) -> None:
    _feed_attack(BOUNDARY, MIME_ATTACKS[name])


def test_attacks_by_content_type() -> None:
    for value in (
        b";" * 1024,
        b"a" * 10_000_000,
        b'multipart/related;a="' + b"\\a" * 400,
        b"a;" + b"b=c;" * 250,
    ):
        _feed_attack(value, b"")


def test_padding_between_boundaries_is_not_quadratic() -> None:
    _feed_attack(BOUNDARY, b"--B\r\n\r\n" + (b"--B" + b" " * 1000) * 4_000)
    _feed_attack(BOUNDARY, b"--B\r\n\r\n--B" + b" " * 4_000_000)


def _feed_attack(content_type: bytes, body: bytes) -> None:
    started = time.perf_counter()
    with pytest.raises(WireFault):
        decode_request(content_type, body)
    assert not examine(body).is_acceptable
    assert time.perf_counter() - started < 2 * PATIENCE


def test_nothing_grows() -> None:
    """The caches are bounded: a peer that never says the same twice fills them once."""
    content_type, body = SPLIT[1]
    requests = [body.replace(b"caf195ea", b"%08x" % i) for i in range(3_000)]

    def feed(rounds: list[bytes]) -> None:
        for number, request in enumerate(rounds):
            decode_request(content_type, request)
            with suppress(WireFault):
                decode_request(b"multipart/related; boundary=%d" % number, request)

    feed(requests[:1_500])
    tracemalloc.start()
    feed(requests[:1_500])
    before, _ = tracemalloc.get_traced_memory()
    feed(requests[1_500:])
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert after - before < 500_000


def test_the_largest_request() -> None:
    body = b"--B\r\n\r\n" + bytes(MAX_REQUEST_BYTES - 12) + b"--B--"
    assert len(body) == MAX_REQUEST_BYTES
    _feed_attack(BOUNDARY, body)
