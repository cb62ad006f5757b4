from __future__ import annotations

import logging

import pytest
from tests.manager.conftest import ORDERS, Opener, durable, history, let_run, turn

from lanner.manager import ManualClock, QueueManager
from lanner.model.errors import StoreError

DAY = 86_400.0


async def rows_left(manager: QueueManager) -> tuple[int, int]:
    """The first LSN that is kept, and the last."""
    return await manager.history.first_lsn(), manager.history.last_lsn


async def test_old_history_goes_at_every_interval(opened: Opener, clock: ManualClock) -> None:
    async with opened(history_age=10 * DAY, maintenance_interval=600.0) as manager:
        await manager.create_queue(ORDERS)
        await manager.send(ORDERS, durable())
        clock.advance(9 * DAY)
        await turn(manager, clock, 0)
        await manager.send(ORDERS, durable())
        assert await rows_left(manager) == (1, 2)
        await turn(manager, clock, DAY + 1)
        assert await rows_left(manager) == (2, 2)
        await turn(manager, clock, 9 * DAY)
        await turn(manager, clock, 600)
        assert await rows_left(manager) == (3, 2)


async def test_history_beyond_its_size_goes(opened: Opener, clock: ManualClock) -> None:
    async with opened(history_bytes=0, maintenance_interval=600.0) as manager:
        await manager.create_queue(ORDERS)
        await manager.send(ORDERS, durable())
        await turn(manager, clock, 599)
        assert await rows_left(manager) == (1, 1)
        await turn(manager, clock, 1)
        assert await rows_left(manager) == (2, 1)
        assert await history(manager) == []


async def test_messages_stay_whatever_becomes_of_their_history(opened: Opener, clock: ManualClock) -> None:
    async with opened(history_bytes=0, maintenance_interval=600.0) as manager:
        await manager.create_queue(ORDERS)
        await manager.send_many(ORDERS, [durable(b"%d" % n) for n in range(10)])
        for number in range(9):
            assert (await manager.receive(ORDERS, timeout=0)).body == b"%d" % number
        await turn(manager, clock, 600)
        assert (await manager.receive(ORDERS, timeout=0)).body == b"9"


async def test_a_round_that_fails_is_logged_and_the_next_one_comes(
    opened: Opener, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(maintenance_interval=600.0) as manager:
        rounds: list[float] = []

        async def fail() -> None:
            rounds.append(clock.monotonic())
            raise StoreError("no")

        monkeypatch.setattr(manager.store, "tidy", fail)
        with caplog.at_level(logging.WARNING):
            await turn(manager, clock, 600)
            await turn(manager, clock, 600)
        assert rounds == [600.0, 1200.0]
        assert "maintenance could not finish: no" in caplog.text


async def test_a_stopped_manager_is_not_maintained(
    opened: Opener, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds: list[bool] = []
    async with opened(maintenance_interval=600.0) as manager:

        async def note() -> None:
            rounds.append(True)

        monkeypatch.setattr(manager._maintenance, "run", note)
    clock.advance(10_000)
    await let_run()
    assert rounds == []
