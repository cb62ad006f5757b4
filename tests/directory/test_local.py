from __future__ import annotations

import asyncio
import os
from pathlib import Path
from uuid import UUID

import msgspec
import pytest
from tests.directory.test_local_file import CONTOSO

from lanner.directory.base import (
    Directory,
    DirectoryOffline,
    InvalidDirectoryError,
    ObjectAlreadyExists,
    ObjectNotFound,
    ReadOnlyDirectory,
)
from lanner.directory.local import LocalDirectory
from lanner.model.directory_query import AttributeFilter, ObjectType, Operator, SortOrder
from lanner.model.enterprise import Machine, PublicQueue, Site
from lanner.model.queue import NULL_GUID, QueueProperties

COMMENTED = "# who made this\n" + CONTOSO.replace("[[queue]]", "# the queues\n[[queue]]") + "\n# the end\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "enterprise.toml"
    found.write_text(COMMENTED)
    return found


def directory(path: Path) -> LocalDirectory:
    return LocalDirectory(path)


async def test_it_is_a_directory(path: Path) -> None:
    found = directory(path)
    assert isinstance(found, Directory)
    await found.read()
    assert found.loaded is not None
    await found.close()


async def test_the_same_content_is_the_same_snapshot(path: Path) -> None:
    found = directory(path)
    first = await found.read()
    assert await found.read() is first
    os.utime(path, ns=(1, 1))
    assert await found.read() is first
    path.write_text(COMMENTED.replace("cost = 3", "cost = 4"))
    second = await found.read()
    assert second is not first
    assert second.links[0].cost == 4


async def test_a_change_within_the_same_second_and_size_is_seen(path: Path) -> None:
    found = directory(path)
    await found.read()
    before = path.stat()
    path.write_text(COMMENTED.replace("cost = 3", "cost = 5"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (await found.read()).links[0].cost == 5


async def test_away_and_back(path: Path) -> None:
    found = directory(path)
    assert await found.check_online()
    text = path.read_text()
    path.unlink()
    assert not await found.check_online()
    with pytest.raises(DirectoryOffline, match="No such file"):
        await found.read()
    path.write_text("[")
    assert not await found.check_online()
    with pytest.raises(InvalidDirectoryError):
        await found.read()
    path.write_text(text)
    assert await found.check_online()


async def test_queues_are_created_and_deleted_and_comments_stay(path: Path) -> None:
    found = directory(path)
    before = path.read_text()
    queue = PublicQueue(
        id=NULL_GUID, path=r"LON-GW\invoices", properties=QueueProperties(label="Invoices", journaling=True)
    )
    identifier = await found.create_queue(queue)
    assert identifier != NULL_GUID
    kept = (await found.read()).queue(identifier)
    assert kept == msgspec.structs.replace(queue, id=identifier)
    assert path.read_text().startswith(before.rstrip("\n"))
    await found.delete_queue(identifier)
    assert (await found.read()).queue(identifier) is None
    assert path.read_text().rstrip("\n") == before.rstrip("\n")
    first = (await found.read()).queues[0]
    await found.delete_queue(first.id)
    text = path.read_text()
    assert "# the queues" in text
    assert "# the end" in text
    assert "[[queue]]" not in text


async def test_labels_of_all_sorts_and_what_is_no_directory_attribute(path: Path) -> None:
    found = directory(path)
    properties = QueueProperties(label='a\tb "c" \\ ü\n', max_aborts=7, quota=5)
    identifier = await found.create_queue(
        PublicQueue(id=NULL_GUID, path=r"LON-1\more", properties=properties)
    )
    kept = (await found.read()).queue(identifier)
    assert kept is not None
    assert kept.properties == msgspec.structs.replace(properties, max_aborts=0)
    broken = PublicQueue(id=NULL_GUID, path=r"LON-1\less", properties=QueueProperties(label="\ud800"))
    with pytest.raises(ReadOnlyDirectory):
        await found.create_queue(broken)


async def test_what_cannot_be_created_or_deleted(path: Path) -> None:
    found = directory(path)
    with pytest.raises(ObjectAlreadyExists):
        await found.create_queue(PublicQueue(id=NULL_GUID, path=r"lon-1\ORDERS"))
    with pytest.raises(ObjectNotFound, match="no manager is called ROM-1"):
        await found.create_queue(PublicQueue(id=NULL_GUID, path=r"ROM-1\orders"))
    with pytest.raises(ObjectNotFound):
        await found.delete_queue(UUID(int=4))
    with pytest.raises(ObjectAlreadyExists):
        await found.create_object(Machine(id=NULL_GUID, name="lon-1"))
    with pytest.raises(ReadOnlyDirectory):
        await found.write_object((await found.read()).enterprise)
    assert path.read_text() == COMMENTED


async def test_a_manager_is_published(path: Path) -> None:
    found = directory(path)
    source = await found.read()
    stamp = path.stat().st_mtime_ns
    await found.publish_machine(source.machines[0])
    assert path.stat().st_mtime_ns == stamp  # nothing new, nothing written
    changed = msgspec.structs.replace(source.machines[0], version="6.3", address="10.0.0.9")
    await found.publish_machine(changed)
    assert (await found.read()).machine(changed.id) == changed
    stamp = path.stat().st_mtime_ns
    await found.publish_machine(msgspec.structs.replace(changed, security=b"sd", signing_keys=b"keys"))
    assert path.stat().st_mtime_ns == stamp  # keys and descriptors are not for a file
    new = Machine(id=UUID(int=12), name="LON-2", sites=source.machines[0].sites)
    await found.publish_machine(new)
    assert (await found.read()).machine_named("LON-2") == new
    assert "# the queues" in path.read_text()


async def test_events_of_reading(path: Path) -> None:
    found = directory(path)
    name = AttributeFilter("ComputerName", Operator.EQUALS, "lon-gw")
    one = await found.read_object(ObjectType.QUEUE_MANAGER, [name])
    assert isinstance(one, Machine)
    assert one.name == "LON-GW"
    with pytest.raises(ObjectNotFound):
        await found.read_object(ObjectType.SITE, [AttributeFilter("Name", Operator.EQUALS, "Rome")])
    handle = await found.read_begin(
        ObjectType.QUEUE_MANAGER, order=[SortOrder("ComputerName", 1, ascending=False)]
    )
    names = []
    while (item := await found.read_next(handle)) is not None:
        assert isinstance(item, Machine)
        names.append(item.name)
    assert names == ["PAR-GW", "LON-GW", "LON-1"]
    handle = await found.read_begin(ObjectType.SITE)
    await found.read_end(handle)
    assert await found.read_next(handle) is None


async def test_other_objects_are_created_written_and_deleted(path: Path) -> None:
    found = directory(path)
    rome = Site(id=UUID(int=8), name="Rome")
    await found.create_object(rome)
    await found.write_object(msgspec.structs.replace(rome, foreign=True))
    kept = (await found.read()).site_named("Rome")
    assert kept is not None
    assert kept.foreign
    await found.delete_object(ObjectType.SITE, rome.id)
    assert (await found.read()).site_named("Rome") is None


async def test_a_file_that_cannot_be_edited_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "inline.toml"
    text = 'site = [{name = "A"}]\nqueue = [{path = \'X\\q\'}]\nmanager = [{name = "X", sites = ["A"]}]\n'
    path.write_text(text + '[enterprise]\nname = "x"\n')
    found = directory(path)
    queue = (await found.read()).queues[0]
    with pytest.raises(ReadOnlyDirectory, match="written in a way"):
        await found.delete_queue(queue.id)
    with pytest.raises(ReadOnlyDirectory, match="written in a way"):
        await found.create_queue(PublicQueue(id=NULL_GUID, path=r"X\other"))
    assert path.read_text().startswith(text)


async def test_a_folder_that_cannot_be_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = directory(path)

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(ReadOnlyDirectory, match="Permission denied"):
        await found.create_queue(PublicQueue(id=NULL_GUID, path=r"LON-1\more"))
    assert path.read_text() == COMMENTED
    assert [one.name for one in path.parent.iterdir() if one.name.endswith(".new")] == []


async def test_two_who_change_the_file_at_once_both_succeed(path: Path) -> None:
    one, other = directory(path), directory(path)
    await asyncio.gather(
        *(
            who.create_queue(PublicQueue(id=NULL_GUID, path=f"LON-1\\{number}{name}"))
            for name, who in (("a", one), ("b", other))
            for number in range(10)
        )
    )
    assert len((await one.read()).queues) == 21
