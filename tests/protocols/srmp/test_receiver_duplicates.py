"""Copies of a message: one is kept, and none is answered before that is safe (decision 4)."""

from __future__ import annotations

import asyncio
from uuid import UUID

import pytest
from msgspec.structs import replace
from tests.manager.conftest import bodies, full_disk, let_run, settle, started, stuck_writer, turn, until
from tests.protocols.srmp.conftest import PEER, Inbound, Opener, inbound_of
from tests.protocols.srmp.envelopes import LEDGER, NOW, STREAM, asking, changed, message, place, streamed

from lanner.manager import ManualClock
from lanner.model.queue import QueueProperties
from lanner.protocols.srmp import receiver, wire
from lanner.protocols.srmp.duplicates import MAX_AGE
from lanner.protocols.srmp.incoming import SCOPE as STREAM_SCOPE

LOCAL = r".\private$\orders"
STREAMED = r".\private$\ledger"


@pytest.mark.parametrize("is_durable", [True, False], ids=["durable", "regular"])
async def test_a_copy_is_answered_and_not_kept(inbound: Inbound, is_durable: bool) -> None:
    srmp = message() if is_durable else changed(message(), services=None)
    assert [(await inbound.post(srmp)).status for _ in range(3)] == [200] * 3
    assert await bodies(inbound.manager, LOCAL) == [b"hello"]
    rows = await inbound.told("duplicate")
    assert [(row.queue, row.peer) for row in rows] == [(LOCAL, PEER)] * 2


async def test_after_half_an_hour_it_is_a_message_again(inbound: Inbound, clock: ManualClock) -> None:
    assert (await inbound.post(message())).status == 200
    clock.advance(MAX_AGE)
    assert (await inbound.post(message())).status == 200
    assert len(await bodies(inbound.manager, LOCAL)) == 2


async def test_a_copy_waits_until_the_first_is_safe(inbound: Inbound) -> None:
    with stuck_writer(inbound.manager):
        first = await started(inbound.post(message()))
        copy = await started(inbound.post(message()))
        await let_run()
        assert not first.done()
        assert not copy.done()
    assert (await first).status == (await copy).status == 200
    assert await bodies(inbound.manager, LOCAL) == [b"hello"]


async def test_a_copy_waits_also_when_whoever_sent_the_first_is_gone(inbound: Inbound) -> None:
    with stuck_writer(inbound.manager):
        first = await started(inbound.post(message()))
        first.cancel()
        await let_run()
        copy = await started(inbound.post(message()))
        await let_run()
        assert not copy.done(), "nothing is safe yet"
    assert (await copy).status == 200
    assert await bodies(inbound.manager, LOCAL) == [b"hello"]


@pytest.mark.parametrize("is_gone", [False, True], ids=["waiting", "gone"])
async def test_when_the_first_fails_the_copy_fails_and_the_next_is_taken(
    inbound: Inbound, is_gone: bool
) -> None:
    large = message(body=b"x" * 100_000)
    async with full_disk(inbound.manager):
        with stuck_writer(inbound.manager):
            first = await started(inbound.post(large))
            copy = await started(inbound.post(large))
            if is_gone:
                first.cancel()
            await let_run()
        assert (await copy).status == 500
        if not is_gone:
            assert (await first).status == 500
    assert (await inbound.post(large)).status == 200
    assert len(await bodies(inbound.manager, LOCAL)) == 1
    assert await inbound.told("duplicate") == []


async def test_a_copy_that_comes_too_late_is_a_copy_and_not_an_expired_message(
    inbound: Inbound, clock: ManualClock
) -> None:
    srmp = asking(message(ttrq=NOW + 60), negative=True)
    assert (await inbound.post(srmp)).status == 200
    clock.advance(61)
    assert (await inbound.post(srmp)).status == 200
    assert len(await inbound.told("duplicate")) == 1
    assert await inbound.told("expired") == []
    assert inbound.manager.outgoing_queues() == [], "no receipt says that it was lost"


async def test_the_table_survives_a_restart(opened: Opener) -> None:
    async with opened() as manager:
        await manager.create_queue(LOCAL)
        inbound = inbound_of(manager)
        assert (await inbound.post(message(1))).status == 200
        assert (await inbound.post(changed(message(2), services=None))).status == 200
    async with opened() as manager:
        inbound = inbound_of(manager)
        await inbound.receiver.load()
        for number in (1, 2):
            assert (await inbound.post(message(number))).status == 200
        assert len(await inbound.told("duplicate")) == 2
        assert len(await bodies(manager, LOCAL)) == 1, "the regular one was in memory alone"


# In a stream.


async def test_a_copy_of_a_stream_message_waits_until_the_first_is_safe(inbound: Inbound) -> None:
    with stuck_writer(inbound.manager):
        first = await started(inbound.post(streamed(1)))
        copy = await started(inbound.post(streamed(1)))
        await let_run()
        assert not copy.done()
    assert (await first).status == (await copy).status == 200
    assert await bodies(inbound.manager, STREAMED) == [b"1"]


async def test_a_copy_of_a_stream_message_fails_with_the_first(inbound: Inbound) -> None:
    async with full_disk(inbound.manager):
        with stuck_writer(inbound.manager):
            first = await started(inbound.post(streamed(1)))
            copy = await started(inbound.post(streamed(1)))
            await let_run()
        assert (await first).status == (await copy).status == 500
    assert (await inbound.post(streamed(1))).status == 200
    assert await bodies(inbound.manager, STREAMED) == [b"1"]


async def test_many_messages_of_a_stream_at_once_are_committed_together_and_in_order(
    inbound: Inbound,
) -> None:
    answers = await asyncio.gather(*(inbound.post(streamed(number)) for number in range(1, 51)))
    assert {answer.status for answer in answers} == {200}
    assert await bodies(inbound.manager, STREAMED) == [b"%d" % number for number in range(1, 51)]


async def test_whatever_stands_on_a_batch_that_fails_fails_too(inbound: Inbound) -> None:
    manager = inbound.manager
    async with full_disk(manager):
        with stuck_writer(manager):
            first = await started(inbound.post(streamed(1)))
            await until(lambda: manager.store.backlog_rows > 0)
            second = await started(inbound.post(streamed(2)))
        assert (await first).status == (await second).status == 500
    await settle(manager)
    assert manager.total_bytes == 0
    assert (await inbound.post(streamed(2))).status == 200, "ignored: it is not next"
    assert [(await inbound.post(streamed(number))).status for number in (1, 2)] == [200, 200]
    assert await bodies(manager, STREAMED) == [b"1", b"2"]


async def test_a_message_of_a_new_stream_that_came_in_an_old_one_is_known(inbound: Inbound) -> None:
    """A sender that begins its stream anew sends again what may have arrived."""
    for number in (1, 2):
        assert (await inbound.post(streamed(number))).status == 200
    again = changed(streamed(2), stream=place(1, stream=STREAM + 1))
    assert (await inbound.post(again)).status == 200
    following = changed(streamed(3), stream=place(2, stream=STREAM + 1))
    assert (await inbound.post(following)).status == 200
    assert await bodies(inbound.manager, STREAMED) == [b"1", b"2", b"3"]
    assert len(await inbound.told("duplicate")) == 1


async def test_stream_messages_without_an_identifier_are_known_by_their_numbers_alone(
    inbound: Inbound,
) -> None:
    """Without one they all have the same (3.1.5.1.11)."""
    for number in (1, 2, 2, 3):
        srmp = streamed(number)
        unnamed = changed(srmp, path=replace(srmp.envelope.path, id=wire.NO_IDENTIFIER))
        assert (await inbound.post(unnamed)).status == 200
    assert await bodies(inbound.manager, STREAMED) == [b"1", b"2", b"3"]
    assert len(await inbound.told("duplicate")) == 1, "of the second 2"
    await settle(inbound.manager)
    assert await inbound.manager.transfers.state(receiver.SEEN_SCOPE) == {}


async def test_a_queue_that_was_deleted_and_made_again_knows_no_stream(inbound: Inbound) -> None:
    for number in (1, 2):
        assert (await inbound.post(streamed(number))).status == 200
    await inbound.manager.delete_queue(STREAMED)
    assert (await inbound.post(streamed(3))).status == 400
    await inbound.manager.create_queue(STREAMED, QueueProperties(transactional=True))
    assert (await inbound.post(streamed(3))).status == 200
    assert await bodies(inbound.manager, STREAMED) == [], "it is out of order there"


async def test_streams_are_remembered_up_to_a_limit(
    inbound: Inbound, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sender is known by a number that it makes up itself."""
    monkeypatch.setattr(receiver, "MAX_STREAMS", 3)

    def first_of(sender: int, current: int = 1) -> wire.SrmpMessage:
        srmp = message(1000 + sender, LEDGER, b"%d" % sender)
        return changed(srmp, stream=place(current, sender=UUID(int=sender)))

    for sender in range(10):
        assert (await inbound.post(first_of(sender, 5))).status == 200, "out of order: nothing to remember"
    for sender in range(3):
        assert (await inbound.post(first_of(sender))).status == 200
    answer = await inbound.post(first_of(3))
    assert (answer.status, "streams" in answer.reason) == (500, True)
    await turn(inbound.manager, clock, receiver.MAX_STREAM_AGE)
    assert (await inbound.post(first_of(3))).status == 200, "one that nobody uses makes room"
    assert await bodies(inbound.manager, STREAMED) == [b"0", b"1", b"2", b"3"]
    await settle(inbound.manager)
    assert len(await inbound.manager.transfers.state(STREAM_SCOPE)) == 3
