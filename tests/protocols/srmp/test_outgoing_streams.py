"""Streams on their way out: numbers, receipts, resends and gaps (MC-MQSRM 3.1.7.2.3, 3.1.5.1.8, 3.1.6.2)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.manager.conftest import full_disk, history, started, stuck_writer
from tests.protocols.srmp.conftest import Opener
from tests.protocols.srmp.outbound import FAR, FakeNetwork, Outbound, outbound_of

from lanner.manager import ManualClock
from lanner.model.codes import MessageClass
from lanner.model.queue import OutgoingState
from lanner.protocols.srmp import settling

JOURNAL = r".\system$;journal"
TRANSACTIONAL_DEAD_LETTER = r".\system$;deadxact"


@pytest.fixture
async def outbound(opened: Opener, clock: ManualClock) -> AsyncIterator[Outbound]:
    async with outbound_of(opened, clock) as outbound:
        yield outbound


def _streams(outbound: Outbound) -> list[int]:
    streams = [srmp.envelope.stream for srmp in outbound.link.posted]
    return [each.stream_id.number for each in streams if each is not None]


async def test_numbers_and_where_receipts_go(outbound: Outbound) -> None:
    await outbound.stream(b"a", b"b", b"c")
    assert outbound.places() == [(1, 0), (2, 1), (3, 2)]
    first, second, _ = (srmp.envelope.stream for srmp in outbound.link.posted)
    assert first is not None
    assert second is not None
    assert first.start is not None
    assert first.start.send_receipts_to == "http://here/MSMQ/PRIVATE$/order_queue$"
    assert second.start is None
    assert first.stream_id.queue_manager == outbound.manager.identifier
    assert first.stream_id.number >> 32 == int(outbound.clock.time())


async def test_200_does_not_let_a_stream_message_go_and_a_receipt_does(outbound: Outbound) -> None:
    await outbound.stream(b"a", b"b", b"c")
    await outbound.answer_all()
    assert await outbound.left() == [b"a", b"b", b"c"]
    assert outbound.queue.transfer.unacknowledged == 3
    await outbound.acknowledge(2)
    assert await outbound.left() == [b"c"]
    transfer = outbound.queue.transfer
    assert (transfer.unacknowledged, transfer.last_acknowledgment_count) == (1, 1)
    assert transfer.last_acknowledged is not None
    assert transfer.last_acknowledged.number == 2
    assert transfer.first_unacknowledged is not None
    assert transfer.first_unacknowledged.number == 3
    await outbound.acknowledge(3)
    assert await outbound.left() == []


async def test_when_all_is_acknowledged_the_next_message_begins_a_new_stream(outbound: Outbound) -> None:
    await outbound.stream(b"a")
    await outbound.answer_all()
    await outbound.acknowledge(1)
    await outbound.stream(b"b")
    assert outbound.places() == [(1, 0), (1, 0)]
    one, two = _streams(outbound)
    assert two > one


async def test_receipts_that_say_nothing_new(outbound: Outbound) -> None:
    await outbound.stream(b"a", b"b")
    await outbound.answer_all()
    await outbound.acknowledge(1)
    await outbound.acknowledge(1)
    await outbound.acknowledge(0)
    assert await outbound.left() == [b"b"]
    await outbound.acknowledge(3)
    assert await outbound.left() == [b"b"], "3 was never sent"
    await outbound.acknowledge(2, stream=outbound.session.stream - 1)
    assert await outbound.left() == [b"b"], "of another stream"


async def test_a_receipt_that_comes_before_the_answer(outbound: Outbound) -> None:
    await outbound.stream(b"a", b"b")
    await outbound.acknowledge(2)
    assert await outbound.left() == [b"a", b"b"]
    await outbound.answer(200, 200)
    assert await outbound.left() == []


async def test_a_receipt_that_comes_before_an_answer_that_never_comes(outbound: Outbound) -> None:
    await outbound.stream(b"a", b"b")
    await outbound.acknowledge(2)
    await outbound.lose()
    await outbound.turn(20)
    assert outbound.posted() == [b"a", b"b"], "nothing is sent again"
    assert await outbound.left() == []


async def test_many_are_let_go_in_pieces(outbound: Outbound, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settling, "RECEIPT_CHUNK", 3)
    await outbound.stream(*[b"%d" % number for number in range(10)])
    await outbound.answer_all()
    await outbound.acknowledge(10)
    assert await outbound.left() == []


async def test_positive_journaling_waits_for_the_receipt(outbound: Outbound) -> None:
    await outbound.stream(b"a", positive_journaling=True)
    await outbound.answer_all()
    assert await outbound.kept(JOURNAL) == []
    await outbound.acknowledge(1)
    assert await outbound.kept(JOURNAL) == [(b"a", 0)]


# Resending.


async def test_what_is_not_acknowledged_is_sent_again_in_growing_intervals(outbound: Outbound) -> None:
    await outbound.stream(b"a", b"b")
    await outbound.answer_all()
    for interval in (30, 30, 30, 300, 300, 300, 1800, 1800, 1800, 21_600, 21_600):
        before = len(outbound.posted())
        await outbound.turn(interval - 1)
        assert len(outbound.posted()) == before
        await outbound.turn(1)
        assert outbound.posted()[before:] == [b"a", b"b"], interval
        await outbound.answer_all()
    assert outbound.queue.transfer.resends == 11
    rows = [row for row in await history(outbound.manager) if row.event == "retransmitted"]
    assert len(rows) == 22
    assert set(outbound.places()) == {(1, 0), (2, 1)}, "the numbers stay"


async def test_progress_makes_the_interval_short_again(outbound: Outbound) -> None:
    await outbound.stream(b"a", b"b")
    await outbound.answer_all()
    for interval in (30, 30, 30, 300):
        await outbound.turn(interval)
        await outbound.answer_all()
    await outbound.acknowledge(1)
    before = len(outbound.posted())
    await outbound.turn(30)
    assert outbound.posted()[before:] == [b"b"]
    assert outbound.places()[-1] == (2, 1)


async def test_what_is_on_its_way_is_waited_for_before_all_is_sent_again(
    opened: Opener, clock: ManualClock
) -> None:
    async with outbound_of(opened, clock, in_flight=2) as outbound:
        await outbound.stream(b"a")
        await outbound.answer_all()
        await outbound.turn(10)
        await outbound.stream(b"b", b"c", b"d", b"e")
        await outbound.turn(20)
        assert outbound.posted() == [b"a", b"b", b"c"]
        await outbound.answer(200)
        assert outbound.posted() == [b"a", b"b", b"c"], "nothing new before"
        await outbound.answer(200)
        await outbound.answer_all()
        assert outbound.posted()[3:] == [b"a", b"b", b"c", b"d", b"e"]
        assert outbound.places()[3:] == [(1, 0), (2, 1), (3, 2), (4, 3), (5, 4)]


async def test_no_timer_runs_while_the_queue_is_paused(outbound: Outbound) -> None:
    await outbound.stream(b"a")
    await outbound.answer_all()
    await outbound.manager.pause_queue(FAR)
    outbound.manager.bring_online()
    await outbound.turn(1000)
    assert outbound.queue.transfer.resends == 0
    await outbound.manager.resume_queue(FAR)
    await outbound.turn(30)
    assert outbound.posted() == [b"a", b"a"]


async def test_a_failure_stops_the_timer_and_the_retry_starts_it(outbound: Outbound) -> None:
    await outbound.stream(b"a", b"b")
    await outbound.answer(200, 500)
    assert outbound.state is OutgoingState.INACTIVE
    await outbound.turn(20)
    assert outbound.posted() == [b"a", b"b", b"b"]
    assert outbound.places() == [(2, 1)]
    await outbound.answer_all()
    await outbound.turn(30)
    assert outbound.places() == [(2, 1), (1, 0), (2, 1)]


# Gaps.


async def test_a_gap_is_bridged(outbound: Outbound) -> None:
    outbound.network.is_down = True
    await outbound.stream(b"a")
    await outbound.stream(b"b", time_to_reach_queue=5)
    await outbound.stream(b"c")
    outbound.network.is_down = False
    await outbound.turn(20)
    assert outbound.places() == [(1, 0), (3, 1)]
    await outbound.answer_all()
    await outbound.acknowledge(3)
    assert await outbound.left() == []


async def test_a_gap_that_comes_while_waiting_for_a_receipt_is_bridged(outbound: Outbound) -> None:
    await outbound.stream(b"a")
    await outbound.stream(b"b", time_to_reach_queue=5)
    await outbound.stream(b"c")
    await outbound.answer_all()
    await outbound.turn(30)
    assert outbound.places()[3:] == [(1, 0), (3, 1)]


@pytest.mark.parametrize("journaling", [False, True])
async def test_a_lost_head_begins_a_new_stream(outbound: Outbound, journaling: bool) -> None:
    outbound.network.is_down = True
    await outbound.stream(b"a", time_to_reach_queue=5, negative_journaling=journaling)
    await outbound.stream(b"b", b"c")
    old = outbound.queue.stream.identifier
    outbound.network.is_down = False
    await outbound.turn(20)
    assert outbound.places() == [(1, 0), (2, 1)]
    assert all(stream > old for stream in _streams(outbound))
    await outbound.answer_all()
    await outbound.acknowledge(2)
    assert await outbound.left() == []
    dead = [(b"a", MessageClass.NACK_REACH_QUEUE_TIMEOUT.value)]
    assert await outbound.kept(TRANSACTIONAL_DEAD_LETTER) == (dead if journaling else [])


async def test_a_refused_head_with_others_behind_it(outbound: Outbound) -> None:
    """The others were ignored, whatever they were answered: they name one before that never came."""
    await outbound.stream(b"a", b"b", b"c")
    await outbound.answer(400, 200, 200)
    await outbound.settle()
    assert outbound.posted() == [b"a", b"b", b"c", b"b", b"c"]
    assert outbound.places()[3:] == [(1, 0), (2, 1)]
    assert _streams(outbound)[3] > _streams(outbound)[0]
    await outbound.stream(b"d")
    assert outbound.places()[5:] == [(3, 2)]
    await outbound.answer_all()
    await outbound.acknowledge(3)
    assert await outbound.left() == []


async def test_a_refused_one_in_the_middle_of_a_long_queue(opened: Opener, clock: ManualClock) -> None:
    async with outbound_of(opened, clock, in_flight=3) as outbound:
        texts = [b"%d" % number for number in range(1, 10)]
        await outbound.stream(*texts)
        await outbound.answer(200, 400, 200)
        await outbound.answer_all()
        assert outbound.posted()[3:] == [b"1", *texts[2:]], "what was sent around it, at once"
        assert outbound.places()[3:6] == [(1, 0), (3, 1), (4, 3)]


async def test_all_are_refused(outbound: Outbound) -> None:
    await outbound.stream(*[b"%d" % number for number in range(100)], negative_journaling=True)
    await outbound.answer_all(400)
    assert await outbound.left() == []
    assert len(await outbound.kept(TRANSACTIONAL_DEAD_LETTER)) == 100


async def test_a_refusal_and_a_failure_in_one_packet(outbound: Outbound) -> None:
    await outbound.stream(b"a", b"b", b"c")
    await outbound.answer(400, 200, 500)
    assert outbound.state is OutgoingState.INACTIVE
    await outbound.turn(20)
    assert [srmp.body for srmp in outbound.link.posted] == [b"b", b"c"]
    assert outbound.places() == [(1, 0), (2, 1)]


async def test_purged_while_waiting_for_a_receipt(outbound: Outbound) -> None:
    await outbound.stream(b"a", b"b")
    await outbound.answer_all()
    await outbound.manager.purge_queue(FAR)
    await outbound.acknowledge(1)
    await outbound.turn(30)
    assert await outbound.left() == []
    events = [row.event for row in await history(outbound.manager)]
    assert (events.count("acknowledged"), events.count("purged")) == (1, 1)


# Failures.


async def test_a_receipt_that_cannot_be_settled_is_settled_later(
    outbound: Outbound, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settling, "RECEIPT_CHUNK", 2)
    await outbound.stream(b"a", b"b", b"c", b"d", b"e")
    await outbound.answer_all()
    posted = len(outbound.posted())
    async with full_disk(outbound.manager):
        with pytest.raises(Exception, match="full"):
            await outbound.session.acknowledge(5)
        await outbound.settle()
    assert await outbound.left() == [b"a", b"b", b"c", b"d", b"e"]
    await outbound.turn(20)
    assert await outbound.left() == []
    assert len(outbound.posted()) == posted, "they are known to have arrived"


async def test_a_connection_that_goes_while_a_stream_is_begun_anew(outbound: Outbound) -> None:
    outbound.network.is_down = True
    await outbound.stream(b"a", time_to_reach_queue=5)
    await outbound.stream(b"b")
    outbound.network.is_down = False
    with stuck_writer(outbound.manager):
        outbound.clock.advance(20)
        retry = await started(outbound.manager._core.settle())
        if outbound.network.links:
            outbound.link.lose()
    await retry
    await outbound.turn(20)
    assert outbound.places()[-1:] == [(1, 0)]
    await outbound.answer_all()
    await outbound.acknowledge(1)
    assert await outbound.left() == []


async def test_what_was_lost_with_the_connection_is_not_overtaken(opened: Opener, clock: ManualClock) -> None:
    async with outbound_of(opened, clock, in_flight=4) as outbound:
        texts = [b"%d" % number for number in range(1, 13)]
        await outbound.stream(*texts)
        await outbound.answer(200, 200)
        await outbound.lose()
        assert outbound.places() == [(number, number - 1) for number in range(3, 7)]


# Restarts.


@pytest.mark.parametrize("phase", ["queued", "sent", "answered", "acknowledged in part"])
async def test_a_restart_in_every_phase(opened: Opener, clock: ManualClock, phase: str) -> None:
    network = FakeNetwork()
    async with outbound_of(opened, clock, network) as outbound:
        network.is_down = phase == "queued"
        await outbound.stream(b"a", b"b", b"c")
        if phase in ("answered", "acknowledged in part"):
            await outbound.answer_all()
        if phase == "acknowledged in part":
            await outbound.acknowledge(2)
        stream = outbound.session.stream
    network.is_down = False
    async with outbound_of(opened, clock, network) as outbound:
        expected = [(3, 2)] if phase == "acknowledged in part" else [(1, 0), (2, 1), (3, 2)]
        assert outbound.places() == expected
        assert set(_streams(outbound)) == {stream}
        await outbound.stream(b"d")
        current, previous = outbound.places()[-1]
        assert current > 3
        assert previous == 3
        await outbound.answer_all()
        await outbound.acknowledge(current)
        assert await outbound.left() == []


async def test_a_late_copy_of_a_receipt_after_a_restart_is_nothing_to_complain_about(
    opened: Opener, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    network = FakeNetwork()
    async with outbound_of(opened, clock, network) as outbound:
        await outbound.stream(b"a", b"b")
        await outbound.answer_all()
        await outbound.acknowledge(2)
        stream = outbound.session.stream
        network.is_down = True
        await outbound.send(b"keeps the queue")
    async with outbound_of(opened, clock, network) as outbound:
        assert outbound.session.owns(stream)
        await outbound.acknowledge(2, stream)
        assert "only 0 were sent" not in caplog.text
        await outbound.acknowledge(3, stream)
        assert "a receipt for 3, and only 2 were sent" in caplog.text


async def test_a_new_stream_after_a_restart_is_greater_than_all_before(
    opened: Opener, clock: ManualClock
) -> None:
    async with outbound_of(opened, clock) as outbound:
        await outbound.stream(b"a")
        await outbound.answer_all()
        await outbound.acknowledge(1)
        old = _streams(outbound)[0]
    clock.jump(-86_400)
    async with outbound_of(opened, clock) as outbound:
        await outbound.stream(b"b")
        assert _streams(outbound)[0] > old, "also when the clock was set back"


async def test_a_stream_that_was_begun_anew_stays_so_over_a_restart(
    opened: Opener, clock: ManualClock
) -> None:
    async with outbound_of(opened, clock) as outbound:
        outbound.network.is_down = True
        await outbound.stream(b"a", time_to_reach_queue=5)
        await outbound.stream(b"b", b"c")
        outbound.network.is_down = False
        await outbound.turn(20)
        before = list(zip(_streams(outbound), outbound.places(), strict=True))
    async with outbound_of(opened, clock) as outbound:
        assert list(zip(_streams(outbound), outbound.places(), strict=True)) == before


# An administrator begins a stream anew.


async def test_reset(outbound: Outbound) -> None:
    await outbound.stream(b"a", b"b", b"c")
    await outbound.answer_all()
    await outbound.acknowledge(1)
    assert await outbound.session.reset() == 2
    await outbound.settle()
    assert outbound.posted()[3:] == [b"b", b"c"]
    assert outbound.places() == [(1, 0), (2, 1)]
    await outbound.answer_all()
    await outbound.acknowledge(2)
    assert await outbound.left() == []


async def test_reset_of_nothing(outbound: Outbound) -> None:
    assert await outbound.session.reset() == 0
    await outbound.send(b"plain")
    assert await outbound.session.reset() == 0
