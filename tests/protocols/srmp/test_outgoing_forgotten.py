"""A stream that the receiver knows no more, and one whose receipts are lost: they look the same from here."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.manager.conftest import bodies, history, settle
from tests.protocols.srmp.conftest import Inbound, Opener, inbound_of
from tests.protocols.srmp.outbound import FAR, Outbound, outbound_of

from lanner.manager import ManagerSettings, ManualClock, QueueManager
from lanner.model.queue import QueueProperties
from lanner.model.transfer import FORGOTTEN_AFTER
from lanner.protocols.srmp.duplicates import MAX_AGE

THERE = r".\private$\orders"


class Pair:
    """A sender and a receiver; receipts are carried when the test says so."""

    def __init__(self, outbound: Outbound, inbound: Inbound) -> None:
        self.outbound = outbound
        self.inbound = inbound
        self.there = inbound.manager

    async def deliver(self) -> None:
        """Everything that is posted arrives, and is answered."""
        while self.outbound.link.unanswered:
            posted = list(self.outbound.link.unanswered)
            answers = await asyncio.gather(*(self.inbound.post(srmp) for srmp in posted))
            await self.outbound.answer(*(answer.status for answer in answers))
        await settle(self.there)

    async def time_out(self, times: int = FORGOTTEN_AFTER) -> None:
        for _ in range(times):
            await self.outbound.turn(self.outbound.queue.transfer.resend_interval)
            await self.deliver()

    async def make_anew(self) -> None:
        await self.there.delete_queue(THERE)
        await self.there.create_queue(THERE, QueueProperties(transactional=True))

    async def why(self) -> str:
        told = await self.outbound.manager.why.queue(FAR)
        return "\n".join((*told.findings, *told.advice))


@pytest.fixture
async def pair(opened: Opener, clock: ManualClock, tmp_path: Path) -> AsyncIterator[Pair]:
    there = await QueueManager.open(tmp_path / "there", name="there", settings=ManagerSettings(), clock=clock)
    async with there, outbound_of(opened, clock) as outbound:
        await there.create_queue(THERE, QueueProperties(transactional=True))
        inbound = inbound_of(there)
        pair = Pair(outbound, inbound)
        await outbound.stream(b"a")
        await pair.deliver()
        await outbound.stream(b"b", b"c")
        await outbound.acknowledge(1)
        yield pair
        inbound.receiver.stop()


async def test_a_queue_that_was_made_anew_is_told_of_and_a_reset_helps(
    pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    await pair.make_anew()
    await pair.deliver()
    await pair.time_out(FORGOTTEN_AFTER - 1)
    assert "lanner srmp reset" not in caplog.text
    stream = pair.outbound.session.stream
    await pair.time_out(1)
    assert f"lanner srmp reset '{pair.outbound.queue.name}'" in caplog.text
    assert f"lanner srmp reset '{pair.outbound.queue.name}'" in await pair.why()
    assert "although some came before" in await pair.why()
    rows = [row.reason or "" for row in await history(pair.outbound.manager) if row.event == "retransmitted"]
    assert ["forgotten" in reason for reason in rows] == [False] * 4 + [True] * 2
    assert pair.outbound.session.stream == stream, "nobody but an administrator begins it anew"
    there = await pair.there.why.queue(THERE)
    assert any("its first message never came" in finding for finding in there.findings)
    assert any("lanner srmp reset" in advice for advice in there.advice)
    assert await bodies(pair.there, THERE) == []

    assert await pair.outbound.session.reset() == 2
    await pair.outbound.settle()
    await pair.deliver()
    assert await bodies(pair.there, THERE) == [b"b", b"c"]
    transfer = pair.outbound.queue.transfer
    assert (transfer.fruitless_resends, transfer.resend_interval) == (0, 30), "a new stream, new patience"
    await pair.outbound.acknowledge(2)
    assert await pair.outbound.left() == []


async def test_a_receiver_whose_receipts_are_blocked_gets_nothing_twice(pair: Pair) -> None:
    await pair.deliver()
    await pair.time_out(12)
    assert await bodies(pair.there, THERE) == [b"a", b"b", b"c"]
    assert "could arrive twice" in await pair.why()


async def test_why_it_is_not_begun_anew_by_itself(pair: Pair, clock: ManualClock) -> None:
    """A paused queue waits longer than receivers know identifiers, and not all know them so long."""
    await pair.deliver()
    await pair.outbound.manager.pause_queue(FAR)
    clock.advance(MAX_AGE)
    await pair.outbound.manager.resume_queue(FAR)
    await pair.time_out()
    assert await bodies(pair.there, THERE) == [b"a", b"b", b"c"]
    await pair.outbound.session.reset()
    await pair.outbound.settle()
    await pair.deliver()
    assert await bodies(pair.there, THERE) == [b"a", b"b", b"c", b"b", b"c"]


async def test_progress_ends_the_suspicion(pair: Pair) -> None:
    await pair.deliver()
    await pair.time_out()
    await pair.outbound.acknowledge(2)
    assert not pair.outbound.queue.transfer.may_be_forgotten
    await pair.time_out(FORGOTTEN_AFTER - 1)
    assert not pair.outbound.queue.transfer.may_be_forgotten
    await pair.time_out(1)
    assert pair.outbound.queue.transfer.may_be_forgotten


async def test_a_stream_whose_first_message_is_sent_again_is_not_forgotten(
    opened: Opener, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever had forgotten it would take it again from its first message on."""
    async with outbound_of(opened, clock) as outbound:
        await outbound.stream(b"a", b"b")
        await outbound.answer_all()
        for _ in range(FORGOTTEN_AFTER + 1):
            await outbound.turn(outbound.queue.transfer.resend_interval)
            await outbound.answer_all()
        assert not outbound.queue.transfer.may_be_forgotten
        assert "lanner srmp reset" not in caplog.text
