"""Why: what is told of messages and queues in every state."""

from __future__ import annotations

import pytest
from tests.manager.conftest import settle

from lanner.manager import ManualClock, QueueManager
from lanner.model.errors import QueueNotFoundError
from lanner.model.message import Delivery, Message
from lanner.model.message_id import MessageId
from lanner.model.queue import QueueAccess, QueueProperties

ORDERS = r".\private$\orders"
REMOTE = "DIRECT=HTTP://paris/msmq/private$/orders"


async def sent(manager: QueueManager, queue: str = ORDERS, **attributes: object) -> MessageId:
    message = Message(delivery=Delivery.RECOVERABLE, **attributes)  # type: ignore[arg-type]
    return (await manager.send(queue, message)).message_ids[0]


@pytest.fixture(autouse=True)
async def queue(manager: QueueManager) -> None:
    await manager.create_queue(ORDERS, QueueProperties(max_aborts=1, quota=1))


async def test_a_message_that_waits(manager: QueueManager) -> None:
    told = await manager.why.message(await sent(manager))
    assert told.summary == rf"it waits in {ORDERS} to be received"
    assert told.findings[0].endswith(rf"sent {ORDERS}")
    assert told.advice == (f"receive it: lanner receive '{ORDERS}'",)


async def test_a_message_that_somebody_holds(manager: QueueManager) -> None:
    identifier = await sent(manager)
    transaction = manager.create_transaction()
    await manager.receive(ORDERS, timeout=0, transaction=transaction)
    assert "held by a receive or transaction" in (await manager.why.message(identifier)).summary


async def test_a_message_that_was_received(manager: QueueManager) -> None:
    identifier = await sent(manager)
    await manager.receive(ORDERS, timeout=0)
    told = await manager.why.message(identifier)
    assert told.summary.startswith("it is done: received")
    assert len(told.findings) == 2


async def test_a_dead_letter(manager: QueueManager, clock: ManualClock) -> None:
    identifier = await sent(manager, time_to_be_received=1, negative_journaling=True)
    clock.advance(2)
    await settle(manager)
    told = await manager.why.message(identifier)
    assert "dead letter" in told.summary
    assert any("lanner deadletter replay" in advice for advice in told.advice)


async def test_a_message_that_expired_without_a_trace(manager: QueueManager, clock: ManualClock) -> None:
    identifier = await sent(manager, time_to_be_received=1)
    clock.advance(2)
    await settle(manager)
    told = await manager.why.message(identifier)
    assert told.summary == "it is gone: expired (the time to be received ran out)"
    assert "--deadletter" in told.advice[0]


async def test_an_outgoing_message_and_its_queue(manager: QueueManager) -> None:
    identifier = await sent(manager, REMOTE)
    told = await manager.why.message(identifier)
    assert told.summary == f"it waits to be sent to {REMOTE}"
    assert "no protocol" in told.findings[-1]
    await manager.pause_queue(REMOTE)
    told = await manager.why.queue(REMOTE)
    assert told.summary.startswith("paused")
    assert told.advice == (f"lanner queue resume '{REMOTE}'",)


async def test_a_message_that_nobody_knows(manager: QueueManager) -> None:
    told = await manager.why.message(MessageId.of(manager.identifier, 12345))
    assert told.summary == "nothing is known of it here"


async def test_a_queue_with_poison_no_reader_and_no_room(manager: QueueManager, clock: ManualClock) -> None:
    await sent(manager, label="poison")
    transaction = manager.create_transaction()
    await manager.receive(ORDERS, timeout=0, transaction=transaction)
    await manager.transaction_abort(transaction)
    await sent(manager, body=bytes(700))
    clock.advance(3600)
    told = await manager.why.queue(ORDERS)
    assert told.summary == "1 messages wait"
    assert "the oldest came 60 minutes ago" in told.findings
    assert any("kept aborting" in finding for finding in told.findings)
    assert any("it is full" in advice for advice in told.advice)
    assert any("nobody has the queue open" in advice for advice in told.advice)


async def test_an_empty_queue_and_one_that_is_not_there(manager: QueueManager) -> None:
    assert (await manager.why.queue(ORDERS)).summary == "it is empty"
    with pytest.raises(QueueNotFoundError, match="did you mean"):
        await manager.why.queue(r".\private$\oders")


async def test_the_oldest_message_counts_whatever_its_priority(
    manager: QueueManager, clock: ManualClock
) -> None:
    await sent(manager, priority=0)
    oldest = clock.time()
    clock.advance(100)
    await sent(manager, priority=7)
    assert await manager.oldest_arrival(ORDERS) == oldest
    manager.open_queue(ORDERS, QueueAccess.PEEK)
