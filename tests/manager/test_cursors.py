"""Every event in every state of a cursor (MS-MQDMPR 3.2), and cursors on a queue that changes under them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from tests.manager.conftest import bodies, counts, durable, only_id, opened_for, settle, started, turn

from lanner.manager import Cursor, ManualClock, OpenQueue, QueueManager
from lanner.manager.cursors import CursorState
from lanner.model.errors import (
    IllegalCursorActionError,
    InvalidPropertyError,
    LannerError,
    MessageAlreadyReceivedError,
    OperationCancelledError,
    ReceiveTimeoutError,
    StaleHandleError,
)
from lanner.model.message import Message
from lanner.model.queue import QueueAccess

UNREAD, READ = CursorState.UNREAD, CursorState.READ
WAIT_PEEK, WAIT_RECEIVE = CursorState.WAIT_PEEK, CursorState.WAIT_RECEIVE

Read = Callable[..., Coroutine[Any, Any, Message]]


class Walk:
    """A queue with some messages, and a cursor on it."""

    def __init__(self, manager: QueueManager, handle: OpenQueue) -> None:
        self.manager = manager
        self.handle = handle
        self.cursor: Cursor = manager.open_cursor(handle)

    def peek(self, timeout: float | None = 0) -> Coroutine[Any, Any, Message]:
        return self.manager.peek_message(self.handle, timeout=timeout, cursor=self.cursor)

    def peek_next(self, timeout: float | None = 0) -> Coroutine[Any, Any, Message]:
        return self.manager.peek_next_message(self.handle, self.cursor, timeout=timeout)

    def take(self, timeout: float | None = 0) -> Coroutine[Any, Any, Message]:
        return self.manager.dequeue_message(self.handle, timeout=timeout, cursor=self.cursor)

    def event(self, name: str, timeout: float | None = 0) -> Coroutine[Any, Any, Message]:
        events: dict[str, Read] = {"peek": self.peek, "peek next": self.peek_next, "take": self.take}
        return events[name](timeout)

    async def enter(self, state: CursorState) -> asyncio.Task[Message] | None:
        """Bring the cursor into a state: on the first message, or waiting behind the last."""
        if state is READ:
            await self.peek()
        if state is WAIT_PEEK:
            await self.peek()
            for _ in range(2):
                await self.peek_next()
            return await started(self.peek_next(None))
        if state is WAIT_RECEIVE:
            for _ in range(3):
                await self.take()
            return await started(self.take(None))
        return None


@pytest.fixture
async def walk(manager: QueueManager, orders: str) -> Walk:
    await manager.send_many(orders, [durable(b"%d" % number) for number in range(3)])
    return Walk(manager, manager.open_queue(orders, QueueAccess.RECEIVE))


# Every event in every state.


@pytest.mark.parametrize(
    ("state", "event", "outcome", "after"),
    [
        (UNREAD, "peek", b"0", READ),
        (UNREAD, "peek next", IllegalCursorActionError, UNREAD),
        (UNREAD, "take", b"0", UNREAD),
        (READ, "peek", b"0", READ),
        (READ, "peek next", b"1", READ),
        (READ, "take", b"0", UNREAD),
        (WAIT_PEEK, "peek", IllegalCursorActionError, WAIT_PEEK),
        (WAIT_PEEK, "peek next", IllegalCursorActionError, WAIT_PEEK),
        (WAIT_PEEK, "take", IllegalCursorActionError, WAIT_PEEK),
        (WAIT_RECEIVE, "peek", IllegalCursorActionError, WAIT_RECEIVE),
        (WAIT_RECEIVE, "peek next", IllegalCursorActionError, WAIT_RECEIVE),
        (WAIT_RECEIVE, "take", IllegalCursorActionError, WAIT_RECEIVE),
    ],
    ids=str,
)
async def test_what_each_read_does_in_each_state(
    walk: Walk, state: CursorState, event: str, outcome: bytes | type[LannerError], after: CursorState
) -> None:
    await walk.enter(state)
    assert walk.cursor.state is state
    if isinstance(outcome, bytes):
        assert (await walk.event(event)).body == outcome
    else:
        with pytest.raises(outcome):
            await walk.event(event)
    assert walk.cursor.state == after


@pytest.mark.parametrize("event", ["peek", "take"])
async def test_the_message_under_the_cursor_may_be_gone(walk: Walk, event: str) -> None:
    await walk.enter(READ)
    await walk.manager.receive(r".\private$\orders", timeout=0)
    with pytest.raises(MessageAlreadyReceivedError):
        await walk.event(event)
    assert walk.cursor.state is READ
    assert (await walk.peek_next()).body == b"1"


@pytest.mark.parametrize("event", ["peek", "take"])
async def test_the_message_under_the_cursor_may_be_locked(walk: Walk, event: str) -> None:
    await walk.enter(READ)
    message = await walk.manager.dequeue_message_begin(walk.handle)
    with pytest.raises(MessageAlreadyReceivedError):
        await walk.event(event)
    await walk.manager.dequeue_message_end(walk.handle, message, delete=False)
    assert (await walk.event(event)).body == b"0"


@pytest.mark.parametrize(
    ("before", "event", "waiting", "after"),
    [
        (UNREAD, "peek", WAIT_PEEK, READ),
        (READ, "peek next", WAIT_PEEK, READ),
        (UNREAD, "take", WAIT_RECEIVE, UNREAD),
    ],
)
@pytest.mark.parametrize("end", ["message", "time", "cancel", "tag"])
async def test_how_a_wait_ends(
    manager: QueueManager,
    clock: ManualClock,
    orders: str,
    before: CursorState,
    event: str,
    waiting: CursorState,
    after: CursorState,
    end: str,
) -> None:
    with opened_for(manager, orders) as handle:
        walk = Walk(manager, handle)
        if before is READ:
            await manager.send(orders, durable(b"old"))
            await walk.peek()
        task = await started(walk.event(event, 5))
        assert walk.cursor.state is waiting
        if end == "message":
            await manager.send(orders, durable(b"new"))
            assert (await task).body == b"new"
            assert walk.cursor.state == after
            return
        if end == "time":
            await turn(manager, clock, 5)
            with pytest.raises(ReceiveTimeoutError):
                await task
        elif end == "cancel":
            task.cancel()
            await asyncio.wait([task])
        else:
            manager.close_queue(handle)
            with pytest.raises(OperationCancelledError):
                await task
        assert walk.cursor.state == before


async def test_a_cursor_that_may_not_wait_stays_where_it_is(walk: Walk) -> None:
    for expected in (b"0", b"1", b"2"):
        read = walk.peek if walk.cursor.state is UNREAD else walk.peek_next
        assert (await read()).body == expected
    for _ in range(2):
        with pytest.raises(ReceiveTimeoutError):
            await walk.peek_next()
        assert walk.cursor.state is READ
    assert (await walk.peek()).body == b"2"
    await walk.manager.send(r".\private$\orders", durable(b"3"))
    assert (await walk.peek_next()).body == b"3"


async def test_a_cursor_that_waited_in_vain_finds_what_comes_later(walk: Walk, clock: ManualClock) -> None:
    for _ in range(3):
        await walk.take()
    task = await started(walk.take(5))
    await turn(walk.manager, clock, 5)
    with pytest.raises(ReceiveTimeoutError):
        await task
    await walk.manager.send(r".\private$\orders", durable(b"later"))
    assert (await walk.take()).body == b"later"


# Walking.


async def test_a_cursor_walks_over_a_queue_without_taking_anything(walk: Walk) -> None:
    seen = [await walk.peek(), await walk.peek_next(), await walk.peek_next()]
    assert [message.body for message in seen] == [b"0", b"1", b"2"]
    assert counts(walk.manager, r".\private$\orders") == (3, 3)


async def test_taking_the_message_under_the_cursor_leaves_the_cursor_in_its_place(walk: Walk) -> None:
    await walk.peek()
    await walk.peek_next()
    assert (await walk.take()).body == b"1"
    assert (await walk.peek()).body == b"2"
    assert await bodies(walk.manager, r".\private$\orders") == [b"0", b"2"]


async def test_a_cursor_passes_over_what_is_locked(walk: Walk) -> None:
    await walk.peek()
    second = await walk.manager.dequeue_message_begin(walk.handle)
    third = await walk.manager.dequeue_message_begin(walk.handle)
    assert (second.body, third.body) == (b"0", b"1")
    assert (await walk.peek_next()).body == b"2"


async def test_a_cursor_does_not_go_back_for_what_comes_before_it(walk: Walk) -> None:
    await walk.peek()
    await walk.manager.send(r".\private$\orders", durable(b"urgent", priority=7))
    assert (await walk.peek_next()).body == b"1"


async def test_a_waiting_cursor_stands_on_whatever_comes(walk: Walk) -> None:
    task = await walk.enter(WAIT_PEEK)
    await walk.manager.send(r".\private$\orders", durable(b"urgent", priority=7))
    assert task is not None
    assert (await task).body == b"urgent"
    assert (await walk.peek()).body == b"urgent"
    assert (await walk.peek_next()).body == b"0"


async def test_cursors_do_not_disturb_each_other(walk: Walk) -> None:
    other = Walk(walk.manager, walk.handle)
    assert other.cursor.number != walk.cursor.number
    await walk.peek()
    assert (await walk.peek_next()).body == b"1"
    assert (await other.peek()).body == b"0"


async def test_a_cursor_receives_in_a_transaction_and_in_two_phases(walk: Walk) -> None:
    manager, orders = walk.manager, r".\private$\orders"
    transaction = manager.create_transaction()
    first = await manager.dequeue_message(walk.handle, cursor=walk.cursor, transaction=transaction)
    second = await manager.dequeue_message_begin(walk.handle, cursor=walk.cursor)
    assert (first.body, second.body) == (b"0", b"1")
    assert counts(manager, orders) == (3, 1)
    await manager.transaction_abort(transaction)
    await manager.dequeue_message_end(walk.handle, second, delete=True)
    assert await bodies(manager, orders) == [b"0", b"2"]


# Closing, and what a cursor is not for.


async def test_a_closed_cursor_is_stale(walk: Walk) -> None:
    walk.manager.close_cursor(walk.cursor)
    walk.manager.close_cursor(walk.cursor)
    for event in ("peek", "peek next", "take"):
        with pytest.raises(StaleHandleError):
            await walk.event(event)


@pytest.mark.parametrize("state", [WAIT_PEEK, WAIT_RECEIVE])
async def test_closing_a_cursor_cancels_the_read_that_waits_with_it(walk: Walk, state: CursorState) -> None:
    task = await walk.enter(state)
    other = await started(walk.manager.dequeue_message(walk.handle)) if state is WAIT_RECEIVE else None
    walk.manager.close_cursor(walk.cursor)
    assert task is not None
    with pytest.raises(OperationCancelledError):
        await task
    await walk.manager.send(r".\private$\orders", durable(b"new"))
    await settle(walk.manager)
    if other is not None:
        assert (await other).body == b"new"


async def test_a_cursor_works_with_its_own_handle_alone(walk: Walk) -> None:
    with opened_for(walk.manager, r".\private$\orders", QueueAccess.PEEK) as handle:
        theirs = walk.manager.open_cursor(handle)
        for read in (
            walk.manager.dequeue_message(walk.handle, timeout=0, cursor=theirs),
            walk.manager.peek_message(walk.handle, timeout=0, cursor=theirs),
        ):
            with pytest.raises(StaleHandleError, match="another handle"):
                await read
    assert counts(walk.manager, r".\private$\orders") == (3, 3)


async def test_a_cursor_is_not_for_one_message_by_its_identifier(walk: Walk) -> None:
    sent = await walk.manager.send(r".\private$\orders", durable(b"3"))
    with pytest.raises(InvalidPropertyError):
        await walk.manager.dequeue_message(
            walk.handle, timeout=0, cursor=walk.cursor, message_id=only_id(sent)
        )
    assert counts(walk.manager, r".\private$\orders") == (4, 4)
