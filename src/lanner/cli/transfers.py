"""How messages go between machines, for people."""

from __future__ import annotations

from lanner.cli.output import print_table, printable, shown_time
from lanner.model.queue import QueueKind
from lanner.model.transfer import OutgoingTransfer
from lanner.schema.queues import QueueOut

__all__ = ["print_transfers", "transfer_pairs"]


def transfer_pairs(queue: QueueOut) -> list[tuple[str, object]]:
    """Where the messages of an outgoing queue go, and how far its stream has got; nothing for others."""
    if queue.kind is not QueueKind.OUTGOING:
        return []
    return [("next hops", ", ".join(queue.next_hops) or "not known"), *_progress(queue.transfer)]


def print_transfers(queue: QueueOut) -> None:
    """Print the connections of an outgoing queue, or the streams that come into a local one."""
    if queue.kind is QueueKind.OUTGOING:
        attempts = [
            (shown_time(one.time), one.status.words, one.address, printable(one.detail))
            for one in queue.connections
        ]
        print_table(
            ("time", "connection", "address", "detail"), attempts, empty="no connection was tried yet"
        )
    elif queue.incoming:
        streams = [
            (one.sender, str(one.stream), one.number, shown_time(one.last_access), one.rejections)
            for one in queue.incoming
        ]
        print_table(("stream from", "stream", "number", "last access", "refused since"), streams, empty="")


def _progress(transfer: OutgoingTransfer | None) -> list[tuple[str, object]]:
    if transfer is None:
        return []
    pairs: list[tuple[str, object]] = [
        ("stream", str(transfer.next_sequence.stream) if transfer.next_sequence else "none yet"),
        ("without a receipt", _unacknowledged(transfer)),
        ("not received there", transfer.unread),
        ("last receipt", _last_receipt(transfer)),
        ("sent again", f"{transfer.resends:,} times"),
    ]
    if transfer.unacknowledged:
        pairs.append(("sent again next", shown_time(transfer.resend_time)))
    return pairs


def _unacknowledged(transfer: OutgoingTransfer) -> str:
    first, last = transfer.first_unacknowledged, transfer.last_unacknowledged
    numbers = f" (numbers {first.number:,} to {last.number:,})" if first and last else ""
    return f"{transfer.unacknowledged:,}{numbers}"


def _last_receipt(transfer: OutgoingTransfer) -> str:
    last = transfer.last_acknowledged
    if last is None or not last.number:
        return "none yet"
    told = f"up to number {last.number:,}"
    time = transfer.last_acknowledgment_time
    return f"{told} at {shown_time(time)}" if time else told
