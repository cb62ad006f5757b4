"""The directory of a file: read when it has changed, and changed one table at a time.

A change is made in the text, so that comments and order stay as people wrote them: a table is added at
the end, replaced or cut out. The new text is read back before it is written; if it does not say exactly
what was meant, the file is left alone. It is written beside the old file and renamed over it.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID, uuid4

import msgspec

from lanner.directory.base import (
    DirectoryOffline,
    InvalidDirectoryError,
    ObjectAlreadyExists,
    ObjectNotFound,
    QueryHandle,
    ReadOnlyDirectory,
)
from lanner.directory.export import TABLE_OF, as_written, dump_object
from lanner.directory.file_schema import MAX_FILE_BYTES
from lanner.directory.local_file import LoadedEnterprise, load
from lanner.model.directory_query import AttributeFilter, ObjectType, SortOrder, select, type_of
from lanner.model.enterprise import DirectoryObject, EnterpriseMap, Machine, PublicQueue
from lanner.model.queue import NULL_GUID

__all__ = ["LocalDirectory"]

_PARTS = {
    ObjectType.SITE: "sites",
    ObjectType.ROUTING_LINK: "links",
    ObjectType.CONNECTED_NETWORK: "networks",
    ObjectType.QUEUE_MANAGER: "machines",
    ObjectType.QUEUE: "queues",
}


class LocalDirectory:
    """A directory file (``lanner.directory.base.Directory``)."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stamp: tuple[int, ...] = ()
        self._digest = b""
        self._loaded: LoadedEnterprise | None = None
        self._turn = asyncio.Lock()

    @property
    def loaded(self) -> LoadedEnterprise | None:
        """What was read last, with the places that the checks name."""
        return self._loaded

    async def read(self) -> EnterpriseMap:
        """The file's enterprise; the same object as before unless its content is another."""
        async with self._turn:
            return (await asyncio.to_thread(self._read)).map

    async def check_online(self) -> bool:
        """Whether the file can be read."""
        try:
            await self.read()
        except DirectoryOffline:
            return False
        except InvalidDirectoryError:
            return False
        return True

    async def create_queue(self, queue: PublicQueue) -> UUID:
        """Publish a queue."""
        return await self.create_object(queue)

    async def delete_queue(self, identifier: UUID) -> None:
        """Take a queue out of the directory."""
        await self.delete_object(ObjectType.QUEUE, identifier)

    async def publish_machine(self, machine: Machine) -> None:
        """Create or update what the file says of a queue manager; nothing is written if it says so."""
        known = (await self.read()).machine(machine.id)
        machine = as_written(machine)
        if known is None:
            await self.create_object(machine)
        elif known != machine:
            await self.write_object(machine)

    async def create_object(self, item: DirectoryObject) -> UUID:
        """Create Directory Object (MS-MQDMPR 3.1.7.1.18)."""
        async with self._turn:
            return await asyncio.to_thread(self._create, item)

    async def delete_object(self, kind: ObjectType, identifier: UUID) -> None:
        """Delete Directory Object (MS-MQDMPR 3.1.7.1.19)."""
        async with self._turn:
            await asyncio.to_thread(self._replace, kind, identifier, None)

    async def write_object(self, item: DirectoryObject) -> None:
        """Write Directory (MS-MQDMPR 3.1.7.1.24)."""
        async with self._turn:
            await asyncio.to_thread(self._replace, type_of(item), item.id, item)

    async def replace_all(self, text: str) -> None:
        """Put another description of an enterprise in the place of this one, if it can be read."""
        async with self._turn:
            await asyncio.to_thread(self._replace_all, text)

    async def read_object(self, kind: ObjectType, filters: Sequence[AttributeFilter] = ()) -> DirectoryObject:
        """Read Directory (MS-MQDMPR 3.1.7.1.20)."""
        found = select(await self.read(), kind, filters)
        if not found:
            raise ObjectNotFound(f"no {kind} in {self.path} is as asked for")
        return found[0]

    async def read_begin(
        self, kind: ObjectType, filters: Sequence[AttributeFilter] = (), order: Sequence[SortOrder] = ()
    ) -> QueryHandle:
        """Read Directory Begin (MS-MQDMPR 3.1.7.1.21)."""
        return QueryHandle(select(await self.read(), kind, filters, order))

    async def read_next(self, handle: QueryHandle) -> DirectoryObject | None:
        """Read Directory Next (MS-MQDMPR 3.1.7.1.22)."""
        return next(handle.items, None)

    async def read_end(self, handle: QueryHandle) -> None:
        """Read Directory End (MS-MQDMPR 3.1.7.1.23)."""
        handle.items = iter(())

    async def close(self) -> None:
        """Nothing is open between two calls."""

    # On a thread, one at a time.

    def _read(self) -> LoadedEnterprise:
        try:
            # A file that is renamed over the old one has another number; one that is edited, another time.
            found = self.path.stat()
            stamp = (found.st_ino, found.st_mtime_ns, found.st_size, found.st_ctime_ns)
            if self._loaded is not None and stamp == self._stamp:
                return self._loaded
            with self.path.open("rb") as file:
                data = file.read(MAX_FILE_BYTES + 1)
        except OSError as error:
            raise DirectoryOffline(
                f"the directory file {self.path} cannot be read: {error.strerror or error}"
            ) from None
        digest = hashlib.sha256(data).digest()
        if self._loaded is None or digest != self._digest:
            self._loaded = load(data, str(self.path))
            self._digest = digest
        self._stamp = stamp
        return self._loaded

    def _create(self, item: DirectoryObject) -> UUID:
        with self._locked():
            loaded = self._read()
            if item.id == NULL_GUID:
                item = msgspec.structs.replace(item, id=uuid4())
            item = as_written(item)
            self._refuse_existing(loaded.map, item)
            part = _part(type_of(item))
            meant = loaded.map.changed(**{part: (*getattr(loaded.map, part), item)})
            text = loaded.places.text.rstrip("\n")
            self._write(f"{text}\n\n{dump_object(meant, item)}", meant)
        return item.id

    def _refuse_existing(self, source: EnterpriseMap, item: DirectoryObject) -> None:
        same_id = [one for one in getattr(source, _part(type_of(item))) if one.id == item.id]
        name = str(getattr(item, "path", "") or getattr(item, "name", "") or item.id)
        is_taken = bool(same_id)
        if isinstance(item, PublicQueue):
            if source.host_of(item) is None:
                raise ObjectNotFound(f"no manager is called {item.computer}", hint=f"add it to {self.path}")
            is_taken = is_taken or source.queue_at(item.path) is not None
        elif isinstance(item, Machine):
            is_taken = is_taken or source.machine_named(item.name) is not None
        if is_taken:
            raise ObjectAlreadyExists(f"{name} is in the directory already")

    def _replace(self, kind: ObjectType, identifier: UUID, item: DirectoryObject | None) -> None:
        """Put another object in the place of the one with this identifier, or nothing."""
        with self._locked():
            loaded = self._read()
            item = as_written(item) if item is not None else None
            part = _part(kind)
            known: list[DirectoryObject] = list(getattr(loaded.map, part))
            numbers = [number for number, one in enumerate(known) if one.id == identifier]
            if not numbers:
                raise ObjectNotFound(f"no {kind} has the identifier {identifier}")
            block = loaded.places.block(TABLE_OF[kind], numbers[0])
            if block is None:
                raise self._cannot_edit()
            known[numbers[0] : numbers[0] + 1] = [item] if item is not None else []
            meant = loaded.map.changed(**{part: tuple(known)})
            lines = loaded.places.lines
            # Comments and empty lines at the block's end belong to what follows.
            end = block.end
            while end > block.first + 1 and (
                not lines[end - 1].strip() or lines[end - 1].lstrip()[:1] == "#"
            ):
                end -= 1
            new = dump_object(meant, item).rstrip("\n").split("\n") if item is not None else []
            self._write("\n".join([*lines[: block.first], *new, *lines[end:]]), meant)

    def _replace_all(self, text: str) -> None:
        data = text.encode()
        load(data, "what is to be imported")
        with self._locked():
            self._put(data)

    def _write(self, text: str, meant: EnterpriseMap) -> None:
        try:
            data = text.encode()
            found = load(data, str(self.path))
        except (InvalidDirectoryError, UnicodeEncodeError):
            raise self._cannot_edit() from None
        if any(getattr(found.map, part) != getattr(meant, part) for part in _PARTS.values()):
            raise self._cannot_edit()
        self._put(data)

    def _put(self, data: bytes) -> None:
        beside = self.path.with_name(f".{self.path.name}.{os.getpid()}.new")
        try:
            with beside.open("wb") as file:
                if self.path.exists():
                    os.fchmod(file.fileno(), self.path.stat().st_mode & 0o7777)
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self.path)
            _sync_folder(self.path.parent)
        except OSError as error:
            beside.unlink(missing_ok=True)
            raise ReadOnlyDirectory(
                f"the directory file {self.path} cannot be written: {error.strerror or error}"
            ) from None

    def _cannot_edit(self) -> ReadOnlyDirectory:
        return ReadOnlyDirectory(
            f"{self.path} is written in a way that cannot be changed from here",
            hint="edit it by hand, or rewrite it with lanner directory export",
        )

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other processes from changing the file between our reading and our writing."""
        try:
            file = os.open(self.path.with_name(f".{self.path.name}.lock"), os.O_CREAT | os.O_RDWR, 0o600)
        except OSError as error:
            raise ReadOnlyDirectory(
                f"the directory file {self.path} cannot be locked: {error.strerror or error}"
            ) from None
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
        finally:
            os.close(file)


def _part(kind: ObjectType) -> str:
    try:
        return _PARTS[kind]
    except KeyError:
        raise ReadOnlyDirectory(f"a {kind} cannot be changed from here", hint="edit the file") from None


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
