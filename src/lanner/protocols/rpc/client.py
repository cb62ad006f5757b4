"""The client's side: one association, one interface, calls one after the other or several at a time."""

from __future__ import annotations

from uuid import UUID

from lanner.protocols.rpc.credentials import Credentials
from lanner.protocols.rpc.interface import AuthLevel, InterfaceId

__all__ = ["ENDPOINT_MAPPER_PORT", "RpcClient"]

ENDPOINT_MAPPER_PORT = 135
"""Registered for the endpoint mapper (MS-RPCE 2.1.1.1)."""

CALL_SECONDS = 30.0
"""How long a call may take before the client gives up."""


class RpcClient:
    """An association with a server, bound to one interface."""

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
        raise NotImplementedError

    async def call(
        self, opnum: int, stub: bytes, *, object_uuid: UUID | None = None, timeout: float | None = None
    ) -> bytes:
        """Call an operation; raises RpcFault where the server answers with a fault."""
        raise NotImplementedError

    async def close(self) -> None:
        """Hang up."""
        raise NotImplementedError

    async def __aenter__(self) -> RpcClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
