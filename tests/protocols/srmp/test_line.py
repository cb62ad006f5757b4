"""The connection of one outgoing queue, and what is on its way over it."""

from __future__ import annotations

from typing import cast

import pytest
from tests.protocols.srmp.conftest import Opener
from tests.protocols.srmp.outbound import FAR, FakeLink, FakeNetwork

from lanner.manager import ManualClock
from lanner.manager.positions import Position
from lanner.manager.queues import OutgoingQueue
from lanner.model.message import Message
from lanner.model.transfer import ConnectionStatus
from lanner.protocols.srmp import line as module
from lanner.protocols.srmp.client import ConnectFailedError, Reply, Target
from lanner.protocols.srmp.line import Line

TARGET = Target("http", "there", 80)


class Deaf:
    """An owner that nothing is told to."""

    def replied(self, replies: list[Reply]) -> None:
        raise AssertionError(replies)

    def lost(self, reason: str) -> None:
        raise AssertionError(reason)


class Silent(FakeLink):
    """Takes whatever it is given."""

    def post(self, head: bytes, body: bytes) -> None:
        assert not self.is_closed


@pytest.fixture
async def queue(opened: Opener) -> OutgoingQueue:
    async with opened() as manager:
        return cast(OutgoingQueue, manager._core.target(FAR))


@pytest.fixture
def line(queue: OutgoingQueue, clock: ManualClock) -> Line:
    return Line(queue, FakeNetwork().connect, clock)


def _post(line: Line, body: bytes) -> Position:
    position = cast(Position, object())
    line.post(b"", body, position, Message(body=body), None)
    return position


async def test_it_is_closed_until_it_is_opened_and_again_when_it_ends(
    line: Line, queue: OutgoingQueue
) -> None:
    link = await line.connect(TARGET, Deaf())
    assert not line.is_open
    line.open(link)
    assert (line.is_open, queue.peer, line.target) == (True, "10.0.0.9", TARGET)
    line.close()
    line.close()
    assert (line.is_open, cast(FakeLink, link).is_closed) == (False, True)
    assert [each.status for each in queue.connections] == [ConnectionStatus.ESTABLISHED]


async def test_an_attempt_that_fails(queue: OutgoingQueue, clock: ManualClock) -> None:
    network = FakeNetwork()
    network.is_down = True
    line = Line(queue, network.connect, clock)
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


def test_what_is_sent_is_answered_in_order(line: Line) -> None:
    line.open(Silent(Deaf()))
    first, second, third = _post(line, b"1"), _post(line, b"2"), _post(line, b"3")
    assert line.take_answered().position is first
    assert line.unanswered == 2
    line.lost()
    assert line.unanswered == 2, "nobody has taken them back yet"
    assert line.take_unanswered() == [second, third]
    assert line.unanswered == 0


def test_bytes_fill_it_and_each_message_has_the_time_that_it_needs(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "IN_FLIGHT_BYTES", 100_000)
    line.open(Silent(Deaf()))
    _post(line, bytes(99_999))
    assert (line.is_full, line.patience(60)) == (False, 63)
    _post(line, b"x")
    assert (line.is_full, line.patience(60)) == (True, 63)
    line.take_answered()
    assert (line.is_full, line.patience(60)) == (False, 60)
    line.take_unanswered()
    _post(line, bytes(100_000))
    assert (line.is_full, line.patience(60)) == (True, 63)
