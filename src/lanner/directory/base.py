"""What every directory does, whatever it is kept in (MS-MQDMPR 3.1.7.1.18 to 3.1.7.1.25).

A directory hands out snapshots (``read``) and takes single changes. The events of the specification
are here as methods with its names; the statuses of DirectoryOperationResult are exceptions, except
EndOfData, which is ``None``.

``DirectoryOffline`` means that the directory cannot be reached now. Whoever runs a queue manager then
works on with the last good snapshot (``lanner.directory.cache``), sets QueueManager.DirectoryOffline
and asks ``check_online`` every ``CHECK_ONLINE_SECONDS``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import ClassVar, Protocol, runtime_checkable
from uuid import UUID

from lanner.model.codes import StatusCode
from lanner.model.directory_query import AttributeFilter, ObjectType, SortOrder
from lanner.model.enterprise import DirectoryObject, EnterpriseMap, Machine, PublicQueue
from lanner.model.errors import LannerError

__all__ = [
    "CHECK_ONLINE_SECONDS",
    "SITES_UPDATE_SECONDS",
    "SITE_GATES_UPDATE_SECONDS",
    "Directory",
    "DirectoryError",
    "DirectoryOffline",
    "DirectoryOperationResult",
    "InvalidDirectoryError",
    "ObjectAlreadyExists",
    "ObjectNotFound",
    "QueryHandle",
    "ReadOnlyDirectory",
]

CHECK_ONLINE_SECONDS = 60
"""The Directory Online Timer (MS-MQDMPR 3.1.2.5)."""

SITES_UPDATE_SECONDS = 12 * 3600
"""The Directory Sites Update Timer (MS-MQDMPR 3.1.2.1)."""

SITE_GATES_UPDATE_SECONDS = 3600
"""The Directory Site Gates Update Timer (MS-MQDMPR 3.1.2.2)."""


class DirectoryOperationResult(Enum):
    """How a directory operation ended (MS-MQDMPR 3.1.1.17)."""

    SUCCESS = "Success"
    GENERIC_ERROR = "GenericError"
    DIRECTORY_NOT_CONNECTED = "DirectoryNotConnected"
    OBJECT_NOT_FOUND = "ObjectNotFound"
    ATTRIBUTE_NOT_FOUND = "AttributeNotFound"
    END_OF_DATA = "EndOfData"
    OBJECT_ALREADY_EXISTS = "ObjectAlreadyExists"


class DirectoryError(LannerError):
    """A directory operation that failed; ``result`` is its status in the specification."""

    code = StatusCode.MQ_ERROR_NO_DS
    result: ClassVar[DirectoryOperationResult] = DirectoryOperationResult.GENERIC_ERROR


class DirectoryOffline(DirectoryError):  # noqa: N818  # the specification's own name
    """The directory cannot be reached now."""

    result = DirectoryOperationResult.DIRECTORY_NOT_CONNECTED


class ObjectNotFound(DirectoryError):  # noqa: N818  # the specification's own name
    """Nothing in the directory is as asked for."""

    code = StatusCode.MQ_ERROR_QUEUE_NOT_FOUND
    result = DirectoryOperationResult.OBJECT_NOT_FOUND


class ObjectAlreadyExists(DirectoryError):  # noqa: N818  # the specification's own name
    """The directory has such an object already."""

    code = StatusCode.MQ_ERROR_QUEUE_EXISTS
    result = DirectoryOperationResult.OBJECT_ALREADY_EXISTS


class ReadOnlyDirectory(DirectoryError):  # noqa: N818  # it names the case
    """This directory, or this kind of object in it, cannot be changed from here."""

    code = StatusCode.MQ_ERROR_ACCESS_DENIED


class InvalidDirectoryError(DirectoryError):
    """What was read is no directory: a file or an answer that cannot be understood."""


class QueryHandle:
    """A read that has begun (MS-MQDMPR 3.1.7.1.21); its content is the directory's own business."""

    __slots__ = ("items",)

    def __init__(self, items: Iterable[DirectoryObject]) -> None:
        self.items = iter(items)


@runtime_checkable
class Directory(Protocol):
    """A place where an enterprise is described. Every method may raise ``DirectoryOffline``."""

    async def read(self) -> EnterpriseMap:
        """Give the enterprise as it is now; the same object as before if nothing has changed."""
        ...

    async def check_online(self) -> bool:
        """Whether the directory can be reached (Check Directory Online, MS-MQDMPR 3.1.7.1.25)."""
        ...

    async def create_queue(self, queue: PublicQueue) -> UUID:
        """Publish a queue and give its identifier; the null identifier asks for a new one.

        Raises ``ObjectAlreadyExists`` if its path is taken, ``ObjectNotFound`` if its host is unknown.
        """
        ...

    async def delete_queue(self, identifier: UUID) -> None:
        """Take a public queue out of the directory; raises ``ObjectNotFound``."""
        ...

    async def publish_machine(self, machine: Machine) -> None:
        """Create or update what the directory says of a queue manager."""
        ...

    async def create_object(self, item: DirectoryObject) -> UUID:
        """Create Directory Object (MS-MQDMPR 3.1.7.1.18)."""
        ...

    async def delete_object(self, kind: ObjectType, identifier: UUID) -> None:
        """Delete Directory Object (MS-MQDMPR 3.1.7.1.19)."""
        ...

    async def read_object(self, kind: ObjectType, filters: Sequence[AttributeFilter] = ()) -> DirectoryObject:
        """Read Directory (MS-MQDMPR 3.1.7.1.20): the first that matches, or ``ObjectNotFound``."""
        ...

    async def read_begin(
        self,
        kind: ObjectType,
        filters: Sequence[AttributeFilter] = (),
        order: Sequence[SortOrder] = (),
    ) -> QueryHandle:
        """Read Directory Begin (MS-MQDMPR 3.1.7.1.21)."""
        ...

    async def read_next(self, handle: QueryHandle) -> DirectoryObject | None:
        """Read Directory Next (MS-MQDMPR 3.1.7.1.22); ``None`` is EndOfData."""
        ...

    async def read_end(self, handle: QueryHandle) -> None:
        """Read Directory End (MS-MQDMPR 3.1.7.1.23)."""
        ...

    async def write_object(self, item: DirectoryObject) -> None:
        """Write Directory (MS-MQDMPR 3.1.7.1.24): replace the object with this identifier."""
        ...

    async def replace_all(self, text: str) -> None:
        """Put another enterprise in the place of this one, given as a directory file."""
        ...

    async def close(self) -> None:
        """Hang up; nothing may be asked after."""
        ...
