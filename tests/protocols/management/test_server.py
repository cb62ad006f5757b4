"""R_QMMgmtGetInfo and R_QMMgmtAction: every action and every error (MS-MQMR 3.1.4.1, 3.1.4.2)."""

from __future__ import annotations

import asyncio
import logging
from unittest import mock

import pytest
from tests.protocols.management.conftest import (
    ADMINISTRATOR,
    FAR,
    ORDERS,
    ORDERS_NAME,
    SOMEBODY,
    Desk,
    queue_object,
)

from lanner.manager import QueueManager
from lanner.manager.events import ConnectionChanged, QueueCreated, StreamResendWanted
from lanner.model.codes import StatusCode
from lanner.model.errors import StoreFullError
from lanner.model.message import Delivery, Message
from lanner.model.queue import OutgoingState
from lanner.protocols.management import server as server_module
from lanner.protocols.management.properties import MACHINE_PROPERTIES, QUEUE_PROPERTIES
from lanner.protocols.management.queue_format import QueueFormat, QueueFormatType
from lanner.protocols.management.variant import NULL, Variant, VariantType, write_variants
from lanner.protocols.management.wire import (
    MACHINE,
    QMMGMT,
    ManagementObject,
    ObjectType,
    decode_get_info_answer,
    encode_get_info,
)
from lanner.protocols.rpc.interface import ANONYMOUS, Access, AuthLevel, CallContext, Caller
from lanner.protocols.rpc.ndr import NdrError, NdrWriter

SESSION = ManagementObject(ObjectType.SESSION)
OK = StatusCode.MQ_OK
S = StatusCode


@pytest.fixture
async def orders(manager: QueueManager) -> str:
    await manager.create_queue(ORDERS)
    return ORDERS_NAME


# Getting.


async def test_all_properties_at_once(desk: Desk, orders: str) -> None:
    variants, status = await desk.ask(MACHINE, *MACHINE_PROPERTIES)
    assert (len(variants), status) == (6, OK)
    desk.outgoing()
    for name in (orders, FAR):
        variants, status = await desk.ask(queue_object(name), *QUEUE_PROPERTIES)
        assert (len(variants), status) == (27, OK)


async def test_values_stand_where_their_properties_stand(desk: Desk, orders: str) -> None:
    variants, _ = await desk.ask(queue_object(orders), 11, 7, 11)
    local = Variant(VariantType.LPWSTR, "LOCAL CONNECTION")
    assert variants == [local, Variant(VariantType.UI4, 0), local]


async def test_128_properties(desk: Desk) -> None:
    variants, status = await desk.ask(MACHINE, *[4] * 128)
    assert status == OK
    assert len(variants) == 128


ERRORS = [
    (SESSION, (1,), S.MQ_ERROR_INVALID_PARAMETER),
    (MACHINE, (0,), S.MQ_ERROR_ILLEGAL_PROPID),
    (MACHINE, (4, 7), S.MQ_ERROR_ILLEGAL_PROPID),
    (queue_object(ORDERS_NAME), (7, 28), S.MQ_ERROR_ILLEGAL_PROPID),
    (queue_object(None), (7,), S.MQ_ERROR_INVALID_PARAMETER),
    (queue_object(r"DIRECT=OS:here\private$\nothing"), (7,), S.MQ_ERROR_QUEUE_NOT_FOUND),
    (queue_object(FAR), (7,), S.MQ_ERROR_QUEUE_NOT_FOUND),
    (queue_object("MULTICAST=234.1.1.1:1"), (7,), S.MQ_ERROR_QUEUE_NOT_FOUND),
    (queue_object(QueueFormat(QueueFormatType.UNKNOWN)), (7,), S.MQ_ERROR_ILLEGAL_FORMATNAME),
    (queue_object(QueueFormat(QueueFormatType.DIRECT, text="nonsense")), (7,), S.MQ_ERROR_ILLEGAL_FORMATNAME),
    (queue_object(QueueFormat(QueueFormatType.MACHINE)), (7,), S.MQ_ERROR_ILLEGAL_FORMATNAME),
]


@pytest.mark.parametrize(("target", "numbers", "expected"), ERRORS)
async def test_an_error_is_told_and_nothing_is_set(
    desk: Desk, orders: str, target: ManagementObject, numbers: tuple[int, ...], expected: int
) -> None:
    variants, status = await desk.ask(target, *numbers)
    assert status == expected
    assert variants == [NULL] * len(numbers)


async def test_looking_makes_no_queue_and_opens_none(desk: Desk, orders: str, manager: QueueManager) -> None:
    made: list[QueueCreated] = []
    manager.events.subscribe(QueueCreated, made.append)
    await desk.ask(queue_object(FAR), 7)
    await desk.act(queue_object(FAR), "PAUSE")
    await desk.ask(queue_object(orders), *QUEUE_PROPERTIES)
    assert made == []
    assert manager.queue(ORDERS).open_handles == 0


async def test_with_an_error_the_values_go_back_as_they_came(desk: Desk) -> None:
    given = [Variant(VariantType.UI4, 7), Variant(VariantType.LPWSTR, "mine")]
    writer = NdrWriter()
    write_variants(writer, given)
    stub = encode_get_info(MACHINE, [4, 99])[:24] + writer.getvalue()
    answer = decode_get_info_answer(await desk.server.get_info(ADMINISTRATOR, stub), 2)
    assert (answer.variants, answer.status) == (given, S.MQ_ERROR_ILLEGAL_PROPID)


async def test_values_that_are_not_null_before_do_not_matter(desk: Desk) -> None:
    writer = NdrWriter()
    write_variants(writer, [Variant(VariantType.UI4, 7)])
    stub = encode_get_info(MACHINE, [4])[:20] + writer.getvalue()[:4] + writer.getvalue()[8:]
    answer = decode_get_info_answer(await desk.server.get_info(ADMINISTRATOR, stub), 1)
    assert answer.variants == [Variant(VariantType.LPWSTR, "CONNECTED")]


async def test_a_request_in_the_other_byte_order(desk: Desk) -> None:
    context = CallContext(caller=ADMINISTRATOR.caller, big_endian=True)
    stub = await desk.server.get_info(context, encode_get_info(MACHINE, [4], big_endian=True))
    assert decode_get_info_answer(stub, 1).variants == [Variant(VariantType.LPWSTR, "CONNECTED")]


async def test_a_stub_that_is_none_is_the_rpc_layers_to_refuse(desk: Desk) -> None:
    for operation in (desk.server.get_info, desk.server.action):
        with pytest.raises(NdrError):
            await operation(ADMINISTRATOR, b"\0" * 10)


# Acting.


@pytest.mark.parametrize("spelling", [str.upper, str.lower, str.title])
async def test_disconnect_and_connect_in_any_case(desk: Desk, manager: QueueManager, spelling: type) -> None:
    told: list[ConnectionChanged] = []
    manager.events.subscribe(ConnectionChanged, told.append)
    states = []
    for action in ("DISCONNECT", "CONNECT"):
        assert await desk.act(MACHINE, spelling(action)) == OK
        states.append(manager.is_online)
    assert states == [False, True]
    assert told == [ConnectionChanged(False), ConnectionChanged(True)]


@pytest.mark.parametrize("action", ["TIDY", "tidy", "TiDy"])
async def test_tidy_compacts_and_purges_nothing(
    desk: Desk, orders: str, manager: QueueManager, action: str
) -> None:
    for _ in range(200):
        await manager.send(ORDERS, Message(body=b"x" * 5000, delivery=Delivery.RECOVERABLE))
    await manager.send(FAR, Message(body=b"far", delivery=Delivery.RECOVERABLE))
    await manager.store.compact()
    before = manager.store.path.stat().st_size
    for _ in range(190):
        await manager.receive(ORDERS)
    assert await desk.act(MACHINE, action) == OK
    assert manager.queue(ORDERS).messages == 10
    assert manager.queue(FAR).messages == 1
    assert manager.store.path.stat().st_size < before
    assert {(await manager.receive(ORDERS)).body for _ in range(10)} == {b"x" * 5000}


async def test_two_who_tidy_at_once_wait_for_one_and_one_who_leaves_does_not_stop_it(
    desk: Desk, manager: QueueManager
) -> None:
    gate = asyncio.Event()
    calls = 0

    async def compact() -> int:
        nonlocal calls
        calls += 1
        await gate.wait()
        return 0

    with mock.patch.object(manager.store, "compact", compact):
        first, second = (asyncio.ensure_future(desk.act(MACHINE, "TIDY")) for _ in range(2))
        await asyncio.sleep(0.01)
        first.cancel()
        gate.set()
        assert await second == OK
    assert calls == 1


@pytest.mark.parametrize("spelling", [str.upper, str.lower, str.title])
async def test_pause_and_resume_in_any_case(desk: Desk, manager: QueueManager, spelling: type) -> None:
    await manager.send(FAR, Message(delivery=Delivery.RECOVERABLE))
    queue = desk.outgoing()
    states = []
    for action in ("PAUSE", "RESUME"):
        assert await desk.act(queue_object(FAR), spelling(action)) == OK
        states.append(queue.state)
    assert states == [OutgoingState.ON_HOLD, OutgoingState.INACTIVE]


@pytest.mark.parametrize("action", ["EOD_RESEND", "eod_resend", "Eod_Resend"])
async def test_resending_is_asked_of_the_protocol(desk: Desk, manager: QueueManager, action: str) -> None:
    told: list[StreamResendWanted] = []
    manager.events.subscribe(StreamResendWanted, told.append)
    queue = desk.outgoing()
    assert await desk.act(queue_object(FAR), action) == OK
    assert told == [StreamResendWanted(queue)]


MACHINE_ACTIONS = ("CONNECT", "DISCONNECT", "TIDY")
QUEUE_ACTIONS = ("PAUSE", "RESUME", "EOD_RESEND")


@pytest.mark.parametrize(
    ("target", "action", "expected"),
    [
        *((SESSION, each, S.MQ_ERROR_INVALID_PARAMETER) for each in (*MACHINE_ACTIONS, *QUEUE_ACTIONS)),
        *((MACHINE, each, S.MQ_ERROR_INVALID_PARAMETER) for each in QUEUE_ACTIONS),
        *((queue_object(FAR), each, S.MQ_ERROR_INVALID_PARAMETER) for each in MACHINE_ACTIONS),
        (MACHINE, "", S.MQ_ERROR_INVALID_PARAMETER),
        (MACHINE, "PURGE", S.MQ_ERROR_INVALID_PARAMETER),
        (MACHINE, "TIDY ", S.MQ_ERROR_INVALID_PARAMETER),
        (queue_object(FAR), "PURGE", S.MQ_ERROR_INVALID_PARAMETER),
        (queue_object(None), "PAUSE", S.MQ_ERROR_INVALID_PARAMETER),
        (queue_object(r"DIRECT=OS:x\private$\y"), "PAUSE", S.MQ_ERROR_QUEUE_NOT_FOUND),
        *(
            (queue_object(ORDERS_NAME), each, S.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION)
            for each in QUEUE_ACTIONS
        ),
        (queue_object(QueueFormat(QueueFormatType.UNKNOWN)), "PAUSE", S.MQ_ERROR_ILLEGAL_FORMATNAME),
    ],
)
async def test_what_cannot_be_done(
    desk: Desk, orders: str, target: ManagementObject, action: str, expected: int
) -> None:
    desk.outgoing()
    assert await desk.act(target, action) == expected
    assert desk.manager.is_online


async def test_who_did_what_is_logged(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    desk.outgoing()
    with caplog.at_level(logging.INFO, server_module.__name__):
        await desk.act(queue_object(FAR), "pause")
        await desk.act(MACHINE, "tidy")
        await desk.act(MACHINE, "purge")
    assert [record.message for record in caplog.records] == [
        f"PAUSE of {FAR} by ada from test",
        "TIDY of the machine by ada from test",
        "a call of ada from test ends with MQ_ERROR_INVALID_PARAMETER: a machine has no action 'purge'",
    ]


# Who may, and what goes wrong.


@pytest.mark.parametrize("context", [SOMEBODY, CallContext(caller=ANONYMOUS)], ids=["user", "anonymous"])
async def test_only_administrators_may_call(
    desk: Desk, orders: str, manager: QueueManager, context: CallContext
) -> None:
    desk.context = context
    assert await desk.ask(queue_object(orders), 7) == ([NULL], S.MQ_ERROR_ACCESS_DENIED)
    assert await desk.act(MACHINE, "DISCONNECT") == S.MQ_ERROR_ACCESS_DENIED
    assert manager.is_online


async def test_anonymous_on_loopback_may_where_the_rpc_layer_says_so(desk: Desk) -> None:
    desk.context = CallContext(caller=Caller(is_administrator=True))
    assert (await desk.ask(MACHINE, 4))[1] == OK


async def test_a_manager_that_stopped(desk: Desk, manager: QueueManager) -> None:
    await manager.close()
    assert (await desk.ask(MACHINE, 4))[1] == S.MQ_ERROR_SERVICE_NOT_AVAILABLE
    assert await desk.act(MACHINE, "CONNECT") == S.MQ_ERROR_SERVICE_NOT_AVAILABLE


async def test_the_code_of_our_own_errors_is_told(desk: Desk, manager: QueueManager) -> None:
    with mock.patch.object(manager.store, "compact", side_effect=StoreFullError("no room")):
        assert await desk.act(MACHINE, "TIDY") == S.MQ_ERROR_MESSAGE_STORAGE_FAILED


async def test_a_defect_is_logged_and_thrown_at_nobody(
    desk: Desk, manager: QueueManager, caplog: pytest.LogCaptureFixture
) -> None:
    with mock.patch.object(server_module, "machine_value", side_effect=ZeroDivisionError):
        assert await desk.ask(MACHINE, 4) == ([NULL], S.MQ_ERROR)
    with mock.patch.object(manager.store, "compact", side_effect=ZeroDivisionError):
        assert await desk.act(MACHINE, "TIDY") == S.MQ_ERROR
    assert [record.exc_info is not None for record in caplog.records] == [True, True]


def test_the_interface(desk: Desk) -> None:
    interface = desk.server.interface(AuthLevel.INTEGRITY)
    assert interface.id == QMMGMT
    assert set(interface.operations) == {0, 1}
    assert interface.access is Access.ADMINISTRATORS
    assert interface.minimum_level is AuthLevel.INTEGRITY
