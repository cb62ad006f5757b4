from __future__ import annotations

import struct
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanner.model.errors import StoreDamagedError
from lanner.model.message import (
    Acknowledgments,
    AuthenticationLevel,
    Delivery,
    Message,
    MessageSecurity,
    OrderReceipt,
    PrivacyLevel,
    SenderIdType,
    SoapParts,
    TransactionMarks,
)
from lanner.model.message_id import MessageId
from lanner.store.codec import (
    LARGE_BYTES,
    RECORD_HEADER,
    IdentityRow,
    MessageFlags,
    content_record,
    flags_of,
    message_from_record,
)

MAX_UINT32 = 0xFFFFFFFF
MAX_UINT64 = 0xFFFFFFFFFFFFFFFF

uint32 = st.integers(0, MAX_UINT32)
uint64 = st.integers(0, MAX_UINT64)
times = st.floats(allow_nan=False, allow_infinity=False)
message_ids = st.binary(min_size=20, max_size=20).map(MessageId)


def whole_record(message: Message) -> bytes:
    """A record as it lies in the store."""
    record = content_record(message)
    return record if isinstance(record, bytes) else b"".join(record)


def structs(kind: type[msgspec.Struct], **attributes: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Any value of a struct. An attribute that was added to it and not here fails at once."""
    assert set(attributes) == set(kind.__struct_fields__)
    return st.builds(kind, **attributes)


marks = structs(
    TransactionMarks,
    id=st.text(),
    first=st.booleans(),
    last=st.booleans(),
    stream=uint64,
    sequence=uint32,
    previous=uint32,
    final_ack_required=st.booleans(),
    status_queue=st.text(),
)
securities = structs(
    MessageSecurity,
    sender_id_type=st.sampled_from(SenderIdType),
    sender_id=st.binary(),
    sender_certificate=st.binary(),
    authentication_level=st.sampled_from(AuthenticationLevel),
    authenticated=st.booleans(),
    hash_algorithm=uint32,
    signature=st.binary(),
    multiple_destination_signature=st.binary(),
    provider_type=uint32,
    provider_name=st.text(),
    privacy_level=st.sampled_from(PrivacyLevel),
    encryption_algorithm=uint32,
    symmetric_key=st.binary(),
)
receipts = structs(OrderReceipt, machine=st.uuids(), stream=uint64, sequence=uint32)
soaps = structs(SoapParts, envelope=st.text(), header=st.text(), body=st.text(), compound=st.binary())
messages: st.SearchStrategy[Message] = structs(
    Message,
    body=st.binary(),
    body_type=uint32,
    extension=st.binary(),
    label=st.text(max_size=249),
    application_tag=uint32,
    correlation_id=st.none() | message_ids,
    priority=st.integers(0, 7),
    delivery=st.sampled_from(Delivery),
    message_class=st.integers(0, 0xFFFF),
    time_to_reach_queue=uint32,
    time_to_be_received=uint32,
    acknowledgments=st.integers(0, 255).map(Acknowledgments),
    administration_queue=st.text(),
    response_queue=st.text(),
    response_queues=st.text(),
    administration_queues=st.text(),
    positive_journaling=st.booleans(),
    negative_journaling=st.booleans(),
    dead_letter_queue=st.text(),
    tracing=st.booleans(),
    tracing_queue=st.none() | st.uuids(),
    allow_peek_when_locked=st.booleans(),
    destination_queue=st.text(),
    destination_queues=st.text(),
    id=message_ids,
    lookup_id=st.integers(0, 2**63 - 1),
    source_machine=st.none() | st.uuids(),
    destination_machine=st.none() | st.uuids(),
    sent_time=times,
    arrival_time=times,
    abort_count=uint32,
    transaction=st.none() | marks,
    security=st.none() | securities,
    soap=st.none() | soaps,
    order_receipt=st.none() | receipts,
    connector_type=st.none() | st.uuids(),
    connector_queue_manager=st.none() | st.uuids(),
)

SAMPLE = Message(
    id=MessageId(bytes(range(20))),
    label="größer",
    body=b"body",
    lookup_id=5,
    arrival_time=7.0,
    message_class=2,
    abort_count=1,
    correlation_id=MessageId(bytes(20)),
    transaction=TransactionMarks(id="t", stream=MAX_UINT64),
)


def identity_of(message: Message) -> IdentityRow:
    assert message.id is not None
    return (
        message.lookup_id,
        bytes(message.id),
        None if message.correlation_id is None else bytes(message.correlation_id),
        message.message_class,
        message.arrival_time,
        message.abort_count,
    )


@given(messages)
def test_round_trip(message: Message) -> None:
    restored = message_from_record(identity_of(message), whole_record(message))
    assert restored == message
    assert type(restored.id) is MessageId
    assert type(restored.correlation_id) is type(message.correlation_id)
    assert type(restored.acknowledgments) is Acknowledgments


@given(messages)
def test_round_trip_without_body(message: Message) -> None:
    restored = message_from_record(identity_of(message), whole_record(message), body=False)
    assert restored == msgspec.structs.replace(message, body=b"", extension=b"")


def test_columns_and_defaults_are_not_repeated() -> None:
    record = whole_record(SAMPLE)
    attributes_length, _ = RECORD_HEADER.unpack_from(record)
    attributes = msgspec.json.decode(record[RECORD_HEADER.size : RECORD_HEADER.size + attributes_length])
    assert attributes == {"label": "größer", "transaction": {"id": "t", "stream": MAX_UINT64}}


def test_layout_is_the_documented_one() -> None:
    record = whole_record(Message(label="x", body=b"BODY", extension=b"EXT"))
    assert record == struct.pack("<II", 13, 4) + b'{"label":"x"}' + b"BODY" + b"EXT"


@pytest.mark.parametrize("size", [LARGE_BYTES - 1, LARGE_BYTES])
def test_a_large_body_is_not_copied(size: int) -> None:
    message = Message(body=bytes(size), extension=b"EXT")
    record = content_record(message)
    assert isinstance(record, tuple) == (size == LARGE_BYTES)
    if isinstance(record, tuple):
        assert any(piece is message.body for piece in record)
    identity = identity_of(msgspec.structs.replace(message, id=SAMPLE.id))
    assert message_from_record(identity, whole_record(message)).body == message.body


@pytest.mark.parametrize(
    ("attributes", "flags"),
    [
        ({}, MessageFlags.NONE),
        ({"positive_journaling": True}, MessageFlags.POSITIVE_JOURNALING),
        ({"negative_journaling": True}, MessageFlags.NEGATIVE_JOURNALING),
        (
            {"acknowledgments": Acknowledgments.FULL_RECEIVE, "administration_queue": r".\admin"},
            MessageFlags.ACKNOWLEDGMENTS,
        ),
        ({"acknowledgments": Acknowledgments.FULL_RECEIVE}, MessageFlags.NONE),
        ({"administration_queue": r".\admin"}, MessageFlags.NONE),
        ({"transaction": TransactionMarks()}, MessageFlags.TRANSACTIONAL),
        ({"allow_peek_when_locked": True}, MessageFlags.PEEK_WHEN_LOCKED),
    ],
)
def test_flags(attributes: dict[str, Any], flags: MessageFlags) -> None:
    assert flags_of(Message(**attributes)) == flags


@given(messages)
def test_flags_add_up(message: Message) -> None:
    flags = MessageFlags(flags_of(message))
    assert bool(flags & MessageFlags.POSITIVE_JOURNALING) == message.positive_journaling
    assert bool(flags & MessageFlags.NEGATIVE_JOURNALING) == message.negative_journaling
    assert bool(flags & MessageFlags.TRANSACTIONAL) == message.is_transactional
    assert bool(flags & MessageFlags.PEEK_WHEN_LOCKED) == message.allow_peek_when_locked
    assert bool(flags & MessageFlags.ACKNOWLEDGMENTS) == bool(
        message.acknowledgments and message.administration_queue
    )


@pytest.mark.parametrize("with_body", [True, False])
def test_truncated_anywhere(with_body: bool) -> None:
    record = whole_record(SAMPLE)
    for length in range(len(record)):
        with pytest.raises(StoreDamagedError, match="lookup identifier 5 cannot be read"):
            message_from_record(identity_of(SAMPLE), record[:length], body=with_body)


@given(st.data())
def test_flipped_bits_raise_nothing_else(data: st.DataObject) -> None:
    message = data.draw(messages)
    record = bytearray(whole_record(message))
    for bit in data.draw(st.lists(st.integers(0, 8 * len(record) - 1), min_size=1, max_size=8)):
        record[bit // 8] ^= 1 << bit % 8
    with suppress(StoreDamagedError):
        assert message_from_record(identity_of(message), bytes(record)).id == message.id


@given(st.binary())
def test_any_bytes_raise_nothing_else(record: bytes) -> None:
    with suppress(StoreDamagedError):
        assert message_from_record(identity_of(SAMPLE), record).id == SAMPLE.id


@pytest.mark.parametrize(
    "attributes",
    [b"", b"[]", b"{", b'{"label":1}', b'{"label":"\xff"}', b'{"priority":"x"}', b'{"delivery":9}', b"{}{}"],
)
def test_wrong_attributes(attributes: bytes) -> None:
    record = RECORD_HEADER.pack(len(attributes), 0) + attributes
    with pytest.raises(StoreDamagedError):
        message_from_record(identity_of(SAMPLE), record)
