"""The client's state machine: every state with every PDU, and answers that are not what was asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.protocols.rpc.echo import ECHO
from tests.protocols.rpc.test_association import Line

from lanner.protocols.rpc import client_association as module
from lanner.protocols.rpc.association import Dispatch, Send
from lanner.protocols.rpc.client_association import (
    ClientAssociation,
    ClientState,
    Failed,
    Lost,
    Ready,
    Returned,
    Transmit,
)
from lanner.protocols.rpc.codec import decode, encode
from lanner.protocols.rpc.credentials import Credentials, Mechanism
from lanner.protocols.rpc.errors import BindRefusedError, ProtocolError, SecurityError
from lanner.protocols.rpc.interface import AuthLevel
from lanner.protocols.rpc.pdu import (
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
    ContextResult,
    Fault,
    Flags,
    Orphaned,
    Request,
    Response,
    SecTrailer,
    Shutdown,
)
from lanner.protocols.rpc.security import initiate

ACK = BindAck(
    call_id=1,
    max_transmit=5840,
    max_receive=5840,
    group=4,
    results=(ContextResult(0, 0, NDR20), ContextResult(3, 2)),
    flags=Flags.FIRST | Flags.LAST | Flags.MULTIPLEX,
)

PDUS: dict[str, AnyPdu] = {
    "bind_ack": ACK,
    "bind_nak": BindNak(call_id=1, reason=9),
    "alter_context_resp": AlterContextResponse(
        call_id=1, results=ACK.results, auth=SecTrailer(9, 6, 1, b"x")
    ),
    "response": Response(call_id=2, stub=b"x"),
    "fault": Fault(call_id=2, status=5),
    "shutdown": Shutdown(),
    "bind": Bind(contexts=(ContextElement(0, ECHO),)),
    "alter_context": AlterContext(contexts=(ContextElement(0, ECHO),)),
    "auth3": Auth3(auth=SecTrailer(10, 6, 1, b"x")),
    "request": Request(call_id=2),
    "cancel": Cancel(call_id=2),
    "orphaned": Orphaned(call_id=2),
}


def established() -> ClientAssociation:
    return ClientAssociation(ECHO)


def wait_ack() -> ClientAssociation:
    association = established()
    association.begin()
    return association


def wait_alter() -> ClientAssociation:
    line = Line()
    credentials = Credentials("operator", "secret", Mechanism.SPNEGO)
    association = ClientAssociation(ECHO, initiate(credentials, AuthLevel.PRIVACY, "x"))
    (send,) = line.association.receive(association.begin())
    assert isinstance(send, Send)
    (leg,) = association.receive(send.data)
    assert isinstance(leg, Transmit)
    return association


def negotiated() -> ClientAssociation:
    association = wait_ack()
    assert association.receive(encode(ACK)) == [Ready()]
    association.request(2, 0, b"")
    return association


def closed() -> ClientAssociation:
    association = established()
    association.close()
    return association


STATES: dict[ClientState, Callable[[], ClientAssociation]] = {
    ClientState.ESTABLISHED: established,
    ClientState.WAIT_ACK: wait_ack,
    ClientState.WAIT_ALTER: wait_alter,
    ClientState.NEGOTIATED: negotiated,
    ClientState.CLOSED: closed,
}

TAKEN = {
    (ClientState.WAIT_ACK, "bind_ack"): [Ready()],
    (ClientState.NEGOTIATED, "response"): [Returned(2, b"x")],
    (ClientState.NEGOTIATED, "fault"): [Failed(2, 5)],
}


@pytest.mark.parametrize("name", PDUS)
@pytest.mark.parametrize("state", ClientState)
def test_every_state_with_every_pdu(state: ClientState, name: str) -> None:
    association = STATES[state]()
    assert association.state == state
    events = association.receive(encode(PDUS[name]))
    expected = TAKEN.get((state, name))
    if state == ClientState.CLOSED:
        assert events == []
    elif expected is not None:
        assert events == expected
        assert association.state == ClientState.NEGOTIATED
    else:
        (lost,) = events
        assert isinstance(lost, Lost)
        assert association.state == ClientState.CLOSED


@pytest.mark.parametrize("state", ClientState)
def test_calls_need_a_context(state: ClientState) -> None:
    association = STATES[state]()
    if state == ClientState.NEGOTIATED:
        assert len(association.request(3, 0, b"")) == 1
    else:
        with pytest.raises(ProtocolError):
            association.request(3, 0, b"")


@pytest.mark.parametrize(
    ("ack", "error"),
    [
        (replace(ACK, results=()), ProtocolError),
        (replace(ACK, results=(ContextResult(2, 1),)), BindRefusedError),
        (replace(ACK, results=(ContextResult(2, 2),)), BindRefusedError),
        (replace(ACK, results=(ContextResult(0, 0),)), ProtocolError),
        (replace(ACK, max_receive=100), ProtocolError),
    ],
)
def test_answers_to_a_bind_that_are_none(ack: BindAck, error: type[Exception]) -> None:
    (lost,) = wait_ack().receive(encode(ack))
    assert isinstance(lost, Lost)
    assert isinstance(lost.error, error)


def test_what_was_agreed() -> None:
    association = negotiated()
    assert association.is_multiplexed
    assert association.keeps_on_orphan
    association = wait_ack()
    association.receive(encode(replace(ACK, flags=Flags.FIRST | Flags.LAST, results=ACK.results[:1])))
    assert not association.is_multiplexed
    assert not association.keeps_on_orphan


def test_a_server_that_forgets_the_log_on() -> None:
    credentials = Credentials("operator", "secret", Mechanism.NTLM)
    association = ClientAssociation(ECHO, initiate(credentials, AuthLevel.PRIVACY, "x"))
    association.begin()
    (lost,) = association.receive(encode(ACK))
    assert isinstance(lost, Lost)
    assert isinstance(lost.error, SecurityError)


def pair(level: AuthLevel, mechanism: Mechanism = Mechanism.NTLM) -> tuple[Line, ClientAssociation]:
    """Both sides of an association that is ready."""
    line = Line()
    association = ClientAssociation(ECHO, initiate(Credentials("operator", "secret", mechanism), level, "x"))
    waiting = [association.begin()]
    while waiting:
        for action in line.association.receive(waiting.pop(0)):
            assert isinstance(action, Send)
            for event in association.receive(action.data):
                if isinstance(event, Transmit):
                    waiting.append(event.data)
    assert association.state == ClientState.NEGOTIATED
    return line, association


@pytest.mark.parametrize("mechanism", [Mechanism.NTLM, Mechanism.SPNEGO])
@pytest.mark.parametrize("level", [AuthLevel.CONNECT, AuthLevel.INTEGRITY, AuthLevel.PRIVACY])
def test_both_sides_together(level: AuthLevel, mechanism: Mechanism) -> None:
    line, association = pair(level, mechanism)
    stub = bytes(range(256)) * 100
    calls = []
    for call_id in (2, 3, 4):
        for data in association.request(call_id, 0, stub):
            for action in line.association.receive(data):
                assert isinstance(action, Dispatch)
                calls.append(action.call)
    events = []
    for call in reversed(calls):
        for answer in line.association.respond(call, bytes(call.stub)):
            assert isinstance(answer, Send)
            events += association.receive(answer.data)
    assert events == [Returned(call_id, stub) for call_id in (4, 3, 2)]


@pytest.mark.parametrize("level", [AuthLevel.INTEGRITY, AuthLevel.PRIVACY])
def test_a_response_that_was_changed_or_has_no_protection(level: AuthLevel) -> None:
    for change in (True, False):
        line, association = pair(level)
        (data,) = association.request(2, 0, b"x")
        (dispatch,) = line.association.receive(data)
        assert isinstance(dispatch, Dispatch)
        (send,) = line.association.respond(dispatch.call, b"answer")
        assert isinstance(send, Send)
        answer = bytearray(send.data)
        answer[26] ^= 1
        response = bytes(answer) if change else encode(Response(call_id=2, stub=b"forged"))
        (lost,) = association.receive(response)
        assert isinstance(lost, Lost)
        assert isinstance(lost.error, SecurityError)


def test_responses_out_of_order_and_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    (lost,) = negotiated().receive(encode(Response(call_id=2, flags=Flags.LAST, stub=b"x")))
    assert isinstance(lost, Lost)
    association = negotiated()
    assert association.receive(encode(Response(call_id=2, flags=Flags.FIRST, stub=b"x"))) == []
    (lost,) = association.receive(encode(Response(call_id=2, flags=Flags.FIRST, stub=b"x")))
    assert isinstance(lost, Lost)
    monkeypatch.setattr(module, "MAX_RESPONSE", 1_000)
    association = negotiated()
    assert association.receive(encode(Response(call_id=2, flags=Flags.FIRST, stub=bytes(900)))) == []
    (lost,) = association.receive(encode(Response(call_id=2, flags=Flags.NONE, stub=bytes(900))))
    assert isinstance(lost, Lost)
    assert "more than" in str(lost.error)


def test_an_orphaned_call_is_not_heard_of_again() -> None:
    association = negotiated()
    assert isinstance(decode(association.orphan(2)), Orphaned)
    assert association.receive(encode(Response(call_id=2, stub=b"late"))) == []
    assert association.receive(encode(Fault(call_id=2, status=5))) == []
    assert association.state == ClientState.NEGOTIATED
