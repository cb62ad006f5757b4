"""Receipts that the receiver sends (MC-MQSRM 3.1.1.3, 3.1.7.3), and receipts that it takes in."""

from __future__ import annotations

import asyncio

import pytest
from tests.manager.conftest import bodies, contents, full_disk, settle, turn
from tests.protocols.srmp.conftest import PEER, Inbound, Opener, inbound_of
from tests.protocols.srmp.envelopes import (
    ADMINISTRATION,
    HERE,
    NOW,
    RECEIPTS,
    SENDER,
    STREAM,
    asking,
    changed,
    message,
    receipt,
    streamed,
)

from lanner.manager import ManualClock, QueueManager
from lanner.model.codes import MessageClass
from lanner.model.message import Message
from lanner.model.queue import QueueProperties
from lanner.protocols.srmp import wire
from lanner.protocols.srmp.mapping import from_message

LOCAL = r".\private$\orders"
STREAMED = r".\private$\ledger"
TO_ADMINISTRATION = f"DIRECT={ADMINISTRATION}"
TO_ORDER_QUEUE = f"DIRECT={RECEIPTS}"


async def _outgoing(manager: QueueManager, name: str) -> list[Message]:
    """What waits to be sent somewhere."""
    if not manager.is_outgoing(name):
        return []
    return await contents(manager, name)


async def _only(manager: QueueManager, name: str) -> wire.Envelope:
    (waiting,) = await _outgoing(manager, name)
    return from_message(waiting).envelope


# Delivery and commitment receipts.


async def test_a_delivery_receipt(inbound: Inbound, clock: ManualClock) -> None:
    clock.advance(5)
    assert (await inbound.post(asking(message(9), delivery=True))).status == 200
    told = await _only(inbound.manager, TO_ADMINISTRATION)
    assert told.path.to == ADMINISTRATION
    assert told.path.action == "MSMQ:label", "the label of the message that it is about"
    assert told.delivery_receipt == wire.DeliveryReceipt(received_at=NOW + 5, id=message(9).envelope.path.id)
    assert told.msmq is not None
    assert told.msmq.message_class == MessageClass.ACK_REACH_QUEUE
    assert (told.commitment_receipt, told.stream_receipt) == (None, None)


async def test_no_delivery_receipt_before_the_message_is_safe(inbound: Inbound) -> None:
    async with full_disk(inbound.manager):
        large = asking(message(body=b"x" * 100_000), delivery=True)
        assert (await inbound.post(large)).status == 500
    assert await _outgoing(inbound.manager, TO_ADMINISTRATION) == []


async def test_a_copy_brings_no_second_receipt(inbound: Inbound) -> None:
    for _ in range(3):
        assert (await inbound.post(asking(message(), delivery=True))).status == 200
    assert len(await _outgoing(inbound.manager, TO_ADMINISTRATION)) == 1


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("negative", [False, True])
@pytest.mark.parametrize("is_received", [False, True])
async def test_commitment_receipts(
    inbound: Inbound, clock: ManualClock, positive: bool, negative: bool, is_received: bool
) -> None:
    manager = inbound.manager
    assert (await inbound.post(asking(message(9), positive=positive, negative=negative))).status == 200
    assert await _outgoing(manager, TO_ADMINISTRATION) == []
    clock.advance(7)
    if is_received:
        await manager.receive(LOCAL, timeout=0)
    else:
        await manager.purge_queue(LOCAL)
    if not (positive if is_received else negative):
        assert await _outgoing(manager, TO_ADMINISTRATION) == []
        return
    told = await _only(manager, TO_ADMINISTRATION)
    assert told.commitment_receipt == wire.CommitmentReceipt(
        decided_at=NOW + 7, is_positive=is_received, id=message(9).envelope.path.id
    )
    assert told.path.action == "MSMQ:label"
    reason = MessageClass.ACK_RECEIVE if is_received else MessageClass.NACK_QUEUE_PURGED
    assert told.msmq is not None
    assert told.msmq.message_class == reason


async def test_a_deleted_queue_is_told(inbound: Inbound) -> None:
    assert (await inbound.post(asking(message(), negative=True))).status == 200
    await inbound.manager.delete_queue(LOCAL)
    told = await _only(inbound.manager, TO_ADMINISTRATION)
    assert told.msmq is not None
    assert told.msmq.message_class == MessageClass.NACK_QUEUE_DELETED


@pytest.mark.parametrize("negative", [False, True])
async def test_a_message_that_came_too_late_is_told_to_who_asked(
    inbound: Inbound, clock: ManualClock, negative: bool
) -> None:
    clock.advance(61)
    late = asking(message(ttrq=NOW + 60), delivery=True, positive=True, negative=negative)
    assert (await inbound.post(late)).status == 200
    if not negative:
        assert await _outgoing(inbound.manager, TO_ADMINISTRATION) == []
        return
    told = await _only(inbound.manager, TO_ADMINISTRATION)
    assert told.commitment_receipt is not None
    assert not told.commitment_receipt.is_positive


async def test_an_administration_queue_on_this_machine_is_told_directly(inbound: Inbound) -> None:
    await inbound.manager.create_queue(r".\private$\admin")
    services = wire.Services(
        delivery_receipt_request=wire.DeliveryReceiptRequest(send_to=f"http://{HERE}/msmq/private$/admin")
    )
    assert (await inbound.post(changed(message(), services=services))).status == 200
    (told,) = await contents(inbound.manager, r".\private$\admin")
    assert told.message_class == MessageClass.ACK_REACH_QUEUE
    assert inbound.manager.outgoing_queues() == []


async def test_an_administration_queue_that_cannot_be_one_costs_the_receipt_alone(
    inbound: Inbound, caplog: pytest.LogCaptureFixture
) -> None:
    services = wire.Services(
        durable=True, delivery_receipt_request=wire.DeliveryReceiptRequest(send_to="http://there/nowhere")
    )
    assert (await inbound.post(changed(message(), services=services))).status == 200
    assert await bodies(inbound.manager, LOCAL) == [b"hello"]
    assert "was discarded" in caplog.text


# Receipts that come in.


@pytest.mark.parametrize(
    "srmp",
    [
        receipt(MessageClass.ACK_REACH_QUEUE, delivery=True),
        receipt(MessageClass.ACK_RECEIVE, decision=True),
        receipt(MessageClass.NACK_QUEUE_PURGED, decision=False),
    ],
    ids=["delivery", "positive", "negative"],
)
async def test_receipts_go_into_their_administration_queue_once(
    inbound: Inbound, srmp: wire.SrmpMessage
) -> None:
    assert [(await inbound.post(srmp)).status for _ in range(2)] == [200, 200]
    (told,) = await contents(inbound.manager, LOCAL)
    assert srmp.envelope.msmq is not None
    assert told.message_class == srmp.envelope.msmq.message_class
    assert inbound.receipts.taken == []


@pytest.mark.parametrize("decision", [None, True, False])
async def test_stream_receipts_are_for_the_queue_manager(inbound: Inbound, decision: bool | None) -> None:
    reasons = {
        None: MessageClass.ORDER_ACK,
        True: MessageClass.ACK_RECEIVE,
        False: MessageClass.NACK_QUEUE_PURGED,
    }
    srmp = receipt(
        reasons[decision],
        decision=decision,
        stream=STREAM,
        ordinal=3,
        to=f"http://{HERE}/MSMQ/PRIVATE$/order_queue$",
        action=wire.STREAM_RECEIPT_ACTION,
    )
    assert (await inbound.post(srmp)).status == 200
    ((taken, peer),) = inbound.receipts.taken
    assert taken.order_receipt is not None
    assert (taken.order_receipt.stream, taken.order_receipt.sequence) == (STREAM, 3)
    assert (taken.message_class, peer) == (reasons[decision], PEER)


# Stream receipts that go out (3.1.6.3).


async def _acknowledged(manager: QueueManager) -> list[int]:
    await settle(manager)
    told = [from_message(each).envelope.stream_receipt for each in await _outgoing(manager, TO_ORDER_QUEUE)]
    assert all(each is not None and each.stream_id == wire.StreamId(SENDER, STREAM) for each in told)
    return [each.last_ordinal for each in told if each is not None]


async def test_a_stream_receipt_goes_out_half_a_second_after_the_message(
    inbound: Inbound, clock: ManualClock
) -> None:
    await inbound.post(streamed(1))
    await turn(inbound.manager, clock, 0.4)
    assert await _acknowledged(inbound.manager) == []
    await turn(inbound.manager, clock, 0.1)
    assert await _acknowledged(inbound.manager) == [1]
    told = await _only(inbound.manager, TO_ORDER_QUEUE)
    assert (told.path.to.lower(), told.path.action) == (RECEIPTS.lower(), wire.STREAM_RECEIPT_ACTION)
    assert told.msmq is not None
    assert told.msmq.message_class == MessageClass.ORDER_ACK
    await turn(inbound.manager, clock, 100)
    assert await _acknowledged(inbound.manager) == [1], "once is enough"


async def test_each_message_lets_the_receipt_wait_up_to_ten_seconds(
    inbound: Inbound, clock: ManualClock
) -> None:
    for number in range(1, 25):
        await inbound.post(streamed(number))
        await turn(inbound.manager, clock, 0.4)
        if number * 0.4 < 10:
            assert await _acknowledged(inbound.manager) == [], f"at {number * 0.4} s"
    await inbound.post(streamed(25))
    await turn(inbound.manager, clock, 0.4)
    assert await _acknowledged(inbound.manager) == [25]


async def test_a_copy_lets_the_receipt_go_again(inbound: Inbound, clock: ManualClock) -> None:
    for number in (1, 2):
        await inbound.post(streamed(number))
    await turn(inbound.manager, clock, 1)
    await inbound.post(streamed(1))
    await turn(inbound.manager, clock, 1)
    assert await _acknowledged(inbound.manager) == [2, 2]


async def test_a_message_out_of_order_does_not(inbound: Inbound, clock: ManualClock) -> None:
    await inbound.post(streamed(1))
    await turn(inbound.manager, clock, 1)
    assert (await inbound.post(streamed(3))).status == 200
    await turn(inbound.manager, clock, 1)
    assert await _acknowledged(inbound.manager) == [1]
    (row,) = await inbound.told("rejected")
    assert row.reason == "it is not next in its stream"


async def test_a_restart_acknowledges_what_was_not(opened: Opener, clock: ManualClock) -> None:
    async with opened() as manager:
        await manager.create_queue(STREAMED, QueueProperties(transactional=True))
        inbound = inbound_of(manager)
        for number in (1, 2):
            await inbound.post(streamed(number))
        inbound.receiver.stop()
    async with opened() as manager:
        inbound = inbound_of(manager)
        await inbound.receiver.load()
        await turn(manager, clock, 0.5)
        assert await _acknowledged(manager) == [2]
        assert (await inbound.post(streamed(2))).status == 200
        assert (await inbound.post(streamed(3))).status == 200
        assert await bodies(manager, STREAMED) == [b"1", b"2", b"3"]
        await turn(manager, clock, 0.5)
        inbound.receiver.stop()
    async with opened() as manager:
        inbound = inbound_of(manager)
        await inbound.receiver.load()
        await turn(manager, clock, 1)
        assert await _acknowledged(manager) == [], "all was told before"


async def test_a_receipt_that_cannot_be_stored_is_a_warning_and_goes_with_the_next_copy(
    inbound: Inbound, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    await inbound.post(streamed(1))
    async with full_disk(inbound.manager):
        inbound.manager._core._durable_sequential = 0  # so that the receipt has something to store
        await turn(inbound.manager, clock, 1)
    assert "a stream receipt was not sent" in caplog.text
    assert "background work failed" not in caplog.text
    await inbound.post(streamed(1))
    await turn(inbound.manager, clock, 1)
    assert await _acknowledged(inbound.manager) == [1]


async def test_senders_and_queues_have_streams_of_their_own(inbound: Inbound, clock: ManualClock) -> None:
    other = wire.StreamId(STREAM_SENDER, STREAM)
    first = streamed(1)
    assert first.envelope.stream is not None
    foreign = changed(
        message(900, first.envelope.path.to, b"other"),
        stream=wire.Stream(stream_id=other, current=1, start=first.envelope.stream.start),
    )
    answers = await asyncio.gather(inbound.post(first), inbound.post(foreign), inbound.post(streamed(2)))
    assert {answer.status for answer in answers} == {200}
    assert sorted(await bodies(inbound.manager, STREAMED)) == [b"1", b"2", b"other"]


STREAM_SENDER = type(SENDER)("00000000-1111-2222-3333-444444444444")


# Final stream receipts (3.1.7.3.3).


@pytest.mark.parametrize("is_wanted", [False, True])
@pytest.mark.parametrize("end", ["received", "purged", "deleted"])
async def test_final_stream_receipts(inbound: Inbound, clock: ManualClock, is_wanted: bool, end: str) -> None:
    manager = inbound.manager
    await inbound.post(streamed(1))
    await inbound.post(streamed(2, dead_letter=is_wanted))
    await turn(manager, clock, 1)
    assert await _acknowledged(manager) == [1 + 1]
    if end == "received":
        await manager.receive(STREAMED, timeout=0)
        await manager.receive(STREAMED, timeout=0)
    elif end == "purged":
        await manager.purge_queue(STREAMED)
    else:
        await manager.delete_queue(STREAMED)
    sent = [from_message(each).envelope for each in await _outgoing(manager, TO_ORDER_QUEUE)]
    final = [each for each in sent if each.commitment_receipt is not None]
    if not is_wanted:
        assert final == []
        return
    (told,) = final
    assert told.commitment_receipt is not None
    assert told.commitment_receipt.is_positive == (end == "received")
    assert told.commitment_receipt.id == streamed(2).envelope.path.id
    assert told.stream_receipt == wire.StreamReceipt(stream_id=wire.StreamId(SENDER, STREAM), last_ordinal=2)
    assert (told.path.to.lower(), told.path.action) == (RECEIPTS.lower(), wire.STREAM_RECEIPT_ACTION)


async def test_a_stream_message_that_comes_too_late_takes_its_place_and_is_told(
    inbound: Inbound, clock: ManualClock
) -> None:
    await inbound.post(streamed(1))
    clock.advance(61)
    assert (await inbound.post(streamed(2, ttrq=NOW + 60, dead_letter=True))).status == 200
    assert (await inbound.post(streamed(3))).status == 200
    assert await bodies(inbound.manager, STREAMED) == [b"1", b"3"]
    assert len(await inbound.told("expired")) == 1
    sent = [from_message(each).envelope for each in await _outgoing(inbound.manager, TO_ORDER_QUEUE)]
    (final,) = [each for each in sent if each.commitment_receipt is not None]
    assert final.stream_receipt is not None
    assert final.stream_receipt.last_ordinal == 2


async def test_an_application_that_aborts_sends_no_final_receipt(inbound: Inbound) -> None:
    await inbound.post(streamed(1, dead_letter=True))
    manager = inbound.manager
    transaction = manager.create_transaction()
    await manager.receive(STREAMED, timeout=0, transaction=transaction)
    await manager.transaction_abort(transaction)
    assert await _outgoing(manager, TO_ORDER_QUEUE) == []
    async with manager.transaction() as transaction:
        await manager.receive(STREAMED, timeout=0, transaction=transaction)
    assert len(await _outgoing(manager, TO_ORDER_QUEUE)) == 1
