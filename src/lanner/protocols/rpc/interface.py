"""What a server offers: interfaces, their operations, and what an operation knows about its call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from uuid import UUID

from lanner.protocols.rpc.handles import HandleTable

__all__ = [
    "ANONYMOUS",
    "Access",
    "AuthLevel",
    "CallContext",
    "Caller",
    "InterfaceId",
    "MAX_REQUEST",
    "Operation",
    "RpcInterface",
]

NIL = UUID(int=0)

MAX_REQUEST = 4 * 1024 * 1024
"""Octets of a request unless an interface says less (MS-RPCE 3.3.3.5.4)."""


class AuthLevel(IntEnum):
    """How far a call is protected (MS-RPCE 2.2.1.1.8)."""

    DEFAULT = 0
    NONE = 1
    CONNECT = 2
    CALL = 3
    PACKET = 4
    INTEGRITY = 5
    PRIVACY = 6


class Access(Enum):
    """Who may call an interface."""

    EVERYBODY = "everybody"
    AUTHENTICATED = "authenticated"
    ADMINISTRATORS = "administrators"


@dataclass(frozen=True, slots=True)
class InterfaceId:
    """An interface or a transfer syntax: its UUID and version (p_syntax_id_t, C706 12.6.3.1)."""

    uuid: UUID
    major: int
    minor: int = 0

    def __str__(self) -> str:
        return f"{self.uuid} {self.major}.{self.minor}"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls."""

    user: str = ""
    domain: str = ""
    is_authenticated: bool = False
    is_administrator: bool = False
    """A member of the configured administrators, or anonymous from loopback where a setting allows it."""
    level: AuthLevel = AuthLevel.NONE
    mechanism: str = ""
    """`ntlm` or `kerberos`."""

    def __str__(self) -> str:
        if not self.is_authenticated:
            return "anonymous"
        return f"{self.domain}\\{self.user}" if self.domain else self.user


ANONYMOUS = Caller()


@dataclass(frozen=True, slots=True)
class CallContext:
    """What an operation knows about its call besides the stub."""

    caller: Caller = ANONYMOUS
    peer: str = ""
    """Address and port of the client, as text."""
    is_loopback: bool = False
    object_uuid: UUID | None = None
    big_endian: bool = False
    """The byte order of the stub: `NdrReader(stub, context.big_endian)`. Answers are little-endian."""
    interface: InterfaceId = InterfaceId(NIL, 0)
    opnum: int = 0
    call_id: int = 0
    handles: HandleTable = field(default_factory=HandleTable)
    """The context handles of the client's association group; they run down with its last association."""


Operation = Callable[[CallContext, bytes], Awaitable[bytes]]
"""Stub in, stub out. It may raise RpcFault; NdrError becomes the fault RPC_X_BAD_STUB_DATA, and anything else
is logged as a defect and becomes nca_s_fault_unspec. It is cancelled if its association ends."""


@dataclass(frozen=True)
class RpcInterface:
    """Operations under one UUID and version, and who may call them."""

    uuid: UUID
    major: int
    minor: int
    operations: Mapping[int, Operation]
    access: Access = Access.ADMINISTRATORS
    minimum_level: AuthLevel = AuthLevel.NONE
    """Calls protected less than this are denied."""
    max_request: int = MAX_REQUEST
    """Octets of one request's stub, over all its fragments."""
    annotation: str = ""
    """What the endpoint mapper shows to people."""
    object_uuid: UUID | None = None
    """What the endpoint mapper shows as this interface's object."""

    @property
    def id(self) -> InterfaceId:
        """UUID and version together."""
        return InterfaceId(self.uuid, self.major, self.minor)

    def serves(self, asked: InterfaceId) -> bool:
        """Whether a client of this version may bind: the same major, and no newer minor (C706 6.2.1)."""
        return asked.uuid == self.uuid and asked.major == self.major and asked.minor <= self.minor
