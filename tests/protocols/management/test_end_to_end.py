"""Our own client and server over TCP: log-ons, the endpoint mapper, everything that can be asked and done."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop
from tests.protocols.management.conftest import FAR, ORDERS, ORDERS_NAME, Desk

from lanner.manager import QueueManager
from lanner.model.codes import StatusCode
from lanner.model.errors import InvalidNameError, InvalidPropertyError
from lanner.model.message import Delivery, Message
from lanner.model.queue import OutgoingState, QueueProperties
from lanner.model.transfer import Connection, ConnectionStatus, Sequence
from lanner.protocols.management.client import ManagementClient, ManagementError
from lanner.protocols.management.endpoint import ManagementEndpoint
from lanner.protocols.management.presenting import Attempt
from lanner.protocols.management.properties import MACHINE_PROPERTIES, QUEUE_PROPERTIES
from lanner.protocols.management.settings import USERS_NAME, ManagementSettings
from lanner.protocols.management.wire import MACHINE, QMMGMT, encode_get_info
from lanner.protocols.rpc.accounts import UserFile
from lanner.protocols.rpc.client import RpcClient
from lanner.protocols.rpc.credentials import Credentials, Mechanism
from lanner.protocols.rpc.errors import FaultStatus, RpcError, RpcFault
from lanner.protocols.rpc.interface import AuthLevel
from lanner.protocols.rpc.ntlm import nt_hash

ADA = Credentials("ada", "secret of ada")
BOB = Credentials("bob", "secret of bob")
HOST = "127.0.0.1"


@pytest.fixture
def users(tmp_path: Path) -> UserFile:
    file = UserFile(tmp_path / USERS_NAME)
    for each in (ADA, BOB):
        file.set(each.user, nt_hash(each.password))
    return file


async def serve(manager: QueueManager, data: Path, **settings: Any) -> ManagementEndpoint:
    chosen = ManagementSettings(**{"endpoint_mapper_port": 0, "administrators": ("Ada",), **settings})
    endpoint = ManagementEndpoint(manager, chosen, HOST, port=0, data=data)
    await endpoint.start()
    return endpoint


@pytest.fixture
async def endpoint(
    manager: QueueManager, users: UserFile, tmp_path: Path
) -> AsyncIterator[ManagementEndpoint]:
    endpoint = await serve(manager, tmp_path)
    yield endpoint
    await endpoint.stop()


@pytest.fixture
async def client(endpoint: ManagementEndpoint) -> AsyncIterator[ManagementClient]:
    async with await ManagementClient.connect(HOST, port=endpoint.port, credentials=ADA) as client:
        yield client


# Asking.


async def test_the_machine(client: ManagementClient, manager: QueueManager) -> None:
    await manager.create_queue(ORDERS)
    await manager.send(ORDERS, Message(body=b"x"))
    found = await client.get_machine()
    assert list(found) == [each.name for each in MACHINE_PROPERTIES.values()]
    assert found["active-queues"] == [ORDERS_NAME]
    assert found["private-queues"] == [r"here\private$\orders"]
    assert found["connected"] == "CONNECTED"
    assert found["directory-server"] is None
    assert found["bytes-in-all-queues"] == manager.total_bytes
    assert await client.get_machine("connected", "CONNECTED") == {"connected": "CONNECTED"}


async def test_a_queue_by_any_of_its_names(client: ManagementClient, manager: QueueManager) -> None:
    await manager.create_queue(ORDERS, QueueProperties(journaling=True))
    await manager.send(ORDERS, Message(body=b"x"))
    for name in (ORDERS, r"here\private$\orders", ORDERS_NAME, f"PRIVATE={manager.identifier}\\2"):
        found = await client.get_queue(name, "message-count", "state", "next-hops")
        assert found == {"message-count": 1, "state": "LOCAL CONNECTION", "next-hops": None}


async def test_all_properties_of_an_outgoing_queue(client: ManagementClient, manager: QueueManager) -> None:
    queue = Desk(manager).outgoing()
    queue.transfer.next_sequence = Sequence(1 << 40, 2, 1)
    queue.connections.append(
        Connection(status=ConnectionStatus.CONNECTION_REFUSED, time=1000, address="http://there")
    )
    found = await client.get_queue(FAR)
    assert list(found) == [each.name for each in QUEUE_PROPERTIES.values()]
    assert found["next-sequence"] == Sequence(1 << 40, 2, 1)
    assert found["connection-history"] == (
        Attempt("connection refused", 1000, StatusCode.MQ_ERROR, (r"\\there",)),
    )
    assert found["sources"] is None


async def test_many_queues_go_over_many_fragments(client: ManagementClient, manager: QueueManager) -> None:
    for number in range(300):
        await manager.create_queue(rf".\private$\{'q' * 100}{number}")
    found = await client.get_machine("private-queues")
    assert len(found["private-queues"]) == 300


async def test_several_calls_at_once(client: ManagementClient, manager: QueueManager) -> None:
    await manager.create_queue(ORDERS)
    answers = await asyncio.gather(*(client.get_queue(ORDERS, "path-name") for _ in range(50)))
    assert answers == [{"path-name": r"here\private$\orders"}] * 50


# Doing.


async def test_every_action(client: ManagementClient, manager: QueueManager) -> None:
    await client.act("disconnect")
    assert (await client.get_machine("connected"))["connected"] == "DISCONNECTED"
    await client.act("connect")
    assert (await client.get_machine("connected"))["connected"] == "CONNECTED"
    await client.act("tidy")
    await manager.send(FAR, Message(body=b"x", delivery=Delivery.RECOVERABLE))
    await client.act("pause", FAR)
    assert (await client.get_queue(FAR, "state"))["state"] == "ONHOLD"
    await client.act("Eod_Resend", FAR)
    await client.act("resume", FAR)
    assert (await client.get_queue(FAR, "state"))["state"] == "INACTIVE"
    assert Desk(manager).outgoing().state is OutgoingState.INACTIVE


# What goes wrong.


async def test_the_servers_errors_are_told(client: ManagementClient) -> None:
    with pytest.raises(ManagementError, match="MQ_ERROR_QUEUE_NOT_FOUND") as told:
        await client.get_queue(FAR)
    assert told.value.status == StatusCode.MQ_ERROR_QUEUE_NOT_FOUND
    with pytest.raises(ManagementError, match="MQ_ERROR_ILLEGAL_PROPID"):
        await client.get_info(MACHINE, [7])
    with pytest.raises(ManagementError, match="MQ_ERROR_INVALID_PARAMETER"):
        await client.action(MACHINE, "PAUSE")
    assert (await client.get_machine("connected"))["connected"] == "CONNECTED", "the association lives"


async def test_what_cannot_be_meant_is_not_sent(client: ManagementClient) -> None:
    with pytest.raises(InvalidPropertyError, match="did you mean state"):
        await client.get_queue(ORDERS, "stat")
    with pytest.raises(InvalidPropertyError, match="connect, disconnect, tidy"):
        await client.act("purge")
    with pytest.raises(InvalidPropertyError, match="pause, resume, eod_resend"):
        await client.act("tidy", FAR)
    with pytest.raises(InvalidNameError, match="more than one queue"):
        await client.get_queue(r"DIRECT=OS:a\b,DIRECT=OS:c\d")
    with pytest.raises(InvalidPropertyError, match="1 to 128"):
        await client.get_info(MACHINE, [1] * 129)


@pytest.mark.parametrize("count", [b"\x00", b"\x81"])
async def test_a_count_out_of_range_is_a_fault(endpoint: ManagementEndpoint, count: bytes) -> None:
    stub = bytearray(encode_get_info(MACHINE, [1]))
    stub[8:9] = count
    async with await RpcClient.connect(HOST, QMMGMT, port=endpoint.port, credentials=ADA) as rpc:
        with pytest.raises(RpcFault) as fault:
            await rpc.call(0, bytes(stub))
        assert fault.value.status == FaultStatus.BAD_STUB_DATA
        with pytest.raises(RpcFault):
            await rpc.call(2, b"")


# Who may.


@pytest.mark.parametrize("mechanism", [Mechanism.NTLM, Mechanism.SPNEGO])
@pytest.mark.parametrize("level", [AuthLevel.CONNECT, AuthLevel.INTEGRITY, AuthLevel.PRIVACY])
async def test_every_level_and_mechanism(
    endpoint: ManagementEndpoint, mechanism: Mechanism, level: AuthLevel
) -> None:
    who = Credentials(ADA.user, ADA.password, mechanism)
    async with await ManagementClient.connect(
        HOST, port=endpoint.port, credentials=who, level=level
    ) as client:
        assert (await client.get_machine("connected"))["connected"] == "CONNECTED"


@pytest.mark.parametrize("who", [BOB, None], ids=["no administrator", "nobody"])
async def test_others_are_denied(
    endpoint: ManagementEndpoint, manager: QueueManager, who: Credentials | None
) -> None:
    calls: list[Callable[[ManagementClient], Awaitable[Any]]] = [
        lambda client: client.get_machine("connected"),
        lambda client: client.act("disconnect"),
    ]
    for call in calls:
        async with await ManagementClient.connect(HOST, port=endpoint.port, credentials=who) as client:
            with pytest.raises(RpcFault) as fault:
                await call(client)
            assert fault.value.status == FaultStatus.ACCESS_DENIED
    assert manager.is_online


async def test_a_wrong_password(endpoint: ManagementEndpoint) -> None:
    wrong = Credentials("ada", "guessed")
    with pytest.raises(RpcError):
        async with await ManagementClient.connect(HOST, port=endpoint.port, credentials=wrong) as client:
            await client.get_machine("connected")


async def test_less_protection_than_is_set_is_denied(
    manager: QueueManager, users: UserFile, tmp_path: Path
) -> None:
    endpoint = await serve(manager, tmp_path, protection="privacy")
    for level, is_allowed in ((AuthLevel.INTEGRITY, False), (AuthLevel.PRIVACY, True)):
        async with await ManagementClient.connect(
            HOST, port=endpoint.port, credentials=ADA, level=level
        ) as client:
            if is_allowed:
                await client.get_machine("connected")
            else:
                with pytest.raises(RpcFault):
                    await client.get_machine("connected")
    await endpoint.stop()


async def test_without_a_log_on_where_a_setting_allows_it(manager: QueueManager, tmp_path: Path) -> None:
    endpoint = await serve(manager, tmp_path, anonymous_loopback=True)
    async with await ManagementClient.connect(HOST, port=endpoint.port) as client:
        assert (await client.get_machine("connected"))["connected"] == "CONNECTED"
    await endpoint.stop()


# The endpoint.


async def test_the_endpoint_mapper_knows_the_port(endpoint: ManagementEndpoint) -> None:
    assert endpoint.mapper_port
    async with await ManagementClient.connect(
        HOST, credentials=ADA, mapper_port=endpoint.mapper_port
    ) as client:
        assert (await client.get_machine("connected"))["connected"] == "CONNECTED"


async def test_without_the_mappers_port_management_goes_on(
    manager: QueueManager, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = await serve(manager, tmp_path)
    assert first.mapper_port
    with caplog.at_level(logging.WARNING):
        second = await serve(manager, tmp_path, endpoint_mapper_port=first.mapper_port)
    assert second.mapper_port is None
    assert "there is no endpoint mapper" in caplog.text
    third = await serve(manager, tmp_path, endpoint_mapper=False)
    assert third.mapper_port is None
    for each in (first, second, third):
        await each.stop()


async def test_users_are_read_again(endpoint: ManagementEndpoint, users: UserFile) -> None:
    users.set("ada", nt_hash("a new one"))
    endpoint.check_reload()
    assert endpoint.reload() == ["the users of RPC were read again: 2"]
    new = Credentials("ada", "a new one")
    async with await ManagementClient.connect(HOST, port=endpoint.port, credentials=new) as client:
        await client.get_machine("connected")
    users.path.chmod(0o644)
    with pytest.raises(InvalidPropertyError):
        endpoint.check_reload()


def test_settings() -> None:
    assert not ManagementSettings().enabled
    assert ManagementSettings().minimum_level is AuthLevel.CONNECT
    assert ManagementSettings(protection="privacy").minimum_level is AuthLevel.PRIVACY


def test_on_the_loop_that_a_manager_runs_on(tmp_path: Path) -> None:
    async def talk() -> dict[str, Any]:
        async with await QueueManager.open(tmp_path / "store", name="here") as manager:
            endpoint = await serve(manager, tmp_path, anonymous_loopback=True)
            async with await ManagementClient.connect(HOST, port=endpoint.port) as client:
                found = await client.get_machine("connected")
            await endpoint.stop()
            return found

    assert uvloop.run(talk()) == {"connected": "CONNECTED"}
