"""What the manager and the store log about a queue or a message names it, for programs and for people."""

from __future__ import annotations

import contextlib
import io
import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.manager.conftest import ORDERS, durable, full_disk, only_id, turn

from lanner.config import LogConfig
from lanner.logs import configure_logs
from lanner.manager import ManualClock, QueueManager
from lanner.manager.events import MessageAvailable, QueueCreated
from lanner.model.errors import StoreFullError
from lanner.model.log_fields import MAX_NAMED, about
from lanner.model.message import Acknowledgments
from lanner.model.queue import QueueProperties

Logged = Callable[[str], dict[str, Any]]


@pytest.fixture(params=["json", "human"])
def logged(request: pytest.FixtureRequest) -> Iterator[Logged]:
    """Finds the one line with a text: its fields, or for people the line itself."""
    root = logging.getLogger()
    others, level = root.handlers[:], root.level
    configure_logs(LogConfig(format=request.param, level="info"))
    [handler] = root.handlers
    assert isinstance(handler, logging.StreamHandler)
    handler.setStream(written := io.StringIO())
    root.handlers[:] = [*others, handler]  # the others are not ours

    def find(text: str) -> dict[str, Any]:
        [line] = [line for line in written.getvalue().splitlines() if text in line]
        return dict(json.loads(line)) if request.param == "json" else {"line": line}

    yield find
    root.removeHandler(handler)
    root.setLevel(level)


def names(record: dict[str, Any], **fields: str) -> bool:
    """Whether a line carries the fields, or for people tells each of them exactly once."""
    if "line" in record:
        return all(record["line"].count(value) == 1 for value in fields.values())
    return fields.items() <= record.items()


async def test_a_receive_that_is_not_stored(manager: QueueManager, orders: str, logged: Logged) -> None:
    message_id = only_id(await manager.send(orders, durable(b"one")))
    async with full_disk(manager):
        with pytest.raises(StoreFullError):
            await manager.receive(orders, timeout=0)
    assert names(logged("was not stored"), queue=ORDERS, message_id=str(message_id))


async def test_a_queue_that_is_not_stored(manager: QueueManager, logged: Logged) -> None:
    async with full_disk(manager):
        with pytest.raises(StoreFullError):
            await manager.create_queue(ORDERS)
    assert names(logged("was not stored"), queue=ORDERS)


async def test_a_message_that_cannot_be_dropped(
    manager: QueueManager, clock: ManualClock, orders: str, logged: Logged
) -> None:
    message_id = only_id(await manager.send(orders, durable(b"one", time_to_be_received=5)))
    async with full_disk(manager):
        await turn(manager, clock, 6)
    assert names(logged("could not be dropped"), queue=ORDERS, message_id=str(message_id))


async def test_a_subscriber_that_fails(manager: QueueManager, logged: Logged) -> None:
    def fail(_: object) -> None:
        raise RuntimeError("no")

    manager.events.subscribe(QueueCreated, fail)
    await manager.create_queue(ORDERS)
    assert names(logged("a subscriber of QueueCreated"), queue=ORDERS)
    manager.events.subscribe(MessageAvailable, fail)
    message_id = only_id(await manager.send(ORDERS, durable()))
    assert names(logged("a subscriber of MessageAvailable"), queue=ORDERS, message_id=str(message_id))


async def test_background_work_that_fails(
    manager: QueueManager, clock: ManualClock, orders: str, logged: Logged, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise RuntimeError("no")

    message_id = only_id(await manager.send(orders, durable(time_to_be_received=5)))
    monkeypatch.setattr(manager._core, "load_all", fail)
    await turn(manager, clock, 6)
    assert names(logged("background work failed"), queue=ORDERS, message_id=str(message_id))


async def test_a_dead_letter_queue_that_cannot_be_one(
    manager: QueueManager, clock: ManualClock, orders: str, logged: Logged
) -> None:
    nowhere = r".\private$\nowhere"
    message = durable(negative_journaling=True, dead_letter_queue=nowhere, time_to_be_received=5)
    message_id = only_id(await manager.send(orders, message))
    await turn(manager, clock, 6)
    assert names(logged("cannot be the dead-letter queue"), queue=nowhere, message_id=str(message_id))


async def test_an_acknowledgment_that_is_discarded(
    manager: QueueManager, orders: str, logged: Logged
) -> None:
    asked = Acknowledgments.FULL_REACH_QUEUE
    full = (await manager.create_queue(r".\private$\full", QueueProperties(quota=0))).path
    message_id = only_id(
        await manager.send(orders, durable(administration_queue=full, acknowledgments=asked))
    )
    assert names(logged("was discarded"), queue=full, message_id=str(message_id))


async def test_an_abort_that_is_not_counted(manager: QueueManager, ledger: str, logged: Logged) -> None:
    async with manager.transaction() as sending:
        await manager.send(ledger, durable(), transaction=sending)
    async with full_disk(manager):
        with contextlib.suppress(RuntimeError):
            async with manager.transaction() as transaction:
                await manager.receive(ledger, timeout=0, transaction=transaction)
                raise RuntimeError
    assert names(logged("was not counted"), queue=ledger, transaction=transaction.id)


def test_several_are_lists_of_a_bounded_length(logged: Logged) -> None:
    fields = about(queues=["b", "a", "a"], messages=range(100, 200))
    assert fields["queues"] == ["a", "b"]
    assert len(list(fields["message_ids"])) == MAX_NAMED  # type: ignore[call-overload]
    logging.getLogger("lanner.test").warning("%s is full", "a", extra=about(queues=["a", "ab"]))
    record = logged("is full")
    assert record.get("queues") == ["a", "ab"] or record["line"].endswith("a is full (queues=ab)")


def test_a_name_within_another_is_not_taken_for_it(logged: Logged) -> None:
    logging.getLogger("lanner.test").warning("orders2 is full", extra=about(queues=["orders"]))
    record = logged("is full")
    assert record.get("queue") == "orders" or record["line"].endswith("orders2 is full (queue=orders)")
