"""Metrics in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable

from lanner.api.context import Api
from lanner.manager import QueueInfo
from lanner.model.message import INFINITE

__all__ = ["render"]

_BACKSLASH = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


async def render(api: Api) -> AsyncIterator[bytes]:
    """Render all metrics. Queues that are empty report 0."""
    manager = api.manager
    local, outgoing = manager.queues(), manager.outgoing_queues()
    now = api.clock.time()
    ages = {}
    for info in (*local, *outgoing):
        arrival = await manager.oldest_arrival(info.path)
        ages[info.path] = max(0.0, now - arrival) if arrival is not None else 0.0
    dead = sum(info.messages for info in local if "dead" in info.path)
    statistics = manager.store.statistics
    lines: list[str] = []
    lines += _gauge("lanner_queue_messages", "Messages in a queue", _by_queue(local, "messages"))
    lines += _gauge("lanner_queue_bytes", "Bytes in a queue", _by_queue(local, "bytes"))
    lines += _gauge(
        "lanner_journal_messages", "Messages in a queue's journal", _by_queue(local, "journal_messages")
    )
    lines += _gauge("lanner_journal_bytes", "Bytes in a queue's journal", _by_queue(local, "journal_bytes"))
    lines += _gauge(
        "lanner_queue_oldest_age_seconds",
        "How long the message that waits longest has waited",
        [(_queue(info), ages[info.path]) for info in local],
    )
    lines += _gauge(
        "lanner_queue_quota_ratio",
        "How much of a queue's quota is used; 0 where there is none",
        [(_queue(info), _ratio(info.bytes, info.properties.quota)) for info in local],
    )
    lines += _gauge(
        "lanner_outgoing_messages", "Messages on their way elsewhere", _by_queue(outgoing, "messages")
    )
    lines += _gauge("lanner_outgoing_bytes", "Bytes on their way elsewhere", _by_queue(outgoing, "bytes"))
    lines += _gauge(
        "lanner_outgoing_oldest_age_seconds",
        "How long the message that waits longest to leave has waited",
        [(_queue(info), ages[info.path]) for info in outgoing],
    )
    lines += _gauge("lanner_dead_letters", "Messages in the dead-letter queues", [("", dead)])
    lines += _gauge(
        "lanner_unwritten_messages",
        "Messages that cancelled receives gave back and that are in memory alone",
        [("", manager.unwritten_messages)],
    )
    lines += _gauge("lanner_bytes", "Bytes of all messages", [("", manager.total_bytes)])
    lines += _gauge(
        "lanner_quota_ratio",
        "How much of the manager's quota is used",
        [("", _ratio(manager.total_bytes, manager.settings.quota))],
    )
    lines += _gauge("lanner_history_lsn", "The last LSN of the history", [("", manager.history.last_lsn)])
    lines += _gauge(
        "lanner_online", "Whether messages are exchanged with other machines", [("", manager.is_online)]
    )
    lines += _histogram(
        "lanner_commit_seconds", "How long commits take", statistics.buckets(), statistics.seconds
    )
    lines += _counter("lanner_stored_messages_total", "Messages stored", statistics.messages)
    yield "".join(f"{line}\n" for line in lines).encode()


def _queue(info: QueueInfo) -> str:
    return f'{{queue="{info.path.translate(_BACKSLASH)}"}}'


def _by_queue(infos: Iterable[QueueInfo], name: str) -> list[tuple[str, float]]:
    return [(_queue(info), getattr(info, name)) for info in infos]


def _ratio(used: int, quota_kilobytes: int) -> float:
    if quota_kilobytes == INFINITE:
        return 0.0
    return used / (quota_kilobytes * 1024) if quota_kilobytes else 1.0


def _gauge(name: str, meaning: str, values: Iterable[tuple[str, float]]) -> list[str]:
    head = [f"# HELP {name} {meaning}", f"# TYPE {name} gauge"]
    return head + [f"{name}{labels} {float(value):g}" for labels, value in values]


def _counter(name: str, meaning: str, value: int) -> list[str]:
    return [f"# HELP {name} {meaning}", f"# TYPE {name} counter", f"{name} {value}"]


def _histogram(name: str, meaning: str, buckets: Iterable[tuple[str, int]], total: float) -> list[str]:
    lines = [f"# HELP {name} {meaning}", f"# TYPE {name} histogram"]
    count = 0
    for bound, count in buckets:
        lines.append(f'{name}_bucket{{le="{bound}"}} {count}')
    return [*lines, f"{name}_sum {total:.6f}", f"{name}_count {count}"]
