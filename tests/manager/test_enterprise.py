"""The manager in its enterprise: the directory, public queues, the ways out."""

from __future__ import annotations

import asyncio
from pathlib import Path
from uuid import UUID

import pytest

from lanner.directory.base import DirectoryOffline, ObjectAlreadyExists
from lanner.directory.local import LocalDirectory
from lanner.manager import ManualClock, QueueManager
from lanner.manager.events import EnterpriseChanged
from lanner.model.enterprise import EnterpriseMap
from lanner.model.errors import QueueNotFoundError, UnsupportedOperationError
from lanner.model.message import Message

TWO_SITES = r"""
[enterprise]
name = "Contoso"
[[site]]
name = "London"
[[site]]
name = "Paris"
[[link]]
sites = ["London", "Paris"]
cost = 3
gates = ["LON-GW", "PAR-GW"]
[[manager]]
name = "LON-1"
sites = ["London"]
[[manager]]
name = "LON-GW"
sites = ["London"]
routing = true
address = "127.0.1.1"
[[manager]]
name = "PAR-GW"
sites = ["Paris"]
routing = true
[[queue]]
path = 'PAR-GW\orders'
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "contoso.toml"
    path.write_text(TWO_SITES)
    return path


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


async def _open(file: Path, clock: ManualClock | None = None) -> QueueManager:
    directory = LocalDirectory(file)
    known = (await directory.read()).machine_named("LON-1") if file.exists() else None
    return await QueueManager.open(
        file.parent / "data",
        name="LON-1",
        identifier=known.id if known else None,
        clock=clock,
        enterprise=directory,
        enterprise_interval=2.0,
    )


async def test_the_manager_knows_its_place(file: Path) -> None:
    async with await _open(file) as manager:
        view = manager.enterprise
        assert view.map is not None
        assert view.machine is not None
        assert (view.machine.name, view.machine.id) == ("LON-1", manager.identifier)
        assert not view.is_offline
        assert view.address_of("lon-gw") == "127.0.1.1"
        assert view.address_of("elsewhere") == ""
        paris = view.map.machine_named("PAR-GW")
        assert paris is not None
        assert view.next_hops(paris.id) == ("LON-GW",)


async def test_without_a_directory_nothing_is_known(tmp_path: Path) -> None:
    async with await QueueManager.open(tmp_path, name="LON-1") as manager:
        assert manager.enterprise.map is None
        assert not manager.enterprise.is_configured
        assert not await manager.enterprise.refresh()
        with pytest.raises(UnsupportedOperationError, match="no directory is configured"):
            await manager.send(f"PUBLIC={UUID(int=5)}", Message())


async def test_a_change_of_the_file_takes_effect(file: Path, clock: ManualClock) -> None:
    async with await _open(file, clock) as manager:
        seen: list[EnterpriseMap] = []
        manager.events.subscribe(EnterpriseChanged, lambda event: seen.append(event.enterprise))
        file.write_text(TWO_SITES.replace("cost = 3", "cost = 9"))
        clock.advance(2.1)
        await _until(lambda: bool(seen))
        assert [link.cost for link in seen[0].links] == [9]
        clock.advance(2.1)
        await asyncio.sleep(0.05)
        assert len(seen) == 1


async def test_the_last_good_directory_is_used_while_it_is_away(
    file: Path, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with await _open(file, clock) as manager:
        file.write_text("nonsense = [")
        assert not await manager.enterprise.refresh()
        assert manager.enterprise.is_offline
        assert "contoso.toml" in manager.enterprise.problem
    file.unlink()
    async with await _open(file, clock) as manager:
        assert manager.enterprise.is_offline
        assert manager.enterprise.map is not None
        assert len(manager.enterprise.map.sites) == 2
        file.write_text(TWO_SITES)
        clock.advance(2.1)
        await _until(lambda: not manager.enterprise.is_offline)
    assert "the directory is away" in caplog.text
    assert "the last good one is used" in caplog.text


async def test_a_public_queue_elsewhere_is_reached_by_its_route(file: Path) -> None:
    async with await _open(file) as manager:
        assert manager.enterprise.map is not None
        orders = manager.enterprise.map.queue_at(r"PAR-GW\orders")
        assert orders is not None
        name = f"PUBLIC={orders.id}"
        assert manager.get_queue_path(name) == (r"PAR-GW\orders", "PAR-GW")
        await manager.send(name, Message())
        (outgoing,) = manager.outgoing_queues()
        assert outgoing.next_hops == ("LON-GW",)
        with pytest.raises(QueueNotFoundError, match="no public queue"):
            await manager.send(f"PUBLIC={UUID(int=5)}", Message())
        with pytest.raises(QueueNotFoundError, match="no public queue"):
            manager.get_queue_path(f"PUBLIC={UUID(int=5)}")


async def test_public_queues_of_this_machine_are_in_the_directory(file: Path) -> None:
    async with await _open(file) as manager:
        info = await manager.create_queue(r".\billing")
        known = await LocalDirectory(file).read()
        queue = known.queue_at(r"LON-1\billing")
        assert queue is not None
        assert queue.id == info.identifier
        await manager.send(f"PUBLIC={queue.id}", Message(label="here"))
        assert (await manager.receive(r".\billing", timeout=0)).label == "here"
        await manager.delete_queue(r".\billing")
        assert (await LocalDirectory(file).read()).queue_at(r"LON-1\billing") is None


async def test_a_public_queue_that_cannot_be_published_is_not_made(file: Path) -> None:
    async with await _open(file) as manager:
        file.write_text(TWO_SITES + "\n[[queue]]\npath = 'LON-1\\billing'\n")
        with pytest.raises(ObjectAlreadyExists):
            await manager.create_queue(r".\billing")
        assert all(info.path != r".\billing" for info in manager.queues())
        file.unlink()
        with pytest.raises(DirectoryOffline):
            await manager.create_queue(r".\other")
        await manager.create_queue(r".\private$\own")


async def test_a_queue_that_only_the_directory_knows_by_its_identifier(file: Path) -> None:
    directory_id = UUID("11111111-2222-3333-4444-555555555555")
    async with await QueueManager.open(file.parent / "data", name="LON-1") as manager:
        await manager.create_queue(r".\billing")
    file.write_text(TWO_SITES + f"\n[[queue]]\npath = 'LON-1\\billing'\nid = '{directory_id}'\n")
    async with await _open(file) as manager:
        await manager.send(f"PUBLIC={directory_id}", Message(label="found"))
        assert (await manager.receive(r".\billing", timeout=0)).label == "found"


async def _until(is_so: object) -> None:
    assert callable(is_so)
    for _ in range(200):
        if is_so():
            return
        await asyncio.sleep(0.01)
    pytest.fail("it did not happen")
