"""Management with impacket as the client: every property, action, kind of name and error."""

# mypy: disable-error-code="import-untyped, import-not-found"

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from tests.protocols.management.conftest import FAR, ORDERS, ORDERS_NAME, Desk

from lanner.manager import QueueManager
from lanner.model.codes import StatusCode
from lanner.model.message import Delivery, Message
from lanner.model.queue import OutgoingState, QueueAccess, QueueProperties
from lanner.model.transfer import Connection, ConnectionStatus, IncomingTransfer
from lanner.model.transfer import Sequence as Place
from lanner.protocols.management.endpoint import ManagementEndpoint
from lanner.protocols.management.properties import MACHINE_PROPERTIES, QUEUE_PROPERTIES
from lanner.protocols.management.settings import USERS_NAME, ManagementSettings
from lanner.protocols.management.wire import QMMGMT
from lanner.protocols.rpc.accounts import UserFile
from lanner.protocols.rpc.ntlm import nt_hash

epm = pytest.importorskip("impacket.dcerpc.v5.epm", reason="impacket is not installed")
from impacket.dcerpc.v5 import rpcrt, transport  # noqa: E402
from impacket.uuid import uuidtup_to_bin  # noqa: E402
from tests.interop import qmmgmt_impacket as qmmgmt  # noqa: E402

pytestmark = pytest.mark.interop

GUID = UUID("e6eaba61-d1c6-11db-baac-0003ff4e2d22")
SYNTAX: bytes = uuidtup_to_bin((str(QMMGMT.uuid), "1.0"))
LEVELS = {
    "connect": rpcrt.RPC_C_AUTHN_LEVEL_CONNECT,
    "integrity": rpcrt.RPC_C_AUTHN_LEVEL_PKT_INTEGRITY,
    "privacy": rpcrt.RPC_C_AUTHN_LEVEL_PKT_PRIVACY,
}
Queue = tuple[int, int, Any]

PUBLIC, PRIVATE, DIRECT, MACHINE, CONNECTOR, LIST, MULTICAST, SUBQUEUE = range(1, 9)


class Peer:
    """impacket, on another thread."""

    def __init__(self, endpoint: ManagementEndpoint) -> None:
        self.endpoint = endpoint
        self.level = "privacy"
        self.fragment = 0

    def _connect(self, user: str = "ada", password: str = "secret") -> Any:
        assert self.endpoint.mapper_port
        mapper = transport.DCERPCTransportFactory(f"ncacn_ip_tcp:127.0.0.1[{self.endpoint.mapper_port}]")
        asking = mapper.get_dce_rpc()
        asking.connect()
        binding = epm.hept_map("127.0.0.1", SYNTAX, protocol="ncacn_ip_tcp", dce=asking)
        asking.disconnect()
        rpc = transport.DCERPCTransportFactory(binding)
        rpc.set_credentials(user, password, "")
        dce = rpc.get_dce_rpc()
        dce.set_auth_type(rpcrt.RPC_C_AUTHN_WINNT)
        dce.set_auth_level(LEVELS[self.level])
        dce.connect()
        if self.fragment:
            dce.set_max_fragment_size(self.fragment)
        dce.bind(SYNTAX)
        return dce

    async def get(
        self, queue: Queue | None, *numbers: int, kind: int | None = None, user: str = "ada"
    ) -> tuple[list[Any], int]:
        """Values and status."""

        def work() -> tuple[list[Any], int]:
            dce = self._connect(user)
            dce.call(0, qmmgmt.get_info(numbers, queue, kind))
            answer = qmmgmt.R_QMMgmtGetInfoResponse(dce.recv())
            dce.disconnect()
            return [qmmgmt.plain(each) for each in answer["apVar"]], answer["ErrorCode"]

        return await asyncio.to_thread(work)

    async def act(self, action: str, queue: Queue | None, kind: int | None = None) -> int:
        def work() -> int:
            dce = self._connect()
            dce.call(1, qmmgmt.act(action, queue, kind))
            status: int = qmmgmt.R_QMMgmtActionResponse(dce.recv())["ErrorCode"]
            dce.disconnect()
            return status

        return await asyncio.to_thread(work)

    async def one(self, queue: Queue | None, number: int) -> Any:
        [value], status = await self.get(queue, number)
        assert status == 0
        return value


@pytest.fixture
async def manager(tmp_path: Path) -> AsyncIterator[QueueManager]:
    async with await QueueManager.open(tmp_path / "store", name="here") as manager:
        await manager.create_queue(ORDERS, QueueProperties(journaling=True))
        yield manager


@pytest.fixture
async def peer(manager: QueueManager, tmp_path: Path) -> AsyncIterator[Peer]:
    users = UserFile(tmp_path / USERS_NAME)
    for name in ("ada", "bob"):
        users.set(name, nt_hash("secret"))
    settings = ManagementSettings(endpoint_mapper_port=0, administrators=("ada",))
    endpoint = ManagementEndpoint(manager, settings, "127.0.0.1", port=0, data=tmp_path)
    await endpoint.start()
    yield Peer(endpoint)
    await endpoint.stop()


def direct(name: str) -> Queue:
    return DIRECT, 0, name.removeprefix("DIRECT=")


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("fragment", [0, 128])
async def test_all_properties_of_the_machine(
    peer: Peer, manager: QueueManager, level: str, fragment: int
) -> None:
    peer.level, peer.fragment = level, fragment
    await manager.send(ORDERS, Message(body=b"x"))
    values, status = await peer.get(None, *MACHINE_PROPERTIES)
    assert status == 0
    active, private, server, connected, kind, size = values
    assert active == [ORDERS_NAME]
    assert private == [r"here\private$\orders"]
    assert server is None
    assert connected == "CONNECTED"
    assert kind.startswith("Lanner ")
    assert size == manager.total_bytes


async def test_all_properties_of_a_local_queue(peer: Peer, manager: QueueManager) -> None:
    for _ in range(3):
        await manager.send(ORDERS, Message(body=b"x" * 50))
    await manager.receive(ORDERS)
    handle = manager.open_queue(ORDERS, QueueAccess.RECEIVE)
    [lookup] = (await manager.send(ORDERS, Message())).lookup_ids
    await manager.move_message(handle, lookup, f"{ORDERS};later")
    manager.close_queue(handle)
    live = manager.transfers.find(ORDERS)
    assert live is not None
    live.incoming_transfers[GUID] = IncomingTransfer(
        format_name=FAR, sender=GUID, stream=1 << 40, number=7, last_access=1000.0, rejections=2
    )
    values, status = await peer.get(direct(ORDERS_NAME), *QUEUE_PROPERTIES)
    assert status == 0
    found = dict(zip([each.name for each in QUEUE_PROPERTIES.values()], values, strict=True))
    info = manager.queue(ORDERS)
    nothing = dict.fromkeys((each.name for each in QUEUE_PROPERTIES.values()), None)
    assert found == nothing | {
        "path-name": r"here\private$\orders",
        "format-name": ORDERS_NAME,
        "type": "PRIVATE",
        "location": "LOCAL",
        "transactional": "NO",
        "foreign": "NO",
        "message-count": 2,
        "bytes": info.bytes,
        "journal-message-count": 1,
        "journal-bytes": info.journal_bytes,
        "state": "LOCAL CONNECTION",
        "sources": [[FAR], [GUID], [1 << 40], [7], [1000], [2]],
        "subqueue-count": 1,
        "subqueues": ["later"],
    }


async def test_all_properties_of_an_outgoing_queue(peer: Peer, manager: QueueManager) -> None:
    await manager.send(FAR, Message(body=b"x", delivery=Delivery.RECOVERABLE))
    queue = Desk(manager).outgoing()
    queue.state, queue.peer = OutgoingState.CONNECTED, "10.0.0.7"
    queue.transfer.last_acknowledged = Place(1 << 40, 2, 1)
    queue.transfer.first_unacknowledged = Place(1 << 40, 3, 2)
    queue.transfer.last_unacknowledged = Place(1 << 40, 4, 3)
    queue.transfer.next_sequence = Place(1 << 40, 5, 4)
    queue.transfer.last_acknowledgment_time = 1000.0
    queue.transfer.last_acknowledgment_count = 6
    queue.transfer.unread, queue.transfer.unacknowledged, queue.transfer.resends = 7, 2, 8
    queue.transfer.resend_time, queue.transfer.resend_interval = 2000.0, 30.0
    for status, address in (
        (ConnectionStatus.CONNECTION_REFUSED, "http://there"),
        (ConnectionStatus.ESTABLISHED, "http://10.0.0.7"),
    ):
        queue.connections.append(Connection(status=status, time=500.0, address=address))
    values, code = await peer.get(direct(FAR), *QUEUE_PROPERTIES)
    assert code == 0
    found = dict(zip([each.name for each in QUEUE_PROPERTIES.values()], values, strict=True))
    assert found == {
        "path-name": r"there\private$\orders",
        "format-name": FAR,
        "type": "PRIVATE",
        "location": "REMOTE",
        "transactional": "UNKNOWN",
        "foreign": "NO",
        "message-count": 1,
        "bytes": manager.queue(FAR).bytes,
        "journal-message-count": 0,
        "journal-bytes": 0,
        "state": "CONNECTED",
        "next-hops": ["IP=10.0.0.7"],
        "last-acknowledged": struct.pack("<qII", 1 << 40, 2, 1),
        "last-acknowledged-time": 1000,
        "last-acknowledged-count": 6,
        "first-unacknowledged": struct.pack("<qII", 1 << 40, 3, 2),
        "last-unacknowledged": struct.pack("<qII", 1 << 40, 4, 3),
        "next-sequence": struct.pack("<qII", 1 << 40, 5, 4),
        "unread-count": 7,
        "unacknowledged-count": 2,
        "resend-time": 2000,
        "resend-interval": 30,
        "resend-count": 8,
        "sources": None,
        "connection-history": [
            [0x8000000B, 2],
            [500, 500],
            [StatusCode.MQ_ERROR - 2**32, 0],
            [[r"\\there"], ["10.0.0.7"]],
        ],
        "subqueue-count": None,
        "subqueues": None,
    }


async def test_every_kind_of_name(peer: Peer, manager: QueueManager) -> None:
    public = (await manager.create_queue(r".\public")).identifier
    own = manager.identifier
    handle = manager.open_queue(ORDERS, QueueAccess.RECEIVE)
    [lookup] = (await manager.send(ORDERS, Message())).lookup_ids
    await manager.move_message(handle, lookup, f"{ORDERS};later")
    manager.close_queue(handle)
    desk = Desk(manager)
    for name in (f"CONNECTOR={GUID};XACTONLY", f"DL={GUID}@example.com", "MULTICAST=234.1.2.3:80"):
        desk.outgoing(name)
    live = manager.transfers.find(ORDERS)
    assert live is not None
    number = live.record.number
    for queue, expected in (
        ((PUBLIC, 0, public), r"DIRECT=OS:here\public"),
        ((PUBLIC, 0x81, public), r"DIRECT=OS:here\public;JOURNAL"),
        ((PRIVATE, 0, _object(own, number)), ORDERS_NAME),
        ((PRIVATE, 0x81, _object(own, number)), f"{ORDERS_NAME};JOURNAL"),
        ((DIRECT, 0x81, r"OS:here\private$\orders;JOURNAL"), f"{ORDERS_NAME};JOURNAL"),
        ((DIRECT, 0x82, r"OS:here\SYSTEM$;DEADLETTER"), r"DIRECT=OS:here\SYSTEM$;DEADLETTER"),
        ((MACHINE, 0x81, own), r"DIRECT=OS:here\SYSTEM$;JOURNAL"),
        ((MACHINE, 0x82, own), r"DIRECT=OS:here\SYSTEM$;DEADLETTER"),
        ((MACHINE, 0x83, own), r"DIRECT=OS:here\SYSTEM$;DEADXACT"),
        ((CONNECTOR, 4, GUID), f"CONNECTOR={GUID};XACTONLY"),
        ((LIST, 0, {"m_DlGuid": GUID, "m_pwzDomain": "example.com\0"}), f"DL={GUID}@example.com"),
        ((MULTICAST, 0, {"m_address": 0x030201EA, "m_port": 80}), "MULTICAST=234.1.2.3:80"),
        ((SUBQUEUE, 5, r"OS:here\private$\orders;later"), f"{ORDERS_NAME};later"),
    ):
        assert await peer.one(queue, 2) == expected


def _object(machine: UUID, number: int) -> dict[str, Any]:
    return {"Lineage": machine, "Uniquifier": number}


async def test_every_action(peer: Peer, manager: QueueManager) -> None:
    states = []
    for action in ("DISCONNECT", "connect"):
        assert await peer.act(action, None) == 0
        states.append(manager.is_online)
    assert states == [False, True]
    await manager.send(ORDERS, Message(body=b"kept", delivery=Delivery.RECOVERABLE))
    assert await peer.act("Tidy", None) == 0
    assert manager.queue(ORDERS).messages == 1
    await manager.send(FAR, Message(delivery=Delivery.RECOVERABLE))
    for action, state in (("pause", "ONHOLD"), ("EOD_RESEND", "ONHOLD"), ("RESUME", "INACTIVE")):
        assert await peer.act(action, direct(FAR)) == 0
        assert await peer.one(direct(FAR), 11) == state


@pytest.mark.parametrize(
    ("queue", "kind", "numbers", "expected"),
    [
        (None, 3, (1,), StatusCode.MQ_ERROR_INVALID_PARAMETER),
        (None, None, (1, 7), StatusCode.MQ_ERROR_ILLEGAL_PROPID),
        (direct(ORDERS_NAME), None, (28,), StatusCode.MQ_ERROR_ILLEGAL_PROPID),
        (direct(FAR), None, (7, 11), StatusCode.MQ_ERROR_QUEUE_NOT_FOUND),
        (direct("nonsense"), None, (7,), StatusCode.MQ_ERROR_ILLEGAL_FORMATNAME),
    ],
)
async def test_errors_set_nothing(
    peer: Peer, queue: Queue | None, kind: int | None, numbers: Sequence[int], expected: int
) -> None:
    assert await peer.get(queue, *numbers, kind=kind) == ([None] * len(numbers), expected)


async def test_actions_that_are_none(peer: Peer) -> None:
    assert await peer.act("PURGE", None) == StatusCode.MQ_ERROR_INVALID_PARAMETER
    assert await peer.act("CONNECT", None, kind=3) == StatusCode.MQ_ERROR_INVALID_PARAMETER
    assert await peer.act("PAUSE", direct(FAR)) == StatusCode.MQ_ERROR_QUEUE_NOT_FOUND


async def test_a_count_out_of_range_is_a_fault(peer: Peer) -> None:
    for numbers in ([], [1] * 129):
        with pytest.raises(rpcrt.DCERPCException, match="rpc_x_bad_stub_data"):
            await peer.get(None, *numbers)


async def test_who_is_no_administrator_is_denied(peer: Peer) -> None:
    with pytest.raises(rpcrt.DCERPCException, match=r"access_denied|ACCESS_DENIED"):
        await peer.get(None, 4, user="bob")


async def test_a_long_answer_over_many_fragments(peer: Peer, manager: QueueManager) -> None:
    for number in range(300):
        await manager.create_queue(rf".\private$\{'q' * 100}{number}")
    assert len(await peer.one(None, 2)) == 301
