"""Which queue a name means on this machine (MS-MQDMPR 3.1.7.1.5, 3.1.7.1.26, 3.1.7.3.8)."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from uuid import UUID

from lanner.manager.queues import OutgoingQueue, Queue
from lanner.model.errors import QueueNotFoundError, UnsupportedOperationError
from lanner.model.format_name import (
    DirectName,
    DistributionListName,
    FormatName,
    MachineName,
    MultipleName,
    PrivateName,
    PublicName,
)
from lanner.model.names import QueueKind as PathKind
from lanner.model.names import QueueSuffix, canonical_host
from lanner.model.path_name import PathName, parse_name
from lanner.model.queue import QueueKind

__all__ = ["AnyName", "QueueTable"]

AnyName = str | PathName | FormatName

LOCAL_NAMES = (".", "localhost")

MAX_PARSED = 10_000
MAX_PARSED_LENGTH = 300
"""How many parsed names are remembered, and how long each may be."""

_MACHINE_QUEUE_KEYS = {
    QueueSuffix.JOURNAL: r".\system$;journal",
    QueueSuffix.DEADLETTER: r".\system$;deadletter",
    QueueSuffix.DEADXACT: r".\system$;deadxact",
}


class QueueTable:
    """Every queue of the manager, and the names that lead to each."""

    def __init__(self, name: str, identifier: UUID, aliases: tuple[str, ...]) -> None:
        self.machine_name = name
        self.machine_id = identifier
        self._local_names = {canonical_host(text).casefold() for text in (name, *LOCAL_NAMES, *aliases)}
        self._by_id: dict[int, Queue] = {}
        self._by_key: dict[str, Queue] = {}
        self._by_identifier: dict[UUID, Queue] = {}
        self._by_number: dict[int, Queue] = {}
        self._format_names: dict[int, str] = {}
        self._parsed: dict[str, FormatName | PathName] = {}
        """Names that were used lately: applications use few, and each of them with every message."""
        self.http_ports: set[int] = set()
        """Where this manager listens for HTTP: another port is somebody else's."""
        self.outgoing_count = 0
        self._next_id = 1
        self._next_number = 1

    def __iter__(self) -> Iterator[Queue]:
        return iter(tuple(self._by_id.values()))

    # Keeping the table.

    def add(self, queue: Queue) -> None:
        """Make a queue known by all its names."""
        self._by_id[queue.id] = queue
        self.outgoing_count += queue.kind is QueueKind.OUTGOING
        self._by_key[queue.key] = queue
        if queue.kind is QueueKind.PUBLIC:
            self._by_identifier[queue.record.identifier] = queue
        self._next_id = max(self._next_id, queue.id + 1)
        if queue.record.number:
            self._by_number[queue.record.number] = queue
            self._next_number = max(self._next_number, queue.record.number + 1)

    def remove(self, queue: Queue) -> None:
        """Forget a queue."""
        del self._by_id[queue.id]
        self.outgoing_count -= queue.kind is QueueKind.OUTGOING
        if self._by_key[queue.key] is queue:
            del self._by_key[queue.key]
        self._by_identifier.pop(queue.record.identifier, None)
        self._by_number.pop(queue.record.number, None)
        self._format_names.pop(queue.id, None)

    def next_id(self) -> int:
        """Give out a number for a new queue: never twice while its messages could still refer to it."""
        self._next_id += 1
        return self._next_id - 1

    def next_private_number(self) -> int:
        """Give out a PrivateQueueNumber."""
        self._next_number += 1
        return self._next_number - 1

    def by_id(self) -> dict[int, Queue]:
        """The queues by the store's number."""
        return self._by_id

    def outgoing(self) -> list[OutgoingQueue]:
        """The queues that lead elsewhere."""
        return [queue for queue in self if isinstance(queue, OutgoingQueue)]

    def local(self) -> list[Queue]:
        """The queues of this machine, journals and subqueues left out, by name."""
        own = (QueueKind.PRIVATE, QueueKind.PUBLIC, QueueKind.SYSTEM)
        return sorted((queue for queue in self if queue.kind in own), key=lambda queue: queue.key)

    # Finding.

    def is_local(self, host: str) -> bool:
        """Whether a host name or address means this machine."""
        return host.casefold() in self._local_names

    def add_local_name(self, host: str) -> None:
        """Learn another name or address of this machine."""
        self._local_names.add(canonical_host(host).casefold())

    def is_local_direct(self, name: DirectName) -> bool:
        """Whether a direct name means this queue manager."""
        is_other_port = name.port is not None and self.http_ports and name.port not in self.http_ports
        return self.is_local(name.host) and not is_other_port

    def parse(self, name: AnyName) -> FormatName | PathName:
        """Read a name, and turn names of this machine's queues into local path names."""
        known = self._parsed.get(name) if isinstance(name, str) else None
        if known is not None:
            return known
        parsed = parse_name(name) if isinstance(name, str) else name
        if isinstance(parsed, PathName) and not parsed.is_local:
            parsed = parsed.with_computer(".") if self.is_local(parsed.computer) else parsed.to_direct_os()
        if isinstance(name, str) and len(name) <= MAX_PARSED_LENGTH:
            if len(self._parsed) >= MAX_PARSED:
                self._parsed.clear()
            self._parsed[name] = parsed
        return parsed

    def find(self, name: AnyName) -> Queue | None:
        """Find a queue of this manager, local or outgoing. One that is being deleted is not there."""
        queue = self._find(self.parse(name))
        return None if queue is None or queue.is_deleted else queue

    def is_taken(self, path: PathName) -> bool:
        """Whether a queue has this path name, if only until it is deleted."""
        return path.key in self._by_key

    def _find(self, parsed: FormatName | PathName) -> Queue | None:
        if isinstance(parsed, PathName):
            return self._by_key.get(parsed.key)
        if isinstance(parsed, DirectName) and self.is_local_direct(parsed):
            return self._by_key.get(self._local_key(parsed))
        if isinstance(parsed, PublicName) and parsed.queue_id in self._by_identifier:
            return self._relative(self._by_identifier[parsed.queue_id], parsed)
        if isinstance(parsed, PrivateName) and parsed.machine_id == self.machine_id:
            return self._relative(self._by_number.get(parsed.number), parsed)
        if isinstance(parsed, MachineName) and parsed.machine_id == self.machine_id:
            return self._by_key.get(_MACHINE_QUEUE_KEYS.get(parsed.suffix, ""))
        return self._by_key.get(parsed.key)

    def get(self, name: AnyName) -> Queue:
        """Find a queue of this manager, or say which one was probably meant."""
        queue = self.find(name)
        if queue is None:
            raise self.not_found(name)
        return queue

    def names_local_queue(self, name: FormatName | PathName) -> bool:
        """Whether a name can only mean a queue of this machine, there or not."""
        if isinstance(name, PathName):
            return self.is_local(name.computer)
        if isinstance(name, DirectName):
            return self.is_local_direct(name)
        return isinstance(name, PrivateName | MachineName) and name.machine_id == self.machine_id

    def not_found(self, name: AnyName) -> QueueNotFoundError:
        """Make the error that suggests the nearest right name."""
        parsed = self.parse(name)
        wanted = str(parsed)
        if isinstance(parsed, DirectName) and self.is_local_direct(parsed):
            nearest = self.nearest(self._local_key(parsed))
        else:
            nearest = self.nearest(wanted)
        hint = f"did you mean {nearest}?" if nearest else "list the queues, or create it"
        return QueueNotFoundError(f"there is no queue {wanted}", hint=hint)

    def nearest(self, wanted: str) -> str | None:
        """The name of the queue that is spelled most like this."""
        names = {queue.key: queue.name for queue in self if not queue.is_deleted}
        close = difflib.get_close_matches(wanted.casefold(), names, n=1, cutoff=0.6)
        return names[close[0]] if close else None

    def expand(self, name: FormatName | PathName) -> tuple[FormatName | PathName, ...]:
        """Expand Format Name (3.1.7.3.8): the single names it stands for, sorted, each once."""
        if isinstance(name, DistributionListName):
            raise UnsupportedOperationError(
                f"{name} cannot be expanded: no directory is configured", hint="name the queues one by one"
            )
        if not isinstance(name, MultipleName):
            return (name,)
        for element in name.elements:
            self.expand(element)
        unique = {element.key: element for element in name.elements}
        return tuple(unique[key] for key in sorted(unique))

    # Naming.

    def format_name(self, queue: Queue) -> str:
        """The format name by which others reach a queue of this machine."""
        known = self._format_names.get(queue.id)
        if known is None:
            known = self._format_names[queue.id] = self._make_format_name(queue)
        return known

    def _make_format_name(self, queue: Queue) -> str:
        if isinstance(queue, OutgoingQueue):
            return queue.name
        return str(queue.path.with_computer(self.machine_name).to_direct_os())

    def _local_key(self, name: DirectName) -> str:
        if name.suffix.is_read_only and not name.queue:
            return _MACHINE_QUEUE_KEYS[name.suffix]
        kind = PathKind.PRIVATE if name.is_private else PathKind.PUBLIC
        journal = name.suffix is QueueSuffix.JOURNAL
        return PathName(".", name.queue, kind, name.subqueue, journal).key

    @staticmethod
    def _relative(queue: Queue | None, name: PublicName | PrivateName) -> Queue | None:
        if queue is None:
            return None
        if name.suffix is QueueSuffix.JOURNAL:
            return queue.journal
        if name.subqueue:
            return queue.subqueues.get(name.subqueue.casefold())
        return queue
