"""A sender and a receiver, and a bad network in memory between them."""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.manager.conftest import bodies, full_disk, settle
from tests.protocols.srmp.conftest import Inbound, inbound_of
from tests.protocols.srmp.envelopes import HERE
from tests.protocols.srmp.outbound import FakeNetwork, Outbound

from lanner.manager import ManagerSettings, ManualClock, QueueManager
from lanner.model.codes import MessageClass
from lanner.model.message import Message
from lanner.model.queue import QueueProperties
from lanner.protocols.srmp import wire
from lanner.protocols.srmp.settings import SrmpSettings
from lanner.store import Changes

THERE = r".\private$\orders"
ORDER_QUEUE = f"DIRECT=http://{HERE}/MSMQ/PRIVATE$/order_queue$"
SETTINGS = SrmpSettings(in_flight=4)


class Lossy(RuleBasedStateMachine):
    """What has arrived is always the beginning of what was sent, in order; in the end it is all of it."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory()
        self.loop = asyncio.new_event_loop()
        self.clock = ManualClock()
        self.network = FakeNetwork()
        self.numbers = itertools.count()
        self.sent: list[bytes] = []
        self.received: list[bytes] = []

    def run(self, work: Awaitable[Any]) -> Any:
        return self.loop.run_until_complete(work)

    async def _open(self, name: str) -> QueueManager:
        return await QueueManager.open(
            Path(self.directory.name) / name, name=name, settings=ManagerSettings(), clock=self.clock
        )

    async def _start_sender(self) -> None:
        self.sender = await self._open(HERE)
        self.outbound = Outbound(self.sender, self.clock, self.network, SETTINGS)
        await self.outbound.serve()

    async def _start_receiver(self) -> None:
        self.receiver = await self._open("there")
        self.inbound: Inbound = inbound_of(self.receiver)
        await self.inbound.receiver.load()

    @initialize()
    def start(self) -> None:
        self.run(self._start_receiver())
        self.run(self.receiver.create_queue(THERE, QueueProperties(transactional=True)))
        self.run(self._start_sender())

    # What happens.

    @rule(count=st.integers(1, 6), keeps=st.booleans())
    def send(self, count: int, keeps: bool) -> None:
        texts = [b"%d" % next(self.numbers) for _ in range(count)]
        self.run(self.outbound.stream(*texts, negative_journaling=keeps))
        self.sent.extend(texts)

    @rule(count=st.integers(1, 6), is_answered=st.booleans())
    def deliver(self, count: int, is_answered: bool) -> None:
        """Requests arrive, in order; their answers may get lost with the connection."""
        self.run(self._deliver(count, is_answered=is_answered))

    @rule(data=st.data())
    def deliver_late_copies(self, data: st.DataObject) -> None:
        posted = [srmp for link in self.network.links for srmp in link.posted]
        if posted:
            chosen = data.draw(st.lists(st.integers(0, len(posted) - 1), max_size=4))
            for each in chosen:
                assert self.run(self.inbound.post(posted[each])).status == 200

    @rule()
    def lose_the_connection(self) -> None:
        if self.network.links and not self.network.links[-1].is_closed:
            self.run(self.outbound.lose())

    @rule()
    def refuse_for_now(self) -> None:
        if self._unanswered():
            self.run(self.outbound.answer(503))

    @rule()
    def refuse_for_ever(self) -> None:
        """The next message is answered 400: if it has not arrived before, it never will."""
        if self._unanswered():
            body = self._unanswered()[0].body or b""
            if body not in self.run(self._there()):
                self.sent.remove(body)
                for link in self.network.links:
                    link.posted = [srmp for srmp in link.posted if srmp.body != body]
            self.run(self.outbound.answer(400))

    @rule(seconds=st.sampled_from([0.5, 1, 20, 30, 60, 300]))
    def wait(self, seconds: float) -> None:
        self.run(self._wait(seconds))

    @rule(loses=st.booleans())
    def receipts(self, loses: bool) -> None:
        """Receipts go back; a stream receipt may get lost, a final one is kept by its sender."""
        self.run(self._carry_receipts(loses=loses))

    @rule()
    def receive(self) -> None:
        self.run(self._receive())

    @rule()
    def restart_the_sender(self) -> None:
        self.outbound.session.stop()
        for link in self.network.links:
            link.is_closed = True
        self.run(self.sender.close())
        self.run(self._start_sender())

    @rule()
    def restart_the_receiver(self) -> None:
        self.inbound.receiver.stop()
        self.run(self.receiver.close())
        self.run(self._start_receiver())

    @rule(is_senders=st.booleans())
    def full_disk(self, is_senders: bool) -> None:
        self.run(self._work_on_a_full_disk(self.sender if is_senders else self.receiver))

    @rule()
    def begin_anew(self) -> None:
        self.run(self.outbound.session.reset())
        self.run(self._settle())

    # What is always so.

    @invariant()
    def nothing_twice_and_all_in_order(self) -> None:
        if hasattr(self, "outbound"):
            there = self.run(self._there())
            assert there == self.sent[: len(there)]

    def teardown(self) -> None:
        if hasattr(self, "outbound"):
            self.run(self._finish())
            self.inbound.receiver.stop()
            self.outbound.session.stop()
            self.run(self.sender.close())
            self.run(self.receiver.close())
        self.loop.close()
        self.directory.cleanup()

    async def _finish(self) -> None:
        """With a good network everything arrives, and nothing stays behind."""
        for _ in range(40):
            self.clock.advance(30)
            await self._settle()
            await self._deliver(1000, is_answered=True)
            await self._receive()
            self.clock.advance(1)
            await self._settle()
            await self._carry_receipts(loses=False)
            if not len(self.outbound.queue.messages):
                break
        assert self.received == self.sent
        assert await self.outbound.left() == []

    # How.

    def _unanswered(self) -> list[wire.SrmpMessage]:
        """What was posted on the connection that is there."""
        links = [link for link in self.network.links if not link.is_closed]
        return links[-1].unanswered if links else []

    async def _there(self) -> list[bytes]:
        return self.received + await bodies(self.receiver, THERE)

    async def _wait(self, seconds: float) -> None:
        self.clock.advance(seconds)
        await self._settle()

    async def _settle(self) -> None:
        await settle(self.sender)
        await settle(self.receiver)

    async def _deliver(self, count: int, *, is_answered: bool) -> None:
        while self.network.links and not self.network.links[-1].is_closed and count > 0:
            link = self.network.links[-1]
            chosen = link.unanswered[: min(count, 4)]
            if not chosen:
                return
            count -= len(chosen)
            answers = await asyncio.gather(*(self.inbound.post(srmp) for srmp in chosen))
            if not is_answered:
                await self.outbound.lose()
                return
            link.answer(*(answer.status for answer in answers))
            await self._settle()

    async def _carry_receipts(self, *, loses: bool) -> None:
        queue = self.receiver._core.target(ORDER_QUEUE)
        positions = queue.messages.available(1000)
        for position, receipt in zip(positions, await self.receiver.transfers.load(positions), strict=True):
            order = receipt.order_receipt
            assert order is not None
            is_final = receipt.message_class != MessageClass.ORDER_ACK
            if self.outbound.session.owns(order.stream) and (is_final or not loses):
                if is_final:
                    await self.outbound.session.conclude(order.sequence, receipt.message_class, order.stream)
                else:
                    await self.outbound.session.acknowledge(order.sequence, order.stream)
            queue.messages.lock(position)
            changes = Changes()
            self.receiver.transfers.hand_over(changes, position, receipt, "here")
            await self.receiver.transfers.finish(changes)
        await self._settle()

    async def _receive(self) -> None:
        for _ in await bodies(self.receiver, THERE):
            message: Message = await self.receiver.receive(THERE, timeout=0)
            self.received.append(message.body)

    async def _work_on_a_full_disk(self, manager: QueueManager) -> None:
        async with full_disk(manager):
            await self._deliver(4, is_answered=True)
        await self._settle()


Lossy.TestCase.settings = settings(
    max_examples=20, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
)
TestLossy = Lossy.TestCase
