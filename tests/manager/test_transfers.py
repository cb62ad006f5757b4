"""The manager as protocols see it: taking messages in, sending them, giving them up."""

from __future__ import annotations

from uuid import UUID

import pytest
from tests.manager.conftest import (
    DEAD_LETTER,
    ELSEWHERE,
    NAME,
    ORDERS,
    SYSTEM_JOURNAL,
    TRANSACTIONAL_DEAD_LETTER,
    Opener,
    bodies,
    contents,
    durable,
    full_disk,
    history,
    recorded,
    settle,
)

from lanner.manager import ManualClock, QueueManager
from lanner.manager.events import OutgoingMessages
from lanner.manager.queues import OutgoingQueue
from lanner.model.codes import MessageClass
from lanner.model.errors import (
    AccessDeniedError,
    LannerError,
    QuotaExceededError,
    StoppedError,
    TransactionUsageError,
)
from lanner.model.format_name import DirectName, parse_format_name
from lanner.model.history import HistoryEvent
from lanner.model.message import Acknowledgments, Message, TransactionMarks
from lanner.model.message_id import MessageId
from lanner.model.queue import OutgoingState, QueueProperties
from lanner.model.security import EVERYONE, SecurityDescriptor, Token
from lanner.store import Changes

PEER = "192.0.2.7"
THERE = UUID("caf195ea-615c-4264-ae08-11a4e60194c0")


def _foreign(number: int = 1, **attributes: object) -> Message:
    """A message that another machine has given its identity."""
    return durable(b"far", id=MessageId.of(THERE, number), source_machine=THERE, **attributes)


def _outgoing(manager: QueueManager) -> OutgoingQueue:
    queue = manager._core.target(ELSEWHERE)
    assert isinstance(queue, OutgoingQueue)
    return queue


# In.


async def test_accept(manager: QueueManager, orders: str) -> None:
    changes = Changes()
    changes.state.append(("test", "key", b"value"))
    manager.transfers.accept(changes, manager._core.queues.get(orders), _foreign(), PEER)
    assert await bodies(manager, orders) == [], "not before it is durable"
    await manager.transfers.finish(changes)
    (kept,) = await contents(manager, orders)
    assert (kept.id, kept.source_machine) == (MessageId.of(THERE, 1), THERE)
    assert await manager.transfers.state("test") == {"key": b"value"}, (
        "together with the protocol's own state"
    )
    (row,) = await history(manager)
    assert (row.event, row.peer) == (HistoryEvent.ARRIVED, PEER)


async def test_accept_is_all_or_nothing(manager: QueueManager, orders: str) -> None:
    changes = Changes()
    changes.state.append(("test", "key", b"x" * 200_000))
    async with full_disk(manager):
        manager.transfers.accept(changes, manager._core.queues.get(orders), _foreign(), PEER)
        with pytest.raises(LannerError):
            await manager.transfers.finish(changes)
    assert await bodies(manager, orders) == []
    assert manager.total_bytes == 0
    assert await manager.transfers.state("test") == {}


async def test_what_was_prepared_can_be_abandoned(manager: QueueManager, orders: str) -> None:
    changes = Changes()
    manager.transfers.accept(changes, manager._core.queues.get(orders), _foreign(), PEER)
    assert manager.total_bytes > 0
    manager.transfers.abandon(changes)
    assert manager.total_bytes == 0


async def test_what_is_not_accepted(manager: QueueManager, orders: str) -> None:
    queue = manager._core.queues.get(orders)
    await manager.change_queue(orders, QueueProperties(quota=0))
    with pytest.raises(QuotaExceededError):
        manager.transfers.accept(Changes(), queue, _foreign(), PEER)
    strict = await manager.create_queue(r".\private$\strict", QueueProperties(transactional=True))
    with pytest.raises(TransactionUsageError):
        manager.transfers.accept(Changes(), manager._core.queues.get(strict.path), _foreign(), PEER)
    await manager.change_queue(orders, security=SecurityDescriptor.from_sddl("O:BAD:(A;;0x2;;;BA)"))
    with pytest.raises(AccessDeniedError):
        manager.transfers.check_access(queue, Token(EVERYONE))
    assert manager.total_bytes == 0


async def _accept(manager: QueueManager, name: str, message: Message) -> None:
    changes = Changes()
    manager.transfers.accept(changes, manager._core.queues.get(name), message, PEER)
    await manager.transfers.finish(changes)


async def test_a_message_of_a_peer_is_neither_journaled_nor_dead_lettered_here(
    manager: QueueManager, orders: str
) -> None:
    both = {"positive_journaling": True, "negative_journaling": True}
    await _accept(manager, orders, _foreign(1, **both))
    strict = (await manager.create_queue(r".\private$\strict", QueueProperties(transactional=True))).path
    marks = TransactionMarks(stream=1, sequence=1)
    await _accept(manager, strict, _foreign(2, transaction=marks, **both))
    for name in (orders, strict):
        await manager.purge_queue(name)
    for name in (SYSTEM_JOURNAL, DEAD_LETTER, TRANSACTIONAL_DEAD_LETTER):
        assert await bodies(manager, name) == []


async def test_forward(manager: QueueManager) -> None:
    changes = Changes()
    manager.transfers.forward(changes, parse_format_name(ELSEWHERE), _foreign(), PEER)
    await manager.transfers.finish(changes)
    (waiting,) = await manager.transfers.load(list(_outgoing(manager).messages))
    assert waiting.id == MessageId.of(THERE, 1)
    assert not manager.transfers.is_own(waiting)


async def test_a_report_that_cannot_go_anywhere_is_logged(
    manager: QueueManager, caplog: pytest.LogCaptureFixture
) -> None:
    changes = Changes()
    manager.transfers.tell(changes, "nonsense", durable(b"report"))
    assert "discarded" in caplog.text
    assert not changes.is_durable()


async def test_names(manager: QueueManager, orders: str) -> None:
    transfers = manager.transfers
    name = parse_format_name("DIRECT=http://whoever:99/msmq/private$/ORDERS")
    assert isinstance(name, DirectName)
    found = transfers.local_queue(name)
    assert found is not None
    assert found.name == orders
    assert transfers.queue_by_id(found.id) is found
    assert transfers.queue_by_id(10_000) is None
    assert transfers.is_local_host(NAME.upper())
    assert not transfers.is_local_host("www.example.com")
    transfers.listens_at([8080], ["www.example.com"])
    assert transfers.is_local_host("WWW.example.com")


# Out.


async def test_take_and_release(manager: QueueManager) -> None:
    await manager.send_many(ELSEWHERE, [durable(b"1"), durable(b"2"), durable(b"3")])
    queue = _outgoing(manager)
    told = recorded(manager, OutgoingMessages)
    taken = manager.transfers.take(queue, 2)
    assert [message.body for message in await manager.transfers.load(taken)] == [b"1", b"2"]
    assert queue.messages.available_count == 1
    manager.transfers.release(taken)
    manager.transfers.release(taken)
    assert queue.messages.available_count == 3
    assert len(told) == 2, "whoever sends is told"
    assert await bodies(manager, ELSEWHERE) == [b"1", b"2", b"3"]


async def test_what_was_purged_meanwhile_is_not_released(manager: QueueManager) -> None:
    await manager.send(ELSEWHERE, durable(b"1"))
    queue = _outgoing(manager)
    taken = manager.transfers.take(queue, 1)
    await manager.purge_queue(ELSEWHERE)
    manager.transfers.release(taken)
    await settle(manager)
    assert len(queue.messages) == 0


@pytest.mark.parametrize("journaling", [False, True])
async def test_hand_over(manager: QueueManager, journaling: bool) -> None:
    await manager.send(ELSEWHERE, durable(b"1", positive_journaling=journaling))
    taken = manager.transfers.take(_outgoing(manager), 1)
    (message,) = await manager.transfers.load(taken, bodies=False)
    changes = Changes()
    manager.transfers.hand_over(changes, taken[0], message, PEER)
    await manager.transfers.finish(changes)
    assert await bodies(manager, SYSTEM_JOURNAL) == ([b"1"] if journaling else [])
    assert len(_outgoing(manager).messages) == 0
    assert HistoryEvent.TRANSMITTED in [row.event for row in await history(manager)]


@pytest.mark.parametrize("tell", [False, True])
async def test_give_up(manager: QueueManager, orders: str, tell: bool) -> None:
    asked = Acknowledgments.NACK_REACH_QUEUE
    message = durable(b"1", negative_journaling=True, administration_queue=orders, acknowledgments=asked)
    await manager.send(ELSEWHERE, message)
    taken = manager.transfers.take(_outgoing(manager), 1)
    (loaded,) = await manager.transfers.load(taken)
    changes = Changes()
    reason = MessageClass.NACK_BAD_DESTINATION_QUEUE
    manager.transfers.give_up(changes, taken[0], loaded, reason, detail="why", peer=PEER, tell=tell)
    await manager.transfers.finish(changes)
    (dead,) = await contents(manager, DEAD_LETTER)
    assert (dead.body, dead.message_class) == (b"1", reason)
    assert [each.message_class for each in await contents(manager, orders)] == ([reason] if tell else [])
    row = next(row for row in await history(manager) if row.event == HistoryEvent.REJECTED)
    assert (row.reason, row.peer) == ("why", PEER)


async def test_what_is_kept_until_received_expires_no_more(opened: Opener, clock: ManualClock) -> None:
    async with opened() as manager:
        await manager.send(ELSEWHERE, durable(b"1", time_to_reach_queue=10))
        taken = manager.transfers.take(_outgoing(manager), 1)
        changes = Changes()
        manager.transfers.keep_until_received(changes, taken[0])
        await manager.transfers.finish(changes)
        clock.advance(100)
        await settle(manager)
        assert len(_outgoing(manager).messages) == 1
    async with opened() as manager:
        clock.advance(100)
        await settle(manager)
        assert await bodies(manager, ELSEWHERE) == [b"1"], "also after a restart"


async def test_places_are_those_of_our_own_stream(manager: QueueManager) -> None:
    await manager.send(ELSEWHERE, durable(b"plain"))
    changes = Changes()
    manager.transfers.forward(changes, parse_format_name(ELSEWHERE), _foreign(), PEER)
    await manager.transfers.finish(changes)
    async with manager.transaction() as transaction:
        await manager.send_many(ELSEWHERE, [durable(b"1"), durable(b"2")], transaction=transaction)
    queue = _outgoing(manager)
    manager.transfers.take(queue, 3)
    found = [
        manager.transfers.place_of(queue, each).number async for _, each in manager.transfers.places(queue)
    ]
    assert found == [1, 2], "taken or not"


async def test_a_paused_queue_stays_paused_whatever_a_protocol_says(manager: QueueManager) -> None:
    await manager.send(ELSEWHERE, durable(b"1"))
    queue = _outgoing(manager)
    states = []
    for _ in range(2):
        manager.transfers.set_state(queue, OutgoingState.CONNECTED)
        states.append(queue.state)
        await manager.pause_queue(ELSEWHERE)
    assert states == [OutgoingState.CONNECTED, OutgoingState.ON_HOLD]
    assert manager.transfers.outgoing() == [queue]


async def test_after_the_end(opened: Opener) -> None:
    async with opened() as manager:
        await manager.create_queue(ORDERS)
    with pytest.raises(StoppedError):
        await manager.transfers.finish(Changes())
    manager.transfers.submit(Changes())


# Looking.


async def test_looking_finds_every_queue_and_makes_none(manager: QueueManager, orders: str, far: str) -> None:
    transfers = manager.transfers
    assert transfers.find(r"DIRECT=OS:unknown\private$\queue") is None
    found = {queue.name for queue in transfers.every_queue()}
    assert {orders, f"{orders};journal", far, DEAD_LETTER} <= found
    queue = transfers.find(orders)
    assert queue is not None
    assert transfers.format_name(queue) == rf"DIRECT=OS:{NAME}\private$\orders"
    assert manager.queue(orders).open_handles == 0
