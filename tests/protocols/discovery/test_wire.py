"""Section 4's captures both ways, and every field at its limits."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.protocols.discovery.samples import (
    CAPTURES,
    ENTERPRISE,
    LOCAL_REPLY,
    NETWORK,
    OTHER_REPLY,
    OTHER_SITE,
    REQUEST,
    REQUEST_ID,
    SITE,
    capture,
)

from lanner.protocols.discovery.wire import (
    DirectoryServer,
    PacketFault,
    PacketType,
    TopologyClientRequest,
    TopologyPacketHeader,
    TopologyServerReply,
    decode,
    decode_reply,
    decode_request,
)

each_capture = pytest.mark.parametrize("name", CAPTURES)
each_reply = pytest.mark.parametrize("name", [name for name in CAPTURES if "reply" in name])


@each_capture
def test_a_capture_is_read_whole(name: str) -> None:
    assert decode(capture(name)) == CAPTURES[name]


@each_capture
def test_a_capture_is_written_bit_for_bit(name: str) -> None:
    assert CAPTURES[name].encode() == capture(name)


@each_capture
def test_a_capture_that_is_any_number_of_bytes_short_is_a_fault(name: str) -> None:
    packet = capture(name)
    for length in range(len(packet)):
        with pytest.raises(PacketFault, match=r"MS-MQSD 2\.2"):
            decode(packet[:length])


@each_reply
@pytest.mark.parametrize("trailing", [b"\0", b"\0\0", bytes(16), b"x" * 1000])
def test_a_reply_with_trailing_data_is_a_fault(name: str, trailing: bytes) -> None:
    with pytest.raises(PacketFault, match="follow the last field"):
        decode(capture(name) + trailing)


@pytest.mark.parametrize("length", range(1, 8))
def test_a_request_with_less_than_one_ipx_network_has_none(length: int) -> None:
    assert decode(capture("4-request") + b"\xff" * length) == REQUEST


@pytest.mark.parametrize("count", [1, 2, 32])
def test_ipx_networks_are_read_and_written(count: int) -> None:
    request = TopologyClientRequest(ENTERPRISE, REQUEST_ID, SITE, tuple(range(1, count + 1)))
    packet = capture("4-request") + count.to_bytes(4, "little")
    packet += b"".join(number.to_bytes(4, "little") for number in request.ipx_networks)
    assert request.encode() == packet
    assert decode(packet) == request
    # The entry that is cut is the only one, and then there are no IPX fields, or it is missing.
    if count == 1:
        assert decode(packet[:-1]) == REQUEST
    else:
        with pytest.raises(PacketFault):
            decode(packet[:-1])
    with pytest.raises(PacketFault):
        decode(packet + b"\0")


@pytest.mark.parametrize("count", [0, 33, 0xFFFFFFFF])
def test_an_ipx_network_count_outside_1_to_32_is_a_fault(count: int) -> None:
    packet = capture("4-request") + count.to_bytes(4, "little") + bytes(4 * 40)
    with pytest.raises(PacketFault, match="IPXNetworkCount"):
        decode(packet)


def test_more_than_32_ipx_networks_are_not_written() -> None:
    with pytest.raises(PacketFault, match="IPXNetworkCount"):
        TopologyClientRequest(ENTERPRISE, REQUEST_ID, SITE, tuple(range(33))).encode()


@pytest.mark.parametrize("kind", [kind for kind in range(256) if kind not in (1, 2)])
def test_every_other_type_is_a_fault(kind: int) -> None:
    with pytest.raises(PacketFault, match=r"2\.2\.1"):
        decode(bytes((0, kind, 0, 0)) + bytes(48))


def test_a_request_is_no_reply_and_a_reply_is_no_request() -> None:
    with pytest.raises(PacketFault, match="Type is 0x01"):
        decode_reply(capture("4-request"))
    with pytest.raises(PacketFault, match="Type is 0x02"):
        decode_request(capture("4-reply-other-site"))


@each_capture
def test_version_and_reserved_are_written_as_zero_and_ignored(name: str) -> None:
    packet = capture(name)
    assert packet[0] == packet[2] == packet[3] == 0
    assert decode(b"\xff" + packet[1:2] + b"\xff\xff" + packet[4:]) == CAPTURES[name]


def test_a_header_both_ways() -> None:
    assert TopologyPacketHeader(PacketType.REPLY, 7, 0x0102).encode() == bytes((7, 2, 2, 1))


@pytest.mark.parametrize("count", [1, 2, 32])
def test_connected_networks_are_read_and_written(count: int) -> None:
    reply = TopologyServerReply(REQUEST_ID, tuple(UUID(int=number) for number in range(count)))
    assert len(reply.encode()) == 32 + 16 * count
    assert decode(reply.encode()) == reply


@pytest.mark.parametrize("count", [0, 33, 0x7FFFFFFF, 0xFFFFFFFF])
def test_a_connected_network_count_outside_1_to_32_is_a_fault(count: int) -> None:
    packet = capture("4-reply-local-site")
    with pytest.raises(PacketFault, match="ConnectedNetworkCount"):
        decode(packet[:20] + count.to_bytes(4, "little") + packet[24:] + bytes(16 * 40))


@pytest.mark.parametrize("count", [0, 33])
def test_no_such_reply_is_written(count: int) -> None:
    with pytest.raises(PacketFault, match="ConnectedNetworkCount"):
        TopologyServerReply(REQUEST_ID, (NETWORK,) * count).encode()


@pytest.mark.parametrize("mask", [0, 1, 1 << 31])
def test_a_mask_of_ip_or_ipx_is_read(mask: int) -> None:
    reply = TopologyServerReply(REQUEST_ID, (NETWORK,), connected_network_mask=mask)
    assert decode(reply.encode()) == reply


def test_a_mask_with_another_number_of_bits_is_a_fault() -> None:
    with pytest.raises(PacketFault, match="ConnectedNetworkMask"):
        decode(TopologyServerReply(REQUEST_ID, (NETWORK,), connected_network_mask=3).encode())


def _with_array(array: bytes) -> bytes:
    head = capture("4-reply-other-site")[:28]
    return head + len(array).to_bytes(4, "little") + NETWORK.bytes_le + OTHER_SITE.bytes_le + array


def _array(text: str) -> bytes:
    return _with_array(text.encode("utf-16-le"))


@pytest.mark.parametrize(
    ("text", "servers"),
    [
        ("10A\0", [("A", True, False)]),
        ("01A\0", [("A", False, True)]),
        ("00A,11B\0", [("A", False, False), ("B", True, True)]),
        ("10 \u042c-\u2c00\u2c2c\U0001f600\0", [(" \u042c-\u2c00\u2c2c\U0001f600", True, False)]),
    ],
)
def test_a_list_of_servers_both_ways(text: str, servers: list[tuple[str, bool, bool]]) -> None:
    reply = decode_reply(_array(text))
    assert [(each.name, each.supports_ip, each.supports_ipx) for each in reply.servers] == servers
    assert reply.encode() == _array(text)


@pytest.mark.parametrize(
    "text",
    ["\0", "1\0", "10\0", "10A", "A\0", "20A\0", "1xA\0", "10A,\0", ",10A\0", "10A,10\0", "10A\0\0",
     "10A\x0010B\0", "10A,,10B\0", "10A,B\0"],
)  # fmt: skip
def test_a_list_outside_the_grammar_is_a_fault(text: str) -> None:
    with pytest.raises(PacketFault, match="DirectoryServiceServerArray"):
        decode_reply(_array(text))


@pytest.mark.parametrize("array", [b"1", b"1\x000\x00A\x00\x00", b"1\x000\x00\x00\xd8\x00\x00"])
def test_half_characters_are_a_fault(array: bytes) -> None:
    with pytest.raises(PacketFault, match="not Unicode"):
        decode_reply(_with_array(array))


def test_a_size_larger_than_the_packet_is_a_fault() -> None:
    packet = capture("4-reply-other-site")
    for size in (20, 0x7FFFFFFF, 0xFFFFFFFF):
        with pytest.raises(PacketFault, match="DirectoryServiceServerArray needs"):
            decode(packet[:28] + size.to_bytes(4, "little") + packet[32:])


@pytest.mark.parametrize("name", ["", "a,b", "a\0", "\ud800"])
def test_a_name_that_cannot_be_sent_is_not_written(name: str) -> None:
    with pytest.raises(PacketFault):
        TopologyServerReply(REQUEST_ID, (NETWORK,), OTHER_SITE, (DirectoryServer(name),)).encode()


def test_site_and_servers_are_written_together_or_not_at_all() -> None:
    with pytest.raises(PacketFault, match="together"):
        TopologyServerReply(REQUEST_ID, (NETWORK,), OTHER_SITE).encode()
    with pytest.raises(PacketFault, match="together"):
        TopologyServerReply(REQUEST_ID, (NETWORK,), None, (DirectoryServer("A"),)).encode()


def test_who_sent_it() -> None:
    assert LOCAL_REPLY.is_from_our_site
    assert not OTHER_REPLY.is_from_our_site


names = st.text(st.characters(exclude_characters=",\0", exclude_categories=["Cs"]), min_size=1, max_size=20)
servers = st.builds(DirectoryServer, names, st.booleans(), st.booleans())
replies = st.builds(
    lambda correlation, networks, site, listed: TopologyServerReply(
        correlation, tuple(networks), site if listed else None, tuple(listed)
    ),
    st.uuids(),
    st.lists(st.uuids(), min_size=1, max_size=32),
    st.uuids(),
    st.lists(servers, max_size=20),
)
requests = st.builds(
    TopologyClientRequest,
    st.uuids(),
    st.uuids(),
    st.uuids(),
    st.lists(st.integers(0, 2**32 - 1), max_size=32).map(tuple),
)


@given(requests | replies)
def test_what_is_written_is_read(packet: TopologyClientRequest | TopologyServerReply) -> None:
    assert decode(packet.encode()) == packet
