"""Pausing outgoing queues."""

from __future__ import annotations

import pytest
from tests.manager.conftest import (
    DEAD_LETTER,
    ELSEWHERE,
    Opener,
    bodies,
    durable,
)

from lanner.manager import QueueManager
from lanner.model.errors import (
    UnsupportedOperationError,
)
from lanner.model.queue import (
    OutgoingState,
    QueueKind,
)


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
