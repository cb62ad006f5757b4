"""A listener for RPC: sockets and timers around associations, and the limits that keep it alive."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from collections import Counter
from collections.abc import Sequence
from typing import cast

from lanner.model.errors import ListenError
from lanner.protocols.rpc.association import (
    Abandon,
    Action,
    Close,
    Dispatch,
    Peer,
    Send,
    ServerAssociation,
    ServerCall,
    Services,
)
from lanner.protocols.rpc.errors import FaultStatus, NdrError, ProtocolError, RpcFault
from lanner.protocols.rpc.fragments import Budget
from lanner.protocols.rpc.framing import Framer
from lanner.protocols.rpc.groups import Groups
from lanner.protocols.rpc.interface import RpcInterface
from lanner.protocols.rpc.limits import Limits
from lanner.protocols.rpc.logons import Buckets, source_of
from lanner.protocols.rpc.notices import Notices
from lanner.protocols.rpc.security import Acceptor

__all__ = ["RpcServer"]

log = logging.getLogger(__name__)

TICK_SECONDS = 1.0
"""How often associations that take too long are looked for."""

FORBIDDEN_STATUSES = frozenset(
    (
        0x00000000, 0x80000001, 0x80000002, 0x80000003, 0xC0000005, 0xC0000006, 0xC000001D,
        0xC0000096, 0xC00000AA, 0xC00000FD, 0xC0000194, 0xC0000235, 0xC0000409, 0xC0000420,
    )
)  # fmt: skip
"""What a fault must not say (MS-RPCE 3.3.3.5.1)."""


class RpcServer:
    """Interfaces on one port."""

    def __init__(
        self,
        interfaces: Sequence[RpcInterface],
        acceptor: Acceptor,
        listen: str,
        port: int,
        *,
        anonymous_loopback: bool = False,
        limits: Limits | None = None,
    ) -> None:
        self.limits = limits or Limits()
        self.calls = 0
        self.answered = 0
        self.notices = Notices(log, logging.INFO)
        self.refused = 0
        self._listen = listen
        self._port = port
        self._services = Services(
            interfaces, acceptor, Groups(), Budget(self.limits.received), anonymous_loopback
        )
        self._accepts = Buckets(self.limits.accepts, self.limits.accept_seconds)
        self._connections: dict[_Connection, None] = {}  # in the order of their coming
        self._sources: Counter[str] = Counter()
        self._server: asyncio.Server | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return self._port

    @property
    def associations(self) -> int:
        """Associations at this moment."""
        return len(self._connections)

    @property
    def groups(self) -> int:
        """Association groups at this moment."""
        return len(self._services.groups)

    @property
    def held(self) -> int:
        """Octets of requests that are held at this moment."""
        return self.limits.received - self._services.budget.left

    async def start(self) -> str:
        """Begin to listen; says where."""
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(
                lambda: _Connection(self, self._services, self.limits), self._listen, self._port, backlog=256
            )
        except OSError as error:
            raise ListenError(
                f"{self._listen}:{self._port} cannot be listened on: {error.strerror or error}"
            ) from error
        self._port = self._server.sockets[0].getsockname()[1]
        self._tick()
        return f"{self._listen}:{self._port}"

    async def stop(self) -> None:
        """Hang up on everybody."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._server is not None:
            self._server.close()
            self._server = None
        for connection in tuple(self._connections):
            connection.drop("the server stops")
        await asyncio.sleep(0)

    # What connections ask.

    def admit(self, connection: _Connection, host: str) -> bool:
        """Take a connection in, if there is room."""
        source = source_of(host)
        now = asyncio.get_running_loop().time()
        limits = self.limits
        if len(self._connections) >= limits.associations:
            self._make_room()
        if (
            len(self._connections) >= limits.associations
            or self._sources[source] >= limits.per_source
            or not self._accepts.draw(source, now)
        ):
            self.refused += 1
            if not self._sources[source]:
                del self._sources[source]
            return False
        unready = [each for each in self._connections if not each.is_set_up]
        if len(unready) >= limits.unready:
            # A flood pushes itself out, and one who binds at once is through before it is pushed.
            unready[0].drop("too many associations are being set up")
            unready[0].leave()
        self._connections[connection] = None
        self._sources[source] += 1
        return True

    def _make_room(self) -> None:
        """Who has not logged on gives way to who may."""
        oldest = next((each for each in self._connections if each.is_anonymous), None)
        if oldest is not None:
            oldest.drop("there is no room for anonymous associations")
            oldest.leave()

    def release(self, connection: _Connection, host: str) -> None:
        """A connection is gone."""
        if self._connections.pop(connection, connection) is None:
            source = source_of(host)
            self._sources[source] -= 1
            if not self._sources[source]:
                del self._sources[source]

    def _tick(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        for connection in tuple(self._connections):
            connection.check(now)
        self._timer = loop.call_later(TICK_SECONDS, self._tick)


class _Connection(asyncio.Protocol):
    """One client."""

    def __init__(self, server: RpcServer, services: Services, limits: Limits) -> None:
        self._server = server
        self._services = services
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._framer = Framer()
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._transport: asyncio.Transport | None = None
        self._association: ServerAssociation | None = None
        self.is_set_up = False
        now = self._loop.time()
        self._began = now
        self._active = now
        self._fragment_since: float | None = None
        self._request_since: float | None = None
        self._blocked_since: float | None = None

    # The transport's side.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's are none by inheritance.
        self._transport = cast(asyncio.Transport, transport)
        host, port = transport.get_extra_info("peername")[:2]
        peer = Peer(host, port, _is_loopback(host))
        if not self._server.admit(self, host):
            self._transport.abort()
            return
        self._transport.set_write_buffer_limits(high=self._limits.unsent)
        self._association = ServerAssociation(self._services, peer, str(self._server.port))

    def data_received(self, data: bytes) -> None:
        association = self._association
        if association is None:
            return
        try:
            pdus = self._framer.feed(data)
        except ProtocolError as error:
            self.drop(str(error))
            return
        now = self._active = self._loop.time()
        if pdus or not self._framer.is_waiting:
            self._fragment_since = None
        if self._framer.is_waiting and self._fragment_since is None:
            self._fragment_since = now
        for pdu in pdus:
            self._perform(association.receive(pdu))
        if association.is_ready:
            self.is_set_up = True
            self._request_since = None
        elif self._request_since is None:
            self._request_since = now

    def pause_writing(self) -> None:
        self._blocked_since = self._loop.time()
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._blocked_since = None
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002 - gone is gone
        self.leave()

    def leave(self) -> None:
        """Give up everything that is held."""
        association, self._association = self._association, None
        if association is not None:
            self._perform(association.hung_up())
            self._server.release(self, association.peer.host)

    # The server's side.

    def check(self, now: float) -> None:
        """Drop a client that takes too long."""
        limits = self._limits
        if not self.is_set_up and now - self._began > limits.setup_seconds:
            self.drop("bind and log-on took too long")
        elif self._fragment_since is not None and now - self._fragment_since > limits.fragment_seconds:
            self.drop("a PDU took too long")
        elif self._request_since is not None and now - self._request_since > limits.request_seconds:
            self.drop("a request took too long")
        elif self._blocked_since is not None and now - self._blocked_since > limits.write_seconds:
            self.drop("the answers were not read")
        elif not self._tasks and now - self._active > self._idle_seconds:
            self.drop("nothing happened for a long time")

    @property
    def is_anonymous(self) -> bool:
        """Whether nobody has logged on."""
        return self._association is None or not self._association.is_authenticated

    @property
    def _idle_seconds(self) -> float:
        limits = self._limits
        return limits.anonymous_idle_seconds if self.is_anonymous else limits.idle_seconds

    def drop(self, reason: str) -> None:
        """Hang up at once."""
        if self._association is not None:
            log.debug("RPC: %s is dropped: %s", self._association.peer, reason)
        if self._transport is not None:
            self._transport.abort()

    # Actions.

    def _perform(self, actions: list[Action]) -> None:
        for action in actions:
            match action:
                case Send(data):
                    if self._transport is not None and not self._transport.is_closing():
                        self._transport.write(data)
                case Dispatch(call):
                    self._dispatch(call)
                case Abandon(call_id):
                    task = self._tasks.pop(call_id, None)
                    if task is not None:
                        task.cancel()
                case Close(reason):
                    if self._association is not None:
                        self._note("RPC: %s: %s", self._association.peer, reason)
                    if self._transport is not None:
                        self._transport.close()

    def _note(self, text: str, *values: object) -> None:
        self._server.notices.note(self._loop.time(), text, *values)

    def _dispatch(self, call: ServerCall) -> None:
        association = self._association
        if association is None:
            return
        if self._server.calls >= self._limits.calls:
            self._perform(association.fail(call, FaultStatus.SERVER_BUSY))
            return
        self._server.calls += 1
        task = self._loop.create_task(self._run(association, call))
        call_id = call.context.call_id
        self._tasks[call_id] = task
        task.add_done_callback(lambda done: self._done(call_id, done))

    def _done(self, call_id: int, task: asyncio.Task[None]) -> None:
        self._server.calls -= 1
        self._server.answered += 1
        if self._tasks.get(call_id) is task:
            del self._tasks[call_id]
        if not task.cancelled() and task.exception() is not None:
            log.error("RPC: an answer could not be sent", exc_info=task.exception())
            self.drop("a defect")

    async def _run(self, association: ServerAssociation, call: ServerCall) -> None:
        operation = call.interface.operations[call.context.opnum]
        try:
            async with asyncio.timeout(self._limits.call_seconds):
                answer = await operation(call.context, bytes(call.stub))
        except RpcFault as fault:
            status = fault.status if fault.status not in FORBIDDEN_STATUSES else FaultStatus.UNSPECIFIED
            actions = association.fail(call, status)
        except NdrError as error:
            self._note("RPC: %s, operation %d: %s", call.context.peer, call.context.opnum, error)
            actions = association.fail(call, FaultStatus.BAD_STUB_DATA)
        except TimeoutError:
            actions = association.fail(call, FaultStatus.CANCELLED)
        except Exception:
            log.exception("RPC: operation %d of %s failed", call.context.opnum, call.interface.id)
            actions = association.fail(call, FaultStatus.UNSPECIFIED)
        else:
            actions = association.respond(call, answer)
        self._active = self._loop.time()
        self._perform(actions)


def _is_loopback(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped.is_loopback
    return address.is_loopback
