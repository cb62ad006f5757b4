"""Every type of MC-MQSRM 3.1.5.1.5, and what is of none."""

from __future__ import annotations

import pytest
from tests.protocols.srmp.envelopes import changed, message, receipt
from tests.protocols.srmp.wire.samples import read_sample

from lanner.manager.acknowledgments import ORDER_ACK_LABEL
from lanner.model.codes import MessageClass
from lanner.protocols.srmp import wire
from lanner.protocols.srmp.message_type import MessageType, identify

ACK = wire.STREAM_RECEIPT_ACTION
NEGATIVE = [
    MessageClass.NACK_DELETED,
    MessageClass.NACK_QUEUE_DELETED,
    MessageClass.NACK_QUEUE_PURGED,
    MessageClass.NACK_RECEIVE_TIMEOUT,
    MessageClass.NACK_RECEIVE_REJECTED,
]

TYPES = [
    (message(), MessageType.USER),
    (changed(message(), msmq=None), MessageType.USER),
    (receipt(MessageClass.ACK_REACH_QUEUE, delivery=True), MessageType.DELIVERY_RECEIPT),
    (receipt(MessageClass.ORDER_ACK, stream=1, ordinal=1, action=ACK), MessageType.STREAM_RECEIPT),
    (
        receipt(MessageClass.ACK_RECEIVE, decision=True, stream=1, ordinal=1, action=ACK),
        MessageType.FINAL_STREAM_RECEIPT,
    ),
    (receipt(MessageClass.ACK_RECEIVE, decision=True), MessageType.COMMITMENT_RECEIPT),
    *[(receipt(reason, decision=False), MessageType.COMMITMENT_RECEIPT) for reason in NEGATIVE],
    *[
        (
            receipt(reason, decision=False, stream=1, ordinal=1, action=ACK),
            MessageType.FINAL_STREAM_RECEIPT,
        )
        for reason in NEGATIVE
    ],
]

OF_NO_TYPE = {
    "a user message with another class": message(message_class=MessageClass.REPORT.value),
    "a class of a receipt, and no receipt": message(message_class=MessageClass.ACK_RECEIVE.value),
    "a delivery receipt of another class": receipt(MessageClass.NORMAL, delivery=True),
    "a delivery and a commitment receipt": receipt(
        MessageClass.ACK_REACH_QUEUE, delivery=True, decision=True
    ),
    "a delivery and a stream receipt": receipt(
        MessageClass.ORDER_ACK, delivery=True, stream=1, ordinal=1, action=ACK
    ),
    "a stream receipt with a label of its own": receipt(MessageClass.ORDER_ACK, stream=1, ordinal=1),
    "a stream receipt of another class": receipt(MessageClass.ACK_RECEIVE, stream=1, ordinal=1, action=ACK),
    "yes, of a negative class": receipt(MessageClass.NACK_QUEUE_PURGED, decision=True),
    "no, of the positive class": receipt(MessageClass.ACK_RECEIVE, decision=False),
    "no, of a class for the way there": receipt(MessageClass.NACK_REACH_QUEUE_TIMEOUT, decision=False),
    "a final receipt: yes, of a negative class": receipt(
        MessageClass.NACK_QUEUE_PURGED, decision=True, stream=1, ordinal=1, action=ACK
    ),
    "a final receipt of the class of the others": receipt(
        MessageClass.ORDER_ACK, decision=True, stream=1, ordinal=1, action=ACK
    ),
}


@pytest.mark.parametrize(("srmp", "expected"), TYPES)
def test_types(srmp: wire.SrmpMessage, expected: MessageType) -> None:
    assert identify(srmp.envelope) is expected


@pytest.mark.parametrize("what", OF_NO_TYPE)
def test_what_is_of_no_type(what: str) -> None:
    assert identify(OF_NO_TYPE[what].envelope) is None


def test_only_stream_receipts_are_for_the_queue_manager_itself() -> None:
    assert {each for each in MessageType if each.is_stream_receipt} == {
        MessageType.STREAM_RECEIPT,
        MessageType.FINAL_STREAM_RECEIPT,
    }


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("4.1-simple", MessageType.USER),
        ("4.2-msmq-element", MessageType.USER),
        ("4.3-receipt-requests", MessageType.USER),
        ("4.3-delivery-receipt", MessageType.DELIVERY_RECEIPT),
        ("4.3-commitment-receipt", MessageType.COMMITMENT_RECEIPT),
        ("4.4-stream-1", MessageType.USER),
        ("4.4-stream-3", MessageType.USER),
        ("4.4-stream-receipt-1", MessageType.STREAM_RECEIPT),
        ("4.4-stream-receipt-3", MessageType.STREAM_RECEIPT),
    ],
)
def test_the_samples_of_section_4(name: str, expected: MessageType) -> None:
    assert identify(read_sample(name).envelope) is expected


def test_the_managers_own_receipts_have_the_label_that_makes_them_stream_receipts() -> None:
    # The manager knows no protocol, and writes final receipts with a label of its own (2.2.4.1).
    assert wire.LABEL_PREFIX + ORDER_ACK_LABEL == wire.STREAM_RECEIPT_ACTION
