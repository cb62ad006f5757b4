"""Messages of every shape, for hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

from lanner.model.message_id import MessageId
from lanner.protocols.srmp.wire import (
    Attachment,
    CommitmentReceipt,
    CommitmentReceiptRequest,
    DeliveryReceipt,
    DeliveryReceiptRequest,
    Envelope,
    Eod,
    Msmq,
    Path,
    Properties,
    Provider,
    Services,
    SrmpMessage,
    Stream,
    StreamId,
    StreamReceipt,
    StreamStart,
)

MAX_UINT64 = 0xFFFFFFFFFFFFFFFF

# Everything that XML 1.0 can hold, line breaks and markup included.
xml_text = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\ufffe\uffff").filter(
        lambda c: c >= " " or c in "\t\n\r"
    ),
    max_size=40,
)
# Names of queues: no white space, which lists could not hold.
name_tail = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"], exclude_characters="\ufffe\uffff"),
    max_size=20,
)
http_uris = st.builds("{}{}".format, st.sampled_from(["http://host/msmq/", "https://host:8443/"]), name_tail)
destinations = http_uris | st.just("MSMQ:MULTICAST=234.1.1.1:8001")
uint16 = st.integers(0, 0xFFFF)
uint32 = st.integers(0, 0xFFFFFFFF)
uint64 = st.integers(0, MAX_UINT64)
dates = st.integers(-62135596800, 253402300799) | st.just(0x7FFFFFFF)
identifiers = st.builds(MessageId.of, st.uuids(), uint32)
stream_ids = st.builds(StreamId, st.uuids(), uint64)
name_lists = st.lists(http_uris, max_size=3).map(tuple)

paths = st.builds(
    Path,
    action=xml_text | xml_text.map("MSMQ:".__add__),
    to=destinations,
    id=identifiers,
    via=st.none() | http_uris | st.just("MSMQ:DIRECT=OS:host\\private$\\answers"),
)
properties = st.builds(Properties, expires_at=dates, sent_at=st.none() | dates)
services = st.builds(
    Services,
    durable=st.booleans(),
    delivery_receipt_request=st.none() | st.builds(DeliveryReceiptRequest, send_to=http_uris),
    commitment_receipt_request=st.none()
    | st.builds(
        CommitmentReceiptRequest,
        send_to=http_uris,
        positive_only=st.booleans(),
        negative_only=st.booleans(),
    ),
)
streams = st.builds(
    Stream,
    stream_id=stream_ids,
    current=st.integers(1, MAX_UINT64),
    previous=uint64,
    start=st.none() | st.builds(StreamStart, send_receipts_to=http_uris),
)
msmq_elements = st.builds(
    Msmq,
    message_class=uint16,
    priority=st.integers(0, 7),
    body_type=uint32,
    source_qm=st.uuids(),
    ttrq=dates,
    journal=st.booleans(),
    dead_letter=st.booleans(),
    correlation=st.none() | identifiers,
    trace=st.booleans(),
    connector_type=st.none() | st.uuids(),
    app=uint32,
    hash_algorithm=uint32,
    eod=st.none()
    | st.builds(Eod, first=st.booleans(), last=st.booleans(), connector_id=st.none() | st.uuids()),
    provider=st.none() | st.builds(Provider, type=uint32, name=xml_text),
    destination_mqf=name_lists,
    admin_mqf=name_lists,
    response_mqf=name_lists,
)
envelopes = st.builds(
    Envelope,
    path=paths,
    properties=properties,
    services=st.none() | services,
    stream=st.none() | streams,
    delivery_receipt=st.none() | st.builds(DeliveryReceipt, received_at=dates, id=identifiers),
    commitment_receipt=st.none()
    | st.builds(CommitmentReceipt, decided_at=dates, is_positive=st.booleans(), id=identifiers),
    stream_receipt=st.none() | st.builds(StreamReceipt, stream_id=stream_ids, last_ordinal=uint64),
    msmq=msmq_elements,
    signature=st.none(),
    unknown=st.just(()),
)
"""Envelopes with everything but a signature."""

plain_text = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters='<&>"\ufffe\uffff'), max_size=30
)
plain_uris = st.sampled_from(["http://host/msmq/q", "https://host:8443/msmq/private$/\u00e9?a=b"])
plain_envelopes = st.builds(
    Envelope,
    path=st.builds(
        Path,
        action=plain_text,
        to=plain_uris | st.just("MSMQ:MULTICAST=234.1.1.1:8001"),
        id=identifiers,
        via=st.none() | plain_uris,
    ),
    properties=properties,
    services=st.none()
    | st.builds(
        Services,
        durable=st.booleans(),
        delivery_receipt_request=st.none() | st.builds(DeliveryReceiptRequest, send_to=plain_uris),
        commitment_receipt_request=st.none()
        | st.builds(
            CommitmentReceiptRequest,
            send_to=plain_uris,
            positive_only=st.booleans(),
            negative_only=st.booleans(),
        ),
    ),
    stream=st.none()
    | st.builds(
        Stream,
        stream_id=stream_ids,
        current=st.integers(1, MAX_UINT64),
        previous=uint64,
        start=st.none() | st.builds(StreamStart, send_receipts_to=plain_uris),
    ),
    delivery_receipt=st.none() | st.builds(DeliveryReceipt, received_at=dates, id=identifiers),
    commitment_receipt=st.none()
    | st.builds(CommitmentReceipt, decided_at=dates, is_positive=st.booleans(), id=identifiers),
    stream_receipt=st.none() | st.builds(StreamReceipt, stream_id=stream_ids, last_ordinal=uint64),
    msmq=st.builds(
        Msmq,
        message_class=uint16,
        priority=st.integers(0, 7),
        body_type=uint32,
        source_qm=st.uuids(),
        ttrq=dates,
        journal=st.booleans(),
        dead_letter=st.booleans(),
        correlation=st.none() | identifiers,
        trace=st.booleans(),
        connector_type=st.none(),
        app=uint32,
        hash_algorithm=uint32,
        eod=st.none() | st.builds(Eod, first=st.booleans(), last=st.booleans(), connector_id=st.none()),
        provider=st.none(),
        destination_mqf=st.just(()),
        admin_mqf=st.just(()),
        response_mqf=st.just(()),
    ),
    signature=st.none(),
    unknown=st.just(()),
)
"""Envelopes that the fast path knows, whatever of its optional parts is there."""

messages = st.builds(
    SrmpMessage,
    envelope=envelopes,
    body=st.binary(max_size=200) | st.just(b"--MSMQ - SOAP boundary, 1801--\r\n"),
    extension=st.none() | st.binary(max_size=50),
    content_suffix=st.uuids().map(str),
    attachments=st.lists(
        st.builds(
            Attachment,
            content_id=st.just("picture@1"),
            content_type=st.just("image/png"),
            data=st.binary(max_size=50),
        ),
        max_size=2,
    ).map(tuple),
    raw_envelope=st.just(b""),
)
"""Whole messages with a payload."""
