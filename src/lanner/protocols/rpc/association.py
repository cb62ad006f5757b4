"""The server's side of an association: PDUs in, actions out; no socket, no clock (MS-RPCE 3.3.3, figure 20).

    state         bind    alter_context   auth3   request         cancel, orphaned   anything else
    ESTABLISHED   (1)     refused         refused refused         refused            refused
    WAIT_ALTER    refused (2)             (3)     refused         refused            refused
    NEGOTIATED    refused (4)             refused (5)             (6)                refused
    NEGOTIATING   refused (2)             (3)     refused         (6)                refused
    RECEIVING     refused refused         refused (7)             (6)                refused
    CLOSED        ignored ignored         ignored ignored         ignored            ignored

(1) bind_ack, then NEGOTIATED, or WAIT_ALTER while the log-on needs more legs; or bind_nak, then CLOSED.
(2) The next leg: alter_context_resp, then NEGOTIATED when it was the last; a fault, then CLOSED, on failure.
(3) The last leg, not answered, then NEGOTIATED. If it failed, the first request is told (3.3.1.5.2.1).
(4) More contexts; with a token, a further log-on begins, then NEGOTIATING if it needs more legs.
(5) A whole request is dispatched; the first of several fragments leads to RECEIVING.
(6) The call ends early: with a fault if it was cancelled, without any answer if it was orphaned.
(7) The next fragment; with the last one the request is dispatched, then NEGOTIATED. What is left of a request
    that was refused or cancelled is read and thrown away: its protection is a stream.
"Refused" is a fault nca_s_proto_error to what a client may send, then CLOSED; anything else gets no answer.

Dispatched calls are beside the states: an association in any state but CLOSED can answer them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from lanner.protocols.rpc.codec import decode, encode
from lanner.protocols.rpc.errors import FaultStatus, ProtocolError, SecurityError
from lanner.protocols.rpc.fragments import Budget, fragment, plain_body
from lanner.protocols.rpc.groups import Group, Groups
from lanner.protocols.rpc.interface import ANONYMOUS, Access, AuthLevel, CallContext, Caller, RpcInterface
from lanner.protocols.rpc.negotiation import negotiate
from lanner.protocols.rpc.pdu import (
    FIRST_AND_LAST,
    MIN_FRAGMENT,
    AlterContext,
    AlterContextResponse,
    AnyPdu,
    Auth3,
    Bind,
    BindAck,
    BindNak,
    Cancel,
    Fault,
    Flags,
    Orphaned,
    RejectReason,
    Request,
    Response,
    SecTrailer,
)
from lanner.protocols.rpc.security import Acceptor, SecurityContext

__all__ = [
    "Abandon",
    "Action",
    "Close",
    "Dispatch",
    "Peer",
    "Send",
    "ServerAssociation",
    "ServerCall",
    "Services",
    "State",
]

FRAGMENT = 5_840
"""What we receive and send at most in one fragment: four segments of TCP, and what everybody else offers."""

MAX_CALLS = 32
"""Calls of one association at once; a client that sends more is told that the server is busy."""

MAX_SECURITY_CONTEXTS = 4
"""Log-ons on one association; a client needs one, or one for each of its users."""

MAX_OLD_CALL = 150
"""How far behind a fragment of a call that is over may come and be ignored (3.3.3.5.6)."""


class State(Enum):
    """Where an association is."""

    ESTABLISHED = "established"
    WAIT_ALTER = "wait for secure alter_context"
    NEGOTIATED = "context negotiated"
    NEGOTIATING = "negotiating security"
    RECEIVING = "receiving a request"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Peer:
    """Who is at the other end."""

    host: str = ""
    port: int = 0
    is_loopback: bool = False

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(slots=True)
class ServerCall:
    """A request, while it is being put together and while it is carried out."""

    interface: RpcInterface
    context: CallContext
    context_id: int
    security: SecurityContext | None
    stub: bytearray = field(default_factory=bytearray, repr=False)
    is_maybe: bool = False
    is_refused: bool = False
    """It got its fault already; what is still to come of it is thrown away."""


@dataclass(frozen=True, slots=True)
class Send:
    """Send these octets."""

    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Dispatch:
    """Carry this call out."""

    call: ServerCall


@dataclass(frozen=True, slots=True)
class Abandon:
    """Stop carrying a call out."""

    call_id: int


@dataclass(frozen=True, slots=True)
class Close:
    """Hang up once everything is sent."""

    reason: str


Action = Send | Dispatch | Abandon | Close


@dataclass(frozen=True)
class Services:
    """What the associations of a server share."""

    interfaces: Sequence[RpcInterface]
    acceptor: Acceptor
    groups: Groups
    budget: Budget
    anonymous_loopback: bool = False
    """Whether somebody on this machine who does not log on may do what an administrator may."""


class ServerAssociation:
    """One association of a server."""

    def __init__(self, services: Services, peer: Peer, endpoint: str) -> None:
        self.state = State.ESTABLISHED
        self.peer = peer
        self._services = services
        self._endpoint = endpoint.encode("ascii") + b"\0"
        self._group: Group | None = None
        self._contexts: dict[int, RpcInterface] = {}
        self._secured: dict[int, tuple[SecurityContext, Caller | None]] = {}
        self._pending: SecurityContext | None = None
        self._signs_header = False
        self._limit = MIN_FRAGMENT
        self._receiving: ServerCall | None = None
        self._calls: dict[int, ServerCall] = {}
        self._last_call_id = 0

    # What the endpoint asks.

    @property
    def calls(self) -> int:
        """Calls that are being carried out."""
        return len(self._calls)

    @property
    def is_ready(self) -> bool:
        """Whether contexts are negotiated and nobody is in the middle of anything."""
        return self.state == State.NEGOTIATED

    @property
    def is_authenticated(self) -> bool:
        """Whether somebody has logged on."""
        return any(caller is not None for _, caller in self._secured.values())

    # What comes in.

    def receive(self, data: bytes) -> list[Action]:
        """Take one PDU."""
        if self.state == State.CLOSED:
            return []
        try:
            pdu = decode(data)
        except ProtocolError as error:
            return self._close(f"no PDU: {error}")
        if isinstance(pdu, Request) and len(data) > FRAGMENT:
            return self._refuse(pdu, f"a fragment of {len(data)} octets, more than was agreed on")
        handler = _TABLE[self.state].get(type(pdu))
        if handler is None:
            return self._refuse(pdu, f"{type(pdu).__name__} while {self.state.value}")
        return handler(self, pdu, data)

    def hung_up(self) -> list[Action]:
        """The connection is gone."""
        return self._end()

    # What operations return.

    def respond(self, call: ServerCall, stub: bytes) -> list[Action]:
        """A call returned."""
        if not self._finished(call) or call.is_maybe:
            return []
        response = Response(call_id=call.context.call_id, context_id=call.context_id)
        try:
            return [Send(data) for data in fragment(response, stub, self._limit, call.security)]
        except SecurityError as error:
            return self._close(str(error))

    def fail(self, call: ServerCall, status: int) -> list[Action]:
        """A call failed."""
        if not self._finished(call) or call.is_maybe:
            return []
        return [self._fault(call.context.call_id, call.context_id, status)]

    def _finished(self, call: ServerCall) -> bool:
        if self._calls.get(call.context.call_id) is not call:
            return False
        del self._calls[call.context.call_id]
        self._release(call)
        return True

    # Ends.

    def _fault(self, call_id: int, context_id: int, status: int, flags: Flags = FIRST_AND_LAST) -> Send:
        fault = Fault(call_id=call_id, context_id=context_id, status=status, alloc_hint=32, flags=flags)
        return Send(encode(fault))

    def _refuse(
        self, pdu: AnyPdu, reason: str, status: FaultStatus = FaultStatus.PROTOCOL_ERROR
    ) -> list[Action]:
        actions: list[Action] = []
        if isinstance(pdu, Bind | Auth3 | Request):
            context_id = pdu.context_id if isinstance(pdu, Request) else 0
            flags = FIRST_AND_LAST | Flags.DID_NOT_EXECUTE
            actions.append(self._fault(pdu.call_id, context_id, status, flags))
        return actions + self._close(reason)

    def _nak(self, pdu: Bind, reason: RejectReason, why: str) -> list[Action]:
        return [Send(encode(BindNak(call_id=pdu.call_id, reason=reason))), *self._close(why)]

    def _close(self, reason: str) -> list[Action]:
        return [*self._end(), Close(reason)]

    def _end(self) -> list[Action]:
        self.state = State.CLOSED
        self._drop_received()
        actions: list[Action] = [Abandon(call_id) for call_id in self._calls]
        for call in self._calls.values():
            self._release(call)
        self._calls.clear()
        if self._group is not None:
            self._services.groups.leave(self._group)
            self._group = None
        return actions

    def _drop_received(self) -> None:
        if self._receiving is not None:
            self._release(self._receiving)
            self._receiving = None

    def _release(self, call: ServerCall) -> None:
        self._services.budget.give(len(call.stub))

    # Binds.

    def _bind(self, pdu: AnyPdu, _: bytes) -> list[Action]:
        assert isinstance(pdu, Bind)
        if min(pdu.max_transmit, pdu.max_receive) < MIN_FRAGMENT:
            return self._nak(pdu, RejectReason.PROTOCOL_VERSION_NOT_SUPPORTED, "fragments that are too small")
        if pdu.auth is not None and not self._services.acceptor.recognizes(pdu.auth.type):
            reason = RejectReason.AUTHENTICATION_TYPE_NOT_RECOGNIZED
            return self._nak(pdu, reason, f"security provider {pdu.auth.type}")
        self._group = self._services.groups.join(pdu.group, self.peer.host)
        if self._group is None:
            return self._nak(pdu, RejectReason.NOT_SPECIFIED, "an association group that is not theirs")
        self._limit = min(FRAGMENT, pdu.max_receive)
        results, _features = negotiate(pdu.contexts, self._services.interfaces, self._contexts)
        self.state = State.NEGOTIATED
        auth = None
        if pdu.auth is not None:
            try:
                auth = self._first_leg(pdu, pdu.auth)
            except SecurityError as error:
                return self._nak(pdu, RejectReason.INVALID_CHECKSUM, str(error))
            if self._pending is not None:
                self.state = State.WAIT_ALTER
        ack = BindAck(
            call_id=pdu.call_id,
            flags=self._answer_flags(pdu),
            max_transmit=self._limit,
            max_receive=FRAGMENT,
            group=self._group.id,
            secondary_address=self._endpoint,
            results=results,
            auth=auth,
        )
        return [Send(encode(ack))]

    def _answer_flags(self, pdu: Bind) -> Flags:
        agreed = pdu.flags & Flags.MULTIPLEX
        if pdu.auth is not None and self._signs_header:
            agreed |= pdu.flags & Flags.HEADER_SIGN
        return FIRST_AND_LAST | agreed

    def _alter(self, pdu: AnyPdu, _: bytes) -> list[Action]:
        """(4): more contexts, perhaps with the first leg of a log-on."""
        assert isinstance(pdu, AlterContext)
        auth = None
        if pdu.auth is not None and not self._is_known(pdu.auth):
            refusal = self._refuse_log_on(pdu.auth)
            if refusal is not None:
                return self._refuse(pdu, *refusal)
            try:
                auth = self._first_leg(pdu, pdu.auth)
            except SecurityError as error:
                return self._refuse(pdu, str(error), FaultStatus.ACCESS_DENIED)
            if self._pending is not None:
                self.state = State.NEGOTIATING
        return [self._altered(pdu, auth)]

    def _is_known(self, auth: SecTrailer) -> bool:
        # Samba repeats the last token of a log-on that succeeded when it asks for another interface.
        security, caller = self._secured.get(auth.context_id, (None, None))
        return (
            security is not None
            and caller is not None
            and (security.kind, security.level) == (auth.type, auth.level)
        )

    def _refuse_log_on(self, auth: SecTrailer) -> tuple[str, FaultStatus] | None:
        if not self._services.acceptor.recognizes(auth.type):
            return f"security provider {auth.type}", FaultStatus.ACCESS_DENIED
        if auth.context_id in self._secured and self._secured[auth.context_id][1] is None:
            return "the log-on failed", FaultStatus.ACCESS_DENIED
        # Clients are seen that log on twice without having negotiated that they may.
        if auth.context_id in self._secured or len(self._secured) >= MAX_SECURITY_CONTEXTS:
            return "one log-on too many", FaultStatus.PROTOCOL_ERROR_WIN32
        return None

    def _altered(self, pdu: AlterContext, auth: SecTrailer | None) -> Send:
        assert self._group is not None
        results, _ = negotiate(pdu.contexts, self._services.interfaces, self._contexts)
        answer = AlterContextResponse(
            call_id=pdu.call_id,
            flags=self._answer_flags(pdu),
            max_transmit=self._limit,
            max_receive=FRAGMENT,
            group=self._group.id,
            results=results,
            auth=auth,
        )
        return Send(encode(answer))

    def _next_leg(self, pdu: AnyPdu, _: bytes) -> list[Action]:
        """(2): alter_context goes on with a log-on."""
        assert isinstance(pdu, AlterContext)
        if pdu.auth is None or not self._is_next(pdu.auth):
            return self._refuse(pdu, "alter_context without the next leg of the log-on")
        try:
            auth = self._step(pdu.auth)
        except SecurityError as error:
            return self._refuse(pdu, str(error), FaultStatus.ACCESS_DENIED)
        if self._pending is None:
            self.state = State.NEGOTIATED
        return [self._altered(pdu, auth)]

    def _last_leg(self, pdu: AnyPdu, _: bytes) -> list[Action]:
        """(3): rpc_auth_3 ends a log-on."""
        assert isinstance(pdu, Auth3)
        if pdu.auth is None or not self._is_next(pdu.auth):
            return self._refuse(pdu, "rpc_auth_3 of another log-on")
        context = self._pending
        assert context is not None
        try:
            self._step(pdu.auth)
            if self._pending is not None:
                raise SecurityError("the log-on is not over after its last leg")
        except SecurityError:
            self._pending = None
            self._secured[context.context_id] = (context, None)
        self.state = State.NEGOTIATED
        return []

    def _is_next(self, auth: SecTrailer) -> bool:
        pending = self._pending
        return pending is not None and (pending.context_id, pending.kind, pending.level) == (
            auth.context_id,
            auth.type,
            auth.level,
        )

    def _first_leg(self, pdu: Bind, auth: SecTrailer) -> SecTrailer | None:
        source = self.peer.host
        self._pending = self._services.acceptor.begin(auth.type, auth.level, auth.context_id, source)
        # Agreed once, with the first log-on at a level that signs (3.3.1.5.2.2).
        if not self._secured:
            self._signs_header = bool(pdu.flags & Flags.HEADER_SIGN)
        self._pending.signs_header = self._signs_header
        return self._step(auth)

    def _step(self, auth: SecTrailer) -> SecTrailer | None:
        context = self._pending
        assert context is not None
        acceptor = self._services.acceptor
        try:
            token = context.step(auth.token)
            if context.is_complete:
                self._pending = None
                self._secured[context.context_id] = (context, acceptor.caller(context))
        except SecurityError as error:
            acceptor.failed(context, self.peer.host, str(error))
            raise
        return replace(auth, token=token, pad_length=0) if token else None

    # Requests.

    def _first(self, pdu: AnyPdu, data: bytes) -> list[Action]:
        """(5): a request, or its first fragment."""
        assert isinstance(pdu, Request)
        if not pdu.flags & Flags.FIRST:
            return self._late(pdu, data)
        if pdu.call_id in self._calls:
            return self._refuse(pdu, f"call {pdu.call_id} is being carried out already")
        self._last_call_id = max(self._last_call_id, pdu.call_id)
        interface = self._contexts.get(pdu.context_id)
        if interface is None:
            return self._refuse(pdu, f"no context {pdu.context_id}", FaultStatus.UNKNOWN_IF)
        try:
            security, caller = self._caller(pdu)
        except SecurityError as error:
            return self._refuse(pdu, str(error), FaultStatus.ACCESS_DENIED)
        context = CallContext(
            caller=caller,
            peer=str(self.peer),
            is_loopback=self.peer.is_loopback,
            object_uuid=pdu.object_uuid,
            big_endian=pdu.big_endian,
            interface=interface.id,
            opnum=pdu.opnum,
            call_id=pdu.call_id,
            **({"handles": self._group.handles} if self._group is not None else {}),
        )
        call = ServerCall(
            interface, context, pdu.context_id, security, is_maybe=bool(pdu.flags & Flags.MAYBE)
        )
        if not self._may_call(call):
            return self._refuse(pdu, f"{caller} may not call {interface.id}", FaultStatus.ACCESS_DENIED)
        self._receiving = call
        self.state = State.RECEIVING
        status = None
        if pdu.opnum not in interface.operations:
            status = FaultStatus.OPERATION_RANGE
        elif len(self._calls) >= MAX_CALLS:
            status = FaultStatus.SERVER_BUSY
        if status is None:
            return self._take(call, pdu, data)
        # Told at once (3.3.3.5.8), but its protection is a stream that must be read on.
        call.is_refused = True
        actions = self._take(call, pdu, data)
        if self.state == State.CLOSED:
            return actions
        return [self._did_not_execute(pdu, status)]

    def _late(self, pdu: Request, data: bytes) -> list[Action]:
        """A fragment of a call that is over (3.3.3.5.6)."""
        if not 0 <= self._last_call_id - pdu.call_id < MAX_OLD_CALL:
            return self._refuse(pdu, "a request without a beginning")
        if pdu.auth is not None:
            try:
                security, _ = self._caller(pdu)
                if security is not None:
                    plain_body(data, pdu, security)
            except (SecurityError, ProtocolError) as error:
                return self._refuse(pdu, str(error), FaultStatus.SECURITY_PACKAGE_ERROR)
        return []

    def _did_not_execute(self, pdu: Request, status: FaultStatus) -> Send:
        return self._fault(pdu.call_id, pdu.context_id, status, FIRST_AND_LAST | Flags.DID_NOT_EXECUTE)

    def _caller(self, pdu: Request) -> tuple[SecurityContext | None, Caller]:
        anonymous = ANONYMOUS
        if self._services.anonymous_loopback and self.peer.is_loopback:
            anonymous = replace(ANONYMOUS, is_administrator=True)
        if pdu.auth is None:
            if len(self._secured) != 1:
                return None, anonymous
            # The only log-on, at CONNECT, stands for requests that say nothing (3.3.1.5.4).
            ((security, caller),) = self._secured.values()
            if security.protection != AuthLevel.CONNECT:
                return None, anonymous
        else:
            found = self._secured.get(pdu.auth.context_id)
            if found is None:
                raise SecurityError(f"no security context {pdu.auth.context_id}")
            security, caller = found
            if (security.kind, security.level) != (pdu.auth.type, pdu.auth.level):
                raise SecurityError("a request at another level than its log-on")
        if caller is None:
            raise SecurityError("the log-on failed")
        return security, caller

    @staticmethod
    def _may_call(call: ServerCall) -> bool:
        """Asked before any room is given to the request (3.1.1.1.3, 3.3.3.5.8)."""
        interface, caller = call.interface, call.context.caller
        if caller.is_administrator and not caller.is_authenticated:
            return True  # anonymous on loopback, where a setting allows it: there is no level to ask for
        if caller.level < interface.minimum_level:
            return False
        return (
            interface.access == Access.EVERYBODY
            or caller.is_administrator
            or (interface.access == Access.AUTHENTICATED and caller.is_authenticated)
        )

    def _more(self, pdu: AnyPdu, data: bytes) -> list[Action]:
        """(7): the next fragment of a request."""
        assert isinstance(pdu, Request)
        call = self._receiving
        assert call is not None
        if call.is_refused and pdu.flags & Flags.FIRST:
            self._drop_received()  # the client took its fault for an end
            return self._first(pdu, data)
        same = (call.context.call_id, call.context_id, call.context.opnum)
        if pdu.flags & Flags.FIRST or same != (pdu.call_id, pdu.context_id, pdu.opnum):
            return self._refuse(pdu, "a fragment of another request")
        if pdu.big_endian != call.context.big_endian:
            return self._refuse(pdu, "a fragment in another byte order")
        if pdu.auth is None and call.security is not None and call.security.protection > AuthLevel.CONNECT:
            return self._refuse(pdu, "a fragment without protection", FaultStatus.ACCESS_DENIED)
        if pdu.auth is not None and (
            call.security is None
            or (call.security.context_id, call.security.kind, call.security.level)
            != (pdu.auth.context_id, pdu.auth.type, pdu.auth.level)
        ):
            return self._refuse(pdu, "a fragment of another log-on", FaultStatus.ACCESS_DENIED)
        return self._take(call, pdu, data)

    def _take(self, call: ServerCall, pdu: Request, data: bytes) -> list[Action]:
        piece = pdu.stub
        if pdu.auth is not None and call.security is not None:
            try:
                piece = plain_body(data, pdu, call.security)
            except (SecurityError, ProtocolError) as error:
                return self._refuse(pdu, str(error), FaultStatus.SECURITY_PACKAGE_ERROR)
        if call.is_refused:
            piece = b""
        if len(call.stub) + len(piece) > call.interface.max_request:
            # Status 5 for a request that is too long (3.3.3.5.4).
            return self._refuse(pdu, "a request that is too long", FaultStatus.ACCESS_DENIED)
        if not self._services.budget.take(len(piece)):
            return self._refuse(pdu, "too much is being received", FaultStatus.SERVER_BUSY)
        call.stub += piece
        if not pdu.flags & Flags.LAST:
            return []
        self._receiving = None
        self.state = State.NEGOTIATED
        if call.is_refused:
            self._release(call)
            return []
        self._calls[pdu.call_id] = call
        return [Dispatch(call)]

    def _stop(self, pdu: AnyPdu, _: bytes) -> list[Action]:
        """(6): a call ends early."""
        receiving = self._receiving
        actions: list[Action] = []
        if receiving is not None and receiving.context.call_id == pdu.call_id:
            if isinstance(pdu, Orphaned):
                self._drop_received()
                self.state = State.NEGOTIATED
            elif not receiving.is_refused:
                receiving.is_refused = True
                actions.append(self._fault(pdu.call_id, receiving.context_id, FaultStatus.CANCELLED))
            return actions
        call = self._calls.pop(pdu.call_id, None)
        if call is None:
            return []  # it was over before
        self._release(call)
        if isinstance(pdu, Cancel):
            actions.append(self._fault(pdu.call_id, call.context_id, FaultStatus.CANCELLED))
        return [Abandon(pdu.call_id), *actions]


_Handler = Callable[[ServerAssociation, AnyPdu, bytes], list[Action]]

_STOP: dict[type, _Handler] = {Cancel: ServerAssociation._stop, Orphaned: ServerAssociation._stop}
_LEGS: dict[type, _Handler] = {
    AlterContext: ServerAssociation._next_leg,
    Auth3: ServerAssociation._last_leg,
}

_TABLE: dict[State, dict[type, _Handler]] = {
    State.ESTABLISHED: {Bind: ServerAssociation._bind},
    State.WAIT_ALTER: _LEGS,
    State.NEGOTIATED: {
        AlterContext: ServerAssociation._alter,
        Request: ServerAssociation._first,
        **_STOP,
    },
    State.NEGOTIATING: {**_LEGS, **_STOP},
    State.RECEIVING: {Request: ServerAssociation._more, **_STOP},
    State.CLOSED: {},
}
