"""The PDUs of connection-oriented RPC: frozen structures (C706 12.6, MS-RPCE 2.2.2).

`codec` reads and writes them. A PDU with authentication has four segments (MS-RPCE
2.2.2.1): header, body, sec_trailer and token. In a request or response the body is the stub and its padding,
perhaps sealed, so `Request.stub` and `Response.stub` still have the padding when `auth` is there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, IntFlag
from uuid import UUID

from lanner.protocols.rpc.interface import InterfaceId

__all__ = [
    "FIRST_AND_LAST",
    "HEADER_SIZE",
    "MAX_FRAGMENT",
    "MIN_FRAGMENT",
    "NDR20",
    "NO_SYNTAX",
    "REQUEST_HEADER_SIZE",
    "TRAILER_SIZE",
    "AlterContext",
    "AlterContextResponse",
    "AnyPdu",
    "Auth3",
    "Bind",
    "BindAck",
    "BindNak",
    "Cancel",
    "ContextElement",
    "ContextReason",
    "ContextResult",
    "Fault",
    "Flags",
    "Header",
    "Orphaned",
    "PduType",
    "RejectReason",
    "Request",
    "Response",
    "ResultCode",
    "SecTrailer",
    "Segments",
    "Shutdown",
]

HEADER_SIZE = 16
TRAILER_SIZE = 8
REQUEST_HEADER_SIZE = 24

MAX_FRAGMENT = 65_535
"""A fragment's length has 16 bits. Binds may need it: a Kerberos ticket with a long list of groups is 48,000
octets. Requests and responses stay below what the association agreed on."""

MIN_FRAGMENT = 1_432
"""What everybody must be able to receive (C706 12.6.3.1, MustRecvFragSize)."""

NDR20 = InterfaceId(UUID("8a885d04-1ceb-11c9-9fe8-08002b104860"), 2, 0)
"""The transfer syntax NDR, version 2.0 (C706 appendix I, MS-RPCE 2.2.4.12)."""

NO_SYNTAX = InterfaceId(UUID(int=0), 0, 0)


class PduType(IntEnum):
    """PTYPE (C706 12.6.1; rpc_auth_3: MS-RPCE 2.2.2.10)."""

    REQUEST = 0
    RESPONSE = 2
    FAULT = 3
    BIND = 11
    BIND_ACK = 12
    BIND_NAK = 13
    ALTER_CONTEXT = 14
    ALTER_CONTEXT_RESP = 15
    AUTH3 = 16
    SHUTDOWN = 17
    CANCEL = 18
    ORPHANED = 19


class Flags(IntFlag):
    """pfc_flags (C706 12.6.3.1). 0x04 means one thing in binds and another elsewhere (MS-RPCE 2.2.2.3)."""

    NONE = 0x00
    FIRST = 0x01
    LAST = 0x02
    HEADER_SIGN = 0x04
    PENDING_CANCEL = 0x04
    MULTIPLEX = 0x10
    DID_NOT_EXECUTE = 0x20
    MAYBE = 0x40
    OBJECT = 0x80


FIRST_AND_LAST = Flags.FIRST | Flags.LAST


class ResultCode(IntEnum):
    """p_cont_def_result_t (C706 12.6.3.1, MS-RPCE 2.2.2.4)."""

    ACCEPTANCE = 0
    USER_REJECTION = 1
    PROVIDER_REJECTION = 2
    NEGOTIATE_ACK = 3


class ContextReason(IntEnum):
    """p_provider_reason_t: why a presentation context was rejected (C706 12.6.3.1)."""

    NOT_SPECIFIED = 0
    ABSTRACT_SYNTAX_NOT_SUPPORTED = 1
    TRANSFER_SYNTAXES_NOT_SUPPORTED = 2
    LOCAL_LIMIT_EXCEEDED = 3


class RejectReason(IntEnum):
    """provider_reject_reason: why a bind was (MS-RPCE 2.2.2.5)."""

    NOT_SPECIFIED = 0
    TEMPORARY_CONGESTION = 1
    LOCAL_LIMIT_EXCEEDED = 2
    PROTOCOL_VERSION_NOT_SUPPORTED = 4
    AUTHENTICATION_TYPE_NOT_RECOGNIZED = 8
    INVALID_CHECKSUM = 9


@dataclass(frozen=True, slots=True)
class Header:
    """The common header, 16 octets."""

    type: int
    flags: Flags
    call_id: int
    length: int
    auth_length: int
    big_endian: bool


@dataclass(frozen=True, slots=True)
class SecTrailer:
    """The sec_trailer and the token behind it (MS-RPCE 2.2.2.11)."""

    type: int
    level: int
    context_id: int
    token: bytes = b""
    pad_length: int = 0


@dataclass(frozen=True, slots=True)
class ContextElement:
    """p_cont_elem_t: one presentation context that a client proposes."""

    id: int
    abstract: InterfaceId
    transfers: tuple[InterfaceId, ...] = (NDR20,)


@dataclass(frozen=True, slots=True)
class ContextResult:
    """p_result_t: what became of one of them."""

    result: int = ResultCode.ACCEPTANCE
    reason: int = 0
    transfer: InterfaceId = NO_SYNTAX


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pdu:
    call_id: int = 0
    flags: Flags = FIRST_AND_LAST
    big_endian: bool = False
    auth: SecTrailer | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bind(_Pdu):
    """A client begins an association (C706 12.6.4.3)."""

    max_transmit: int = MIN_FRAGMENT
    max_receive: int = MIN_FRAGMENT
    group: int = 0
    contexts: tuple[ContextElement, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterContext(Bind):
    """A client asks for more contexts, or goes on with its authentication (C706 12.6.4.1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BindAck(_Pdu):
    """The server takes the association (C706 12.6.4.4)."""

    max_transmit: int = MIN_FRAGMENT
    max_receive: int = MIN_FRAGMENT
    group: int = 0
    secondary_address: bytes = b""
    results: tuple[ContextResult, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterContextResponse(BindAck):
    """The answer to alter_context (C706 12.6.4.2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BindNak(_Pdu):
    """The server does not take the association (C706 12.6.4.5, MS-RPCE 2.2.2.9)."""

    reason: int = RejectReason.NOT_SPECIFIED
    versions: tuple[tuple[int, int], ...] = ((5, 0),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Auth3(_Pdu):
    """The third and last leg of an authentication; it is not answered (MS-RPCE 2.2.2.10)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(_Pdu):
    """A call, or a piece of it (C706 12.6.4.9)."""

    alloc_hint: int = 0
    context_id: int = 0
    opnum: int = 0
    object_uuid: UUID | None = None
    stub: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Response(_Pdu):
    """What a call returns, or a piece of it (C706 12.6.4.10)."""

    alloc_hint: int = 0
    context_id: int = 0
    cancel_count: int = 0
    stub: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault(_Pdu):
    """A call failed (C706 12.6.4.7). Stub data in it is ignored (MS-RPCE 2.2.2.8)."""

    alloc_hint: int = 0
    context_id: int = 0
    cancel_count: int = 0
    status: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel(_Pdu):
    """The client wants a call to end early (C706 12.6.4.6)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Orphaned(_Pdu):
    """The client does not wait for a call any more (C706 12.6.4.8)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shutdown(_Pdu):
    """The server asks the client to hang up (C706 12.6.4.11)."""


AnyPdu = (
    Bind
    | AlterContext
    | BindAck
    | AlterContextResponse
    | BindNak
    | Auth3
    | Request
    | Response
    | Fault
    | Cancel
    | Orphaned
    | Shutdown
)


@dataclass(frozen=True, slots=True)
class Segments:
    """The segments of a PDU with authentication, as they are protected (MS-RPCE 2.2.2.1)."""

    header: bytes
    body: bytes
    trailer: bytes
    token: bytes
