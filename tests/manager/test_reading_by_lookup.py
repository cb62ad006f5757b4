"""Reading by lookup identifier: a place in a queue, and what lies next to it."""

from __future__ import annotations

import pytest
from tests.manager.conftest import (
    BOTH_DELIVERIES,
    NUMBERS,
    Make,
    bodies,
    counts,
    durable,
    five,
    only_place,
    opened_for,
)

from lanner.manager import QueueManager
from lanner.model.errors import (
    LannerError,
    MessageLockedError,
    MessageNotFoundError,
    ReceiveTimeoutError,
)
from lanner.model.queue import SeekAction


@pytest.mark.parametrize("peek", [False, True])
@pytest.mark.parametrize(
    ("action", "place", "found"),
    [
        (SeekAction.CURRENT, 2, b"2"),
        (SeekAction.FIRST, 2, b"0"),
        (SeekAction.LAST, 2, b"4"),
        (SeekAction.NEXT, 2, b"3"),
        (SeekAction.PREVIOUS, 2, b"1"),
        (SeekAction.NEXT, 4, None),
        (SeekAction.PREVIOUS, 0, None),
    ],
)
async def test_a_message_is_read_by_its_place(
    manager: QueueManager, orders: str, peek: bool, action: SeekAction, place: int, found: bytes | None
) -> None:
    places = await five(manager, orders)
    with opened_for(manager, orders) as handle:
        work = manager.read_message_by_lookup_identifier(handle, places[place], action, peek=peek)
        if found is None:
            with pytest.raises(MessageNotFoundError):
                await work
        else:
            assert (await work).body == found
    left = NUMBERS if peek or found is None else [body for body in NUMBERS if body != found]
    assert await bodies(manager, orders) == left


@pytest.mark.parametrize("peek", [False, True])
@pytest.mark.parametrize(
    ("action", "found"),
    [
        (SeekAction.CURRENT, None),
        (SeekAction.FIRST, b"0"),
        (SeekAction.LAST, b"4"),
        (SeekAction.NEXT, b"3"),
        (SeekAction.PREVIOUS, b"1"),
    ],
)
async def test_the_place_of_a_message_that_is_gone_still_counts(
    manager: QueueManager, orders: str, peek: bool, action: SeekAction, found: bytes | None
) -> None:
    places = await five(manager, orders)
    with opened_for(manager, orders) as handle:
        await manager.read_message_by_lookup_identifier(handle, places[2])
        work = manager.read_message_by_lookup_identifier(handle, places[2], action, peek=peek)
        if found is None:
            with pytest.raises(MessageNotFoundError, match=str(places[2])):
                await work
        else:
            assert (await work).body == found


@pytest.mark.parametrize("peek", [False, True])
@pytest.mark.parametrize(
    ("action", "start", "found"),
    [
        (SeekAction.CURRENT, 2, MessageLockedError),
        (SeekAction.FIRST, 2, b"1"),
        (SeekAction.LAST, 2, b"3"),
        (SeekAction.NEXT, 1, b"3"),
        (SeekAction.PREVIOUS, 3, b"1"),
    ],
)
async def test_a_locked_message_is_passed_over(
    manager: QueueManager,
    orders: str,
    peek: bool,
    action: SeekAction,
    start: int,
    found: bytes | type[LannerError],
) -> None:
    places = await five(manager, orders)
    with opened_for(manager, orders) as handle:
        async with manager.transaction() as transaction:
            for place in (0, 2, 4):
                await manager.read_message_by_lookup_identifier(
                    handle, places[place], transaction=transaction
                )
            work = manager.read_message_by_lookup_identifier(handle, places[start], action, peek=peek)
            if isinstance(found, bytes):
                assert (await work).body == found
            else:
                with pytest.raises(found):
                    await work


@BOTH_DELIVERIES
@pytest.mark.parametrize(
    ("action", "start", "found"),
    [
        (SeekAction.CURRENT, 1, b"1"),
        (SeekAction.FIRST, 2, b"1"),
        (SeekAction.LAST, 0, b"1"),
        (SeekAction.NEXT, 0, b"1"),
        (SeekAction.PREVIOUS, 2, b"1"),
    ],
)
async def test_a_locked_message_whose_sender_allows_it_can_be_peeked_at_and_not_taken(
    manager: QueueManager, orders: str, make: Make, action: SeekAction, start: int, found: bytes
) -> None:
    messages = [make(b"%d" % number, allow_peek_when_locked=number == 1) for number in range(3)]
    places = (await manager.send_many(orders, messages)).lookup_ids
    with opened_for(manager, orders) as handle:
        async with manager.transaction() as transaction:
            for place in places:
                await manager.read_message_by_lookup_identifier(handle, place, transaction=transaction)
            peeked = await manager.read_message_by_lookup_identifier(handle, places[start], action, peek=True)
            assert peeked.body == found
            with pytest.raises((MessageLockedError, MessageNotFoundError)):
                await manager.read_message_by_lookup_identifier(handle, places[start], action)
            assert (await manager.peek_message(handle, timeout=0)).body == b"1"
            cursor = manager.open_cursor(handle)
            assert (await manager.peek_message(handle, timeout=0, cursor=cursor)).body == b"1"
        with pytest.raises(ReceiveTimeoutError):
            await manager.peek_message(handle, timeout=0)


async def test_a_purged_message_cannot_be_peeked_at_while_it_is_locked(
    manager: QueueManager, orders: str
) -> None:
    outcome = await manager.send(orders, durable(allow_peek_when_locked=True))
    with opened_for(manager, orders) as handle:
        async with manager.transaction() as transaction:
            await manager.dequeue_message(handle, transaction=transaction)
            await manager.purge_queue(orders)
            with pytest.raises(ReceiveTimeoutError):
                await manager.peek_message(handle, timeout=0)
            with pytest.raises(LannerError):
                await manager.read_message_by_lookup_identifier(handle, only_place(outcome), peek=True)


async def test_an_empty_queue_has_no_place(manager: QueueManager, orders: str) -> None:
    with opened_for(manager, orders) as handle:
        for action in SeekAction:
            with pytest.raises(MessageNotFoundError):
                await manager.read_message_by_lookup_identifier(handle, 1, action)


async def test_a_message_is_read_by_its_place_in_a_transaction(manager: QueueManager, orders: str) -> None:
    places = await five(manager, orders)
    with opened_for(manager, orders) as handle:
        transaction = manager.create_transaction()
        await manager.read_message_by_lookup_identifier(handle, places[1], transaction=transaction)
        assert counts(manager, orders) == (5, 4)
        await manager.transaction_commit(transaction)
    assert await bodies(manager, orders) == [b"0", b"2", b"3", b"4"]
