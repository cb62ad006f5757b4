"""What becomes of a message that comes in: each step of the receiver, taken and not taken."""

from __future__ import annotations

import logging

import msgspec
import pytest
from tests.manager.conftest import bodies, contents, full_disk, settle
from tests.protocols.srmp.conftest import PEER, Inbound, inbound_of
from tests.protocols.srmp.envelopes import HERE, LEDGER, NOW, ORDERS, changed, message, streamed
from tests.protocols.srmp.test_message_type import OF_NO_TYPE

from lanner.manager import ManualClock, QueueManager
from lanner.model.message import Delivery
from lanner.model.queue import QueueProperties
from lanner.model.security import SecurityDescriptor
from lanner.protocols.srmp import wire

LOCAL = r".\private$\orders"
NOBODY = SecurityDescriptor.from_sddl("O:BAD:(A;;0x2;;;BA)")


async def _is_refused(
    inbound: Inbound, caplog: pytest.LogCaptureFixture, srmp: wire.SrmpMessage, status: int, words: str
) -> None:
    """The answer, the log and the history all tell the same, and nothing is kept."""
    held = inbound.manager.total_bytes
    caplog.clear()
    with caplog.at_level(logging.WARNING, "lanner.protocols.srmp.receiver"):
        answer = await inbound.post(srmp)
    assert answer.status == status, answer
    assert words in answer.reason
    (record,) = [each for each in caplog.records if each.name == "lanner.protocols.srmp.receiver"]
    assert words in record.getMessage()
    assert PEER in record.getMessage()
    row = (await inbound.told("rejected"))[-1]
    assert row.peer == PEER
    assert words in (row.reason or "")
    assert row.message_id == str(srmp.envelope.path.id)
    assert inbound.manager.total_bytes == held


async def test_a_good_message(inbound: Inbound) -> None:
    assert (await inbound.post(message(body=b"one"))).status == 200
    (kept,) = await contents(inbound.manager, LOCAL)
    assert (kept.body, kept.label, kept.priority, kept.sent_time) == (b"one", "label", 3, NOW)
    assert kept.id == message().envelope.path.id
    assert kept.delivery is Delivery.RECOVERABLE
    (row,) = await inbound.told("arrived")
    assert (row.queue, row.peer) == (LOCAL, PEER)


async def test_a_regular_message_is_in_memory_alone(inbound: Inbound) -> None:
    assert (await inbound.post(changed(message(), services=None))).status == 200
    (kept,) = await contents(inbound.manager, LOCAL)
    assert kept.delivery is Delivery.EXPRESS


async def test_a_message_without_an_msmq_element_has_defaults_and_no_identity(inbound: Inbound) -> None:
    bare = changed(message(), msmq=None)
    assert [(await inbound.post(bare)).status for _ in range(2)] == [200, 200]
    first, second = await contents(inbound.manager, LOCAL)
    assert first.id == second.id == wire.NO_IDENTIFIER
    assert (first.priority, first.message_class, first.source_machine) == (3, 0, None)


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        (b"text/xml", b"not xml"),
        (b"text/xml", b""),
        (b"application/json", b"{}"),
        (b"", b""),
        (b"multipart/related; boundary=x", b"--x--"),
    ],
)
async def test_what_cannot_be_read(
    inbound: Inbound, caplog: pytest.LogCaptureFixture, content_type: bytes, body: bytes
) -> None:
    answer = await inbound.receiver.receive(content_type, body, PEER)
    assert answer.status == 400
    assert PEER in caplog.text
    (row,) = await inbound.told("rejected")
    assert (row.queue, row.peer, row.reason) == ("", PEER, answer.reason)


async def test_a_header_that_must_be_understood_and_is_not(
    inbound: Inbound, caplog: pytest.LogCaptureFixture
) -> None:
    request = wire.encode_request(message())
    block = b'<x:y xmlns:x="urn:x" se:mustUnderstand="1"/></se:Header>'
    whole = wire.encode_request(changed(message(), signature=None)).body
    envelope = whole[whole.index(b"<se:Envelope") : whole.index(b"</se:Envelope>") + len(b"</se:Envelope>")]
    told = envelope.replace(b"</se:Header>", block)
    assert (await inbound.receiver.receive(b"text/xml", told, PEER)).status == 400
    assert "must be understood" in caplog.text
    heard = envelope.replace(b"</se:Header>", block.replace(b'"1"', b'"0"'))
    assert (await inbound.receiver.receive(b"text/xml", heard, PEER)).status == 200
    assert request.content_type.startswith("multipart/related")


async def test_another_machine(inbound: Inbound, caplog: pytest.LogCaptureFixture) -> None:
    there = message(to="http://there/msmq/private$/orders")
    await _is_refused(inbound, caplog, there, 400, "another machine")
    assert inbound.manager.outgoing_queues() == []


@pytest.mark.parametrize(
    "to",
    [
        "http://HERE/MSMQ/PRIVATE$/ORDERS",
        "https://here/msmq/private$/orders",
        "http://here:8080/msmq/private$/orders",
        "http://localhost/msmq/private%24/ord%65rs",
        "http://192.0.2.1/msmq/private$/orders",
    ],
)
async def test_this_machine_and_queue_in_every_spelling(inbound: Inbound, to: str) -> None:
    request = wire.encode_request(message(to=to))
    answer = await inbound.receiver.receive(request.content_type.encode(), request.body, PEER, "192.0.2.1")
    assert answer.status == 200, answer
    assert await bodies(inbound.manager, LOCAL) == [b"hello"]


async def test_a_public_queue(inbound: Inbound) -> None:
    await inbound.manager.create_queue(r".\shop")
    assert (await inbound.post(message(to=f"http://{HERE}/msmq/Shop"))).status == 200
    assert await bodies(inbound.manager, r".\shop") == [b"hello"]


@pytest.mark.parametrize(
    ("to", "words"),
    [
        (f"http://{HERE}/msmq/private$/missing", "no queue"),
        (f"http://{HERE}/elsewhere/private$/orders", "destination"),
        (f"http://{HERE}/", "destination"),
        (f"http://{HERE}/msmq/private$/orders;journal", "journal"),
        ("MSMQ:MULTICAST=234.1.1.1:8001", "destination"),
    ],
)
async def test_no_such_queue(inbound: Inbound, caplog: pytest.LogCaptureFixture, to: str, words: str) -> None:
    await _is_refused(inbound, caplog, message(to=to), 400, words)


async def test_a_stream_to_a_queue_that_is_not_transactional(
    inbound: Inbound, caplog: pytest.LogCaptureFixture
) -> None:
    first = streamed(1)
    path = msgspec.structs.replace(first.envelope.path, to=ORDERS)
    await _is_refused(inbound, caplog, changed(first, path=path), 400, "is not transactional")


async def test_a_message_of_no_stream_to_a_transactional_queue(
    inbound: Inbound, caplog: pytest.LogCaptureFixture
) -> None:
    await _is_refused(inbound, caplog, message(to=LEDGER), 400, "of no stream")


@pytest.mark.parametrize("what", OF_NO_TYPE)
async def test_what_is_of_no_type(inbound: Inbound, caplog: pytest.LogCaptureFixture, what: str) -> None:
    await _is_refused(inbound, caplog, OF_NO_TYPE[what], 400, "no known type")


async def test_a_queue_that_not_everyone_may_send_to(
    inbound: Inbound, caplog: pytest.LogCaptureFixture
) -> None:
    assert (await inbound.post(message(1))).status == 200
    await inbound.manager.change_queue(LOCAL, security=NOBODY)
    await _is_refused(inbound, caplog, message(2), 400, "may not")
    receipt = OF_NO_TYPE["a delivery receipt of another class"].envelope
    assert receipt.msmq is not None
    ack = changed(message(3, body=None), delivery_receipt=receipt.delivery_receipt)
    good = changed(ack, msmq=msgspec.structs.replace(receipt.msmq, message_class=2))
    await _is_refused(inbound, caplog, good, 400, "may not")


async def test_a_full_queue_leaves_the_message_with_its_sender(
    inbound: Inbound, caplog: pytest.LogCaptureFixture
) -> None:
    await inbound.manager.change_queue(LOCAL, QueueProperties(quota=1))
    assert (await inbound.post(message(1, body=b"x" * 800))).status == 200
    await _is_refused(inbound, caplog, message(2, body=b"x" * 800), 500, "quota")
    await inbound.manager.receive(LOCAL, timeout=0)
    assert (await inbound.post(message(2, body=b"x" * 800))).status == 200, "it is not taken for a copy"


async def test_a_full_manager(
    inbound: Inbound, caplog: pytest.LogCaptureFixture, manager: QueueManager
) -> None:
    manager.begin_flow_control()
    await _is_refused(inbound, caplog, message(1), 500, "takes in nothing")
    await _is_refused(inbound, caplog, streamed(1), 500, "takes in nothing")
    manager.end_flow_control()
    assert (await inbound.post(message(1))).status == 200
    assert (await inbound.post(streamed(1))).status == 200


async def test_a_message_larger_than_any_queue_takes(
    inbound: Inbound, caplog: pytest.LogCaptureFixture
) -> None:
    large = msgspec.structs.replace(message(), body=b"x" * 2_200_000, extension=b"y" * 2_200_000)
    answer = await inbound.post(large)
    assert answer.status == 400
    assert "limit" in answer.reason


async def test_a_full_disk_keeps_nothing_half(inbound: Inbound) -> None:
    manager = inbound.manager
    async with full_disk(manager):
        for srmp in (message(1, body=b"x" * 100_000), streamed(1)):
            answer = await inbound.post(srmp)
            assert answer.status == 500, answer
    await settle(manager)
    assert manager.total_bytes == 0
    assert (await inbound.post(message(1))).status == 200
    assert (await inbound.post(streamed(1))).status == 200
    assert await bodies(manager, LOCAL) == [b"hello"]
    assert await bodies(manager, r".\private$\ledger") == [b"1"]


async def test_a_stopped_manager_leaves_the_message_with_its_sender(inbound: Inbound) -> None:
    await inbound.manager.close()
    assert (await inbound.post(message())).status == 500


async def test_an_envelope_is_kept_for_those_who_ask(manager: QueueManager) -> None:
    inbound = inbound_of(manager, keep_envelope=True)
    assert (await inbound.post(message())).status == 200
    (kept,) = await contents(manager, LOCAL)
    assert kept.soap is not None
    assert kept.soap.envelope.startswith("<se:Envelope")
    assert kept.soap.header.startswith("<se:Header>")
    assert kept.soap.body == "<se:Body></se:Body>"


# Time.


async def test_a_message_that_comes_too_late(inbound: Inbound, clock: ManualClock) -> None:
    late = message(ttrq=NOW + 60)
    clock.advance(61)
    assert (await inbound.post(late)).status == 200
    assert await bodies(inbound.manager, LOCAL) == []
    (row,) = await inbound.told("expired")
    assert (row.queue, row.peer) == (LOCAL, PEER)
    assert inbound.manager.outgoing_queues() == [], "nobody asked for a receipt"


async def test_a_message_that_comes_in_time(inbound: Inbound, clock: ManualClock) -> None:
    clock.advance(60)
    assert (await inbound.post(message(1, ttrq=NOW + 60))).status == 200
    clock.advance(1e9)
    assert (await inbound.post(message(2, ttrq=wire.NEVER))).status == 200
    await settle(inbound.manager)
    assert await bodies(inbound.manager, LOCAL) == [b"hello", b"hello"], "in its queue it does not expire"


async def test_ttrq_beats_expires_at(inbound: Inbound, clock: ManualClock) -> None:
    clock.advance(61)
    srmp = message(ttrq=NOW + 120)
    early = msgspec.structs.replace(srmp.envelope.properties, expires_at=NOW + 60)
    assert (await inbound.post(changed(srmp, properties=early))).status == 200
    assert len(await contents(inbound.manager, LOCAL)) == 1
    assert (await inbound.post(changed(srmp, properties=early, msmq=None))).status == 200
    assert len(await contents(inbound.manager, LOCAL)) == 1


async def test_a_date_in_the_year_9999_is_no_fault(inbound: Inbound) -> None:
    far = 253_402_300_799
    assert (await inbound.post(message(ttrq=far))).status == 200
    assert len(await contents(inbound.manager, LOCAL)) == 1
