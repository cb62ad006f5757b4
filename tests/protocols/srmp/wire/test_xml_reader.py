from __future__ import annotations

import gc
import time
from contextlib import suppress

import pytest

from lanner.protocols.srmp.wire import WireFault
from lanner.protocols.srmp.wire.limits import (
    MAX_ATTRIBUTES,
    MAX_DEPTH,
    MAX_ELEMENTS,
    MAX_ENVELOPE_BYTES,
    MAX_TEXT_LENGTH,
)
from lanner.protocols.srmp.wire.xml_reader import parse_xml

BOMB = b'<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa">' + b"".join(
    b'<!ENTITY %c "%s">' % (98 + i, b"&%c;" % (97 + i) * 10) for i in range(12)
) + b"]><a>&m;</a>"  # fmt: skip


@pytest.mark.parametrize(
    "document",
    [
        BOMB,
        b"<!DOCTYPE a><a/>",
        b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>',
        b'<!DOCTYPE a PUBLIC "x" "http://example.com/x.dtd"><a/>',
        b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>',
        b'<!DOCTYPE a [<!ENTITY % x SYSTEM "http://example.com/x">%x;]><a/>',
    ],
)
def test_document_types_are_refused_at_once(document: bytes) -> None:
    with pytest.raises(WireFault) as caught:
        parse_xml(document)
    assert caught.value.element == "!DOCTYPE"


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (b"<?stylesheet href='x'?><a/>", "processing instruction"),
        (b"<a><?php x?></a>", "processing instruction"),
        (b"<a>&x;</a>", "undefined entity"),
        (b"<?xml version='1.0' encoding='iso-8859-1'?><a/>", "not UTF-8"),
        (b"\xff\xfe<\x00a\x00/\x00>\x00", "not UTF-8"),
        (b"<\x00a\x00/\x00>\x00", "zero byte"),
        (b"\x00<\x00a\x00/\x00>", "zero byte"),
        (b"<a>\xff</a>", "not UTF-8"),
        (b"<a>\x00</a>", "zero byte"),
        (b"<a>\x01</a>", "broken"),
        (b"<a>", "broken"),
        (b"<a></b>", "broken"),
        (b"<a/><a/>", "broken"),
        (b"<x:a/>", "broken"),
        (b"<a b='1' b='2'/>", "broken"),
        (b"", "broken"),
        (b"  ", "broken"),
    ],
)
def test_what_is_refused(document: bytes, words: str) -> None:
    with pytest.raises(WireFault, match=words) as caught:
        parse_xml(document)
    assert caught.value.section == "2.2"


def test_limits() -> None:
    depth = b"<a>" * MAX_DEPTH + b"</a>" * MAX_DEPTH
    assert parse_xml(depth).name == "a"
    for document, words in [
        (b"<a>" + depth + b"</a>", "deep"),
        (b"<a>" + b"<b/>" * MAX_ELEMENTS + b"</a>", "elements"),
        (b"<a " + b" ".join(b"a%d='1'" % i for i in range(MAX_ATTRIBUTES + 1)) + b"/>", "attributes"),
        (b"<a>" + b"x" * (MAX_TEXT_LENGTH + 1) + b"</a>", "characters"),
        (b"<a>" + b" " * MAX_ENVELOPE_BYTES + b"</a>", "limit"),
    ]:
        with pytest.raises(WireFault, match=words):
            parse_xml(document)


def test_the_worst_document_takes_no_time() -> None:
    attributes = b" ".join(b"a%d=''" % i for i in range(26_000))
    documents = [
        b"<a " + attributes[: MAX_ENVELOPE_BYTES - 10] + b"/>",
        b"<a>" * (MAX_ENVELOPE_BYTES // 3),
        b"<a" + b"a" * (MAX_ENVELOPE_BYTES - 10) + b"/>",
        b"<a>" + b"&amp;" * (MAX_ENVELOPE_BYTES // 5 - 10) + b"</a>",
    ]
    for document in documents:
        assert len(document) <= MAX_ENVELOPE_BYTES
        started = time.perf_counter()
        with suppress(WireFault):
            parse_xml(document)
        assert time.perf_counter() - started < 1


def test_bytes_of_an_element() -> None:
    data = "\ufeff<?xml version='1.0' encoding='UTF-8'?><a>\u20ac<b c='\u20ac'>x</b ></a>".encode()
    root = parse_xml(data)
    inner = root.children[0]
    assert data[inner.start : inner.end] == "<b c='\u20ac'>x</b >".encode()
    assert data[root.start : root.end].endswith(b"</a>")
    assert inner.attribute("c") == "\u20ac"
    assert inner.attribute("d") is None


def test_nothing_is_left_behind() -> None:
    # Other threads of the tests may leave something behind meanwhile, but not each time.
    assert min(_left_behind() for _ in range(5)) == 0


def _left_behind() -> int:
    gc.collect()
    gc.disable()
    try:
        for document in (b"<a><b/></a>", b"<a><b>", BOMB):
            for _ in range(3):
                with suppress(WireFault):
                    parse_xml(document)
        return gc.collect()
    finally:
        gc.enable()
