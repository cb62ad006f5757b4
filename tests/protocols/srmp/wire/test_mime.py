from __future__ import annotations

import pytest

from lanner.protocols.srmp.wire import WireFault
from lanner.protocols.srmp.wire.faults import RAISE
from lanner.protocols.srmp.wire.limits import MAX_PART_HEADER_BYTES, MAX_PARTS
from lanner.protocols.srmp.wire.mime import ContentType, find_parts, parse_content_type


def _contents(data: bytes, boundary: bytes = b"B") -> list[bytes]:
    parts = find_parts(data, boundary, RAISE)
    assert parts == find_parts(memoryview(data), boundary, RAISE)
    return [data[part.start : part.end] for part in parts]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"text/xml", ContentType("text/xml")),
        (b' TEXT/XML ; charset="UTF-8"', ContentType("text/xml")),
        (
            b'multipart/related; boundary="MSMQ - SOAP boundary, 53287"; type=text/xml',
            ContentType("multipart/related", b"MSMQ - SOAP boundary, 53287"),
        ),
        (
            b'multipart/related; boundary="MSMQ - SOAP boundary, 53287";\r\n\ttype=text/xml',
            ContentType("multipart/related", b"MSMQ - SOAP boundary, 53287"),
        ),
        (b"multipart/related;type=text/xml;Boundary=B", ContentType("multipart/related", b"B")),
        (b'multipart/related; a="x;boundary=no"; boundary=B', ContentType("multipart/related", b"B")),
        (b'multipart/related; boundary="a\\"b"', ContentType("multipart/related", b'a"b')),
    ],
)
def test_content_types(value: bytes, expected: ContentType) -> None:
    assert parse_content_type(value) == expected


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b" ",
        b"multipart/related",
        b'multipart/related; boundary=""',
        b"multipart/related; boundary=" + b"x" * 71,
        b"text/xml; " + b"x" * 2000,
        b'multipart/related; boundary="' + b"\\" * 900,
    ],
)
def test_content_types_that_say_nothing(value: bytes) -> None:
    with pytest.raises(WireFault) as caught:
        parse_content_type(value)
    assert caught.value.section == "2.2.2"


def test_a_length_decides_where_a_part_ends() -> None:
    inside = b"x\r\n--B\r\nContent-Length: 0\r\n\r\n--B--\r\n"
    data = b"--B\r\nContent-Length: %d\r\n\r\n%b--B--" % (len(inside), inside)
    assert _contents(data) == [inside]


def test_a_line_break_before_the_boundary_belongs_to_the_boundary() -> None:
    assert _contents(b"--B\r\nContent-Length: 3\r\n\r\nabc\r\n--B--\r\n") == [b"abc"]
    assert _contents(b"--B\r\nContent-Length: 5\r\n\r\nabc\r\n--B--\r\n") == [b"abc\r\n"]
    assert _contents(b"--B\r\n\r\nabc\r\n--B--\r\n") == [b"abc"]


def test_without_a_length_the_boundary_is_searched_for() -> None:
    assert _contents(b"--B\r\nX: y\r\n\r\nabc--B\r\n\r\ndef\r\n--B--") == [b"abc", b"def"]
    # A boundary's bytes with something else behind them are no boundary.
    assert _contents(b"--B\r\n\r\nab--Bc--B--") == [b"ab--Bc"]


def test_headers_in_any_order_and_case() -> None:
    data = (
        b"--B  \r\ncontent-ID: <body@1>\r\nX-Other: a:b\r\nCONTENT-LENGTH:2\r\nContent-Type: text/xml;\r\n"
        b" charset=UTF-8\r\n\r\nabc--B--"
    )
    with pytest.raises(WireFault, match="no boundary"):
        find_parts(data, b"B", RAISE)
    parts = find_parts(data.replace(b"LENGTH:2", b"LENGTH:3"), b"B", RAISE)
    assert parts[0].content_id == b"<body@1>"
    assert parts[0].content_type == b"text/xml; charset=UTF-8"


def test_a_preamble_and_an_epilogue_are_ignored() -> None:
    assert _contents(b"\r\n--B\r\n\r\na--B--\r\nanything --B\r\n") == [b"a"]
    assert _contents(b"This is MIME.\r\n--B\r\n\r\na--B--") == [b"a"]


def test_no_parts() -> None:
    assert _contents(b"--B--") == []


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"abc",
        b"--C\r\n\r\na--C--",
        b"--B",
        b"--B\r\n",
        b"--B\r\nContent-Length: 3",
        b"--B\r\nContent-Length: 3\r\n\r\n",
        b"--B\r\nContent-Length: 3\r\n\r\nab",
        b"--B\r\nContent-Length: 3\r\n\r\nabc",
        b"--B\r\nContent-Length: 3\r\n\r\nabc--B",
        b"--B\r\nContent-Length: 4\r\n\r\nabc--B--",
        b"--B\r\nContent-Length: 2\r\n\r\nabc--B--",
        b"--B\r\nContent-Length: 99999999999\r\n\r\nabc--B--",
        b"--B\r\nContent-Length: -3\r\n\r\nabc--B--",
        b"--B\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc--B--",
        b"--B\r\nno header\r\n\r\nabc--B--",
        b"--B\r\n: x\r\n\r\nabc--B--",
        b"--Bx\r\n\r\nabc--B--",
        b"--B\n\nabc--B--",
        b"--B\r\n\r\nabc",
        b"--B\r\nX: " + b"y" * MAX_PART_HEADER_BYTES + b"\r\n\r\nabc--B--",
        b"--B\r\n\r\n" * (MAX_PARTS + 1) + b"--B--",
        b"x" * MAX_PART_HEADER_BYTES + b"\r\n--B\r\n\r\nabc--B--",
    ],
)
def test_what_is_broken(data: bytes) -> None:
    for form in (data, memoryview(data)):
        with pytest.raises(WireFault) as caught:
            find_parts(form, b"B", RAISE)
        assert caught.value.section == "2.2.2"
