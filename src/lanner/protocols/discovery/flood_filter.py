"""Dropping what floods us in the kernel.

A rate limit keeps a flood from being answered, not from filling the socket's queue, where everybody else's
requests then find no room. Who sends far more than its share is dropped before the queue for a while, by a
socket filter (classic BPF, socket(7) SO_ATTACH_FILTER) that compares the sender's address.
"""

from __future__ import annotations

import ctypes
import socket
import struct
from collections.abc import Iterable

__all__ = ["BLOCK_SECONDS", "FLOOD_PACKETS", "FloodWatch", "attach"]

FLOOD_PACKETS = 500
"""Packets beyond its share within one watch that make a sender a flood; a client sends one in 15 seconds."""

BLOCK_SECONDS = 5.0
"""How long a flood is dropped, and a watch lasts. With the default limits a bucket is full again after it."""

MAX_BLOCKED = 64
"""Senders that are dropped at a time: each costs every packet a comparison."""

MAX_WATCHED = 4_096
"""Senders that are counted at a time; more are a flood with forged senders, which no address gives away."""

_SO_ATTACH_FILTER, _SO_DETACH_FILTER = 26, 27  # asm-generic/socket.h
_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06  # linux/bpf_common.h
_SENDER = 0xFFF00000 + 12
"""SKF_NET_OFF (linux/filter.h) and the place of the source address in an IPv4 header."""


class FloodWatch:
    """Counts what is discarded for want of a share, and says who is to be dropped."""

    def __init__(self) -> None:
        self.blocked: dict[str, float] = {}
        """Who is dropped, and until when."""
        self._counts: dict[str, int] = {}
        self._watch_ends = float("-inf")

    def note(self, source: str, now: float) -> bool:
        """One more was discarded. Says whether the sender is to be dropped from now on."""
        if now >= self._watch_ends:
            self._counts.clear()
            self._watch_ends = now + BLOCK_SECONDS
        count = self._counts.get(source, 0) + 1
        if count > 1 or len(self._counts) < MAX_WATCHED:
            self._counts[source] = count
        if count < FLOOD_PACKETS or source in self.blocked or len(self.blocked) >= MAX_BLOCKED:
            return False
        self.blocked[source] = now + BLOCK_SECONDS
        return True

    def release(self, now: float) -> float | None:
        """Let go of those whose time is over; says when the next one's is."""
        self.blocked = {source: until for source, until in self.blocked.items() if until > now}
        for source in tuple(self._counts):
            if source not in self.blocked and self._counts[source] >= FLOOD_PACKETS:
                del self._counts[source]
        return min(self.blocked.values(), default=None)


def attach(bound: socket.socket, blocked: Iterable[str]) -> None:
    """Have the kernel drop what these addresses send to a socket, and nothing else."""
    addresses = [int.from_bytes(socket.inet_aton(address), "big") for address in blocked]
    if not addresses:
        bound.setsockopt(socket.SOL_SOCKET, _SO_DETACH_FILTER, 0)
        return
    program = [_instruction(_LOAD, _SENDER)]
    for index, address in enumerate(addresses):
        # To the last instruction, over the other comparisons and the one that takes the packet.
        program.append(_instruction(_JUMP_IF_EQUAL, address, len(addresses) - index))
    program.append(_instruction(_RETURN, 0xFFFFFFFF))
    program.append(_instruction(_RETURN, 0))
    code = ctypes.create_string_buffer(b"".join(program))
    descriptor = struct.pack("HP", len(program), ctypes.addressof(code))
    bound.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, descriptor)


def _instruction(code: int, value: int, jump_if_true: int = 0) -> bytes:
    """``struct sock_filter``."""
    return struct.pack("HBBI", code, jump_if_true, 0, value)
