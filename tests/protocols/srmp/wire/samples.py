"""Messages to start a test from, and the samples of MC-MQSRM section 4."""

from __future__ import annotations

from pathlib import Path as FilePath
from uuid import UUID

from lanner.model.message_id import MessageId
from lanner.protocols.srmp.wire import (
    NEVER,
    Envelope,
    Msmq,
    Path,
    Properties,
    Services,
    SrmpMessage,
    decode_request,
)

VECTORS = FilePath(__file__).parents[3] / "vectors" / "srmp"

QM = UUID("caf195ea-615c-4264-ae08-11a4e60194c0")

DURABLE = SrmpMessage(
    envelope=Envelope(
        path=Path(
            action="MSMQ:order 17", to="http://machine2/msmq/private$/orders", id=MessageId.of(QM, 20503)
        ),
        properties=Properties(expires_at=NEVER, sent_at=1184814700),
        services=Services(durable=True),
        msmq=Msmq(message_class=0, priority=3, body_type=0, source_qm=QM, ttrq=1185160300),
    ),
    body=b"First Message",
    content_suffix=str(QM),
)
"""A durable message with what every message has."""


def split_request(raw: bytes) -> tuple[bytes, bytes]:
    """Return the Content-Type and the body of a captured request."""
    head, _, body = raw.partition(b"\r\n\r\n")
    lines = [line for line in head.split(b"\r\n") if line.startswith(b"Content-Type: ")]
    return lines[0].removeprefix(b"Content-Type: "), body


def read_sample(name: str) -> SrmpMessage:
    """Decode one of the samples."""
    return decode_request(*split_request((VECTORS / f"{name}.http").read_bytes()))
