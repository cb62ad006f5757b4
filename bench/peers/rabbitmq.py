"""RabbitMQ as a peer: a private node for one measurement, and the workloads it is measured with.

``python -m bench.peers.rabbitmq`` starts a node and prints every workload for both queue types
that make a confirmed persistent message survive a power cut: classic (version 1) and quorum.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Literal

from bench.peers import PeerMissingError
from bench.peers.amqp import LOOPBACK, AmqpError, Connection, Table, publish_frames

__all__ = [
    "QUEUE_TYPES",
    "Measurement",
    "Node",
    "QueueType",
    "WindowResult",
    "publish_connections",
    "publish_window",
    "rabbitmq_node",
]

QueueType = Literal["classic", "quorum"]
QUEUE_TYPES: Final[tuple[QueueType, ...]] = ("classic", "quorum")
QUEUE_ARGUMENTS: Final[dict[QueueType, Table]] = {
    "classic": {"x-queue-type": "classic", "x-queue-version": 1, "x-queue-mode": "default"},
    "quorum": {"x-queue-type": "quorum"},
}

PACKAGE: Final = "rabbitmq-server"
# The packaged command on the PATH would change user and directory; the script behind it does neither.
SERVER_SCRIPT: Final = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
START_SECONDS: Final = 60.0
STOP_SECONDS: Final = 30.0
COUNT_SECONDS: Final = 10.0
CONFIRM_SECONDS: Final = 30.0
SETTLE_SECONDS: Final = 5.0
QUIET_SECONDS: Final = 0.5
QUIET_SHARE: Final = 0.05
POLL_SECONDS: Final = 0.1
LOG_TAIL: Final = 2000

MESSAGE_SIZE: Final = 1024
WINDOW: Final = 500
CONNECTIONS: Final = 32

ROUNDS: Final = 3
WARM_UP_COUNT: Final = 10_000
WINDOW_COUNT: Final = 50_000
PER_CONNECTION: Final = 1000

Process = subprocess.Popen[bytes]
WindowPublisher = Callable[[Connection, memoryview, int, int], None]


@dataclass(frozen=True, slots=True)
class Node:
    """A running private node: where it listens, its Erlang process and the directory it writes to."""

    port: int
    pid: int
    directory: Path


@contextlib.contextmanager
def rabbitmq_node(parent: Path | None = None) -> Iterator[Node]:
    """Run a private node whose files lie in a new directory under ``parent``, gone afterwards.

    ``parent`` decides which disk is measured; a tmpfs would make every fsync free.
    """
    server, epmd = _find_programs()
    with (
        tempfile.TemporaryDirectory(prefix="rabbitmq-", dir=parent, ignore_cleanup_errors=True) as name,
        contextlib.ExitStack() as processes,
    ):
        directory = Path(name)
        port, dist_port, epmd_port = _free_ports(3)
        environment = _environment(directory, port, dist_port, epmd_port)
        _write_configuration(directory, port)
        with (directory / "console.log").open("wb") as console:
            for command in ([epmd, "-port", str(epmd_port), "-address", LOOPBACK], [str(server)]):
                process = _start(command, environment, directory, console.fileno())
                processes.callback(_stop, process)
        _wait_until_ready(process, port, directory)
        pid = int((directory / "pid").read_text())
        yield Node(port=port, pid=pid, directory=directory)


def _find_programs() -> tuple[Path, str]:
    if not SERVER_SCRIPT.exists():
        raise PeerMissingError("RabbitMQ", PACKAGE)
    epmd = shutil.which("epmd")
    if epmd is None:
        raise PeerMissingError("epmd", "erlang-base")
    return SERVER_SCRIPT, epmd


def _free_ports(count: int) -> list[int]:
    """Ports nobody listens on, all held until the last is found so that they differ."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.create_server((LOOPBACK, 0))) for _ in range(count)]
        return [int(each.getsockname()[1]) for each in sockets]


def _environment(directory: Path, port: int, dist_port: int, epmd_port: int) -> dict[str, str]:
    """Built from nothing, so that no setting of the machine's own node leaks in."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": "C.UTF-8",
        "HOME": str(directory),
        "ERL_EPMD_ADDRESS": LOOPBACK,
        "ERL_EPMD_PORT": str(epmd_port),
        "RABBITMQ_NODENAME": f"lanner-bench-{port}@localhost",
        "RABBITMQ_DIST_PORT": str(dist_port),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        "RABBITMQ_CONF_ENV_FILE": str(directory / "rabbitmq-env.conf"),
        "RABBITMQ_CONFIG_FILE": str(directory / "rabbitmq.conf"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(directory / "enabled_plugins"),
        "RABBITMQ_MNESIA_BASE": str(directory / "mnesia"),
        "RABBITMQ_LOG_BASE": str(directory / "log"),
        "RABBITMQ_PID_FILE": str(directory / "pid"),
    }


def _write_configuration(directory: Path, port: int) -> None:
    """All settings stay RabbitMQ's defaults, except where it listens and that no plugin runs."""
    (directory / "rabbitmq.conf").write_text(f"listeners.tcp.local = {LOOPBACK}:{port}\n")
    (directory / "rabbitmq-env.conf").touch()
    (directory / "enabled_plugins").write_text("[].\n")
    cookie = directory / ".erlang.cookie"
    cookie.touch(mode=0o600)
    cookie.write_text(secrets.token_hex(16))


def _start(command: Sequence[str], environment: dict[str, str], directory: Path, console: int) -> Process:
    """Start in a session of its own, so that Ctrl-C reaches the measurement and not the node."""
    return subprocess.Popen(
        command,
        env=environment,
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=console,
        stderr=console,
        start_new_session=True,
    )


def _stop(process: Process) -> None:
    """End a process started here, and what it started in turn, by their ids."""
    family = _descendants(process.pid)
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        for pid in family:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait(STOP_SECONDS)


def _wait_until_ready(process: Process, port: int, directory: Path) -> None:
    """RabbitMQ listens once it has booted, so a finished AMQP handshake means that it is ready."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        with contextlib.suppress(OSError, AmqpError), Connection(port):
            return
        time.sleep(POLL_SECONDS)
    said = (directory / "console.log").read_text(errors="replace")[-LOG_TAIL:]
    how = "took too long to start" if process.poll() is None else "ended while it started"
    raise RuntimeError(f"RabbitMQ {how}:\n{said}")


def _descendants(pid: int) -> list[int]:
    """The process and all its living descendants."""
    family = [pid]
    for parent in family:
        for children in Path(f"/proc/{parent}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                family.extend(int(child) for child in children.read_text().split())
    return family


def _cpu_seconds(pid: int) -> float:
    """Processor time of the process and its descendants, living or waited for, in user and kernel."""
    ticks = 0
    for each in _descendants(pid):
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(int(field) for field in fields[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Measurement:
    """One run of a workload: how long it took, and the processor time on either side."""

    messages: int
    seconds: float
    client_cpu: float
    server_cpu: float

    @property
    def rate(self) -> float:
        """Messages confirmed per second."""
        return self.messages / self.seconds


@dataclass(frozen=True, slots=True)
class WindowResult:
    """``publish_window`` both ways: whole windows one after another, or refilled with every confirm."""

    batch: Measurement
    sliding: Measurement

    @property
    def best(self) -> Measurement:
        """The faster way, which is the one to compare with."""
        return max(self.batch, self.sliding, key=lambda each: each.rate)


def publish_window(
    port: int,
    queue_type: QueueType,
    count: int,
    size: int = MESSAGE_SIZE,
    window: int = WINDOW,
    *,
    server_pid: int,
) -> WindowResult:
    """Publish ``count`` persistent messages on one connection, at most ``window`` of them unconfirmed."""

    def run(publish: WindowPublisher) -> Measurement:
        with _queue_to_fill(port, queue_type, count) as queue, Connection(port) as connection:
            connection.select_confirms()
            frames = memoryview(publish_frames(queue, bytes(size), connection.frame_max) * window)
            return _measure(count, server_pid, partial(publish, connection, frames, count, window))

    return WindowResult(batch=run(_publish_batches), sliding=run(_publish_sliding))


def publish_connections(
    port: int,
    queue_type: QueueType,
    connections: int = CONNECTIONS,
    per_connection: int = PER_CONNECTION,
    size: int = MESSAGE_SIZE,
    *,
    server_pid: int,
) -> Measurement:
    """Publish to one queue on many connections, each waiting for its confirm before it goes on."""
    count = connections * per_connection
    with _queue_to_fill(port, queue_type, count) as queue, contextlib.ExitStack() as opened:
        publishers = [opened.enter_context(Connection(port)) for _ in range(connections)]
        for publisher in publishers:
            publisher.select_confirms()
        frames = publish_frames(queue, bytes(size), publishers[0].frame_max)
        return _measure(count, server_pid, partial(_publish_in_turn, publishers, frames, per_connection))


@contextlib.contextmanager
def _queue_to_fill(port: int, queue_type: QueueType, count: int) -> Iterator[str]:
    """A new queue that must hold exactly ``count`` messages at the end, and is deleted then."""
    queue = f"bench-{queue_type}-{secrets.token_hex(4)}"
    with Connection(port) as control:
        control.declare(queue, QUEUE_ARGUMENTS[queue_type])
        yield queue
        _check_count(control, queue, count)
        control.delete(queue)


def _check_count(control: Connection, queue: str, count: int) -> None:
    """A queue may tell its length a little late, so ask again for a while."""
    deadline = time.monotonic() + COUNT_SECONDS
    while (held := control.message_count(queue)) != count:
        if time.monotonic() > deadline:
            raise AmqpError(f"{queue} holds {held} messages, not the {count} that were confirmed")
        time.sleep(POLL_SECONDS)


def _settle(server_pid: int) -> None:
    """Wait until the server has done with the run before, so that this one does not pay for it."""
    deadline = time.monotonic() + SETTLE_SECONDS
    before = _cpu_seconds(server_pid)
    while time.monotonic() < deadline:
        time.sleep(QUIET_SECONDS)
        now = _cpu_seconds(server_pid)
        if now - before < QUIET_SECONDS * QUIET_SHARE:
            return
        before = now


def _measure(count: int, server_pid: int, work: Callable[[], None]) -> Measurement:
    _settle(server_pid)
    server_cpu, client_cpu, start = _cpu_seconds(server_pid), time.process_time(), time.perf_counter()
    work()
    return Measurement(
        messages=count,
        seconds=time.perf_counter() - start,
        client_cpu=time.process_time() - client_cpu,
        server_cpu=_cpu_seconds(server_pid) - server_cpu,
    )


def _publish_batches(connection: Connection, frames: memoryview, count: int, window: int) -> None:
    """Send a whole window, wait until all of it is confirmed, send the next."""
    stride = len(frames) // window
    confirmed = 0
    while confirmed < count:
        sent = min(confirmed + window, count)
        connection.send(frames[: (sent - confirmed) * stride])
        while confirmed < sent:
            confirmed = connection.receive_confirms()


def _publish_sliding(connection: Connection, frames: memoryview, count: int, window: int) -> None:
    """Keep the window full: send as many messages as were just confirmed."""
    stride = len(frames) // window
    sent = confirmed = 0
    while confirmed < count:
        room = min(confirmed + window, count) - sent
        if room:
            connection.send(frames[: room * stride])
            sent += room
        confirmed = connection.receive_confirms()


def _publish_in_turn(publishers: Sequence[Connection], frames: bytes, per_connection: int) -> None:
    """One loop over all connections; each has a single message under way."""
    waiting = {publisher.fileno(): publisher for publisher in publishers}
    sent = dict.fromkeys(waiting, 1)
    with select.epoll(len(publishers)) as poll:
        for descriptor, publisher in waiting.items():
            poll.register(descriptor, select.EPOLLIN)
            publisher.send(frames)
        while waiting:
            for descriptor in _readable(poll):
                publisher = waiting[descriptor]
                if publisher.receive_confirms() < sent[descriptor]:
                    continue
                if sent[descriptor] < per_connection:
                    publisher.send(frames)
                    sent[descriptor] += 1
                else:
                    poll.unregister(descriptor)
                    del waiting[descriptor]


def _readable(poll: select.epoll) -> list[int]:
    ready = poll.poll(CONFIRM_SECONDS)
    if not ready:
        raise TimeoutError("the server confirmed nothing in time")
    return [descriptor for descriptor, _ in ready]


def _measure_round(node: Node, window_count: int, per_connection: int) -> dict[str, Measurement]:
    """Every workload once, the queue types in alternation."""
    results = {}
    for queue_type in QUEUE_TYPES:
        window = publish_window(node.port, queue_type, window_count, server_pid=node.pid)
        results[f"{queue_type}: window of {WINDOW}, batches"] = window.batch
        results[f"{queue_type}: window of {WINDOW}, sliding"] = window.sliding
    for queue_type in QUEUE_TYPES:
        results[f"{queue_type}: {CONNECTIONS} connections"] = publish_connections(
            node.port, queue_type, per_connection=per_connection, server_pid=node.pid
        )
    return results


def _print_results(rounds: Sequence[dict[str, Measurement]]) -> None:
    print(f"{'workload':34} {'median/s':>9} {'min':>7} {'max':>7} {'client us':>10} {'server us':>10}")
    for name in sorted(rounds[0]):
        runs = [each[name] for each in rounds]
        rates = [run.rate for run in runs]
        client = statistics.median(run.client_cpu / run.messages for run in runs) * 1e6
        server = statistics.median(run.server_cpu / run.messages for run in runs) * 1e6
        print(
            f"{name:34} {statistics.median(rates):9.0f} {min(rates):7.0f} {max(rates):7.0f}"
            f" {client:10.1f} {server:10.1f}"
        )


def main() -> int:
    """Start a node, warm it up, and print three rounds of every workload."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        with rabbitmq_node() as node:
            print(f"RabbitMQ {node.pid} on {LOOPBACK}:{node.port}, files in {node.directory}")
            _measure_round(node, WARM_UP_COUNT, WARM_UP_COUNT // CONNECTIONS)
            rounds = [_measure_round(node, WINDOW_COUNT, PER_CONNECTION) for _ in range(ROUNDS)]
    except PeerMissingError as error:
        print(error, file=sys.stderr)
        return 1
    _print_results(rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
