"""Context handles: what a server remembers for a client between calls (C706 6.1.6, MS-RPCE 2.2.1.1.4)."""

from __future__ import annotations

from uuid import UUID, uuid4

from lanner.protocols.rpc.errors import FaultStatus, RpcFault
from lanner.protocols.rpc.ndr import NULL_HANDLE, ContextHandle

__all__ = ["MAX_HANDLES", "HandleTable"]

MAX_HANDLES = 64
"""Handles of one association group: an administrator's client has one or two open, a leak ends here."""


class HandleTable:
    """The handles that one association group holds."""

    def __init__(self, limit: int = MAX_HANDLES) -> None:
        self._limit = limit
        self._values: dict[UUID, object] = {}

    def __len__(self) -> int:
        return len(self._values)

    def open(self, value: object) -> ContextHandle:
        """Remember something, and say under which handle."""
        if len(self._values) >= self._limit:
            raise RpcFault(FaultStatus.OUT_OF_MEMORY, f"the client holds {self._limit} handles already")
        uuid = uuid4()
        self._values[uuid] = value
        return ContextHandle(0, uuid)

    def get(self, handle: ContextHandle) -> object:
        """What was remembered; an unknown handle is a fault."""
        try:
            return self._values[handle.uuid]
        except KeyError:
            raise RpcFault(FaultStatus.CONTEXT_MISMATCH, "no such context handle") from None

    def close(self, handle: ContextHandle) -> ContextHandle:
        """Forget it; says what the client gets back."""
        self._values.pop(handle.uuid, None)
        return NULL_HANDLE

    def clear(self) -> None:
        """The last association is gone."""
        self._values.clear()
