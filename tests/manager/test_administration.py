"""System queues; creating and changing queues; a manager that has stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any
from uuid import UUID

import pytest
from tests.manager.conftest import (
    DEAD_LETTER,
    DESCRIPTOR,
    NAME,
    ORDERS,
    OTHER,
    SYSTEM_JOURNAL,
    TRANSACTIONAL_DEAD_LETTER,
    bodies,
    durable,
    history,
    only_place,
    opened_for,
    paths,
    settle,
)

from lanner.manager import ManualClock, QueueManager
from lanner.model.errors import (
    InvalidNameError,
    InvalidPropertyError,
    QueueExistsError,
    StoppedError,
    UnsupportedOperationError,
)
from lanner.model.message import INFINITE
from lanner.model.queue import (
    NULL_GUID,
    QueueAccess,
    QueueKind,
    QueuePrivacy,
    QueueProperties,
)

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
