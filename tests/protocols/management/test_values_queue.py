"""The 27 properties of a queue, from a live manager (MS-MQMR 3.1.4.1, MS-MQMQ 2.3.12)."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from tests.protocols.management.conftest import FAR, ORDERS, ORDERS_NAME, Desk, Opener, queue_object

from lanner.directory.local import LocalDirectory
from lanner.manager import ManualClock, QueueManager
from lanner.model.message import Message
from lanner.model.queue import OutgoingState, QueueAccess, QueueProperties
from lanner.model.transfer import Connection, ConnectionStatus, IncomingTransfer, Sequence
from lanner.protocols.management.properties import QUEUE_PROPERTIES, Applies
from lanner.protocols.management.values import CONNECTION_CODES, STATES
from lanner.protocols.management.variant import NULL, VECTOR, Variant, VariantType

TEXT, NUMBER, TIME = VariantType.LPWSTR, VariantType.UI4, VariantType.I4
TEXTS, VARIANTS = VECTOR | TEXT, VECTOR | VariantType.VARIANT
GUID = UUID("e6eaba61-d1c6-11db-baac-0003ff4e2d22")


@pytest.fixture
async def orders(manager: QueueManager) -> str:
    await manager.create_queue(ORDERS, QueueProperties(journaling=True))
    return ORDERS_NAME


def text(value: str) -> Variant:
    return Variant(TEXT, value)


# Names and kinds.


async def test_names_of_a_local_queue(desk: Desk, orders: str) -> None:
    assert await desk.queue(orders, "path-name") == text(r"here\private$\orders")
    assert await desk.queue(orders, "format-name") == text(ORDERS_NAME)


async def test_names_of_an_outgoing_queue(desk: Desk) -> None:
    desk.outgoing()
    assert await desk.queue(FAR, "path-name") == text(r"there\private$\orders")
    assert await desk.queue(FAR, "format-name") == text(FAR)


async def test_a_destination_without_a_path_name_has_none(desk: Desk) -> None:
    name = f"PRIVATE={GUID}\\1"
    desk.outgoing(name)
    assert await desk.queue(name, "path-name") == NULL


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (FAR, "PRIVATE"),
        (r"DIRECT=OS:there\orders", "PUBLIC"),
        (f"PUBLIC={GUID}", "PUBLIC"),
        (f"PRIVATE={GUID}\\1", "PRIVATE"),
        (f"CONNECTOR={GUID}", "CONNECTOR"),
        ("MULTICAST=234.1.1.1:8001", "MULTICAST"),
    ],
)
async def test_types_and_location_of_outgoing_queues(desk: Desk, name: str, expected: str) -> None:
    desk.outgoing(name)
    assert await desk.queue(name, "type") == text(expected)
    assert await desk.queue(name, "location") == text("REMOTE")


async def test_types_and_location_of_local_queues(desk: Desk, orders: str, manager: QueueManager) -> None:
    await manager.create_queue(r".\public")
    await manager.send(rf"{ORDERS}", Message(body=b"x"))
    machine = f"MACHINE={manager.identifier};DEADLETTER"
    for name, expected in (
        (orders, "PRIVATE"),
        (f"{orders};JOURNAL", "PRIVATE"),
        (r"DIRECT=OS:here\public", "PUBLIC"),
        (machine, "MACHINE"),
        (r"DIRECT=OS:here\SYSTEM$;DEADXACT", "MACHINE"),
    ):
        assert await desk.queue(name, "type") == text(expected)
        assert await desk.queue(name, "location") == text("LOCAL")


async def test_every_name_of_a_queue_leads_to_it(desk: Desk, orders: str, manager: QueueManager) -> None:
    public = await manager.create_queue(r".\public")
    for name, path in (
        (r"DIRECT=OS:localhost\private$\orders", r"here\private$\orders"),
        (f"PRIVATE={manager.identifier}\\2", r"here\private$\orders"),
        (f"PRIVATE={manager.identifier}\\2;JOURNAL", r"here\private$\orders;journal"),
        (f"PUBLIC={public.identifier}", r"here\public"),
        (f"PUBLIC={public.identifier};JOURNAL", r"here\public;journal"),
        (f"MACHINE={manager.identifier};JOURNAL", r"here\system$;journal"),
        (f"MACHINE={manager.identifier};DEADXACT", r"here\system$;deadxact"),
    ):
        assert await desk.queue(name, "path-name") == text(path)


async def test_transactional_or_not(desk: Desk, orders: str, manager: QueueManager) -> None:
    await manager.create_queue(r".\private$\ledger", QueueProperties(transactional=True))
    assert await desk.queue(orders, "transactional") == text("NO")
    assert await desk.queue(r"DIRECT=OS:here\private$\ledger", "transactional") == text("YES")
    assert await desk.queue(r"DIRECT=OS:here\SYSTEM$;DEADXACT", "transactional") == text("YES")
    assert await desk.queue(r"DIRECT=OS:here\SYSTEM$;DEADLETTER", "transactional") == text("NO")
    desk.outgoing()
    assert await desk.queue(FAR, "transactional") == text("UNKNOWN")
    async with manager.transaction() as transaction:
        await manager.send(FAR, Message(), transaction=transaction)
    assert await desk.queue(FAR, "transactional") == text("YES")


# The directory.

ENTERPRISE = rf"""
[enterprise]
name = "Contoso"
[[site]]
name = "London"
[[manager]]
name = "here"
sites = ["London"]
[[manager]]
name = "host"
id = "{GUID}"
sites = ["London"]
foreign = true
[[queue]]
id = "11111111-d1c6-11db-baac-0003ff4e2d22"
path = 'host\orders'
transactional = true
"""


async def test_what_the_directory_knows(opened: Opener, tmp_path: Path, clock: ManualClock) -> None:
    file = tmp_path / "contoso.toml"
    file.write_text(ENTERPRISE)
    async with opened(enterprise=LocalDirectory(file)) as manager:
        desk = Desk(manager)
        await manager.create_queue(ORDERS)
        await manager.create_queue(r".\system")
        public = "PUBLIC=11111111-d1c6-11db-baac-0003ff4e2d22"
        private = f"PRIVATE={GUID}\\1"
        for name in (public, private, FAR):
            desk.outgoing(name)
        assert await desk.queue(public, "transactional") == text("YES")
        assert await desk.queue(public, "path-name") == text(r"host\orders")
        for name in (public, private):
            assert await desk.queue(name, "foreign") == text("YES")
        for name in (ORDERS_NAME, FAR):
            assert await desk.queue(name, "foreign") == text("NO")
        file.unlink()
        await manager.enterprise.refresh()
        assert await desk.queue(ORDERS_NAME, "foreign") == text("NO"), "a private one is known all the same"
        assert await desk.queue(r"DIRECT=OS:here\system", "foreign") == text("UNKNOWN")


# What is in it.


async def test_counts_and_bytes(desk: Desk, orders: str, manager: QueueManager) -> None:
    for _ in range(3):
        await manager.send(ORDERS, Message(body=b"x" * 100))
    await manager.receive(ORDERS)
    info = manager.queue(ORDERS)
    assert await desk.queue(orders, "message-count") == Variant(NUMBER, 2)
    assert await desk.queue(orders, "bytes") == Variant(NUMBER, info.bytes)
    assert await desk.queue(orders, "journal-message-count") == Variant(NUMBER, 1)
    assert await desk.queue(orders, "journal-bytes") == Variant(NUMBER, info.journal_bytes)
    assert info.bytes >= 200
    assert info.journal_bytes >= 100


async def test_without_a_journal_its_counts_are_zero(desk: Desk) -> None:
    desk.outgoing()
    for name in (FAR, r"DIRECT=OS:here\SYSTEM$;JOURNAL"):
        assert await desk.queue(name, "journal-message-count") == Variant(NUMBER, 0)
        assert await desk.queue(name, "journal-bytes") == Variant(NUMBER, 0)


async def test_a_number_too_great_is_the_greatest(desk: Desk, orders: str) -> None:
    queue = desk.manager.transfers.find(ORDERS)
    assert queue is not None
    queue.messages.bytes = 2**40
    assert await desk.queue(orders, "bytes") == Variant(NUMBER, 0xFFFFFFFF)
    queue.messages.bytes = 0


async def test_subqueues(desk: Desk, orders: str, manager: QueueManager) -> None:
    assert await desk.queue(orders, "subqueue-count") == Variant(NUMBER, 0)
    assert await desk.queue(orders, "subqueues") == Variant(TEXTS, [])
    for name in ("poison", "later"):
        [lookup] = (await manager.send(ORDERS, Message())).lookup_ids
        handle = manager.open_queue(ORDERS, QueueAccess.RECEIVE)
        await manager.move_message(handle, lookup, f"{ORDERS};{name}")
        manager.close_queue(handle)
    assert await desk.queue(orders, "subqueue-count") == Variant(NUMBER, 2)
    assert await desk.queue(orders, "subqueues") == Variant(TEXTS, ["poison", "later"])
    assert await desk.queue(f"{orders};later", "message-count") == Variant(NUMBER, 1)
    assert await desk.queue(f"{orders};later", "subqueue-count") == Variant(NUMBER, 0)


# How it stands.


async def test_the_state_of_a_local_queue(desk: Desk, orders: str) -> None:
    assert await desk.queue(orders, "state") == text("LOCAL CONNECTION")


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (OutgoingState.CONNECTED, "CONNECTED"),
        (OutgoingState.DISCONNECTED, "DISCONNECTED"),
        (OutgoingState.DISCONNECTING, "DISCONNECTING"),
        (OutgoingState.INACTIVE, "INACTIVE"),
        (OutgoingState.LOCKED, "LOCKED"),
        (OutgoingState.NEED_VALIDATION, "NEED VALIDATION"),
        (OutgoingState.WAITING, "WAITING"),
        (OutgoingState.ON_HOLD, "ONHOLD"),
    ],
)
async def test_the_states_of_an_outgoing_queue(desk: Desk, state: OutgoingState, expected: str) -> None:
    desk.outgoing().state = state
    assert await desk.queue(FAR, "state") == text(expected)
    assert set(STATES) == set(OutgoingState)


@pytest.mark.parametrize("state", OutgoingState)
async def test_next_hops_are_told_while_connected_or_connecting(desk: Desk, state: OutgoingState) -> None:
    queue = desk.outgoing()
    queue.state, queue.next_hops = state, ("http://10.0.0.7", "http://[fe80::1]:8080", "http://there")
    found = await desk.queue(FAR, "next-hops")
    if state in (OutgoingState.CONNECTED, OutgoingState.WAITING):
        assert found == Variant(TEXTS, ["IP=10.0.0.7", "IPv6=fe80::1", "http://there"])
    else:
        assert found == NULL


async def test_while_connected_the_next_hop_is_the_other_side(desk: Desk) -> None:
    queue = desk.outgoing()
    queue.state, queue.next_hops, queue.peer = OutgoingState.CONNECTED, ("http://there",), "10.1.2.3"
    assert await desk.queue(FAR, "next-hops") == Variant(TEXTS, ["IP=10.1.2.3"])


async def test_a_multicast_queue_is_its_own_next_hop(desk: Desk) -> None:
    name = "MULTICAST=234.1.1.1:8001"
    desk.outgoing(name).state = OutgoingState.CONNECTED
    assert await desk.queue(name, "next-hops") == Variant(TEXTS, [name])


# Its stream.


async def test_the_places_in_the_stream(desk: Desk) -> None:
    transfer = desk.outgoing().transfer
    transfer.last_acknowledged = Sequence(0x5_0000_0001, 2, 1)
    transfer.first_unacknowledged = Sequence(0x5_0000_0001, 3, 2)
    transfer.last_unacknowledged = Sequence(0x5_0000_0001, 7, 6)
    transfer.next_sequence = Sequence(0x5_0000_0001, 8, 7)
    transfer.unacknowledged = 5
    for name, place in (
        ("last-acknowledged", (2, 1)),
        ("first-unacknowledged", (3, 2)),
        ("last-unacknowledged", (7, 6)),
        ("next-sequence", (8, 7)),
    ):
        expected = struct.pack("<qII", 0x5_0000_0001, *place)
        assert await desk.queue(FAR, name) == Variant(VariantType.BLOB, expected)
    transfer.unacknowledged = 0
    assert await desk.queue(FAR, "last-acknowledged") == NULL, "nothing waits for one (3.1.4.1)"


async def test_without_a_stream_there_are_no_places(desk: Desk) -> None:
    desk.outgoing()
    for name in ("last-acknowledged", "first-unacknowledged", "last-unacknowledged", "next-sequence"):
        assert await desk.queue(FAR, name) == NULL


async def test_the_numbers_of_the_stream(desk: Desk) -> None:
    transfer = desk.outgoing().transfer
    transfer.last_acknowledgment_time = 1_700_000_000.75
    transfer.last_acknowledgment_count = 3
    transfer.unread = 4
    transfer.unacknowledged = 5
    transfer.resend_time = 5_000_000_000.0
    transfer.resend_interval = 30.0
    transfer.resends = 6
    for name, kind, expected in (
        ("last-acknowledged-time", TIME, 1_700_000_000),
        ("last-acknowledged-count", NUMBER, 3),
        ("unread-count", NUMBER, 4),
        ("unacknowledged-count", NUMBER, 5),
        ("resend-time", TIME, 0x7FFFFFFF),
        ("resend-interval", NUMBER, 30),
        ("resend-count", NUMBER, 6),
    ):
        assert await desk.queue(FAR, name) == Variant(kind, expected)


async def test_sources(desk: Desk, orders: str) -> None:
    queue = desk.manager.transfers.find(ORDERS)
    assert queue is not None
    empty = [VECTOR | each for each in (TEXT, VariantType.CLSID, VariantType.UI8, NUMBER, TIME, NUMBER)]
    assert await desk.queue(orders, "sources") == Variant(VARIANTS, [Variant(each, []) for each in empty])
    for number, sender in ((1, GUID), (2, UUID(int=1))):
        queue.incoming_transfers[sender] = IncomingTransfer(
            format_name=f"{FAR}{number}",
            sender=sender,
            stream=number << 40,
            number=number * 10,
            last_access=number * 1000.5,
            rejections=number - 1,
        )
    values: list[list[Any]] = [
        [f"{FAR}1", f"{FAR}2"],
        [GUID, UUID(int=1)],
        [1 << 40, 2 << 40],
        [10, 20],
        [1000, 2001],
        [0, 1],
    ]
    expected = [Variant(kind, value) for kind, value in zip(empty, values, strict=True)]
    assert await desk.queue(orders, "sources") == Variant(VARIANTS, expected)


# Its connections.


async def test_connection_history(desk: Desk) -> None:
    queue = desk.outgoing()
    queue.connections.append(
        Connection(status=ConnectionStatus.DNS_FAILURE, time=1000.5, address="http://there:8080")
    )
    queue.connections.append(
        Connection(status=ConnectionStatus.ESTABLISHED, time=2000, address="http://10.0.0.1")
    )
    assert await desk.queue(FAR, "connection-history") == Variant(
        VARIANTS,
        [
            Variant(VECTOR | NUMBER, [0x80000008, 2]),
            Variant(VECTOR | TIME, [1000, 2000]),
            Variant(VECTOR | TIME, [0xC00E0001 - 2**32, 0]),
            Variant(VARIANTS, [Variant(TEXTS, [r"\\there"]), Variant(TEXTS, ["10.0.0.1"])]),
        ],
    )


async def test_a_queue_that_never_connected_has_an_empty_history(desk: Desk) -> None:
    desk.outgoing()
    found = await desk.queue(FAR, "connection-history")
    assert [each.value for each in found.value] == [[], [], [], []]


def test_each_status_has_its_code() -> None:
    assert set(CONNECTION_CODES) == set(ConnectionStatus)
    failures = [code for status, code in CONNECTION_CODES.items() if status.is_failure]
    assert failures == list(range(0x80000000, 0x8000000E))


# Which queue has what.


@pytest.mark.parametrize("number", QUEUE_PROPERTIES)
async def test_what_does_not_apply_is_null(desk: Desk, orders: str, number: int) -> None:
    desk.outgoing()
    applies = QUEUE_PROPERTIES[number].applies
    [here], _ = await desk.ask(queue_object(orders), number)
    [there], _ = await desk.ask(queue_object(FAR), number)
    if applies is Applies.OUTGOING:
        assert here == NULL
    else:
        assert here.type == QUEUE_PROPERTIES[number].type
    if applies is Applies.LOCAL:
        assert there == NULL
