"""The queue manager: the events of MS-MQDMPR as methods.

Open one on a directory, and everything durable in it is there again::

    async with await QueueManager.open("data") as manager:
        await manager.create_queue(r".\\private$\\orders", QueueProperties(transactional=True))
        async with manager.transaction() as transaction:
            await manager.send(r".\\private$\\orders", Message(body=b"one"), transaction=transaction)

All methods belong to the event loop on which the manager was opened. A method returns when what it
did is safe on the disk (express messages apart), and raises a :class:`~lanner.model.errors.LannerError`
when nothing was done.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Coroutine, Hashable, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Self
from uuid import UUID

from lanner.directory.base import Directory
from lanner.manager.administration import Administration
from lanner.manager.clock import Clock, SystemClock
from lanner.manager.core import Core
from lanner.manager.cursors import Cursor
from lanner.manager.dead_letters import DeadLetters
from lanner.manager.delivery import Delivery
from lanner.manager.enterprise import EnterpriseView
from lanner.manager.events import ConnectionChanged, Events, FlowControlChanged, Stopping
from lanner.manager.handles import OpenQueue
from lanner.manager.info import QueueInfo, describe_queue
from lanner.manager.loading import load
from lanner.manager.maintenance import Maintenance
from lanner.manager.naming import AnyName
from lanner.manager.numbering import Numbering
from lanner.manager.opening import Opening
from lanner.manager.outcomes import Outcome, Outcomes
from lanner.manager.plan import DeclaredQueue, Plan, PlannedChange, make_plan
from lanner.manager.queues import OutgoingQueue, Queue
from lanner.manager.reading import Reading
from lanner.manager.returning import Returning
from lanner.manager.sending import Sending
from lanner.manager.settings import ManagerSettings
from lanner.manager.transactions import Transaction, TransactionState
from lanner.manager.transfers import Transfers
from lanner.manager.units import Units
from lanner.manager.waiting import Wanted
from lanner.manager.why import Why, oldest_arrival
from lanner.model.errors import LannerError, OperationCancelledError, StoppedError
from lanner.model.format_name import DirectName
from lanner.model.log_fields import about
from lanner.model.message import Message
from lanner.model.message_id import MessageId
from lanner.model.names import check_computer
from lanner.model.path_name import PathName
from lanner.model.queue import QueueAccess, QueueKind, QueueProperties, SeekAction, ShareMode
from lanner.model.security import SecurityDescriptor, Token
from lanner.store import Changes, Store
from lanner.store.history import History

__all__ = ["QueueManager"]

log = logging.getLogger(__name__)

QUERY_TIMER_SECONDS = 3600.0
"""The QueueManager Query Timer (MS-MQBR 3.1.2.1)."""


def default_name() -> str:
    """What a new queue manager is called that was given no name: as its machine."""
    return socket.gethostname().partition(".")[0]


class QueueManager:
    """One running queue manager. Make it with :meth:`open`."""

    def __init__(
        self, core: Core, directory: Directory | None = None, directory_interval: float = QUERY_TIMER_SECONDS
    ) -> None:
        self._core = core
        self._delivery = Delivery(core)
        self._returning = Returning(core, self._delivery)
        self._administration = Administration(core, self._delivery)
        self._opening = Opening(core, self._delivery)
        self._sending = Sending(core, self._delivery)
        self._reading = Reading(core, self._delivery, self._returning)
        self._outcomes = Outcomes(core)
        self._numbering = Numbering(core)
        self._units = Units(
            core, self._delivery, self._returning, self._sending, self._outcomes, self._numbering
        )
        self.transfers = Transfers(core, self._delivery, self._sending, self._numbering)
        """What protocols between machines do with messages."""
        self._maintenance = Maintenance(core)
        self.dead_letters = DeadLetters(core, self._delivery, self._sending, self._opening)
        """Messages that were not delivered or not received."""
        self.why = Why(core)
        """What happened to a message or queue, and what to do."""
        self.enterprise = EnterpriseView(core, directory, directory_interval)
        """The directory, and this manager's place in it."""
        core.enterprise = self.enterprise
        self._is_online = True

    # The manager itself.

    @classmethod
    async def open(
        cls,
        directory: str | Path,
        *,
        name: str | None = None,
        identifier: UUID | None = None,
        settings: ManagerSettings | None = None,
        clock: Clock | None = None,
        enterprise: Directory | None = None,
        enterprise_interval: float = QUERY_TIMER_SECONDS,
    ) -> Self:
        """Open the manager whose store is in ``directory``, or make a new one there.

        ``name`` and ``identifier`` are for a new one: an existing one keeps those that it has.
        ``enterprise`` is the directory of sites and queue managers, looked at again after every interval.
        """
        settings = settings or ManagerSettings()
        settings.check()
        clock = clock or SystemClock()
        name = name or default_name()
        check_computer(name)
        store = await Store.open(Path(directory), name=name, identifier=identifier, now=clock.time())
        try:
            manager = cls(Core(store, settings, clock), enterprise, enterprise_interval)
            purged = load(manager._core, manager._delivery)
            await manager._numbering.recover()
            await manager._administration.create_system_queues()
            await manager.enterprise.open()
            await manager._delivery.finish_purge(purged)
        except BaseException:
            await store.close()
            raise
        manager._maintenance.start()
        log.info("queue manager %s is open", manager.name)
        return manager

    async def close(self) -> None:
        """Stop: abort what is unfinished, write what is written, let the directory go."""
        if not self._core.is_running:
            return
        self._core.events.publish(Stopping())
        self._core.is_running = False
        self._maintenance.stop()
        await self.enterprise.close()
        self._delivery.expiry.stop()
        error = StoppedError("the queue manager was stopped")
        for queue in self._core.queues:
            queue.readers.cancel(error)
        self._units.abandon_all()
        await self._core.settle()
        await self._returning.close()
        await self._core.store.close()
        for queue in self._core.queues:
            queue.messages.clear()
        log.info("queue manager %s is closed", self.name)

    def spawn(self, work: Coroutine[None, None, None]) -> None:
        """Do something beside the caller; :meth:`close` waits for it, and a failure is logged."""
        self._core.spawn(work)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def name(self) -> str:
        """The computer name."""
        return self._core.queues.machine_name

    @property
    def identifier(self) -> UUID:
        """The queue manager's GUID."""
        return self._core.machine_id

    @property
    def is_running(self) -> bool:
        """Whether it takes requests."""
        return self._core.is_running

    @property
    def settings(self) -> ManagerSettings:
        """Limits and retention."""
        return self._core.settings

    @property
    def events(self) -> Events:
        """What can be subscribed to."""
        return self._core.events

    @property
    def history(self) -> History:
        """What happened to every message."""
        return self._core.store.history

    @property
    def store(self) -> Store:
        """The store: for statistics, backup and compaction."""
        return self._core.store

    @property
    def is_online(self) -> bool:
        """Whether messages are exchanged with other machines (ConnectionActive)."""
        return self._is_online

    @property
    def total_bytes(self) -> int:
        """What all messages in all queues count against the quota."""
        return self._core.total_bytes

    @property
    def unwritten_messages(self) -> int:
        """Messages that cancelled receives gave back and that the store could not take yet."""
        return self._returning.unwritten_count

    def take_offline(self) -> None:
        """Exchange nothing with other machines (3.1.4.12)."""
        self._is_online = False
        self._core.events.publish(ConnectionChanged(False))

    def bring_online(self) -> None:
        """Exchange messages with other machines again (3.1.4.13)."""
        self._is_online = True
        self._core.events.publish(ConnectionChanged(True))

    def begin_flow_control(self) -> None:
        """Take in nothing for the moment (3.1.7.2.5)."""
        self._core.is_throttled = True
        self._core.events.publish(FlowControlChanged(True))

    def end_flow_control(self) -> None:
        """Take in messages again (3.1.7.2.6)."""
        self._core.is_throttled = False
        self._core.events.publish(FlowControlChanged(False))

    # Queues.

    async def create_queue(
        self,
        path: str | PathName,
        properties: QueueProperties | None = None,
        *,
        security: SecurityDescriptor | None = None,
    ) -> QueueInfo:
        """Create Queue (3.1.7.1.3)."""
        self._core.check_running()
        queue = await self._administration.create(path, properties or QueueProperties(), security)
        if queue.kind is QueueKind.PUBLIC:
            try:
                await self.enterprise.publish(queue)
            except LannerError:
                await self._administration.delete(queue)
                raise
        return describe_queue(queue, self._core.queues)

    async def change_queue(
        self,
        name: AnyName,
        properties: QueueProperties | None = None,
        *,
        security: SecurityDescriptor | None = None,
    ) -> QueueInfo:
        """Give a queue other properties, another security descriptor, or both."""
        self._core.check_running()
        queue = self._core.queues.get(name)
        await self._administration.change(queue, properties, security)
        return describe_queue(queue, self._core.queues)

    async def delete_queue(self, name: AnyName) -> None:
        """Delete Queue (3.1.7.1.4), with everything in it."""
        self._core.check_running()
        queue = self._core.queues.get(name)
        if queue.kind is QueueKind.PUBLIC:
            await self.enterprise.withdraw(queue)
        await self._administration.delete(queue)

    async def purge_queue(self, name: AnyName) -> int:
        """Purge Queue (3.1.7.1.7). Says how many messages were dropped."""
        self._core.check_running()
        return await self._administration.purge(self._core.queues.get(name))

    async def pause_queue(self, name: AnyName) -> None:
        """Let nothing leave an outgoing queue (3.1.4.14)."""
        self._core.check_running()
        await self._administration.pause(self._core.queues.get(name))

    async def resume_queue(self, name: AnyName) -> None:
        """Let messages leave an outgoing queue again (3.1.4.15)."""
        self._core.check_running()
        await self._administration.resume(self._core.queues.get(name))

    def resend_stream(self, name: AnyName) -> None:
        """Send the messages of an outgoing queue's stream again now that wait for a receipt."""
        self._core.check_running()
        self._administration.resend(self._core.queues.get(name))

    def queue(self, name: AnyName) -> QueueInfo:
        """Show one queue: local, journal, subqueue or outgoing."""
        return describe_queue(self._core.queues.get(name), self._core.queues, is_alone=True)

    def canonical_name(self, name: AnyName) -> str:
        """The one spelling of a queue's name here: a path name if it is local, else a format name."""
        queue = self._core.queues.find(name)
        return queue.name if queue is not None else str(self._core.queues.parse(name))

    def is_outgoing(self, name: AnyName) -> bool:
        """Whether a name leads to a queue that waits to be sent elsewhere."""
        return isinstance(self._core.queues.find(name), OutgoingQueue)

    def queues(self) -> list[QueueInfo]:
        """List the local queues, journals and subqueues left out, by name."""
        return [describe_queue(queue, self._core.queues) for queue in self._core.queues.local()]

    def outgoing_queues(self) -> list[QueueInfo]:
        """List the outgoing queues, by name."""
        outgoing = sorted(self._core.queues.outgoing(), key=lambda queue: queue.key)
        return [describe_queue(queue, self._core.queues) for queue in outgoing]

    async def oldest_arrival(self, name: AnyName) -> float | None:
        """When the message that has waited longest in a queue arrived."""
        return await oldest_arrival(self._core, self._core.queues.get(name))

    def plan_queues(self, declared: Iterable[DeclaredQueue], *, prune: bool = False) -> Plan:
        """Compare a declarative set of queues with what is there."""
        return make_plan(declared, self.queues(), prune=prune, is_local=self._core.queues.is_local)

    async def apply_plan(self, plan: Plan) -> None:
        """Do what a plan says, step by step."""
        for step in plan.steps:
            if step.change is PlannedChange.DELETE:
                await self.delete_queue(step.path)
                continue
            assert step.declared is not None
            text = step.declared.security
            security = SecurityDescriptor.from_sddl(text) if text else None
            if step.change is PlannedChange.CREATE:
                await self.create_queue(step.path, step.declared.properties, security=security)
            else:
                await self.change_queue(step.path, step.declared.properties, security=security)

    # Handles.

    def open_queue(
        self,
        name: AnyName,
        access: QueueAccess,
        *,
        share: ShareMode = ShareMode.DENY_NONE,
        token: Token | None = None,
    ) -> OpenQueue:
        """Open Queue (3.1.7.1.5). Without a token nothing is checked: the caller is the manager itself."""
        self._core.check_running()
        return self._opening.open(name, access, share, token)

    def close_queue(self, handle: OpenQueue) -> None:
        """Close Queue (3.1.7.1.6): its waiting reads end, its cursors close, what it began is given back."""
        self._opening.close(handle)

    def open_cursor(self, handle: OpenQueue) -> Cursor:
        """Open Cursor (3.1.7.1.1)."""
        handle.for_peeking()
        return Cursor(handle)

    def close_cursor(self, cursor: Cursor) -> None:
        """Close Cursor (3.1.7.1.2): a read that waits with it is cancelled."""
        self._opening.close_cursor(cursor)

    def get_queue_path(self, name: AnyName) -> tuple[str, str]:
        """Get Queue Path (3.1.7.1.26): the path name, and the machine that hosts the queue."""
        parsed = self._core.queues.parse(name)
        queue = self._core.queues.find(parsed)
        if queue is not None and not isinstance(parsed, DirectName) and queue.kind is not QueueKind.OUTGOING:
            return str(queue.path.with_computer(self.name)), self.name
        return self._opening.path_of(parsed)

    # Sending.

    async def enqueue_message(
        self,
        handle: OpenQueue,
        message: Message,
        *,
        transaction: Transaction | None = None,
        key: str | None = None,
    ) -> Outcome:
        """Enqueue Message To An Open Queue (3.1.7.1.27)."""
        return await self.enqueue_messages(handle, (message,), transaction=transaction, key=key)

    async def enqueue_messages(
        self,
        handle: OpenQueue,
        messages: Sequence[Message],
        *,
        transaction: Transaction | None = None,
        key: str | None = None,
    ) -> Outcome:
        """Enqueue several messages together: all of them, or none."""
        self._core.check_running()
        return await self._units.send(handle, messages, transaction, key)

    async def deliver_message(
        self, queue: Queue, message: Message, *, peer: str, changes: Changes | None = None
    ) -> None:
        """Enqueue Message (3.1.7.1.9) for a protocol: a message that a peer has given its identity.

        ``changes`` may hold what the protocol has to remember about it: both become durable together.
        """
        self._core.check_running()
        changes = changes or Changes()
        self.transfers.accept(changes, queue, message, peer)
        await self._core.finish(changes)

    async def send(
        self,
        destination: AnyName,
        message: Message,
        *,
        transaction: Transaction | None = None,
        key: str | None = None,
        token: Token | None = None,
    ) -> Outcome:
        """Send one message: open, enqueue, close."""
        with self._opening.opened(destination, QueueAccess.SEND, token) as handle:
            return await self.enqueue_message(handle, message, transaction=transaction, key=key)

    async def send_many(
        self,
        destination: AnyName,
        messages: Sequence[Message],
        *,
        transaction: Transaction | None = None,
        key: str | None = None,
        token: Token | None = None,
    ) -> Outcome:
        """Send several messages together: open, enqueue, close."""
        with self._opening.opened(destination, QueueAccess.SEND, token) as handle:
            return await self.enqueue_messages(handle, messages, transaction=transaction, key=key)

    # Reading.

    async def dequeue_message(
        self,
        handle: OpenQueue,
        *,
        timeout: float | None = None,
        cursor: Cursor | None = None,
        transaction: Transaction | None = None,
        message_id: MessageId | None = None,
        correlation_id: MessageId | None = None,
        tag: Hashable | None = None,
    ) -> Message:
        """Dequeue Message (3.1.7.1.10): the next one, or the one with an identifier or correlation.

        Waits up to ``timeout`` seconds, without one for ever; 0 does not wait. Waiting readers are
        served in the order in which they came. ``tag`` names the read so that it can be cancelled.
        """
        self._core.check_running()
        return await self._reading.receive(
            handle,
            timeout=timeout,
            cursor=cursor,
            transaction=transaction,
            wanted=Wanted(message_id, correlation_id),
            tag=tag,
            two_phase=False,
        )

    async def dequeue_messages(
        self,
        handle: OpenQueue,
        count: int,
        *,
        timeout: float | None = None,
        transaction: Transaction | None = None,
    ) -> list[Message]:
        """Dequeue up to ``count`` messages together: those that are there, or else the first that comes."""
        self._core.check_running()
        return await self._reading.receive_many(handle, count, timeout=timeout, transaction=transaction)

    async def dequeue_message_begin(
        self,
        handle: OpenQueue,
        *,
        timeout: float | None = None,
        cursor: Cursor | None = None,
        tag: Hashable | None = None,
    ) -> Message:
        """Dequeue Message Begin (3.1.7.1.11): lock the next message until this ends, or the handle."""
        self._core.check_running()
        return await self._reading.receive(
            handle,
            timeout=timeout,
            cursor=cursor,
            transaction=None,
            wanted=Wanted(),
            tag=tag,
            two_phase=True,
        )

    async def dequeue_message_end(self, handle: OpenQueue, message: Message, *, delete: bool) -> None:
        """Dequeue Message End (3.1.7.1.12): take the locked message, or give it its place back."""
        self._core.check_running()
        await self._reading.end(handle, message, delete=delete)

    async def read_message_by_lookup_identifier(
        self,
        handle: OpenQueue,
        lookup_id: int = 0,
        action: SeekAction = SeekAction.CURRENT,
        *,
        peek: bool = False,
        transaction: Transaction | None = None,
    ) -> Message:
        """Read Message By Lookup Identifier (3.1.7.1.13)."""
        self._core.check_running()
        return await self._reading.read_by_lookup(
            handle, lookup_id, action, peek=peek, transaction=transaction, two_phase=False
        )

    async def peek_message(
        self, handle: OpenQueue, *, timeout: float | None = None, cursor: Cursor | None = None
    ) -> Message:
        """Peek Message (3.1.7.1.15)."""
        self._core.check_running()
        return await self._reading.peek(handle, timeout=timeout, cursor=cursor)

    async def peek_next_message(
        self, handle: OpenQueue, cursor: Cursor, *, timeout: float | None = None
    ) -> Message:
        """Peek Next Message (3.1.7.1.14)."""
        self._core.check_running()
        return await self._reading.peek_next(handle, timeout=timeout, cursor=cursor)

    async def browse_messages(
        self, handle: OpenQueue, count: int, *, after: int = -1, bodies: bool = True
    ) -> list[Message]:
        """Look at up to ``count`` available messages behind a lookup identifier, or from the first."""
        self._core.check_running()
        return await self._reading.browse(handle, count, after=after, bodies=bodies)

    def cancel_waiting_message_read_request(self, name: AnyName, tag: Hashable) -> bool:
        """Cancel Waiting Message Read Request (3.1.7.1.17). Says whether there was one."""
        readers = self._core.queues.get(name).readers
        error = OperationCancelledError("the waiting read was cancelled")
        return tag is not None and bool(readers.cancel(error, tag=tag))

    async def receive(
        self,
        name: AnyName,
        *,
        timeout: float | None = None,
        transaction: Transaction | None = None,
        token: Token | None = None,
    ) -> Message:
        """Receive one message: open, dequeue, close."""
        with self._opening.opened(name, QueueAccess.RECEIVE, token) as handle:
            return await self.dequeue_message(handle, timeout=timeout, transaction=transaction)

    async def peek(
        self, name: AnyName, *, timeout: float | None = None, token: Token | None = None
    ) -> Message:
        """Peek at the first message: open, peek, close."""
        with self._opening.opened(name, QueueAccess.PEEK, token) as handle:
            return await self.peek_message(handle, timeout=timeout)

    # Moving.

    async def move_message(
        self, handle: OpenQueue, lookup_id: int, target: AnyName, *, transaction: Transaction | None = None
    ) -> None:
        """Move Message (3.1.7.1.16): to another queue of this machine, or to a subqueue, made if need be."""
        self._core.check_running()
        await self._units.move(handle, lookup_id, self._opening.move_target(target), transaction)

    # Transactions.

    def create_transaction(self, identifier: str | None = None, *, key: str | None = None) -> Transaction:
        """Create Transaction (3.1.7.1.8). With a key, committing it again later adds nothing."""
        self._core.check_running()
        return self._units.begin(identifier, key)

    async def transaction_commit(self, transaction: Transaction) -> Outcome:
        """Transaction Commit (3.1.4.4): all of it becomes true, durably, or none."""
        self._core.check_running()
        return await self._units.commit(transaction)

    async def transaction_abort(self, transaction: Transaction) -> None:
        """Transaction Abort (3.1.4.5): received messages return to their places, and that is counted."""
        self._core.check_running()
        await self._units.abort(transaction)

    @asynccontextmanager
    async def transaction(self, *, key: str | None = None) -> AsyncIterator[Transaction]:
        """Commit at the end of the block, or abort when it raises."""
        transaction = self.create_transaction(key=key)
        try:
            yield transaction
        except BaseException:
            if transaction.state is TransactionState.ACTIVE and self._core.is_running:
                try:
                    await asyncio.shield(self._units.abort(transaction))
                except LannerError as error:
                    queues = (queue.name for queue in transaction.queues())
                    log.warning(
                        "the abort of %s was not counted: %s",
                        transaction.id,
                        error,
                        extra=about(queues=queues, transaction=transaction.id),
                    )
            raise
        if transaction.state is TransactionState.ACTIVE:
            await self.transaction_commit(transaction)
        elif transaction.state is TransactionState.ABORTED:
            self._core.check_running()  # the end of the manager may have aborted it
