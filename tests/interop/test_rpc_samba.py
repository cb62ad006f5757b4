"""RPC with Samba's Python bindings as the client, and with tshark looking on."""

from __future__ import annotations

import asyncio
import json
import struct
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.interop.capture import capturing
from tests.protocols.rpc.echo import (
    ECHO,
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

from lanner.protocols.rpc.client import RpcClient
from lanner.protocols.rpc.credentials import Credentials, Mechanism
from lanner.protocols.rpc.interface import AuthLevel
from lanner.protocols.rpc.ndr import NdrReader, NdrWriter

pytestmark = pytest.mark.interop

PYTHON = "/usr/bin/python3"
SCRIPT = Path(__file__).parent / "rpc_samba_client.py"
LEVELS = {"connect": 2, "packet": 5, "sign": 5, "seal": 6}
TRAILER = bytes.fromhex("8ae3137102f43671")
"""How a verification trailer begins (MS-RPCE 2.2.2.13.1); Samba sends one with a context's first call."""


@cache
def has_samba() -> bool:
    command = [PYTHON, "-c", "import samba.dcerpc.mgmt"]
    return Path(PYTHON).exists() and subprocess.run(command, capture_output=True).returncode == 0


@pytest.fixture(autouse=True)
def _needs_samba() -> None:
    if not has_samba():
        pytest.skip("python3-samba is not installed")


async def samba(**job: Any) -> dict[str, Any]:
    # -P: the directory of the script has modules of its own.
    process = await asyncio.create_subprocess_exec(
        PYTHON,
        "-P",
        str(SCRIPT),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(json.dumps(job).encode()), 60)
    assert out, err.decode()
    answer: dict[str, Any] = json.loads(out)
    return answer


def interfaces() -> list[tuple[str, int]]:
    return [(str(each.uuid), each.major | each.minor << 16) for each in (ECHO, SECOND)]


def plain(answer: str) -> bytes:
    """An echo without the trailer that was sent with it."""
    return bytes.fromhex(answer).partition(TRAILER)[0].rstrip(b"\0")


@pytest.mark.parametrize("order", ["", ",bigendian"])
@pytest.mark.parametrize("mechanism", ["ntlm", "spnego"])
@pytest.mark.parametrize("level", LEVELS)
async def test_log_on_and_calls(tmp_path: Path, level: str, mechanism: str, order: str) -> None:
    number = ">I" if order else "<I"
    text = NdrWriter(big_endian=bool(order))
    text.wide_string("abc")
    big = bytes(index % 255 + 1 for index in range(100_000))
    calls = [
        (0, OP_WHO, ""),
        (0, OP_ECHO, b"first".hex()),
        (1, 0, b"second".hex()),
        (0, OP_FAULT, struct.pack(number, 0x6E4).hex()),
        (0, 99, ""),
        (0, OP_MANY, struct.pack(number, 50_000).hex()),
        (0, OP_ECHO, big.hex()),
        (0, OP_NDR, text.getvalue().hex()),
        (0, OP_NDR, "0100"),
    ]
    async with serving(tmp_path) as endpoint:
        answer = await samba(
            user=USER,
            password=PASSWORD,
            port=endpoint.server.port,
            options=f",{level},{mechanism}{order}",
            mgmt=True,
            interfaces=interfaces(),
            calls=calls,
        )
    assert answer["interfaces"] == [str(ECHO.uuid), str(SECOND.uuid)]
    assert answer["listening"] == [0, 1]
    answers = answer["answers"]
    assert bytes.fromhex(answers[0]).decode() == f"{USER}|{LEVELS[level]}|ntlm|None"
    assert plain(answers[1]) == b"first"
    assert plain(answers[2]) == b"second"
    assert answers[3:5] == ["c00006e4", "c002002e"]
    assert len(answers[5]) == 100_000
    assert bytes.fromhex(answers[6]) == big
    assert NdrReader(bytes.fromhex(answers[7])).wide_string(limit=10) == "cba"
    assert answers[8] == "c003000c"  # RPC_NT_BAD_STUB_DATA


@pytest.mark.parametrize("mechanism", ["ntlm", "spnego"])
async def test_a_wrong_password(tmp_path: Path, mechanism: str) -> None:
    async with serving(tmp_path) as endpoint:
        answer = await samba(
            user=USER,
            password="wrong",
            port=endpoint.server.port,
            options=f",seal,{mechanism}",
            interfaces=interfaces(),
            calls=[(0, OP_WHO, "")],
        )
        assert endpoint.logons.failures == 1
    assert answer["error"] == "c000006d"  # STATUS_LOGON_FAILURE


async def test_nobody_calls_without_a_log_on(tmp_path: Path) -> None:
    async with serving(tmp_path) as endpoint:
        job = {"port": endpoint.server.port, "interfaces": interfaces(), "calls": [(0, OP_WHO, "")]}
        assert (await samba(**job))["answers"] == ["c0000022"]  # STATUS_ACCESS_DENIED
    async with serving(tmp_path, anonymous_loopback=True) as endpoint:
        answer = await samba(**{**job, "port": endpoint.server.port})
        assert plain(answer["answers"][0]) == b"|1||None"


@pytest.mark.parametrize("count", [1, 10])
async def test_ept_lookup(tmp_path: Path, count: int) -> None:
    async with serving(tmp_path) as endpoint:
        assert endpoint.mapper is not None
        answer = await samba(port=endpoint.mapper.port, lookup=True, count=count)
    assert answer["annotations"] == ["echo", "second"]


async def test_tshark_finds_nothing_wrong(tmp_path: Path) -> None:
    async with serving(tmp_path) as endpoint:
        assert endpoint.mapper is not None
        ports = (endpoint.server.port, endpoint.mapper.port)
        async with capturing(tmp_path / "rpc.pcap", ports) as capture:
            await talk(ports)
            await samba(
                user=USER,
                password=PASSWORD,
                port=ports[0],
                options=",sign,spnego",
                interfaces=interfaces(),
                calls=[(0, OP_WHO, ""), (0, 99, ""), (0, OP_MANY, struct.pack("<I", 20_000).hex())],
            )
            await samba(port=ports[1], lookup=True, count=1)
    assert capture.wrong() == ""
    types = {int(kind) for [row] in capture.rows("dcerpc", "dcerpc.pkt_type") for kind in row.split(",")}
    assert types >= {0, 2, 3, 11, 12, 14, 15, 16}


async def talk(ports: tuple[int, int]) -> None:
    """Our own client: every level of NTLM, and the endpoint mapper."""
    for mechanism in (Mechanism.NTLM, Mechanism.SPNEGO):
        for level in (AuthLevel.CONNECT, AuthLevel.INTEGRITY, AuthLevel.PRIVACY):
            client = await RpcClient.connect(
                "127.0.0.1",
                ECHO,
                mapper_port=ports[1],
                credentials=Credentials(USER, PASSWORD, mechanism),
                level=level,
            )
            async with client:
                assert await client.call(OP_ECHO, bytes(20_000)) == bytes(20_000)
