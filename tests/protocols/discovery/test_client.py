"""The client: every pair of state and input, each case of 3.1.5.2 and 3.1.6.1, and lossy networks."""

from __future__ import annotations

import random
from collections.abc import Callable
from uuid import UUID

import pytest
from tests.protocols.discovery.samples import ENTERPRISE, LOCAL_REPLY, OTHER_REPLY, REQUEST_ID, SITE, offer

from lanner.protocols.discovery.actions import Discarded
from lanner.protocols.discovery.client import (
    WAIT_FOR_RESPONSE,
    Action,
    Broadcast,
    ClientSession,
    ClientState,
    Completed,
    Network,
    PopulateConnectedNetworkIdentifierList,
    PopulateDirectoryServerList,
)
from lanner.protocols.discovery.rate_limit import RateLimit
from lanner.protocols.discovery.server import Reply, ServerSession
from lanner.protocols.discovery.wire import (
    DirectoryServer,
    TopologyClientRequest,
    TopologyServerReply,
    decode_request,
)

ONE = Network("10.0.1.5", "10.0.1.255")
TWO = Network("10.0.2.5", "10.0.2.255")
DIALLED = Network("10.0.9.5", "10.0.9.1", is_remote_access=True)
NOW = 1000.0
LATER = NOW + 5
LOCAL = LOCAL_REPLY.encode()
OTHER = OTHER_REPLY.encode()
SECOND_OTHER = TopologyServerReply(
    REQUEST_ID, (UUID(int=7),), UUID(int=8), (DirectoryServer("second"),)
).encode()


def new_session() -> ClientSession:
    return ClientSession(ENTERPRISE, SITE, make_request_id=lambda: REQUEST_ID)


def session_in(state: ClientState) -> ClientSession:
    session = new_session()
    if state is ClientState.IDLE:
        return session
    networks = [ONE, TWO] if state in (ClientState.ASKING, ClientState.HOLDING) else [TWO]
    session.get_directory_server_list(networks, NOW)
    if state in (ClientState.HOLDING, ClientState.HOLDING_LAST):
        session.receive(OTHER, networks[0].address, NOW)
    assert session.state is state
    return session


def here(session: ClientSession) -> str:
    index = session.current_network_index
    return session.network_address_list[index - 1].address if index else ONE.address


def get(session: ClientSession) -> list[Action]:
    return session.get_directory_server_list([ONE, TWO], LATER)


def local(session: ClientSession) -> list[Action]:
    return session.receive(LOCAL, here(session), LATER)


def other(session: ClientSession) -> list[Action]:
    return session.receive(SECOND_OTHER, here(session), LATER)


def timer(session: ClientSession) -> list[Action]:
    return session.on_timer(LATER + WAIT_FOR_RESPONSE)


def failure(session: ClientSession) -> list[Action]:
    return session.network_failed(LATER)


def elsewhere(session: ClientSession) -> list[Action]:
    return session.receive(LOCAL, "10.0.3.5", LATER)


def malformed(session: ClientSession) -> list[Action]:
    return session.receive(LOCAL[:-1], here(session), LATER)


def request(session: ClientSession) -> list[Action]:
    packet = TopologyClientRequest(ENTERPRISE, REQUEST_ID, SITE).encode()
    return session.receive(packet, here(session), LATER)


def uncorrelated(session: ClientSession) -> list[Action]:
    reply = TopologyServerReply(UUID(int=1), (UUID(int=2),))
    return session.receive(reply.encode(), here(session), LATER)


def shown(actions: list[Action]) -> list[str]:
    """What actions are, in the words of the table."""
    return [f"ask {action.network.address}" if isinstance(action, Broadcast) else
            f"servers {' '.join(action.names)}" if isinstance(action, PopulateDirectoryServerList) else
            "networks" if isinstance(action, PopulateConnectedNetworkIdentifierList) else
            ("done" if action.succeeded else "failed") if isinstance(action, Completed) else
            "discard" for action in actions]  # fmt: skip


S = ClientState
NEXT = ["ask 10.0.2.5"]
HELD = ["servers nt4pec", "networks", "done"]
TABLE: dict[tuple[ClientState, Callable[[ClientSession], list[Action]]], tuple[list[str], ClientState]] = {
    (S.IDLE, get): (["ask 10.0.1.5"], S.ASKING),
    (S.IDLE, local): (["discard"], S.IDLE),
    (S.IDLE, other): (["discard"], S.IDLE),
    (S.IDLE, timer): ([], S.IDLE),
    (S.IDLE, failure): ([], S.IDLE),
    (S.ASKING, get): ([], S.ASKING),
    (S.ASKING, local): (NEXT, S.ASKING_LAST),
    (S.ASKING, other): ([], S.HOLDING),
    (S.ASKING, timer): (NEXT, S.ASKING_LAST),
    (S.ASKING, failure): (NEXT, S.ASKING_LAST),
    (S.HOLDING, get): ([], S.HOLDING),
    (S.HOLDING, local): (NEXT, S.ASKING_LAST),
    (S.HOLDING, other): (NEXT, S.ASKING_LAST),
    (S.HOLDING, timer): (NEXT, S.ASKING_LAST),
    (S.HOLDING, failure): (NEXT, S.ASKING_LAST),
    (S.ASKING_LAST, get): ([], S.ASKING_LAST),
    (S.ASKING_LAST, local): (["networks", "done"], S.IDLE),
    (S.ASKING_LAST, other): ([], S.HOLDING_LAST),
    (S.ASKING_LAST, timer): (["failed"], S.IDLE),
    (S.ASKING_LAST, failure): (["failed"], S.IDLE),
    (S.HOLDING_LAST, get): ([], S.HOLDING_LAST),
    (S.HOLDING_LAST, local): (HELD, S.IDLE),
    (S.HOLDING_LAST, other): (HELD, S.IDLE),
    (S.HOLDING_LAST, timer): (HELD, S.IDLE),
    (S.HOLDING_LAST, failure): (HELD, S.IDLE),
    **{(state, packet): (["discard"], state)
       for state in S for packet in (elsewhere, malformed, request, uncorrelated)},
}  # fmt: skip
INPUTS = (get, local, other, timer, failure, elsewhere, malformed, request, uncorrelated)


@pytest.mark.parametrize("event", INPUTS, ids=lambda event: event.__name__)
@pytest.mark.parametrize("state", S)
def test_every_state_with_every_input(
    state: ClientState, event: Callable[[ClientSession], list[Action]]
) -> None:
    session = session_in(state)
    before = session.timer
    actions, after = TABLE[state, event]
    assert shown(event(session)) == actions
    assert session.state is after
    if after is S.IDLE:
        assert session.timer is None
    elif actions == ["discard"] or (event is get and state is not S.IDLE):
        assert session.timer == before
    else:
        assert session.timer == (LATER if event is not timer else LATER + 15) + WAIT_FOR_RESPONSE


@pytest.mark.parametrize("state", S)
def test_stopping_ends_everything(state: ClientState) -> None:
    session = session_in(state)
    session.stop()
    assert session.state is S.IDLE
    assert session.timer is None


# 3.1.3 and 3.1.4.1.


def test_in_the_beginning_no_network_was_successful() -> None:
    assert new_session().valid_last_successful_network_address is False


def test_asking_sets_the_elements_and_broadcasts_a_request() -> None:
    session = new_session()
    [action] = session.get_directory_server_list([ONE, TWO], NOW)
    assert isinstance(action, Broadcast)
    assert action.network == ONE
    assert decode_request(action.packet) == TopologyClientRequest(ENTERPRISE, REQUEST_ID, SITE)
    assert session.request_id == REQUEST_ID
    assert session.network_address_list == (ONE, TWO)
    assert session.number_of_network_addresses == 2
    assert session.current_network_index == 1
    assert session.topology_server_reply_received is False
    assert session.last_topology_server_reply is None
    assert session.timer == NOW + 15


def test_each_event_has_a_new_request_identifier() -> None:
    session = ClientSession(ENTERPRISE, SITE)
    seen = set()
    for _ in range(3):
        session.get_directory_server_list([ONE], NOW)
        seen.add(session.request_id)
        session.on_timer(NOW + 15)
    assert len(seen) == 3


def test_without_a_network_it_fails() -> None:
    session = new_session()
    assert shown(session.get_directory_server_list([], NOW)) == ["failed"]
    assert session.state is S.IDLE


def answered_session() -> ClientSession:
    session = session_in(S.ASKING_LAST)
    session.receive(LOCAL, TWO.address, NOW)
    assert session.valid_last_successful_network_address
    assert session.last_successful_network_address == TWO.address
    return session


def test_after_a_success_nothing_is_sent() -> None:
    session = answered_session()
    assert shown(session.get_directory_server_list([ONE, TWO], LATER)) == ["done"]
    assert session.state is S.IDLE


def test_with_a_dialled_line_it_is_asked_again() -> None:
    session = answered_session()
    assert shown(session.get_directory_server_list([TWO, DIALLED], LATER)) == ["ask 10.0.2.5"]


def test_when_the_network_that_answered_is_gone_it_is_asked_again() -> None:
    session = answered_session()
    assert shown(session.get_directory_server_list([ONE], LATER)) == ["ask 10.0.1.5"]


# 3.1.5.2, what is kept.


def test_a_local_reply_with_networks_to_come_is_noted_and_the_next_is_asked() -> None:
    session = session_in(S.ASKING)
    local(session)
    assert session.topology_server_reply_received
    assert session.last_successful_network_address == ONE.address
    assert session.valid_last_successful_network_address
    assert session.current_network_index == 2
    assert session.last_topology_server_reply is None  # emptied by 3.1.5.1


def test_the_first_list_of_another_site_is_held_and_the_timer_starts_again() -> None:
    session = session_in(S.ASKING_LAST)
    assert session.receive(OTHER, TWO.address, NOW + 14) == []
    assert session.last_topology_server_reply == OTHER_REPLY
    assert session.topology_server_reply_received
    assert session.last_successful_network_address == TWO.address
    assert session.on_timer(NOW + 15) == []
    assert shown(session.on_timer(NOW + 29)) == HELD


def test_the_list_that_was_held_populates_and_not_the_one_that_ended_the_waiting() -> None:
    session = session_in(S.HOLDING_LAST)
    actions = other(session)
    assert PopulateDirectoryServerList(("nt4pec",)) in actions
    assert PopulateConnectedNetworkIdentifierList(OTHER_REPLY.connected_networks) in actions


def test_a_local_reply_alone_populates_the_networks() -> None:
    session = session_in(S.ASKING_LAST)
    assert PopulateConnectedNetworkIdentifierList(LOCAL_REPLY.connected_networks) in local(session)


def test_a_reply_of_the_first_network_on_the_second_is_discarded() -> None:
    session = session_in(S.ASKING)
    timer(session)
    assert shown(session.receive(LOCAL, ONE.address, LATER)) == ["discard"]
    assert session.state is S.ASKING_LAST


# 3.1.6.1.


def test_nothing_happens_before_the_timer_expires() -> None:
    session = session_in(S.ASKING)
    assert session.on_timer(NOW + 14.999) == []
    assert shown(session.on_timer(NOW + 15)) == NEXT


def test_no_answer_at_all_is_a_failure_and_forgets_the_last_success() -> None:
    session = answered_session()
    session.get_directory_server_list([DIALLED, TWO], NOW)
    session.on_timer(NOW + 15)
    [completed] = session.on_timer(NOW + 30)
    assert completed == Completed(False, "no answer on 2 networks")
    assert session.valid_last_successful_network_address is False


def test_a_list_of_the_first_network_outlives_the_silence_of_the_second() -> None:
    session = session_in(S.HOLDING)
    timer(session)
    assert shown(session.on_timer(NOW + 100)) == HELD


def test_a_local_reply_of_the_first_network_outlives_the_silence_of_the_second() -> None:
    session = session_in(S.ASKING)
    local(session)
    assert shown(session.on_timer(NOW + 100)) == ["networks", "done"]


# 3.1.7.1.


def test_the_names_are_listed_without_their_flags_and_in_order() -> None:
    session = session_in(S.ASKING_LAST)
    named = tuple(
        DirectoryServer(name, ip, ipx) for name, ip, ipx in [("B", True, False), ("A", False, True)]
    )
    session.receive(
        TopologyServerReply(REQUEST_ID, (UUID(int=1),), UUID(int=2), named).encode(), TWO.address, NOW
    )
    assert PopulateDirectoryServerList(("B", "A")) in timer(session)


# A network in memory that loses, repeats and delays.


@pytest.mark.parametrize("seed", range(200))
def test_on_a_bad_network_a_client_ends_and_succeeds_if_it_heard_anything(seed: int) -> None:
    chance = random.Random(seed)
    networks = [Network(f"10.0.{number}.5", f"10.0.{number}.255") for number in range(chance.randint(1, 4))]
    servers = {network.address: _servers(chance) for network in networks}
    session, now, arriving = ClientSession(ENTERPRISE, SITE), 0.0, list[tuple[float, str, bytes]]()
    heard, completed = 0, None
    actions = session.get_directory_server_list(networks, now)
    while completed is None:
        for action in actions:
            if isinstance(action, Broadcast):
                arriving += _answers(action, servers[action.network.address], now, chance)
            elif isinstance(action, Completed):
                completed = action
        if completed is None:
            assert session.timer is not None
            arriving.sort()
            if arriving and arriving[0][0] < session.timer:
                now, address, packet = arriving.pop(0)
                actions = session.receive(packet, address, now)
                heard += not any(isinstance(action, Discarded) for action in actions)
            else:
                now = session.timer
                actions = session.on_timer(now)
    assert completed.succeeded == (heard > 0)
    # Each network is asked once, and waited for twice at most.
    assert now <= len(networks) * 2 * WAIT_FOR_RESPONSE


def _servers(chance: random.Random) -> list[ServerSession]:
    offers = [offer("L", site=SITE), offer("X", "Y"), offer("Z", site=UUID(int=5))]
    sessions = [ServerSession(each, RateLimit()) for each in chance.sample(offers, chance.randint(0, 3))]
    for session in sessions:
        session.start()
        session.opened()
    return sessions


def _answers(
    action: Broadcast, servers: list[ServerSession], now: float, chance: random.Random
) -> list[tuple[float, str, bytes]]:
    answers = []
    for server in servers:
        for _ in range(chance.choice((0, 1, 1, 2))):
            answer = server.receive(action.packet, action.network.address, now)
            if isinstance(answer, Reply) and chance.random() < 0.7:
                answers.append((now + chance.uniform(0, 25), action.network.address, answer.packet))
    return answers
