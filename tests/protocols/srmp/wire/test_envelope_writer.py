from __future__ import annotations

import msgspec
import pytest
from tests.protocols.srmp.wire.samples import QM

from lanner.model.message_id import MessageId
from lanner.protocols.srmp.wire import (
    NEVER,
    NO_IDENTIFIER,
    STREAM_RECEIPT_ACTION,
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
    Stream,
    StreamId,
    StreamReceipt,
    StreamStart,
    UnknownHeader,
    WireFault,
)
from lanner.protocols.srmp.wire.envelope_writer import write_envelope

GUID = "caf195ea-615c-4264-ae08-11a4e60194c0"
OPENING = (
    '<se:Envelope xmlns:se="http://schemas.xmlsoap.org/soap/envelope/" xmlns="http://schemas.xmlsoap.org/srmp/">'
    '<se:Header><path xmlns="http://schemas.xmlsoap.org/rp/" se:mustUnderstand="1">'
)
CLOSING = "</se:Header><se:Body></se:Body></se:Envelope>"
MSMQ = Msmq(message_class=0, priority=3, body_type=0, source_qm=QM, ttrq=0)
FULL = Envelope(
    path=Path(action="MSMQ:a<b", to="https://host/msmq/q", id=MessageId.of(QM, 7), via="http://host/r?a&b"),
    properties=Properties(expires_at=NEVER, sent_at=0),
    services=Services(
        durable=True,
        delivery_receipt_request=DeliveryReceiptRequest(send_to="http://host/d"),
        commitment_receipt_request=CommitmentReceiptRequest(
            send_to="http://host/c", positive_only=True, negative_only=True
        ),
    ),
    stream=Stream(
        stream_id=StreamId(QM, 5),
        current=1,
        previous=9,
        start=StreamStart(send_receipts_to="http://host/s", expires_at=0),
        end=True,
        receipt_request=True,
    ),
    msmq=Msmq(
        message_class=1,
        priority=2,
        journal=True,
        dead_letter=True,
        correlation=NO_IDENTIFIER,
        trace=True,
        connector_type=QM,
        app=3,
        body_type=4,
        hash_algorithm=5,
        eod=Eod(first=True, last=True, connector_id=QM),
        provider=Provider(type=6, name="N&N"),
        source_qm=QM,
        destination_mqf=("http://a", "http://b"),
        admin_mqf=("http://c",),
        response_mqf=("http://d",),
        ttrq=1,
    ),
)


def test_everything_in_the_order_of_the_specification() -> None:
    assert write_envelope(FULL) == (
        f"{OPENING}<action>MSMQ:a&lt;b</action><to>https://host/msmq/q</to><id>uuid:7@{GUID}</id>"
        "<rev><via>http://host/r?a&amp;b</via></rev></path>"
        '<properties se:mustUnderstand="1"><expiresAt>20380119T031407</expiresAt>'
        "<sentAt>19700101T000000</sentAt></properties>"
        '<services se:mustUnderstand="1"><durable/>'
        "<deliveryReceiptRequest><sendTo>http://host/d</sendTo></deliveryReceiptRequest>"
        "<commitmentReceiptRequest><sendTo>http://host/c</sendTo><positiveOnly/><negativeOnly/>"
        "</commitmentReceiptRequest></services>"
        # What the samples alone have, end, streamReceiptRequest and the start's expiresAt, is not sent.
        f'<stream se:mustUnderstand="1"><streamId>uid:{GUID}\\5</streamId><current>1</current>'
        "<previous>9</previous><start><sendReceiptsTo>http://host/s</sendReceiptsTo></start></stream>"
        '<Msmq xmlns="msmq.namespace.xml"><Class>1</Class><Priority>2</Priority><Journal/><DeadLetter/>'
        "<Correlation>AAAAAAAAAAAAAAAAAAAAAAEAAAA=</Correlation><Trace/>"
        f"<ConnectorType>{GUID}</ConnectorType><App>3</App><BodyType>4</BodyType>"
        "<HashAlgorithm>5</HashAlgorithm>"
        f"<Eod><First/><Last/><ConnectorId>{GUID}</ConnectorId></Eod>"
        "<Provider><Type>6</Type><Name>N&amp;N</Name></Provider>"
        f"<SourceQmGuid>{GUID}</SourceQmGuid><DestinationMqf>http://a http://b </DestinationMqf>"
        "<AdminMqf>http://c </AdminMqf><ResponseMqf>http://d </ResponseMqf>"
        f"<TTrq>19700101T000001</TTrq></Msmq>{CLOSING}"
    )


def test_what_is_not_there_is_not_written() -> None:
    envelope = Envelope(
        path=Path(action="", to="MSMQ:MULTICAST=234.1.1.1:8001", id=NO_IDENTIFIER, via=""),
        properties=Properties(expires_at=1),
        services=Services(),
        unknown=(UnknownHeader(namespace="urn:x", name="y"),),
    )
    assert write_envelope(envelope) == (
        f"{OPENING}<action></action><to>MSMQ:MULTICAST=234.1.1.1:8001</to>"
        "<id>uuid:1@00000000-0000-0000-0000-000000000000</id></path>"
        '<properties se:mustUnderstand="1"><expiresAt>19700101T000001</expiresAt></properties>'
        f'<services se:mustUnderstand="1"></services>{CLOSING}'
    )


def test_receipts_stand_where_the_samples_have_them() -> None:
    envelope = Envelope(
        path=Path(action=STREAM_RECEIPT_ACTION, to="http://host/r", id=MessageId.of(QM, 8)),
        properties=Properties(expires_at=1),
        delivery_receipt=DeliveryReceipt(received_at=2, id=NO_IDENTIFIER),
        stream_receipt=StreamReceipt(stream_id=StreamId(QM, 5), last_ordinal=6),
        commitment_receipt=CommitmentReceipt(decided_at=3, is_positive=False, id=NO_IDENTIFIER),
        msmq=MSMQ,
    )
    identifier = "<id>uuid:1@00000000-0000-0000-0000-000000000000</id>"
    assert (
        f"</properties><deliveryReceipt><receivedAt>19700101T000002</receivedAt>{identifier}</deliveryReceipt>"
        f"<streamReceipt><streamId>uid:{GUID}\\5</streamId><lastOrdinal>6</lastOrdinal></streamReceipt>"
        f"<commitmentReceipt><decidedAt>19700101T000003</decidedAt><decision>negative</decision>{identifier}"
        "</commitmentReceipt><Msmq "
    ) in write_envelope(envelope)


@pytest.mark.parametrize(
    ("envelope", "section"),
    [
        (msgspec.structs.replace(FULL, path=msgspec.structs.replace(FULL.path, action="\x01")), "2.2.4.1"),
        (msgspec.structs.replace(FULL, path=msgspec.structs.replace(FULL.path, to="host/q")), "2.2.4.2"),
        (msgspec.structs.replace(FULL, path=msgspec.structs.replace(FULL.path, via="\x00")), "2.2.4.4"),
        (msgspec.structs.replace(FULL, properties=Properties(expires_at=1 << 50)), "2.2.1.2"),
        (
            msgspec.structs.replace(FULL, msmq=msgspec.structs.replace(MSMQ, admin_mqf=("http://a b",))),
            "2.2.6.15",
        ),
        (
            msgspec.structs.replace(FULL, msmq=msgspec.structs.replace(MSMQ, response_mqf=("",))),
            "2.2.6.16",
        ),
    ],
)
def test_what_cannot_be_written(envelope: Envelope, section: str) -> None:
    with pytest.raises(WireFault) as caught:
        write_envelope(envelope)
    assert caught.value.section == section
