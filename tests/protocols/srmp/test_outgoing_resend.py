"""A stream that an administrator lets be sent again (EOD_RESEND, MS-MQMR 3.1.4.2)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.manager.conftest import ORDERS, history
from tests.protocols.srmp.conftest import Opener
from tests.protocols.srmp.outbound import FAR, FakeNetwork, Outbound, outbound_of

from lanner.manager import ManualClock
from lanner.manager.events import StreamResendWanted
from lanner.model.errors import QueueNotFoundError, UnsupportedOperationError
from lanner.model.queue import OutgoingState


@pytest.fixture
async def outbound(opened: Opener, clock: ManualClock) -> AsyncIterator[Outbound]:
    async with outbound_of(opened, clock) as outbound:
        outbound.manager.events.subscribe(StreamResendWanted, lambda _: outbound.session.resend())
        yield outbound


async def test_what_waits_for_a_receipt_is_sent_again_at_once(outbound: Outbound) -> None:
    await outbound.stream(b"a", b"b")
    await outbound.answer_all()
    outbound.manager.resend_stream(FAR)
    await outbound.settle()
    assert outbound.posted() == [b"a", b"b", b"a", b"b"]
    assert outbound.places() == [(1, 0), (2, 1), (1, 0), (2, 1)]
    assert outbound.queue.transfer.resends == 1
    assert outbound.queue.transfer.resend_interval == 30, "an administrator's resend is no time-out"
    told = [row.reason for row in await history(outbound.manager) if row.event == "retransmitted"]
    assert told == ["an administrator asked for a resend"] * 2


async def test_the_timer_starts_anew(outbound: Outbound) -> None:
    await outbound.stream(b"a")
    await outbound.answer_all()
    await outbound.turn(20)
    outbound.manager.resend_stream(FAR)
    await outbound.settle()
    await outbound.answer_all()
    assert outbound.queue.transfer.resend_time == outbound.clock.time() + 30
    await outbound.turn(20)
    assert outbound.posted() == [b"a", b"a"]


async def test_what_is_on_its_way_is_waited_for(outbound: Outbound) -> None:
    await outbound.stream(b"a")
    await outbound.answer_all()
    await outbound.stream(b"b")
    outbound.manager.resend_stream(FAR)
    await outbound.settle()
    assert outbound.posted() == [b"a", b"b"]
    await outbound.answer(200)
    assert outbound.posted() == [b"a", b"b", b"a", b"b"]


async def test_a_queue_that_waits_to_connect_again_does_so_now(outbound: Outbound) -> None:
    network: FakeNetwork = outbound.network
    network.is_down = True
    await outbound.stream(b"a")
    assert outbound.state is OutgoingState.INACTIVE
    network.is_down = False
    outbound.manager.resend_stream(FAR)
    await outbound.settle()
    assert outbound.posted() == [b"a"]


async def test_what_is_paused_or_offline_stays_so(outbound: Outbound) -> None:
    await outbound.stream(b"a")
    await outbound.answer_all()
    await outbound.manager.pause_queue(FAR)
    outbound.manager.resend_stream(FAR)
    await outbound.settle()
    assert outbound.posted() == [b"a"]
    await outbound.manager.resume_queue(FAR)
    outbound.manager.take_offline()
    outbound.manager.resend_stream(FAR)
    await outbound.settle()
    assert outbound.posted() == [b"a"]


async def test_when_nothing_waits_nothing_is_sent_and_no_time_is_told(outbound: Outbound) -> None:
    await outbound.stream(b"a")
    await outbound.answer_all()
    await outbound.acknowledge(1)
    outbound.manager.resend_stream(FAR)
    await outbound.settle()
    assert outbound.posted() == [b"a"]
    assert outbound.queue.transfer.resend_time == 0


async def test_the_address_of_the_other_side_is_known(outbound: Outbound) -> None:
    await outbound.stream(b"a")
    assert outbound.queue.peer == "10.0.0.9"


async def test_only_outgoing_queues_have_a_stream_to_send(outbound: Outbound) -> None:
    orders = (await outbound.manager.create_queue(ORDERS)).path
    with pytest.raises(UnsupportedOperationError):
        outbound.manager.resend_stream(orders)
    with pytest.raises(QueueNotFoundError):
        outbound.manager.resend_stream(r".\private$\nothing")
