"""The sync client: the async one on an event loop of its own, in a thread."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Coroutine, Generator, Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from lanner.client.address import Address, find_address
from lanner.client.asynchronous import PATIENCE, AsyncClient, AsyncTransaction
from lanner.model.history import HistoryRow
from lanner.schema.dead_letters import DeadLetterOut, ReplayedOut, WhyAnswer
from lanner.schema.directory import DirectoryAnswer
from lanner.schema.history import HistoryStatus, ReaderOut
from lanner.schema.manager import BackupAnswer, CompactAnswer, StatusAnswer, TokenOut
from lanner.schema.messages import MessageIn, MessageOut, SendAnswer
from lanner.schema.queues import CreateQueueRequest, PathAnswer, PlanAnswer, QueueOut
from lanner.schema.srmp import Kind, RedirectionsAnswer, RedirectionsRequest

__all__ = ["Client", "ClientTransaction"]

T = TypeVar("T")


class Client:
    """A client of one queue manager. Every method does what :class:`AsyncClient`'s of the same name does."""

    def __init__(self, address: Address, *, patience: float = PATIENCE) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="lanner-client", daemon=True)
        self._thread.start()
        self._client = self.run(self._make(address, patience))

    @staticmethod
    async def _make(address: Address, patience: float) -> AsyncClient:
        return AsyncClient(address, patience=patience)

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

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run async work on this client's loop; a KeyboardInterrupt cancels it."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def iterate_over(self, pieces: AsyncIterator[T]) -> Generator[T, None, None]:
        """Go through an async iterator."""
        try:
            while True:
                try:
                    yield self.run(_next(pieces))
                except StopAsyncIteration:
                    return
        finally:
            close = getattr(pieces, "aclose", None)
            if close is not None:
                self.run(close())

    def close(self) -> None:
        """Close all connections and end the thread."""
        if self._loop.is_closed():
            return
        self.run(self._client.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Messages.

    def send(
        self,
        queue: str,
        body: bytes | str | MessageIn,
        *,
        key: str | None = None,
        transactional: bool = False,
        **attributes: Any,
    ) -> str:
        """Send one message; returns its identifier."""
        return self.run(self._client.send(queue, body, key=key, transactional=transactional, **attributes))

    def send_many(
        self,
        queue: str,
        messages: Sequence[MessageIn],
        *,
        key: str | None = None,
        transactional: bool = False,
    ) -> SendAnswer:
        """Send messages together: all of them, or none."""
        return self.run(self._client.send_many(queue, messages, key=key, transactional=transactional))

    def receive(
        self, queue: str, *, count: int = 1, wait: float = 0.0, **options: Any
    ) -> tuple[MessageOut, ...]:
        """Receive up to ``count`` messages, waiting up to ``wait`` seconds for the first."""
        return self.run(self._client.receive(queue, count=count, wait=wait, **options))

    def peek(
        self, queue: str, *, count: int = 1, wait: float = 0.0, after: int = -1, bodies: bool = True
    ) -> tuple[MessageOut, ...]:
        """Look at messages without taking them."""
        return self.run(self._client.peek(queue, count=count, wait=wait, after=after, bodies=bodies))

    def move(self, queue: str, lookup_id: int, target: str) -> None:
        """Move a message to another queue or subqueue."""
        self.run(self._client.move(queue, lookup_id, target))

    def iterate(self, queue: str, *, count: int = 1, wait: float | None = None) -> Iterator[MessageOut]:
        """Receive one message after the other."""
        return self.iterate_over(self._client.iterate(queue, count=count, wait=wait))

    def browse(self, queue: str, *, bodies: bool = True) -> Iterator[MessageOut]:
        """Look at every message of a queue, in order."""
        return self.iterate_over(self._client.browse(queue, bodies=bodies))

    @contextlib.contextmanager
    def transaction(
        self, *, key: str | None = None, lease: float | None = None
    ) -> Iterator[ClientTransaction]:
        """Commit at the end of the block, abort when it raises."""
        scope = self._client.transaction(key=key, lease=lease)
        transaction = self.run(_enter(scope))
        try:
            yield ClientTransaction(self, transaction)
        except BaseException as error:
            self.run(_leave(scope, error))
            raise
        self.run(_leave(scope, None))

    # Queues.

    def create_queue(self, path: str, **properties: Any) -> QueueOut:
        """Create a queue."""
        return self.run(self._client.create_queue(path, **properties))

    def change_queue(self, queue: str, **properties: Any) -> QueueOut:
        """Change a queue's properties."""
        return self.run(self._client.change_queue(queue, **properties))

    def queues(self) -> tuple[QueueOut, ...]:
        """List the local and outgoing queues."""
        return self.run(self._client.queues())

    def queue(self, queue: str) -> QueueOut:
        """Show one queue."""
        return self.run(self._client.queue(queue))

    def queue_path(self, queue: str) -> PathAnswer:
        """Tell the path name that a format name stands for, and the machine that it is on."""
        return self.run(self._client.queue_path(queue))

    def delete_queue(self, queue: str) -> None:
        """Delete a queue with everything in it."""
        self.run(self._client.delete_queue(queue))

    def purge_queue(self, queue: str) -> int:
        """Drop every message of a queue; returns how many."""
        return self.run(self._client.purge_queue(queue))

    def pause_queue(self, queue: str) -> None:
        """Let nothing leave an outgoing queue."""
        self.run(self._client.pause_queue(queue))

    def resume_queue(self, queue: str) -> None:
        """Let messages leave an outgoing queue again."""
        self.run(self._client.resume_queue(queue))

    def plan_queues(
        self, queues: Iterable[CreateQueueRequest], *, prune: bool = False, apply: bool = False
    ) -> PlanAnswer:
        """Compare a declarative set of queues with what is there, and apply the difference."""
        return self.run(self._client.plan_queues(queues, prune=prune, apply=apply))

    # Dead letters and explanations.

    def dead_letters(self, **wanted: Any) -> tuple[DeadLetterOut, ...]:
        """List dead letters."""
        return self.run(self._client.dead_letters(**wanted))

    def dead_letter(self, lookup_id: int) -> DeadLetterOut:
        """Show one dead letter with its body."""
        return self.run(self._client.dead_letter(lookup_id))

    def replay(
        self, lookup_ids: Sequence[int], *, destination: str | None = None, dry_run: bool = False
    ) -> tuple[ReplayedOut, ...]:
        """Send dead letters again; one that fails stays where it is."""
        return self.run(self._client.replay(lookup_ids, destination=destination, dry_run=dry_run))

    def why(self, subject: str) -> WhyAnswer:
        """Tell what happened to a queue or message, and what to do."""
        return self.run(self._client.why(subject))

    # SRMP.

    def redirections(self) -> RedirectionsAnswer:
        """Show everything that is redirected."""
        return self.run(self._client.redirections())

    def replace_redirections(self, redirections: RedirectionsRequest) -> RedirectionsAnswer:
        """Put others in the place of all redirections."""
        return self.run(self._client.replace_redirections(redirections))

    def add_redirection(
        self, kind: Kind, from_: str = "", to: str = "", *, first: bool = False
    ) -> RedirectionsAnswer:
        """Redirect from one URL to another, behind what is redirected already or before it."""
        return self.run(self._client.add_redirection(kind, from_, to, first=first))

    def remove_redirection(self, kind: Kind, from_: str = "") -> RedirectionsAnswer:
        """Redirect from a URL no longer."""
        return self.run(self._client.remove_redirection(kind, from_))

    def reset_stream(self, queue: str) -> int:
        """Begin a new stream with what waits in an outgoing queue; returns how many messages that is."""
        return self.run(self._client.reset_stream(queue))

    # History.

    def directory(self, *, refresh: bool = False) -> DirectoryAnswer:
        """What the manager knows of its enterprise, read anew if that is wanted."""
        return self.run(self._client.directory(refresh=refresh))

    def replace_directory(self, text: str) -> DirectoryAnswer:
        """Give the manager another enterprise, as a directory file."""
        return self.run(self._client.replace_directory(text))

    def history_status(self) -> HistoryStatus:
        """Tell how far the history goes."""
        return self.run(self._client.history_status())

    def history(
        self, first: int = 1, last: int | None = None, *, bodies: bool = True
    ) -> Generator[HistoryRow, None, None]:
        """Read a range of history rows."""
        return self.iterate_over(self._client.history(first, last, bodies=bodies))

    def history_arrow(
        self, first: int = 1, last: int | None = None, *, bodies: bool = True
    ) -> Generator[bytes, None, None]:
        """Read a range of the history as the bytes of an Arrow stream."""
        return self.iterate_over(self._client.history_arrow(first, last, bodies=bodies))

    def history_blocks(
        self, first: int = 1, last: int | None = None, *, bodies: bool = True
    ) -> Generator[bytes, None, None]:
        """Read a range of the history as the manager keeps it: each block a MessagePack list of rows."""
        return self.iterate_over(self._client.history_blocks(first, last, bodies=bodies))

    def register_reader(self, name: str) -> ReaderOut:
        """Let retention wait for a reader."""
        return self.run(self._client.register_reader(name))

    def confirm(self, name: str, lsn: int) -> ReaderOut:
        """Say how far a reader has got."""
        return self.run(self._client.confirm(name, lsn))

    def forget_reader(self, name: str) -> None:
        """Let retention wait no longer."""
        self.run(self._client.forget_reader(name))

    # The manager.

    def status(self) -> StatusAnswer:
        """Tell how the manager is."""
        return self.run(self._client.status())

    def backup(self, name: str) -> BackupAnswer:
        """Copy the store into the data directory's ``backups``."""
        return self.run(self._client.backup(name))

    def compact(self) -> CompactAnswer:
        """Give unused space back."""
        return self.run(self._client.compact())

    def take_offline(self) -> None:
        """Exchange nothing with other machines."""
        self.run(self._client.take_offline())

    def bring_online(self) -> None:
        """Exchange messages with other machines again."""
        self.run(self._client.bring_online())

    def flow_control(self, *, throttled: bool) -> None:
        """Take in nothing for the moment, or messages again."""
        self.run(self._client.flow_control(throttled=throttled))

    def create_token(self, name: str, rights: Sequence[Any], queues: Sequence[str] = ("*",)) -> str:
        """Make a token; it is shown this once."""
        return self.run(self._client.create_token(name, rights, queues))

    def tokens(self) -> tuple[TokenOut, ...]:
        """List the tokens."""
        return self.run(self._client.tokens())

    def remove_token(self, name: str) -> None:
        """Remove a token."""
        self.run(self._client.remove_token(name))


class ClientTransaction:
    """What can be done within a transaction."""

    def __init__(self, client: Client, transaction: AsyncTransaction) -> None:
        self._client = client
        self._transaction = transaction

    @property
    def id(self) -> str:
        """The transaction's identifier."""
        return self._transaction.id

    @property
    def outcome(self) -> SendAnswer | None:
        """What the commit came to."""
        return self._transaction.outcome

    def send(self, queue: str, body: bytes | str | MessageIn, **attributes: Any) -> str:
        """Send one message when the transaction is committed."""
        return self._client.run(self._transaction.send(queue, body, **attributes))

    def send_many(self, queue: str, messages: Sequence[MessageIn]) -> SendAnswer:
        """Send messages when the transaction is committed."""
        return self._client.run(self._transaction.send_many(queue, messages))

    def receive(self, queue: str, **options: Any) -> tuple[MessageOut, ...]:
        """Receive messages; they come back if the transaction is aborted."""
        return self._client.run(self._transaction.receive(queue, **options))

    def move(self, queue: str, lookup_id: int, target: str) -> None:
        """Move a message when the transaction is committed."""
        self._client.run(self._transaction.move(queue, lookup_id, target))


async def _next(pieces: AsyncIterator[T]) -> T:
    return await anext(pieces)


async def _enter(scope: contextlib.AbstractAsyncContextManager[T]) -> T:
    return await scope.__aenter__()


async def _leave(scope: contextlib.AbstractAsyncContextManager[object], error: BaseException | None) -> None:
    try:
        await scope.__aexit__(type(error) if error else None, error, error.__traceback__ if error else None)
    except BaseException as raised:
        # The block's own error goes on in the caller's thread.
        if raised is not error:
            raise
