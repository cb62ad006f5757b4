"""The client's side: one association, one interface, calls one after the other or several at a time."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import cast
from uuid import UUID

from lanner.protocols.rpc.client_association import (
    BIND_CALL_ID,
    ClientAssociation,
    ClientEvent,
    Failed,
    Lost,
    Ready,
    Returned,
    Transmit,
)
from lanner.protocols.rpc.credentials import Credentials
from lanner.protocols.rpc.errors import (
    BindRefusedError,
    FaultStatus,
    ProtocolError,
    RpcConnectionError,
    RpcError,
    RpcFault,
)
from lanner.protocols.rpc.framing import Framer
from lanner.protocols.rpc.interface import AuthLevel, InterfaceId
from lanner.protocols.rpc.mapper import MAPPER, Operation, map_request, read_map_response
from lanner.protocols.rpc.security import initiate
from lanner.protocols.rpc.towers import Tower

__all__ = ["ENDPOINT_MAPPER_PORT", "RpcClient", "find_port"]

ENDPOINT_MAPPER_PORT = 135
"""Registered for the endpoint mapper (MS-RPCE 2.1.1.1)."""

CALL_SECONDS = 30.0
"""How long a call may take before the client gives up."""

MAX_CALL_ID = 0x7FFF_FFFF
"""Windows takes no greater ones (MS-RPCE, note 123)."""


async def find_port(
    host: str,
    interface: InterfaceId,
    *,
    mapper_port: int = ENDPOINT_MAPPER_PORT,
    timeout: float = CALL_SECONDS,
) -> int:
    """Ask the endpoint mapper of a host which port an interface is on."""
    async with await RpcClient.connect(host, MAPPER, port=mapper_port, timeout=timeout) as client:
        stub = await client.call(Operation.MAP, map_request(Tower(interface)))
    _, towers, status = read_map_response(stub)
    ports = [tower.port for tower in towers if tower.is_tcp and tower.port]
    if status or not ports:
        raise BindRefusedError(f"{host} does not offer {interface} over TCP", reason=status)
    return ports[0]


class RpcClient(asyncio.Protocol):
    """An association with a server, bound to one interface."""

    def __init__(self, association: ClientAssociation, timeout: float) -> None:
        self._association = association
        self._timeout = timeout
        self._framer = Framer()
        self._transport: asyncio.Transport | None = None
        loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[None] = loop.create_future()
        self._closed: asyncio.Future[None] = loop.create_future()
        self._calls: dict[int, asyncio.Future[bytes]] = {}
        self._call_id = BIND_CALL_ID
        self._turn = asyncio.Lock()
        self._can_write = asyncio.Event()
        self._can_write.set()
        self._error: RpcError | None = None

    @classmethod
    async def connect(
        cls,
        host: str,
        interface: InterfaceId,
        *,
        port: int | None = None,
        credentials: Credentials | None = None,
        level: AuthLevel | None = None,
        timeout: float = CALL_SECONDS,
        mapper_port: int = ENDPOINT_MAPPER_PORT,
    ) -> RpcClient:
        """Connect and bind. Without a port, the endpoint mapper of the host is asked for it.

        Credentials without a level mean PRIVACY; no credentials mean NONE.
        """
        if port is None:
            port = await find_port(host, interface, mapper_port=mapper_port, timeout=timeout)
        security = None
        if credentials is not None and level != AuthLevel.NONE:
            security = await asyncio.to_thread(initiate, credentials, level or AuthLevel.PRIVACY, host)
        association = ClientAssociation(interface, security)
        loop = asyncio.get_running_loop()
        client = None
        try:
            async with asyncio.timeout(timeout):
                transport, client = await loop.create_connection(
                    lambda: cls(association, timeout), host, port
                )
                _keep_alive(transport)
                # Kerberos may ask its servers for a ticket here, on another thread.
                bind = await asyncio.to_thread(association.begin)
                transport.write(bind)
                await client._ready
        except TimeoutError as error:
            if client is not None:
                client._abort()
            raise RpcConnectionError(f"{host}:{port} did not answer within {timeout:g} s") from error
        except OSError as error:
            raise RpcConnectionError(f"{host}:{port} cannot be reached: {error}") from error
        except BaseException:
            if client is not None:
                client._abort()
            raise
        return client

    async def call(
        self, opnum: int, stub: bytes, *, object_uuid: UUID | None = None, timeout: float | None = None
    ) -> bytes:
        """Call an operation; raises RpcFault where the server answers with a fault."""
        async with contextlib.AsyncExitStack() as stack:
            if not self._association.is_multiplexed:
                await stack.enter_async_context(self._turn)
            return await self._call(opnum, stub, object_uuid, timeout or self._timeout)

    async def _call(self, opnum: int, stub: bytes, object_uuid: UUID | None, timeout: float) -> bytes:
        await self._can_write.wait()
        self._check()
        assert self._transport is not None
        call_id = self._call_id = self._call_id + 1
        if call_id > MAX_CALL_ID:
            raise RpcConnectionError("the association has no numbers left", hint="connect again")
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._calls[call_id] = future
        try:
            self._transport.writelines(self._association.request(call_id, opnum, stub, object_uuid))
            async with asyncio.timeout(timeout):
                return await future
        except TimeoutError as error:
            raise RpcConnectionError(f"the call was not answered within {timeout:g} s") from error
        finally:
            if self._calls.pop(call_id, None) is not None and self._error is None:
                self._give_up(call_id)

    def _give_up(self, call_id: int) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        self._transport.write(self._association.orphan(call_id))
        if not self._association.keeps_on_orphan:
            # MS-RPCE 3.3.1.5.10.
            self._lose(RpcConnectionError("the association ended with a call that took too long"))

    @property
    def is_open(self) -> bool:
        """Whether calls can be made."""
        return self._error is None and self._transport is not None and not self._transport.is_closing()

    async def close(self) -> None:
        """Hang up."""
        self._lose(RpcConnectionError("the association was closed"))
        if self._transport is not None:
            await self._closed

    async def __aenter__(self) -> RpcClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # The transport's side.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Connected."""
        # uvloop's are none by inheritance.
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Octets of the server."""
        try:
            for pdu in self._framer.feed(data):
                for event in self._association.receive(pdu):
                    self._take(event)
        except ProtocolError as error:
            self._lose(error)

    def pause_writing(self) -> None:
        """The server reads slowly."""
        self._can_write.clear()

    def resume_writing(self) -> None:
        """The server reads again."""
        self._can_write.set()

    def connection_lost(self, error: Exception | None) -> None:
        """The server hung up, or we did."""
        self._lose(RpcConnectionError(f"the server hung up: {error}" if error else "the server hung up"))
        if not self._closed.done():
            self._closed.set_result(None)

    # Events.

    def _take(self, event: ClientEvent) -> None:
        match event:
            case Transmit(data):
                if self._transport is not None:
                    self._transport.write(data)
            case Ready():
                if not self._ready.done():
                    self._ready.set_result(None)
            case Returned(call_id, stub):
                future = self._calls.pop(call_id, None)
                if future is not None and not future.done():
                    future.set_result(stub)
            case Failed(call_id, status):
                future = self._calls.pop(call_id, None)
                if future is not None and not future.done():
                    future.set_exception(_fault(status))
            case Lost(error):
                self._lose(error)

    def _check(self) -> None:
        if self._error is not None:
            raise self._error

    def _lose(self, error: RpcError) -> None:
        if self._error is not None:
            return
        self._error = error
        self._association.close()
        calls, self._calls = self._calls, {}
        for future in calls.values():
            if not future.done():
                future.set_exception(error)
        if not self._ready.done():
            self._ready.set_exception(error)
            self._ready.exception()  # seen, whether or not somebody waits
        self._can_write.set()
        if self._transport is not None:
            self._transport.close()

    def _abort(self) -> None:
        self._lose(RpcConnectionError("the association was given up"))
        if self._transport is not None:
            self._transport.abort()


def _fault(status: int) -> RpcFault:
    if status == FaultStatus.ACCESS_DENIED:
        return RpcFault(status, "access denied", hint="is it the right user, and an administrator there?")
    return RpcFault(status)


def _keep_alive(transport: asyncio.Transport) -> None:
    connection = transport.get_extra_info("socket")
    if connection is not None:
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
