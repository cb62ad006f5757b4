"""Numbers of the transactional messages that leave this machine (MC-MQSRM 3.1.1.2, 3.1.7.2.3)."""

from __future__ import annotations

import pytest
from tests.manager.conftest import ELSEWHERE, Opener, durable, full_disk, settle

from lanner.manager import ManualClock, QueueManager
from lanner.manager.numbering import RESERVED
from lanner.manager.queues import OutgoingQueue
from lanner.model.errors import LannerError
from lanner.model.message import Message
from lanner.store import Changes


async def _send(manager: QueueManager, *texts: bytes, **attributes: object) -> None:
    async with manager.transaction() as transaction:
        messages = [durable(text, **attributes) for text in texts]
        await manager.send_many(ELSEWHERE, messages, transaction=transaction)


def _queue(manager: QueueManager) -> OutgoingQueue:
    queue = manager._core.queues.get(ELSEWHERE)
    assert isinstance(queue, OutgoingQueue)
    return queue


async def _waiting(manager: QueueManager) -> list[Message]:
    return await manager.transfers.load(list(_queue(manager).messages))


async def _places(manager: QueueManager) -> list[tuple[int, int, int]]:
    queue = _queue(manager)
    places = [manager.transfers.place_of(queue, message) for message in await _waiting(manager)]
    return [(place.stream, place.number, place.previous) for place in places]


async def _take_out(manager: QueueManager, count: int) -> None:
    """The first messages are acknowledged."""
    queue = _queue(manager)
    positions = manager.transfers.take(queue, count)
    changes = Changes()
    for position, message in zip(positions, await manager.transfers.load(positions), strict=True):
        manager.transfers.hand_over(changes, position, message, "peer")
    await manager.transfers.finish(changes)


async def test_numbers_over_several_transactions(manager: QueueManager) -> None:
    await _send(manager, b"a", b"b")
    await _send(manager, b"c")
    stream = _queue(manager).stream.identifier
    assert await _places(manager) == [(stream, 1, 0), (stream, 2, 1), (stream, 3, 2)]


async def test_an_identifier_is_the_time_and_an_ordinal(manager: QueueManager, clock: ManualClock) -> None:
    await _send(manager, b"a")
    stream = _queue(manager).stream.identifier
    assert (stream >> 32, stream & 0xFFFFFFFF) == (int(clock.time()), 1)


async def test_a_negative_journaling_message_wants_a_final_receipt(manager: QueueManager) -> None:
    await _send(manager, b"a", negative_journaling=True)
    await _send(manager, b"b")
    marks = [message.transaction for message in await _waiting(manager)]
    assert [each.final_ack_required for each in marks if each is not None] == [True, False]


async def test_an_empty_queue_ends_its_stream(manager: QueueManager, clock: ManualClock) -> None:
    await _send(manager, b"a", b"b")
    first = _queue(manager).stream.identifier
    await _take_out(manager, 1)
    await _send(manager, b"c")
    assert [number for _, number, _ in await _places(manager)] == [2, 3]
    await _take_out(manager, 2)
    clock.jump(-1000)
    await _send(manager, b"d")
    ((stream, number, previous),) = await _places(manager)
    assert (number, previous) == (1, 0)
    assert stream > first, "also when the clock was set back"


async def test_queues_have_streams_of_their_own(manager: QueueManager) -> None:
    await _send(manager, b"a")
    other = r"DIRECT=OS:third\private$\far"
    async with manager.transaction() as transaction:
        await manager.send(other, durable(b"b"), transaction=transaction)
    queue = manager._core.queues.get(other)
    assert isinstance(queue, OutgoingQueue)
    assert queue.stream.identifier != _queue(manager).stream.identifier
    assert queue.stream.sequence == 1


async def test_an_aborted_transaction_uses_no_numbers(manager: QueueManager) -> None:
    await _send(manager, b"a")
    transaction = manager.create_transaction()
    await manager.send(ELSEWHERE, durable(b"x"), transaction=transaction)
    await manager.transaction_abort(transaction)
    await _send(manager, b"b")
    assert [number for _, number, _ in await _places(manager)] == [1, 2]


async def test_a_failed_commit_leaves_a_gap_and_nothing_else(manager: QueueManager) -> None:
    await _send(manager, b"a")
    async with full_disk(manager):
        with pytest.raises(LannerError):
            await _send(manager, b"x" * 100_000)
    await settle(manager)
    await _send(manager, b"b")
    assert [number for _, number, _ in await _places(manager)] == [1, 3]
    assert _queue(manager).stream.pending == 0


async def test_a_stream_whose_first_commit_failed_is_not_used(manager: QueueManager) -> None:
    manager._core.target(ELSEWHERE)
    async with full_disk(manager):
        with pytest.raises(LannerError):
            await _send(manager, b"x" * 100_000)
    await settle(manager)
    await _send(manager, b"b")
    assert [number for _, number, _ in await _places(manager)] == [1]


async def test_a_restart_goes_on_behind_every_number_that_may_have_been_used(opened: Opener) -> None:
    async with opened() as manager:
        await _send(manager, b"a", b"b", b"c")
        stream = _queue(manager).stream.identifier
        last = (await _waiting(manager))[-1]
        queue = _queue(manager)
        position = next(each for each in queue.messages if each.id == last.id)
        queue.messages.lock(position)
        changes = Changes()
        manager.transfers.hand_over(changes, position, last, "peer")
        await manager.transfers.finish(changes)
    async with opened() as manager:
        await _send(manager, b"d")
        places = await _places(manager)
        assert [number for _, number, _ in places][:2] == [1, 2]
        assert places[-1][0] == stream
        assert 3 < places[-1][1] <= 3 + RESERVED + 1
    async with opened() as manager:
        await _send(manager, b"e")
        numbers = [number for _, number, _ in await _places(manager)]
        assert numbers == sorted(set(numbers))


async def test_more_than_one_block(opened: Opener) -> None:
    async with opened() as manager:
        for _ in range(3):
            await _send(manager, *[b"x"] * (RESERVED - 100))
        await _take_out(manager, 3 * (RESERVED - 100) - 1)
    async with opened() as manager:
        await _send(manager, b"y")
        first, second = [number for _, number, _ in await _places(manager)]
        assert first == 3 * (RESERVED - 100)
        assert second > first


async def test_a_stream_that_ended_before_a_restart_is_not_taken_up_again(opened: Opener) -> None:
    async with opened() as manager:
        await _send(manager, b"a")
        old = _queue(manager).stream.identifier
        await _take_out(manager, 1)
    async with opened() as manager:
        await _send(manager, b"b")
        ((stream, number, _),) = await _places(manager)
        assert number == 1
        assert stream > old


# Beginning anew.


async def test_reset(opened: Opener) -> None:
    async with opened() as manager:
        await _send(manager, b"a", b"b", b"c", b"d")
        await _take_out(manager, 2)
        old = _queue(manager).stream.identifier
        await manager.transfers.reset_stream(_queue(manager), 3)
        new = _queue(manager).stream.identifier
        assert new > old
        await _send(manager, b"e")
        expected = [(new, 1, 0), (new, 2, 1), (new, 3, 2)]
        assert await _places(manager) == expected
    async with opened() as manager:
        assert await _places(manager) == expected, "also after a restart"
        await _take_out(manager, 1)
        await manager.transfers.reset_stream(_queue(manager), 2)
        newest = _queue(manager).stream.identifier
        assert await _places(manager) == [(newest, 1, 0), (newest, 2, 1)], "twice"


async def test_a_reset_that_cannot_be_stored_has_not_happened(manager: QueueManager) -> None:
    await _send(manager, b"a", b"b")
    await _take_out(manager, 1)
    before = await _places(manager)
    changes = Changes()
    changes.state.append(("filler", "x", b"x" * 200_000))
    async with full_disk(manager):
        manager._numbering.reset(changes, _queue(manager), 2)
        with pytest.raises(LannerError):
            await manager.transfers.finish(changes)
    assert await _places(manager) == before
    await _send(manager, b"c")
    assert [number for _, number, _ in await _places(manager)] == [2, 3]


async def test_resets_are_forgotten_with_their_stream(manager: QueueManager) -> None:
    await _send(manager, b"a", b"b")
    await manager.transfers.reset_stream(_queue(manager), 2)
    assert _queue(manager).stream.resets
    await _take_out(manager, 2)
    await _send(manager, b"c")
    assert _queue(manager).stream.resets == {}
    await settle(manager)
    assert not [key for key in await manager.transfers.state("streams") if key.startswith("reset:")]
