"""Sending the rows of one partition, once, however often it is tried.

A manager remembers the key of a send or transaction with what came of it, in the commit of the messages
themselves. The same key again adds nothing. The key here is of the query, the batch and the partition, so a
batch that Spark repeats after a crash finds what it had sent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from itertools import chain

from lanner.client import MessageIn
from lanner.model.errors import LannerError
from lanner.pipeline.managers import Run
from lanner.pipeline.message_columns import Addressed
from lanner.schema.messages import SendAnswer

__all__ = ["ReplayMismatchError", "send_durable", "send_transactional"]

CHUNK_ROWS = 1000
CHUNK_BYTES = 16 * 1024 * 1024
"""Messages and bytes of one request; the API takes 1,000 and 64 MB."""

MAX_TRANSACTION = 100_000
"""Messages of one transaction, as the manager takes them."""


class ReplayMismatchError(LannerError):
    """A partition was sent before under the same key, and had other rows then."""


def send_durable(run: Run, key: str, rows: Iterable[Addressed]) -> int:
    """Send chunk after chunk, each all or nothing under a key of its own."""
    count = 0
    for number, chunk in enumerate(_chunks(rows)):
        for queue, messages in _by_queue(chunk).items():
            name = f"{key}/{number}/{digest(queue)}"
            answer = run(run.client.send_many(queue, messages, key=name))
            _check(answer, len(messages), name)
            count += len(messages)
    return count


def send_transactional(run: Run, key: str, rows: Iterable[Addressed]) -> int:
    """Send everything in one transaction: all of it is there at once, or nothing is."""
    chunks = _chunks(rows)
    first, second = next(chunks, None), next(chunks, None)
    if first is None:
        return 0
    queues = _by_queue(first)
    if second is None and len(queues) == 1:  # one request instead of three
        ((queue, messages),) = queues.items()
        answer = run(run.client.send_many(queue, messages, key=key, transactional=True))
        _check(answer, len(messages), key)
        return len(messages)
    return run(_in_transaction(run, key, chain([first], [second] if second else [], chunks)))


async def _in_transaction(run: Run, key: str, chunks: Iterable[list[Addressed]]) -> int:
    count = 0
    async with run.client.transaction(key=key) as transaction:
        for chunk in chunks:
            count += len(chunk)
            if count > MAX_TRANSACTION:
                raise LannerError(
                    f"a partition has more than {MAX_TRANSACTION:,} rows: too many for a transaction",
                    hint="repartition the data frame, or use delivery=durable",
                )
            for queue, messages in _by_queue(chunk).items():
                await transaction.send_many(queue, messages)
    assert transaction.outcome is not None
    _check(transaction.outcome, count, key)
    return count


def digest(text: str) -> str:
    """A short name for a queue, whose own may be longer than a key."""
    return hashlib.sha256(text.lower().encode()).hexdigest()[:16]


def _chunks(rows: Iterable[Addressed]) -> Iterator[list[Addressed]]:
    # Where one chunk ends depends on the rows alone: a repeated partition has the same chunks.
    chunk: list[Addressed] = []
    size = 0
    for row in rows:
        length = len(row[1].body) + len(row[1].extension)
        if chunk and (len(chunk) >= CHUNK_ROWS or size + length > CHUNK_BYTES):
            yield chunk
            chunk, size = [], 0
        chunk.append(row)
        size += length
    if chunk:
        yield chunk


def _by_queue(chunk: list[Addressed]) -> dict[str, list[MessageIn]]:
    queues: dict[str, list[MessageIn]] = {}
    for queue, message in chunk:
        queues.setdefault(queue, []).append(message)
    return queues


def _check(answer: SendAnswer, count: int, key: str) -> None:
    if answer.replayed and len(answer.ids) != count:
        raise ReplayMismatchError(
            f"{key} was sent before with {len(answer.ids)} messages and has {count} now: "
            "the batch was not repeated as it was",
            hint="let what feeds the sink be deterministic: no changed partitioning or options in mid-query",
        )
