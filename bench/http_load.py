"""A lean HTTP client: one epoll loop over raw sockets, each connection with one request in flight."""

from __future__ import annotations

import os
import select
import socket
import time
from collections.abc import Callable
from pathlib import Path

from bench.peers.rabbitmq import Measurement

__all__ = ["cpu_seconds", "post_in_turn"]

_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """The processor time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def post_in_turn(
    port: int, make: Callable[[int], bytes], connections: int, per_connection: int, *, server_pid: int
) -> Measurement:
    """Post ``make(0)``, ``make(1)``, ... on many connections, each waiting for its answer: 200."""
    sockets: dict[int, socket.socket] = {}
    poll = select.epoll()
    for _ in range(connections):
        connected = socket.create_connection(("127.0.0.1", port))
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sockets[connected.fileno()] = connected
        poll.register(connected.fileno(), select.EPOLLIN)
    answers = dict.fromkeys(sockets, b"")
    wanted = connections * per_connection
    requests = [make(number) for number in range(wanted)]
    sent = done = 0
    server_cpu, client_cpu, begin = cpu_seconds(server_pid), time.process_time(), time.perf_counter()
    for connected in sockets.values():
        connected.sendall(requests[sent])
        sent += 1
    while done < wanted:
        for number, _ in poll.poll(10):
            answers[number] += sockets[number].recv(65536)
            if _is_complete(answers[number]):
                answers[number] = b""
                done += 1
                if sent < wanted:
                    sockets[number].sendall(requests[sent])
                    sent += 1
    measured = Measurement(
        wanted,
        time.perf_counter() - begin,
        time.process_time() - client_cpu,
        cpu_seconds(server_pid) - server_cpu,
    )
    for connected in sockets.values():
        connected.close()
    return measured


def _is_complete(answer: bytes) -> bool:
    head, separator, body = answer.partition(b"\r\n\r\n")
    if not separator:
        return False
    if not head.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(answer.decode())
    length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
    return len(body) >= int(length)
