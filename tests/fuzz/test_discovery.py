"""Whatever arrives, discovery answers or is silent: no crash, no second answer, no growth."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.protocols.discovery.samples import (
    CAPTURES,
    ENTERPRISE,
    OTHER_REPLY,
    REQUEST_ID,
    SITE,
    capture,
    offer,
)

from lanner.protocols.discovery.actions import Discarded
from lanner.protocols.discovery.client import ClientSession, ClientState, Network
from lanner.protocols.discovery.rate_limit import RateLimit, RateLimits
from lanner.protocols.discovery.server import MAX_REPLY_BYTES, Reply, ServerSession, ServerState
from lanner.protocols.discovery.wire import PacketFault, decode, decode_reply, decode_request

EXAMPLES = 500
ENDLESS = RateLimits(1e9, 10**9, 1e9, 10**9)
NETWORK = Network("10.0.0.5", "10.0.0.255")

PACKETS = [capture(name) for name in CAPTURES]
changes = st.lists(
    st.tuples(st.integers(0, 90), st.integers(0, 8), st.binary(max_size=8)), min_size=1, max_size=4
)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    data = draw(st.sampled_from(PACKETS))
    for where, removed, inserted in draw(changes):
        data = data[:where] + inserted + data[where + removed :]
    return data


packets = damaged() | st.binary(max_size=300) | st.sampled_from(PACKETS)


def listening() -> ServerSession:
    session = ServerSession(offer(), RateLimit(ENDLESS))
    session.start()
    session.opened()
    return session


@settings(max_examples=EXAMPLES)
@given(packets)
def test_a_packet_is_a_structure_or_a_fault(packet: bytes) -> None:
    with suppress(PacketFault):
        decoded = decode(packet)
        # Nothing that was read is lost but what the specification has us ignore.
        assert decode(decoded.encode()) == decoded


@settings(max_examples=EXAMPLES)
@given(st.lists(packets, max_size=20))
def test_a_server_answers_requests_of_its_enterprise_alone(received: list[bytes]) -> None:
    session = listening()
    for packet in received:
        answer = session.receive(packet, "10.0.0.1", 0.0)
        if isinstance(answer, Reply):
            assert decode_request(packet).enterprise_id == ENTERPRISE
            assert decode_reply(answer.packet).correlation_id == decode_request(packet).request_id
            assert len(answer.packet) <= MAX_REPLY_BYTES
        else:
            assert answer.reason
        assert session.state is ServerState.LISTENING


@settings(max_examples=EXAMPLES)
@given(st.lists(packets, max_size=20))
def test_a_client_takes_replies_to_its_request_alone(received: list[bytes]) -> None:
    session = ClientSession(ENTERPRISE, SITE, make_request_id=lambda: REQUEST_ID)
    session.get_directory_server_list([NETWORK], 0.0)
    for packet in received:
        before = session.state
        actions = session.receive(packet, NETWORK.address, 1.0)
        if any(isinstance(action, Discarded) for action in actions):
            assert session.state is before
        else:
            assert decode_reply(packet).correlation_id == REQUEST_ID
    session.on_timer(100.0)
    assert session.state is ClientState.IDLE


def test_every_length_and_every_type() -> None:
    session = listening()
    request = capture("4-request")
    for kind in range(256):
        for length in range(300):
            packet = (bytes((0, kind)) + request[2:] + bytes(300))[:length]
            answer = session.receive(packet, "10.0.0.1", 0.0)
            assert isinstance(answer, Reply) == (kind == 1 and 52 <= length < 60 and length > 1)


def test_every_byte_of_a_reply_may_be_anything() -> None:
    packet = OTHER_REPLY.encode()
    for position in range(len(packet)):
        for value in range(256):
            with suppress(PacketFault):
                decode_reply(packet[:position] + bytes((value,)) + packet[position + 1 :])
