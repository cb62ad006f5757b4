"""An envelope of exactly the shape that MC-MQSRM 3.1.7.2.4 writes, read with one regular expression.

Every queue manager that follows 3.1.7.2.4 to the letter sends this shape, and the full parser needs several
times as long. The expression is strict so that it can be trusted: whatever it does not match, down to an
escaped character or a line break, and whatever has a value out of range, is left to the full parser. A
property test holds that both agree on everything that this one accepts.
"""

from __future__ import annotations

import re
from typing import Any

from lanner.protocols.srmp.wire import namespaces
from lanner.protocols.srmp.wire.dates import read_date
from lanner.protocols.srmp.wire.elements import (
    CommitmentReceipt,
    CommitmentReceiptRequest,
    DeliveryReceipt,
    DeliveryReceiptRequest,
    Envelope,
    Eod,
    Msmq,
    Path,
    Properties,
    Services,
    Stream,
    StreamId,
    StreamReceipt,
    StreamStart,
)
from lanner.protocols.srmp.wire.limits import MAX_ENVELOPE_BYTES
from lanner.protocols.srmp.wire.msmq_reader import HIGHEST_PRIORITY
from lanner.protocols.srmp.wire.values import (
    MAX_UINT16,
    MAX_UINT32,
    MAX_UINT64,
    make_message_id,
    read_correlation,
    read_guid,
)

__all__ = ["match_envelope"]

_Groups = tuple[Any, ...]
"""Some groups of a match: text, or None for what is not there."""

# Characters that stand for themselves: no markup, nothing escaped, no line breaks, nothing that XML forbids.
_TEXT = r"[^<&>\x00-\x1f\ufffe\uffff]*"
_URI = r"[^<&>\x00-\x20\ufffe\uffff]+"
_NUMBER = r"[0-9]{1,20}"
# Loose on purpose: read_guid and read_date look closer, and remember what they have seen.
_GUID = r"[0-9A-Fa-f-]{36}"
_DATE = r"[0-9T]{15}"

_REV = rf"(?:<rev><via>({_URI})</via></rev>)?"
_PATH = (
    rf'<path xmlns="{re.escape(namespaces.ROUTING)}" se:mustUnderstand="1"><action>({_TEXT})</action>'
    # The samples' receipts have the rev before the id.
    rf"<to>((?:https?://|MSMQ:MULTICAST=){_URI})</to>{_REV}<id>uuid:({_NUMBER})@({_GUID})</id>{_REV}</path>"
)
_PROPERTIES = (
    rf'<properties se:mustUnderstand="1"><expiresAt>({_DATE})</expiresAt>'
    rf"(?:<sentAt>({_DATE})</sentAt>)?</properties>"
)
_SERVICES = (
    r'(?:(<services se:mustUnderstand="1">)(<durable/>)?'
    rf"(?:<deliveryReceiptRequest><sendTo>({_URI})</sendTo></deliveryReceiptRequest>)?"
    rf"(?:<commitmentReceiptRequest><sendTo>({_URI})</sendTo>(<positiveOnly/>)?(<negativeOnly/>)?"
    r"</commitmentReceiptRequest>)?</services>)?"
)
_STREAM = (
    rf'(?:<stream se:mustUnderstand="1"><streamId>uid:({_GUID})\\({_NUMBER})</streamId>'
    rf"<current>({_NUMBER})</current>(?:<previous>({_NUMBER})</previous>)?"
    rf"(?:<start><sendReceiptsTo>({_URI})</sendReceiptsTo></start>)?</stream>)?"
)
_RECEIPTS = (
    rf"(?:<deliveryReceipt><receivedAt>({_DATE})</receivedAt>"
    rf"<id>uuid:({_NUMBER})@({_GUID})</id></deliveryReceipt>)?"
    rf"(?:<streamReceipt><streamId>uid:({_GUID})\\({_NUMBER})</streamId>"
    rf"<lastOrdinal>({_NUMBER})</lastOrdinal></streamReceipt>)?"
    rf"(?:<commitmentReceipt><decidedAt>({_DATE})</decidedAt><decision>(positive|negative)</decision>"
    rf"<id>uuid:({_NUMBER})@({_GUID})</id></commitmentReceipt>)?"
)
_MSMQ = (
    rf'<Msmq xmlns="{re.escape(namespaces.MSMQ)}"><Class>([0-9]{{1,5}})</Class>'
    rf"<Priority>([0-{HIGHEST_PRIORITY}])</Priority>(<Journal/>)?(<DeadLetter/>)?"
    r"(?:<Correlation>([A-Za-z0-9+/]{27}=)</Correlation>)?(<Trace/>)?"
    rf"(?:<App>({_NUMBER})</App>)?<BodyType>({_NUMBER})</BodyType>"
    rf"(?:<HashAlgorithm>({_NUMBER})</HashAlgorithm>)?(?:(<Eod>)(<First/>)?(<Last/>)?</Eod>)?"
    rf"<SourceQmGuid>({_GUID})</SourceQmGuid><TTrq>({_DATE})</TTrq></Msmq>"
)
_ENVELOPE = re.compile(
    rf'<se:Envelope xmlns:se="{re.escape(namespaces.SOAP)}" xmlns="{re.escape(namespaces.SRMP)}"><se:Header>'
    rf"{_PATH}{_PROPERTIES}{_SERVICES}{_STREAM}({_RECEIPTS}){_MSMQ}"
    r"</se:Header><se:Body></se:Body></se:Envelope>"
)


def match_envelope(data: bytes) -> Envelope | None:
    """Read an envelope of the shape that 3.1.7.2.4 writes; None says to ask the full parser."""
    if len(data) > MAX_ENVELOPE_BYTES:
        return None
    try:
        match = _ENVELOPE.fullmatch(data.decode("utf-8"))
        return None if match is None else _read_match(match)
    except ValueError:
        # Not UTF-8, or a value that is not one: the full parser says which.
        return None


def _read_match(match: re.Match[str]) -> Envelope | None:
    groups = match.groups()
    action, to, early_via, number, lineage, late_via, expires_at, sent_at, has_services = groups[:9]
    if early_via is not None and late_via is not None:
        return None
    receipts = groups[19]
    return Envelope(
        path=Path(action=action, to=to, id=make_message_id(number, lineage), via=early_via or late_via),
        properties=Properties(
            expires_at=read_date(expires_at), sent_at=None if sent_at is None else read_date(sent_at)
        ),
        services=_read_services(groups[9:14]) if has_services else None,
        stream=_read_stream(groups[14:19]) if groups[14] is not None else None,
        delivery_receipt=_read_delivery_receipt(groups[20:23]) if receipts else None,
        stream_receipt=_read_stream_receipt(groups[23:26]) if receipts else None,
        commitment_receipt=_read_commitment_receipt(groups[26:30]) if receipts else None,
        msmq=_read_msmq(groups[30:]),
    )


def _read_services(groups: _Groups) -> Services:
    durable, delivery_to, commitment_to, positive, negative = groups
    return Services(
        durable=durable is not None,
        delivery_receipt_request=(
            None if delivery_to is None else DeliveryReceiptRequest(send_to=delivery_to)
        ),
        commitment_receipt_request=(
            None
            if commitment_to is None
            else CommitmentReceiptRequest(
                send_to=commitment_to,
                positive_only=positive is not None,
                negative_only=negative is not None,
            )
        ),
    )


def _number(text: str, largest: int) -> int:
    number = int(text)
    if number > largest:
        raise ValueError(text)
    return number


def _read_stream(groups: _Groups) -> Stream:
    queue_manager, number, current_text, previous, receipts_to = groups
    current = _number(current_text, MAX_UINT64)
    if current == 0:
        raise ValueError(current_text)
    return Stream(
        stream_id=StreamId(read_guid(queue_manager), _number(number, MAX_UINT64)),
        current=current,
        previous=0 if previous is None else _number(previous, MAX_UINT64),
        start=None if receipts_to is None else StreamStart(send_receipts_to=receipts_to),
    )


def _read_delivery_receipt(groups: _Groups) -> DeliveryReceipt | None:
    received_at, number, lineage = groups
    if received_at is None:
        return None
    return DeliveryReceipt(received_at=read_date(received_at), id=make_message_id(number, lineage))


def _read_stream_receipt(groups: _Groups) -> StreamReceipt | None:
    queue_manager, number, last_ordinal = groups
    if queue_manager is None:
        return None
    return StreamReceipt(
        stream_id=StreamId(read_guid(queue_manager), _number(number, MAX_UINT64)),
        last_ordinal=_number(last_ordinal, MAX_UINT64),
    )


def _read_commitment_receipt(groups: _Groups) -> CommitmentReceipt | None:
    decided_at, decision, number, lineage = groups
    if decided_at is None:
        return None
    return CommitmentReceipt(
        decided_at=read_date(decided_at),
        is_positive=decision == "positive",
        id=make_message_id(number, lineage),
    )


def _read_msmq(groups: _Groups) -> Msmq:
    (
        message_class, priority, journal, dead_letter, correlation, trace, app, body_type, hash_algorithm,
        eod, first, last, source_qm, ttrq,
    ) = groups  # fmt: skip
    return Msmq(
        message_class=_number(message_class, MAX_UINT16),
        priority=int(priority),
        journal=journal is not None,
        dead_letter=dead_letter is not None,
        correlation=None if correlation is None else read_correlation(correlation),
        trace=trace is not None,
        app=0 if app is None else _number(app, MAX_UINT32),
        body_type=_number(body_type, MAX_UINT32),
        hash_algorithm=0 if hash_algorithm is None else _number(hash_algorithm, MAX_UINT32),
        eod=None if eod is None else Eod(first=first is not None, last=last is not None),
        source_qm=read_guid(source_qm),
        ttrq=read_date(ttrq),
    )
