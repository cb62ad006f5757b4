from __future__ import annotations

from unittest import mock
from uuid import UUID, uuid4

import pytest
from tests.manager.conftest import DEAD_LETTER, ELSEWHERE, ORDERS, SYSTEM_JOURNAL, durable, opened_for

from lanner.manager import QueueManager
from lanner.model.errors import InvalidNameError, QueueNotFoundError, UnsupportedOperationError
from lanner.model.format_name import PublicName
from lanner.model.queue import QueueAccess

PUBLIC = r".\catalogue"

LOCAL_SPELLINGS = [
    r".\private$\orders",
    r".\PRIVATE$\Orders",
    r"here\private$\orders",
    r"HERE\private$\orders",
    r"localhost\private$\orders",
    r"here.example.com\private$\orders",
    r"DIRECT=OS:.\private$\orders",
    r"DIRECT=OS:here\private$\orders",
    r"direct=os:HERE\PRIVATE$\ORDERS",
    r"DIRECT=OS:here.example.com\private$\orders",
    r"DIRECT=TCP:10.0.0.1\private$\orders",
    r"DIRECT=TCP:fe80::1\private$\orders",
    "DIRECT=HTTP://here/msmq/private$/orders",
    "DIRECT=HTTPS://Here.Example.COM/msmq/private$/orders",
    "DIRECT=HTTP://localhost:8080/msmq/private$/orders",
    r"FormatName:DIRECT=OS:here\private$\orders",
]


@pytest.fixture(autouse=True)
async def queues(manager: QueueManager) -> None:
    await manager.create_queue(ORDERS)
    await manager.create_queue(PUBLIC)


@pytest.mark.parametrize("name", LOCAL_SPELLINGS)
async def test_every_spelling_of_a_local_name_means_the_same_queue(manager: QueueManager, name: str) -> None:
    assert manager.queue(name).path == ORDERS
    await manager.send(name, durable(b"one"))
    assert (await manager.receive(ORDERS, timeout=0)).body == b"one"
    assert manager.outgoing_queues() == []


def test_a_public_queue_is_found_by_its_identifier(manager: QueueManager) -> None:
    identifier = manager.queue(PUBLIC).identifier
    assert manager.queue(f"PUBLIC={identifier}").path == PUBLIC
    assert manager.queue(f"PUBLIC={str(identifier).upper()}").path == PUBLIC
    assert manager.queue(f"PUBLIC={identifier};JOURNAL").path == PUBLIC + ";journal"


def test_a_private_queue_is_not_found_by_a_public_name(manager: QueueManager) -> None:
    with pytest.raises(QueueNotFoundError):
        manager.queue(f"PUBLIC={manager.queue(ORDERS).identifier}")


async def test_a_private_queue_is_found_by_the_machine_and_its_number(manager: QueueManager) -> None:
    numbers = {}
    for info in manager.queues():
        number = manager._core.queues.get(info.path).record.number
        if number:
            numbers[number] = info.path
            assert manager.queue(f"PRIVATE={manager.identifier}\\{number:x}").path == info.path
    assert ORDERS in numbers.values()
    with pytest.raises(QueueNotFoundError):
        manager.queue(f"PRIVATE={manager.identifier}\\{max(numbers) + 1:x}")
    with pytest.raises(QueueNotFoundError):
        manager.queue(f"PRIVATE={uuid4()}\\{min(numbers):x}")


def test_the_machines_own_queues_are_found_by_its_identifier(manager: QueueManager) -> None:
    machine = f"MACHINE={manager.identifier}"
    assert manager.queue(f"{machine};JOURNAL").path == SYSTEM_JOURNAL
    assert manager.queue(f"{machine};DEADLETTER").path == DEAD_LETTER
    assert manager.queue(f"{machine};DEADXACT").path == r".\system$;deadxact"
    assert manager.queue(r"DIRECT=OS:here\SYSTEM$;DEADLETTER").path == DEAD_LETTER
    assert manager.queue("here\\system$;journal").path == SYSTEM_JOURNAL
    with pytest.raises(QueueNotFoundError):
        manager.queue(machine)
    with pytest.raises(QueueNotFoundError):
        manager.queue(f"MACHINE={uuid4()};JOURNAL")


@pytest.mark.parametrize("top", [ORDERS, r"DIRECT=OS:here\private$\orders", "PRIVATE", "PUBLIC"])
async def test_journals_and_subqueues_are_found_by_every_kind_of_name(
    manager: QueueManager, top: str
) -> None:
    path = PUBLIC if top == "PUBLIC" else ORDERS
    if top == "PRIVATE":
        top = f"PRIVATE={manager.identifier}\\{manager._core.queues.get(ORDERS).record.number:x}"
    elif top == "PUBLIC":
        top = f"PUBLIC={manager.queue(PUBLIC).identifier}"
    assert manager.queue(f"{top};journal").path == path + ";journal"
    with pytest.raises(QueueNotFoundError):
        manager.queue(f"{top};later")
    with opened_for(manager, f"{top};Later"):
        assert manager.queue(f"{top};later").path == path + ";Later"
        assert manager.queue(path).subqueues == ("Later",)


# What is not there.


@pytest.mark.parametrize(
    "name",
    [
        r".\private$\order",
        r"here\private$\ordrs",
        r"DIRECT=OS:here\private$\oders",
        "DIRECT=HTTP://here/msmq/private$/orderz",
    ],
)
async def test_a_name_that_is_not_there_is_answered_with_the_nearest_right_one(
    manager: QueueManager, name: str
) -> None:
    with pytest.raises(QueueNotFoundError) as caught:
        await manager.send(name, durable())
    assert caught.value.hint == rf"did you mean {ORDERS}?"
    assert manager.outgoing_queues() == []


def test_where_nothing_is_near_nothing_is_suggested(manager: QueueManager) -> None:
    with pytest.raises(QueueNotFoundError) as caught:
        manager.queue(r".\xyzzy")
    assert "did you mean" not in str(caught.value)
    assert "create" in caught.value.hint


def test_a_name_that_is_none_is_answered_with_one_that_is(manager: QueueManager) -> None:
    with pytest.raises(InvalidNameError) as caught:
        manager.queue("private/orders")
    assert caught.value.suggestion == ORDERS


# What is elsewhere.


@pytest.mark.parametrize(
    "name",
    [
        r"elsewhere\private$\orders",
        r"DIRECT=OS:elsewhere\private$\orders",
        r"DIRECT=TCP:10.0.0.2\private$\orders",
        "DIRECT=HTTP://elsewhere/msmq/private$/orders",
        "MULTICAST=234.1.1.1:8001",
        f"PRIVATE={UUID(int=5)}\\1",
    ],
)
async def test_a_name_elsewhere_makes_an_outgoing_queue(manager: QueueManager, name: str) -> None:
    await manager.send(name, durable(b"one"))
    await manager.send(name.upper(), durable(b"two"))
    (outgoing,) = manager.outgoing_queues()
    assert outgoing.messages == 2
    assert manager.queue(name) == outgoing


@pytest.mark.parametrize(
    "name",
    [
        r"elsewhere\private$\orders;journal",
        r"elsewhere\private$\orders;later",
        r"DIRECT=OS:elsewhere\SYSTEM$;DEADLETTER",
        f"MACHINE={UUID(int=5)};JOURNAL",
        f"PUBLIC={UUID(int=5)}",
        f"DL={UUID(int=5)}",
        rf"{ELSEWHERE},DL={UUID(int=5)}",
    ],
)
async def test_what_cannot_be_sent_to_elsewhere_is_refused(manager: QueueManager, name: str) -> None:
    with pytest.raises(UnsupportedOperationError):
        await manager.send(name, durable())
    assert manager.outgoing_queues() == []


async def test_there_is_no_connector(manager: QueueManager) -> None:
    with pytest.raises(QueueNotFoundError, match="no connector"):
        await manager.send(f"CONNECTOR={UUID(int=5)}", durable())


# Get Queue Path.


@pytest.mark.parametrize(
    ("name", "path", "machine"),
    [
        (ORDERS, r"here\private$\orders", "here"),
        (r"here\catalogue", r"here\catalogue", "here"),
        (r"DIRECT=OS:Elsewhere\private$\far", r"Elsewhere\private$\far", "Elsewhere"),
        (r"DIRECT=TCP:10.0.0.2\far;later", r"10.0.0.2\far;later", "10.0.0.2"),
        (r"DIRECT=OS:elsewhere\private$\far;JOURNAL", r"elsewhere\private$\far;journal", "elsewhere"),
        (r"DIRECT=OS:elsewhere\SYSTEM$;DEADLETTER", r"elsewhere\system$;deadletter", "elsewhere"),
        ("DIRECT=HTTP://elsewhere:8080/msmq/private$/far", r"elsewhere\private$\far", "elsewhere"),
        (r"elsewhere\private$\far", r"elsewhere\private$\far", "elsewhere"),
    ],
)
def test_the_path_of_a_name(manager: QueueManager, name: str, path: str, machine: str) -> None:
    assert manager.get_queue_path(name) == (path, machine)


def test_the_path_of_names_without_one(manager: QueueManager) -> None:
    table = manager._core.queues
    private = f"PRIVATE={manager.identifier}\\{table.get(ORDERS).record.number:x}"
    assert manager.get_queue_path(private) == (r"here\private$\orders", "here")
    public = f"PUBLIC={manager.queue(PUBLIC).identifier}"
    assert manager.get_queue_path(public) == (r"here\catalogue", "here")
    journal = f"MACHINE={manager.identifier};JOURNAL"
    assert manager.get_queue_path(journal) == (r"here\system$;journal", "here")


@pytest.mark.parametrize("name", [f"PUBLIC={UUID(int=5)}", f"PRIVATE={UUID(int=5)}\\1"])
def test_the_path_of_a_name_that_only_a_directory_knows(manager: QueueManager, name: str) -> None:
    with pytest.raises(InvalidNameError, match="no directory"):
        manager.get_queue_path(name)


def test_the_path_of_a_local_queue_that_is_not_there(manager: QueueManager) -> None:
    with pytest.raises(QueueNotFoundError):
        manager.get_queue_path(r".\private$\nothing")


# The format name of a queue.


async def test_a_queue_shows_the_format_name_that_others_reach_it_by(manager: QueueManager) -> None:
    assert manager.queue(ORDERS).format_name == r"DIRECT=OS:here\private$\orders"
    assert manager.queue(ORDERS + ";journal").format_name == r"DIRECT=OS:here\private$\orders;JOURNAL"
    assert manager.queue(PUBLIC).format_name == r"DIRECT=OS:here\catalogue"
    assert manager.queue(DEAD_LETTER).format_name == r"DIRECT=OS:here\SYSTEM$;DEADLETTER"
    await manager.send(ELSEWHERE, durable())
    assert manager.queue(ELSEWHERE).format_name == ELSEWHERE


def test_the_names_of_the_manager(manager: QueueManager) -> None:
    assert manager.name == "here"
    with opened_for(manager, ORDERS, QueueAccess.PEEK) as handle:
        assert "orders" in repr(handle)


async def test_messages_to_a_public_queue_elsewhere_share_one_outgoing_queue(manager: QueueManager) -> None:
    name = PublicName(UUID(int=77))
    with mock.patch.object(manager._core, "resolve_public", return_value=("gate",)):
        first = manager._core.target(name)
        assert manager._core.target(name) is first
    assert manager.transfers.find(name) is first


def test_the_path_of_an_outgoing_queue_that_only_a_directory_knows(manager: QueueManager) -> None:
    name = f"PRIVATE={UUID(int=5)}\\1"
    with opened_for(manager, name, QueueAccess.SEND), pytest.raises(InvalidNameError):
        manager.get_queue_path(name)
