"""The server's state machine: every state with every PDU, fragments, log-ons, and who may call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.protocols.rpc.echo import ECHO, SECOND, echo_interface, second_interface

from lanner.protocols.rpc import association as module
from lanner.protocols.rpc.accounts import Accounts
from lanner.protocols.rpc.association import (
    Abandon,
    Action,
    Close,
    Dispatch,
    Peer,
    Send,
    ServerAssociation,
    Services,
    State,
)
from lanner.protocols.rpc.codec import decode, encode
from lanner.protocols.rpc.credentials import Credentials, Mechanism
from lanner.protocols.rpc.errors import FaultStatus
from lanner.protocols.rpc.fragments import Budget, fragment, plain_body
from lanner.protocols.rpc.groups import Groups
from lanner.protocols.rpc.interface import Access, AuthLevel, InterfaceId, RpcInterface
from lanner.protocols.rpc.logons import Logons
from lanner.protocols.rpc.negotiation import MAX_CONTEXTS, features_syntax
from lanner.protocols.rpc.ntlm import nt_hash
from lanner.protocols.rpc.pdu import (
    MIN_FRAGMENT,
    NDR20,
    AlterContext,
    AlterContextResponse,
    AnyPdu,
    Auth3,
    Bind,
    BindAck,
    BindNak,
    Cancel,
    ContextElement,
    ContextReason,
    ContextResult,
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
from lanner.protocols.rpc.security import Acceptor, SecurityContext, initiate

NDR64 = InterfaceId(UUID("71710533-beba-4937-8319-b5dbef9ccc36"), 1, 0)
PEER = Peer("192.0.2.1", 4711)
BUDGET = 10_000_000
SECRET = nt_hash("secret")


class Users(Accounts):
    """One administrator and one guest, without a file."""

    def __init__(self) -> None:
        super().__init__(administrators=["operator"])
        self._users = {name: (name, SECRET) for name in ("operator", "guest")}


def services(*interfaces: RpcInterface, anonymous: bool = False) -> Services:
    everything = interfaces or (echo_interface(), second_interface())
    acceptor = Acceptor(Logons(Users(), lambda: 0.0), "lanner")
    return Services(everything, acceptor, Groups(), Budget(BUDGET), anonymous)


class Line:
    """A client that writes PDUs by hand, without a network."""

    def __init__(self, shared: Services | None = None, peer: Peer = PEER) -> None:
        self.services = shared or services()
        self.association = ServerAssociation(self.services, peer, "2103")
        self.security: SecurityContext | None = None

    def send(self, pdu: AnyPdu) -> list[Action]:
        return self.association.receive(encode(pdu))

    def ask(self, pdu: AnyPdu) -> AnyPdu:
        (action, *rest) = self.send(pdu)
        assert isinstance(action, Send), action
        assert all(isinstance(each, Close | Abandon) for each in rest)
        return decode(action.data)

    def bind(self, *contexts: ContextElement, **fields: object) -> BindAck:
        values: dict[str, object] = {"call_id": 1, "max_transmit": 5840, "max_receive": 5840}
        values["contexts"] = contexts or (ContextElement(0, ECHO), ContextElement(1, SECOND))
        answer = self.ask(Bind(**(values | fields)))  # type: ignore[arg-type]
        assert isinstance(answer, BindAck), answer
        return answer

    def begin(self, level: AuthLevel, mechanism: Mechanism, user: str, password: str) -> None:
        """Bind with the first leg of a log-on."""
        self.security = initiate(Credentials(user, password, mechanism), level, "lanner")
        ack = self.bind(
            auth=self.trailer(self.security.step(None)), flags=Flags.FIRST | Flags.LAST | Flags.HEADER_SIGN
        )
        assert ack.auth is not None
        self.token = self.security.step(ack.auth.token)

    def log_on(
        self,
        level: AuthLevel = AuthLevel.PRIVACY,
        mechanism: Mechanism = Mechanism.NTLM,
        user: str = "operator",
        password: str = "secret",
    ) -> None:
        self.begin(level, mechanism, user, password)
        assert self.security is not None
        if mechanism == Mechanism.NTLM:
            assert self.send(Auth3(call_id=1, auth=self.trailer(self.token))) == []
        else:
            answer = self.ask(self.alter(auth=self.trailer(self.token)))
            assert isinstance(answer, AlterContextResponse)
            assert answer.auth is not None
            self.security.step(answer.auth.token)
        self.security.signs_header = True
        assert self.association.state == State.NEGOTIATED

    def alter(self, *contexts: ContextElement, auth: SecTrailer | None = None) -> AlterContext:
        return AlterContext(call_id=2, contexts=contexts or (ContextElement(0, ECHO),), auth=auth)

    def trailer(self, token: bytes) -> SecTrailer:
        assert self.security is not None
        return SecTrailer(self.security.kind, self.security.level, self.security.context_id, token)

    def call(self, stub: bytes, call_id: int = 5, limit: int = 5840, **fields: object) -> list[Action]:
        pdu = Request(call_id=call_id, **fields)  # type: ignore[arg-type]
        actions: list[Action] = []
        for data in fragment(pdu, stub, limit, self.security):
            actions += self.association.receive(data)
        return actions


# The table.

PDUS: dict[str, AnyPdu] = {
    "bind": Bind(call_id=9, max_transmit=5840, max_receive=5840, contexts=(ContextElement(0, ECHO),)),
    "alter_context": AlterContext(call_id=9, contexts=(ContextElement(3, ECHO),)),
    "auth3": Auth3(call_id=9, auth=SecTrailer(10, 6, 1, b"NTLMSSP\0")),
    "request": Request(call_id=9, opnum=0, stub=b"x"),
    "fragment": Request(call_id=5, flags=Flags.NONE, stub=b"x"),
    "cancel": Cancel(call_id=5),
    "orphaned": Orphaned(call_id=5),
    "bind_ack": BindAck(call_id=9, results=(ContextResult(),)),
    "bind_nak": BindNak(call_id=9),
    "alter_context_resp": AlterContextResponse(call_id=9),
    "response": Response(call_id=9),
    "fault": Fault(call_id=9),
    "shutdown": Shutdown(call_id=9),
}


def established() -> Line:
    return Line(services(anonymous=True), replace(PEER, is_loopback=True))


def negotiated() -> Line:
    line = established()
    line.bind()
    return line


def wait_alter() -> Line:
    line = established()
    line.begin(AuthLevel.PRIVACY, Mechanism.NTLM, "operator", "secret")
    return line


def negotiating() -> Line:
    line = negotiated()
    line.security = initiate(Credentials("operator", "secret", Mechanism.NTLM), AuthLevel.PRIVACY, "x")
    answer = line.ask(line.alter(auth=line.trailer(line.security.step(None))))
    assert isinstance(answer, AlterContextResponse)
    return line


def receiving() -> Line:
    line = negotiated()
    assert line.send(Request(call_id=5, flags=Flags.FIRST, stub=b"begin")) == []
    return line


def closed() -> Line:
    line = established()
    line.association.hung_up()
    return line


STATES: dict[State, Callable[[], Line]] = {
    State.ESTABLISHED: established,
    State.WAIT_ALTER: wait_alter,
    State.NEGOTIATED: negotiated,
    State.NEGOTIATING: negotiating,
    State.RECEIVING: receiving,
    State.CLOSED: closed,
}

TAKEN = {
    (State.ESTABLISHED, "bind"): State.NEGOTIATED,
    (State.WAIT_ALTER, "auth3"): State.NEGOTIATED,  # a token that is none: told to the first request
    (State.NEGOTIATED, "alter_context"): State.NEGOTIATED,
    (State.NEGOTIATED, "request"): State.NEGOTIATED,
    (State.NEGOTIATED, "cancel"): State.NEGOTIATED,
    (State.NEGOTIATED, "orphaned"): State.NEGOTIATED,
    (State.NEGOTIATING, "auth3"): State.NEGOTIATED,
    (State.NEGOTIATING, "cancel"): State.NEGOTIATING,
    (State.NEGOTIATING, "orphaned"): State.NEGOTIATING,
    (State.RECEIVING, "fragment"): State.RECEIVING,
    (State.RECEIVING, "cancel"): State.RECEIVING,
    (State.RECEIVING, "orphaned"): State.NEGOTIATED,
}
"""What leads where; every other pair is refused and ends the association."""

ANSWERED = {"bind", "alter_context", "auth3", "request", "fragment"}


@pytest.mark.parametrize("name", PDUS)
@pytest.mark.parametrize("state", State)
def test_every_state_with_every_pdu(state: State, name: str) -> None:
    line = STATES[state]()
    assert line.association.state == state
    actions = line.send(PDUS[name])
    if state == State.CLOSED:
        assert actions == []
        return
    expected = TAKEN.get((state, name))
    if expected is not None:
        assert line.association.state == expected
        assert not any(isinstance(each, Close) for each in actions)
        return
    assert line.association.state == State.CLOSED
    assert isinstance(actions[-1], Close)
    faults = [decode(each.data) for each in actions if isinstance(each, Send)]
    assert len(faults) == (name in ANSWERED)
    assert all(isinstance(each, Fault) and each.status == FaultStatus.PROTOCOL_ERROR for each in faults)
    assert line.services.budget.left == BUDGET
    assert len(line.services.groups) == 0


@pytest.mark.parametrize("state", State)
def test_no_pdu_ends_every_state(state: State) -> None:
    line = STATES[state]()
    actions = line.association.receive(b"\5\0\x63\3\x10\0\0\0\x10\0\0\0\1\0\0\0")
    assert actions == [] if state == State.CLOSED else isinstance(actions[-1], Close)
    assert line.association.state == State.CLOSED


# Binds.


def test_contexts_are_answered_in_their_order() -> None:
    other = InterfaceId(UUID(int=5), 1, 0)
    ack = Line().bind(
        ContextElement(0, ECHO, (NDR64,)),
        ContextElement(1, ECHO, (NDR20,)),
        ContextElement(2, ECHO, (features_syntax(0xFF),)),
        ContextElement(3, other),
        ContextElement(4, replace(SECOND, minor=0)),
        ContextElement(5, replace(SECOND, minor=2)),
        ContextElement(6, replace(SECOND, major=1)),
        ContextElement(7, ECHO, (NDR64, NDR20)),
    )
    rejected, unsupported = ResultCode.PROVIDER_REJECTION, ContextReason.ABSTRACT_SYNTAX_NOT_SUPPORTED
    assert [(each.result, each.reason) for each in ack.results] == [
        (rejected, ContextReason.TRANSFER_SYNTAXES_NOT_SUPPORTED),
        (ResultCode.ACCEPTANCE, 0),
        (ResultCode.NEGOTIATE_ACK, 3),
        (rejected, unsupported),
        (ResultCode.ACCEPTANCE, 0),
        (rejected, unsupported),
        (rejected, unsupported),
        (ResultCode.ACCEPTANCE, 0),
    ]
    assert ack.results[1].transfer == NDR20
    assert ack.results[2].transfer.uuid.int == 0
    assert ack.secondary_address == b"2103\0"


def test_a_context_keeps_its_meaning() -> None:
    line = negotiated()
    answer = line.ask(line.alter(ContextElement(0, SECOND), ContextElement(0, ECHO)))
    assert isinstance(answer, AlterContextResponse)
    assert [each.result for each in answer.results] == [ResultCode.PROVIDER_REJECTION, ResultCode.ACCEPTANCE]


def test_contexts_are_limited() -> None:
    line = negotiated()
    answer = line.ask(line.alter(*(ContextElement(number, ECHO) for number in range(2, 102))))
    assert isinstance(answer, AlterContextResponse)
    results = [each.result for each in answer.results]
    assert results.count(ResultCode.ACCEPTANCE) == MAX_CONTEXTS - 2
    assert answer.results[-1].reason == ContextReason.LOCAL_LIMIT_EXCEEDED


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"max_receive": MIN_FRAGMENT - 1}, RejectReason.PROTOCOL_VERSION_NOT_SUPPORTED),
        ({"max_transmit": 0}, RejectReason.PROTOCOL_VERSION_NOT_SUPPORTED),
        ({"group": 12345}, RejectReason.NOT_SPECIFIED),
        ({"auth": SecTrailer(0x44, 6, 1, b"x")}, RejectReason.AUTHENTICATION_TYPE_NOT_RECOGNIZED),
        ({"auth": SecTrailer(0x10, 6, 1, b"x")}, RejectReason.AUTHENTICATION_TYPE_NOT_RECOGNIZED),
        ({"auth": SecTrailer(0x0A, 6, 1, b"NTLMSSP\0")}, RejectReason.INVALID_CHECKSUM),
        ({"auth": SecTrailer(0x0A, 1, 1, b"NTLMSSP\0")}, RejectReason.INVALID_CHECKSUM),
        ({"auth": SecTrailer(0x0A, 77, 1, b"NTLMSSP\0")}, RejectReason.INVALID_CHECKSUM),
        ({"auth": SecTrailer(0x09, 6, 1, b"\x60\x05junk!")}, RejectReason.INVALID_CHECKSUM),
    ],
)
def test_binds_that_are_refused(fields: dict[str, object], reason: RejectReason) -> None:
    line = Line()
    values: dict[str, object] = {
        "max_transmit": 5840,
        "max_receive": 5840,
        "contexts": (ContextElement(0, ECHO),),
    }
    nak = line.ask(Bind(call_id=3, **(values | fields)))  # type: ignore[arg-type]
    assert isinstance(nak, BindNak)
    assert (nak.reason, nak.call_id, nak.versions) == (reason, 3, ((5, 0),))
    assert line.association.state == State.CLOSED
    assert len(line.services.groups) == 0


def test_groups_are_joined_from_the_same_host_alone() -> None:
    first = Line()
    group = first.bind().group
    same = Line(first.services, replace(PEER, port=9))
    assert same.bind(group=group).group == group
    other = Line(first.services, Peer("192.0.2.2", 1))
    assert isinstance(
        other.ask(
            Bind(max_transmit=5840, max_receive=5840, group=group, contexts=(ContextElement(0, ECHO),))
        ),
        BindNak,
    )
    first.association.hung_up()
    assert len(first.services.groups) == 1
    same.association.hung_up()
    assert len(first.services.groups) == 0


def test_flags_are_agreed() -> None:
    flags = Flags.FIRST | Flags.LAST | Flags.MULTIPLEX
    assert Line().bind(flags=flags).flags == flags
    # Without a log-on there is nothing to sign with.
    assert Line().bind(flags=flags | Flags.HEADER_SIGN).flags == flags


# Log-ons and calls.

PROTECTED = [AuthLevel.INTEGRITY, AuthLevel.PRIVACY]


@pytest.mark.parametrize("mechanism", [Mechanism.NTLM, Mechanism.SPNEGO])
@pytest.mark.parametrize("level", [AuthLevel.CONNECT, AuthLevel.PACKET, *PROTECTED])
@pytest.mark.parametrize("size", [0, 1, 16, 5_000, 100_000])
def test_calls_in_fragments_both_ways(level: AuthLevel, mechanism: Mechanism, size: int) -> None:
    line = Line()
    line.log_on(level, mechanism)
    stub = bytes(number % 256 for number in range(size))
    for call_id, limit in ((5, 5840), (6, MIN_FRAGMENT)):
        (dispatch,) = line.call(stub, call_id=call_id, limit=limit)
        assert isinstance(dispatch, Dispatch)
        call = dispatch.call
        assert bytes(call.stub) == stub
        assert call.context.caller.user == "operator"
        assert call.context.caller.is_administrator
        assert line.services.budget.left == BUDGET - size
        answers = line.association.respond(call, stub)
        assert line.services.budget.left == BUDGET
        assert all(isinstance(each, Send) and len(each.data) <= 5840 for each in answers)
        assert join(line, answers) == stub
        assert line.association.respond(call, stub) == []


def join(line: Line, actions: list[Action]) -> bytes:
    stub = b""
    for action in actions:
        assert isinstance(action, Send)
        pdu = decode(action.data)
        assert isinstance(pdu, Response)
        if pdu.auth is not None:
            assert line.security is not None
            stub += plain_body(action.data, pdu, line.security)
        else:
            stub += pdu.stub
    return stub


@pytest.mark.parametrize("level", PROTECTED)
@pytest.mark.parametrize("at", [0, 2, 12, 20, 22, 24, 30, -20, -17, -1])
def test_a_changed_octet_is_seen(level: AuthLevel, at: int) -> None:
    line = Line()
    line.log_on(level)
    (data,) = fragment(Request(call_id=5, stub=b""), b"s" * 20, 5840, line.security)
    changed = bytearray(data)
    changed[at] ^= 0x40
    actions = line.association.receive(bytes(changed))
    assert not any(isinstance(each, Dispatch) for each in actions)
    assert isinstance(actions[-1], Close)
    assert line.services.budget.left == BUDGET


@pytest.mark.parametrize("level", PROTECTED)
def test_a_pdu_sent_again_is_seen(level: AuthLevel) -> None:
    line = Line()
    line.log_on(level)
    (data,) = fragment(Request(call_id=5, stub=b""), b"s" * 20, 5840, line.security)
    (dispatch,) = line.association.receive(data)
    assert isinstance(dispatch, Dispatch)
    line.association.respond(dispatch.call, b"")
    (fault, close) = line.association.receive(data)
    assert isinstance(fault, Send)
    assert isinstance(close, Close)
    answer = decode(fault.data)
    assert isinstance(answer, Fault)
    assert answer.status == FaultStatus.SECURITY_PACKAGE_ERROR


def test_a_request_without_its_protection_is_anonymous() -> None:
    line = Line()
    line.log_on(AuthLevel.PRIVACY)
    fault = line.ask(Request(call_id=5, stub=b"x"))
    assert isinstance(fault, Fault)
    assert fault.status == FaultStatus.ACCESS_DENIED
    line = Line()
    line.log_on(AuthLevel.PRIVACY)
    assert line.security is not None
    pieces = fragment(Request(call_id=5, stub=b""), bytes(9_000), 5840, line.security)
    assert line.association.receive(pieces[0]) == []
    fault = line.ask(Request(call_id=5, flags=Flags.LAST, stub=b"x"))
    assert isinstance(fault, Fault)
    assert fault.status == FaultStatus.ACCESS_DENIED


@pytest.mark.parametrize("level", [2, 5])
def test_a_request_at_another_level_is_refused(level: int) -> None:
    line = Line()
    line.log_on(AuthLevel.PRIVACY)
    assert line.security is not None
    auth = SecTrailer(line.security.kind, level, line.security.context_id, bytes(16))
    fault = line.ask(Request(call_id=5, stub=bytes(16), auth=auth))
    assert isinstance(fault, Fault)
    assert fault.status == FaultStatus.ACCESS_DENIED


@pytest.mark.parametrize("mechanism", [Mechanism.NTLM, Mechanism.SPNEGO])
@pytest.mark.parametrize(("user", "password"), [("operator", "wrong"), ("nobody", "secret")])
def test_a_log_on_that_fails(mechanism: Mechanism, user: str, password: str) -> None:
    line = Line()
    line.begin(AuthLevel.PRIVACY, mechanism, user, password)
    if mechanism == Mechanism.NTLM:
        assert line.send(Auth3(call_id=1, auth=line.trailer(line.token))) == []
        (fault, close) = line.call(b"x")
    else:
        (fault, close) = line.send(line.alter(auth=line.trailer(line.token)))
    assert isinstance(close, Close)
    assert isinstance(fault, Send)
    answer = decode(fault.data)
    assert isinstance(answer, Fault)
    assert answer.status == FaultStatus.ACCESS_DENIED


def test_a_second_log_on_and_its_limit() -> None:
    line = Line()
    line.log_on()
    for context_id in range(2, module.MAX_SECURITY_CONTEXTS + 2):
        line.security = initiate(
            Credentials("operator", "secret", Mechanism.NTLM), AuthLevel.INTEGRITY, "x", context_id
        )
        answer = line.ask(line.alter(auth=line.trailer(line.security.step(None))))
        if context_id > module.MAX_SECURITY_CONTEXTS:
            assert isinstance(answer, Fault)
            assert answer.status == FaultStatus.PROTOCOL_ERROR_WIN32
            return
        assert isinstance(answer, AlterContextResponse)
        assert answer.auth is not None
        assert line.association.state == State.NEGOTIATING
        token = line.security.step(answer.auth.token)
        assert line.send(Auth3(call_id=3, auth=line.trailer(token))) == []
        line.security.signs_header = True
        (dispatch,) = line.call(b"x", call_id=10 + context_id)
        assert isinstance(dispatch, Dispatch)
        assert dispatch.call.context.caller.level == AuthLevel.INTEGRITY


def test_a_log_on_that_is_repeated_with_a_new_context() -> None:
    """Samba does that."""
    line = Line()
    line.log_on()
    answer = line.ask(line.alter(ContextElement(9, SECOND), auth=line.trailer(line.token)))
    assert isinstance(answer, AlterContextResponse)
    (dispatch,) = line.call(b"x", context_id=9)
    assert isinstance(dispatch, Dispatch)


# Who may call.


@pytest.mark.parametrize(
    ("access", "minimum", "user", "level", "is_allowed"),
    [
        (Access.ADMINISTRATORS, AuthLevel.NONE, "operator", AuthLevel.CONNECT, True),
        (Access.ADMINISTRATORS, AuthLevel.INTEGRITY, "operator", AuthLevel.CONNECT, False),
        (Access.ADMINISTRATORS, AuthLevel.INTEGRITY, "OPERATOR", AuthLevel.INTEGRITY, True),
        (Access.ADMINISTRATORS, AuthLevel.NONE, "guest", AuthLevel.PRIVACY, False),
        (Access.AUTHENTICATED, AuthLevel.NONE, "guest", AuthLevel.PRIVACY, True),
        (Access.EVERYBODY, AuthLevel.NONE, "guest", AuthLevel.CONNECT, True),
        (Access.ADMINISTRATORS, AuthLevel.NONE, None, AuthLevel.NONE, False),
        (Access.AUTHENTICATED, AuthLevel.NONE, None, AuthLevel.NONE, False),
        (Access.EVERYBODY, AuthLevel.NONE, None, AuthLevel.NONE, True),
        (Access.EVERYBODY, AuthLevel.CONNECT, None, AuthLevel.NONE, False),
    ],
)
def test_who_may_call(
    access: Access, minimum: AuthLevel, user: str | None, level: AuthLevel, is_allowed: bool
) -> None:
    interface = replace(echo_interface(), access=access, minimum_level=minimum)
    line = Line(services(interface))
    if user is None:
        line.bind()
    else:
        line.log_on(level, user=user)
    actions = line.call(bytes(10_000))
    if is_allowed:
        assert isinstance(actions[0], Dispatch)
        return
    # Told with the first fragment, before any room is taken (MS-RPCE 3.3.3.5.8).
    assert isinstance(actions[0], Send)
    answer = decode(actions[0].data)
    assert isinstance(answer, Fault)
    assert answer.status == FaultStatus.ACCESS_DENIED
    assert line.association.state == State.CLOSED


@pytest.mark.parametrize(("anonymous", "loopback"), [(False, True), (True, False), (True, True)])
def test_anonymous_calls_on_loopback_alone(anonymous: bool, loopback: bool) -> None:
    line = Line(services(anonymous=anonymous), replace(PEER, is_loopback=loopback))
    line.bind()
    (action, *_) = line.call(b"x")
    assert isinstance(action, Dispatch) == (anonymous and loopback)


# Requests that go wrong.


def status(line: Line, actions: list[Action]) -> int:
    (send, *_) = actions
    assert isinstance(send, Send)
    answer = decode(send.data)
    assert isinstance(answer, Fault)
    return answer.status


def test_an_unknown_operation_does_not_end_the_association() -> None:
    line = Line()
    line.log_on()
    for call_id, size in ((5, 0), (6, 20_000), (7, 1)):
        assert status(line, line.call(bytes(size), call_id=call_id, opnum=99)) == FaultStatus.OPERATION_RANGE
    (dispatch,) = line.call(b"alive", call_id=8)
    assert isinstance(dispatch, Dispatch)
    assert line.services.budget.left == BUDGET - 5


def test_an_unknown_context() -> None:
    line = negotiated()
    assert status(line, line.call(b"", context_id=77)) == FaultStatus.UNKNOWN_IF


def test_too_many_calls() -> None:
    line = negotiated()
    for number in range(module.MAX_CALLS):
        assert isinstance(line.call(b"x", call_id=10 + number)[0], Dispatch)
    assert line.association.calls == module.MAX_CALLS
    assert status(line, line.call(b"x", call_id=99)) == FaultStatus.SERVER_BUSY
    assert line.association.state == State.NEGOTIATED


def test_a_request_that_is_too_long() -> None:
    interface = replace(echo_interface(), max_request=10_000)
    line = Line(services(interface, anonymous=True), replace(PEER, is_loopback=True))
    line.bind()
    assert isinstance(line.call(bytes(10_000), call_id=5)[0], Dispatch)
    assert status(line, line.call(bytes(10_001), call_id=6)) == FaultStatus.ACCESS_DENIED
    assert line.services.budget.left == BUDGET


def test_what_everybody_holds_is_limited() -> None:
    shared = replace(services(anonymous=True), budget=Budget(8_000))
    lines = [Line(shared, replace(PEER, is_loopback=True)) for _ in range(2)]
    for line in lines:
        line.bind()
    first, second = lines
    (dispatch,) = first.call(bytes(5_000))
    assert isinstance(dispatch, Dispatch)
    assert status(second, second.call(bytes(5_000))) == FaultStatus.SERVER_BUSY
    first.association.respond(dispatch.call, b"")
    assert shared.budget.left == 8_000


def test_a_fragment_longer_than_agreed() -> None:
    line = negotiated()
    assert status(line, line.send(Request(call_id=5, stub=bytes(6_000)))) == FaultStatus.PROTOCOL_ERROR


@pytest.mark.parametrize("change", [{"call_id": 6}, {"opnum": 1}, {"context_id": 1}, {"flags": Flags.FIRST}])
def test_a_fragment_of_another_request(change: dict[str, object]) -> None:
    line = receiving()
    fields: dict[str, object] = {"call_id": 5, "flags": Flags.LAST, "stub": b"x"}
    assert status(line, line.send(Request(**(fields | change)))) == FaultStatus.PROTOCOL_ERROR  # type: ignore[arg-type]
    assert line.services.budget.left == BUDGET


def test_late_fragments_of_a_call_that_is_over() -> None:
    line = negotiated()
    (dispatch,) = line.call(b"x", call_id=200)
    assert isinstance(dispatch, Dispatch)
    line.association.fail(dispatch.call, 5)
    assert line.send(Request(call_id=100, flags=Flags.LAST, stub=b"late")) == []
    assert status(line, line.send(Request(call_id=50, flags=Flags.LAST))) == FaultStatus.PROTOCOL_ERROR


def test_a_call_identifier_that_is_in_use() -> None:
    line = negotiated()
    line.call(b"x", call_id=5)
    actions = line.call(b"x", call_id=5)
    assert status(line, actions) == FaultStatus.PROTOCOL_ERROR
    assert Abandon(5) in actions


def test_cancel_and_orphaned() -> None:
    line = negotiated()
    line.call(b"x", call_id=5)
    line.call(b"x", call_id=6)
    abandon, fault = line.send(Cancel(call_id=5))
    assert abandon == Abandon(5)
    assert status(line, [fault]) == FaultStatus.CANCELLED
    assert line.send(Orphaned(call_id=6)) == [Abandon(6)]
    assert line.send(Orphaned(call_id=6)) == []
    assert line.association.calls == 0
    assert line.services.budget.left == BUDGET


def test_cancelled_in_the_middle_of_a_sealed_request() -> None:
    line = Line()
    line.log_on()
    pieces = fragment(Request(call_id=5), bytes(20_000), 5840, line.security)
    for piece in pieces[:2]:
        assert line.association.receive(piece) == []
    assert status(line, line.send(Cancel(call_id=5))) == FaultStatus.CANCELLED
    for piece in pieces[2:]:
        assert line.association.receive(piece) == []
    (dispatch,) = line.call(b"x", call_id=6)
    assert isinstance(dispatch, Dispatch)
    assert line.services.budget.left == BUDGET - 1


def test_maybe_calls_are_not_answered() -> None:
    line = negotiated()
    (dispatch,) = line.send(Request(call_id=5, flags=Flags.FIRST | Flags.LAST | Flags.MAYBE))
    assert isinstance(dispatch, Dispatch)
    assert line.association.respond(dispatch.call, b"x") == []


def test_hanging_up_abandons_everything() -> None:
    line = negotiated()
    (dispatch,) = line.call(b"x", call_id=5)
    assert isinstance(dispatch, Dispatch)
    assert line.association.hung_up() == [Abandon(5)]
    assert line.association.respond(dispatch.call, b"late") == []
    assert line.services.budget.left == BUDGET


def test_the_object_and_the_byte_order_reach_the_operation() -> None:
    line = negotiated()
    uuid = UUID(int=7)
    (dispatch,) = line.call(b"x", object_uuid=uuid, opnum=3)
    assert isinstance(dispatch, Dispatch)
    context = dispatch.call.context
    assert (context.object_uuid, context.opnum, context.interface, context.big_endian) == (
        uuid,
        3,
        ECHO,
        False,
    )
    assert context.peer == "192.0.2.1:4711"


# Anything at all.


@given(
    st.lists(st.sampled_from(sorted(PDUS)), max_size=12),
    st.lists(st.tuples(st.integers(0, 11), st.integers(0, 200), st.integers(0, 255)), max_size=3),
)
@settings(max_examples=300, deadline=None)
def test_any_pdus_in_any_order(names: list[str], changes: list[tuple[int, int, int]]) -> None:
    line = established()
    for index, name in enumerate(names):
        data = bytearray(encode(PDUS[name]))
        for which, at, value in changes:
            if which == index and at < len(data) and at not in (8, 9):
                data[at] = value
        actions = line.association.receive(bytes(data))
        assert (line.association.state == State.CLOSED) or not any(
            isinstance(each, Close) for each in actions
        )
    line.association.hung_up()
    assert line.services.budget.left == BUDGET
    assert len(line.services.groups) == 0


@given(st.binary(max_size=200), st.sampled_from([9, 10]))
@settings(max_examples=300, deadline=None)
def test_any_token_is_refused_with_a_bind_nak(token: bytes, kind: int) -> None:
    line = Line()
    bind = Bind(
        max_transmit=5840,
        max_receive=5840,
        contexts=(ContextElement(0, ECHO),),
        auth=SecTrailer(kind, 6, 1, token or b"\0"),
    )
    answer = line.ask(bind)
    assert isinstance(answer, BindNak | BindAck)


@given(st.lists(st.tuples(st.integers(0, 600), st.integers(0, 255)), min_size=1, max_size=4))
@settings(max_examples=300, deadline=None)
def test_any_change_in_the_last_token_fails_or_means_nothing(changes: list[tuple[int, int]]) -> None:
    line = Line()
    line.begin(AuthLevel.PRIVACY, Mechanism.NTLM, "operator", "secret")
    token = bytearray(line.token)
    for at, value in changes:
        token[at % len(token)] = value
    line.send(Auth3(call_id=1, auth=line.trailer(bytes(token))))
    actions = line.call(b"x")
    if bytes(token) != line.token:
        assert not any(isinstance(each, Dispatch) for each in actions)
