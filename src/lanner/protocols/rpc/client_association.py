"""The client's side of an association: PDUs in, events out; no socket, no clock (MS-RPCE 3.3.2, figure 18).

    state          bind_ack  bind_nak  alter_context_resp  response, fault  shutdown  anything else
    ESTABLISHED    lost      lost      lost                lost             lost      lost
    WAIT_ACK       (1)       (2)       lost                lost             lost      lost
    WAIT_ALTER     lost      lost      (1)                 (3)              lost      lost
    NEGOTIATED     lost      lost      lost                (4)              (5)       lost
    CLOSED         ignored, all of them

(1) The contexts, and the server's token. If the log-on needs another leg it goes out, as rpc_auth_3 if it is
    the third of NTLM, else as alter_context, then WAIT_ALTER; when no more are needed: ready, NEGOTIATED.
(2) Refused: lost. (3) A fault refuses the log-on: lost. (4) A call returned or failed, or a piece of it came.
(5) The server asks to be left: lost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from uuid import UUID

from lanner.protocols.rpc.codec import decode, encode
from lanner.protocols.rpc.errors import (
    BindRefusedError,
    FaultStatus,
    ProtocolError,
    RpcError,
    SecurityError,
    status_name,
)
from lanner.protocols.rpc.fragments import fragment, plain_body
from lanner.protocols.rpc.interface import AuthLevel, InterfaceId
from lanner.protocols.rpc.negotiation import KEEP_CONNECTION_ON_ORPHAN, features_syntax
from lanner.protocols.rpc.pdu import (
    FIRST_AND_LAST,
    MIN_FRAGMENT,
    NDR20,
    AlterContext,
    AlterContextResponse,
    AnyPdu,
    Auth3,
    Bind,
    BindAck,
    BindNak,
    ContextElement,
    ContextReason,
    Fault,
    Flags,
    Orphaned,
    RejectReason,
    Request,
    Response,
    ResultCode,
    SecTrailer,
    Shutdown,
)
from lanner.protocols.rpc.security import AuthType, SecurityContext

__all__ = [
    "ClientAssociation",
    "ClientEvent",
    "ClientState",
    "Failed",
    "Lost",
    "Ready",
    "Returned",
    "Transmit",
]

FRAGMENT = 5_840
"""What we receive and send at most in one fragment."""

MAX_RESPONSE = 16 * 1024 * 1024
"""Octets of one response: a server that sends more than this is no queue manager."""

BIND_CALL_ID = 1


class ClientState(Enum):
    """Where an association is."""

    ESTABLISHED = "established"
    WAIT_ACK = "waiting for bind_ack"
    WAIT_ALTER = "waiting for alter_context_resp"
    NEGOTIATED = "context negotiated"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Transmit:
    """Send these octets."""

    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Ready:
    """Calls can be made."""


@dataclass(frozen=True, slots=True)
class Returned:
    """A call returned."""

    call_id: int
    stub: bytes = field(repr=False)
    big_endian: bool = False


@dataclass(frozen=True, slots=True)
class Failed:
    """A call failed."""

    call_id: int
    status: int


@dataclass(frozen=True, slots=True)
class Lost:
    """The association is over."""

    error: RpcError


ClientEvent = Transmit | Ready | Returned | Failed | Lost


_KERBEROS_HINTS: dict[int, str] = {
    RejectReason.AUTHENTICATION_TYPE_NOT_RECOGNIZED: "Kerberos is not offered there; log on with --user",
    # A bind_nak has no room for the reason that the ticket is not taken for (MS-RPCE 2.2.2.5).
    RejectReason.INVALID_CHECKSUM: "its log says why: most often its clock, or a keytab with another key",
}


class ClientAssociation:
    """One association of a client, bound to one interface."""

    def __init__(self, interface: InterfaceId, security: SecurityContext | None = None) -> None:
        self.state = ClientState.ESTABLISHED
        self.is_multiplexed = False
        self.keeps_on_orphan = False
        self._interface = interface
        self._security = security
        self._limit = MIN_FRAGMENT
        self._pieces: dict[int, bytearray] = {}
        self._group = 0

    def begin(self) -> bytes:
        """The bind."""
        flags = FIRST_AND_LAST | Flags.MULTIPLEX
        auth = None
        if self._security is not None:
            auth = self._trailer(self._security.step(None))
            if self._security.protection >= AuthLevel.INTEGRITY:
                flags |= Flags.HEADER_SIGN
        self.state = ClientState.WAIT_ACK
        contexts = (
            ContextElement(0, self._interface, (NDR20,)),
            ContextElement(1, self._interface, (features_syntax(KEEP_CONNECTION_ON_ORPHAN),)),
        )
        return encode(
            Bind(
                call_id=BIND_CALL_ID,
                flags=flags,
                max_transmit=FRAGMENT,
                max_receive=FRAGMENT,
                contexts=contexts,
                auth=auth,
            )
        )

    def request(self, call_id: int, opnum: int, stub: bytes, object_uuid: UUID | None = None) -> list[bytes]:
        """The PDUs of a call."""
        if self.state != ClientState.NEGOTIATED:
            raise ProtocolError(f"no call can be made: the association is {self.state.value}")
        pdu = Request(call_id=call_id, opnum=opnum, object_uuid=object_uuid)
        self._pieces[call_id] = bytearray()
        return fragment(pdu, stub, self._limit, self._security)

    def orphan(self, call_id: int) -> bytes:
        """Nobody waits for this call any more."""
        self._pieces.pop(call_id, None)
        return encode(Orphaned(call_id=call_id))

    def receive(self, data: bytes) -> list[ClientEvent]:
        """Take one PDU."""
        if self.state == ClientState.CLOSED:
            return []
        try:
            pdu = decode(data)
            handler = _TABLE[self.state].get(type(pdu))
            if handler is None:
                raise ProtocolError(f"{type(pdu).__name__} while {self.state.value}")
            return handler(self, pdu, data)
        except RpcError as error:
            return self._lose(error)

    def close(self) -> None:
        """Take nothing more."""
        self.state = ClientState.CLOSED
        self._pieces.clear()

    def _lose(self, error: RpcError) -> list[ClientEvent]:
        self.close()
        return [Lost(error)]

    def _trailer(self, token: bytes) -> SecTrailer:
        assert self._security is not None
        return SecTrailer(self._security.kind, self._security.level, self._security.context_id, token)

    # Binding.

    def _acknowledged(self, pdu: AnyPdu, _: bytes) -> list[ClientEvent]:
        assert isinstance(pdu, BindAck)
        if self.state == ClientState.WAIT_ACK:
            self._take_contexts(pdu)
        if self._security is None:
            return self._ready()
        if pdu.auth is None and not self._security.is_complete:
            raise SecurityError("the server does not go on with the log-on")
        if self.state == ClientState.WAIT_ACK:
            self._security.signs_header = bool(pdu.flags & Flags.HEADER_SIGN)
        token = b""
        if not self._security.is_complete:
            assert pdu.auth is not None
            token = self._security.step(pdu.auth.token)
        return self._next_leg(token)

    def _take_contexts(self, pdu: BindAck) -> None:
        if not pdu.results:
            raise ProtocolError("a bind_ack without results")
        result = pdu.results[0]
        if result.result != ResultCode.ACCEPTANCE:
            if result.reason == ContextReason.ABSTRACT_SYNTAX_NOT_SUPPORTED:
                raise BindRefusedError(f"the server does not offer {self._interface}", reason=result.reason)
            raise BindRefusedError("the server does not take the context", reason=result.reason)
        if result.transfer != NDR20:
            raise ProtocolError(f"the server answers in {result.transfer}")
        if len(pdu.results) > 1 and pdu.results[1].result == ResultCode.NEGOTIATE_ACK:
            self.keeps_on_orphan = bool(pdu.results[1].reason & KEEP_CONNECTION_ON_ORPHAN)
        self.is_multiplexed = bool(pdu.flags & Flags.MULTIPLEX)
        self._group = pdu.group
        self._limit = min(FRAGMENT, pdu.max_receive)
        if self._limit < MIN_FRAGMENT:
            raise ProtocolError(f"the server takes fragments of {self._limit} octets")

    def _next_leg(self, token: bytes) -> list[ClientEvent]:
        assert self._security is not None
        if not token:
            if not self._security.is_complete:
                raise SecurityError("the log-on does not go on")
            return self._ready()
        auth = self._trailer(token)
        if self._security.kind == AuthType.NTLM and self._security.is_complete:
            # Three legs, so the last is not answered (MS-RPCE 2.2.1.1.7, 3.3.1.5.2.1).
            return [Transmit(encode(Auth3(call_id=BIND_CALL_ID, auth=auth))), *self._ready()]
        self.state = ClientState.WAIT_ALTER
        alter = AlterContext(
            call_id=BIND_CALL_ID,
            max_transmit=FRAGMENT,
            max_receive=FRAGMENT,
            group=self._group,
            contexts=(ContextElement(0, self._interface, (NDR20,)),),
            auth=auth,
        )
        return [Transmit(encode(alter))]

    def _ready(self) -> list[ClientEvent]:
        self.state = ClientState.NEGOTIATED
        return [Ready()]

    def _refused(self, pdu: AnyPdu, _: bytes) -> list[ClientEvent]:
        assert isinstance(pdu, BindNak)
        texts = {
            RejectReason.AUTHENTICATION_TYPE_NOT_RECOGNIZED: "it does not know this kind of log-on",
            RejectReason.INVALID_CHECKSUM: "the log-on failed",
            RejectReason.LOCAL_LIMIT_EXCEEDED: "it has no room",
        }
        why = next((text for reason, text in texts.items() if reason == pdu.reason), f"reason {pdu.reason}")
        hint = ""
        if self._security is not None and self._security.kind == AuthType.KERBEROS:
            hint = _KERBEROS_HINTS.get(pdu.reason, "")
        raise BindRefusedError(f"the server refuses the association: {why}", reason=pdu.reason, hint=hint)

    def _log_on_refused(self, pdu: AnyPdu, _: bytes) -> list[ClientEvent]:
        assert isinstance(pdu, Fault)
        why = "access denied" if pdu.status == FaultStatus.ACCESS_DENIED else status_name(pdu.status)
        raise SecurityError(f"the server refuses the log-on: {why}")

    # Calls.

    def _returned(self, pdu: AnyPdu, data: bytes) -> list[ClientEvent]:
        assert isinstance(pdu, Response)
        piece = pdu.stub
        security = self._security
        if security is not None and security.protection >= AuthLevel.INTEGRITY:
            if pdu.auth is None:
                raise SecurityError("a response without protection")
            if (pdu.auth.type, pdu.auth.level) != (security.kind, security.level):
                raise SecurityError("a response at another level")
            piece = plain_body(data, pdu, security)
        elif pdu.auth is not None:
            piece = piece[: max(0, len(piece) - pdu.auth.pad_length)]
        pieces = self._pieces.get(pdu.call_id)
        if pieces is None:
            return []  # nobody waits for it any more
        if bool(pdu.flags & Flags.FIRST) != (not pieces):
            raise ProtocolError("a response out of order")
        if len(pieces) + len(piece) > MAX_RESPONSE:
            raise ProtocolError(f"a response of more than {MAX_RESPONSE} octets")
        pieces += piece
        if not pdu.flags & Flags.LAST:
            return []
        del self._pieces[pdu.call_id]
        return [Returned(pdu.call_id, bytes(pieces), pdu.big_endian)]

    def _failed(self, pdu: AnyPdu, _: bytes) -> list[ClientEvent]:
        assert isinstance(pdu, Fault)
        if self._pieces.pop(pdu.call_id, None) is None:
            return []
        return [Failed(pdu.call_id, pdu.status)]

    def _shut_down(self, _: AnyPdu, __: bytes) -> list[ClientEvent]:
        raise ProtocolError("the server asks to be left")


_Handler = Callable[[ClientAssociation, AnyPdu, bytes], list[ClientEvent]]

_TABLE: dict[ClientState, dict[type, _Handler]] = {
    ClientState.ESTABLISHED: {},
    ClientState.WAIT_ACK: {
        BindAck: ClientAssociation._acknowledged,
        BindNak: ClientAssociation._refused,
    },
    ClientState.WAIT_ALTER: {
        AlterContextResponse: ClientAssociation._acknowledged,
        Fault: ClientAssociation._log_on_refused,
    },
    ClientState.NEGOTIATED: {
        Response: ClientAssociation._returned,
        Fault: ClientAssociation._failed,
        Shutdown: ClientAssociation._shut_down,
    },
    ClientState.CLOSED: {},
}
