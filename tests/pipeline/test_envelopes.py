from __future__ import annotations

from uuid import UUID

from pyspark.sql import SparkSession
from tests.pipeline.histories import Fleet

from lanner.model.message_id import MessageId
from lanner.pipeline.envelopes import envelopes_of
from lanner.protocols.srmp import wire

STREAM = wire.Stream(stream_id=wire.StreamId(UUID(int=5), 77), current=3, previous=2)
MSMQ = wire.Msmq(message_class=0, priority=0, body_type=0, source_qm=UUID(int=5), ttrq=2_000_000_000)


def encoded(body: bytes | None = None) -> bytes:
    envelope = wire.Envelope(
        path=wire.Path(
            action="MSMQ:hello", to="http://beta/msmq/private$/orders", id=MessageId.of(UUID(int=5), 9)
        ),
        properties=wire.Properties(expires_at=2_000_000_000, sent_at=1_900_000_000),
        stream=STREAM,
        msmq=MSMQ,
    )
    return wire.encode_request(wire.SrmpMessage(envelope=envelope, body=body)).body


def test_envelopes_are_read_by_the_codec(spark: SparkSession) -> None:
    fleet = Fleet()
    queue = ".\\private$\\q"
    bodies = [encoded(), encoded(b"payload"), encoded()[:-20], b"no envelope", None]
    for body in bodies:
        fleet.note("alpha", "sent", queue, fleet.new_message("alpha"), body=body)
    bare, mime, cut = envelopes_of(fleet.frame(spark)).orderBy("lsn").collect()
    for row in (bare, mime):
        assert (row["action"], row["to_uri"]) == ("MSMQ:hello", "http://beta/msmq/private$/orders")
        assert (row["stream_number"], row["stream_previous"], row["kind"]) == (3, 2, "message")
        assert (row["is_durable"], row["fault"]) == (True, None)
    assert cut["fault"]
    assert cut["action"] is None
