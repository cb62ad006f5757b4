"""RPC in a domain: Kerberos both ways, and our client with Samba's own RPC server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest
from tests.interop.samba import PASSWORD, REALM, DomainController
from tests.interop.test_rpc_samba import has_samba, interfaces, plain, samba
from tests.protocols.rpc.echo import ECHO, OP_ECHO, OP_MANY, OP_WHO, serving

from lanner.protocols.rpc.client import RpcClient, find_port
from lanner.protocols.rpc.credentials import Credentials, Mechanism
from lanner.protocols.rpc.errors import RpcError
from lanner.protocols.rpc.interface import AuthLevel, InterfaceId
from lanner.protocols.rpc.kerberos import has_kerberos
from lanner.protocols.rpc.mapper import MAPPER, Operation, lookup_request, read_lookup_response

pytestmark = pytest.mark.interop

ADMINISTRATOR = f"administrator@{REALM}"
SERVICE = "lanner.msmq.test"
SAMR = InterfaceId(UUID("12345778-1234-abcd-ef00-0123456789ac"), 1, 0)
LEVELS = [AuthLevel.CONNECT, AuthLevel.INTEGRITY, AuthLevel.PRIVACY]


@pytest.fixture(scope="module")
def domain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DomainController]:
    if not has_samba():
        pytest.skip("python3-samba is not installed")
    if not has_kerberos():
        pytest.skip("gssapi and krb5 are not installed")
    with DomainController(tmp_path_factory.mktemp("domain")) as controller:
        controller.tool("spn", "add", f"host/{controller.address}", "DC1$")
        keytab = controller.export_keytab(SERVICE)
        controller.log_in()
        environment = {**controller.kerberos, "KRB5_KTNAME": str(keytab)}
        before = {name: os.environ.get(name) for name in environment}
        os.environ.update(environment)
        yield controller
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


# Our client with Samba's server.


async def test_sambas_endpoint_mapper(domain: DomainController) -> None:
    assert await find_port(domain.address, SAMR) > 1024
    with pytest.raises(RpcError, match="does not offer"):
        await find_port(domain.address, ECHO)


@pytest.mark.parametrize("mechanism", Mechanism)
@pytest.mark.parametrize("level", LEVELS)
async def test_calls_to_samba(domain: DomainController, level: AuthLevel, mechanism: Mechanism) -> None:
    credentials = Credentials(ADMINISTRATOR, PASSWORD, mechanism)
    async with await RpcClient.connect(
        domain.address, MAPPER, port=135, credentials=credentials, level=level
    ) as client:
        for _ in range(3):
            stub = await client.call(Operation.LOOKUP, lookup_request(limit=100))
            _, entries, status = read_lookup_response(stub)
            assert status == 0
            assert SAMR in {entry.tower.interface for entry in entries}
            assert len(entries) > 20


async def test_a_wrong_password_for_samba(domain: DomainController) -> None:
    credentials = Credentials(ADMINISTRATOR, "wrong", Mechanism.SPNEGO)
    with pytest.raises(RpcError):
        await RpcClient.connect(domain.address, MAPPER, port=135, credentials=credentials)


# Our server with Kerberos.


@pytest.mark.parametrize("mechanism", [Mechanism.KERBEROS, Mechanism.SPNEGO])
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("password", [PASSWORD, ""])
async def test_kerberos_with_our_client(
    domain: DomainController, tmp_path: Path, level: AuthLevel, mechanism: Mechanism, password: str
) -> None:
    administrators = (ADMINISTRATOR,)
    async with serving(tmp_path, kerberos=True, administrators=administrators) as endpoint:
        credentials = Credentials(ADMINISTRATOR, password, mechanism, target=SERVICE)
        async with await RpcClient.connect(
            "127.0.0.1", ECHO, port=endpoint.server.port, credentials=credentials, level=level
        ) as client:
            who = (await client.call(OP_WHO, b"")).decode().lower()
            assert who == f"administrator|{int(level)}|kerberos|none"
            for size in (0, 1, 16, 100_000):
                assert await client.call(OP_ECHO, bytes(size)) == bytes(size)


async def test_a_ticket_is_not_enough(domain: DomainController, tmp_path: Path) -> None:
    async with serving(tmp_path, kerberos=True, administrators=("administrator",)) as endpoint:
        credentials = Credentials(ADMINISTRATOR, "", Mechanism.KERBEROS, target=SERVICE)
        async with await RpcClient.connect(
            "127.0.0.1", ECHO, port=endpoint.server.port, credentials=credentials
        ) as client:
            with pytest.raises(RpcError, match="access denied"):
                await client.call(OP_ECHO, b"")


@pytest.mark.parametrize("mechanism", ["krb5", "spnego"])
@pytest.mark.parametrize(("option", "level"), [("connect", 2), ("sign", 5), ("seal", 6)])
async def test_kerberos_with_samba(
    domain: DomainController, tmp_path: Path, option: str, level: int, mechanism: str
) -> None:
    async with serving(tmp_path, kerberos=True, administrators=(ADMINISTRATOR,)) as endpoint:
        answer = await samba(
            user="administrator",
            password=PASSWORD,
            realm=REALM,
            kerberos=True,
            port=endpoint.server.port,
            options=f",{option},{mechanism},target_hostname={SERVICE}",
            interfaces=interfaces(),
            calls=[
                (0, OP_WHO, ""),
                (1, 0, b"second".hex()),
                (0, OP_MANY, "20a10700"),
                (0, OP_ECHO, "aa" * 90_000),
            ],
        )
    answers = answer["answers"]
    assert bytes.fromhex(answers[0]).decode().lower() == f"administrator|{level}|kerberos|none"
    assert plain(answers[1]) == b"second"
    assert len(answers[2]) == 1_000_000
    assert answers[3] == "aa" * 90_000
