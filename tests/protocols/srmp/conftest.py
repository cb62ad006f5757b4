"""What the tests of SRMP share: a manager on a clock turned by hand, and a receiver in front of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from tests.manager.conftest import history
from tests.protocols.srmp.envelopes import HERE, SENDER

from lanner.manager import ManagerSettings, ManualClock, QueueManager
from lanner.model.history import HistoryRow
from lanner.model.message import Message
from lanner.model.queue import QueueProperties
from lanner.protocols.srmp.receiver import Answer, Receiver
from lanner.protocols.srmp.redirection import Redirections
from lanner.protocols.srmp.settings import SrmpSettings
from lanner.protocols.srmp.signers import Signers
from lanner.protocols.srmp.wire import SrmpMessage, encode_request

PEER = "192.0.2.7"

Opener: TypeAlias = Callable[..., AbstractAsyncContextManager[QueueManager]]


class Receipts:
    """The sending side, which keeps the receipts that it is given."""

    def __init__(self) -> None:
        self.taken: list[tuple[Message, str]] = []

    async def take_receipt(self, receipt: Message, peer: str) -> None:
        self.taken.append((receipt, peer))


class Inbound:
    """A receiver, and what it was made with."""

    def __init__(self, manager: QueueManager, settings: SrmpSettings, signers: Signers) -> None:
        self.manager = manager
        self.receipts = Receipts()
        self.redirections = Redirections()
        self.receiver = Receiver(
            manager.transfers, settings, self.receipts, signers, lambda: self.redirections
        )

    async def post(self, message: SrmpMessage) -> Answer:
        """Let a message come in."""
        request = encode_request(message)
        return await self.receiver.receive(request.content_type.encode(), request.body, PEER)

    async def told(self, event: str) -> list[HistoryRow]:
        """What the history has of a kind."""
        return [row for row in await history(self.manager) if row.event == event]


Make: TypeAlias = Callable[..., Inbound]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def opened(tmp_path: Path, clock: ManualClock) -> Opener:
    """Opens the manager of the test for a ``with`` block: the same one, each time."""

    @asynccontextmanager
    async def open_manager(**settings: Any) -> AsyncIterator[QueueManager]:
        async with await QueueManager.open(
            tmp_path / "store", name=HERE, settings=ManagerSettings(**settings), clock=clock
        ) as manager:
            yield manager

    return open_manager


@pytest.fixture
async def manager(opened: Opener) -> AsyncIterator[QueueManager]:
    async with opened() as manager:
        await manager.create_queue(r".\private$\orders")
        await manager.create_queue(r".\private$\ledger", QueueProperties(transactional=True))
        yield manager


def inbound_of(manager: QueueManager, signers: Signers | None = None, **settings: Any) -> Inbound:
    return Inbound(manager, SrmpSettings(**settings), signers or Signers())


@pytest.fixture
async def inbound(manager: QueueManager) -> AsyncIterator[Inbound]:
    made = inbound_of(manager)
    await made.receiver.load()
    yield made
    made.receiver.stop()


__all__ = ["PEER", "SENDER", "Inbound", "Opener", "inbound_of"]
