"""RPC with impacket as the client."""

from __future__ import annotations

import asyncio
import struct
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from tests.protocols.rpc.echo import (
    ECHO,
    GUEST,
    GUEST_PASSWORD,
    OP_ECHO,
    OP_FAULT,
    OP_MANY,
    OP_NDR,
    OP_WHO,
    PASSWORD,
    SECOND,
    USER,
    serving,
)

epm = pytest.importorskip("impacket.dcerpc.v5.epm", reason="impacket is not installed")
rpcrt = pytest.importorskip("impacket.dcerpc.v5.rpcrt")
transport = pytest.importorskip("impacket.dcerpc.v5.transport")
uuidtup_to_bin = pytest.importorskip("impacket.uuid").uuidtup_to_bin

pytestmark = pytest.mark.interop

LEVELS = {
    2: rpcrt.RPC_C_AUTHN_LEVEL_CONNECT,
    5: rpcrt.RPC_C_AUTHN_LEVEL_PKT_INTEGRITY,
    6: rpcrt.RPC_C_AUTHN_LEVEL_PKT_PRIVACY,
}


def syntax(interface: Any) -> bytes:
    made: bytes = uuidtup_to_bin((str(interface.uuid), f"{interface.major}.{interface.minor}"))
    return made


def connect(port: int, level: int | None, user: str = USER, password: str = PASSWORD) -> Any:
    rpc = transport.DCERPCTransportFactory(f"ncacn_ip_tcp:127.0.0.1[{port}]")
    if level is not None:
        rpc.set_credentials(user, password, "")
    dce = rpc.get_dce_rpc()
    if level is not None:
        dce.set_auth_type(rpcrt.RPC_C_AUTHN_WINNT)
        dce.set_auth_level(LEVELS[level])
    dce.connect()
    return dce


def call(dce: Any, opnum: int, stub: bytes, uuid: bytes | None = None) -> bytes:
    dce.call(opnum, stub, uuid)
    answer: bytes = dce.recv()
    return answer


async def test_ept_map(tmp_path: Path) -> None:
    async with serving(tmp_path) as endpoint:
        assert endpoint.mapper is not None
        mapper = endpoint.mapper.port

        def ask() -> tuple[str, list[Any]]:
            dce = connect(mapper, None)
            found = epm.hept_map("127.0.0.1", syntax(ECHO), protocol="ncacn_ip_tcp", dce=dce)
            dce.disconnect()
            dce = connect(mapper, None)
            entries = epm.hept_lookup("127.0.0.1", dce=dce)
            dce.disconnect()
            return found, entries

        binding, entries = await asyncio.to_thread(ask)
    assert binding == f"ncacn_ip_tcp:127.0.0.1[{endpoint.server.port}]"
    assert [entry["annotation"] for entry in entries] == [b"echo\0", b"second\0"]


async def test_ept_map_of_an_unknown_interface(tmp_path: Path) -> None:
    async with serving(tmp_path) as endpoint:
        assert endpoint.mapper is not None
        mapper = endpoint.mapper.port

        def ask() -> None:
            dce = connect(mapper, None)
            other = uuidtup_to_bin(("11111111-2222-3333-4444-555555555555", "1.0"))
            epm.hept_map("127.0.0.1", other, protocol="ncacn_ip_tcp", dce=dce)

        with pytest.raises(rpcrt.DCERPCException, match=r"0x16c9a0d6|not_registered|endpoint"):
            await asyncio.to_thread(ask)


@pytest.mark.parametrize("level", sorted(LEVELS))
async def test_ntlm(tmp_path: Path, level: int) -> None:
    async with serving(tmp_path) as endpoint:

        def talk() -> list[bytes]:
            dce = connect(endpoint.server.port, level)
            dce.bind(syntax(ECHO))
            answers = [call(dce, OP_WHO, b"")]
            for size in (0, 1, 15, 16, 17, 4_000, 5_800, 20_000, 300_000):
                sent = bytes(index % 256 for index in range(size))
                assert call(dce, OP_ECHO, sent) == sent
                assert len(call(dce, OP_MANY, struct.pack("<I", size))) == size
            dce.disconnect()
            return answers

        (who,) = await asyncio.to_thread(talk)
    assert who.decode() == f"{USER}|{level}|ntlm|None"


@pytest.mark.parametrize("level", [2, 5, 6])
async def test_small_fragments_of_the_client(tmp_path: Path, level: int) -> None:
    async with serving(tmp_path) as endpoint:

        def talk() -> None:
            dce = connect(endpoint.server.port, level)
            dce.set_max_fragment_size(128)
            dce.bind(syntax(ECHO))
            sent = bytes(range(256)) * 20
            for _ in range(3):
                assert call(dce, OP_ECHO, sent) == sent
            dce.disconnect()

        await asyncio.to_thread(talk)


async def test_object_uuid_and_faults(tmp_path: Path) -> None:
    uuid = UUID("12345678-1234-5678-9abc-def012345678")
    async with serving(tmp_path) as endpoint:

        def talk() -> tuple[bytes, list[str]]:
            dce = connect(endpoint.server.port, 6)
            dce.bind(syntax(ECHO))
            who = call(dce, OP_WHO, b"", uuid.bytes_le)
            codes = []
            calls = ((OP_FAULT, struct.pack("<I", 0x6E4)), (OP_NDR, b"\1\0"), (99, b""), (99, bytes(9_000)))
            for opnum, stub in calls:
                with pytest.raises(rpcrt.DCERPCException) as caught:
                    call(dce, opnum, stub)
                codes.append(str(caught.value))
            assert call(dce, OP_ECHO, b"alive") == b"alive"
            dce.disconnect()
            return who, codes

        who, codes = await asyncio.to_thread(talk)
    assert who.decode().endswith(str(uuid))
    assert "rpc_s_cannot_support" in codes[0]
    assert "rpc_x_bad_stub_data" in codes[1]
    assert codes[2] == codes[3] == "nca_s_op_rng_error"


async def test_several_contexts(tmp_path: Path) -> None:
    async with serving(tmp_path) as endpoint:

        def talk() -> None:
            dce = connect(endpoint.server.port, 6)
            dce.bind(syntax(ECHO))
            other = dce.alter_ctx(syntax(SECOND))
            assert call(other, 0, b"second") == b"second"
            dce.disconnect()

        await asyncio.to_thread(talk)


@pytest.mark.parametrize("level", [2, 5, 6])
async def test_a_wrong_password(tmp_path: Path, level: int) -> None:
    async with serving(tmp_path) as endpoint:

        def talk() -> None:
            dce = connect(endpoint.server.port, level, password="wrong")
            dce.bind(syntax(ECHO))
            call(dce, OP_ECHO, b"x")

        with pytest.raises(rpcrt.DCERPCException, match=r"access_denied|ACCESS_DENIED"):
            await asyncio.to_thread(talk)
        assert endpoint.logons.failures == 1


@pytest.mark.parametrize("user", [None, GUEST])
async def test_who_is_no_administrator(tmp_path: Path, user: str | None) -> None:
    async with serving(tmp_path) as endpoint:

        def talk() -> None:
            dce = connect(endpoint.server.port, 6 if user else None, user or "", GUEST_PASSWORD)
            dce.bind(syntax(ECHO))
            call(dce, OP_ECHO, b"x")

        with pytest.raises(rpcrt.DCERPCException, match=r"access_denied|ACCESS_DENIED"):
            await asyncio.to_thread(talk)


async def test_an_unknown_interface_is_refused(tmp_path: Path) -> None:
    async with serving(tmp_path) as endpoint:

        def talk() -> None:
            dce = connect(endpoint.server.port, None)
            dce.bind(uuidtup_to_bin(("11111111-2222-3333-4444-555555555555", "1.0")))

        with pytest.raises(rpcrt.DCERPCException, match="abstract_syntax_not_supported"):
            await asyncio.to_thread(talk)
