from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Coroutine
from typing import Any
from uuid import UUID

import pytest
from tests.manager.conftest import (
    BOTH_DELIVERIES,
    DEAD_LETTER,
    ELSEWHERE,
    NAME,
    ORDERS,
    OTHER,
    SYSTEM_JOURNAL,
    TRANSACTIONAL_DEAD_LETTER,
    Make,
    Opener,
    bodies,
    committing,
    counts,
    durable,
    express,
    full_disk,
    history,
    let_run,
    life,
    only_id,
    only_place,
    opened_for,
    settle,
    started,
    stuck_writer,
)

from lanner.manager import ManualClock, QueueManager
from lanner.model.errors import (
    InvalidNameError,
    InvalidPropertyError,
    QueueDeletedError,
    QueueExistsError,
    QueueNotFoundError,
    ReceiveTimeoutError,
    StoppedError,
    StoreFullError,
    UnsupportedOperationError,
)
from lanner.model.message import INFINITE
from lanner.model.queue import (
    NULL_GUID,
    OutgoingState,
    QueueAccess,
    QueueKind,
    QueuePrivacy,
    QueueProperties,
)
from lanner.model.security import SecurityDescriptor
from lanner.store import Changes

EVERY_PROPERTY = QueueProperties(
    label="Orders",
    transactional=True,
    journaling=True,
    quota=100,
    journal_quota=50,
    base_priority=-3,
    authentication=True,
    privacy=QueuePrivacy.BODY,
    type_id=UUID(int=7),
    max_aborts=5,
)
WRONG_PROPERTIES: list[dict[str, Any]] = [
    {"label": "x" * 125},
    {"quota": -1},
    {"journal_quota": INFINITE + 1},
    {"base_priority": 0x8000},
    {"max_aborts": -1},
    {"multicast_address": "10.0.0.1:8001"},
    {"multicast_address": "234.1.1.1:8001", "transactional": True},
]
SYSTEM_PATHS = [r".\private$\order_queue$", DEAD_LETTER, TRANSACTIONAL_DEAD_LETTER, SYSTEM_JOURNAL]
DESCRIPTOR = SecurityDescriptor.from_sddl("O:BAD:(A;;0x2;;;WD)")


def paths(manager: QueueManager) -> list[str]:
    return [info.path for info in manager.queues() if info.kind is not QueueKind.SYSTEM]


# The system queues.


def test_every_manager_has_its_system_queues(manager: QueueManager) -> None:
    infos = manager.queues()
    assert [info.path for info in infos] == SYSTEM_PATHS
    assert {info.kind for info in infos} == {QueueKind.SYSTEM}
    assert [info.path for info in infos if info.properties.transactional] == [TRANSACTIONAL_DEAD_LETTER]


@pytest.mark.parametrize("path", SYSTEM_PATHS)
async def test_system_queues_cannot_be_made_or_deleted(manager: QueueManager, path: str) -> None:
    with pytest.raises((InvalidNameError, QueueExistsError)):
        await manager.create_queue(path)
    with pytest.raises(UnsupportedOperationError, match="belongs to the manager"):
        await manager.delete_queue(path)
    assert manager.queue(path).kind is QueueKind.SYSTEM


# Creating.


async def test_a_new_queue_has_the_defaults(manager: QueueManager, clock: ManualClock) -> None:
    info = await manager.create_queue(ORDERS)
    assert info == manager.queue(ORDERS)
    assert info.path == ORDERS
    assert info.kind is QueueKind.PRIVATE
    assert info.identifier != NULL_GUID
    assert info.properties == QueueProperties()
    assert info.created == info.modified == clock.time()
    assert (info.messages, info.bytes, info.available_messages, info.journal_messages) == (0, 0, 0, 0)
    assert (info.open_handles, info.waiting_readers, info.subqueues, info.state) == (0, 0, (), None)
    assert info.security
    assert any("Everyone" in line for line in info.access)


async def test_a_queue_is_made_with_every_property(manager: QueueManager) -> None:
    await manager.create_queue(ORDERS, EVERY_PROPERTY, security=DESCRIPTOR)
    info = manager.queue(ORDERS)
    assert info.properties == EVERY_PROPERTY
    assert info.security == DESCRIPTOR.to_sddl()


async def test_a_path_without_private_makes_a_public_queue(manager: QueueManager) -> None:
    assert (await manager.create_queue(r".\catalogue")).kind is QueueKind.PUBLIC


async def test_queues_are_listed_by_name_without_their_journals(manager: QueueManager) -> None:
    for path in (r".\private$\b", r".\private$\A", r".\c"):
        await manager.create_queue(path)
    assert paths(manager) == [r".\c", r".\private$\A", r".\private$\b"]


@pytest.mark.parametrize(
    "again",
    [ORDERS, r".\PRIVATE$\ORDERS", rf"{NAME}\private$\orders", r"localhost\private$\orders"],
)
async def test_a_name_that_is_taken_is_refused_in_every_spelling(
    manager: QueueManager, orders: str, again: str
) -> None:
    with pytest.raises(QueueExistsError, match="change it, or choose another name"):
        await manager.create_queue(again)
    assert paths(manager) == [orders]


async def test_two_at_once_make_one_queue(manager: QueueManager) -> None:
    results = await asyncio.gather(
        manager.create_queue(ORDERS), manager.create_queue(ORDERS), return_exceptions=True
    )
    assert [type(result).__name__ for result in results] == ["QueueInfo", "QueueExistsError"]


@pytest.mark.parametrize(
    "path",
    [
        ORDERS + ";journal",
        ORDERS + ";later",
        r".\system$;own",
        r"elsewhere\private$\orders",
        r"DIRECT=OS:.\private$\orders",
        "orders",
        "",
        r".\private$\a;b;c",
        r".\private$" + "\\" + "x" * 125,
    ],
)
async def test_a_path_that_no_queue_of_this_machine_can_have_is_refused(
    manager: QueueManager, path: str
) -> None:
    with pytest.raises(InvalidNameError):
        await manager.create_queue(path)
    assert paths(manager) == []


@pytest.mark.parametrize("wrong", WRONG_PROPERTIES, ids=str)
async def test_a_queue_with_a_wrong_property_is_not_made(
    manager: QueueManager, wrong: dict[str, Any]
) -> None:
    with pytest.raises(InvalidPropertyError):
        await manager.create_queue(ORDERS, QueueProperties(**wrong))
    assert paths(manager) == []


async def test_a_queue_can_be_used_before_its_creator_is_told(manager: QueueManager) -> None:
    creating = asyncio.ensure_future(manager.create_queue(ORDERS))
    await asyncio.sleep(0)
    await manager.send(ORDERS, durable(b"early"))
    await creating
    assert await bodies(manager, ORDERS) == [b"early"]


async def test_cancelling_the_creator_makes_the_queue_nevertheless(manager: QueueManager) -> None:
    creating = asyncio.ensure_future(manager.create_queue(ORDERS))
    await asyncio.sleep(0)
    creating.cancel()
    await settle(manager)
    await manager.send(ORDERS, durable(b"one"))
    assert await bodies(manager, ORDERS) == [b"one"]


# Changing.


async def test_every_property_can_be_changed(manager: QueueManager, clock: ManualClock) -> None:
    before = await manager.create_queue(ORDERS, QueueProperties(transactional=True))
    clock.advance(5)
    after = await manager.change_queue(ORDERS, EVERY_PROPERTY)
    assert after == manager.queue(ORDERS)
    assert after.properties == EVERY_PROPERTY
    assert (after.identifier, after.created, after.security) == (
        before.identifier,
        before.created,
        before.security,
    )
    assert after.modified == before.modified + 5


async def test_the_security_alone_can_be_changed(manager: QueueManager) -> None:
    await manager.create_queue(ORDERS, EVERY_PROPERTY)
    info = await manager.change_queue(ORDERS, security=DESCRIPTOR)
    assert (info.properties, info.security) == (EVERY_PROPERTY, DESCRIPTOR.to_sddl())


@pytest.mark.parametrize("transactional", [False, True])
async def test_whether_a_queue_is_transactional_cannot_be_changed(
    manager: QueueManager, transactional: bool
) -> None:
    before = await manager.create_queue(ORDERS, QueueProperties(transactional=transactional))
    with pytest.raises(InvalidPropertyError, match="cannot be changed"):
        await manager.change_queue(ORDERS, QueueProperties(transactional=not transactional, label="x"))
    assert manager.queue(ORDERS) == before


@pytest.mark.parametrize("wrong", WRONG_PROPERTIES[:-1], ids=str)
async def test_a_wrong_property_changes_nothing(
    manager: QueueManager, orders: str, wrong: dict[str, Any]
) -> None:
    before = manager.queue(orders)
    with pytest.raises(InvalidPropertyError):
        await manager.change_queue(orders, QueueProperties(**wrong))
    assert manager.queue(orders) == before


async def test_journals_subqueues_and_outgoing_queues_have_no_properties_of_their_own(
    manager: QueueManager, orders: str, far: str
) -> None:
    with opened_for(manager, orders + ";later"):
        for name in (orders + ";journal", orders + ";later", far):
            with pytest.raises(UnsupportedOperationError, match="no properties of its own"):
                await manager.change_queue(name, QueueProperties(label="x"))


# Deleting.


async def test_a_deleted_queue_is_gone_with_its_journal_and_subqueues(
    manager: QueueManager, other: str
) -> None:
    await manager.create_queue(ORDERS, QueueProperties(journaling=True))
    await manager.send_many(ORDERS, [durable(b"journaled"), durable(b"moved"), express(b"left")])
    await manager.receive(ORDERS, timeout=0)
    with opened_for(manager, ORDERS) as handle:
        moved = await manager.peek_message(handle)
        await manager.move_message(handle, moved.lookup_id, ORDERS + ";later")
    await manager.delete_queue(ORDERS)
    assert paths(manager) == [other]
    for name in (ORDERS, ORDERS + ";journal", ORDERS + ";later"):
        with pytest.raises(QueueNotFoundError):
            manager.queue(name)
    assert manager.total_bytes == 0


async def test_a_deleted_queue_leaves_nothing_in_the_store(opened: Opener) -> None:
    async with opened() as manager:
        await manager.create_queue(ORDERS)
        await manager.send(ORDERS, durable())
        await manager.delete_queue(ORDERS)
    async with opened() as manager:
        assert paths(manager) == []
        assert manager.total_bytes == 0
        await manager.create_queue(ORDERS)
        assert counts(manager, ORDERS) == (0, 0)


async def test_what_happened_to_the_messages_of_a_deleted_queue(manager: QueueManager, orders: str) -> None:
    sent = await manager.send(orders, durable())
    await manager.delete_queue(orders)
    assert await life(manager, only_id(sent)) == [("sent", orders), ("deleted", orders)]


async def test_handles_on_a_deleted_queue_say_so(manager: QueueManager, orders: str) -> None:
    with (
        opened_for(manager, orders) as reader,
        opened_for(manager, orders, QueueAccess.SEND) as sender,
        opened_for(manager, orders + ";later") as subqueue,
    ):
        waiting = await started(manager.dequeue_message(reader))
        await manager.delete_queue(orders)
        with pytest.raises(QueueDeletedError):
            await waiting
        with pytest.raises(QueueDeletedError):
            await manager.enqueue_message(sender, durable())
        for handle in (reader, subqueue):
            with pytest.raises(QueueDeletedError):
                await manager.dequeue_message(handle, timeout=0)


async def test_a_queue_deleted_twice_at_once_is_deleted_once(manager: QueueManager, orders: str) -> None:
    await manager.send(orders, durable())
    results = await asyncio.gather(
        manager.delete_queue(orders), manager.delete_queue(orders), return_exceptions=True
    )
    assert [type(result) for result in results] == [type(None), QueueNotFoundError]


async def test_a_queue_that_is_being_deleted_takes_nothing_in(opened: Opener) -> None:
    async with opened() as manager:
        await manager.create_queue(ORDERS)
        await manager.create_queue(OTHER)
        sent = await manager.send(OTHER, durable(b"here"))
        await manager.send(ORDERS, durable(b"there"))
        queue = manager._core.queues.get(ORDERS)
        deleting = await started(manager.delete_queue(ORDERS))
        with pytest.raises(QueueDeletedError):
            await manager.deliver_message(queue, durable(id=only_id(sent)), peer="10.0.0.2")
        with pytest.raises(QueueNotFoundError):
            await manager.send(ORDERS, durable())
        with pytest.raises(QueueNotFoundError), opened_for(manager, OTHER) as handle:
            await manager.move_message(handle, only_place(sent), ORDERS)
        with pytest.raises(QueueNotFoundError):
            await manager.change_queue(ORDERS, QueueProperties(label="x"))
        with pytest.raises(QueueNotFoundError), opened_for(manager, ORDERS + ";later"):
            pass
        with pytest.raises(QueueExistsError):
            await manager.create_queue(ORDERS)
        await deleting
        assert await bodies(manager, OTHER) == [b"here"]
    async with opened() as manager:
        assert paths(manager) == [OTHER]


async def test_deleting_a_queue_whose_messages_name_it_as_their_dead_letter_queue_ends(
    manager: QueueManager, orders: str
) -> None:
    await manager.send(orders, durable(b"one", negative_journaling=True, dead_letter_queue=orders))
    await manager.delete_queue(orders)
    assert await bodies(manager, DEAD_LETTER) == [b"one"]
    assert paths(manager) == []


async def test_journals_and_subqueues_are_not_deleted_alone(manager: QueueManager, orders: str) -> None:
    with opened_for(manager, orders + ";later"):
        for name in (orders + ";journal", orders + ";later"):
            with pytest.raises(UnsupportedOperationError):
                await manager.delete_queue(name)


async def test_an_outgoing_queue_can_be_deleted(manager: QueueManager) -> None:
    await manager.send(ELSEWHERE, durable(negative_journaling=True))
    await manager.delete_queue(ELSEWHERE)
    assert manager.outgoing_queues() == []
    assert counts(manager, DEAD_LETTER) == (1, 1)


# Purging.


@BOTH_DELIVERIES
async def test_purging_drops_everything_and_says_how_much(
    manager: QueueManager, orders: str, make: Make
) -> None:
    sent = [await manager.send(orders, make(b"%d" % number)) for number in range(3)]
    assert await manager.purge_queue(orders) == 3
    assert counts(manager, orders) == (0, 0)
    assert manager.total_bytes == 0
    assert await life(manager, only_id(sent[1])) == [("sent", orders), ("purged", orders)]
    assert await manager.purge_queue(orders) == 0


async def test_purging_drops_more_than_fits_into_one_set_of_changes(
    manager: QueueManager, orders: str
) -> None:
    await manager.send_many(orders, [durable()] * 1201)
    assert await manager.purge_queue(orders) == 1201
    assert manager.total_bytes == 0


async def test_purging_leaves_the_journal_and_the_subqueues(manager: QueueManager) -> None:
    await manager.create_queue(ORDERS, QueueProperties(journaling=True))
    await manager.send_many(ORDERS, [durable(b"journaled"), durable(b"moved"), durable(b"purged")])
    await manager.receive(ORDERS, timeout=0)
    with opened_for(manager, ORDERS) as handle:
        moved = await manager.peek_message(handle)
        await manager.move_message(handle, moved.lookup_id, ORDERS + ";later")
    assert await manager.purge_queue(ORDERS) == 1
    assert await bodies(manager, ORDERS + ";journal") == [b"journaled"]
    assert await bodies(manager, ORDERS + ";later") == [b"moved"]
    assert await manager.purge_queue(ORDERS + ";journal") == 1
    assert await manager.purge_queue(ORDERS + ";later") == 1
    assert manager.queue(ORDERS).subqueues == ()
    assert manager.total_bytes == 0


async def test_what_comes_while_a_queue_is_purged_stays(manager: QueueManager, orders: str) -> None:
    await manager.send_many(orders, [durable(b"old")] * 600)
    purging = await started(manager.purge_queue(orders))
    await manager.send(orders, durable(b"new"))
    assert await purging == 600
    assert await bodies(manager, orders) == [b"new"]


async def test_what_is_being_purged_is_not_received(manager: QueueManager, orders: str) -> None:
    sent = await manager.send(orders, durable(b"one"))
    with stuck_writer(manager):
        purging = await started(manager.purge_queue(orders))
        await committing(manager)
        with pytest.raises(ReceiveTimeoutError):
            await manager.receive(orders, timeout=0)
    assert await purging == 1
    assert await life(manager, only_id(sent)) == [("sent", orders), ("purged", orders)]


async def test_purging_an_applications_dead_letter_queue_empties_it(
    manager: QueueManager, orders: str, other: str
) -> None:
    await manager.send(orders, durable(negative_journaling=True, dead_letter_queue=other))
    await manager.purge_queue(orders)
    assert counts(manager, other) == (1, 1)
    await manager.purge_queue(other)
    assert counts(manager, other) == (0, 0)
    assert counts(manager, DEAD_LETTER) == (0, 0)


async def test_a_cancelled_purge_locks_nothing_away(opened: Opener) -> None:
    async with opened(cache_bytes=0) as manager:
        await manager.create_queue(ORDERS)
        await manager.send_many(ORDERS, [durable(b"one"), durable(b"two")])
        for turns in range(4):
            purging = asyncio.ensure_future(manager.purge_queue(ORDERS))
            await let_run(turns)
            purging.cancel()
            await asyncio.wait([purging])
            await settle(manager)
            messages, available = counts(manager, ORDERS)
            assert messages == available


# Pausing.


async def test_an_outgoing_queue_is_paused_and_resumed(manager: QueueManager, far: str) -> None:
    await manager.pause_queue(far)
    assert manager.queue(far).state is OutgoingState.ON_HOLD
    assert "paused" in manager.queue(far).explanation
    await manager.send(far, durable(b"one"))
    await manager.resume_queue(far)
    assert manager.queue(far).state is OutgoingState.INACTIVE
    assert await bodies(manager, far) == [b"one"]


async def test_a_pause_survives_a_restart_and_so_does_its_end(opened: Opener) -> None:
    async with opened() as manager:
        await manager.send(ELSEWHERE, durable(b"one"))
        await manager.pause_queue(ELSEWHERE)
    async with opened() as manager:
        assert manager.queue(ELSEWHERE).state is OutgoingState.ON_HOLD
        await manager.resume_queue(ELSEWHERE)
    async with opened() as manager:
        assert manager.queue(ELSEWHERE).state is OutgoingState.INACTIVE
        assert await bodies(manager, ELSEWHERE) == [b"one"]


async def test_only_outgoing_queues_are_paused(manager: QueueManager, orders: str) -> None:
    for name in (orders, orders + ";journal", DEAD_LETTER):
        with pytest.raises(UnsupportedOperationError, match="only outgoing queues"):
            await manager.pause_queue(name)
        with pytest.raises(UnsupportedOperationError, match="only outgoing queues"):
            await manager.resume_queue(name)


async def test_an_outgoing_queue_says_truthfully_that_nothing_serves_it(manager: QueueManager) -> None:
    await manager.send(ELSEWHERE, durable(b"one"))
    (info,) = manager.outgoing_queues()
    assert (info.kind, info.path, info.state) == (QueueKind.OUTGOING, ELSEWHERE, OutgoingState.INACTIVE)
    assert "no protocol" in info.explanation
    assert info not in manager.queues()
    outgoing = manager._core.queues.outgoing()[0]
    outgoing.served_by, outgoing.state = "a test", OutgoingState.CONNECTED
    assert manager.queue(ELSEWHERE).explanation == "connected, served by a test"


# A full disk.


async def test_on_a_full_disk_no_queue_is_made(manager: QueueManager) -> None:
    async with full_disk(manager):
        with pytest.raises(StoreFullError):
            await manager.create_queue(ORDERS, QueueProperties(label="x" * 100))
        with pytest.raises(QueueNotFoundError):
            manager.queue(ORDERS)
    await manager.create_queue(ORDERS)
    assert paths(manager) == [ORDERS]


async def test_on_a_full_disk_no_queue_is_changed(manager: QueueManager, orders: str) -> None:
    before = manager.queue(orders)
    changed = QueueProperties(label="x" * 100)
    async with full_disk(manager):
        with pytest.raises(StoreFullError):
            await manager.change_queue(orders, changed, security=DESCRIPTOR)
        assert manager.queue(orders) == before
    assert (await manager.change_queue(orders, changed)).properties == changed


async def test_on_a_full_disk_no_queue_is_paused(manager: QueueManager, far: str) -> None:
    async with full_disk(manager):
        with pytest.raises(StoreFullError):
            await manager.pause_queue(far)
        assert manager.queue(far).state is OutgoingState.INACTIVE
        assert not manager._core.queues.get(far).record.on_hold
    await manager.pause_queue(far)
    assert manager.queue(far).state is OutgoingState.ON_HOLD


async def test_on_a_full_disk_nothing_is_purged_or_deleted(manager: QueueManager, orders: str) -> None:
    await manager.send_many(orders, [durable(b"one"), express(b"two")])
    async with full_disk(manager):
        with pytest.raises(StoreFullError):
            await manager.purge_queue(orders)
        with pytest.raises(StoreFullError):
            await manager.delete_queue(orders)
        assert await bodies(manager, orders) == [b"one", b"two"]
        assert paths(manager) == [orders]
    await manager.send(orders, durable(b"three"))
    assert await manager.purge_queue(orders) == 3
    await manager.delete_queue(orders)
    assert paths(manager) == []


async def test_a_queue_whose_deletion_is_not_stored_is_still_there(
    manager: QueueManager, orders: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = manager.store._writer
    write = writer._write

    def refuse(group: list[Changes]) -> None:
        if any(changes.queue_deletes for changes in group):
            error = sqlite3.OperationalError("full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error
        write(group)

    with monkeypatch.context() as patched:
        patched.setattr(writer, "_write", refuse)
        with pytest.raises(StoreFullError):
            await manager.delete_queue(orders)
    await manager.send(orders, durable(b"one"))
    assert (await manager.receive(orders, timeout=0)).body == b"one"
    await manager.delete_queue(orders)
    assert paths(manager) == []


# After the end.


async def test_a_stopped_manager_refuses_everything(manager: QueueManager, orders: str, far: str) -> None:
    place = only_place(await manager.send(orders, durable(b"one")))
    reader = manager.open_queue(orders, QueueAccess.RECEIVE)
    sender = manager.open_queue(orders, QueueAccess.SEND)
    cursor = manager.open_cursor(reader)
    message = await manager.dequeue_message_begin(reader)
    queue = manager._core.queues.get(orders)
    transaction = manager.create_transaction()
    await manager.close()
    works: list[Coroutine[Any, Any, object]] = [
        manager.create_queue(OTHER),
        manager.change_queue(orders, QueueProperties()),
        manager.delete_queue(orders),
        manager.purge_queue(orders),
        manager.pause_queue(far),
        manager.resume_queue(far),
        manager.send(orders, durable()),
        manager.send_many(orders, [durable()]),
        manager.enqueue_message(sender, durable()),
        manager.deliver_message(queue, message, peer="elsewhere"),
        manager.receive(orders, timeout=0),
        manager.peek(orders, timeout=0),
        manager.dequeue_message(reader, timeout=0),
        manager.dequeue_messages(reader, 1, timeout=0),
        manager.dequeue_message_begin(reader, timeout=0),
        manager.dequeue_message_end(reader, message, delete=True),
        manager.read_message_by_lookup_identifier(reader, place),
        manager.peek_message(reader, timeout=0),
        manager.peek_next_message(reader, cursor, timeout=0),
        manager.browse_messages(reader, 1),
        manager.move_message(reader, place, orders + ";later"),
        manager.transaction_commit(transaction),
        manager.transaction_abort(transaction),
    ]
    for work in works:
        with pytest.raises(StoppedError):
            await work
    with pytest.raises(StoppedError):
        manager.open_queue(orders, QueueAccess.PEEK)
    with pytest.raises(StoppedError):
        manager.create_transaction()
    manager.close_cursor(cursor)
    for handle in (reader, sender):
        manager.close_queue(handle)


async def test_changing_a_queue_is_not_in_the_history_of_messages(manager: QueueManager, orders: str) -> None:
    await manager.change_queue(orders, QueueProperties(label="x"))
    assert await history(manager) == []
