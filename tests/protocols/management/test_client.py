"""The client against servers that are not ours: old ones, and ones that answer strangely (MS-MQMR 3.2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest

from lanner.model.codes import StatusCode
from lanner.protocols.management.client import ManagementClient, ManagementError
from lanner.protocols.management.properties import QUEUE_PROPERTIES
from lanner.protocols.management.variant import NULL, Variant, VariantType
from lanner.protocols.management.wire import (
    MACHINE,
    decode_action,
    decode_get_info,
    encode_action_answer,
    encode_get_info_answer,
)
from lanner.protocols.rpc.client import RpcClient
from lanner.protocols.rpc.ndr import NdrError


class FakeRpc:
    """An association whose other end is a function."""

    def __init__(self, answer: Callable[[int, bytes], bytes]) -> None:
        self.answer = answer
        self.calls: list[int] = []

    async def call(self, opnum: int, stub: bytes) -> bytes:
        self.calls.append(opnum)
        return self.answer(opnum, stub)

    async def close(self) -> None:
        pass


def client_of(answer: Callable[[int, bytes], bytes]) -> tuple[ManagementClient, FakeRpc]:
    rpc = FakeRpc(answer)
    return ManagementClient(cast(RpcClient, rpc)), rpc


async def test_an_old_server_is_asked_for_what_it_has() -> None:
    def old(_: int, stub: bytes) -> bytes:
        call = decode_get_info(stub)
        if any(number > 23 for number in call.properties):
            return encode_get_info_answer(call.variants, StatusCode.MQ_ERROR_ILLEGAL_PROPID)
        return encode_get_info_answer([Variant(VariantType.UI4, each) for each in call.properties], 0)

    client, rpc = client_of(old)
    found = await client.get_queue("DIRECT=OS:h\\q")
    assert found == {each.name: int(each.id) for each in QUEUE_PROPERTIES.values() if each.id <= 23}
    assert len(rpc.calls) == 28
    with pytest.raises(ManagementError):
        await client.get_queue("DIRECT=OS:h\\q", "subqueues")


async def test_another_error_of_an_old_server_is_told() -> None:
    def answer(_: int, stub: bytes) -> bytes:
        call = decode_get_info(stub)
        status = StatusCode.MQ_ERROR_ILLEGAL_PROPID if len(call.properties) > 1 else StatusCode.MQ_ERROR
        return encode_get_info_answer(call.variants, status)

    client, _ = client_of(answer)
    with pytest.raises(ManagementError, match=r"MQ_ERROR$"):
        await client.get_machine()


async def test_with_an_error_the_values_are_ignored() -> None:
    client, _ = client_of(lambda *_: encode_get_info_answer([Variant(VariantType.UI4, 1)], 0xC00E0001))
    with pytest.raises(ManagementError) as told:
        await client.get_info(MACHINE, [1])
    assert told.value.status == 0xC00E0001


async def test_an_unknown_status_is_told_by_its_number() -> None:
    client, _ = client_of(lambda *_: encode_action_answer(0xE0001234))
    with pytest.raises(ManagementError, match="0xe0001234"):
        await client.act("TIDY")


async def test_an_informational_status_is_no_error() -> None:
    client, _ = client_of(lambda *_: encode_action_answer(0x400E0001))
    await client.act("TIDY")


async def test_the_action_goes_out_as_it_was_written() -> None:
    sent: list[str] = []

    def answer(_: int, stub: bytes) -> bytes:
        sent.append(decode_action(stub).action)
        return encode_action_answer(0)

    client, rpc = client_of(answer)
    await client.act("Eod_Resend", "DIRECT=OS:h\\q")
    assert (sent, rpc.calls) == (["Eod_Resend"], [1])


@pytest.mark.parametrize("stub", [b"", b"\0" * 7, encode_get_info_answer([NULL, NULL], 0)])
async def test_an_answer_that_breaks_the_interface_is_refused(stub: bytes) -> None:
    client, _ = client_of(lambda *_: stub)
    with pytest.raises(NdrError):
        await client.get_machine("connected")
