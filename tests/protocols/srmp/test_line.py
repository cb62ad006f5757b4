"""The connection of one outgoing queue, and what is on its way over it."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest
from tests.manager.conftest import let_run, started
from tests.protocols.srmp.conftest import Opener
from tests.protocols.srmp.outbound import FAR, FakeLink, FakeNetwork

from lanner.manager import ManualClock
from lanner.manager.positions import Position
from lanner.manager.queues import OutgoingQueue
from lanner.model.message import Message
from lanner.model.transfer import ConnectionStatus
from lanner.protocols.srmp import line as module
from lanner.protocols.srmp.client import ConnectFailedError, LinkOwner, Reply, Target
from lanner.protocols.srmp.line import Line

TARGET = Target("http", "there", 80)


class Deaf:
    """An owner that nothing is told to."""

    def replied(self, replies: list[Reply]) -> None:
        raise AssertionError(replies)

    def lost(self, reason: str) -> None:
        raise AssertionError(reason)


class SilentLink(FakeLink):
    """Takes whatever it is given."""

    def post(self, head: bytes, body: bytes) -> None:
        assert not self.is_closed


async def silent(_: Target, owner: LinkOwner) -> SilentLink:
    return SilentLink(owner)


@pytest.fixture
async def queue(opened: Opener) -> OutgoingQueue:
    async with opened() as manager:
        return cast(OutgoingQueue, manager._core.target(FAR))


@pytest.fixture
def network() -> FakeNetwork:
    return FakeNetwork()


@pytest.fixture
def line(queue: OutgoingQueue, clock: ManualClock, network: FakeNetwork) -> Line:
    return Line(queue, network.connect, clock)


@pytest.fixture
async def silent_line(queue: OutgoingQueue, clock: ManualClock) -> Line:
    line = Line(queue, silent, clock)
    assert await line.connect(TARGET, Deaf())
    return line


def _post(line: Line, body: bytes) -> Position:
    position = cast(Position, object())
    line.post(b"", body, position, Message(body=body), None)
    return position


async def test_it_is_open_until_it_is_closed(line: Line, queue: OutgoingQueue, network: FakeNetwork) -> None:
    assert (line.is_open, line.is_connecting) == (False, False)
    assert await line.connect(TARGET, Deaf())
    assert (line.is_open, line.is_connecting) == (True, False)
    assert (queue.peer, line.target) == ("10.0.0.9", TARGET)
    line.close()
    line.close()
    assert (line.is_open, network.links[0].is_closed) == (False, True)
    assert [each.status for each in queue.connections] == [ConnectionStatus.ESTABLISHED]


async def test_closing_ends_an_attempt(line: Line, network: FakeNetwork) -> None:
    network.gate = asyncio.Event()
    connecting = await started(line.connect(TARGET, Deaf()))
    assert line.is_connecting
    line.close()
    assert not await connecting
    assert (line.is_open, line.is_connecting, network.links) == (False, False, [])
    network.gate = None
    assert await line.connect(TARGET, Deaf())


@pytest.mark.parametrize("is_down", [False, True])
async def test_closing_in_the_moment_in_which_an_attempt_ends(
    queue: OutgoingQueue, clock: ManualClock, is_down: bool
) -> None:
    network = FakeNetwork()
    network.is_down = is_down

    async def connect(target: Target, owner: LinkOwner) -> FakeLink:
        try:
            return await network.connect(target, owner)
        finally:
            asyncio.get_running_loop().call_soon(ending.close)

    ending = Line(queue, connect, clock)
    assert not await ending.connect(TARGET, Deaf())
    assert not ending.is_open
    assert all(link.is_closed for link in network.links)


async def test_whoever_connects_is_cancelled(line: Line, network: FakeNetwork) -> None:
    network.gate = asyncio.Event()
    connecting = await started(line.connect(TARGET, Deaf()))
    connecting.cancel()
    await asyncio.wait((connecting,))
    network.gate.set()
    await let_run()
    assert (connecting.cancelled(), line.is_connecting, network.links) == (True, False, [])


async def test_an_attempt_that_fails(line: Line, queue: OutgoingQueue, network: FakeNetwork) -> None:
    network.is_down = True
    with pytest.raises(ConnectFailedError):
        await line.connect(TARGET, Deaf())
    assert [each.status for each in queue.connections] == [ConnectionStatus.IN_PROCESS]
    line.remember(ConnectionStatus.CONNECTION_REFUSED, "nobody")
    [told] = queue.connections
    assert (told.status, told.address, told.detail) == (
        ConnectionStatus.CONNECTION_REFUSED,
        "http://there:80",
        "nobody",
    )


def test_what_is_sent_is_answered_in_order(silent_line: Line) -> None:
    line = silent_line
    first, second, third = _post(line, b"1"), _post(line, b"2"), _post(line, b"3")
    assert line.take_answered().position is first
    assert line.unanswered == 2
    line.lost()
    assert line.unanswered == 2, "nobody has taken them back yet"
    assert line.take_unanswered() == [second, third]
    assert line.unanswered == 0


def test_bytes_fill_it_and_each_message_has_the_time_that_it_needs(
    silent_line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "IN_FLIGHT_BYTES", 100_000)
    line = silent_line
    _post(line, bytes(99_999))
    assert (line.is_full, line.patience(60)) == (False, 63)
    _post(line, b"x")
    assert (line.is_full, line.patience(60)) == (True, 63)
    line.take_answered()
    assert (line.is_full, line.patience(60)) == (False, 60)
    line.take_unanswered()
    _post(line, bytes(100_000))
    assert (line.is_full, line.patience(60)) == (True, 63)
