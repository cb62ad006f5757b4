from __future__ import annotations

import pytest
from tests.protocols.srmp.wire.samples import QM

from lanner.model.message_id import MessageId
from lanner.protocols.srmp.wire import (
    NO_IDENTIFIER,
    Envelope,
    Eod,
    Provider,
    UnknownHeader,
    WireFault,
)
from lanner.protocols.srmp.wire.envelope_reader import read_envelope
from lanner.protocols.srmp.wire.faults import RAISE, FaultCollector

ENVELOPE = (
    '<se:Envelope xmlns:se="http://schemas.xmlsoap.org/soap/envelope/" xmlns="http://schemas.xmlsoap.org/srmp/">'
    "<se:Header>{blocks}</se:Header><se:Body></se:Body></se:Envelope>"
)
PATH = (
    '<path xmlns="http://schemas.xmlsoap.org/rp/" se:mustUnderstand="1"><action>MSMQ:label</action>'
    f"<to>http://host/msmq/q</to><id>uuid:7@{QM}</id></path>"
)
PROPERTIES = (
    '<properties se:mustUnderstand="1"><expiresAt>20070609T164419</expiresAt>'
    "<sentAt>20070608T164419</sentAt></properties>"
)
MSMQ = (
    '<Msmq xmlns="msmq.namespace.xml"><Class>0</Class><Priority>3</Priority><BodyType>0</BodyType>'
    f"<SourceQmGuid>{QM}</SourceQmGuid><TTrq>20070723T031140</TTrq></Msmq>"
)
STREAM = (
    f'<stream se:mustUnderstand="1"><streamId>uid:{QM}\\5</streamId><current>1</current>'
    "<start><sendReceiptsTo>http://host/r</sendReceiptsTo></start></stream>"
)
SERVICES = (
    '<services se:mustUnderstand="1"><durable/>'
    "<deliveryReceiptRequest><sendTo>http://host/d</sendTo></deliveryReceiptRequest>"
    "<commitmentReceiptRequest><sendTo>http://host/c</sendTo><positiveOnly/></commitmentReceiptRequest>"
    "</services>"
)
RECEIPTS = (
    f"<deliveryReceipt><receivedAt>20070618T210655</receivedAt><id>uuid:1@{QM}</id></deliveryReceipt>"
    f"<streamReceipt><streamId>uid:{QM}\\5</streamId><lastOrdinal>2</lastOrdinal></streamReceipt>"
    "<commitmentReceipt><decidedAt>20070618T210908</decidedAt><decision>negative</decision>"
    f"<id>uuid:1@{QM}</id></commitmentReceipt>"
)
WHOLE = PATH + PROPERTIES + SERVICES + STREAM + RECEIPTS + MSMQ


def _read(blocks: str) -> Envelope:
    return read_envelope(ENVELOPE.format(blocks=blocks).encode(), RAISE)


def _deviations(blocks: str) -> list[tuple[str, str]]:
    sink = FaultCollector()
    read_envelope(ENVELOPE.format(blocks=blocks).encode(), sink)
    assert sink.is_acceptable
    return [(fault.section, fault.element) for fault in sink.faults]


def test_order_of_blocks_and_children_means_nothing() -> None:
    backwards = MSMQ + RECEIPTS + STREAM + SERVICES + PROPERTIES + PATH
    assert _read(backwards) == _read(WHOLE)
    swapped = WHOLE.replace(
        "<Class>0</Class><Priority>3</Priority>", "<Priority>3</Priority><Class>0</Class>"
    )
    assert _read(swapped) == _read(WHOLE)


def test_namespaces_decide_and_not_prefixes() -> None:
    data = (
        '<Envelope xmlns="http://schemas.xmlsoap.org/soap/envelope/" '
        'xmlns:a="http://schemas.xmlsoap.org/rp/" xmlns:b="http://schemas.xmlsoap.org/srmp/" xmlns:s="http://schemas.xmlsoap.org/soap/envelope/">'
        '<Header><a:path s:mustUnderstand="1"><a:action>MSMQ:label</a:action><a:to>http://host/msmq/q</a:to>'
        f"<a:id>uuid:7@{QM}</a:id></a:path>"
        '<b:properties s:mustUnderstand="1"><b:expiresAt>20070609T164419</b:expiresAt>'
        "<b:sentAt>20070608T164419</b:sentAt></b:properties></Header><Body/></Envelope>"
    )
    assert read_envelope(data.encode(), RAISE) == _read(PATH + PROPERTIES)


def test_the_right_name_in_a_wrong_namespace_is_another_element() -> None:
    with pytest.raises(WireFault) as caught:
        _read(PATH.replace("/rp/", "/other/") + PROPERTIES)
    assert (caught.value.section, caught.value.element) == ("2.2.4", "path")


@pytest.mark.parametrize(
    ("element", "section"),
    [
        ("path", "2.2.4"),
        ("action", "2.2.4.1"),
        ("to", "2.2.4.2"),
        ("properties", "2.2.5.1"),
        ("expiresAt", "2.2.5.1.1"),
        ("streamId", "2.2.5.3.1"),
        ("current", "2.2.5.3.2"),
        ("sendReceiptsTo", "2.2.5.3.4"),
        ("receivedAt", "2.2.5.4"),
        ("decidedAt", "2.2.5.5"),
        ("decision", "2.2.5.5"),
        ("lastOrdinal", "2.2.5.6"),
        ("Class", "2.2.6.1"),
        ("Priority", "2.2.6.2"),
        ("BodyType", "2.2.6.9"),
        ("SourceQmGuid", "2.2.6.13"),
        ("TTrq", "2.2.6.17"),
        ("Msmq", "2.2.5.3"),
    ],
)
def test_what_must_be_there_and_is_not(element: str, section: str) -> None:
    start = WHOLE.index(f"<{element}")
    end = WHOLE.index(f"</{element}>") + len(element) + 3
    with pytest.raises(WireFault) as caught:
        _read(WHOLE[:start] + WHOLE[end:])
    assert caught.value.section == section


@pytest.mark.parametrize("request_name", ["deliveryReceiptRequest", "commitmentReceiptRequest"])
def test_a_receipt_request_needs_an_address(request_name: str) -> None:
    start = WHOLE.index("<sendTo>", WHOLE.index(request_name))
    end = WHOLE.index("</sendTo>", start) + len("</sendTo>")
    with pytest.raises(WireFault) as caught:
        _read(WHOLE[:start] + WHOLE[end:])
    assert caught.value.section in ("2.2.5.2.2", "2.2.5.2.3")
    assert caught.value.element == "sendTo"


def test_the_identifier_must_be_there_though_it_is_not_looked_at() -> None:
    assert _read(PATH.replace(f"uuid:7@{QM}", "whatever") + PROPERTIES).path.id == NO_IDENTIFIER
    with pytest.raises(WireFault) as caught:
        _read(PATH.replace(f"<id>uuid:7@{QM}</id>", "") + PROPERTIES)
    assert caught.value.section == "2.2.4.3"


@pytest.mark.parametrize(
    ("old", "new", "section"),
    [
        ("http://host/msmq/q", "ftp://host/q", "2.2.4.2"),
        ("uuid:7@", "uid:7@", "2.2.4.3"),
        ("uuid:7@", "uuid:4294967296@", "2.2.4.3"),
        ("uuid:7@", "uuid:@", "2.2.4.3"),
        ("20070609T164419", "2007-06-09T16:44:19", "2.2.5.1.1"),
        ("20070609T164419", "20070631T164419", "2.2.5.1.1"),
        ("20070608T164419", "", "2.2.5.1.2"),
        ("uid:", "uuid:", "2.2.5.3.1"),
        ("<current>1<", "<current>one<", "2.2.5.3.2"),
        ("<current>1<", "<current>0<", "2.2.5.3.2"),
        ("<current>1<", "<current>18446744073709551616<", "2.2.5.3.2"),
        ("</current>", "</current><previous>x</previous>", "2.2.5.3.3"),
        ("20070618T210655", "now", "2.2.5.4"),
        (">negative<", ">maybe<", "2.2.5.5"),
        ("<lastOrdinal>2", "<lastOrdinal>-2", "2.2.5.6"),
        ("<Class>0", "<Class>65536", "2.2.6.1"),
        ("<Priority>3", "<Priority>8", "2.2.6.2"),
        ("<BodyType>0", "<Correlation>AAAA</Correlation><BodyType>0", "2.2.6.5"),
        ("<BodyType>0", "<Correlation>A*A=</Correlation><BodyType>0", "2.2.6.5"),
        ("<BodyType>0", "<ConnectorType>{x}</ConnectorType><BodyType>0", "2.2.6.7"),
        ("<BodyType>0", "<App>4294967296</App><BodyType>0", "2.2.6.8"),
        ("<BodyType>0", "<BodyType>\u0661", "2.2.6.9"),
        ("<BodyType>0", "<HashAlgorithm>1_0</HashAlgorithm><BodyType>0", "2.2.6.10"),
        ("<BodyType>0", "<Eod><ConnectorId>1</ConnectorId></Eod><BodyType>0", "2.2.6.11"),
        ("<BodyType>0", "<Provider><Type>x</Type><Name>n</Name></Provider><BodyType>0", "2.2.6.12"),
        ("<SourceQmGuid>", "<SourceQmGuid>{", "2.2.6.13"),
        ("<TTrq>", "<DestinationMqf> </DestinationMqf><TTrq>", "2.2.6.14"),
        ("<TTrq>", "<AdminMqf></AdminMqf><TTrq>", "2.2.6.15"),
        ("<TTrq>", "<ResponseMqf/><TTrq>", "2.2.6.16"),
        ("20070723T031140", "20070723", "2.2.6.17"),
    ],
)
def test_what_is_malformed(old: str, new: str, section: str) -> None:
    assert old in WHOLE
    with pytest.raises(WireFault) as caught:
        _read(WHOLE.replace(old, new))
    assert caught.value.section == section
    assert caught.value.message


@pytest.mark.parametrize("block", ["path", "properties", "services", "stream"])
def test_blocks_that_must_be_marked(block: str) -> None:
    start = WHOLE.index(f"<{block}")
    damaged = WHOLE[:start] + WHOLE[start:].replace(' se:mustUnderstand="1"', "", 1)
    with pytest.raises(WireFault, match="mustUnderstand"):
        _read(damaged)
    with pytest.raises(WireFault, match="mustUnderstand"):
        _read(WHOLE[:start] + WHOLE[start:].replace('mustUnderstand="1"', 'mustUnderstand="0"', 1))


@pytest.mark.parametrize("block", [PATH, PROPERTIES, SERVICES, STREAM, MSMQ])
def test_nothing_may_be_there_twice(block: str) -> None:
    with pytest.raises(WireFault, match="more than once"):
        _read(WHOLE + block)


def test_children_may_not_be_there_twice() -> None:
    with pytest.raises(WireFault, match="more than once"):
        _read(WHOLE.replace("<Class>0</Class>", "<Class>0</Class><Class>1</Class>"))


@pytest.mark.parametrize(
    ("document", "element"),
    [
        ("<Envelope/>", "Envelope"),
        ('<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"/>', "Header"),
        ('<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Body/></e:Envelope>', "Header"),
        (ENVELOPE.replace("<se:Body></se:Body>", "").format(blocks=WHOLE), "Body"),
        (ENVELOPE.replace("<se:Body>", "<other/><se:Body>").format(blocks=WHOLE), "Body"),
    ],
)
def test_the_soap_frame(document: str, element: str) -> None:
    with pytest.raises(WireFault) as caught:
        read_envelope(document.encode(), RAISE)
    assert (caught.value.section, caught.value.element) == ("2.2.2", element)


def test_unknown_blocks_are_kept_with_their_mark() -> None:
    envelope = _read(
        PATH
        + '<x xmlns="urn:a" se:mustUnderstand="1"/><y xmlns="urn:b"/><z se:mustUnderstand="0"/>'
        + PROPERTIES
    )
    assert envelope.unknown == (
        UnknownHeader(namespace="urn:a", name="x", must_understand=True),
        UnknownHeader(namespace="urn:b", name="y"),
        UnknownHeader(namespace="http://schemas.xmlsoap.org/srmp/", name="z"),
    )
    assert envelope.not_understood == envelope.unknown[0]
    assert _read(PATH + PROPERTIES).not_understood is None


def test_what_must_be_ignored_is() -> None:
    routed = PATH.replace(
        "</path>", "<fwd><via>x</via></fwd><from>a</from><relatesTo>b</relatesTo><fault>c</fault></path>"
    )
    replied = PROPERTIES.replace("</properties>", "<inReplyTo>x</inReplyTo></properties>")
    assert _read(routed + replied) == _read(PATH + PROPERTIES)


def test_an_empty_response_queue_is_none() -> None:
    for via in ("<via/>", "<via></via>", "<via> </via>"):
        path = PATH.replace("</path>", f"<rev>{via}</rev></path>")
        assert _read(path + PROPERTIES).path.via is None
    with pytest.raises(WireFault) as caught:
        _read(PATH.replace("</path>", "<rev></rev></path>") + PROPERTIES)
    assert caught.value.section == "2.2.4.4"
    with pytest.raises(WireFault, match="more than once"):
        _read(
            PATH.replace("</path>", "<rev><via>http://a</via><via>http://b</via></rev></path>") + PROPERTIES
        )


def test_all_of_msmq() -> None:
    msmq = _read(
        PATH
        + PROPERTIES
        + '<Msmq xmlns="msmq.namespace.xml"><Class>255</Class><Priority>7</Priority><Journal/><DeadLetter/>'
        "<Correlation>AAAAAAAAAAAAAAAAAAAAAAEAAAA=</Correlation><Trace/>"
        "<ConnectorType>FD74B8EB-2af7-4ac5-9405-074e315df392</ConnectorType><App>36</App><BodyType>8</BodyType>"
        "<HashAlgorithm>32772</HashAlgorithm><Eod><First/><Last/>"
        f"<ConnectorId>{QM}</ConnectorId></Eod><Provider><Type>1234</Type><Name> A name </Name></Provider>"
        f"<SourceQmGuid>{QM}</SourceQmGuid>"
        "<DestinationMqf>\n http://Machine1/a\n http://Machine2/a </DestinationMqf>"
        "<AdminMqf>http://Machine1/b</AdminMqf><ResponseMqf>http://Machine1/c </ResponseMqf>"
        "<TTrq>20380119T031407</TTrq></Msmq>"
    ).msmq
    assert msmq is not None
    assert (msmq.message_class, msmq.priority, msmq.app, msmq.body_type) == (255, 7, 36, 8)
    assert (msmq.journal, msmq.dead_letter, msmq.trace) == (True, True, True)
    assert msmq.correlation == NO_IDENTIFIER
    assert str(msmq.connector_type) == "fd74b8eb-2af7-4ac5-9405-074e315df392"
    assert msmq.hash_algorithm == 32772
    assert msmq.eod == Eod(first=True, last=True, connector_id=QM)
    assert msmq.provider == Provider(type=1234, name=" A name ")
    assert msmq.destination_mqf == ("http://Machine1/a", "http://Machine2/a")
    assert msmq.admin_mqf == ("http://Machine1/b",)
    assert msmq.response_mqf == ("http://Machine1/c",)
    assert msmq.ttrq == 0x7FFFFFFF


def test_text_is_read_as_xml_has_it() -> None:
    action = "<action>MSMQ:a&amp;b &#x20AC;<![CDATA[<c>]]><!-- d -->\r\n </action>"
    path = _read(PATH.replace("<action>MSMQ:label</action>", action) + PROPERTIES).path
    assert path.label == "a&b \u20ac<c>\n "


def test_deviations_are_accepted_and_told() -> None:
    good = WHOLE.replace("uuid:1@", "uuid:9@")
    assert _deviations(good) == []
    assert _deviations(PATH + PROPERTIES) == [("2.2.6", "Msmq")]
    assert _deviations(good.replace("<stream ", "<Stream ").replace("</stream>", "</Stream>")) == [
        ("2.2.5.3", "Stream")
    ]
    assert _deviations(good.replace("<durable/>", "")) == [("2.2.5.2.1", "durable")]
    assert _deviations(good.replace("</start>", "</start><end/><streamReceiptRequest/>")) == [
        ("2.2.5.3", "end"),
        ("2.2.5.3", "streamReceiptRequest"),
    ]
    assert _deviations(good.replace("MSMQ:label", "label")) == [("2.2.4.1", "action")]
    assert _deviations(good.replace("<current>1<", "<current>2<")) == [("2.2.5.3.4", "start")]
    assert _deviations(good.replace("http://host/d", "host/d")) == [("2.2.5.2.2", "sendTo")]
    assert _deviations(good.replace(f"uuid:7@{QM}", f"uuid:7@{'0' * 8}{str(QM)[8:]}")) == [("2.2.4.3", "id")]


def test_the_id_of_a_message_with_msmq() -> None:
    assert _read(WHOLE).path.id == MessageId.of(QM, 7)
