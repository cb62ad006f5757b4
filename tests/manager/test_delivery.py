"""What follows from what happens to a message: journals, dead letters, acknowledgments, poison."""

from __future__ import annotations

import logging
from typing import Any
from uuid import uuid4

import pytest
from tests.manager.conftest import (
    BOTH_DELIVERIES,
    DEAD_LETTER,
    ELSEWHERE,
    ORDERS,
    OTHER,
    SYSTEM_JOURNAL,
    TRANSACTIONAL_DEAD_LETTER,
    Make,
    Opener,
    bodies,
    classes,
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
    settle,
    turn,
)

from lanner.manager import ManualClock, QueueManager
from lanner.model.codes import MessageClass, describe_class
from lanner.model.message import (
    INFINITE,
    Acknowledgments,
    Message,
    MessageSecurity,
    PrivacyLevel,
    SenderIdType,
)
from lanner.model.message_id import MessageId
from lanner.model.queue import QueueAccess, QueueProperties

ADMIN = r".\private$\admin"
REMOTE_ADMIN = r"DIRECT=OS:elsewhere\private$\admin"


@pytest.fixture
async def admin(manager: QueueManager) -> str:
    return (await manager.create_queue(ADMIN)).path


@pytest.fixture
async def journaled(manager: QueueManager) -> str:
    """A queue that keeps what is received from it."""
    return (await manager.create_queue(r".\private$\journaled", QueueProperties(journaling=True))).path


# The journal of a queue.


@BOTH_DELIVERIES
async def test_a_received_message_goes_into_the_journal_of_its_queue(
    manager: QueueManager, journaled: str, make: Make
) -> None:
    sent = await manager.send(journaled, make(b"one", message_class=0x0123))
    received = await manager.receive(journaled, timeout=0)
    assert counts(manager, journaled) == (0, 0)
    (kept,) = await contents(manager, journaled + ";journal")
    assert (kept.id, kept.lookup_id, kept.body) == (received.id, received.lookup_id, b"one")
    assert kept.message_class == 0x0123
    assert await life(manager, only_id(sent)) == [
        ("sent", journaled),
        ("received", journaled),
        ("journaled", journaled + ";journal"),
    ]
    info = manager.queue(journaled)
    assert (info.bytes, info.journal_messages, info.journal_bytes) == (0, 1, kept.size)
    assert manager.total_bytes == kept.size


async def test_a_queue_without_journaling_keeps_nothing(manager: QueueManager, orders: str) -> None:
    await manager.send(orders, durable())
    await manager.receive(orders, timeout=0)
    assert (counts(manager, orders + ";journal"), manager.total_bytes) == ((0, 0), 0)


async def test_what_is_received_from_a_journal_is_gone(manager: QueueManager, journaled: str) -> None:
    sent = await manager.send(journaled, durable(negative_journaling=True, time_to_be_received=5))
    await manager.receive(journaled, timeout=0)
    await manager.receive(journaled + ";journal", timeout=0)
    assert manager.total_bytes == 0
    assert (await life(manager, only_id(sent)))[-1] == ("received", journaled + ";journal")


async def test_what_is_in_a_journal_does_not_expire_and_leaves_no_trace_when_purged(
    manager: QueueManager, clock: ManualClock, journaled: str, admin: str
) -> None:
    await manager.send(
        journaled,
        durable(
            time_to_be_received=5,
            negative_journaling=True,
            administration_queue=admin,
            acknowledgments=Acknowledgments.NEGATIVE_RECEIVE,
        ),
    )
    await manager.receive(journaled, timeout=0)
    await turn(manager, clock, 10)
    assert counts(manager, journaled + ";journal") == (1, 1)
    await manager.purge_queue(journaled + ";journal")
    assert (counts(manager, DEAD_LETTER), counts(manager, admin)) == ((0, 0), (0, 0))
    assert manager.total_bytes == 0


async def test_a_message_from_a_subqueue_goes_into_the_journal_of_its_queue(
    manager: QueueManager, journaled: str
) -> None:
    sent = await manager.send(journaled, durable(b"one"))
    with opened_for(manager, journaled) as handle:
        await manager.move_message(handle, only_place(sent), journaled + ";later")
    await manager.receive(journaled + ";later", timeout=0)
    assert await bodies(manager, journaled + ";journal") == [b"one"]
    assert manager.queue(journaled).subqueues == ()


@pytest.mark.parametrize("commit", [False, True])
async def test_a_transaction_journals_when_it_is_committed(
    manager: QueueManager, journaled: str, commit: bool
) -> None:
    await manager.send(journaled, durable(b"one"))
    transaction = manager.create_transaction()
    await manager.receive(journaled, timeout=0, transaction=transaction)
    assert counts(manager, journaled + ";journal") == (0, 0)
    end = manager.transaction_commit if commit else manager.transaction_abort
    await end(transaction)
    assert counts(manager, journaled + ";journal") == ((1, 1) if commit else (0, 0))


async def test_journaling_can_be_switched(manager: QueueManager, orders: str) -> None:
    for journaling in (True, False):
        await manager.change_queue(orders, QueueProperties(journaling=journaling))
        await manager.send(orders, durable(b"%d" % journaling))
        await manager.receive(orders, timeout=0)
    assert await bodies(manager, orders + ";journal") == [b"1"]


async def test_journals_survive_a_restart(opened: Opener) -> None:
    async with opened() as manager:
        await manager.create_queue(ORDERS, QueueProperties(journaling=True))
        await manager.send_many(ORDERS, [durable(b"kept", time_to_be_received=5), express(b"lost")])
        for _ in range(2):
            await manager.receive(ORDERS, timeout=0)
    async with opened() as manager:
        assert await bodies(manager, ORDERS + ";journal") == [b"kept"]
        assert manager.queue(ORDERS).journal_messages == 1


# The journal of the source.


@BOTH_DELIVERIES
async def test_a_message_that_asks_for_it_is_copied_into_the_systems_journal_when_it_arrives(
    manager: QueueManager, orders: str, make: Make
) -> None:
    sent = await manager.send(orders, make(b"one", positive_journaling=True))
    (copy,) = await contents(manager, SYSTEM_JOURNAL)
    assert (copy.id, copy.body) == (only_id(sent), b"one")
    assert copy.lookup_id != only_place(sent)
    await manager.receive(orders, timeout=0)
    assert await bodies(manager, SYSTEM_JOURNAL) == [b"one"]
    assert await life(manager, only_id(sent)) == [
        ("sent", orders),
        ("journaled", SYSTEM_JOURNAL),
        ("received", orders),
    ]
    assert manager.total_bytes == copy.size


async def test_the_copy_in_the_systems_journal_does_not_expire(
    manager: QueueManager, clock: ManualClock, orders: str
) -> None:
    await manager.send(orders, durable(positive_journaling=True, time_to_be_received=5))
    await turn(manager, clock, 5)
    assert (counts(manager, orders), counts(manager, SYSTEM_JOURNAL)) == ((0, 0), (1, 1))


async def test_a_message_that_has_not_arrived_is_not_in_the_systems_journal(manager: QueueManager) -> None:
    await manager.send(ELSEWHERE, durable(positive_journaling=True))
    assert counts(manager, SYSTEM_JOURNAL) == (0, 0)


async def test_a_message_from_elsewhere_is_journaled_and_dead_lettered_elsewhere(
    manager: QueueManager, orders: str
) -> None:
    message = durable(
        id=MessageId.of(uuid4(), 1),
        source_machine=uuid4(),
        positive_journaling=True,
        negative_journaling=True,
        dead_letter_queue=OTHER,
    )
    await manager.deliver_message(manager._core.queues.get(orders), message, peer="elsewhere")
    await manager.purge_queue(orders)
    assert manager.total_bytes == 0


# Dead letters.


@BOTH_DELIVERIES
@pytest.mark.parametrize(
    ("how", "event", "reason"),
    [
        ("expire", "expired", MessageClass.NACK_RECEIVE_TIMEOUT),
        ("purge", "purged", MessageClass.NACK_QUEUE_PURGED),
        ("delete", "deleted", MessageClass.NACK_QUEUE_DELETED),
    ],
)
async def test_a_message_that_was_not_received_is_a_dead_letter_that_says_why(
    manager: QueueManager,
    clock: ManualClock,
    orders: str,
    make: Make,
    how: str,
    event: str,
    reason: MessageClass,
) -> None:
    sent = await manager.send(orders, make(b"one", negative_journaling=True, time_to_be_received=5))
    if how == "expire":
        await turn(manager, clock, 5)
    elif how == "purge":
        await manager.purge_queue(orders)
    else:
        await manager.delete_queue(orders)
    (dead,) = await contents(manager, DEAD_LETTER)
    assert (dead.id, dead.lookup_id, dead.body) == (only_id(sent), only_place(sent), b"one")
    assert dead.message_class == reason
    assert dead.destination_queue == r"DIRECT=OS:here\private$\orders"
    assert manager.total_bytes == dead.size
    assert await life(manager, only_id(sent)) == [
        ("sent", orders),
        (event, orders),
        ("dead-lettered", DEAD_LETTER),
    ]
    rows = (await history(manager))[1:]
    assert {(row.message_class, row.reason) for row in rows} == {(reason.value, describe_class(reason))}


async def test_a_message_that_does_not_ask_for_it_leaves_no_dead_letter(
    manager: QueueManager, orders: str
) -> None:
    await manager.send(orders, durable())
    await manager.purge_queue(orders)
    assert (counts(manager, DEAD_LETTER), manager.total_bytes) == ((0, 0), 0)


async def test_a_transactional_message_goes_into_the_transactional_dead_letter_queue(
    manager: QueueManager, ledger: str
) -> None:
    async with manager.transaction() as transaction:
        await manager.send(ledger, durable(b"one", negative_journaling=True), transaction=transaction)
    await manager.purge_queue(ledger)
    assert await bodies(manager, TRANSACTIONAL_DEAD_LETTER) == [b"one"]
    assert counts(manager, DEAD_LETTER) == (0, 0)


async def test_a_message_that_could_not_be_sent_is_a_dead_letter(
    manager: QueueManager, clock: ManualClock
) -> None:
    await manager.send(ELSEWHERE, durable(negative_journaling=True, time_to_reach_queue=5))
    await turn(manager, clock, 5)
    assert await classes(manager, DEAD_LETTER) == [MessageClass.NACK_REACH_QUEUE_TIMEOUT]
    assert counts(manager, ELSEWHERE) == (0, 0)


async def test_an_application_can_have_a_dead_letter_queue_of_its_own(
    manager: QueueManager, clock: ManualClock, orders: str, other: str
) -> None:
    await manager.send(
        orders, durable(b"one", negative_journaling=True, dead_letter_queue=other, time_to_be_received=5)
    )
    await turn(manager, clock, 5)
    assert await classes(manager, other) == [MessageClass.NACK_RECEIVE_TIMEOUT]
    assert counts(manager, DEAD_LETTER) == (0, 0)
    await turn(manager, clock, 100)
    assert (await manager.receive(other, timeout=0)).body == b"one"


@pytest.mark.parametrize(
    "missing", [r".\private$\nowhere", r"elsewhere\private$\dead", ORDERS, SYSTEM_JOURNAL, OTHER + ";later"]
)
async def test_where_there_is_no_such_queue_the_systems_one_takes_its_place(
    manager: QueueManager, orders: str, missing: str
) -> None:
    await manager.send(r"elsewhere\private$\dead", express(b"so that there is an outgoing queue"))
    await manager.send(orders, durable(b"one", negative_journaling=True, dead_letter_queue=missing))
    await manager.purge_queue(orders)
    assert await bodies(manager, DEAD_LETTER) == [b"one"]


async def test_a_dead_letter_queue_of_an_application_without_journaling_asked_for_is_ignored(
    manager: QueueManager, orders: str, other: str
) -> None:
    await manager.send(orders, durable(dead_letter_queue=other))
    await manager.purge_queue(orders)
    assert manager.total_bytes == 0


async def test_a_dead_letter_ends_without_another_word(
    manager: QueueManager, orders: str, other: str, admin: str
) -> None:
    message = durable(
        negative_journaling=True,
        dead_letter_queue=other,
        administration_queue=admin,
        acknowledgments=Acknowledgments.FULL_RECEIVE,
    )
    await manager.send_many(orders, [message, message])
    await manager.purge_queue(orders)
    told = await classes(manager, admin)
    assert told == [MessageClass.NACK_QUEUE_PURGED] * 2
    await manager.receive(other, timeout=0)
    await manager.purge_queue(other)
    assert await classes(manager, admin) == told
    assert (counts(manager, other), counts(manager, DEAD_LETTER)) == ((0, 0), (0, 0))


async def test_dead_letters_of_an_application_go_with_their_queue(
    manager: QueueManager, orders: str, other: str
) -> None:
    await manager.send(orders, durable(negative_journaling=True, dead_letter_queue=other))
    await manager.purge_queue(orders)
    await manager.delete_queue(other)
    assert manager.total_bytes == 0


async def test_dead_letters_survive_a_restart_with_their_reason(opened: Opener) -> None:
    async with opened() as manager:
        await manager.create_queue(ORDERS)
        await manager.send(ORDERS, durable(b"one", negative_journaling=True, time_to_be_received=9))
        await manager.purge_queue(ORDERS)
    async with opened() as manager:
        (dead,) = await contents(manager, DEAD_LETTER)
        assert (dead.body, dead.message_class) == (b"one", MessageClass.NACK_QUEUE_PURGED)


# Acknowledgments.

EVERY_WAY = [
    ("arrive", Acknowledgments.POSITIVE_ARRIVAL, MessageClass.ACK_REACH_QUEUE),
    ("receive", Acknowledgments.POSITIVE_RECEIVE, MessageClass.ACK_RECEIVE),
    ("expire", Acknowledgments.NEGATIVE_RECEIVE, MessageClass.NACK_RECEIVE_TIMEOUT),
    ("purge", Acknowledgments.NEGATIVE_RECEIVE, MessageClass.NACK_QUEUE_PURGED),
    ("delete", Acknowledgments.NEGATIVE_RECEIVE, MessageClass.NACK_QUEUE_DELETED),
    ("not sent", Acknowledgments.NEGATIVE_ARRIVAL, MessageClass.NACK_REACH_QUEUE_TIMEOUT),
]


async def end_of(manager: QueueManager, clock: ManualClock, how: str, **attributes: Any) -> Message:
    """Send a message and let it end in some way; give back what it was."""
    name = ELSEWHERE if how == "not sent" else ORDERS
    attributes = {"body": b"body", "label": "label", "body_type": 9, "priority": 5, **attributes}
    make = attributes.pop("make", durable)
    await manager.send(name, make(time_to_be_received=5, time_to_reach_queue=5, **attributes))
    access = QueueAccess.PEEK_ADMIN if how == "not sent" else QueueAccess.PEEK
    with opened_for(manager, name, access) as handle:
        message = await manager.peek_message(handle)
    if how == "receive":
        await manager.receive(name, timeout=0)
    elif how == "purge":
        await manager.purge_queue(name)
    elif how == "delete":
        await manager.delete_queue(name)
    elif how in ("expire", "not sent"):
        await turn(manager, clock, 5)
    return message


@BOTH_DELIVERIES
@pytest.mark.parametrize(("how", "asked", "expected"), EVERY_WAY)
async def test_the_sender_is_told_what_it_asked_for(
    manager: QueueManager,
    clock: ManualClock,
    orders: str,
    admin: str,
    make: Make,
    how: str,
    asked: Acknowledgments,
    expected: MessageClass,
) -> None:
    message = await end_of(manager, clock, how, make=make, administration_queue=admin, acknowledgments=asked)
    (told,) = await contents(manager, admin)
    assert told.message_class == expected
    assert told.correlation_id == message.id
    assert told.id != message.id
    assert told.response_queue == message.destination_queue
    assert told.delivery is message.delivery
    assert (told.label, told.priority) == ("label", 5)
    is_positive = expected.is_positive_acknowledgment
    assert (told.body, told.body_type) == ((b"", 0) if is_positive else (b"body", 9))
    assert (told.time_to_reach_queue, told.time_to_be_received) == (INFINITE, INFINITE)
    assert (told.acknowledgments, told.administration_queue) == (Acknowledgments.NONE, "")
    assert told.source_machine == manager.identifier
    assert told.security is not None
    assert told.security.sender_id_type is SenderIdType.QUEUE_MANAGER
    assert told.security.sender_id == manager.identifier.bytes_le


@pytest.mark.parametrize(("how", "asked", "expected"), EVERY_WAY)
async def test_the_sender_is_told_nothing_that_it_did_not_ask_for(
    manager: QueueManager,
    clock: ManualClock,
    orders: str,
    admin: str,
    how: str,
    asked: Acknowledgments,
    expected: MessageClass,
) -> None:
    everything_else = Acknowledgments(0x0F & ~asked)
    await end_of(manager, clock, how, administration_queue=admin, acknowledgments=everything_else)
    assert expected not in await classes(manager, admin)


async def test_a_sender_may_be_told_of_arrival_and_receive(
    manager: QueueManager, clock: ManualClock, orders: str, admin: str
) -> None:
    both = Acknowledgments.POSITIVE_ARRIVAL | Acknowledgments.POSITIVE_RECEIVE
    await end_of(manager, clock, "receive", administration_queue=admin, acknowledgments=both)
    assert await classes(manager, admin) == [MessageClass.ACK_REACH_QUEUE, MessageClass.ACK_RECEIVE]


async def test_a_sender_elsewhere_is_told_through_an_outgoing_queue(
    manager: QueueManager, clock: ManualClock, orders: str
) -> None:
    await end_of(
        manager,
        clock,
        "receive",
        administration_queue=REMOTE_ADMIN,
        acknowledgments=Acknowledgments.FULL_RECEIVE,
    )
    assert await classes(manager, REMOTE_ADMIN) == [MessageClass.ACK_RECEIVE]
    (told,) = await contents(manager, REMOTE_ADMIN)
    assert told.destination_queue == REMOTE_ADMIN


@pytest.mark.parametrize(("privacy", "sent_back"), [(PrivacyLevel.NONE, b"body"), (PrivacyLevel.BASE, b"")])
async def test_an_encrypted_body_is_not_sent_back(
    manager: QueueManager,
    clock: ManualClock,
    orders: str,
    admin: str,
    privacy: PrivacyLevel,
    sent_back: bytes,
) -> None:
    await end_of(
        manager,
        clock,
        "purge",
        administration_queue=admin,
        acknowledgments=Acknowledgments.NEGATIVE_RECEIVE,
        security=MessageSecurity(privacy_level=privacy),
    )
    assert await bodies(manager, admin) == [sent_back]


async def test_without_an_administration_queue_nobody_is_told(
    manager: QueueManager, clock: ManualClock, orders: str
) -> None:
    await end_of(manager, clock, "receive", acknowledgments=Acknowledgments(0x0F))
    assert manager.total_bytes == 0
    assert [row.event for row in await history(manager)] == ["sent", "received"]


async def test_a_transaction_tells_when_it_is_committed(
    manager: QueueManager, ledger: str, admin: str
) -> None:
    asked = Acknowledgments.POSITIVE_ARRIVAL | Acknowledgments.POSITIVE_RECEIVE
    message = durable(administration_queue=admin, acknowledgments=asked)
    transaction = manager.create_transaction()
    await manager.send(ledger, message, transaction=transaction)
    assert counts(manager, admin) == (0, 0)
    await manager.transaction_commit(transaction)
    assert await classes(manager, admin) == [MessageClass.ACK_REACH_QUEUE]
    for commit in (False, True):
        transaction = manager.create_transaction()
        await manager.receive(ledger, timeout=0, transaction=transaction)
        end = manager.transaction_commit if commit else manager.transaction_abort
        await end(transaction)
        assert len(await classes(manager, admin)) == 1 + commit


@pytest.mark.parametrize(
    "name",
    [
        r".\private$\ledger",
        r".\private$\nowhere",
        ORDERS + ";journal",
        DEAD_LETTER,
        ORDERS + ";later",
        ELSEWHERE + "," + REMOTE_ADMIN,
        "DL=400d837b-f90e-4ab3-b6ce-c68c298e1a8c",
        r".\private$\full",
    ],
)
async def test_an_acknowledgment_that_cannot_be_sent_is_discarded_with_a_warning(
    manager: QueueManager, orders: str, ledger: str, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    await manager.create_queue(r".\private$\full", QueueProperties(quota=0))
    message = durable(b"one", administration_queue=name, acknowledgments=Acknowledgments.FULL_REACH_QUEUE)
    with opened_for(manager, ORDERS + ";later"), caplog.at_level(logging.WARNING):
        await manager.send(orders, message)
    assert "was discarded" in caplog.text
    assert manager.total_bytes == message.size
    assert manager.outgoing_queues() == []
    assert (await manager.receive(orders, timeout=0)).body == b"one"


async def test_an_administrator_who_takes_a_message_out_of_an_outgoing_queue_is_not_its_receiver(
    manager: QueueManager, admin: str
) -> None:
    asked = Acknowledgments.POSITIVE_RECEIVE
    await manager.send(ELSEWHERE, durable(administration_queue=admin, acknowledgments=asked))
    with opened_for(manager, ELSEWHERE, QueueAccess.RECEIVE_ADMIN) as handle:
        await manager.dequeue_message(handle, timeout=0)
    assert counts(manager, admin) == (0, 0)


async def test_an_acknowledgment_is_in_the_history_too(
    manager: QueueManager, clock: ManualClock, orders: str, admin: str
) -> None:
    asked = Acknowledgments.POSITIVE_RECEIVE
    await end_of(manager, clock, "receive", administration_queue=admin, acknowledgments=asked)
    row = (await history(manager))[-1]
    assert (row.event, row.queue, row.message_class) == ("sent", admin, MessageClass.ACK_RECEIVE)


# A full disk.


async def test_on_a_full_disk_nothing_is_kept_and_nobody_told(
    manager: QueueManager, clock: ManualClock, journaled: str, admin: str
) -> None:
    message = durable(
        b"one",
        administration_queue=admin,
        acknowledgments=Acknowledgments(0x0E),
        negative_journaling=True,
        positive_journaling=True,
    )
    await manager.send(journaled, message)
    async with full_disk(manager):
        for work in (manager.receive(journaled, timeout=0), manager.purge_queue(journaled)):
            with pytest.raises(Exception, match="full"):
                await work
        assert await bodies(manager, journaled) == [b"one"]
        for name in (admin, DEAD_LETTER, journaled + ";journal"):
            assert counts(manager, name) == (0, 0)
        assert manager.total_bytes == 2 * message.size
    await manager.receive(journaled, timeout=0)
    assert await classes(manager, admin) == [MessageClass.ACK_RECEIVE]
    assert await bodies(manager, journaled + ";journal") == [b"one"]
    await settle(manager)
