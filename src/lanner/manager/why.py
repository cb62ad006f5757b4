"""Why a message or a queue is as it is, and what to do: told from history and state."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from lanner.manager.core import Core
from lanner.manager.naming import AnyName
from lanner.manager.positions import Position, PositionState, lookup_identifier
from lanner.manager.queues import KILOBYTE, OutgoingQueue, Queue
from lanner.manager.returning import POISON
from lanner.model.codes import MessageClass, describe_class
from lanner.model.history import HistoryEvent, HistoryRow
from lanner.model.message import HIGHEST_PRIORITY
from lanner.model.message_id import MessageId
from lanner.model.queue import ShareMode
from lanner.model.transfer import ConnectionStatus

__all__ = ["Explanation", "Why", "oldest_arrival"]

MINUTE = 60
OLD = 5 * MINUTE
"""Seconds after which a message that nobody takes is worth a word."""

TOLD_CONNECTIONS = 3
"""Attempts to connect that are told of."""

TOLD_STREAMS = 10
"""Streams that are told of: how many there are is up to their senders."""

_ENDED = (HistoryEvent.RECEIVED, HistoryEvent.TRANSMITTED, HistoryEvent.ACKNOWLEDGED)


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """What is the matter, how it came about, and what to do."""

    subject: str
    summary: str
    findings: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()


class Why:
    """Explains."""

    def __init__(self, core: Core) -> None:
        self._core = core

    # Messages.

    async def message(self, message_id: MessageId) -> Explanation:
        """Explain one message."""
        await self._core.store.flush()
        rows = await self._core.store.history.of_message(str(message_id))
        subject = f"message {message_id}"
        if not rows:
            first = await self._core.store.history.first_lsn()
            return Explanation(
                subject=subject,
                summary="nothing is known of it here",
                findings=(f"the history kept here begins with LSN {first}",),
                advice=("ask the queue manager that sent it, or look for its copy by another identifier",),
            )
        position = self._find(rows)
        findings = tuple(_tell(row) for row in rows)
        if position is None:
            return self._gone(subject, rows, findings)
        return self._present(subject, position, findings)

    def _find(self, rows: list[HistoryRow]) -> Position | None:
        lookups = {row.lookup_id for row in rows}
        for queue in self._core.queues:
            for lookup_id in lookups:
                position = queue.messages.get(lookup_id)
                if position is not None:
                    return position
        return None

    def _gone(self, subject: str, rows: list[HistoryRow], findings: tuple[str, ...]) -> Explanation:
        last = rows[-1]
        if last.event in _ENDED:
            return Explanation(
                subject=subject, summary=f"it is done: {last.event} at {_time(last.time)}", findings=findings
            )
        if last.event in (HistoryEvent.SENT, HistoryEvent.ARRIVED) and last.reason == "express":
            return Explanation(
                subject=subject,
                summary="it was an express message, and is gone: express messages do not survive a restart",
                findings=findings,
                advice=("send it as recoverable (--durable) if it must not be lost",),
            )
        return Explanation(
            subject=subject,
            summary=f"it is gone: {last.event}{f' ({last.reason})' if last.reason else ''}",
            findings=findings,
            advice=("send it with --deadletter to keep a copy when that happens",),
        )

    def _present(self, subject: str, position: Position, findings: tuple[str, ...]) -> Explanation:
        queue = position.queue
        if position.message_class >= MessageClass.NACK_BAD_DESTINATION_QUEUE:
            return Explanation(
                subject=subject,
                summary=f"it is a dead letter in {queue.name}: {describe_class(position.message_class)}",
                findings=findings,
                advice=(
                    *_cure(position.message_class),
                    f"then send it again: lanner deadletter replay {position.lookup_id}",
                ),
            )
        if isinstance(queue, OutgoingQueue):
            return self._outgoing_message(subject, queue, position, findings)
        if position.state is not PositionState.AVAILABLE:
            return Explanation(
                subject=subject,
                summary=f"it is in {queue.name}, held by a receive or transaction that has not ended",
                findings=findings,
                advice=("it comes back when the transaction is aborted or its lease ends",),
            )
        return Explanation(
            subject=subject,
            summary=f"it waits in {queue.name} to be received",
            findings=(*findings, *_crowd(queue)),
            advice=() if len(queue.readers) else (f"receive it: lanner receive '{queue.name}'",),
        )

    def _outgoing_message(
        self, subject: str, queue: OutgoingQueue, position: Position, findings: tuple[str, ...]
    ) -> Explanation:
        summary = f"it waits to be sent to {queue.name}"
        if position.state is not PositionState.AVAILABLE:
            summary = f"it is on its way to {queue.name}, and its arrival is not acknowledged yet"
        return Explanation(
            subject=subject,
            summary=summary,
            findings=(*findings, f"the outgoing queue is {queue.explain()}", *_way(queue)),
            advice=(*_open_way(queue), f"look at the queue: lanner why '{queue.name}'"),
        )

    # Queues.

    async def queue(self, name: AnyName) -> Explanation:
        """Explain one queue."""
        queue = self._core.queues.get(name)
        count = len(queue.messages)
        findings = [f"{count:,} messages, {queue.messages.bytes:,} bytes"]
        advice: list[str] = []
        oldest = await oldest_arrival(self._core, queue)
        age = self._core.clock.time() - oldest if oldest is not None else 0.0
        if oldest is not None:
            findings.append(f"the oldest came {_duration(age)} ago")
        if isinstance(queue, OutgoingQueue):
            return self._outgoing(queue, findings)
        findings.extend(_crowd(queue))
        findings.extend(_stuck_streams(queue))
        advice.extend(_begin_streams(queue))
        self._quota(queue, findings, advice)
        poison = queue.subqueues.get(POISON)
        if poison is not None and poison.messages:
            findings.append(
                f"{len(poison.messages):,} messages in {poison.name}: their receivers kept aborting"
            )
            advice.append(f"look at them: lanner peek '{poison.name}'; mend the receiver; move them back")
        if age > OLD and not queue.handles and not queue.is_read_only:
            advice.append("nobody has the queue open: start its receiver")
        summary = "it is empty" if not count else f"{count:,} messages wait"
        return Explanation(
            subject=f"queue {queue.name}", summary=summary, findings=tuple(findings), advice=tuple(advice)
        )

    def _outgoing(self, queue: OutgoingQueue, findings: list[str]) -> Explanation:
        return Explanation(
            subject=f"outgoing queue {queue.name}",
            summary=queue.explain(),
            findings=(*findings, *_way(queue)),
            advice=_open_way(queue),
        )

    def _quota(self, queue: Queue, findings: list[str], advice: list[str]) -> None:
        quota = queue.quota_bytes()
        if quota is None:
            return
        used = queue.bytes_with_subqueues()
        findings.append(f"{used:,} of {quota:,} bytes of its quota are used")
        if used + KILOBYTE > quota:
            advice.append("it is full, and sends are refused: receive, purge, or raise --quota")


async def oldest_arrival(core: Core, queue: Queue) -> float | None:
    """When the message that has waited longest arrived: the first of one of the priorities."""
    firsts = [
        queue.messages.after(lookup_identifier(priority, 0) - 1) for priority in range(HIGHEST_PRIORITY + 1)
    ]
    found = {position.lookup_id: position for position in firsts if position is not None}
    if not found:
        return None
    messages = await core.load_all(list(found.values()), bodies=False)
    return min(message.arrival_time for message in messages)


def _crowd(queue: Queue) -> list[str]:
    found = [f"{len(queue.readers)} readers wait, {len(queue.handles)} handles are open"]
    held = len(queue.messages) - queue.messages.available_count
    if held:
        found.append(f"{held:,} messages are held by receives or transactions that have not ended")
    if any(handle.share is ShareMode.DENY_RECEIVE for handle in queue.handles):
        found.append("one of the handles keeps all other readers out")
    return found


def _way(queue: OutgoingQueue) -> list[str]:
    """What is known of the way to a destination."""
    found = [f"the next hop is {' or '.join(queue.next_hops)}"] if queue.next_hops else []
    latest = list(queue.connections)[-TOLD_CONNECTIONS:]
    found.extend(f"{_time(connection.time)} {connection}" for connection in latest)
    transfer = queue.transfer
    if transfer.unacknowledged:
        told = f"{transfer.unacknowledged:,} messages of its stream were taken over there without a receipt"
        if transfer.resends:
            told += f"; they were sent again {transfer.resends:,} times"
        if transfer.may_be_forgotten:
            told += f", the last {transfer.fruitless_resends:,} without a receipt, although some came before"
        found.append(f"{told}; the next time is {_time(transfer.resend_time)}")
    if transfer.unread:
        found.append(f"{transfer.unread:,} messages have arrived, and wait there to be received")
    return found


def _open_way(queue: OutgoingQueue) -> tuple[str, ...]:
    """What to do about a queue that cannot send."""
    if queue.is_on_hold:
        return (f"lanner queue resume '{queue.name}'",)
    if queue.served_by is None:
        return ("see that a protocol for this kind of name is turned on: lanner config show",)
    failure = queue.last_failure
    if failure is not None:
        cure = _CONNECTION_CURES.get(failure.status)
        return (cure,) if cure else ()
    if queue.transfer.may_be_forgotten:
        return (
            "see there whether the messages were taken: lanner why, with the destination queue",
            "if not, the queue was made anew or its store was lost, and it waits for the first message of "
            f"the stream, which is long gone: begin a new stream: lanner srmp reset '{queue.name}'",
            "if so, only receipts are missing, and after a reset messages could arrive twice: see that the "
            "destination reaches the URL for receipts (srmp.url, or what is redirected)",
        )
    if queue.transfer.resends and queue.transfer.unacknowledged:
        return (
            "see that the destination reaches the URL for receipts (srmp.url, or what is redirected)",
            f"if it has forgotten the stream, begin a new one: lanner srmp reset '{queue.name}'",
        )
    return ()


_CONNECTION_CURES = {
    ConnectionStatus.DNS_FAILURE: "mend the host name, or give its address in network.names",
    ConnectionStatus.CONNECTION_REFUSED: "start the queue manager there, or mend the port in the name",
    ConnectionStatus.SOCKET_CONNECT_FAILURE: "see that firewalls let connections through to the right port",
    ConnectionStatus.SOCKET_SEND_FAILURE: "see who closes connections: the destination or a proxy on the way",
    ConnectionStatus.CONNECTION_NOT_READY: "it is there and cannot take messages: look at its log",
    ConnectionStatus.CERTIFICATE_VALIDATION_FAILURE: (
        "trust who has signed its certificate (srmp.ca_file), or let it have a valid one that names this host"
    ),
    ConnectionStatus.LOW_RESOURCE: "let this process open more files, or give the machine more memory",
    ConnectionStatus.SOCKET_BIND_FAILURE: "this machine has no free port: see who has so many connections",
    ConnectionStatus.UNKNOWN_FAILURE: "look at the logs of both sides",
}


def _stuck_streams(queue: Queue) -> list[str]:
    stuck = [stream for stream in queue.incoming_transfers.values() if stream.rejections]
    return [
        f"the last {stream.rejections:,} messages of the stream from {stream.sender} were not taken: "
        + (
            f"they were copies, or what follows number {stream.number:,} is missing"
            if stream.number
            else "its first message never came, as when the queue was made anew"
        )
        for stream in stuck[:TOLD_STREAMS]
    ]


def _begin_streams(queue: Queue) -> list[str]:
    """What to do about streams whose beginning is missing."""
    streams = queue.incoming_transfers.values()
    if not any(stream.rejections and not stream.number for stream in streams):
        return []
    return [
        "let the sender begin a new stream: lanner srmp reset, there, with its outgoing queue to this one"
    ]


def _cure(message_class: int) -> tuple[str, ...]:
    cures = {
        MessageClass.NACK_BAD_DESTINATION_QUEUE: "create the destination queue, or name the right one",
        MessageClass.NACK_REACH_QUEUE_TIMEOUT: "see why the destination was not reached, or allow more time",
        MessageClass.NACK_QUEUE_EXCEEDS_QUOTA: "make room in the destination queue, or raise its quota",
        MessageClass.NACK_ACCESS_DENIED: "let the sender write to the destination queue",
        MessageClass.NACK_RECEIVE_TIMEOUT: "see why nobody received it, or allow more time",
        MessageClass.NACK_NOT_TRANSACTIONAL_QUEUE: "send without a transaction, or to a transactional queue",
        MessageClass.NACK_NOT_TRANSACTIONAL_MESSAGE: "send it in a transaction",
    }
    cure = cures.get(MessageClass(message_class)) if message_class in set(MessageClass) else None
    return (cure,) if cure else ()


def _tell(row: HistoryRow) -> str:
    text = f"{_time(row.time)} {row.event} {row.queue}"
    details = [detail for detail in (row.reason, f"peer {row.peer}" if row.peer else None) if detail]
    return f"{text} ({', '.join(details)})" if details else text


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3] + "Z"


def _duration(seconds: float) -> str:
    if seconds < 2 * MINUTE:
        return f"{seconds:.0f} seconds"
    if seconds < 2 * 60 * MINUTE:
        return f"{seconds / MINUTE:.0f} minutes"
    if seconds < 48 * 60 * MINUTE:
        return f"{seconds / (60 * MINUTE):.0f} hours"
    return f"{seconds / (24 * 60 * MINUTE):.0f} days"
