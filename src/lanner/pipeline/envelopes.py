"""SRMP envelopes that are in bronze, read by the project's own codec.

An event has one where a manager keeps bodies in its history and the body is an SRMP message: what an
application stored, or what a capture was turned into. What cannot be read has its fault, with the section
that it breaks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from lanner.pipeline.columns import struct
from lanner.protocols.srmp import wire

__all__ = ["ENVELOPES", "envelopes_of"]

MARK = b"schemas.xmlsoap.org/soap/envelope"
LOOKED_AT = 1024
"""Bytes in which an envelope says that it is one."""

ENVELOPES = struct(
    "manager string, lsn bigint, message_id string, action string, to_uri string, envelope_id string, "
    "sent_at bigint, expires_at bigint, is_durable boolean, stream_id string, stream_number bigint, "
    "stream_previous bigint, kind string, is_signed boolean, fault string"
)
"""One row per envelope. Times are seconds since 1970, as the envelope says them."""

_ARROW = pyarrow.schema(
    [
        ("manager", pyarrow.string()),
        ("lsn", pyarrow.int64()),
        ("message_id", pyarrow.string()),
        ("action", pyarrow.string()),
        ("to_uri", pyarrow.string()),
        ("envelope_id", pyarrow.string()),
        ("sent_at", pyarrow.int64()),
        ("expires_at", pyarrow.int64()),
        ("is_durable", pyarrow.bool_()),
        ("stream_id", pyarrow.string()),
        ("stream_number", pyarrow.int64()),
        ("stream_previous", pyarrow.int64()),
        ("kind", pyarrow.string()),
        ("is_signed", pyarrow.bool_()),
        ("fault", pyarrow.string()),
    ]
)


def envelopes_of(events: DataFrame) -> DataFrame:
    """Read the envelopes among the bodies of events."""
    start = F.substring(F.col("body"), 1, LOOKED_AT).cast("binary")
    is_one = F.col("body").isNotNull() & F.contains(start, F.lit(MARK))
    chosen = events.filter(is_one).select("manager", "lsn", "message_id", "body")
    return chosen.mapInArrow(_read, ENVELOPES)


def _read(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    for batch in batches:
        yield pyarrow.RecordBatch.from_pylist([_row(row) for row in batch.to_pylist()], schema=_ARROW)


def _row(row: dict[str, object]) -> dict[str, object]:
    body = row.pop("body")
    assert isinstance(body, bytes)
    try:
        return row | _fields(wire.decode_request(_content_type(body), body).envelope)
    except wire.WireFault as fault:
        return row | {"fault": str(fault)}


def _content_type(body: bytes) -> bytes:
    """A MIME body begins with its boundary; a bare envelope is XML."""
    if not body.startswith(b"--"):
        return b"text/xml"
    boundary = body[2:].split(b"\r\n", 1)[0]
    return b'multipart/related; boundary="' + boundary + b'"; type=text/xml'


def _fields(envelope: wire.Envelope) -> dict[str, object]:
    stream = envelope.stream
    return {
        "action": envelope.path.action,
        "to_uri": envelope.path.to,
        "envelope_id": str(envelope.path.id),
        "sent_at": envelope.properties.sent_at,
        "expires_at": envelope.properties.expires_at,
        "is_durable": envelope.is_durable,
        "stream_id": str(stream.stream_id) if stream else None,
        "stream_number": stream.current if stream else None,
        "stream_previous": stream.previous if stream else None,
        "kind": _kind(envelope),
        "is_signed": envelope.signature is not None,
    }


def _kind(envelope: wire.Envelope) -> str:
    receipts = {
        "stream receipt": envelope.stream_receipt,
        "delivery receipt": envelope.delivery_receipt,
        "commitment receipt": envelope.commitment_receipt,
    }
    return next((name for name, receipt in receipts.items() if receipt is not None), "message")
