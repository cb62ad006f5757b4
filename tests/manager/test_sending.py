from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from msgspec.structs import replace
from tests.manager.conftest import (
    BOTH_DELIVERIES,
    DEAD_LETTER,
    ELSEWHERE,
    LEDGER,
    ORDERS,
    SYSTEM_JOURNAL,
    Make,
    Opener,
    bodies,
    contents,
    counts,
    durable,
    express,
    full_disk,
    history,
    life,
    only_id,
    only_place,
    opened_for,
)

from lanner.manager import ManualClock, QueueManager
from lanner.model.errors import (
    InvalidNameError,
    InvalidPropertyError,
    LannerError,
    MessageTooLargeError,
    NotAuthenticatedError,
    QueueNotFoundError,
    QuotaExceededError,
    StoreFullError,
    TransactionUsageError,
    UnsupportedOperationError,
)
from lanner.model.message import (
    MAX_MESSAGE_SIZE,
    Acknowledgments,
    Message,
    MessageSecurity,
    TransactionMarks,
)
from lanner.model.message_id import MessageId
from lanner.model.queue import QueueAccess, QueueProperties
from lanner.store import Changes

TWO = r"DIRECT=OS:here\private$\orders,DIRECT=OS:here\private$\other"
EVERYTHING: dict[str, Any] = {
    "body": b"body",
    "body_type": 4113,
    "extension": b"extension",
    "label": "label \N{SNOWMAN}",
    "application_tag": 7,
    "correlation_id": MessageId.of(uuid4(), 5),
    "priority": 5,
    "message_class": 0x0123,
    "time_to_reach_queue": 100,
    "time_to_be_received": 200,
    "acknowledgments": Acknowledgments.FULL_RECEIVE,
    "administration_queue": r"DIRECT=OS:elsewhere\private$\admin",
    "response_queue": r"DIRECT=OS:elsewhere\private$\reply",
    "negative_journaling": True,
    "dead_letter_queue": r".\private$\dead",
    "tracing": True,
    "tracing_queue": uuid4(),
    "allow_peek_when_locked": True,
    "security": MessageSecurity(sender_id=b"somebody", provider_name="nobody"),
}


# What is sent is what is received.


@BOTH_DELIVERIES
async def test_every_attribute_arrives(
    manager: QueueManager, clock: ManualClock, orders: str, make: Make
) -> None:
    sent = make(**EVERYTHING)
    outcome = await manager.send(orders, sent)
    clock.advance(3)
    received = await manager.receive(orders, timeout=0)
    for name in Message.__struct_fields__:
        if name in EVERYTHING or name == "delivery":
            assert getattr(received, name) == getattr(sent, name), name
    assert received.id == only_id(outcome)
    assert received.lookup_id == only_place(outcome)
    assert received.source_machine == manager.identifier
    assert received.destination_queue == r"DIRECT=OS:here\private$\orders"
    assert received.sent_time == received.arrival_time == clock.time() - 3
    assert (received.abort_count, received.transaction) == (0, None)


async def test_every_attribute_arrives_from_the_disk(opened: Opener) -> None:
    async with opened(cache_bytes=0) as manager:
        await manager.create_queue(ORDERS)
        outcome = await manager.send(ORDERS, durable(**EVERYTHING))
        peeked = await manager.peek(ORDERS)
    async with opened(cache_bytes=0) as manager:
        received = await manager.receive(ORDERS, timeout=0)
    assert received == peeked
    assert received.id == only_id(outcome)
    assert all(getattr(received, name) == value for name, value in EVERYTHING.items())


async def test_identifiers_are_the_machines_and_never_used_twice(opened: Opener) -> None:
    seen: list[MessageId] = []
    for _ in range(3):
        async with opened() as manager:
            if not seen:
                await manager.create_queue(ORDERS)
            for make in (durable, express):
                outcome = await manager.send_many(ORDERS, [make()] * 3)
                seen.extend(outcome.message_ids)
            await manager.purge_queue(ORDERS)
            assert {identifier.lineage for identifier in seen} == {manager.identifier}
    assert len(set(seen)) == len(seen) == 18


async def test_what_an_application_says_about_identity_does_not_count(
    manager: QueueManager, clock: ManualClock, orders: str
) -> None:
    claimed = durable(
        id=MessageId.of(uuid4(), 1),
        lookup_id=99,
        source_machine=uuid4(),
        destination_queue="DIRECT=OS:elsewhere\\q",
        sent_time=1.0,
        arrival_time=1.0,
        abort_count=9,
        transaction=TransactionMarks(id="forged"),
    )
    await manager.send(orders, claimed)
    received = await manager.receive(orders, timeout=0)
    assert received.id != claimed.id
    assert received.source_machine == manager.identifier
    assert received.sent_time == clock.time()
    assert (received.abort_count, received.transaction) == (0, None)
    assert "here" in received.destination_queue


async def test_queues_of_this_machine_are_named_so_that_others_find_them(
    manager: QueueManager, orders: str
) -> None:
    spellings = [ORDERS, r"localhost\private$\orders", r"DIRECT=OS:.\private$\orders"]
    for name in spellings:
        await manager.send(orders, express(administration_queue=name, response_queue=name))
        received = await manager.receive(orders, timeout=0)
        assert received.administration_queue == received.response_queue == r"DIRECT=OS:here\private$\orders"
    http = "DIRECT=HTTP://localhost:8080/msmq/private$/orders"
    await manager.send(orders, express(response_queue=http))
    assert "//here:8080/" in (await manager.receive(orders, timeout=0)).response_queue


@pytest.mark.parametrize("name", ["administration_queue", "response_queue", "dead_letter_queue"])
async def test_a_queue_name_in_a_message_is_checked_when_it_is_sent(
    manager: QueueManager, orders: str, name: str
) -> None:
    with pytest.raises(InvalidNameError):
        await manager.send(orders, replace(express(), **{name: "no name"}))
    with pytest.raises(InvalidNameError):
        await manager.send(orders, express(dead_letter_queue=ELSEWHERE))
    assert counts(manager, orders) == (0, 0)


async def test_a_restart_forgets_express_messages_and_nothing_else(opened: Opener) -> None:
    async with opened() as manager:
        await manager.create_queue(ORDERS)
        await manager.send_many(ORDERS, [express(b"lost"), durable(b"kept"), express(b"lost")])
        await manager.send(ELSEWHERE, express(b"lost"))
    async with opened() as manager:
        assert await bodies(manager, ORDERS) == [b"kept"]
        assert manager.total_bytes == durable(b"kept").size
        assert all(info.messages == 0 for info in manager.outgoing_queues())


# What is refused.


@pytest.mark.parametrize(
    ("wrong", "error", "complaint"),
    [
        ({"label": "x" * 250}, InvalidPropertyError, "250 characters; the limit is 249"),
        ({"priority": 8}, InvalidPropertyError, "priority 8 is not between 0 and 7"),
        ({"priority": -1}, InvalidPropertyError, "priority -1 is not between 0 and 7"),
        ({"time_to_be_received": -1}, InvalidPropertyError, "time_to_be_received -1"),
        (
            {"body": b"x" * (MAX_MESSAGE_SIZE + 1)},
            MessageTooLargeError,
            "4,194,305 bytes; the limit is 4,194,304",
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
async def test_one_wrong_message_keeps_all_of_them_out(
    manager: QueueManager, orders: str, wrong: dict[str, Any], error: type[LannerError], complaint: str
) -> None:
    with pytest.raises(error, match=complaint):
        await manager.send_many(orders, [express(b"right"), express(**wrong)])
    assert counts(manager, orders) == (0, 0)
    assert manager.total_bytes == 0


@BOTH_DELIVERIES
async def test_the_largest_message_is_taken(manager: QueueManager, orders: str, make: Make) -> None:
    body = bytes(range(256)) * (MAX_MESSAGE_SIZE // 256)
    await manager.send(orders, make(body))
    assert (await manager.receive(orders, timeout=0)).body == body


@pytest.mark.parametrize(
    "name",
    [
        ORDERS + ";journal",
        r"DIRECT=OS:here\private$\orders;JOURNAL",
        DEAD_LETTER,
        SYSTEM_JOURNAL,
        r".\system$;deadxact",
        r".\private$\order_queue$",
        "MACHINE",
    ],
)
async def test_only_the_manager_itself_puts_messages_there(
    manager: QueueManager, orders: str, name: str
) -> None:
    if name == "MACHINE":
        name = f"MACHINE={manager.identifier};JOURNAL"
    with pytest.raises(UnsupportedOperationError):
        await manager.send(name, durable())
    assert manager.total_bytes == 0


async def test_a_subqueue_cannot_be_sent_to(manager: QueueManager, orders: str) -> None:
    with pytest.raises(QueueNotFoundError):
        await manager.send(orders + ";later", durable())
    with opened_for(manager, orders + ";later"), pytest.raises(UnsupportedOperationError, match="are moved"):
        await manager.send(orders + ";later", durable())


async def test_a_transactional_queue_takes_messages_of_transactions_alone(
    manager: QueueManager, ledger: str
) -> None:
    with pytest.raises(TransactionUsageError, match="not in a transaction"):
        await manager.send(ledger, durable())
    assert counts(manager, ledger) == (0, 0)


async def test_an_ordinary_queue_takes_no_messages_of_transactions(
    manager: QueueManager, orders: str
) -> None:
    transaction = manager.create_transaction()
    with pytest.raises(TransactionUsageError, match="create the queue as transactional"):
        await manager.send(orders, durable(), transaction=transaction)
    await manager.transaction_commit(transaction)
    assert counts(manager, orders) == (0, 0)


async def test_an_outgoing_queue_takes_both(manager: QueueManager) -> None:
    await manager.send(ELSEWHERE, durable(b"alone"))
    async with manager.transaction() as transaction:
        await manager.send(ELSEWHERE, durable(b"in a transaction"), transaction=transaction)
    assert sorted(await bodies(manager, ELSEWHERE)) == [b"alone", b"in a transaction"]


async def test_a_queue_may_take_authenticated_messages_alone(manager: QueueManager) -> None:
    await manager.create_queue(ORDERS, QueueProperties(authentication=True))
    for security in (None, MessageSecurity()):
        with pytest.raises(NotAuthenticatedError):
            await manager.send(ORDERS, express(security=security))
    await manager.send(ORDERS, express(security=MessageSecurity(authenticated=True)))
    assert counts(manager, ORDERS) == (1, 1)


async def test_nothing_at_all_can_be_sent(manager: QueueManager, orders: str) -> None:
    assert (await manager.send_many(orders, [])).message_ids == ()
    assert counts(manager, orders) == (0, 0)


# Several queues at once.


@BOTH_DELIVERIES
async def test_a_message_to_several_queues_is_in_each_of_them_with_one_identifier(
    manager: QueueManager, orders: str, other: str, make: Make
) -> None:
    outcome = await manager.send(f"{TWO},{ELSEWHERE}", make(b"one"))
    (first,), (second,), (third,) = [await contents(manager, name) for name in (orders, other, ELSEWHERE)]
    assert {first.id, second.id, third.id} == {outcome.message_ids[0]}
    assert len({first.lookup_id, second.lookup_id, third.lookup_id}) == 3
    assert first.destination_queue == r"DIRECT=OS:here\private$\orders"
    assert second.destination_queue == r"DIRECT=OS:here\private$\other"
    assert third.destination_queue == ELSEWHERE
    names = {message.destination_queues for message in (first, second, third)}
    assert names == {",".join(sorted([*TWO.split(","), ELSEWHERE], key=str.casefold))}


async def test_receiving_from_one_of_them_leaves_the_others(
    manager: QueueManager, orders: str, other: str
) -> None:
    await manager.send(TWO, durable(b"one"))
    await manager.receive(orders, timeout=0)
    assert await bodies(manager, other) == [b"one"]


@pytest.mark.parametrize(
    "refusing",
    [QueueProperties(transactional=True), QueueProperties(quota=0), QueueProperties(authentication=True)],
    ids=["transactional", "full", "authenticating"],
)
async def test_one_queue_that_refuses_keeps_the_message_out_of_all(
    manager: QueueManager, orders: str, refusing: QueueProperties
) -> None:
    await manager.create_queue(r".\private$\other", refusing)
    with pytest.raises(LannerError):
        await manager.send(TWO, durable())
    assert counts(manager, orders) == (0, 0)
    assert manager.queue(orders).bytes == manager.total_bytes == 0
    assert await history(manager) == []


async def test_one_queue_that_is_not_there_keeps_the_message_out_of_all(
    manager: QueueManager, orders: str
) -> None:
    with pytest.raises(QueueNotFoundError):
        await manager.send(TWO, durable())
    assert counts(manager, orders) == (0, 0)


# From a peer.


async def test_a_message_from_a_peer_keeps_its_identity(manager: QueueManager, orders: str) -> None:
    message = durable(b"one", id=MessageId.of(uuid4(), 9), source_machine=uuid4(), sent_time=5.0)
    changes = Changes()
    changes.state.append(("srmp", "seen", b"9"))
    queue = manager._core.queues.get(orders)
    await manager.deliver_message(queue, message, peer="10.0.0.2", changes=changes)
    (arrived,) = await contents(manager, orders)
    assert (arrived.id, arrived.source_machine, arrived.sent_time) == (
        message.id,
        message.source_machine,
        5.0,
    )
    assert await manager.store.state("srmp") == {"seen": b"9"}
    (row,) = await history(manager)
    assert (row.event, row.queue, row.peer) == ("arrived", orders, "10.0.0.2")


@pytest.mark.parametrize(
    ("message", "error"),
    [
        (durable(transaction=TransactionMarks(id="t")), TransactionUsageError),
        (durable(label="x" * 250), InvalidPropertyError),
        (durable(b"x" * 2000), QuotaExceededError),
    ],
    ids=["transactional", "long label", "too much"],
)
async def test_a_message_from_a_peer_is_refused_for_the_same_reasons(
    manager: QueueManager, message: Message, error: type[LannerError]
) -> None:
    await manager.create_queue(ORDERS, QueueProperties(quota=1))
    changes = Changes()
    changes.state.append(("srmp", "seen", b"9"))
    queue = manager._core.queues.get(ORDERS)
    with pytest.raises(error):
        await manager.deliver_message(queue, message, peer="10.0.0.2", changes=changes)
    assert (counts(manager, ORDERS), manager.total_bytes) == ((0, 0), 0)
    assert await manager.store.state("srmp") == {}


async def test_a_transactional_message_from_a_peer_goes_into_a_transactional_queue(
    manager: QueueManager, ledger: str
) -> None:
    queue = manager._core.queues.get(ledger)
    identifier = MessageId.of(uuid4(), 9)
    marks = TransactionMarks(id="theirs", stream=1 << 32, sequence=2, previous=1)
    await manager.deliver_message(queue, durable(id=identifier, transaction=marks), peer="peer")
    with pytest.raises(TransactionUsageError):
        await manager.deliver_message(queue, durable(id=identifier), peer="peer")
    (row,) = await history(manager)
    assert (row.transaction_id, row.stream, row.sequence, row.previous) == ("theirs", 1 << 32, 2, 1)


# The history.


async def test_a_sent_message_is_in_the_history(
    manager: QueueManager, clock: ManualClock, orders: str
) -> None:
    message = durable(
        b"12345",
        label="one",
        priority=5,
        administration_queue=r"elsewhere\private$\admin",
        response_queue=r"elsewhere\private$\reply",
    )
    outcome = await manager.send(orders, message)
    (row,) = await history(manager)
    assert row.lsn == 1
    assert row.time == clock.time()
    assert (row.event, row.queue) == ("sent", orders)
    assert (row.message_id, row.lookup_id) == (str(only_id(outcome)), only_place(outcome))
    assert (row.message_class, row.priority, row.label, row.size) == (0, 5, "one", message.size)
    assert row.destination == r"DIRECT=OS:here\private$\orders"
    assert row.administration == r"DIRECT=OS:elsewhere\private$\admin"
    assert row.response == r"DIRECT=OS:elsewhere\private$\reply"
    assert (row.transaction_id, row.stream, row.peer, row.reason, row.body) == (None,) * 5


async def test_an_express_message_is_in_the_history_as_such(manager: QueueManager, orders: str) -> None:
    outcome = await manager.send(orders, express())
    (row,) = await history(manager)
    assert (row.message_id, row.label, row.reason) == (str(only_id(outcome)), None, "express")


async def test_the_history_holds_bodies_where_that_is_wanted(opened: Opener) -> None:
    async with opened(history_bodies=True) as manager:
        await manager.create_queue(ORDERS)
        await manager.send(ORDERS, durable(b"sent"))
        await manager.receive(ORDERS, timeout=0)
        assert [row.body for row in await history(manager)] == [b"sent", None]


async def test_the_history_of_a_message_of_a_transaction_names_it(manager: QueueManager, ledger: str) -> None:
    transaction = manager.create_transaction("mine")
    outcome = await manager.send(ledger, durable(), transaction=transaction)
    assert await life(manager, only_id(outcome)) == []
    await manager.transaction_commit(transaction)
    (row,) = await history(manager)
    assert (row.event, row.transaction_id, row.priority) == ("sent", "mine", 0)


# A full disk.


async def test_on_a_full_disk_nothing_is_sent(manager: QueueManager, orders: str, other: str) -> None:
    await manager.send(orders, durable(b"before"))
    size = manager.total_bytes
    async with full_disk(manager):
        for name in (orders, TWO, ELSEWHERE):
            with pytest.raises(StoreFullError):
                await manager.send(name, durable(b"lost"))
        assert manager.total_bytes == size
        assert await bodies(manager, orders) == [b"before"]
        assert (counts(manager, other), counts(manager, ELSEWHERE)) == ((0, 0), (0, 0))
    await manager.send(TWO, durable(b"after"))
    assert await bodies(manager, orders) == [b"before", b"after"]


async def test_on_a_full_disk_express_messages_still_pass(manager: QueueManager, orders: str) -> None:
    await manager.send(orders, express(b"before"))
    async with full_disk(manager):
        await manager.send(orders, express(b"meanwhile"))
        assert (await manager.receive(orders, timeout=0)).body == b"before"
    assert await bodies(manager, orders) == [b"meanwhile"]


async def test_numbers_that_were_not_reserved_on_a_full_disk_are_not_used_twice(opened: Opener) -> None:
    seen: list[MessageId] = []
    async with opened() as manager:
        await manager.create_queue(ORDERS)
        await manager.create_queue(LEDGER, QueueProperties(transactional=True))
        transaction = manager.create_transaction()
        async with full_disk(manager):
            with pytest.raises(StoreFullError):
                await manager.send(ORDERS, durable(b"x" * 10_000))
            seen.extend((await manager.send(LEDGER, durable(), transaction=transaction)).message_ids)
        await manager.transaction_commit(transaction)
    async with opened() as manager:
        with opened_for(manager, ORDERS, QueueAccess.SEND) as handle:
            seen.extend((await manager.enqueue_messages(handle, [durable()] * 3)).message_ids)
    assert len(set(seen)) == 4
