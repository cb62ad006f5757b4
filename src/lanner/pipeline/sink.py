"""``df.write.format("msmq")`` and ``writeStream``: rows as messages.

Every partition is sent by its own task and is there when the task ends; ``commit`` on the driver has
nothing to do. If a job fails half way, the partitions that were sent stay sent, and the same job again,
under the same key, adds the others.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Self
from uuid import uuid4

import pyarrow
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from lanner.model.errors import LannerError
from lanner.pipeline.errors import InvalidOptionError
from lanner.pipeline.managers import connected
from lanner.pipeline.message_columns import Addressed, check_columns, to_messages
from lanner.pipeline.options import SinkOptions
from lanner.pipeline.sending import digest, send_durable, send_transactional

__all__ = ["MsmqStreamWriter", "MsmqWriter", "Sent"]

logger = logging.getLogger("lanner.pipeline")

QUERY_ID = "sql.streaming.queryId"
BATCH_ID = "streaming.sql.batchId"
"""Properties that Spark gives to the tasks of a stream; a writer is not told its batch in any other way."""


@dataclass
class Sent(WriterCommitMessage):
    """What one task sent."""

    partition: int
    messages: int


class MsmqWriter(DataSourceArrowWriter):
    """Sends a data frame."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        # Made once, on the driver: a task that Spark repeats has the same.
        self._key = options.key or str(uuid4())

    @classmethod
    def of(cls, given: Mapping[str, str], schema: StructType, *, overwrite: bool) -> Self:
        """Check everything that can be checked before the first task runs."""
        return cls(_checked(given, schema, overwrite))

    def write(self, iterator: Iterator[pyarrow.RecordBatch]) -> WriterCommitMessage:
        """Send one partition, on an executor."""
        context = _context()
        return _send(self._options, f"spark/{self._key}", context.partitionId(), iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Everything is sent."""

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Some tasks failed: say what is in the queues all the same."""
        _tell_sent(messages, f"key={self._key}")


class MsmqStreamWriter(DataSourceStreamArrowWriter):
    """Sends a stream, each batch once."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    @classmethod
    def of(cls, given: Mapping[str, str], schema: StructType, *, overwrite: bool) -> Self:
        """Check everything that can be checked before the first task runs."""
        options = _checked(given, schema, overwrite)
        if options.key:
            raise InvalidOptionError("'key' is for batches: a stream has its query and batch for a key")
        return cls(options)

    def write(self, iterator: Iterator[pyarrow.RecordBatch]) -> WriterCommitMessage:
        """Send one partition, on an executor."""
        context = _context()
        query, batch = context.getLocalProperty(QUERY_ID), context.getLocalProperty(BATCH_ID)
        if query is None or batch is None:
            raise LannerError("Spark does not tell the batch: without it a replay would send twice")
        return _send(self._options, f"spark/{query}/{batch}", context.partitionId(), iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Everything is sent."""

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Some tasks failed: say what is in the queues all the same."""
        _tell_sent(messages, f"batch {batchId}")


def _checked(given: Mapping[str, str], schema: StructType, overwrite: bool) -> SinkOptions:
    options = SinkOptions.parse(given)
    if overwrite:
        raise InvalidOptionError("a queue cannot be overwritten", hint='write with mode("append")')
    check_columns(schema, options.queue)
    return options


def _context() -> TaskContext:
    context = TaskContext.get()
    assert context is not None, "a writer writes in a task"
    return context


def _send(options: SinkOptions, name: str, partition: int, batches: Iterator[pyarrow.RecordBatch]) -> Sent:
    # Two writes of one foreachBatch may have the same key and different queues.
    key = f"{name}/{partition}/{digest(options.queue)}"
    with connected(options.manager, options.patience) as run:
        send = send_transactional if options.delivery == "transactional" else send_durable
        return Sent(partition, send(run, key, _rows(batches, options.queue)))


def _rows(batches: Iterator[pyarrow.RecordBatch], queue: str) -> Iterator[Addressed]:
    for batch in batches:
        yield from to_messages(batch, queue)


def _tell_sent(messages: list[WriterCommitMessage | None], what: str) -> None:
    sent = [message for message in messages if isinstance(message, Sent)]
    if sent:
        logger.warning(
            "%s failed; %d messages of %d partitions are sent, and are not sent again when it is repeated",
            what,
            sum(message.messages for message in sent),
            len(sent),
        )
