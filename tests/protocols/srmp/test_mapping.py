"""Messages as the manager has them, and as SRMP says them: both ways (MC-MQSRM 3.1.5.1.1, 3.1.7.2.4)."""

from __future__ import annotations

import string
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.protocols.srmp.envelopes import (
    ADMINISTRATION,
    HERE,
    NOW,
    ORDERS,
    RECEIPTS,
    SENDER,
    STREAM,
    streamed,
)
from tests.protocols.srmp.wire.samples import read_sample

from lanner.model.codes import MessageClass
from lanner.model.message import (
    INFINITE,
    Acknowledgments,
    AuthenticationLevel,
    Delivery,
    Message,
    MessageSecurity,
    OrderReceipt,
    TransactionMarks,
)
from lanner.model.message_id import MessageId
from lanner.model.transfer import Sequence
from lanner.protocols.srmp import wire
from lanner.protocols.srmp.mapping import CannotSayError, from_message, to_message

ABOUT = MessageId.of(SENDER, 5)
CONNECTOR = UUID("00000000-0000-0000-0000-00000000c0de")

BASE = Message(
    id=MessageId.of(SENDER, 1),
    source_machine=SENDER,
    destination_queue=f"DIRECT={ORDERS}",
    sent_time=float(NOW),
    time_to_reach_queue=INFINITE,
)


def over_the_wire(message: Message, **how: Any) -> Message:
    """What the other side makes of it."""
    request = wire.encode_request(from_message(message, **how))
    srmp = wire.decode_request(request.content_type.encode(), request.body)
    start = srmp.envelope.stream.start if srmp.envelope.stream is not None else None
    return to_message(srmp, NOW + 9.0, receipts_to=start.send_receipts_to if start is not None else "")


FIELDS: list[dict[str, Any]] = [
    {"body": b"\x00\xff--"},
    {"body_type": 8},
    {"extension": b"more"},
    {"label": "order 17 & <more>"},
    {"application_tag": 0xFFFFFFFF},
    {"correlation_id": ABOUT},
    {"priority": 0},
    {"priority": 7},
    {"delivery": Delivery.RECOVERABLE},
    {"time_to_reach_queue": 60},
    {"time_to_reach_queue": 0},
    {"response_queue": "DIRECT=http://there/msmq/private$/answers"},
    {"response_queue": r"DIRECT=OS:there\private$\answers"},
    {"positive_journaling": True},
    {"negative_journaling": True},
    {"tracing": True},
    {"connector_type": CONNECTOR},
    {"connector_queue_manager": CONNECTOR},
    {"security": MessageSecurity(hash_algorithm=0x800C)},
    {"security": MessageSecurity(provider_type=3, provider_name="Base & co")},
    {"destination_queues": f"DIRECT={ORDERS},DIRECT=http://there/msmq/q"},
    {"administration_queues": "DIRECT=http://a/msmq/q,DIRECT=http://b/msmq/q"},
    {"response_queues": "DIRECT=http://a/msmq/q"},
]


@pytest.mark.parametrize("fields", FIELDS, ids=lambda fields: ",".join(fields))
def test_every_field(fields: dict[str, Any]) -> None:
    message = replace(BASE, **fields)
    came = over_the_wire(message)
    for name in ("destination_queues", "administration_queues", "response_queues"):
        assert getattr(came, name).lower() == getattr(message, name).lower()
        came = replace(came, **{name: getattr(message, name)})
    assert came == message


@pytest.mark.parametrize("bits", range(16))
def test_acknowledgments(bits: int) -> None:
    """Only arrival and the two receives have words in SRMP."""
    asked = Acknowledgments(bits)
    queue = f"DIRECT={ADMINISTRATION}"
    came = over_the_wire(replace(BASE, acknowledgments=asked, administration_queue=queue))
    sayable = asked & ~Acknowledgments.NEGATIVE_ARRIVAL
    assert came.acknowledgments == sayable
    assert came.administration_queue == (queue if sayable else "")


text = st.text(string.ascii_letters + string.digits + " <>&'\"é€", max_size=20)


@given(
    body=st.binary(max_size=300),
    extension=st.binary(max_size=50),
    label=text.map(str.strip),
    tag=st.integers(0, 0xFFFFFFFF),
    priority=st.integers(0, 7),
    ttrq=st.integers(0, 10**8) | st.just(INFINITE),
    durable=st.booleans(),
    journal=st.booleans(),
    dead=st.booleans(),
    correlation=st.binary(min_size=20, max_size=20) | st.none(),
)
def test_round_trip(
    body: bytes,
    extension: bytes,
    label: str,
    tag: int,
    priority: int,
    ttrq: int,
    durable: bool,
    journal: bool,
    dead: bool,
    correlation: bytes | None,
) -> None:
    message = replace(
        BASE,
        body=body,
        extension=extension,
        label=label,
        application_tag=tag,
        priority=priority,
        time_to_reach_queue=ttrq,
        delivery=Delivery.RECOVERABLE if durable else Delivery.EXPRESS,
        positive_journaling=journal,
        negative_journaling=dead,
        correlation_id=MessageId(correlation) if correlation is not None else None,
    )
    assert over_the_wire(message) == message


@given(
    number=st.integers(1, 2**32 - 1),
    gap=st.integers(1, 5),
    stream=st.integers(1, 2**64 - 1),
    first=st.booleans(),
    last=st.booleans(),
)
def test_streams_round_trip(number: int, gap: int, stream: int, first: bool, last: bool) -> None:
    place = Sequence(stream, number, max(0, number - gap))
    message = replace(
        BASE, delivery=Delivery.RECOVERABLE, transaction=TransactionMarks(first=first, last=last)
    )
    marks = over_the_wire(message, place=place, receipts_url=RECEIPTS).transaction
    assert marks is not None
    assert (marks.stream, marks.sequence, marks.previous) == (stream, number, place.previous)
    assert (marks.first, marks.last) == (first, last)
    assert marks.status_queue == (f"DIRECT={RECEIPTS}" if number == 1 else "")


def test_a_stream_message_is_durable_and_its_dead_letter_mark_asks_for_a_final_receipt() -> None:
    came = to_message(streamed(1, dead_letter=True), 0.0)
    assert came.is_recoverable
    assert came.transaction is not None
    assert came.transaction.final_ack_required
    assert came.transaction.stream == STREAM


# Receipts.


@pytest.mark.parametrize(
    ("reason", "parts"),
    [
        (MessageClass.ACK_REACH_QUEUE, "d"),
        (MessageClass.ACK_RECEIVE, "c"),
        (MessageClass.NACK_DELETED, "c"),
        (MessageClass.NACK_QUEUE_DELETED, "c"),
        (MessageClass.NACK_QUEUE_PURGED, "c"),
        (MessageClass.NACK_RECEIVE_TIMEOUT, "c"),
        (MessageClass.NACK_RECEIVE_REJECTED, "c"),
    ],
)
def test_receipts(reason: MessageClass, parts: str) -> None:
    made = replace(
        BASE, message_class=reason.value, correlation_id=ABOUT, label="the label", body=b"the body"
    )
    srmp = from_message(made)
    assert (srmp.body, srmp.extension) == (None, None), "2.2.2: receipts carry nothing"
    envelope = srmp.envelope
    assert envelope.services is None
    assert envelope.path.action == "MSMQ:the label"
    assert (envelope.delivery_receipt is not None, envelope.commitment_receipt is not None) == (
        parts == "d",
        parts == "c",
    )
    told = envelope.delivery_receipt or envelope.commitment_receipt
    assert told is not None
    assert told.id == ABOUT
    if envelope.commitment_receipt is not None:
        assert envelope.commitment_receipt.is_positive == (reason is MessageClass.ACK_RECEIVE)
    came = over_the_wire(made)
    assert (came.message_class, came.correlation_id) == (reason, ABOUT)


@pytest.mark.parametrize("reason", [MessageClass.NACK_REACH_QUEUE_TIMEOUT, MessageClass.REPORT])
def test_what_srmp_has_no_words_for(reason: MessageClass) -> None:
    with pytest.raises(CannotSayError):
        from_message(replace(BASE, message_class=reason.value, correlation_id=ABOUT))


def test_stream_receipts() -> None:
    about = OrderReceipt(machine=SENDER, stream=STREAM, sequence=7)
    label = wire.STREAM_RECEIPT_ACTION.removeprefix(wire.LABEL_PREFIX)
    made = replace(BASE, message_class=MessageClass.ORDER_ACK.value, label=label, order_receipt=about)
    envelope = from_message(made).envelope
    assert envelope.path.action == wire.STREAM_RECEIPT_ACTION
    assert (envelope.delivery_receipt, envelope.commitment_receipt) == (None, None)
    assert over_the_wire(made).order_receipt == about
    final = replace(made, message_class=MessageClass.NACK_QUEUE_PURGED.value, correlation_id=ABOUT)
    envelope = from_message(final).envelope
    assert envelope.commitment_receipt is not None
    assert envelope.stream_receipt is not None


def test_a_receipt_without_a_correlation_still_says_what_it_is_about() -> None:
    sample = read_sample("4.3-delivery-receipt")
    assert sample.envelope.delivery_receipt is not None
    came = to_message(sample, 0.0)
    assert came.correlation_id in (
        sample.envelope.delivery_receipt.id,
        sample.envelope.msmq.correlation if sample.envelope.msmq else None,
    )


# What the other side may leave out.


def test_defaults() -> None:
    envelope = wire.Envelope(
        path=wire.Path(action="no prefix", to=ORDERS, id=wire.NO_IDENTIFIER),
        properties=wire.Properties(expires_at=NOW + 60),
    )
    came = to_message(wire.SrmpMessage(envelope=envelope), NOW + 10.5)
    assert came.label == "", "2.2.4.1: without MSMQ: it is no label"
    assert (came.sent_time, came.time_to_reach_queue) == (NOW + 10.5, 50)
    assert (came.body, came.priority, came.source_machine) == (b"", 3, None)
    assert came.destination_queue == f"DIRECT=http://{HERE}/msmq/private$/orders"


def test_a_signature_is_kept_for_whoever_passes_it_on() -> None:
    signature = wire.Signature(signed_info=b"<SignedInfo/>", signature_value="AAAA")
    srmp = from_message(BASE)
    signed = replace(srmp, envelope=replace(srmp.envelope, signature=signature))
    came = to_message(signed, 0.0, signature=signature)
    assert came.security is not None
    assert came.security.authentication_level is AuthenticationLevel.XML_SIGNATURE
    assert not came.security.authenticated
    assert from_message(came).envelope.signature == signature
    assert from_message(to_message(signed, 0.0)).envelope.signature is None


def test_elements_of_a_list_that_http_cannot_say_are_left_out() -> None:
    names = rf"DIRECT={ORDERS},DIRECT=OS:there\private$\q"
    msmq = from_message(replace(BASE, destination_queues=names)).envelope.msmq
    assert msmq is not None
    assert [uri.lower() for uri in msmq.destination_mqf] == [ORDERS]
