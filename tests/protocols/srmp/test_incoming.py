"""Which message of a stream is next (MC-MQSRM 3.1.5.1.6.3): the table, and streams over a bad network."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.manager.conftest import bodies, full_disk, settle
from tests.protocols.srmp.conftest import Inbound, inbound_of
from tests.protocols.srmp.envelopes import HERE, RECEIPTS, STREAM, place, streamed

from lanner.manager import ManualClock, QueueManager
from lanner.model.queue import QueueProperties
from lanner.protocols.srmp import wire
from lanner.protocols.srmp.incoming import StreamState, Verdict

ACCEPTED, DUPLICATE, OUT_OF_ORDER = Verdict.ACCEPTED, Verdict.DUPLICATE, Verdict.OUT_OF_ORDER
LEDGER = r".\private$\ledger"

FRESH = StreamState()
AT_5 = StreamState(STREAM, 5, RECEIPTS, 3, 1.0, "DIRECT=x")


@pytest.mark.parametrize(
    ("state", "stream", "expected"),
    [
        (FRESH, place(1), ACCEPTED),
        (FRESH, place(2), OUT_OF_ORDER),
        (
            FRESH,
            wire.Stream(stream_id=wire.StreamId(place(1).stream_id.queue_manager, 1), current=1),
            OUT_OF_ORDER,
        ),
        (AT_5, place(6), ACCEPTED),
        (AT_5, place(6, previous=0), ACCEPTED),
        (AT_5, place(7), OUT_OF_ORDER),
        (AT_5, place(7, previous=0), OUT_OF_ORDER),
        (AT_5, place(7, previous=5), ACCEPTED),
        (AT_5, place(9, previous=3), ACCEPTED),
        (AT_5, place(9, previous=6), OUT_OF_ORDER),
        (AT_5, place(5), DUPLICATE),
        (AT_5, place(4), DUPLICATE),
        (AT_5, place(1), DUPLICATE),
        (AT_5, place(1, stream=STREAM - 1), DUPLICATE),
        (AT_5, place(6, stream=STREAM - 1), DUPLICATE),
        (AT_5, place(1, stream=STREAM + 1), ACCEPTED),
        (AT_5, place(2, stream=STREAM + 1), OUT_OF_ORDER),
        (AT_5, place(6, stream=STREAM + 1), OUT_OF_ORDER),
    ],
)
def test_the_table(state: StreamState, stream: wire.Stream, expected: Verdict) -> None:
    assert state.judge(stream) is expected


def test_what_is_remembered() -> None:
    later = AT_5.after(place(8, previous=5), 9.0, "DIRECT=y")
    assert later == StreamState(STREAM, 8, RECEIPTS, 3, 9.0, "DIRECT=y")
    new = AT_5.after(place(1, stream=STREAM + 1), 9.0, "DIRECT=y")
    assert new == StreamState(STREAM + 1, 1, RECEIPTS, 0, 9.0, "DIRECT=y")


async def test_what_an_administrator_sees(inbound: Inbound, clock: ManualClock) -> None:
    for number in (1, 2):
        await inbound.post(streamed(number))
    clock.advance(3)
    await inbound.post(streamed(2))
    await inbound.post(streamed(9))
    (shown,) = inbound.manager._core.queues.get(LEDGER).incoming_transfers.values()
    assert (shown.stream, shown.number, shown.rejections) == (STREAM, 2, 2)
    assert shown.last_access == clock.time()
    assert shown.format_name == f"DIRECT=http://{HERE}/msmq/private$/ledger"
    await inbound.post(streamed(3))
    (shown,) = inbound.manager._core.queues.get(LEDGER).incoming_transfers.values()
    assert (shown.number, shown.rejections) == (3, 0)


class Streams(RuleBasedStateMachine):
    """A sender that resends all it likes, over a network that reorders, repeats and loses.

    What is in the queue is always the beginning of what was sent, in order, each once; what is sent from the
    first gap on, in order, always arrives.
    """

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory()
        self.loop = asyncio.new_event_loop()
        self.clock = ManualClock()
        self.sent: list[wire.SrmpMessage] = []
        self.number = 0
        self.stream = STREAM

    def run(self, work: Any) -> Any:
        return self.loop.run_until_complete(work)

    async def _open(self) -> None:
        self.manager = await QueueManager.open(
            Path(self.directory.name) / "store", name=HERE, clock=self.clock
        )
        self.inbound = inbound_of(self.manager)
        await self.inbound.receiver.load()

    @initialize()
    def start(self) -> None:
        self.run(self._open())
        self.run(self.manager.create_queue(LEDGER, QueueProperties(transactional=True)))

    @rule(skipped=st.integers(0, 3))
    def write(self, skipped: int) -> None:
        """One more message, perhaps behind some that expired before they were sent."""
        previous = self.number
        self.number += 1 + (skipped if previous else 0)
        self.sent.append(streamed(self.number, previous, self.stream))

    @rule(data=st.data())
    def deliver(self, data: st.DataObject) -> None:
        """Any of them in any order, some of them several times, some at the same moment."""
        if self.sent:
            chosen = data.draw(st.lists(st.integers(0, len(self.sent) - 1), max_size=8))
            self.run(self._post(chosen))

    @rule()
    def deliver_in_order(self) -> None:
        self.run(self._post(range(len(self.sent))))
        assert self.run(self._arrived()) == self._bodies()

    @rule(data=st.data())
    def deliver_on_a_full_disk(self, data: st.DataObject) -> None:
        if self.sent:
            chosen = data.draw(st.lists(st.integers(0, len(self.sent) - 1), max_size=5))
            self.run(self._post_on_a_full_disk(chosen))

    @rule()
    def restart(self) -> None:
        self.inbound.receiver.stop()
        self.run(self.manager.close())
        self.run(self._open())

    @rule(seconds=st.floats(0, 20))
    def wait(self, seconds: float) -> None:
        self.run(self._wait(seconds))

    @rule()
    def begin_a_new_stream(self) -> None:
        """All has arrived, and the next message begins a new one."""
        self.deliver_in_order()
        if self.number:
            self.stream, self.number = self.stream + 1, 0

    @invariant()
    def what_arrived_is_the_beginning_of_what_was_sent(self) -> None:
        if hasattr(self, "manager"):
            arrived = self.run(self._arrived())
            assert arrived == self._bodies()[: len(arrived)]

    def teardown(self) -> None:
        if hasattr(self, "manager"):
            self.inbound.receiver.stop()
            self.run(self.manager.close())
        self.loop.close()
        self.directory.cleanup()

    async def _wait(self, seconds: float) -> None:
        self.clock.advance(seconds)
        await settle(self.manager)

    def _bodies(self) -> list[bytes]:
        return [srmp.body or b"" for srmp in self.sent]

    async def _arrived(self) -> list[bytes]:
        return await bodies(self.manager, LEDGER)

    async def _post(self, chosen: Any) -> None:
        answers = await asyncio.gather(*(self.inbound.post(self.sent[each]) for each in chosen))
        assert {answer.status for answer in answers} <= {200}

    async def _post_on_a_full_disk(self, chosen: list[int]) -> None:
        async with full_disk(self.manager):
            await asyncio.gather(*(self.inbound.post(self.sent[each]) for each in chosen))
        await settle(self.manager)


Streams.TestCase.settings = settings(
    max_examples=25, stateful_step_count=15, deadline=None, suppress_health_check=list(HealthCheck)
)
TestStreams = Streams.TestCase
