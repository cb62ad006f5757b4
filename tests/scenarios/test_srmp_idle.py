"""Outgoing queues that nobody uses go away, and peers cannot make any number of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from lanner.manager import ManualClock, QueueManager
from lanner.manager import core as core_module
from lanner.model.errors import QuotaExceededError
from lanner.model.message import Delivery, Message
from lanner.protocols.srmp.endpoint import SrmpEndpoint
from lanner.protocols.srmp.settings import SrmpSettings

PARIS = "DIRECT=HTTP://paris.invalid/msmq/private$/orders"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


async def _endpoint(manager: QueueManager) -> SrmpEndpoint:
    endpoint = SrmpEndpoint(manager, SrmpSettings(), "127.0.0.1", port=0, https_port=0, names={})
    await endpoint.start()
    return endpoint


async def test_an_empty_outgoing_queue_goes_after_the_cleanup_time(
    tmp_path: Path, clock: ManualClock
) -> None:
    async with await QueueManager.open(tmp_path, name="LONDON", clock=clock) as manager:
        endpoint = await _endpoint(manager)
        manager.take_offline()  # nobody is to look for Paris
        await manager.send(PARIS, Message(body=b"x", delivery=Delivery.RECOVERABLE))
        await manager.purge_queue(PARIS)
        assert [info.path for info in manager.outgoing_queues()] == [PARIS]
        clock.advance(21)
        clock.advance(301)
        assert manager.outgoing_queues() == []
        await endpoint.stop()
    async with await QueueManager.open(tmp_path, clock=clock) as manager:
        assert manager.outgoing_queues() == []


async def test_one_with_messages_stays(tmp_path: Path, clock: ManualClock) -> None:
    async with await QueueManager.open(tmp_path, name="LONDON", clock=clock) as manager:
        endpoint = await _endpoint(manager)
        manager.take_offline()
        await manager.send(PARIS, Message(body=b"x", delivery=Delivery.RECOVERABLE))
        clock.advance(3_000)
        assert [info.messages for info in manager.outgoing_queues()] == [1]
        await endpoint.stop()


async def test_there_is_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core_module, "MAX_OUTGOING_QUEUES", 2)
    async with await QueueManager.open(tmp_path, name="LONDON") as manager:
        for number in range(2):
            await manager.send(f"DIRECT=HTTP://h{number}/msmq/q", Message())
        with pytest.raises(QuotaExceededError, match="2 outgoing queues already"):
            await manager.send("DIRECT=HTTP://h3/msmq/q", Message())
        await manager.send("DIRECT=HTTP://h1/msmq/q", Message())
