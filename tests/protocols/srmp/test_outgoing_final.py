"""Messages that are kept until it is known what became of them (MC-MQSRM 3.1.5.1.9, 3.1.5.2)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.manager.conftest import full_disk, history
from tests.protocols.srmp.conftest import Opener
from tests.protocols.srmp.outbound import FakeNetwork, Outbound, outbound_of

from lanner.manager import ManualClock
from lanner.model.codes import MessageClass
from lanner.model.queue import QueueProperties

JOURNAL = r".\system$;journal"
DEAD_LETTER = r".\system$;deadxact"
OWN = r".\private$\dead"

RECEIVED = MessageClass.ACK_RECEIVE
PURGED = MessageClass.NACK_QUEUE_PURGED
NEGATIVE = [
    MessageClass.NACK_DELETED,
    MessageClass.NACK_QUEUE_DELETED,
    PURGED,
    MessageClass.NACK_RECEIVE_TIMEOUT,
    MessageClass.NACK_RECEIVE_REJECTED,
]


@pytest.fixture
async def outbound(opened: Opener, clock: ManualClock) -> AsyncIterator[Outbound]:
    async with outbound_of(opened, clock) as outbound:
        yield outbound


async def _arrived(outbound: Outbound, *bodies: bytes, **attributes: object) -> None:
    """Messages that have arrived and wait for their final receipts."""
    await outbound.stream(*bodies, negative_journaling=True, **attributes)
    await outbound.answer_all()
    await outbound.acknowledge(len(bodies))


async def test_a_receipt_alone_does_not_let_it_go(outbound: Outbound) -> None:
    await _arrived(outbound, b"a", b"b")
    assert await outbound.left() == [b"a", b"b"]
    transfer = outbound.queue.transfer
    assert (transfer.unacknowledged, transfer.unread) == (0, 2)
    await outbound.turn(100_000)
    assert outbound.posted() == [b"a", b"b"], "it is not sent again"


async def test_received(outbound: Outbound) -> None:
    await _arrived(outbound, b"a", b"b")
    assert await outbound.conclude(2, RECEIVED)
    assert await outbound.left() == [b"a"]
    assert outbound.queue.transfer.unread == 1
    assert await outbound.conclude(1, RECEIVED)
    assert await outbound.left() == []
    assert await outbound.kept(DEAD_LETTER) == []


async def test_received_and_journaled(outbound: Outbound) -> None:
    await _arrived(outbound, b"a", positive_journaling=True)
    assert await outbound.kept(JOURNAL) == []
    await outbound.conclude(1, RECEIVED)
    assert await outbound.kept(JOURNAL) == [(b"a", 0)]


@pytest.mark.parametrize("reason", NEGATIVE)
async def test_not_received(outbound: Outbound, reason: MessageClass) -> None:
    await _arrived(outbound, b"a")
    assert await outbound.conclude(1, reason)
    assert await outbound.left() == []
    assert await outbound.kept(DEAD_LETTER) == [(b"a", reason.value)]
    assert [row.event for row in await history(outbound.manager)][-1] == "dead-lettered"


@pytest.mark.parametrize("is_transactional", [True, False])
async def test_an_applications_own_dead_letter_queue(outbound: Outbound, is_transactional: bool) -> None:
    """It has to be transactional (3.1.5.2.1.2)."""
    await outbound.manager.create_queue(OWN, QueueProperties(transactional=is_transactional))
    await _arrived(outbound, b"a", dead_letter_queue=OWN)
    await outbound.conclude(1, PURGED)
    where, elsewhere = (OWN, DEAD_LETTER) if is_transactional else (DEAD_LETTER, OWN)
    assert await outbound.kept(where) == [(b"a", PURGED.value)]
    assert await outbound.kept(elsewhere) == []


async def test_what_waits_does_not_expire_any_more(outbound: Outbound) -> None:
    await _arrived(outbound, b"a", time_to_reach_queue=60)
    await outbound.turn(1000)
    assert await outbound.left() == [b"a"]
    assert await outbound.kept(DEAD_LETTER) == []


async def test_receipts_for_nothing(outbound: Outbound) -> None:
    assert not await outbound.conclude(1, RECEIVED, stream=5)
    await _arrived(outbound, b"a")
    assert not await outbound.conclude(2, RECEIVED)
    assert not await outbound.conclude(1, RECEIVED, stream=5)
    assert await outbound.conclude(1, RECEIVED)
    assert not await outbound.conclude(1, RECEIVED), "twice"


# Receipts that come at odd times.


async def test_before_the_stream_receipt(outbound: Outbound) -> None:
    await outbound.stream(b"a", b"b", negative_journaling=True)
    await outbound.answer_all()
    assert await outbound.conclude(1, RECEIVED)
    assert await outbound.left() == [b"b"]
    await outbound.acknowledge(2)
    assert await outbound.conclude(2, PURGED)
    assert await outbound.left() == []


@pytest.mark.parametrize("reason", [RECEIVED, PURGED])
async def test_before_the_answer(
    outbound: Outbound, reason: MessageClass, caplog: pytest.LogCaptureFixture
) -> None:
    """The application there was faster than the answer on its way here."""
    await outbound.stream(b"a", b"b", negative_journaling=True)
    assert await outbound.conclude(1, reason)
    assert await outbound.left() == [b"b"]
    await outbound.answer_all()
    await outbound.acknowledge(2)
    await outbound.conclude(2, RECEIVED)
    assert await outbound.left() == []
    assert len(await outbound.kept(DEAD_LETTER)) == (reason is PURGED)
    assert "failed" not in caplog.text


async def test_after_a_failure_before_it_is_sent_again(outbound: Outbound) -> None:
    await outbound.stream(b"a", negative_journaling=True)
    await outbound.lose()
    assert await outbound.conclude(1, RECEIVED)
    assert await outbound.left() == []
    await outbound.turn(20)
    assert outbound.posted() == [b"a"]


@pytest.mark.parametrize("is_acknowledged", [False, True])
async def test_after_a_restart_while_the_destination_is_not_there(
    opened: Opener, clock: ManualClock, is_acknowledged: bool
) -> None:
    network = FakeNetwork()
    async with outbound_of(opened, clock, network) as outbound:
        await outbound.stream(b"a", b"b", negative_journaling=True)
        await outbound.answer_all()
        if is_acknowledged:
            await outbound.acknowledge(2)
    network.is_down = True
    async with outbound_of(opened, clock, network) as outbound:
        stream = outbound.session.stream
        assert outbound.session.owns(stream)
        assert await outbound.conclude(2, RECEIVED)
        assert await outbound.left() == [b"a"]
        network.is_down = False
        await outbound.turn(20)
        if not is_acknowledged:
            await outbound.answer_all()
            await outbound.acknowledge(1)
        assert await outbound.conclude(1, PURGED)
        assert await outbound.left() == []
        assert [body for body, _ in await outbound.kept(DEAD_LETTER)] == [b"a"]


async def test_a_restart_does_not_send_again_what_is_only_waited_for(
    opened: Opener, clock: ManualClock
) -> None:
    async with outbound_of(opened, clock) as outbound:
        await _arrived(outbound, b"a")
    async with outbound_of(opened, clock) as outbound:
        assert outbound.posted() == []
        assert outbound.queue.transfer.unread == 1 or await outbound.left() == [b"a"]
        assert await outbound.conclude(1, RECEIVED)


async def test_a_number_is_not_given_twice_when_an_earlier_one_is_still_waited_for(
    opened: Opener, clock: ManualClock
) -> None:
    """Or the receiver, and this side too, would take the new message for one that came long ago."""
    async with outbound_of(opened, clock) as outbound:
        await outbound.stream(b"a", negative_journaling=True)
        await outbound.stream(b"b", b"c")
        await outbound.answer_all()
        await outbound.acknowledge(3)
        assert await outbound.left() == [b"a"]
        stream = outbound.session.stream
    async with outbound_of(opened, clock) as outbound:
        await outbound.stream(b"d")
        assert outbound.posted() == [b"d"]
        ((current, previous),) = outbound.places()
        assert current > 3
        assert previous == 3
        assert outbound.session.stream == stream
        await outbound.answer_all()
        await outbound.acknowledge(current)
        assert await outbound.left() == [b"a"]


async def test_a_final_receipt_that_cannot_be_settled_can_come_again(outbound: Outbound) -> None:
    await _arrived(outbound, b"a")
    async with full_disk(outbound.manager):
        with pytest.raises(Exception, match="full"):
            await outbound.conclude(1, RECEIVED)
    await outbound.settle()
    assert await outbound.left() == [b"a"]
    assert await outbound.conclude(1, RECEIVED)
    assert await outbound.left() == []


# A stream that is begun anew.


async def test_what_arrived_before_a_reset_keeps_waiting_for_its_old_receipt(outbound: Outbound) -> None:
    await _arrived(outbound, b"a", b"b")
    await outbound.stream(b"c", b"d")
    old = outbound.session.stream
    await outbound.answer_all()
    assert await outbound.session.reset() == 2
    await outbound.settle()
    assert outbound.places() == [(1, 0), (2, 1)]
    assert outbound.session.owns(old)
    assert outbound.session.stream > old
    assert await outbound.conclude(2, PURGED, stream=old)
    assert [body for body, _ in await outbound.kept(DEAD_LETTER)] == [b"b"]
    await outbound.answer_all()
    await outbound.acknowledge(2)
    assert await outbound.left() == [b"a"]
    assert await outbound.conclude(1, RECEIVED, stream=old)
    assert await outbound.left() == []


async def test_the_same_after_a_restart(opened: Opener, clock: ManualClock) -> None:
    network = FakeNetwork()
    async with outbound_of(opened, clock, network) as outbound:
        await _arrived(outbound, b"a", b"b")
        await outbound.stream(b"c")
        old = outbound.session.stream
        await outbound.answer_all()
        await outbound.session.reset()
        await outbound.settle()
    posted = len(network.links[-1].posted)
    async with outbound_of(opened, clock, network) as outbound:
        assert outbound.places() == [(1, 0)]
        assert posted == 1
        assert await outbound.conclude(1, RECEIVED, stream=old)
        await outbound.answer_all()
        await outbound.acknowledge(1)
        assert await outbound.left() == [b"b"]
        await outbound.stream(b"d", negative_journaling=True)
        current, previous = outbound.places()[-1]
        assert (current > 1, previous) == (True, 1)
        await outbound.answer_all()
        await outbound.acknowledge(current)
        assert await outbound.conclude(current, PURGED)
        assert [body for body, _ in await outbound.kept(DEAD_LETTER)] == [b"d"]
        assert await outbound.conclude(2, RECEIVED, stream=old)
        assert await outbound.left() == []


async def test_a_receipt_for_a_number_between_two_resets(outbound: Outbound) -> None:
    """A copy that was late arrived, and the receiver knows the message by the number that it had then."""
    await outbound.stream(b"a", negative_journaling=True)
    await outbound.session.reset()
    await outbound.settle()
    between = outbound.session.stream
    await outbound.session.reset()
    await outbound.settle()
    assert outbound.session.stream > between
    assert await outbound.conclude(1, RECEIVED, stream=between)
    assert await outbound.left() == []
