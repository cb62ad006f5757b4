"""A lean AMQP 0-9-1 publisher on a raw socket, no dearer to run than one written in C.

It knows only what a measurement needs: open a connection with one channel, declare, purge and
delete queues, and publish with confirms. The frames of a message are built once
(``publish_frames``) and sent as often as wanted; confirms are unpacked many at a time.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping
from types import TracebackType
from typing import Final, Self

__all__ = ["AmqpError", "Confirms", "Connection", "Table", "publish_frames"]

Table = Mapping[str, "str | int | bool | Table"]
Method = tuple[int, int]

LOOPBACK: Final = "127.0.0.1"
CHANNEL: Final = 1
PERSISTENT: Final = 2
FRAME_MAX: Final = 131072
RECEIVE_SIZE: Final = 65536
RPC_FRAMES: Final = 8

METHOD_FRAME: Final = 1
HEADER_FRAME: Final = 2
BODY_FRAME: Final = 3
FRAME_END: Final = b"\xce"
FRAME_OVERHEAD: Final = 8
_FRAME = struct.Struct(">BHI")

CONNECTION_START: Final = (10, 10)
CONNECTION_START_OK: Final = (10, 11)
CONNECTION_TUNE: Final = (10, 30)
CONNECTION_TUNE_OK: Final = (10, 31)
CONNECTION_OPEN: Final = (10, 40)
CONNECTION_OPEN_OK: Final = (10, 41)
CONNECTION_CLOSE: Final = (10, 50)
CONNECTION_CLOSE_OK: Final = (10, 51)
CHANNEL_OPEN: Final = (20, 10)
CHANNEL_OPEN_OK: Final = (20, 11)
CHANNEL_CLOSE: Final = (20, 40)
QUEUE_DECLARE: Final = (50, 10)
QUEUE_DECLARE_OK: Final = (50, 11)
QUEUE_PURGE: Final = (50, 30)
QUEUE_PURGE_OK: Final = (50, 31)
QUEUE_DELETE: Final = (50, 40)
QUEUE_DELETE_OK: Final = (50, 41)
BASIC_CLASS: Final = 60
BASIC_PUBLISH: Final = (BASIC_CLASS, 40)
BASIC_ACK: Final = (BASIC_CLASS, 80)
CONFIRM_SELECT: Final = (85, 10)
CONFIRM_SELECT_OK: Final = (85, 11)

DECLARE_PASSIVE: Final = 1
DECLARE_DURABLE: Final = 2
DELIVERY_MODE_FLAG: Final = 0x1000

# A basic.ack frame always has this size and begins with these bytes, so a run of them unpacks at once.
_ACK_FRAME = struct.Struct(">11sQBx")
_ACK_PREFIX: Final = _FRAME.pack(METHOD_FRAME, CHANNEL, 13) + struct.pack(">HH", *BASIC_ACK)


class AmqpError(RuntimeError):
    """The server closed the connection, refused a request, or sent what was not expected."""


def _short_string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack(">B", len(raw)) + raw


def _long_string(raw: bytes) -> bytes:
    return struct.pack(">I", len(raw)) + raw


def _table_value(value: str | int | bool | Table) -> bytes:
    if isinstance(value, bool):
        return b"t" + struct.pack(">B", value)
    if isinstance(value, int):
        return b"I" + struct.pack(">i", value)
    if isinstance(value, str):
        return b"S" + _long_string(value.encode())
    return b"F" + _table(value)


def _table(fields: Table) -> bytes:
    return _long_string(b"".join(_short_string(name) + _table_value(value) for name, value in fields.items()))


def _frame(kind: int, channel: int, payload: bytes) -> bytes:
    return _FRAME.pack(kind, channel, len(payload)) + payload + FRAME_END


def _method_frame(channel: int, method: Method, arguments: bytes) -> bytes:
    return _frame(METHOD_FRAME, channel, struct.pack(">HH", *method) + arguments)


def publish_frames(queue: str, body: bytes, frame_max: int = FRAME_MAX) -> bytes:
    """Everything that publishes one persistent message to ``queue``, ready to send again and again."""
    publish = struct.pack(">H", 0) + _short_string("") + _short_string(queue) + b"\0"
    header = struct.pack(">HHQHB", BASIC_CLASS, 0, len(body), DELIVERY_MODE_FLAG, PERSISTENT)
    room = frame_max - FRAME_OVERHEAD
    pieces = (body[start : start + room] for start in range(0, len(body), room))
    return b"".join(
        (
            _method_frame(CHANNEL, BASIC_PUBLISH, publish),
            _frame(HEADER_FRAME, CHANNEL, header),
            *(_frame(BODY_FRAME, CHANNEL, piece) for piece in pieces),
        )
    )


class Confirms:
    """Counts confirmed messages; tags may come out of order, alone or as "all up to this one"."""

    def __init__(self) -> None:
        self._floor = 0
        self._early: set[int] = set()

    @property
    def count(self) -> int:
        """How many messages the server has confirmed so far."""
        return self._floor + len(self._early)

    def add(self, tag: int, multiple: bool) -> None:
        """Take one basic.ack; a message confirmed twice is the server's mistake."""
        if tag <= self._floor or (not multiple and tag in self._early):
            raise AmqpError(f"the server confirmed message {tag} twice")
        if multiple:
            self._floor = tag
            if self._early:
                self._early = {early for early in self._early if early > tag}
        elif tag == self._floor + 1:
            self._floor = tag
        else:
            self._early.add(tag)
            return
        while self._early and self._floor + 1 in self._early:
            self._floor += 1
            self._early.remove(self._floor)


class Connection:
    """One connection with one channel, used from one thread; every wait ends after ``timeout``."""

    def __init__(self, port: int, timeout: float = 30.0) -> None:
        self.confirms = Confirms()
        self.frame_max = FRAME_MAX
        self._carry = b""
        self._socket = socket.create_connection((LOOPBACK, port), timeout)
        try:
            self._configure_socket(timeout)
            self._handshake()
        except BaseException:
            self._socket.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self._socket.close()

    def fileno(self) -> int:
        """The socket's descriptor, for epoll."""
        return self._socket.fileno()

    def close(self) -> None:
        """Say goodbye and close the socket."""
        try:
            goodbye = struct.pack(">H", 200) + _short_string("") + struct.pack(">HH", 0, 0)
            self._call(0, CONNECTION_CLOSE, goodbye, CONNECTION_CLOSE_OK)
        finally:
            self._socket.close()

    def select_confirms(self) -> None:
        """Ask the server to confirm every message published from here on."""
        self._call(CHANNEL, CONFIRM_SELECT, b"\0", CONFIRM_SELECT_OK)

    def declare(self, queue: str, arguments: Table) -> None:
        """Create a durable queue."""
        self._declare(queue, DECLARE_DURABLE, arguments)

    def message_count(self, queue: str) -> int:
        """How many messages the queue holds ready, by a passive declare."""
        return self._declare(queue, DECLARE_PASSIVE, {})

    def purge(self, queue: str) -> int:
        """Empty the queue and return how many messages it held."""
        return self._drop(queue, QUEUE_PURGE, QUEUE_PURGE_OK)

    def delete(self, queue: str) -> int:
        """Delete the queue and return how many messages it held."""
        return self._drop(queue, QUEUE_DELETE, QUEUE_DELETE_OK)

    def send(self, frames: bytes | memoryview) -> None:
        """Send frames built beforehand."""
        self._socket.sendall(frames)

    def receive_confirms(self) -> int:
        """Wait for the server's next bytes and return how many messages it has confirmed in all."""
        data = self._receive()
        size = _ACK_FRAME.size
        whole = len(data) - len(data) % size
        add = self.confirms.add
        for index, (prefix, tag, multiple) in enumerate(_ACK_FRAME.iter_unpack(memoryview(data)[:whole])):
            if prefix != _ACK_PREFIX:
                self._refuse(data[index * size :])
            add(tag, multiple == 1)
        rest = data[whole:]
        if not rest.startswith(_ACK_PREFIX[: len(rest)]):
            self._refuse(rest)
        self._carry = rest
        return self.confirms.count

    def _configure_socket(self, timeout: float) -> None:
        """Let the kernel keep the time-outs: Python's own would cost a poll before every call."""
        self._socket.setblocking(True)
        interval = struct.pack("ll", int(timeout), int(timeout % 1 * 1e6))
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, interval)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, interval)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def _handshake(self) -> None:
        self._socket.sendall(b"AMQP\0\0\x09\x01")
        self._expect(CONNECTION_START)
        capabilities: Table = {"publisher_confirms": True, "basic.nack": True}
        start_ok = (
            _table({"product": "lanner-bench", "capabilities": capabilities})
            + _short_string("PLAIN")
            + _long_string(b"\0guest\0guest")
            + _short_string("en_US")
        )
        tune = self._call(0, CONNECTION_START_OK, start_ok, CONNECTION_TUNE)
        _, offered, _ = struct.unpack(">HIH", tune)
        self.frame_max = min(offered, FRAME_MAX) if offered else FRAME_MAX
        no_heartbeat = struct.pack(">HIH", CHANNEL, self.frame_max, 0)
        self._socket.sendall(_method_frame(0, CONNECTION_TUNE_OK, no_heartbeat))
        self._call(0, CONNECTION_OPEN, _short_string("/") + b"\0\0", CONNECTION_OPEN_OK)
        self._call(CHANNEL, CHANNEL_OPEN, _short_string(""), CHANNEL_OPEN_OK)

    def _declare(self, queue: str, flags: int, arguments: Table) -> int:
        request = struct.pack(">H", 0) + _short_string(queue) + struct.pack(">B", flags) + _table(arguments)
        answer = self._call(CHANNEL, QUEUE_DECLARE, request, QUEUE_DECLARE_OK)
        messages, _ = struct.unpack(">II", answer[-8:])
        return int(messages)

    def _drop(self, queue: str, method: Method, answer: Method) -> int:
        request = struct.pack(">H", 0) + _short_string(queue) + b"\0"
        (messages,) = struct.unpack(">I", self._call(CHANNEL, method, request, answer))
        return int(messages)

    def _call(self, channel: int, method: Method, arguments: bytes, answer: Method) -> bytes:
        self._socket.sendall(_method_frame(channel, method, arguments))
        return self._expect(answer)

    def _expect(self, wanted: Method) -> bytes:
        """The arguments of the next method, which must be ``wanted``; other frame kinds are skipped."""
        for _ in range(RPC_FRAMES):
            kind, payload = self._read_frame()
            if kind != METHOD_FRAME:
                continue
            class_id, method_id = struct.unpack_from(">HH", payload)
            if (class_id, method_id) == wanted:
                return payload[4:]
            raise AmqpError(_explain((class_id, method_id), payload[4:]))
        raise AmqpError(f"the server sent {RPC_FRAMES} frames without answering {wanted}")

    def _read_frame(self) -> tuple[int, bytes]:
        data = self._carry
        while len(data) < _FRAME.size:
            data = self._receive()
        kind, _, size = _FRAME.unpack_from(data)
        end = _FRAME.size + size
        while len(data) <= end:
            data = self._receive()
        if data[end : end + 1] != FRAME_END:
            raise AmqpError("the server sent a frame without its end mark")
        self._carry = data[end + 1 :]
        return kind, data[_FRAME.size : end]

    def _receive(self) -> bytes:
        """Wait for the server's next bytes and return them behind whatever was left over."""
        try:
            data = self._socket.recv(RECEIVE_SIZE)
        except BlockingIOError as error:
            raise TimeoutError("the server sent nothing in time") from error
        if not data:
            raise AmqpError("the server closed the connection")
        self._carry += data
        return self._carry

    def _refuse(self, rest: bytes) -> None:
        """Raise for bytes that are not a basic.ack, with the server's own words if it gave any."""
        self._carry = rest
        self._expect(BASIC_ACK)
        raise AmqpError("the server sent a basic.ack of an unknown form")


def _explain(method: Method, arguments: bytes) -> str:
    if method in (CONNECTION_CLOSE, CHANNEL_CLOSE):
        code, length = struct.unpack_from(">HB", arguments)
        return f"the server closed with {code}: {arguments[3 : 3 + length].decode(errors='replace')}"
    return f"the server sent method {method}, which was not expected"
