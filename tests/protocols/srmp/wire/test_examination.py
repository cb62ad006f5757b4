from __future__ import annotations

import pytest
from tests.protocols.srmp.wire.samples import DURABLE, VECTORS, read_sample

from lanner.protocols.srmp.wire import Examination, Field, encode_request, examine
from lanner.protocols.srmp.wire.limits import MAX_REQUEST_BYTES

SAMPLE = (VECTORS / "4.2-msmq-element.http").read_bytes()
BODY = SAMPLE.partition(b"\r\n\r\n")[2]


def _faults(examination: Examination) -> list[tuple[str, str]]:
    return [(fault.section, fault.element) for fault in examination.faults]


def test_a_request() -> None:
    examination = examine(SAMPLE)
    assert examination.kind == "request"
    assert examination.is_acceptable
    assert examination.faults == ()
    assert examination.message == read_sample("4.2-msmq-element")
    assert examination.fields[:10] == (
        Field("method", "POST"),
        Field("target", "/msmq/private$/simpleq"),
        Field("Host", "machine2"),
        Field("Content-Type", 'multipart/related; boundary="MSMQ - SOAP boundary, 26500"; type=text/xml'),
        Field("Content-Length", str(len(BODY))),
        Field("SOAPAction", '"MSMQMessage"'),
        Field("Proxy-Accept", "NonInteractiveClient"),
        Field("part 1", "text/xml; charset=UTF-8", "774 bytes"),
        Field("part 2", "body@caf195ea-615c-4264-ae08-11a4e60194c0", "220 bytes"),
        Field("path/action", "MSMQ:"),
    )
    assert Field("properties/expiresAt", "20380119T031407", "never") in examination.fields
    assert Field("Msmq/TTrq", "20070723T031140", "2007-07-23 03:11:40 UTC") in examination.fields
    assert Field("Msmq/Class", "0", "an ordinary message") in examination.fields


def test_a_bare_multipart_body_and_a_bare_envelope() -> None:
    multipart = examine(BODY)
    assert multipart.kind == "multipart"
    assert multipart.message == read_sample("4.2-msmq-element")
    for envelope in (read_sample("4.2-msmq-element").raw_envelope, b"\xef\xbb\xbf\r\n<?xml version='1.0'?>"):
        assert examine(envelope).kind == "envelope"
    alone = examine(b"\n" + read_sample("4.2-msmq-element").raw_envelope).message
    assert alone is not None
    assert alone.envelope == read_sample("4.2-msmq-element").envelope


def test_folded_headers() -> None:
    assert examine(SAMPLE.replace(b"; type", b";\r\n\ttype")).faults == ()


def test_what_the_samples_do_against_the_text_is_told() -> None:
    examination = examine((VECTORS / "4.4-stream-1.http").read_bytes())
    assert _faults(examination) == [
        ("2.2.5.3", "Stream"),
        ("2.2.5.3", "streamReceiptRequest"),
        ("2.2.5.2.1", "durable"),
        ("2.2.4.3", "id"),
    ]
    assert examination.is_acceptable


def test_all_faults_and_not_the_first_alone() -> None:
    damaged = SAMPLE
    for old, new in [
        (b"POST ", b"PATCH "),
        (b"SOAPAction", b"X-Action"),
        (b"<to>http:", b"<to>ftp_:"),
        (b"uuid:20503@", b"uuid:2x503@"),
        (b"20380119T031407", b"20381319T031407"),
        (b"<Priority>3<", b"<Priority>9<"),
        (b"<SourceQmGuid>c", b"<SourceQmGuid>x"),
    ]:
        assert old in damaged
        damaged = damaged.replace(old, new, 1)
    examination = examine(damaged)
    assert _faults(examination) == [
        ("2.1.1", "method"),
        ("2.1.1", "SOAPAction"),
        ("2.2.4.2", "to"),
        ("2.2.4.3", "id"),
        ("2.2.5.1.1", "expiresAt"),
        ("2.2.6.2", "Priority"),
        ("2.2.6.13", "SourceQmGuid"),
    ]
    assert not examination.is_acceptable
    assert examination.message is None
    assert Field("Msmq/Priority", "9") in examination.fields


def test_wrong_lengths_are_told_and_repaired() -> None:
    examination = examine(SAMPLE.replace(b"Content-Length: 774", b"Content-Length: 777"))
    assert _faults(examination) == [("2.2.2", "Content-Length")]
    assert Field("part 1", "text/xml; charset=UTF-8", "774 bytes") in examination.fields
    assert not examination.is_acceptable
    stated = f"Content-Length: {len(BODY)}".encode()
    examination = examine(SAMPLE.replace(stated, b"Content-Length: 1"))
    assert _faults(examination) == [("2.1.1", "Content-Length")]
    assert examination.is_acceptable


def test_converted_line_breaks_are_told_and_repaired() -> None:
    examination = examine(SAMPLE.replace(b"\r\n", b"\n"))
    assert ("2.2.2", "MIME") in _faults(examination)
    assert Field("path/to", "http://machine2/msmq/private$/simpleQ") in examination.fields


def test_a_block_that_must_be_understood() -> None:
    raw = encode_request(DURABLE).body.partition(b"\r\n\r\n")[2].partition(b"--MSMQ")[0]
    raw = raw.replace(b"<Msmq ", b'<x xmlns="urn:x" se:mustUnderstand="1"><y>z</y></x><Msmq ')
    examination = examine(raw)
    assert _faults(examination) == [("2.2.2", "x")]
    assert Field("x/y", "z") in examination.fields


def test_parts_of_other_kinds_and_payloads_of_receipts() -> None:
    receipt = read_sample("4.3-delivery-receipt").raw_envelope
    raw = (
        b"--B\r\nContent-Type: text/plain\r\n\r\n%b--B\r\nContent-Id: body@1\r\n\r\nx"
        b"--B\r\nContent-Id: image@1\r\n\r\nx--B--" % receipt
    )
    examination = examine(raw)
    assert _faults(examination) == [("2.2.2", "Content-Type"), ("2.2.2", "MIME"), ("2.2.2", "MIME")]
    assert examination.is_acceptable


@pytest.mark.parametrize(
    ("raw", "section"),
    [
        (b"", "2.2"),
        (b"hello", "2.2"),
        (b"<a>", "2.2"),
        (b"<a/>", "2.2.2"),
        (b"<!DOCTYPE a><a/>", "2.2"),
        (b"--B\r\n", "2.2.2"),
        (b"--B\r\n--B--", "2.2.2"),
        (b"POST / HTTP/1.1\r\n", "2.1.1"),
        (b"POST / HTTP/1.1\r\nbroken\r\n\r\n", "2.1.1"),
        (b"POST / HTTP/1.1\r\n\r\n", "2.2.2"),
        (b"POST / HTTP/1.1\r\nSOAPAction: x\r\nContent-Type: text/plain\r\n\r\n<a/>", "2.2.2"),
        (bytes(MAX_REQUEST_BYTES + 1), "2.2.2"),
    ],
)
def test_what_is_nothing_of_the_kind(raw: bytes, section: str) -> None:
    examination = examine(raw)
    assert not examination.is_acceptable
    assert section in [fault.section for fault in examination.faults]
    assert all(str(fault) for fault in examination.faults)
