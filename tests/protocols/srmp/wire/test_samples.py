"""The samples of MC-MQSRM section 4 are what they are said to be."""

from __future__ import annotations

from uuid import UUID

import pytest
from tests.protocols.srmp.wire.samples import VECTORS, read_sample, split_request

from lanner.model.codes import MessageClass
from lanner.model.message_id import MessageId
from lanner.protocols.srmp.wire import (
    NEVER,
    NO_IDENTIFIER,
    STREAM_RECEIPT_ACTION,
    CommitmentReceipt,
    CommitmentReceiptRequest,
    DeliveryReceipt,
    DeliveryReceiptRequest,
    Msmq,
    Path,
    Properties,
    Services,
    SrmpMessage,
    Stream,
    StreamId,
    StreamReceipt,
    StreamStart,
    decode_request,
    examine,
)

SAMPLES = sorted(path.stem for path in VECTORS.glob("*.http"))
ANSWERER = UUID("ac678228-2dd6-418b-b31f-0539ffeea853")
ORDERER = UUID("32221eda-9376-46df-b6ed-783091123831")
STREAM = StreamId(UUID("2744e4e1-2b48-43e8-b441-42745f280d53"), 0x432B164300000006)
NOTHING = MessageId(bytes(20))


def test_there_are_twelve() -> None:
    assert len(SAMPLES) == 12


def test_simple_message() -> None:
    message = read_sample("4.1-simple")
    assert message.envelope.path == Path(
        action="MSMQ:mqsender label", to="http://machine2/msmq/private$/simpleq", id=NO_IDENTIFIER
    )
    assert message.envelope.path.label == "mqsender label"
    assert message.envelope.properties == Properties(expires_at=1181407459, sent_at=1181321059)
    assert message.envelope.msmq is None
    assert not message.envelope.is_durable
    assert message.body == b"First Message"
    assert message.content_suffix == "ff3af301-3196-497a-a918-72147c871a13"


def test_msmq_element() -> None:
    message = read_sample("4.2-msmq-element")
    sender = UUID("caf195ea-615c-4264-ae08-11a4e60194c0")
    assert message.envelope.path.id == MessageId.of(sender, 20503)
    assert message.envelope.path.label == ""
    assert message.envelope.properties.expires_at == NEVER
    assert message.envelope.msmq == Msmq(
        message_class=0,
        priority=3,
        correlation=NOTHING,
        body_type=0,
        hash_algorithm=32772,
        source_qm=sender,
        ttrq=1185160300,
    )
    assert message.body is not None
    assert message.body.startswith(b'<?xml version="1.0"?>')
    assert message.body.endswith(b"</Order>")


def test_receipt_requests_with_prefixes_and_no_label() -> None:
    envelope = read_sample("4.3-receipt-requests").envelope
    assert envelope.path.action == "Generic label"
    assert envelope.path.label is None
    # Without an Msmq element the identifier is not looked at.
    assert envelope.path.id == NO_IDENTIFIER
    assert envelope.path.via == "http://machine1/MSMQ/private$/Q1"
    assert envelope.services == Services(
        delivery_receipt_request=DeliveryReceiptRequest(send_to="http://machine1/MSMQ/private$/receipts"),
        commitment_receipt_request=CommitmentReceiptRequest(
            send_to="http://machine1/MSMQ/private$/deliverydone", positive_only=True, negative_only=True
        ),
    )


def test_delivery_receipt() -> None:
    message = read_sample("4.3-delivery-receipt")
    assert message.envelope.delivery_receipt == DeliveryReceipt(received_at=1184815494, id=NO_IDENTIFIER)
    assert message.envelope.path.id == MessageId.of(ANSWERER, 34826)
    assert message.envelope.path.via == "http://machine2/msmq/private$/simpleq"
    assert message.envelope.msmq is not None
    assert message.envelope.msmq.message_class == MessageClass.ACK_REACH_QUEUE
    assert message.envelope.msmq.correlation == NO_IDENTIFIER
    assert message.body is None


def test_commitment_receipt() -> None:
    envelope = read_sample("4.3-commitment-receipt").envelope
    assert envelope.commitment_receipt == CommitmentReceipt(
        decided_at=1184815641, is_positive=True, id=NO_IDENTIFIER
    )
    assert envelope.msmq is not None
    assert envelope.msmq.message_class == MessageClass.ACK_RECEIVE


def test_first_message_of_a_stream() -> None:
    envelope = read_sample("4.4-stream-1").envelope
    assert envelope.stream == Stream(
        stream_id=STREAM,
        current=1,
        start=StreamStart(
            send_receipts_to="http://machine1/MSMQ/private$/receipts?SenderStream=XRntV",
            expires_at=1182358799,
        ),
        receipt_request=True,
    )
    assert envelope.services is None
    assert envelope.is_durable


def test_later_messages_of_a_stream() -> None:
    assert read_sample("4.4-stream-2").envelope.stream == Stream(stream_id=STREAM, current=2)
    assert read_sample("4.4-stream-3").envelope.stream == Stream(stream_id=STREAM, current=3, end=True)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_stream_receipts(number: int) -> None:
    envelope = read_sample(f"4.4-stream-receipt-{number}").envelope
    assert envelope.stream_receipt == StreamReceipt(stream_id=STREAM, last_ordinal=number)
    assert envelope.path.action == STREAM_RECEIPT_ACTION
    assert envelope.path.id.lineage == ORDERER
    assert envelope.msmq is not None
    assert envelope.msmq.message_class == MessageClass.ORDER_ACK


def test_multicast() -> None:
    message = read_sample("4.5-pgm")
    assert message.envelope.path.to == "MSMQ:MULTICAST=234.1.1.1:8001"
    assert message.envelope.msmq is not None
    assert message.envelope.msmq.body_type == 8
    assert message.body == b"a.r.d.e.n.w.h.i.t.e."
    # The lengths that the specification prints here are those of our vector: this is how it was captured.
    assert len(message.raw_envelope) == 779
    assert b"Content-Length: 1067\r\n" in (VECTORS / "4.5-pgm.http").read_bytes()


@pytest.mark.parametrize("name", SAMPLES)
def test_white_space_between_elements_changes_nothing(name: str) -> None:
    """The specification prints a line for each element, and some texts on lines of their own."""
    message = read_sample(name)
    spaced = message.raw_envelope.replace(b"><", b">\r\n  <")
    spaced = spaced.replace(b"<sendReceiptsTo>", b"<sendReceiptsTo>\r\n").replace(b"</send", b"\r\n</send")
    decoded = decode_request(b"text/xml", spaced)
    assert decoded.envelope == message.envelope


@pytest.mark.parametrize("name", SAMPLES)
def test_every_sample_is_acceptable(name: str) -> None:
    examination = examine((VECTORS / f"{name}.http").read_bytes())
    assert examination.kind == "request"
    assert examination.message == read_sample(name)
    assert all(fault.is_accepted for fault in examination.faults)


def test_memory_view_is_as_good_as_bytes() -> None:
    for name in SAMPLES:
        content_type, body = split_request((VECTORS / f"{name}.http").read_bytes())
        decoded: SrmpMessage = decode_request(content_type, memoryview(body))
        assert decoded == decode_request(content_type, body)
        assert type(decoded.raw_envelope) is bytes
