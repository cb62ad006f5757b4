"""The six properties of a machine, from a live manager (MS-MQMR 3.1.4.1, MS-MQMQ 2.3.11)."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest
from tests.protocols.management.conftest import FAR, ORDERS, ORDERS_NAME, Desk, Opener

from lanner.directory.local import LocalDirectory
from lanner.manager import QueueManager
from lanner.model.message import Delivery, Message
from lanner.model.queue import QueueAccess, QueueProperties
from lanner.protocols.management.variant import NULL, VECTOR, Variant, VariantType

TEXTS = VECTOR | VariantType.LPWSTR


async def test_a_queue_is_active_with_messages_or_open(desk: Desk, manager: QueueManager) -> None:
    await manager.create_queue(ORDERS)
    await manager.create_queue(r".\private$\idle", QueueProperties(journaling=True))
    assert await desk.machine("active-queues") == Variant(TEXTS, [])
    handle = manager.open_queue(ORDERS, QueueAccess.RECEIVE)
    assert await desk.machine("active-queues") == Variant(TEXTS, [ORDERS_NAME])
    manager.close_queue(handle)
    assert await desk.machine("active-queues") == Variant(TEXTS, [])
    await manager.send(ORDERS, Message(body=b"1"))
    await manager.send(FAR, Message(body=b"2", delivery=Delivery.RECOVERABLE))
    await manager.send(r".\private$\idle", Message(body=b"3"))
    await manager.receive(r".\private$\idle")
    journal = r"DIRECT=OS:here\private$\idle;JOURNAL"
    assert sorted((await desk.machine("active-queues")).value) == sorted([FAR, ORDERS_NAME, journal])


async def test_the_path_names_of_private_queues(desk: Desk, manager: QueueManager) -> None:
    for name in (ORDERS, r".\private$\more", r".\public"):
        await manager.create_queue(name)
    desk.outgoing()
    assert await desk.machine("private-queues") == Variant(
        TEXTS, [r"here\private$\orders", r"here\private$\more"]
    )


async def test_connected_and_not(desk: Desk, manager: QueueManager) -> None:
    assert await desk.machine("connected") == Variant(VariantType.LPWSTR, "CONNECTED")
    manager.take_offline()
    assert await desk.machine("connected") == Variant(VariantType.LPWSTR, "DISCONNECTED")


async def test_the_type_tells_versions(desk: Desk) -> None:
    found = await desk.machine("type")
    assert found.type == VariantType.LPWSTR
    assert found.value.startswith("Lanner ")
    assert platform.release() in found.value


async def test_bytes_in_all_queues(desk: Desk, manager: QueueManager) -> None:
    await manager.create_queue(ORDERS)
    assert await desk.machine("bytes-in-all-queues") == Variant(VariantType.I8, 0)
    await manager.send(ORDERS, Message(body=b"x" * 1000))
    await manager.send(FAR, Message(body=b"x" * 500))
    found = await desk.machine("bytes-in-all-queues")
    assert found == Variant(VariantType.I8, manager.total_bytes)
    assert found.value >= 1500


async def test_no_directory_no_server(desk: Desk) -> None:
    assert await desk.machine("directory-server") == NULL


ENTERPRISE = """
[enterprise]
name = "Contoso"
[[site]]
name = "London"
[[manager]]
name = "here"
sites = ["London"]
{own}
[[manager]]
name = "LON-DC"
sites = ["London"]
{other}
"""


@pytest.mark.parametrize(
    ("own", "other", "expected"),
    [
        ("", "", None),
        ("", "directory_server = true", r"\\LON-DC"),
        ("directory_server = true", "directory_server = true", r"\\here"),
    ],
)
async def test_the_directory_server_begins_with_two_backslashes(
    opened: Opener, tmp_path: Path, own: str, other: str, expected: str | None
) -> None:
    file = tmp_path / "contoso.toml"
    file.write_text(ENTERPRISE.format(own=own, other=other))
    async with opened(enterprise=LocalDirectory(file)) as manager:
        found = await Desk(manager).machine("directory-server")
    assert found == (Variant(VariantType.LPWSTR, expected) if expected else NULL)
