"""What goes wrong in a remote procedure call, and the status that says so on the wire."""

from __future__ import annotations

from enum import IntEnum

from lanner.model.errors import ConnectionFailedError, LannerError

__all__ = [
    "BindRefusedError",
    "FaultStatus",
    "NdrError",
    "ProtocolError",
    "RpcConnectionError",
    "RpcError",
    "RpcFault",
    "SecurityError",
    "status_name",
]


class FaultStatus(IntEnum):
    """Statuses of a fault: C706 appendix E, and Win32 codes (MS-RPCE 3.1.1.5.5)."""

    ACCESS_DENIED = 0x00000005
    """ERROR_ACCESS_DENIED."""
    OUT_OF_MEMORY = 0x0000000E
    """ERROR_OUTOFMEMORY."""
    UNKNOWN_INTERFACE = 0x000006B5
    """RPC_S_UNKNOWN_IF."""
    SERVER_TOO_BUSY = 0x000006BB
    """RPC_S_SERVER_TOO_BUSY."""
    CALL_FAILED = 0x000006BE
    """RPC_S_CALL_FAILED."""
    PROTOCOL_ERROR_WIN32 = 0x000006C0
    """RPC_S_PROTOCOL_ERROR."""
    OPERATION_OUT_OF_RANGE = 0x000006D1
    """RPC_S_PROCNUM_OUT_OF_RANGE."""
    CANNOT_SUPPORT = 0x000006E4
    """RPC_S_CANNOT_SUPPORT."""
    CONTEXT_MISMATCH_WIN32 = 0x000006E6
    """RPC_X_SS_CONTEXT_MISMATCH."""
    NULL_REFERENCE = 0x000006F4
    """RPC_X_NULL_REF_POINTER."""
    ENUM_OUT_OF_RANGE = 0x000006F5
    """RPC_X_ENUM_VALUE_OUT_OF_RANGE."""
    BAD_STUB_DATA = 0x000006F7
    """RPC_X_BAD_STUB_DATA."""
    SECURITY_PACKAGE_ERROR = 0x00000721
    """RPC_S_SEC_PKG_ERROR."""
    CALL_CANCELLED = 0x0000071A
    """RPC_S_CALL_CANCELLED."""

    COMMUNICATION_FAILURE = 0x1C010001
    """nca_s_comm_failure."""
    OPERATION_RANGE = 0x1C010002
    """nca_s_op_rng_error."""
    UNKNOWN_IF = 0x1C010003
    """nca_s_unk_if."""
    PROTOCOL_ERROR = 0x1C01000B
    """nca_s_proto_error."""
    SERVER_BUSY = 0x1C010014
    """nca_s_server_too_busy."""
    UNSUPPORTED_TYPE = 0x1C010017
    """nca_s_unsupported_type."""
    CANCELLED = 0x1C00000D
    """nca_s_fault_cancel."""
    CONTEXT_MISMATCH = 0x1C00001A
    """nca_s_fault_context_mismatch."""
    UNSPECIFIED = 0x1C000012
    """nca_s_fault_unspec."""
    REMOTE_NO_MEMORY = 0x1C00001B
    """nca_s_fault_remote_no_memory."""

    NO_MORE_ENTRIES = 0x16C9A0D6
    """ept_s_not_registered: no such endpoint, or no more of them."""


def status_name(status: int) -> str:
    """The name of a status, or its number where it has none."""
    try:
        return FaultStatus(status).name
    except ValueError:
        return f"{status:#010x}"


class RpcError(LannerError):
    """The root of what the RPC layer raises."""


class RpcFault(RpcError):  # noqa: N818 - the word of the protocol
    """A call that failed in the server: raise it in an operation, get it from a client."""

    def __init__(self, status: int, message: str = "", *, hint: str = "") -> None:
        self.status = int(status)
        super().__init__(message or f"the call failed: {status_name(self.status)}", hint=hint)


class NdrError(RpcError):
    """Stub data that does not follow its interface; the server answers with the fault RPC_X_BAD_STUB_DATA."""

    status = FaultStatus.BAD_STUB_DATA


class ProtocolError(RpcError):
    """A peer sent what is no PDU, or one that has no place here; the association is over."""


class SecurityError(RpcError):
    """A token, a signature or a log-on that is not right."""


class BindRefusedError(RpcError):
    """The server does not take the association or the interface."""

    def __init__(self, message: str, *, reason: int = 0, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.reason = reason


class RpcConnectionError(RpcError, ConnectionFailedError):
    """The server cannot be reached, was silent for too long, or hung up."""
