"""The async client."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from lanner.client.address import Address, find_address
from lanner.client.transport import Transport
from lanner.model.errors import LannerError
from lanner.model.history import HistoryRow
from lanner.schema.base import MAX_BATCH, MAX_WAIT, DoneAnswer, In
from lanner.schema.dead_letters import (
    DeadLetterOut,
    DeadLettersAnswer,
    DeadLettersRequest,
    LookupRequest,
    ReplayAnswer,
    ReplayedOut,
    ReplayRequest,
    WhyAnswer,
    WhyRequest,
)
from lanner.schema.directory import DirectoryAnswer, ReplaceDirectoryRequest
from lanner.schema.history import (
    BLOCK_LENGTH,
    MAX_BLOCK,
    ConfirmRequest,
    HistoryRequest,
    HistoryStatus,
    ReaderOut,
    ReaderRequest,
)
from lanner.schema.manager import (
    BackupAnswer,
    BackupRequest,
    CompactAnswer,
    FlowControlRequest,
    StatusAnswer,
    TokenAnswer,
    TokenNameRequest,
    TokenOut,
    TokenRequest,
    TokensAnswer,
)
from lanner.schema.messages import (
    MessageIn,
    MessageOut,
    MessagesAnswer,
    MoveRequest,
    PeekRequest,
    ReceiveRequest,
    SendAnswer,
    SendRequest,
)
from lanner.schema.queues import (
    ChangeQueueRequest,
    CreateQueueRequest,
    PathAnswer,
    PlanAnswer,
    PlanRequest,
    PurgeAnswer,
    QueueOut,
    QueueRequest,
    QueuesAnswer,
)
from lanner.schema.srmp import (
    AddRedirectionRequest,
    Kind,
    RedirectionsAnswer,
    RedirectionsRequest,
    RemoveRedirectionRequest,
    ResetAnswer,
)
from lanner.schema.transactions import BeginRequest, TransactionAnswer, TransactionRequest

__all__ = ["AsyncClient", "AsyncTransaction"]

PATIENCE = 10.0
"""Seconds to wait for a manager that is away, by default."""

POLL_SECONDS = 30.0
"""How long one request of an iteration waits for the next message."""

MAINTENANCE_SECONDS = 3600.0
"""How long a backup or compaction may take: a large store is copied at the speed of the disk."""


class AsyncClient:
    """A client of one queue manager. Make it with :meth:`connect`, and use it in ``async with``."""

    def __init__(self, address: Address, *, patience: float = PATIENCE) -> None:
        self._transport = Transport(address, patience)

    @classmethod
    def connect(
        cls,
        *,
        data: str | Path | None = None,
        api: str | None = None,
        token: str | None = None,
        patience: float = PATIENCE,
    ) -> Self:
        """Find the manager by data directory, by address and token, or by the environment."""
        return cls(find_address(data=data, api=api, token=token), patience=patience)

    async def close(self) -> None:
        """Close all connections."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # Messages.

    async def send(
        self,
        queue: str,
        body: bytes | str | MessageIn,
        *,
        key: str | None = None,
        transactional: bool = False,
        **attributes: Any,
    ) -> str:
        """Send one message, given as its body and attributes or as a whole; returns its identifier."""
        message = body if isinstance(body, MessageIn) else make_message(body, **attributes)
        answer = await self.send_many(queue, [message], key=key, transactional=transactional)
        return answer.ids[0]

    async def send_many(
        self,
        queue: str,
        messages: Sequence[MessageIn],
        *,
        key: str | None = None,
        transactional: bool = False,
        transaction: str | None = None,
    ) -> SendAnswer:
        """Send messages together: all of them, or none. With a key it is repeated safely."""
        request = SendRequest(
            queue=queue,
            messages=tuple(messages),
            key=key,
            transactional=transactional,
            transaction=transaction,
        )
        return await self._transport.call(
            "POST", "/v1/messages/send", request, SendAnswer, repeatable=key is not None
        )

    async def receive(
        self, queue: str, *, count: int = 1, wait: float = 0.0, **options: Any
    ) -> tuple[MessageOut, ...]:
        """Receive up to ``count`` messages, waiting up to ``wait`` seconds for the first.

        ``options``: ``message_id``, ``correlation_id``, ``lookup_id`` with ``action``, ``transaction``.
        """
        while True:
            this_wait = min(wait, MAX_WAIT)
            request = ReceiveRequest(queue=queue, count=count, wait=this_wait, **options)
            answer = await self._transport.call(
                "POST", "/v1/messages/receive", request, MessagesAnswer, wait=this_wait
            )
            wait -= this_wait
            if answer.messages or wait <= 0:
                return answer.messages

    async def peek(
        self, queue: str, *, count: int = 1, wait: float = 0.0, after: int = -1, bodies: bool = True
    ) -> tuple[MessageOut, ...]:
        """Look at up to ``count`` messages behind a lookup identifier, without taking them."""
        request = PeekRequest(queue=queue, count=count, wait=min(wait, MAX_WAIT), after=after, bodies=bodies)
        answer = await self._transport.call(
            "POST", "/v1/messages/peek", request, MessagesAnswer, wait=wait, repeatable=True
        )
        return answer.messages

    async def move(self, queue: str, lookup_id: int, target: str, *, transaction: str | None = None) -> None:
        """Move a message to another queue or subqueue."""
        request = MoveRequest(queue=queue, lookup_id=lookup_id, target=target, transaction=transaction)
        await self._transport.call("POST", "/v1/messages/move", request, DoneAnswer)

    async def iterate(
        self, queue: str, *, count: int = 1, wait: float | None = None
    ) -> AsyncIterator[MessageOut]:
        """Receive one message after the other; ends when none comes for ``wait`` seconds, if given."""
        while True:
            messages = await self.receive(queue, count=count, wait=POLL_SECONDS if wait is None else wait)
            for message in messages:
                yield message
            if not messages and wait is not None:
                return

    async def browse(self, queue: str, *, bodies: bool = True) -> AsyncIterator[MessageOut]:
        """Look at every message of a queue, in order, without taking any."""
        after = -1
        while messages := await self.peek(queue, count=MAX_BATCH // 10, after=after, bodies=bodies):
            for message in messages:
                yield message
            after = messages[-1].lookup_id

    # Transactions.

    @contextlib.asynccontextmanager
    async def transaction(
        self, *, key: str | None = None, lease: float | None = None
    ) -> AsyncIterator[AsyncTransaction]:
        """Commit at the end of the block, abort when it raises. Kept alive as long as this process lives."""
        begun = await self._transport.call(
            "POST", "/v1/transactions", BeginRequest(key=key, lease=lease), TransactionAnswer
        )
        transaction = AsyncTransaction(self, begun.transaction)
        alive = asyncio.create_task(self._keep_alive(begun))
        try:
            yield transaction
        except BaseException:
            alive.cancel()
            with contextlib.suppress(Exception):
                await asyncio.shield(self._end("abort", begun.transaction, DoneAnswer))
            raise
        alive.cancel()
        transaction.outcome = await self._end("commit", begun.transaction, SendAnswer)

    async def _keep_alive(self, begun: TransactionAnswer) -> None:
        request = TransactionRequest(transaction=begun.transaction)
        while True:
            await asyncio.sleep(begun.lease / 3)
            with contextlib.suppress(Exception):
                await self._transport.call("POST", "/v1/transactions/renew", request, DoneAnswer)

    async def _end(self, how: str, transaction: str, answer: type[Any]) -> Any:
        request = TransactionRequest(transaction=transaction)
        return await self._transport.call("POST", f"/v1/transactions/{how}", request, answer)

    # Queues.

    async def create_queue(self, path: str, **properties: Any) -> QueueOut:
        """Create a queue."""
        request = CreateQueueRequest(path=path, **properties)
        return await self._transport.call("POST", "/v1/queues", request, QueueOut)

    async def change_queue(self, queue: str, **properties: Any) -> QueueOut:
        """Change a queue's properties."""
        request = ChangeQueueRequest(queue=queue, **properties)
        return await self._transport.call("PATCH", "/v1/queue", request, QueueOut, repeatable=True)

    async def queues(self) -> tuple[QueueOut, ...]:
        """List the local and outgoing queues."""
        return (await self._transport.call("GET", "/v1/queues", In(), QueuesAnswer, repeatable=True)).queues

    async def queue(self, queue: str) -> QueueOut:
        """Show one queue."""
        return await self._transport.call(
            "GET", "/v1/queue", QueueRequest(queue=queue), QueueOut, repeatable=True
        )

    async def queue_path(self, queue: str) -> PathAnswer:
        """Tell the path name that a format name stands for, and the machine that it is on."""
        return await self._transport.call(
            "GET", "/v1/queue/path", QueueRequest(queue=queue), PathAnswer, repeatable=True
        )

    async def delete_queue(self, queue: str) -> None:
        """Delete a queue with everything in it."""
        await self._transport.call("DELETE", "/v1/queue", QueueRequest(queue=queue), DoneAnswer)

    async def purge_queue(self, queue: str) -> int:
        """Drop every message of a queue; returns how many."""
        answer = await self._transport.call("POST", "/v1/queue/purge", QueueRequest(queue=queue), PurgeAnswer)
        return answer.purged

    async def pause_queue(self, queue: str) -> None:
        """Let nothing leave an outgoing queue."""
        await self._transport.call("POST", "/v1/queue/pause", QueueRequest(queue=queue), DoneAnswer)

    async def resume_queue(self, queue: str) -> None:
        """Let messages leave an outgoing queue again."""
        await self._transport.call("POST", "/v1/queue/resume", QueueRequest(queue=queue), DoneAnswer)

    async def plan_queues(
        self, queues: Iterable[CreateQueueRequest], *, prune: bool = False, apply: bool = False
    ) -> PlanAnswer:
        """Compare a declarative set of queues with what is there, and apply the difference."""
        request = PlanRequest(queues=tuple(queues), prune=prune, apply=apply)
        return await self._transport.call("POST", "/v1/queues/plan", request, PlanAnswer)

    # Dead letters and explanations.

    async def dead_letters(self, **wanted: Any) -> tuple[DeadLetterOut, ...]:
        """List dead letters: ``message_class``, ``destination``, ``older_than``, ``queue``, ``limit``."""
        answer = await self._transport.call(
            "GET", "/v1/deadletters", DeadLettersRequest(**wanted), DeadLettersAnswer, repeatable=True
        )
        return answer.dead_letters

    async def dead_letter(self, lookup_id: int) -> DeadLetterOut:
        """Show one dead letter with its body."""
        return await self._transport.call(
            "GET", "/v1/deadletter", LookupRequest(lookup_id=lookup_id), DeadLetterOut, repeatable=True
        )

    async def replay(
        self, lookup_ids: Sequence[int], *, destination: str | None = None, dry_run: bool = False
    ) -> tuple[ReplayedOut, ...]:
        """Send dead letters again; one that fails stays where it is."""
        request = ReplayRequest(lookup_ids=tuple(lookup_ids), destination=destination, dry_run=dry_run)
        answer = await self._transport.call("POST", "/v1/deadletters/replay", request, ReplayAnswer)
        return answer.replayed

    async def why(self, subject: str) -> WhyAnswer:
        """Tell what happened to a queue or message, and what to do."""
        return await self._transport.call(
            "GET", "/v1/why", WhyRequest(subject=subject), WhyAnswer, repeatable=True
        )

    # SRMP.

    async def redirections(self) -> RedirectionsAnswer:
        """Show everything that is redirected."""
        return await self._transport.call(
            "GET", "/v1/srmp/redirections", In(), RedirectionsAnswer, repeatable=True
        )

    async def replace_redirections(self, redirections: RedirectionsRequest) -> RedirectionsAnswer:
        """Put others in the place of all redirections."""
        return await self._transport.call(
            "PUT", "/v1/srmp/redirections", redirections, RedirectionsAnswer, repeatable=True
        )

    async def add_redirection(
        self, kind: Kind, from_: str = "", to: str = "", *, first: bool = False
    ) -> RedirectionsAnswer:
        """Redirect from one URL to another, behind what is redirected already or before it."""
        request = AddRedirectionRequest(kind=kind, from_=from_, to=to, first=first)
        return await self._transport.call(
            "POST", "/v1/srmp/redirections", request, RedirectionsAnswer, repeatable=True
        )

    async def remove_redirection(self, kind: Kind, from_: str = "") -> RedirectionsAnswer:
        """Redirect from a URL no longer."""
        request = RemoveRedirectionRequest(kind=kind, from_=from_)
        return await self._transport.call("DELETE", "/v1/srmp/redirections", request, RedirectionsAnswer)

    async def reset_stream(self, queue: str) -> int:
        """Begin a new stream with what waits in an outgoing queue; returns how many messages that is.

        Messages that had arrived while their receipts were lost may arrive a second time.
        """
        request = QueueRequest(queue=queue)
        return (await self._transport.call("POST", "/v1/srmp/reset", request, ResetAnswer)).messages

    # History.

    async def history_status(self) -> HistoryStatus:
        """Tell how far the history goes."""
        return await self._transport.call("GET", "/v1/history/status", In(), HistoryStatus, repeatable=True)

    async def history(
        self, first: int = 1, last: int | None = None, *, bodies: bool = True
    ) -> AsyncIterator[HistoryRow]:
        """Read a range of history rows."""
        request = HistoryRequest(first=first, last=last, bodies=bodies)
        async for line in _lines(self._transport.stream("/v1/history", request)):
            fields = msgspec.json.decode(line)
            yield msgspec.convert([fields[name] for name in HistoryRow.__struct_fields__], HistoryRow)

    async def history_arrow(
        self, first: int = 1, last: int | None = None, *, bodies: bool = True
    ) -> AsyncIterator[bytes]:
        """Read a range of the history as the bytes of an Arrow stream."""
        request = HistoryRequest(first=first, last=last, format="arrow", bodies=bodies)
        async for piece in self._transport.stream("/v1/history", request):
            yield piece

    async def history_blocks(
        self, first: int = 1, last: int | None = None, *, bodies: bool = True
    ) -> AsyncIterator[bytes]:
        """Read a range of the history as the manager keeps it: each block a MessagePack list of rows.

        This is the way to read much of it: the manager decodes nothing.
        """
        request = HistoryRequest(first=first, last=last, format="blocks", bodies=bodies)
        async for block in _blocks(self._transport.stream("/v1/history", request)):
            yield block

    async def register_reader(self, name: str) -> ReaderOut:
        """Let retention wait for a reader."""
        return await self._transport.call(
            "POST", "/v1/history/readers", ReaderRequest(name=name), ReaderOut, repeatable=True
        )

    async def confirm(self, name: str, lsn: int) -> ReaderOut:
        """Say how far a reader has got."""
        return await self._transport.call(
            "POST", "/v1/history/confirm", ConfirmRequest(name=name, lsn=lsn), ReaderOut, repeatable=True
        )

    async def forget_reader(self, name: str) -> None:
        """Let retention wait no longer."""
        await self._transport.call("DELETE", "/v1/history/readers", ReaderRequest(name=name), DoneAnswer)

    # The manager.

    async def directory(self, *, refresh: bool = False) -> DirectoryAnswer:
        """What the manager knows of its enterprise, read anew if that is wanted."""
        if refresh:
            return await self._transport.call("POST", "/v1/directory/refresh", In(), DirectoryAnswer)
        return await self._transport.call("GET", "/v1/directory", In(), DirectoryAnswer, repeatable=True)

    async def replace_directory(self, text: str) -> DirectoryAnswer:
        """Give the manager another enterprise, as a directory file."""
        request = ReplaceDirectoryRequest(text=text)
        return await self._transport.call("PUT", "/v1/directory", request, DirectoryAnswer)

    async def status(self) -> StatusAnswer:
        """Tell how the manager is."""
        return await self._transport.call("GET", "/v1/status", In(), StatusAnswer, repeatable=True)

    async def backup(self, name: str) -> BackupAnswer:
        """Copy the store into the data directory's ``backups``."""
        return await self._transport.call(
            "POST", "/v1/backup", BackupRequest(name=name), BackupAnswer, wait=MAINTENANCE_SECONDS
        )

    async def compact(self) -> CompactAnswer:
        """Give unused space back."""
        return await self._transport.call(
            "POST", "/v1/compact", In(), CompactAnswer, wait=MAINTENANCE_SECONDS
        )

    async def take_offline(self) -> None:
        """Exchange nothing with other machines."""
        await self._transport.call("POST", "/v1/offline", In(), DoneAnswer)

    async def bring_online(self) -> None:
        """Exchange messages with other machines again."""
        await self._transport.call("POST", "/v1/online", In(), DoneAnswer)

    async def flow_control(self, *, throttled: bool) -> None:
        """Take in nothing for the moment, or messages again."""
        request = FlowControlRequest(throttled=throttled)
        await self._transport.call("POST", "/v1/flow-control", request, DoneAnswer, repeatable=True)

    async def create_token(self, name: str, rights: Sequence[Any], queues: Sequence[str] = ("*",)) -> str:
        """Make a token; it is shown this once."""
        request = TokenRequest(name=name, rights=tuple(rights), queues=tuple(queues))
        return (await self._transport.call("POST", "/v1/tokens", request, TokenAnswer)).token

    async def tokens(self) -> tuple[TokenOut, ...]:
        """List the tokens."""
        return (await self._transport.call("GET", "/v1/tokens", In(), TokensAnswer, repeatable=True)).tokens

    async def remove_token(self, name: str) -> None:
        """Remove a token."""
        await self._transport.call("DELETE", "/v1/tokens", TokenNameRequest(name=name), DoneAnswer)


class AsyncTransaction:
    """What can be done within a transaction."""

    def __init__(self, client: AsyncClient, identifier: str) -> None:
        self._client = client
        self.id = identifier
        self.outcome: SendAnswer | None = None
        """What the commit came to."""

    async def send(self, queue: str, body: bytes | str | MessageIn, **attributes: Any) -> str:
        """Send one message when the transaction is committed; returns its identifier."""
        message = body if isinstance(body, MessageIn) else make_message(body, **attributes)
        answer = await self._client.send_many(queue, [message], transaction=self.id)
        return answer.ids[0]

    async def send_many(self, queue: str, messages: Sequence[MessageIn]) -> SendAnswer:
        """Send messages when the transaction is committed."""
        return await self._client.send_many(queue, messages, transaction=self.id)

    async def receive(self, queue: str, **options: Any) -> tuple[MessageOut, ...]:
        """Receive messages; they come back if the transaction is aborted."""
        return await self._client.receive(queue, transaction=self.id, **options)

    async def move(self, queue: str, lookup_id: int, target: str) -> None:
        """Move a message when the transaction is committed."""
        await self._client.move(queue, lookup_id, target, transaction=self.id)


async def _lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    rest = b""
    async for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            yield line


async def _blocks(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    rest = bytearray()
    async for piece in pieces:
        rest += piece
        begin = 0
        while len(rest) - begin >= BLOCK_LENGTH.size:
            (length,) = BLOCK_LENGTH.unpack_from(rest, begin)
            if length > MAX_BLOCK:
                raise LannerError(f"a block of the history has {length:,} octets; the limit is {MAX_BLOCK:,}")
            end = begin + BLOCK_LENGTH.size + length
            if len(rest) < end:
                break
            yield bytes(rest[begin + BLOCK_LENGTH.size : end])
            begin = end
        del rest[:begin]
    if rest:
        raise LannerError("the history broke off in the middle of a block", hint="read it again")


def make_message(body: bytes | str, **attributes: Any) -> MessageIn:
    """Make a message; text is encoded as UTF-8."""
    return MessageIn(body=body.encode() if isinstance(body, str) else body, **attributes)
