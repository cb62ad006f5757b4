"""Management with Samba's Python bindings as the client: signed and sealed, in both byte orders."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.interop.test_rpc_samba import has_samba, samba
from tests.protocols.management.conftest import FAR, ORDERS, ORDERS_NAME, queue_object

from lanner.manager import QueueManager
from lanner.model.codes import StatusCode
from lanner.model.message import Delivery, Message
from lanner.model.queue import QueueProperties
from lanner.protocols.management.endpoint import ManagementEndpoint
from lanner.protocols.management.presenting import understand
from lanner.protocols.management.properties import MACHINE_PROPERTIES, QUEUE_PROPERTIES
from lanner.protocols.management.settings import USERS_NAME, ManagementSettings
from lanner.protocols.management.wire import (
    ACTION,
    GET_INFO,
    MACHINE,
    QMMGMT,
    ManagementObject,
    ObjectType,
    decode_action_answer,
    decode_get_info_answer,
    encode_action,
    encode_get_info,
)
from lanner.protocols.rpc.accounts import UserFile
from lanner.protocols.rpc.ntlm import nt_hash

pytestmark = pytest.mark.interop

SESSION = ManagementObject(ObjectType.SESSION)
LOCAL, OUTGOING = queue_object(ORDERS_NAME), queue_object(FAR)


@pytest.fixture(autouse=True)
def _needs_samba() -> None:
    if not has_samba():
        pytest.skip("python3-samba is not installed")


async def _serve(manager: QueueManager, data: Path) -> ManagementEndpoint:
    users = UserFile(data / USERS_NAME)
    for name in ("ada", "bob"):
        users.set(name, nt_hash("secret"))
    settings = ManagementSettings(endpoint_mapper=False, administrators=("ada",))
    endpoint = ManagementEndpoint(manager, settings, "127.0.0.1", port=0, data=data)
    await endpoint.start()
    return endpoint


@pytest.mark.parametrize("order", ["", ",bigendian"], ids=["little", "big"])
@pytest.mark.parametrize(
    "options", [",sign,ntlm", ",seal,ntlm", ",sign,spnego", ",seal,spnego", ",connect,ntlm"]
)
async def test_every_property_and_action(tmp_path: Path, options: str, order: str) -> None:
    is_big = bool(order)
    asked = [
        (MACHINE, list(MACHINE_PROPERTIES)),
        (LOCAL, list(QUEUE_PROPERTIES)),
        (OUTGOING, list(QUEUE_PROPERTIES)),
        (SESSION, [1]),
        (MACHINE, [7]),
        (queue_object(r"DIRECT=OS:x\private$\y"), [7, 11]),
    ]
    acts = [
        (MACHINE, "DISCONNECT"),
        (MACHINE, "connect"),
        (MACHINE, "TIDY"),
        (OUTGOING, "Pause"),
        (OUTGOING, "EOD_RESEND"),
        (OUTGOING, "resume"),
        (MACHINE, "PURGE"),
        (LOCAL, "PAUSE"),
    ]
    questions = [encode_get_info(target, numbers, big_endian=is_big) for target, numbers in asked]
    actions = [encode_action(target, name, big_endian=is_big) for target, name in acts]
    async with await QueueManager.open(tmp_path / "store", name="here") as manager:
        await manager.create_queue(ORDERS, QueueProperties(journaling=True))
        await manager.send(ORDERS, Message(body=b"x", delivery=Delivery.RECOVERABLE))
        await manager.send(FAR, Message(body=b"x", delivery=Delivery.RECOVERABLE))
        endpoint = await _serve(manager, tmp_path)
        told = await samba(
            user="ada",
            password="secret",
            port=endpoint.port,
            options=options + order,
            interfaces=[(str(QMMGMT.uuid), 1)],
            calls=[
                *((0, GET_INFO, stub.hex()) for stub in questions),
                *((0, ACTION, stub.hex()) for stub in actions),
            ],
        )
        await endpoint.stop()
        assert manager.queue(ORDERS).messages == 1, "TIDY purges nothing"
    answers = [bytes.fromhex(each) for each in told["answers"]]
    found = [
        decode_get_info_answer(stub, len(numbers)) for stub, (_, numbers) in zip(answers, asked, strict=False)
    ]
    assert [each.status for each in found] == [
        0,
        0,
        0,
        StatusCode.MQ_ERROR_INVALID_PARAMETER,
        StatusCode.MQ_ERROR_ILLEGAL_PROPID,
        StatusCode.MQ_ERROR_QUEUE_NOT_FOUND,
    ]
    machine = [
        understand(wanted, value)
        for wanted, value in zip(MACHINE_PROPERTIES.values(), found[0].variants, strict=True)
    ]
    assert machine[1] == [r"here\private$\orders"]
    assert machine[3] == "CONNECTED"
    local, outgoing = (
        {
            wanted.name: understand(wanted, value)
            for wanted, value in zip(QUEUE_PROPERTIES.values(), answer.variants, strict=True)
        }
        for answer in found[1:3]
    )
    assert (local["message-count"], local["state"]) == (1, "LOCAL CONNECTION")
    assert (outgoing["format-name"], outgoing["location"], outgoing["state"]) == (FAR, "REMOTE", "INACTIVE")
    assert [decode_action_answer(stub) for stub in answers[len(asked) :]] == [
        0,
        0,
        0,
        0,
        0,
        0,
        StatusCode.MQ_ERROR_INVALID_PARAMETER,
        StatusCode.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION,
    ]


async def test_who_is_no_administrator_is_denied(tmp_path: Path) -> None:
    async with await QueueManager.open(tmp_path / "store", name="here") as manager:
        endpoint = await _serve(manager, tmp_path)
        told = await samba(
            user="bob",
            password="secret",
            port=endpoint.port,
            options=",seal,ntlm",
            interfaces=[(str(QMMGMT.uuid), 1)],
            calls=[(0, ACTION, encode_action(MACHINE, "DISCONNECT").hex())],
        )
        await endpoint.stop()
        assert manager.is_online
    assert "c0000022" in (told.get("error"), *told.get("answers", ()))  # STATUS_ACCESS_DENIED
