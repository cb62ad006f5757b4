"""qmmgmt on the wire with tshark looking on: nothing is malformed, and it names the interface and operations.

tshark has no dissector for qmmgmt: what it shows of the interface is its UUID, and of a call its opnum and
stub. `test_management_impacket.py` has what is inside of the stubs.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.interop.capture import capturing
from tests.protocols.management.conftest import FAR, ORDERS

from lanner.manager import QueueManager
from lanner.model.message import Delivery, Message
from lanner.model.queue import QueueProperties
from lanner.protocols.management.client import ManagementClient
from lanner.protocols.management.endpoint import ManagementEndpoint
from lanner.protocols.management.properties import MACHINE_PROPERTIES, QUEUE_PROPERTIES
from lanner.protocols.management.settings import USERS_NAME, ManagementSettings
from lanner.protocols.management.wire import ACTION, GET_INFO, MACHINE, QMMGMT, encode_get_info
from lanner.protocols.rpc.accounts import UserFile
from lanner.protocols.rpc.credentials import Credentials, Mechanism
from lanner.protocols.rpc.interface import AuthLevel
from lanner.protocols.rpc.ntlm import nt_hash

pytestmark = pytest.mark.interop

UUID = "41208ee0-e970-11d1-9b9e-00e02c064c39"
"""MS-MQMR 1.9, written down here and not taken from the code."""

REQUEST, RESPONSE = 0, 2
CALLS = [GET_INFO, GET_INFO, GET_INFO, ACTION]


async def talk(client: ManagementClient) -> None:
    """Four calls: all properties of the machine, of a local and of an outgoing queue, and an action."""
    assert len(await client.get_machine()) == len(MACHINE_PROPERTIES)
    assert len(await client.get_queue(ORDERS)) == len(QUEUE_PROPERTIES)
    assert len(await client.get_queue(FAR)) == len(QUEUE_PROPERTIES)
    await client.act("CONNECT")


@pytest.mark.parametrize(
    ("mechanism", "level"),
    [
        (None, AuthLevel.NONE),
        (Mechanism.NTLM, AuthLevel.CONNECT),
        (Mechanism.NTLM, AuthLevel.INTEGRITY),
        (Mechanism.NTLM, AuthLevel.PRIVACY),
        (Mechanism.SPNEGO, AuthLevel.PRIVACY),
    ],
    ids=["open", "connect", "signed", "sealed", "spnego"],
)
async def test_a_call_on_the_wire(tmp_path: Path, mechanism: Mechanism | None, level: AuthLevel) -> None:
    assert (str(QMMGMT.uuid), QMMGMT.major, QMMGMT.minor) == (UUID, 1, 0)
    UserFile(tmp_path / USERS_NAME).set("ada", nt_hash("secret"))
    settings = ManagementSettings(
        endpoint_mapper_port=0, administrators=("ada",), anonymous_loopback=True, protection="connect"
    )
    async with await QueueManager.open(tmp_path / "store", name="here") as manager:
        await manager.create_queue(ORDERS, QueueProperties(journaling=True))
        await manager.send(FAR, Message(body=b"x", delivery=Delivery.RECOVERABLE))
        endpoint = ManagementEndpoint(manager, settings, "127.0.0.1", port=0, data=tmp_path)
        await endpoint.start()
        assert endpoint.mapper_port is not None
        ports = (endpoint.port, endpoint.mapper_port)
        async with capturing(tmp_path / "qmmgmt.pcap", ports) as capture:
            credentials = Credentials("ada", "secret", mechanism) if mechanism is not None else None
            async with await ManagementClient.connect(
                "127.0.0.1", credentials=credentials, level=level, mapper_port=ports[1]
            ) as client:
                await talk(client)
        await endpoint.stop()
    assert capture.wrong() == ""

    here = f"tcp.port == {ports[0]}"
    [bind] = capture.rows(
        f"dcerpc.pkt_type == 11 and {here}", "dcerpc.cn_bind_to_uuid", "dcerpc.cn_bind_if_ver"
    )
    assert set(bind[0].split(",")) == {UUID}
    assert set(bind[1].split(",")) == {"1"}
    requests = capture.rows(f"dcerpc.pkt_type == {REQUEST} and {here}", "dcerpc.opnum")
    assert [int(row[0]) for row in requests] == CALLS
    # Each answer is put together with its call, and none is a fault.
    answers = capture.rows(
        f"dcerpc.pkt_type == {RESPONSE} and {here} and dcerpc.cn_flags.last_frag == 1", "dcerpc.opnum"
    )
    assert [int(row[0]) for row in answers] == CALLS
    assert capture.rows("dcerpc.pkt_type == 3", "frame.number") == []
    levels = capture.rows(f"dcerpc.pkt_type == {REQUEST} and {here}", "dcerpc.auth_level")
    shown = {row[0] for row in levels}
    assert shown == ({str(int(level))} if level >= AuthLevel.INTEGRITY else {""})
    # The endpoint mapper was asked for this interface, which tshark reads from the tower.
    asked = capture.tshark("-Y", f"epm.opnum == 3 and tcp.port == {ports[1]}", "-V")
    assert UUID in asked.lower()
    # Where nothing is sealed, tshark cuts out the very stub that the interface prescribes.
    if level < AuthLevel.PRIVACY:
        [first, *_] = capture.rows(f"dcerpc.pkt_type == {REQUEST} and {here}", "dcerpc.stub_data")
        assert bytes.fromhex(first[0]) == encode_get_info(MACHINE, list(MACHINE_PROPERTIES))
