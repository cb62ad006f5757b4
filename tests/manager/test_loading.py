"""What a restart keeps, and what it finds."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID, uuid4

import pytest
from tests.manager.conftest import (
    ELSEWHERE,
    LEDGER,
    NAME,
    ORDERS,
    OTHER,
    Opener,
    bodies,
    contents,
    counts,
    durable,
    express,
    history,
    only_id,
    only_place,
    opened_for,
)

from lanner.manager import ManagerSettings, ManualClock, QueueManager
from lanner.model.errors import InvalidNameError, StoreDamagedError, StoreInUseError
from lanner.model.message_id import MessageId
from lanner.model.queue import QueueProperties
from lanner.model.security import SecurityDescriptor
from lanner.store import Changes

# Who it is.


async def test_a_manager_keeps_its_name_and_identifier(tmp_path: Path, clock: ManualClock) -> None:
    identifier = uuid4()
    async with await QueueManager.open(tmp_path, name="first", identifier=identifier, clock=clock) as manager:
        assert (manager.name, manager.identifier) == ("first", identifier)
    async with await QueueManager.open(
        tmp_path, name="second", identifier=UUID(int=1), clock=clock
    ) as manager:
        assert (manager.name, manager.identifier) == ("first", identifier)


async def test_a_manager_without_a_name_has_that_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "lon-1.example.com")
    async with await QueueManager.open(str(tmp_path / "new" / "store")) as manager:
        assert manager.name == "lon-1"


@pytest.mark.parametrize("name", ["two words", "private$", "a\\b"])
async def test_a_manager_cannot_have_any_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidNameError):
        await QueueManager.open(tmp_path, name=name)


async def test_one_directory_has_one_manager(opened: Opener, tmp_path: Path) -> None:
    async with opened() as manager:
        with pytest.raises(StoreInUseError):
            await QueueManager.open(manager.store.directory)
    async with opened():
        pass


# What it had.


async def test_queues_come_back_with_everything(opened: Opener, clock: ManualClock) -> None:
    properties = QueueProperties(label="Orders", journaling=True, quota=100, max_aborts=3)
    security = SecurityDescriptor.from_sddl("O:BAD:(A;;0x4;;;WD)")
    async with opened() as manager:
        await manager.create_queue(ORDERS, properties, security=security)
        await manager.create_queue(LEDGER, QueueProperties(transactional=True))
        await manager.create_queue(r".\catalogue")
        clock.advance(5)
        await manager.change_queue(LEDGER, QueueProperties(transactional=True, label="changed"))
        before = manager.queues()
        private = manager._core.queues.get(ORDERS).record.number
    async with opened() as manager:
        assert manager.queues() == before
        assert manager.queue(f"PRIVATE={manager.identifier}\\{private:x}").path == ORDERS
        assert manager.queue(ORDERS + ";journal").properties == properties


async def test_new_queues_get_numbers_of_their_own(opened: Opener) -> None:
    numbers: list[int] = []
    for name in (ORDERS, OTHER, LEDGER):
        async with opened() as manager:
            await manager.create_queue(name)
            numbers.append(manager._core.queues.get(name).record.number)
    assert len(set(numbers)) == 3


async def test_durable_messages_come_back_in_their_places(opened: Opener) -> None:
    async with opened() as manager:
        await manager.create_queue(ORDERS)
        sent = [await manager.send(ORDERS, durable(b"%d" % n, priority=n % 3)) for n in range(6)]
        await manager.receive(ORDERS, timeout=0)
        before = await contents(manager, ORDERS)
    async with opened() as manager:
        assert await contents(manager, ORDERS) == before
        assert counts(manager, ORDERS) == (5, 5)
        assert manager.total_bytes == manager.queue(ORDERS).bytes == sum(m.size for m in before)
        with opened_for(manager, ORDERS) as handle:
            wanted = only_id(sent[3])
            assert (await manager.dequeue_message(handle, timeout=0, message_id=wanted)).body == b"3"


async def test_correlations_are_found_again(opened: Opener) -> None:
    correlation = MessageId.of(uuid4(), 7)
    async with opened() as manager:
        await manager.create_queue(ORDERS)
        await manager.send_many(ORDERS, [durable(b"other"), durable(b"mine", correlation_id=correlation)])
    async with opened() as manager:
        with opened_for(manager, ORDERS) as handle:
            found = await manager.dequeue_message(handle, timeout=0, correlation_id=correlation)
        assert (found.body, found.correlation_id) == (b"mine", correlation)


async def test_outgoing_queues_come_back_with_their_messages(opened: Opener) -> None:
    http = "DIRECT=HTTP://elsewhere/msmq/private$/far"
    async with opened() as manager:
        for name in (ELSEWHERE, http):
            await manager.send(name, durable(name.encode()))
    async with opened() as manager:
        assert {info.path for info in manager.outgoing_queues()} == {ELSEWHERE, http}
        assert await bodies(manager, http) == [http.encode()]
        await manager.send(http, durable(b"more"))
        assert counts(manager, http) == (2, 2)


async def test_express_messages_do_not_come_back(opened: Opener) -> None:
    async with opened() as manager:
        await manager.create_queue(ORDERS)
        await manager.send(ORDERS, express(b"lost"))
    async with opened() as manager:
        assert (counts(manager, ORDERS), manager.total_bytes) == ((0, 0), 0)


async def test_an_empty_subqueue_does_not_come_back(opened: Opener) -> None:
    async with opened() as manager:
        await manager.create_queue(ORDERS)
        sent = await manager.send(ORDERS, durable())
        with opened_for(manager, ORDERS) as handle, opened_for(manager, ORDERS + ";later") as later:
            await manager.move_message(handle, only_place(sent), ORDERS + ";later")
            await manager.dequeue_message(later)
            assert manager.queue(ORDERS).subqueues == ("later",)
            await manager.close()
    async with opened() as manager:
        assert manager.queue(ORDERS).subqueues == ()


async def test_the_row_of_a_subqueue_that_could_not_be_deleted_hides_nothing(opened: Opener) -> None:
    later = ORDERS + ";later"
    async with opened() as manager:
        await manager.create_queue(ORDERS)
        with opened_for(manager, later):
            left_over = manager._core.queues.get(later).id
        sent = await manager.send(ORDERS, durable(b"one"))
        with opened_for(manager, ORDERS) as handle:
            await manager.move_message(handle, only_place(sent), later)
        changes = Changes()
        changes.queues.append((left_over, *manager._core.queues.get(later).row()[1:]))
        await manager.store.commit(changes)
    for _ in range(2):
        async with opened() as manager:
            assert manager.queue(ORDERS).subqueues == ("later",)
            assert await bodies(manager, later) == [b"one"]


async def test_the_history_goes_on_where_it_was(opened: Opener) -> None:
    async with opened() as manager:
        await manager.create_queue(ORDERS)
        await manager.send_many(ORDERS, [durable(), express()])
    async with opened() as manager:
        await manager.send(ORDERS, durable())
        assert [row.lsn for row in await history(manager)] == [1, 2, 3]


async def test_a_message_of_no_queue_keeps_the_manager_from_starting(opened: Opener, tmp_path: Path) -> None:
    async with opened() as manager:
        await manager.create_queue(ORDERS)
        await manager.send(ORDERS, durable())
        changes = Changes()
        changes.queue_deletes.append((manager._core.queues.get(ORDERS).id,))
        changes.queue_deletes.append((manager._core.queues.get(ORDERS + ";journal").id,))
        await manager.store.commit(changes)
    for _ in range(2):
        with pytest.raises(StoreDamagedError, match="which is not there"):
            await QueueManager.open(tmp_path / "store", settings=ManagerSettings())


async def test_closing_twice_is_closing_once(opened: Opener) -> None:
    async with opened() as manager:
        await manager.close()
        await manager.close()
    async with opened() as manager:
        assert manager.name == NAME
