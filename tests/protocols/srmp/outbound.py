"""An outgoing queue whose other side is in memory: it keeps what is posted, and answers when told to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from tests.manager.conftest import contents, let_run, settle
from tests.protocols.srmp.conftest import Opener
from tests.protocols.srmp.envelopes import HERE

from lanner.manager import ManualClock, QueueManager
from lanner.manager.events import (
    ConnectionChanged,
    OutgoingMessages,
    OutgoingQueuePaused,
    OutgoingQueueResumed,
    QueueCreated,
    QueueDeleted,
)
from lanner.manager.queues import OutgoingQueue, Queue
from lanner.model.codes import MessageClass
from lanner.model.message import Delivery, Message
from lanner.model.queue import OutgoingState
from lanner.model.transfer import ConnectionStatus
from lanner.protocols.srmp import wire
from lanner.protocols.srmp.client import ConnectFailedError, LinkOwner, Reply, Target
from lanner.protocols.srmp.outgoing import OutgoingSession, Services
from lanner.protocols.srmp.outgoing_stream import SCOPE, StreamProgress
from lanner.protocols.srmp.posting import Poster
from lanner.protocols.srmp.redirection import Redirections
from lanner.protocols.srmp.settings import SrmpSettings
from lanner.protocols.srmp.signers import Signers

THERE = "http://there/msmq/private$/orders"
FAR = f"DIRECT={THERE}"


class FakeLink:
    """A connection whose other end is the test."""

    def __init__(self, owner: LinkOwner) -> None:
        self.owner = owner
        self.unanswered: list[wire.SrmpMessage] = []
        self.posted: list[wire.SrmpMessage] = []
        self.is_closed = False
        self.peer = "10.0.0.9"

    def post(self, head: bytes, body: bytes) -> None:
        assert not self.is_closed
        lines = dict(line.split(b": ", 1) for line in head.split(b"\r\n") if b": " in line)
        srmp = wire.decode_request(lines[b"Content-Type"], body)
        self.posted.append(srmp)
        self.unanswered.append(srmp)

    def close(self) -> None:
        self.is_closed = True

    def answer(self, *statuses: int) -> None:
        """Answer the oldest requests, all in one packet."""
        assert not self.is_closed
        del self.unanswered[: len(statuses)]
        self.owner.replied([Reply(status, f"status {status}") for status in statuses])

    def lose(self) -> None:
        self.is_closed = True
        self.owner.lost("the network is gone")


class FakeNetwork:
    """Makes connections, or does not."""

    def __init__(self) -> None:
        self.links: list[FakeLink] = []
        self.targets: list[Target] = []
        self.is_down = False
        self.gate: asyncio.Event | None = None
        """Set it to something that is waited for before a connection is made."""

    async def connect(self, target: Target, owner: LinkOwner) -> FakeLink:
        self.targets.append(target)
        if self.gate is not None:
            await self.gate.wait()
        if self.is_down:
            raise ConnectFailedError(ConnectionStatus.CONNECTION_REFUSED, "nobody is there")
        link = FakeLink(owner)
        self.links.append(link)
        return link


class Outbound:
    """A session for one outgoing queue."""

    def __init__(
        self, manager: QueueManager, clock: ManualClock, network: FakeNetwork, settings: SrmpSettings
    ) -> None:
        self.manager = manager
        self.clock = clock
        self.network = network
        self.redirections = Redirections()
        self.services = Services(
            manager.transfers,
            settings,
            network.connect,
            Poster(lambda scheme: f"{scheme}://{HERE}", Signers(), lambda: self.redirections),
            lambda: manager.is_online,
        )
        self.session: OutgoingSession
        self._progress: dict[str, bytes] = {}

    async def serve(self) -> None:
        """Begin to send, as after a start."""
        events = self.manager.events
        self._progress = await self.manager.transfers.state(SCOPE)
        events.subscribe(QueueCreated, lambda event: self._serve(event.queue))
        events.subscribe(QueueDeleted, self._forget)
        events.subscribe(OutgoingMessages, lambda _: self.session.wake())
        events.subscribe(OutgoingQueuePaused, lambda _: self.session.pause())
        events.subscribe(OutgoingQueueResumed, lambda _: self.session.resume())
        events.subscribe(
            ConnectionChanged,
            lambda event: self.session.resume() if event.online else self.session.pause(),
        )
        known = self.manager._core.queues.find(FAR)
        self._serve(known or self.manager._core.target(FAR))
        self.session.wake()
        await self.settle()

    def _forget(self, event: QueueDeleted) -> None:
        if event.queue is self.queue:
            self.session.stop()

    def _serve(self, queue: Queue) -> None:
        if not isinstance(queue, OutgoingQueue) or (getattr(self, "session", None) and queue is self.queue):
            return
        stored = self._progress.pop(str(queue.id), None)
        progress = msgspec.msgpack.decode(stored, type=StreamProgress) if stored else None
        self.session = OutgoingSession(queue, self.services, progress)

    @property
    def queue(self) -> OutgoingQueue:
        return self.session.queue

    @property
    def state(self) -> OutgoingState:
        return self.queue.state

    @property
    def link(self) -> FakeLink:
        """The latest connection."""
        return self.network.links[-1]

    async def settle(self) -> None:
        """Let everything happen that can."""
        if self.network.gate is not None and not self.network.gate.is_set():
            await let_run(50)
            return
        await settle(self.manager)

    async def turn(self, seconds: float) -> None:
        self.clock.advance(seconds)
        await self.settle()

    async def send(self, *bodies: bytes, **attributes: Any) -> None:
        """Send durable messages."""
        for body in bodies:
            await self.manager.send(FAR, Message(body=body, delivery=Delivery.RECOVERABLE, **attributes))
        await self.settle()

    async def stream(self, *bodies: bytes, **attributes: Any) -> None:
        """Send messages of a stream, one transaction each."""
        for body in bodies:
            async with self.manager.transaction() as transaction:
                await self.manager.send(FAR, Message(body=body, **attributes), transaction=transaction)
        await self.settle()

    async def answer(self, *statuses: int) -> None:
        self.link.answer(*statuses)
        await self.settle()

    async def answer_all(self, status: int = 200) -> None:
        while self.link.unanswered:
            await self.answer(*[status] * len(self.link.unanswered))

    async def lose(self) -> None:
        self.link.lose()
        await self.settle()

    async def acknowledge(self, number: int, stream: int = 0) -> None:
        await self.session.acknowledge(number, stream or self.session.stream)
        await self.settle()

    async def conclude(self, number: int, reason: MessageClass, stream: int = 0) -> bool:
        found = await self.session.conclude(number, reason.value, stream or self.session.stream)
        await self.settle()
        return found

    def posted(self) -> list[bytes]:
        """The bodies of all that was posted, on all connections."""
        return [srmp.body or b"" for link in self.network.links for srmp in link.posted]

    def places(self) -> list[tuple[int, int]]:
        """The places in the stream of what was posted on the latest connection: current, previous."""
        streams = [srmp.envelope.stream for srmp in self.link.posted]
        return [(each.current, each.previous) for each in streams if each is not None]

    async def left(self) -> list[bytes]:
        """What is in the queue, locked or not."""
        messages = await self.manager.transfers.load(list(self.queue.messages))
        return [message.body for message in messages]

    async def kept(self, name: str) -> list[tuple[bytes, int]]:
        """What is in a local queue: bodies and classes."""
        return [(each.body, each.message_class) for each in await contents(self.manager, name)]


@asynccontextmanager
async def outbound_of(
    opened: Opener, clock: ManualClock, network: FakeNetwork | None = None, **settings: Any
) -> AsyncIterator[Outbound]:
    """Open the manager, and serve its outgoing queue."""
    async with opened() as manager:
        outbound = Outbound(manager, clock, network or FakeNetwork(), SrmpSettings(**settings))
        await outbound.serve()
        yield outbound
        outbound.session.stop()
