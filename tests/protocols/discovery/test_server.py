"""The server: every pair of state and input, and every rule of 3.2.5.1."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

import pytest
from tests.protocols.discovery.samples import (
    ENTERPRISE,
    LOCAL_REPLY,
    NETWORK,
    OTHER_REPLY,
    OTHER_SITE,
    REQUEST,
    SITE,
    capture,
    offer,
)

from lanner.model.errors import InvalidPropertyError
from lanner.protocols.discovery.actions import Discarded
from lanner.protocols.discovery.rate_limit import RateLimit, RateLimits
from lanner.protocols.discovery.server import (
    MAX_REPLY_BYTES,
    REOPEN_SECONDS,
    Offer,
    OpenSocket,
    Reply,
    ServerSession,
    ServerState,
    Terminated,
)
from lanner.protocols.discovery.wire import TopologyServerReply, decode_reply

CLIENT = "10.0.1.5"
NOW = 1000.0


def session_in(state: ServerState, offered: Offer | None = None) -> ServerSession:
    session = ServerSession(offered or offer(), RateLimit())
    if state is not ServerState.CLOSED:
        session.start()
    if state is ServerState.LISTENING:
        session.opened()
    assert session.state is state
    return session


def ask(session: ServerSession, packet: bytes, *, over_ipx: bool = False) -> TopologyServerReply:
    answer = session.receive(packet, CLIENT, NOW, over_ipx=over_ipx)
    assert isinstance(answer, Reply)
    return decode_reply(answer.packet)


def packet(session: ServerSession) -> type:
    return type(session.receive(capture("4-request"), CLIENT, NOW))


def bad_packet(session: ServerSession) -> type:
    return type(session.receive(b"", CLIENT, NOW))


def send_failed(session: ServerSession) -> object:
    return session.send_failed(NOW)


def opened(session: ServerSession) -> None:
    session.opened()


def stop(session: ServerSession) -> None:
    session.stop()


S = ServerState
TABLE: dict[tuple[ServerState, Callable[[ServerSession], object]], tuple[object, ServerState]] = {
    (S.CLOSED, ServerSession.start): (OpenSocket(), S.OPENING),
    (S.CLOSED, opened): (None, S.CLOSED),
    (S.CLOSED, ServerSession.open_failed): (None, S.CLOSED),
    (S.CLOSED, packet): (Discarded, S.CLOSED),
    (S.CLOSED, bad_packet): (Discarded, S.CLOSED),
    (S.CLOSED, send_failed): (None, S.CLOSED),
    (S.CLOSED, stop): (None, S.CLOSED),
    (S.OPENING, ServerSession.start): (None, S.OPENING),
    (S.OPENING, opened): (None, S.LISTENING),
    (S.OPENING, ServerSession.open_failed): (Terminated(), S.CLOSED),
    (S.OPENING, packet): (Discarded, S.OPENING),
    (S.OPENING, bad_packet): (Discarded, S.OPENING),
    (S.OPENING, send_failed): (None, S.OPENING),
    (S.OPENING, stop): (None, S.CLOSED),
    (S.LISTENING, ServerSession.start): (None, S.LISTENING),
    (S.LISTENING, opened): (None, S.LISTENING),
    (S.LISTENING, ServerSession.open_failed): (None, S.LISTENING),
    (S.LISTENING, packet): (Reply, S.LISTENING),
    (S.LISTENING, bad_packet): (Discarded, S.LISTENING),
    (S.LISTENING, send_failed): (OpenSocket(), S.OPENING),
    (S.LISTENING, stop): (None, S.CLOSED),
}


@pytest.mark.parametrize(("state", "event"), TABLE, ids=lambda value: getattr(value, "__name__", str(value)))
def test_every_state_with_every_input(state: ServerState, event: Callable[[ServerSession], object]) -> None:
    session = session_in(state)
    result, after = TABLE[state, event]
    assert event(session) == result
    assert session.state is after


def test_the_table_is_whole() -> None:
    inputs = {event for _, event in TABLE}
    assert set(TABLE) == {(state, event) for state in S for event in inputs}


def test_the_socket_is_not_reopened_twice_in_a_moment() -> None:
    session = session_in(S.LISTENING)
    assert session.send_failed(NOW) == OpenSocket()
    session.opened()
    assert session.send_failed(NOW + REOPEN_SECONDS / 2) is None
    assert session.state is S.LISTENING
    assert session.send_failed(NOW + REOPEN_SECONDS) == OpenSocket()


# Section 4 and 3.2.5.1.


def test_the_captured_request_gets_the_captured_reply_of_its_own_site() -> None:
    session = session_in(S.LISTENING, offer(site=SITE))
    answer = session.receive(capture("4-request"), CLIENT, NOW)
    assert answer == Reply(capture("4-reply-local-site"))


def test_the_captured_request_gets_the_captured_reply_of_another_site() -> None:
    answer = session_in(S.LISTENING).receive(capture("4-request"), CLIENT, NOW)
    assert answer == Reply(capture("4-reply-other-site"))


@pytest.mark.parametrize("length", range(1, 8))
def test_incomplete_ipx_fields_are_ignored(length: int) -> None:
    assert ask(session_in(S.LISTENING), capture("4-request") + b"\xff" * length) == OTHER_REPLY


def test_ipx_fields_in_a_packet_over_ip_change_nothing() -> None:
    assert ask(session_in(S.LISTENING), replace(REQUEST, ipx_networks=(1, 2, 3)).encode()) == OTHER_REPLY


@pytest.mark.parametrize("count", [1, 5, 32])
def test_all_connected_networks_are_listed_and_the_mask_follows_the_transport(count: int) -> None:
    networks = tuple(UUID(int=number + 1) for number in range(count))
    session = session_in(S.LISTENING, Offer(ENTERPRISE, (SITE,), networks, ("A",)))
    over_ip = ask(session, REQUEST.encode())
    assert over_ip.connected_networks == networks
    assert over_ip.connected_network_mask == 0
    over_ipx = ask(session, REQUEST.encode(), over_ipx=True)
    assert over_ipx.connected_networks == networks
    assert over_ipx.connected_network_mask.bit_count() == count


def test_a_server_of_several_sites_is_of_the_askers_own_or_of_its_first() -> None:
    session = session_in(S.LISTENING, Offer(ENTERPRISE, (OTHER_SITE, SITE), (NETWORK,), ("A",)))
    assert ask(session, REQUEST.encode()) == LOCAL_REPLY
    elsewhere = ask(session, replace(REQUEST, site_id=UUID(int=0)).encode())
    assert elsewhere.responding_site_id == OTHER_SITE


def test_every_request_gets_its_own_correlation_and_its_own_kind_of_reply() -> None:
    session = session_in(S.LISTENING)
    for number in range(4):
        asked = replace(REQUEST, request_id=UUID(int=number))
        assert ask(session, asked.encode()) == replace(OTHER_REPLY, correlation_id=UUID(int=number))
        local = ask(session, replace(asked, site_id=OTHER_SITE).encode(), over_ipx=number % 2 == 1)
        assert local.is_from_our_site
        assert (local.correlation_id, local.connected_network_mask) == (UUID(int=number), number % 2)
    session.change(offer("NEW"))
    assert ask(session, REQUEST.encode()).servers[0].name == "NEW"


def test_all_directory_servers_are_listed_in_order() -> None:
    session = session_in(S.LISTENING, offer("C", "A", "B"))
    assert [server.name for server in ask(session, REQUEST.encode()).servers] == ["C", "A", "B"]


def test_a_reply_fits_one_frame() -> None:
    names = tuple(f"SERVER-{number:08}" for number in range(1000))
    session = session_in(S.LISTENING, offer(*names))
    answer = session.receive(REQUEST.encode(), CLIENT, NOW)
    assert isinstance(answer, Reply)
    assert MAX_REPLY_BYTES - 36 < len(answer.packet) <= MAX_REPLY_BYTES
    listed = tuple(server.name for server in decode_reply(answer.packet).servers)
    assert listed == names[: len(listed)] == session.offered_servers


# What the specification does not say.


def test_another_enterprise_is_not_answered() -> None:
    stranger = replace(REQUEST, enterprise_id=UUID(int=1)).encode()
    assert session_in(S.LISTENING).receive(stranger, CLIENT, NOW) == Discarded("it is of another enterprise")


def test_a_stranger_does_not_use_up_the_share_of_an_address() -> None:
    session = session_in(S.LISTENING)
    for _ in range(100):
        session.receive(replace(REQUEST, enterprise_id=UUID(int=1)).encode(), CLIENT, NOW)
        session.receive(b"\0\1", CLIENT, NOW)
    assert ask(session, REQUEST.encode()) == OTHER_REPLY


def test_a_flood_from_one_source_gets_its_limit_and_others_are_answered() -> None:
    session = ServerSession(offer(), RateLimit(RateLimits(), key=b"fixed"))
    session.start()
    session.opened()
    replies = 0
    for number in range(10_000):
        at = NOW + number / 1000
        replies += isinstance(session.receive(REQUEST.encode(), "10.0.0.1", at), Reply)
        if number % 1000 == 0:
            other = session.receive(REQUEST.encode(), f"10.0.1.{number // 1000}", at)
            assert isinstance(other, Reply)
    limits = RateLimits()
    assert replies <= limits.burst + limits.per_source * 10
    assert replies >= limits.burst


def test_replies_are_not_answered() -> None:
    for name in ("4-reply-local-site", "4-reply-other-site"):
        assert isinstance(session_in(S.LISTENING).receive(capture(name), CLIENT, NOW), Discarded)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"connected_networks": ()}, "1 to 32 connected networks"),
        ({"connected_networks": (NETWORK,) * 33}, "1 to 32 connected networks"),
        ({"site_ids": ()}, "no site"),
        ({"directory_servers": ()}, "own name"),
        ({"directory_servers": ("A", "B,C")}, "B,C"),
        ({"directory_servers": ("A" * 1000,)}, "too long"),
    ],
)
def test_what_cannot_be_said_is_not_offered(change: dict[str, tuple[object, ...]], word: str) -> None:
    with pytest.raises(InvalidPropertyError, match=word):
        replace(offer(), **change)  # type: ignore[arg-type]
