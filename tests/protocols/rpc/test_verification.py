"""Verification trailers: as Samba sends them, and wrong ones."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.protocols.rpc.echo import ECHO, SECOND

from lanner.protocols.rpc.errors import FaultStatus, NdrError, RpcFault
from lanner.protocols.rpc.interface import CallContext
from lanner.protocols.rpc.pdu import NDR20
from lanner.protocols.rpc.verification import check_trailer

SIGNATURE = bytes.fromhex("8ae3137102f43671")
SAMBA = bytes.fromhex(
    "8ae3137102f43671" + "02402800" + "d46b1a0b4b2e3a4a9d3c6d2f0b0a7c12" + "02000100"
    "045d888aeb1cc9119fe808002b104860" + "02000000"
)
"""Captured: the second test interface, version 2.1, and NDR."""

CONTEXT = CallContext(interface=SECOND, call_id=7, opnum=3)


def header(kind: int = 0, call_id: int = 7, opnum: int = 3) -> bytes:
    return struct.pack("<BBH4sIHH", kind, 0, 0, b"\x10\0\0\0", call_id, 0, opnum)


def trailer(*commands: tuple[int, bytes]) -> bytes:
    return SIGNATURE + b"".join(struct.pack("<HH", kind, len(body)) + body for kind, body in commands)


@pytest.mark.parametrize(
    "rest",
    [
        b"",
        b"\0\0\0",
        b"anything at all",
        SAMBA,
        b"\0\0" + SAMBA,
        trailer((0x4003, header())),
        trailer((1, b"\1\0\0\0"), (0x8003, header()), (0x4000 | 99, b"what")),
    ],
)
def test_what_is_taken(rest: bytes) -> None:
    check_trailer(CONTEXT, rest)


@pytest.mark.parametrize(
    "rest",
    [
        trailer((0x4000 | 0x8000 | 99, b"what")),
        trailer((0x4003, header(kind=2))),
        trailer((0x4003, header(call_id=8))),
        trailer((0x4003, header(opnum=4))),
        trailer((0x4002, ECHO.uuid.bytes_le + b"\1\0\0\0" + NDR20.uuid.bytes_le + b"\2\0\0\0")),
        trailer((0x4002, SECOND.uuid.bytes_le + b"\2\0\1\0" + ECHO.uuid.bytes_le + b"\1\0\0\0")),
        trailer((0x4002, b"")),
    ],
)
def test_what_is_denied(rest: bytes) -> None:
    with pytest.raises(RpcFault) as caught:
        check_trailer(CONTEXT, rest)
    assert caught.value.status == FaultStatus.ACCESS_DENIED


@pytest.mark.parametrize(
    "rest",
    [SIGNATURE, SAMBA[:-1], trailer((1, b"\1\0\0\0")), trailer((0x4001, b"\1")), trailer((0x4003, b""))],
)
def test_what_is_no_trailer(rest: bytes) -> None:
    with pytest.raises(NdrError):
        check_trailer(CONTEXT, rest)


@given(st.binary(max_size=100))
def test_any_octets_are_taken_or_refused(rest: bytes) -> None:
    for octets in (rest, SIGNATURE + rest):
        try:
            check_trailer(CONTEXT, octets)
        except (NdrError, RpcFault):
            continue
