"""Dead letters: finding them, and sending them again without losing one."""

from __future__ import annotations

import pytest
from tests.manager.conftest import settle

from lanner.manager import ManualClock, QueueManager
from lanner.manager.dead_letters import DeadLetterFilter
from lanner.model.codes import MessageClass
from lanner.model.errors import LannerError, MessageNotFoundError, QueueNotFoundError, QuotaExceededError
from lanner.model.message import INFINITE, Delivery, Message
from lanner.model.queue import QueueAccess, QueueProperties

ORDERS = r".\private$\orders"
OTHER = r".\private$\other"
ALL = DeadLetterFilter()


async def make_dead(
    manager: QueueManager, clock: ManualClock, queue: str = ORDERS, **attributes: object
) -> None:
    """Let a message expire that asked to be kept."""
    message = Message(
        body=b"body",
        delivery=Delivery.RECOVERABLE,
        time_to_be_received=10,
        negative_journaling=True,
        **attributes,  # type: ignore[arg-type]
    )
    if manager.queue(queue).properties.transactional:
        async with manager.transaction() as transaction:
            await manager.send(queue, message, transaction=transaction)
    else:
        await manager.send(queue, message)
    clock.advance(11)
    await settle(manager)


@pytest.fixture(autouse=True)
async def queues(manager: QueueManager) -> None:
    await manager.create_queue(ORDERS)
    await manager.create_queue(OTHER)


async def test_they_are_found_by_class_destination_and_age(manager: QueueManager, clock: ManualClock) -> None:
    await make_dead(manager, clock, label="one")
    await make_dead(manager, clock, OTHER, label="two")

    async def labels(**wanted: object) -> list[str]:
        found = await manager.dead_letters.find(DeadLetterFilter(**wanted), limit=10)  # type: ignore[arg-type]
        return [letter.message.label for letter in found]

    assert await labels() == ["one", "two"]
    assert await labels(message_class=MessageClass.NACK_RECEIVE_TIMEOUT.value) == ["one", "two"]
    assert await labels(message_class=MessageClass.NACK_ACCESS_DENIED.value) == []
    assert await labels(destination=OTHER) == ["two"]
    assert await labels(destination=OTHER.upper()) == ["two"]
    assert await labels(older_than=15) == ["one"]
    assert len(await manager.dead_letters.find(ALL, limit=1)) == 1


async def test_a_replay_is_a_new_message_that_does_not_expire_again(
    manager: QueueManager, clock: ManualClock
) -> None:
    await make_dead(manager, clock, label="again", priority=6)
    [letter] = await manager.dead_letters.find(ALL, limit=10)
    assert letter.reason == "the time to be received ran out"
    assert (letter.message.body, (await manager.dead_letters.get(letter.message.lookup_id)).message.body) == (
        b"",
        b"body",
    )
    outcome = await manager.dead_letters.replay(letter.message.lookup_id)
    assert await manager.dead_letters.find(ALL, limit=10) == []
    message = await manager.receive(ORDERS, timeout=0)
    assert (message.label, message.body, message.priority) == ("again", b"body", 6)
    assert message.message_class == MessageClass.NORMAL
    assert message.time_to_be_received == INFINITE
    assert message.id == outcome.message_ids[0] != letter.message.id


async def test_a_transactional_one_is_replayed_in_a_transaction(
    manager: QueueManager, clock: ManualClock
) -> None:
    queue = r".\private$\transactional"
    await manager.create_queue(queue, QueueProperties(transactional=True))
    await make_dead(manager, clock, queue)
    [letter] = await manager.dead_letters.find(ALL, limit=10)
    assert letter.queue == r".\system$;deadxact"
    await manager.dead_letters.replay(letter.message.lookup_id)
    assert (await manager.receive(queue, timeout=0)).is_transactional
    # And to a queue that is not transactional, without one.
    await make_dead(manager, clock, queue)
    [letter] = await manager.dead_letters.find(ALL, limit=10)
    await manager.dead_letters.replay(letter.message.lookup_id, OTHER)
    assert not (await manager.receive(OTHER, timeout=0)).is_transactional


async def test_one_whose_replay_fails_stays(manager: QueueManager, clock: ManualClock) -> None:
    await make_dead(manager, clock)
    await manager.change_queue(OTHER, QueueProperties(quota=0))
    [letter] = await manager.dead_letters.find(ALL, limit=10)
    for destination, error in ((OTHER, QuotaExceededError), (r".\private$\none", QueueNotFoundError)):
        with pytest.raises(error):
            await manager.dead_letters.replay(letter.message.lookup_id, destination)
        assert await manager.dead_letters.find(ALL, limit=10) == [letter]
    total = manager.total_bytes
    await manager.dead_letters.replay(letter.message.lookup_id)
    assert manager.total_bytes == total


async def test_only_dead_letters_are_replayed(manager: QueueManager) -> None:
    outcome = await manager.send(ORDERS, Message(delivery=Delivery.RECOVERABLE))
    with pytest.raises(MessageNotFoundError):
        await manager.dead_letters.replay(outcome.lookup_ids[0])
    assert manager.queue(ORDERS).messages == 1


async def test_one_that_somebody_holds_is_not_replayed(manager: QueueManager, clock: ManualClock) -> None:
    await make_dead(manager, clock)
    [letter] = await manager.dead_letters.find(ALL, limit=10)
    handle = manager.open_queue(letter.queue, QueueAccess.RECEIVE)
    transaction = manager.create_transaction()
    await manager.dequeue_message(handle, timeout=0, transaction=transaction)
    with pytest.raises(LannerError, match="received by somebody"):
        await manager.dead_letters.replay(letter.message.lookup_id)
    await manager.transaction_abort(transaction)
    await manager.dead_letters.replay(letter.message.lookup_id)


async def test_an_applications_own_dead_letter_queue(manager: QueueManager, clock: ManualClock) -> None:
    await make_dead(manager, clock, dead_letter_queue=OTHER)
    assert await manager.dead_letters.find(ALL, limit=10) == []
    [letter] = await manager.dead_letters.find(DeadLetterFilter(queue=OTHER), limit=10)
    await manager.dead_letters.replay(letter.message.lookup_id)
    assert manager.queue(ORDERS).messages == 1
