"""Reading the history."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from lanner.api.context import Api, Stream
from lanner.api.tokens import Caller
from lanner.schema.base import DoneAnswer, In
from lanner.schema.history import (
    BLOCK_LENGTH,
    ConfirmRequest,
    HistoryRequest,
    HistoryStatus,
    ReaderOut,
    ReaderRequest,
)
from lanner.store.history import HistoryReader

__all__ = ["confirm", "forget", "read", "register", "status"]

ARROW = "application/vnd.apache.arrow.stream"
JSON_LINES = "application/x-ndjson"
BLOCKS = "application/vnd.lanner.history-blocks"

_encoder = msgspec.json.Encoder()


async def read(api: Api, caller: Caller, request: HistoryRequest) -> Stream:
    """Read a range of LSNs as JSON lines or as an Arrow stream."""
    # Whoever has sent something is to find it.
    await api.manager.store.flush()
    last = api.manager.history.last_lsn if request.last is None else request.last
    if request.format == "arrow":
        # An extra: where it is missing, this says so before the answer begins.
        from lanner.model.history_arrow import HISTORY_SCHEMA

        return Stream(ARROW, _arrow(api, request, last, HISTORY_SCHEMA))
    if request.format == "blocks":
        return Stream(BLOCKS, _blocks(api, request, last))
    return Stream(JSON_LINES, _json_lines(api, request, last))


async def _json_lines(api: Api, request: HistoryRequest, last: int) -> AsyncIterator[bytes]:
    history = api.manager.history
    first, last = request.first, min(last, history.last_lsn)
    while first <= last:
        rows = await history.rows(first, last)
        if not rows:
            # Retention has dropped what the range begins with.
            first = max(first + 1, await history.first_lsn())
            continue
        if not request.bodies:
            for row in rows:
                row.body = None
        yield b"".join(_encoder.encode(msgspec.structs.asdict(row)) + b"\n" for row in rows)
        first = rows[-1].lsn + 1


async def _blocks(api: Api, request: HistoryRequest, last: int) -> AsyncIterator[bytes]:
    async for some in api.manager.history.blocks(request.first, last, bodies=request.bodies):
        yield b"".join([part for block in some for part in (BLOCK_LENGTH.pack(len(block)), block)])


async def _arrow(api: Api, request: HistoryRequest, last: int, schema: Any) -> AsyncIterator[bytes]:
    import pyarrow

    buffer = io.BytesIO()
    batches = api.manager.history.batches(request.first, last, bodies=request.bodies)
    with pyarrow.ipc.new_stream(buffer, schema) as writer:
        async for batch in batches:
            writer.write_batch(batch)
            yield _drain(buffer)
    yield _drain(buffer)


def _drain(buffer: io.BytesIO) -> bytes:
    data = buffer.getvalue()
    buffer.seek(0)
    buffer.truncate()
    return data


async def status(api: Api, caller: Caller, request: In) -> HistoryStatus:
    """Tell how far the history goes and who reads it."""
    history = api.manager.history
    await api.manager.store.flush()
    return HistoryStatus(
        first_lsn=await history.first_lsn(),
        last_lsn=history.last_lsn,
        readers=tuple([_reader_out(reader) for reader in await history.readers()]),
    )


async def register(api: Api, caller: Caller, request: ReaderRequest) -> ReaderOut:
    """Remember a reader, so that retention waits for it."""
    return _reader_out(await api.manager.history.register(request.name, api.clock.time()))


async def confirm(api: Api, caller: Caller, request: ConfirmRequest) -> ReaderOut:
    """Note how far a reader has got."""
    return _reader_out(await api.manager.history.confirm(request.name, request.lsn, api.clock.time()))


async def forget(api: Api, caller: Caller, request: ReaderRequest) -> DoneAnswer:
    """Forget a reader: retention no longer waits for it."""
    await api.manager.history.forget(request.name)
    return DoneAnswer()


def _reader_out(reader: HistoryReader) -> ReaderOut:
    return ReaderOut(
        name=reader.name, confirmed=reader.confirmed, registered=reader.registered, seen=reader.seen
    )
