"""The connection of one outgoing queue, and what is on its way over it (MC-MQSRM 3.1.7.9, 3.1.7.2.5).

Answers come in the order of the requests, so what was sent and is not answered is a line too: its first is
answered next. When the connection ends, whatever is left of it is to be sent again.

An attempt to connect may take long: a silent host lets TCP or TLS wait. Closing ends the attempt too, so that
what comes next, perhaps to another host, need not wait for it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import NamedTuple

from lanner.manager.clock import Clock
from lanner.manager.positions import Position
from lanner.manager.queues import OutgoingQueue
from lanner.model.message import Message
from lanner.model.transfer import Connection, ConnectionStatus, Sequence
from lanner.protocols.srmp.client import Connector, Link, LinkOwner, Target

__all__ = ["IN_FLIGHT_BYTES", "Line", "Sent"]

IN_FLIGHT_BYTES = 2 * 1024 * 1024
"""Bytes on their way before no more is sent, one message apart: they are all in memory."""

SLOWEST_LINK = 32 * 1024
"""Bytes a second that any network carries: an answer is waited for from when the message can be there."""


class Sent(NamedTuple):
    """A message that is on its way and not answered yet."""

    position: Position
    message: Message
    place: Sequence | None
    """Its place in our own stream."""
    size: int


class Line:
    """Leads to where one outgoing queue sends."""

    def __init__(self, queue: OutgoingQueue, connector: Connector, clock: Clock) -> None:
        self._queue = queue
        self._connector = connector
        self._clock = clock
        self._link: Link | None = None
        self._attempt: asyncio.Future[Link] | None = None
        """To connect, as long as somebody wants the connection."""
        self._sent: deque[Sent] = deque()
        self._sent_bytes = 0
        self.target: Target | None = None
        """Where it leads, or led last."""
        self.has_answered = False
        """Whether the connection has brought an answer yet."""

    # The connection.

    @property
    def is_open(self) -> bool:
        """Whether there is a connection."""
        return self._link is not None

    @property
    def is_connecting(self) -> bool:
        """Whether a connection is being made."""
        return self._attempt is not None

    async def connect(self, target: Target, owner: LinkOwner) -> bool:
        """Make a connection, or raise ConnectFailedError. Says whether it is there, and not closed by now."""
        self.target = target
        self.remember(ConnectionStatus.IN_PROCESS)
        self.has_answered = False
        attempt = self._attempt = asyncio.ensure_future(self._connector(target, owner))
        try:
            await asyncio.wait((attempt,))
        finally:
            attempt.cancel()  # if whoever waits here is cancelled
            is_wanted, self._attempt = self._attempt is attempt, None
        if attempt.cancelled():
            return False
        if not is_wanted:
            # It was made, or has failed, just when it was closed.
            if attempt.exception() is None:
                attempt.result().close()
            return False
        self._link = attempt.result()
        self._queue.peer = self._link.peer
        self.remember(ConnectionStatus.ESTABLISHED)
        return True

    def close(self) -> None:
        """End the connection, or the attempt to make it."""
        if self._attempt is not None:
            self._attempt.cancel()
            self._attempt = None
        if self._link is not None:
            self._link.close()
            self._link = None

    def lost(self) -> None:
        """The connection is gone by itself."""
        self._link = None

    def remember(self, status: ConnectionStatus, detail: str = "") -> None:
        """Let administrators see how it stands (ConnectionHistory, MS-MQDMPR 3.1.1.3)."""
        connections = self._queue.connections
        if connections and connections[-1].status is ConnectionStatus.IN_PROCESS:
            connections.pop()
        now = self._clock.time()
        connections.append(Connection(status=status, time=now, address=str(self.target), detail=detail))

    # What is on its way.

    @property
    def unanswered(self) -> int:
        """How many messages are on their way."""
        return len(self._sent)

    @property
    def is_full(self) -> bool:
        """Whether so much is on its way that nothing should follow, however many messages it is."""
        return self._sent_bytes >= IN_FLIGHT_BYTES

    def patience(self, timeout: float) -> float:
        """Seconds in which the oldest message that was sent has to be answered."""
        return timeout + self._sent[0].size // SLOWEST_LINK

    def post(
        self, head: bytes, body: bytes, position: Position, message: Message, place: Sequence | None
    ) -> None:
        """Send one message."""
        assert self._link is not None
        self._link.post(head, body)
        self._sent.append(Sent(position, message, place, len(body)))
        self._sent_bytes += len(body)

    def take_answered(self) -> Sent:
        """The message that an answer is to."""
        sent = self._sent.popleft()
        self._sent_bytes -= sent.size
        return sent

    def take_unanswered(self) -> list[Position]:
        """Everything that will not be answered any more."""
        unanswered = [sent.position for sent in self._sent]
        self._sent.clear()
        self._sent_bytes = 0
        return unanswered
