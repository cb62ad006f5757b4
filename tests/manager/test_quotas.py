from __future__ import annotations

import pytest
from tests.manager.conftest import (
    BOTH_DELIVERIES,
    DEAD_LETTER,
    ELSEWHERE,
    LEDGER,
    ORDERS,
    OTHER,
    SYSTEM_JOURNAL,
    Make,
    Opener,
    bodies,
    counts,
    durable,
    express,
    history,
    only_place,
    opened_for,
)

from lanner.manager import ManualClock, QueueManager
from lanner.model.errors import QuotaExceededError
from lanner.model.message import INFINITE, MESSAGE_OVERHEAD
from lanner.model.queue import QueueProperties

HALF = b"x" * (512 - MESSAGE_OVERHEAD)
"""A body that makes a message of half a kilobyte."""


def small(**properties: object) -> QueueProperties:
    """The properties of a queue that holds one kilobyte."""
    return QueueProperties(**{"quota": 1, **properties})  # type: ignore[arg-type]


# The quota of a queue.


@BOTH_DELIVERIES
async def test_a_queue_is_filled_to_its_last_byte(manager: QueueManager, make: Make) -> None:
    await manager.create_queue(ORDERS, small())
    await manager.send_many(ORDERS, [make(HALF), make(HALF)])
    assert manager.queue(ORDERS).bytes == 1024
    with pytest.raises(QuotaExceededError, match="holds 1,024 bytes; its quota is 1 KB") as caught:
        await manager.send(ORDERS, make())
    assert caught.value.of_queue
    await manager.receive(ORDERS, timeout=0)
    with pytest.raises(QuotaExceededError):
        await manager.send(ORDERS, make(HALF + b"x"))
    await manager.send(ORDERS, make(HALF))


async def test_messages_that_do_not_fit_together_are_all_refused(manager: QueueManager) -> None:
    await manager.create_queue(ORDERS, small())
    with pytest.raises(QuotaExceededError):
        await manager.send_many(ORDERS, [durable(HALF)] * 3)
    assert (counts(manager, ORDERS), manager.total_bytes) == ((0, 0), 0)


async def test_a_queue_without_room_takes_nothing_and_one_without_limit_everything(
    manager: QueueManager,
) -> None:
    await manager.create_queue(ORDERS, QueueProperties(quota=0))
    await manager.create_queue(OTHER, QueueProperties(quota=INFINITE))
    with pytest.raises(QuotaExceededError):
        await manager.send(ORDERS, express())
    await manager.send(OTHER, express(b"x" * 1_000_000))


async def test_a_queue_and_its_subqueues_share_one_quota(manager: QueueManager) -> None:
    await manager.create_queue(ORDERS, small())
    for name in ("one", "two"):
        sent = await manager.send(ORDERS, durable(HALF))
        with opened_for(manager, ORDERS) as handle:
            await manager.move_message(handle, only_place(sent), f"{ORDERS};{name}")
    assert manager.queue(ORDERS).bytes == 0
    with pytest.raises(QuotaExceededError):
        await manager.send(ORDERS, durable())
    await manager.receive(ORDERS + ";one", timeout=0)
    await manager.send(ORDERS, durable(HALF))


async def test_the_journal_does_not_count_against_the_queue(manager: QueueManager) -> None:
    await manager.create_queue(ORDERS, small(journaling=True))
    for _ in range(4):
        await manager.send(ORDERS, durable(HALF))
        await manager.receive(ORDERS, timeout=0)
    assert (manager.queue(ORDERS).bytes, manager.queue(ORDERS).journal_bytes) == (0, 2048)


async def test_what_a_transaction_will_send_counts_at_once(manager: QueueManager) -> None:
    await manager.create_queue(LEDGER, small(transactional=True))
    first, second = manager.create_transaction(), manager.create_transaction()
    await manager.send_many(LEDGER, [durable(HALF)] * 2, transaction=first)
    with pytest.raises(QuotaExceededError):
        await manager.send(LEDGER, durable(), transaction=second)
    await manager.transaction_abort(first)
    await manager.send_many(LEDGER, [durable(HALF)] * 2, transaction=second)
    await manager.transaction_commit(second)
    assert manager.queue(LEDGER).bytes == manager.total_bytes == 1024


async def test_what_a_transaction_has_received_counts_until_it_is_committed(manager: QueueManager) -> None:
    await manager.create_queue(ORDERS, small())
    await manager.send_many(ORDERS, [durable(HALF)] * 2)
    transaction = manager.create_transaction()
    await manager.receive(ORDERS, timeout=0, transaction=transaction)
    with pytest.raises(QuotaExceededError):
        await manager.send(ORDERS, durable(HALF))
    await manager.transaction_commit(transaction)
    await manager.send(ORDERS, durable(HALF))


async def test_a_changed_quota_counts_at_once_and_drops_nothing(manager: QueueManager) -> None:
    await manager.create_queue(ORDERS, small())
    await manager.send_many(ORDERS, [durable(HALF)] * 2)
    await manager.change_queue(ORDERS, QueueProperties(quota=0))
    assert counts(manager, ORDERS) == (2, 2)
    await manager.change_queue(ORDERS, QueueProperties(quota=2))
    await manager.send(ORDERS, durable(HALF))


async def test_an_outgoing_queue_has_no_quota_of_its_own(manager: QueueManager) -> None:
    await manager.send(ELSEWHERE, express(b"x" * 1_000_000))
    assert manager.total_bytes == manager.queue(ELSEWHERE).bytes == 1_000_000 + MESSAGE_OVERHEAD


async def test_the_quota_holds_over_a_restart(opened: Opener) -> None:
    async with opened() as manager:
        await manager.create_queue(ORDERS, small())
        await manager.send_many(ORDERS, [durable(HALF), express(HALF)])
    async with opened() as manager:
        assert manager.queue(ORDERS).bytes == manager.total_bytes == 512
        await manager.send(ORDERS, durable(HALF))
        with pytest.raises(QuotaExceededError):
            await manager.send(ORDERS, durable())


# The quota of the machine.


async def test_all_queues_together_have_one_quota(opened: Opener) -> None:
    async with opened(quota=1) as manager:
        for name in (ORDERS, OTHER):
            await manager.create_queue(name, QueueProperties(journaling=True))
        await manager.send(ORDERS, durable(HALF))
        await manager.receive(ORDERS, timeout=0)
        await manager.send(OTHER, durable(HALF))
        with pytest.raises(
            QuotaExceededError, match="all queues hold 1,024 bytes; the quota is 1 KB"
        ) as caught:
            await manager.send(ELSEWHERE, durable())
        assert not caught.value.of_queue
        await manager.purge_queue(ORDERS + ";journal")
        await manager.send(ELSEWHERE, durable(HALF))


async def test_the_machine_may_have_no_quota(opened: Opener) -> None:
    async with opened(quota=INFINITE) as manager:
        await manager.create_queue(ORDERS)
        await manager.send(ORDERS, express(b"x" * 1_000_000))


async def test_the_quota_of_the_machine_is_asked_first(opened: Opener) -> None:
    async with opened(quota=0) as manager:
        await manager.create_queue(ORDERS, QueueProperties(quota=0))
        with pytest.raises(QuotaExceededError) as caught:
            await manager.send(ORDERS, express())
        assert not caught.value.of_queue


async def test_under_flow_control_nothing_is_taken_in(manager: QueueManager, orders: str) -> None:
    await manager.send(orders, durable(b"before"))
    manager.begin_flow_control()
    for name in (orders, ELSEWHERE):
        with pytest.raises(QuotaExceededError, match="takes in nothing") as caught:
            await manager.send(name, express())
        assert not caught.value.of_queue
    assert (await manager.receive(orders, timeout=0)).body == b"before"
    manager.end_flow_control()
    await manager.send(orders, express(b"after"))
    assert await bodies(manager, orders) == [b"after"]


# The quotas of journals and dead letters.


async def test_a_journal_over_its_quota_discards_and_says_so(manager: QueueManager) -> None:
    await manager.create_queue(ORDERS, QueueProperties(journaling=True, journal_quota=1))
    for number in range(3):
        await manager.send(ORDERS, durable(HALF[:-2], label=f"{number}"))
        assert (await manager.receive(ORDERS, timeout=0)).label == f"{number}"
    assert counts(manager, ORDERS + ";journal") == (2, 2)
    row = (await history(manager))[-1]
    assert (row.event, row.queue, row.label) == ("discarded", ORDERS + ";journal", "2")
    assert row.reason is not None
    assert "quota" in row.reason
    assert manager.total_bytes == 1024


async def test_the_journals_and_dead_letters_of_the_system_share_one_quota(opened: Opener) -> None:
    async with opened(journal_quota=1) as manager:
        await manager.create_queue(ORDERS)
        await manager.send(ORDERS, durable(HALF, positive_journaling=True))
        await manager.receive(ORDERS, timeout=0)
        await manager.send(ORDERS, durable(HALF, negative_journaling=True))
        await manager.purge_queue(ORDERS)
        assert (counts(manager, SYSTEM_JOURNAL), counts(manager, DEAD_LETTER)) == ((1, 1), (1, 1))
        await manager.send_many(
            ORDERS, [durable(positive_journaling=True), durable(negative_journaling=True)]
        )
        await manager.purge_queue(ORDERS)
        assert (counts(manager, SYSTEM_JOURNAL), counts(manager, DEAD_LETTER)) == ((1, 1), (1, 1))
        events = [(row.event, row.queue) for row in await history(manager)]
        assert events.count(("discarded", SYSTEM_JOURNAL)) == 1
        assert events.count(("discarded", DEAD_LETTER)) == 1


@pytest.mark.parametrize("journal_quota", [0, INFINITE])
async def test_a_dead_letter_queue_of_an_application_has_its_own_quota(
    opened: Opener, journal_quota: int
) -> None:
    async with opened(journal_quota=journal_quota) as manager:
        await manager.create_queue(ORDERS)
        await manager.create_queue(OTHER, small())
        message = durable(HALF, negative_journaling=True, dead_letter_queue=OTHER)
        await manager.send_many(ORDERS, [message] * 3)
        await manager.purge_queue(ORDERS)
        assert counts(manager, OTHER) == (2, 2)
        assert manager.total_bytes == 1024


async def test_an_expired_message_is_gone_even_where_its_dead_letter_is_discarded(
    opened: Opener, clock: ManualClock
) -> None:
    async with opened(journal_quota=0) as manager:
        await manager.create_queue(ORDERS)
        await manager.send(ORDERS, durable(negative_journaling=True))
        await manager.purge_queue(ORDERS)
        assert (manager.total_bytes, counts(manager, DEAD_LETTER)) == (0, (0, 0))
