"""The endpoint: starting, stopping and reading the users again."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
import uvloop
from tests.protocols.rpc.echo import ECHO, OP_ECHO, OP_WHO, echo_interface, serving, settings

from lanner.model.errors import InvalidPropertyError, ListenError
from lanner.protocols.rpc.accounts import UserFile
from lanner.protocols.rpc.client import RpcClient
from lanner.protocols.rpc.credentials import Credentials, Mechanism
from lanner.protocols.rpc.endpoint import RpcEndpoint, RpcSettings
from lanner.protocols.rpc.errors import RpcError
from lanner.protocols.rpc.logons import LogonLimits
from lanner.protocols.rpc.ntlm import nt_hash

HERE = "127.0.0.1"


def make(tmp_path: Path, port: int, mapper_port: int | None, *, required: bool = True) -> RpcEndpoint:
    return RpcEndpoint(
        [echo_interface()],
        settings(tmp_path),
        HERE,
        server_name="LANNER",
        port=port,
        mapper_port=mapper_port,
        mapper_required=required,
    )


async def test_it_says_where(tmp_path: Path) -> None:
    endpoint = make(tmp_path, 0, 0)
    place = await endpoint.start()
    assert endpoint.mapper is not None
    assert place == f"{HERE}:{endpoint.server.port}, endpoint mapper on {HERE}:{endpoint.mapper.port}"
    await endpoint.stop()
    with pytest.raises(RpcError):
        await RpcClient.connect(HERE, ECHO, port=endpoint.server.port)


async def test_ports_that_are_taken(tmp_path: Path) -> None:
    with socket.create_server((HERE, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ListenError, match=str(port)):
            await make(tmp_path, port, None).start()
        with pytest.raises(ListenError):
            await make(tmp_path, 0, port).start()
        endpoint = make(tmp_path, 0, port, required=False)
        assert "mapper" not in await endpoint.start()
        assert endpoint.mapper is None
        await endpoint.stop()


async def test_users_are_read_again(tmp_path: Path) -> None:
    async with serving(tmp_path) as endpoint:
        users = UserFile(tmp_path / "users")
        users.set("operator", nt_hash("new"))
        port = endpoint.server.port

        async def who(password: str) -> bytes:
            credentials = Credentials("operator", password, Mechanism.NTLM)
            async with await RpcClient.connect(HERE, ECHO, port=port, credentials=credentials) as client:
                return await client.call(OP_WHO, b"")

        with pytest.raises(RpcError):
            await who("new")
        endpoint.check_reload()
        assert endpoint.reload() == ["the users of RPC were read again: 2"]
        assert await who("new") == b"operator|6|ntlm|None"
        users.path.chmod(0o644)
        with pytest.raises(InvalidPropertyError):
            endpoint.check_reload()
        assert await who("new") == b"operator|6|ntlm|None"


async def test_failed_log_ons_lock_out_their_source(tmp_path: Path) -> None:
    async with serving(tmp_path, logons=LogonLimits(per_user=2)) as endpoint:
        port = endpoint.server.port
        for password in ("wrong", "wrong", "correct horse"):
            credentials = Credentials("operator", password, Mechanism.NTLM)
            async with await RpcClient.connect(HERE, ECHO, port=port, credentials=credentials) as client:
                with pytest.raises(RpcError, match="access denied"):
                    await client.call(OP_ECHO, b"")
        assert endpoint.logons.failures == 3


def test_on_the_loop_of_the_service(tmp_path: Path) -> None:
    """uvloop's transports are not asyncio's."""

    async def main() -> bytes:
        async with serving(tmp_path) as endpoint:
            assert endpoint.mapper is not None
            credentials = Credentials("operator", "correct horse")
            port = endpoint.mapper.port
            async with await RpcClient.connect(
                HERE, ECHO, mapper_port=port, credentials=credentials
            ) as client:
                return await client.call(OP_ECHO, bytes(100_000))

    assert uvloop.run(main()) == bytes(100_000)


def test_kerberos_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lanner.protocols.rpc.endpoint.has_kerberos", lambda: False)
    with pytest.raises(InvalidPropertyError, match="lanner\\[kerberos\\]"):
        RpcEndpoint([], RpcSettings(kerberos=True), HERE, server_name="x", port=0)
