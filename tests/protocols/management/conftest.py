"""What the tests of management share: a manager, and calls to its operations without a network."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias
from uuid import uuid4

import pytest

from lanner.manager import ManagerSettings, ManualClock, QueueManager
from lanner.manager.queues import OutgoingQueue, QueueRecord
from lanner.model.codes import StatusCode
from lanner.model.format_name import parse_format_name
from lanner.protocols.management.properties import MACHINE_PROPERTIES, QUEUE_PROPERTIES, Property
from lanner.protocols.management.queue_format import QueueFormat, from_format_name
from lanner.protocols.management.server import ManagementServer
from lanner.protocols.management.variant import Variant
from lanner.protocols.management.wire import (
    MACHINE,
    ManagementObject,
    ObjectType,
    decode_action_answer,
    decode_get_info_answer,
    encode_action,
    encode_get_info,
)
from lanner.protocols.rpc.interface import CallContext, Caller

NAME = "here"
ORDERS = r".\private$\orders"
ORDERS_NAME = r"DIRECT=OS:here\private$\orders"
FAR = "DIRECT=HTTP://there/msmq/private$/orders"

ADMINISTRATOR = CallContext(caller=Caller("ada", is_authenticated=True, is_administrator=True), peer="test")
SOMEBODY = CallContext(caller=Caller("bob", is_authenticated=True), peer="test")

Opener: TypeAlias = Callable[..., AbstractAsyncContextManager[QueueManager]]


class Desk:
    """Calls the operations of a server, as an administrator."""

    def __init__(self, manager: QueueManager) -> None:
        self.manager = manager
        self.server = ManagementServer(manager)
        self.context = ADMINISTRATOR

    async def ask(self, target: ManagementObject, *numbers: int) -> tuple[list[Variant], int]:
        stub = await self.server.get_info(self.context, encode_get_info(target, numbers))
        answer = decode_get_info_answer(stub, len(numbers))
        return list(answer.variants), answer.status

    async def machine(self, name: str) -> Variant:
        """One property of the machine."""
        return await self._one(MACHINE, _named(MACHINE_PROPERTIES, name))

    async def queue(self, queue: str, name: str) -> Variant:
        """One property of a queue."""
        return await self._one(queue_object(queue), _named(QUEUE_PROPERTIES, name))

    async def _one(self, target: ManagementObject, wanted: Property) -> Variant:
        [variant], status = await self.ask(target, wanted.id)
        assert status == StatusCode.MQ_OK
        return variant

    async def act(self, target: ManagementObject, action: str) -> int:
        return decode_action_answer(await self.server.action(self.context, encode_action(target, action)))

    def outgoing(self, name: str = FAR) -> OutgoingQueue:
        """An outgoing queue, made if need be."""
        table = self.manager._core.queues
        queue = table.find(name)
        if queue is None:
            # As the manager makes one, for names too that it has no way for yet.
            queue = OutgoingQueue(table.next_id(), parse_format_name(name), QueueRecord(identifier=uuid4()))
            table.add(queue)
        assert isinstance(queue, OutgoingQueue)
        return queue


def _named(known: dict[int, Property], name: str) -> Property:
    return next(each for each in known.values() if each.name == name)


def queue_object(name: str | QueueFormat | None) -> ManagementObject:
    if isinstance(name, str):
        name = from_format_name(parse_format_name(name))
    return ManagementObject(ObjectType.QUEUE, name)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def opened(tmp_path: Path, clock: ManualClock) -> Opener:
    @asynccontextmanager
    async def open_manager(**options: Any) -> AsyncIterator[QueueManager]:
        settings = ManagerSettings()
        async with await QueueManager.open(
            tmp_path / "store", name=NAME, settings=settings, clock=clock, **options
        ) as manager:
            yield manager

    return open_manager


@pytest.fixture
async def manager(opened: Opener) -> AsyncIterator[QueueManager]:
    async with opened() as manager:
        yield manager


@pytest.fixture
def desk(manager: QueueManager) -> Desk:
    return Desk(manager)
