"""Moving a message to another queue or subqueue."""

from __future__ import annotations

import pytest
from tests.manager.conftest import (
    BOTH_DELIVERIES,
    DEAD_LETTER,
    ELSEWHERE,
    ORDERS,
    OTHER,
    Make,
    Opener,
    bodies,
    counts,
    durable,
    history,
    only_id,
    only_place,
    opened_for,
    started,
    stuck_reader,
)

from lanner.manager import QueueManager
from lanner.model.errors import (
    InvalidPropertyError,
    LannerError,
    MessageLockedError,
    MessageNotFoundError,
    QueueDeletedError,
    QueueNotFoundError,
    QuotaExceededError,
    TransactionUsageError,
    UnsupportedOperationError,
)
from lanner.model.queue import QueueProperties


@BOTH_DELIVERIES
async def test_a_moved_message_keeps_its_identity_and_its_place(
    manager: QueueManager, orders: str, other: str, make: Make
) -> None:
    sent = await manager.send(orders, make(b"old"))
    await manager.send(other, make(b"young"))
    with opened_for(manager, orders) as handle:
        await manager.move_message(handle, only_place(sent), other)
    assert counts(manager, orders) == (0, 0)
    assert await bodies(manager, other) == [b"old", b"young"]
    moved = await manager.receive(other, timeout=0)
    assert (moved.id, moved.lookup_id) == (only_id(sent), only_place(sent))
    assert manager.total_bytes == manager.queue(other).bytes
    row = (await history(manager))[2]
    assert (row.event, row.queue, row.reason) == ("moved", other, f"from {orders}")


async def test_what_cannot_be_moved(manager: QueueManager, orders: str, ledger: str) -> None:
    place = only_place(await manager.send(orders, durable(b"one")))
    await manager.send(ELSEWHERE, durable())
    with opened_for(manager, orders) as handle:
        refusals: list[tuple[int, str, type[LannerError]]] = [
            (place, orders, InvalidPropertyError),
            (place, ledger, TransactionUsageError),
            (place, orders + ";journal", UnsupportedOperationError),
            (place, DEAD_LETTER, UnsupportedOperationError),
            (place, ELSEWHERE, UnsupportedOperationError),
            (place, OTHER, QueueNotFoundError),
            (place + 1, orders + ";later", MessageNotFoundError),
        ]
        for lookup_id, target, error in refusals:
            with pytest.raises(error):
                await manager.move_message(handle, lookup_id, target)
        await manager.dequeue_message_begin(handle)
        with pytest.raises(MessageLockedError):
            await manager.move_message(handle, place, orders + ";later")
        assert counts(manager, orders) == (1, 0)
    assert manager.queue(orders).subqueues == ()


async def test_a_full_queue_takes_no_moved_message_but_its_own_subqueue_does(
    manager: QueueManager, orders: str
) -> None:
    await manager.create_queue(OTHER, QueueProperties(quota=1))
    inside = await manager.send(OTHER, durable(b"x" * 800))
    outside = await manager.send(orders, durable(b"y" * 800))
    with opened_for(manager, orders) as handle, pytest.raises(QuotaExceededError):
        await manager.move_message(handle, only_place(outside), OTHER)
    with opened_for(manager, OTHER) as handle:
        await manager.move_message(handle, only_place(inside), OTHER + ";later")
    assert (counts(manager, orders), counts(manager, OTHER + ";later")) == ((1, 1), (1, 1))
    with opened_for(manager, OTHER + ";later") as handle:
        await manager.move_message(handle, only_place(inside), OTHER)
    assert counts(manager, OTHER) == (1, 1)


@pytest.mark.parametrize("deleted", [ORDERS, OTHER])
async def test_a_message_is_not_moved_from_or_to_a_queue_that_is_deleted_meanwhile(
    opened: Opener, deleted: str
) -> None:
    async with opened(cache_bytes=0) as manager:
        for name in (ORDERS, OTHER):
            await manager.create_queue(name)
        place = only_place(await manager.send(ORDERS, durable(b"one")))
        with opened_for(manager, ORDERS) as handle:
            with stuck_reader(manager):
                moving = await started(manager.move_message(handle, place, OTHER))
                deleting = await started(manager.delete_queue(deleted))
            with pytest.raises(QueueDeletedError):
                await moving
            await deleting
    async with opened() as manager:
        left = ORDERS if deleted == OTHER else OTHER
        assert counts(manager, left) == ((1, 1) if left == ORDERS else (0, 0))
