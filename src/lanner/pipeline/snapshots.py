"""Reading what is in the managers now: messages, dead letters and queues. It is looked at, never received."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow
from pyspark.sql.datasource import InputPartition

from lanner.client import AsyncClient, MessageOut, QueueOut
from lanner.model.codes import MessageClass
from lanner.model.errors import ConnectionFailedError, QueueNotFoundError
from lanner.model.queue import QueueKind
from lanner.pipeline.batches import from_rows
from lanner.pipeline.errors import ManagerAwayError
from lanner.pipeline.filters import QueueFilter
from lanner.pipeline.managers import Run, ask, connected, look_at
from lanner.pipeline.options import ManagerAddress, SourceOptions
from lanner.pipeline.schema import Kind

__all__ = ["SnapshotPart", "plan_snapshot", "read_snapshot"]

DEAD_LETTER_QUEUES = (r".\system$;deadletter", r".\system$;deadxact")
JOURNAL = ";journal"

FIRST_LOOK = 8
MAX_LOOK = 1000
LOOK_BYTES = 16 * 1024 * 1024
"""Messages of the first request, of any, and the bytes that an answer should come to."""


@dataclass(frozen=True)
class SnapshotPart(InputPartition):
    """One queue of one manager, or all queues of it."""

    manager: ManagerAddress
    name: str
    id: str
    queue: str = ""


def plan_snapshot(options: SourceOptions, wanted: QueueFilter) -> list[SnapshotPart]:
    """A part for every queue with messages; for the list of queues, one for every manager."""
    fail, patience = options.fail_on_data_loss, options.patience
    fleet = look_at(options.managers, patience, fail=fail, history=False)
    if options.what == "queues":
        return [SnapshotPart(fleet.addresses[seen.name], seen.name, seen.id) for seen in fleet.seen]
    addresses = [fleet.addresses[seen.name] for seen in fleet.seen]
    parts: list[SnapshotPart] = []
    for seen, manager, queues in zip(fleet.seen, addresses, ask(addresses, patience, _queues), strict=True):
        if queues is None:
            raise ManagerAwayError(f"the manager {seen.name} at {manager.url} does not answer any more")
        names = _dead_letter_names(options) if options.what == "deadletters" else _names(queues)
        parts.extend(
            SnapshotPart(manager, seen.name, seen.id, queue)
            for queue in names
            if options.what == "deadletters" or wanted.takes(queue, seen.name)
        )
    return parts


async def _queues(client: AsyncClient) -> tuple[QueueOut, ...]:
    return await client.queues()


def _names(queues: tuple[QueueOut, ...]) -> Iterator[str]:
    for queue in queues:
        if queue.messages:
            yield queue.path
            yield from (f"{queue.path};{subqueue}" for subqueue in queue.subqueues)
        if queue.journal_messages and queue.kind is not QueueKind.OUTGOING:
            yield queue.path + JOURNAL


def _dead_letter_names(options: SourceOptions) -> tuple[str, ...]:
    return (options.queue,) if options.queue else DEAD_LETTER_QUEUES


def read_snapshot(
    part: SnapshotPart, kind: Kind, schema: pyarrow.Schema, wanted: QueueFilter, patience: float
) -> Iterator[pyarrow.RecordBatch]:
    """Give the rows of a part as they are now."""
    whose = {"manager": part.name, "manager_id": part.id}
    try:
        with connected(part.manager, patience) as run:
            if kind == "queues":
                queues = [queue for queue in run(run.client.queues()) if wanted.takes(queue.path, part.name)]
                yield from from_rows([whose | _queue_row(queue) for queue in queues], schema)
                return
            messages = _browse(run, part.queue, bodies="body" in schema.names)
            if kind == "deadletters":
                messages = (message for message in messages if _is_dead(message))
            yield from from_rows(
                (
                    whose | {"queue": part.queue, "reason": message.class_text} | _message_row(message)
                    for message in messages
                ),
                schema,
            )
    except ConnectionFailedError as error:
        raise ManagerAwayError(f"the manager {part.name} at {part.manager.url} does not answer") from error


def _browse(run: Run, queue: str, *, bodies: bool) -> Iterator[MessageOut]:
    after, count = -1, FIRST_LOOK
    while True:
        try:
            messages = run(run.client.peek(queue, count=count, after=after, bodies=bodies))
        except QueueNotFoundError:
            return  # deleted since the plan was made: there is nothing in it now
        yield from messages
        if not messages:
            return
        after = messages[-1].lookup_id
        size = sum(len(message.body) + len(message.extension) for message in messages)
        fitting = len(messages) * LOOK_BYTES // max(size, 1)
        count = max(1, min(fitting, count * 8, MAX_LOOK))


def _is_dead(message: MessageOut) -> bool:
    return message.message_class >= MessageClass.NACK_BAD_DESTINATION_QUEUE


def _message_row(message: MessageOut) -> dict[str, Any]:
    row = msgspec.structs.asdict(message)
    row["message_id"] = row.pop("id")
    row["sent_time"] = _microseconds(message.sent_time)
    row["arrival_time"] = _microseconds(message.arrival_time)
    row["source_machine"] = str(message.source_machine) if message.source_machine else None
    return row


def _queue_row(queue: QueueOut) -> dict[str, Any]:
    row = msgspec.structs.asdict(queue)
    row["queue_id"] = str(row.pop("id"))
    row["kind"] = queue.kind.value
    row["created"] = _microseconds(queue.created)
    row["modified"] = _microseconds(queue.modified)
    return row


def _microseconds(seconds: float) -> int:
    return round(seconds * 1_000_000)
