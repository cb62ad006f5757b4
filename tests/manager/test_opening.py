from __future__ import annotations

import itertools

import pytest
from tests.manager.conftest import (
    DEAD_LETTER,
    ELSEWHERE,
    ORDERS,
    SYSTEM_JOURNAL,
    Opener,
    bodies,
    committing,
    contents,
    counts,
    durable,
    only_place,
    opened_for,
    started,
    stuck_writer,
)

from lanner.manager import QueueManager
from lanner.model.errors import (
    AccessDeniedError,
    MessageNotFoundError,
    OperationCancelledError,
    QueueNotFoundError,
    SharingViolationError,
    StaleHandleError,
    UnsupportedAccessModeError,
    UnsupportedOperationError,
)
from lanner.model.queue import QueueAccess, QueueProperties, ShareMode
from lanner.model.security import SecurityDescriptor, Sid, Token

ALICE, BOB = Sid.parse("S-1-5-21-1-2-3-1001"), Sid.parse("S-1-5-21-1-2-3-1002")
HTTP = "DIRECT=HTTP://here/msmq/private$/orders"
TWO = r"DIRECT=OS:here\private$\other,DIRECT=OS:here\private$\orders"

LOCAL_ACCESSES = (QueueAccess.RECEIVE, QueueAccess.PEEK, QueueAccess.SEND, QueueAccess.MOVE)
ADMIN_ACCESSES = (QueueAccess.RECEIVE_ADMIN, QueueAccess.PEEK_ADMIN)
LOCAL_MODES = list(itertools.product(LOCAL_ACCESSES, ShareMode))
OUTGOING_MODES = list(itertools.product((*ADMIN_ACCESSES, QueueAccess.SEND), ShareMode))

Mode = tuple[QueueAccess, ShareMode]


# Handles.


async def test_a_handle_counts_as_long_as_it_is_open(manager: QueueManager, orders: str) -> None:
    first = manager.open_queue(orders, QueueAccess.PEEK)
    second = manager.open_queue(orders, QueueAccess.SEND)
    assert manager.queue(orders).open_handles == 2
    assert first.number != second.number
    manager.close_queue(first)
    manager.close_queue(first)
    assert manager.queue(orders).open_handles == 1


async def test_a_closed_handle_is_stale(manager: QueueManager, orders: str) -> None:
    handle = manager.open_queue(orders, QueueAccess.RECEIVE)
    cursor = manager.open_cursor(handle)
    manager.close_queue(handle)
    assert cursor.is_closed
    with pytest.raises(StaleHandleError):
        await manager.dequeue_message(handle, timeout=0)
    with pytest.raises(StaleHandleError):
        manager.open_cursor(handle)
    with pytest.raises(StaleHandleError):
        await manager.peek_message(handle, timeout=0, cursor=cursor)


async def test_closing_a_handle_cancels_its_waiting_reads_and_no_others(
    manager: QueueManager, orders: str
) -> None:
    mine = manager.open_queue(orders, QueueAccess.RECEIVE)
    with opened_for(manager, orders) as theirs:
        cancelled = await started(manager.dequeue_message(mine))
        served = await started(manager.dequeue_message(theirs))
        manager.close_queue(mine)
        with pytest.raises(OperationCancelledError):
            await cancelled
        await manager.send(orders, durable(b"one"))
        assert (await served).body == b"one"


@pytest.mark.parametrize("access", QueueAccess)
async def test_a_handle_does_what_it_was_opened_for_and_nothing_else(
    manager: QueueManager, orders: str, far: str, access: QueueAccess
) -> None:
    name = far if access.is_admin else orders
    outcome = await manager.send(name, durable(b"one"))
    with opened_for(manager, name, access) as handle:
        if access is QueueAccess.SEND:
            await manager.enqueue_message(handle, durable())
        else:
            with pytest.raises(UnsupportedAccessModeError, match="not for send"):
                await manager.enqueue_message(handle, durable())
        if access.reads:
            assert (await manager.peek_message(handle, timeout=0)).body == b"one"
            manager.open_cursor(handle)
        else:
            with pytest.raises(UnsupportedAccessModeError, match="not for peek"):
                await manager.peek_message(handle, timeout=0)
            with pytest.raises(UnsupportedAccessModeError, match="not for peek"):
                manager.open_cursor(handle)
        if access.consumes:
            assert (await manager.dequeue_message(handle, timeout=0)).body == b"one"
            return
        for refused in (
            manager.dequeue_message(handle, timeout=0),
            manager.dequeue_messages(handle, 5, timeout=0),
            manager.dequeue_message_begin(handle, timeout=0),
            manager.read_message_by_lookup_identifier(handle, only_place(outcome)),
            manager.move_message(handle, only_place(outcome), orders + ";later"),
        ):
            with pytest.raises(UnsupportedAccessModeError, match="not for receive"):
                await refused
    assert b"one" in await bodies(manager, name)
    assert manager.queue(orders).subqueues == ()


# What can be opened for what.


@pytest.mark.parametrize("access", [access for access in QueueAccess if access is not QueueAccess.SEND])
def test_what_is_not_there_can_only_be_sent_to(manager: QueueManager, access: QueueAccess) -> None:
    for name in (ORDERS, ELSEWHERE):
        with pytest.raises(QueueNotFoundError):
            manager.open_queue(name, access)
    assert manager.outgoing_queues() == []


@pytest.mark.parametrize("access", ADMIN_ACCESSES)
async def test_administrative_access_is_for_outgoing_queues(
    manager: QueueManager, orders: str, access: QueueAccess
) -> None:
    for name in (orders, orders + ";journal", DEAD_LETTER):
        with pytest.raises(UnsupportedAccessModeError, match="not an outgoing queue"):
            manager.open_queue(name, access)


@pytest.mark.parametrize("access", [QueueAccess.RECEIVE, QueueAccess.PEEK])
def test_an_outgoing_queue_is_read_with_administrative_access_alone(
    manager: QueueManager, far: str, access: QueueAccess
) -> None:
    with pytest.raises(UnsupportedOperationError, match="on another machine") as caught:
        manager.open_queue(far, access)
    assert "RECEIVE_ADMIN" in caught.value.hint


@pytest.mark.parametrize("access", [QueueAccess.RECEIVE, QueueAccess.PEEK, QueueAccess.MOVE])
@pytest.mark.parametrize("name", [HTTP, "MULTICAST=234.1.1.1:8001"])
async def test_names_that_can_only_be_sent_to(
    manager: QueueManager, orders: str, name: str, access: QueueAccess
) -> None:
    with pytest.raises(UnsupportedOperationError, match="can only be sent to"):
        manager.open_queue(name, access)


async def test_the_machines_own_queues_cannot_be_sent_to(manager: QueueManager) -> None:
    with pytest.raises(UnsupportedOperationError):
        manager.open_queue(f"MACHINE={manager.identifier};DEADLETTER", QueueAccess.SEND)
    for name in (DEAD_LETTER, SYSTEM_JOURNAL, f"MACHINE={manager.identifier};DEADXACT"):
        with opened_for(manager, name, QueueAccess.RECEIVE):
            pass


@pytest.mark.parametrize("access", [access for access in QueueAccess if access is not QueueAccess.SEND])
async def test_several_queues_at_once_can_only_be_sent_to(
    manager: QueueManager, orders: str, other: str, access: QueueAccess
) -> None:
    with pytest.raises(UnsupportedOperationError, match="only be opened for sending"):
        manager.open_queue(TWO, access)


async def test_several_queues_at_once_are_opened_for_everybody(
    manager: QueueManager, orders: str, other: str
) -> None:
    with pytest.raises(UnsupportedAccessModeError):
        manager.open_queue(TWO, QueueAccess.SEND, share=ShareMode.DENY_RECEIVE)
    with opened_for(manager, TWO, QueueAccess.SEND) as handle:
        assert [str(element.format_name) for element in handle.elements] == TWO.split(",")[::-1]
        assert manager.queue(orders).open_handles == manager.queue(other).open_handles == 1
        with pytest.raises(UnsupportedAccessModeError):
            manager.open_cursor(handle)
    assert manager.queue(orders).open_handles == manager.queue(other).open_handles == 0
    with pytest.raises(StaleHandleError):
        await manager.enqueue_message(handle, durable())


async def test_one_wrong_element_opens_nothing(manager: QueueManager, other: str) -> None:
    with pytest.raises(QueueNotFoundError):
        manager.open_queue(TWO, QueueAccess.SEND)
    assert manager.queue(other).open_handles == 0


async def test_an_element_that_is_named_twice_is_opened_once(
    manager: QueueManager, orders: str, other: str
) -> None:
    with opened_for(manager, f"{TWO},{TWO.upper()}", QueueAccess.SEND) as handle:
        assert len(handle.elements) == 2
        assert str(handle.format_name).count(",") == 1
    with opened_for(
        manager, r"DIRECT=OS:.\private$\orders,direct=os:.\Private$\Orders", QueueAccess.SEND
    ) as handle:
        assert handle.elements == ()
        assert handle.queue.name == orders


# Sharing.


def excludes(one: Mode, other: Mode) -> bool:
    """The decision: a reader that denies receiving, and one that receives, exclude each other."""

    def denies(mode: Mode, taker: Mode) -> bool:
        return mode[1] is ShareMode.DENY_RECEIVE and mode[0].reads and taker[0].consumes

    return denies(one, other) or denies(other, one)


async def check_sharing(manager: QueueManager, name: str, first: Mode, second: Mode) -> None:
    with opened_for(manager, name, first[0], share=first[1]):
        if excludes(first, second):
            with pytest.raises(SharingViolationError):
                manager.open_queue(name, second[0], share=second[1])
        else:
            with opened_for(manager, name, second[0], share=second[1]):
                pass
    assert manager.queue(name).open_handles == 0


@pytest.mark.parametrize("first", LOCAL_MODES, ids=str)
async def test_which_handles_on_a_queue_exclude_each_other(
    manager: QueueManager, orders: str, first: Mode
) -> None:
    for second in LOCAL_MODES:
        await check_sharing(manager, orders, first, second)


@pytest.mark.parametrize("first", OUTGOING_MODES, ids=str)
async def test_which_handles_on_an_outgoing_queue_exclude_each_other(
    manager: QueueManager, far: str, first: Mode
) -> None:
    for second in OUTGOING_MODES:
        await check_sharing(manager, far, first, second)


@pytest.mark.parametrize(
    ("first", "second", "is_refused"),
    [
        ((QueueAccess.RECEIVE, ShareMode.DENY_RECEIVE), (QueueAccess.RECEIVE, ShareMode.DENY_RECEIVE), True),
        ((QueueAccess.RECEIVE, ShareMode.DENY_RECEIVE), (QueueAccess.PEEK, ShareMode.DENY_RECEIVE), True),
        ((QueueAccess.RECEIVE, ShareMode.DENY_RECEIVE), (QueueAccess.RECEIVE, ShareMode.DENY_NONE), True),
        ((QueueAccess.RECEIVE, ShareMode.DENY_RECEIVE), (QueueAccess.PEEK, ShareMode.DENY_NONE), False),
        ((QueueAccess.PEEK, ShareMode.DENY_RECEIVE), (QueueAccess.RECEIVE, ShareMode.DENY_NONE), True),
        ((QueueAccess.PEEK, ShareMode.DENY_RECEIVE), (QueueAccess.PEEK, ShareMode.DENY_RECEIVE), False),
        ((QueueAccess.RECEIVE, ShareMode.DENY_NONE), (QueueAccess.RECEIVE, ShareMode.DENY_RECEIVE), True),
        ((QueueAccess.RECEIVE, ShareMode.DENY_NONE), (QueueAccess.PEEK, ShareMode.DENY_RECEIVE), True),
        ((QueueAccess.RECEIVE, ShareMode.DENY_NONE), (QueueAccess.RECEIVE, ShareMode.DENY_NONE), False),
        ((QueueAccess.PEEK, ShareMode.DENY_NONE), (QueueAccess.RECEIVE, ShareMode.DENY_RECEIVE), False),
    ],
)
def test_the_decision_agrees_with_the_rules_of_open_queue(
    first: Mode, second: Mode, is_refused: bool
) -> None:
    assert excludes(first, second) == is_refused


async def test_a_queue_can_be_opened_again_when_the_other_handle_is_closed(
    manager: QueueManager, orders: str
) -> None:
    with opened_for(manager, orders, share=ShareMode.DENY_RECEIVE):
        with pytest.raises(SharingViolationError, match="open elsewhere for receive"):
            await manager.receive(orders, timeout=0)
        await manager.send(orders, durable(b"one"))
    assert (await manager.receive(orders, timeout=0)).body == b"one"


# Access control.


def allowing(rights: int) -> SecurityDescriptor:
    return SecurityDescriptor.from_sddl(f"O:BAD:(A;;{rights:#x};;;{ALICE})")


@pytest.mark.parametrize(
    ("rights", "allowed"),
    [
        (0x1, set()),
        (0x2, {QueueAccess.PEEK}),
        (0x3, {QueueAccess.PEEK, QueueAccess.RECEIVE, QueueAccess.MOVE}),
        (0x4, {QueueAccess.SEND}),
        (0x8, set()),
        (0xF003F, set(LOCAL_ACCESSES)),
    ],
)
async def test_a_queue_is_opened_by_those_whom_its_descriptor_allows(
    manager: QueueManager, orders: str, rights: int, allowed: set[QueueAccess]
) -> None:
    await manager.change_queue(orders, security=allowing(rights))
    alice, bob = Token.of_user(ALICE), Token.of_user(BOB)
    for access in LOCAL_ACCESSES:
        if access in allowed:
            with opened_for(manager, orders, access, token=alice):
                pass
        else:
            with pytest.raises(AccessDeniedError, match=str(ALICE)):
                manager.open_queue(orders, access, token=alice)
        with pytest.raises(AccessDeniedError, match=str(BOB)):
            manager.open_queue(orders, access, token=bob)
        with opened_for(manager, orders, access):
            pass
    assert manager.queue(orders).open_handles == 0


@pytest.mark.parametrize(
    ("rights", "allowed"),
    [(0x3, {QueueAccess.PEEK}), (0xA, {QueueAccess.PEEK, QueueAccess.RECEIVE}), (0x8, set())],
)
async def test_a_journal_asks_for_rights_of_its_own(
    manager: QueueManager, orders: str, rights: int, allowed: set[QueueAccess]
) -> None:
    await manager.change_queue(orders, security=allowing(rights))
    for access in (QueueAccess.PEEK, QueueAccess.RECEIVE):
        if access in allowed:
            with opened_for(manager, orders + ";journal", access, token=Token.of_user(ALICE)):
                pass
        else:
            with pytest.raises(AccessDeniedError):
                manager.open_queue(orders + ";journal", access, token=Token.of_user(ALICE))


async def test_a_subqueue_has_the_descriptor_of_its_queue(manager: QueueManager, orders: str) -> None:
    await manager.change_queue(orders, security=allowing(0x2))
    later, alice = orders + ";later", Token.of_user(ALICE)
    with opened_for(manager, later, QueueAccess.PEEK, token=alice), pytest.raises(AccessDeniedError):
        manager.open_queue(later, QueueAccess.RECEIVE, token=alice)
    with pytest.raises(AccessDeniedError):
        manager.open_queue(later, QueueAccess.PEEK, token=Token.of_user(BOB))
    assert manager.queue(orders).subqueues == ()


async def test_the_short_ways_check_the_token_too(manager: QueueManager, orders: str) -> None:
    await manager.change_queue(orders, security=allowing(0x4))
    alice, bob = Token.of_user(ALICE), Token.of_user(BOB)
    await manager.send(orders, durable(b"one"), token=alice)
    for refused in (
        manager.send(orders, durable(), token=bob),
        manager.send_many(orders, [durable()], token=bob),
        manager.receive(orders, timeout=0, token=alice),
        manager.peek(orders, timeout=0, token=alice),
    ):
        with pytest.raises(AccessDeniedError):
            await refused
    assert await bodies(manager, orders) == [b"one"]


async def test_one_element_that_denies_access_keeps_all_of_them_closed(
    manager: QueueManager, orders: str, other: str
) -> None:
    await manager.change_queue(other, security=allowing(0x2))
    with pytest.raises(AccessDeniedError):
        await manager.send(TWO, durable(), token=Token.of_user(ALICE))
    assert counts(manager, orders) == (0, 0)


async def test_a_new_queue_lets_everybody_in(manager: QueueManager, orders: str) -> None:
    anonymous = Token.everyone_anonymous()
    await manager.send(orders, durable(b"one"), token=anonymous)
    assert (await manager.receive(orders, timeout=0, token=anonymous)).body == b"one"


# Subqueues.


async def test_a_subqueue_is_there_while_it_is_open(manager: QueueManager, orders: str) -> None:
    with opened_for(manager, orders + ";later"), opened_for(manager, orders + ";LATER", QueueAccess.PEEK):
        assert manager.queue(orders).subqueues == ("later",)
    assert manager.queue(orders).subqueues == ()
    with pytest.raises(QueueNotFoundError):
        manager.queue(orders + ";later")


@pytest.mark.parametrize("target", [";later", "format"])
async def test_a_subqueue_is_made_by_a_move_and_goes_with_its_last_message(
    manager: QueueManager, orders: str, target: str
) -> None:
    target = r"DIRECT=OS:here\private$\orders;later" if target == "format" else orders + target
    sent = await manager.send_many(orders, [durable(b"one"), durable(b"two")])
    with opened_for(manager, orders) as handle:
        for lookup_id in sent.lookup_ids:
            await manager.move_message(handle, lookup_id, target)
    assert manager.queue(orders).subqueues == ("later",)
    assert await bodies(manager, orders + ";later") == [b"one", b"two"]
    await manager.receive(orders + ";later", timeout=0)
    assert manager.queue(orders).subqueues == ("later",)
    await manager.receive(orders + ";later", timeout=0)
    assert manager.queue(orders).subqueues == ()
    assert manager.total_bytes == 0


async def test_a_reader_can_wait_for_what_is_moved_to_a_subqueue(manager: QueueManager, orders: str) -> None:
    sent = await manager.send(orders, durable(b"one"))
    waiting = await started(manager.receive(orders + ";later"))
    with opened_for(manager, orders) as handle:
        await manager.move_message(handle, only_place(sent), orders + ";later")
    assert (await waiting).body == b"one"
    assert manager.queue(orders).subqueues == ()


async def test_a_subqueue_stays_while_a_message_is_on_its_way_there(
    manager: QueueManager, orders: str
) -> None:
    place = only_place(await manager.send(orders, durable(b"one")))
    with opened_for(manager, orders) as handle, stuck_writer(manager):
        moving = await started(manager.move_message(handle, place, orders + ";later"))
        await committing(manager)
        with opened_for(manager, orders + ";later"):
            pass
    await moving
    assert await bodies(manager, orders + ";later") == [b"one"]


async def test_a_move_that_fails_leaves_no_subqueue(manager: QueueManager, orders: str) -> None:
    with opened_for(manager, orders) as handle, pytest.raises(MessageNotFoundError):
        await manager.move_message(handle, 12345, orders + ";later")
    assert manager.queue(orders).subqueues == ()


async def test_a_subqueue_survives_a_restart_with_what_is_in_it(opened: Opener) -> None:
    async with opened() as manager:
        await manager.create_queue(ORDERS)
        sent = await manager.send(ORDERS, durable(b"one"))
        with opened_for(manager, ORDERS) as handle:
            await manager.move_message(handle, only_place(sent), ORDERS + ";Later")
    async with opened() as manager:
        assert manager.queue(ORDERS).subqueues == ("Later",)
        (message,) = await contents(manager, ORDERS + ";later")
        assert (message.body, message.lookup_id) == (b"one", only_place(sent))


async def test_journals_and_the_systems_queues_have_no_subqueues(manager: QueueManager, orders: str) -> None:
    for name in (r".\private$\order_queue$;later", r"DIRECT=OS:here\private$\order_queue$;later"):
        with pytest.raises(UnsupportedOperationError, match="no subqueues"):
            manager.open_queue(name, QueueAccess.RECEIVE)


async def test_a_subqueue_of_nothing_is_not_there(manager: QueueManager) -> None:
    for name in (ORDERS + ";later", r"DIRECT=OS:here\private$\orders;later", r"elsewhere\private$\far;later"):
        with pytest.raises(QueueNotFoundError):
            manager.open_queue(name, QueueAccess.RECEIVE)


async def test_a_subqueue_shows_the_properties_of_its_queue(manager: QueueManager) -> None:
    properties = QueueProperties(label="Orders", quota=5)
    await manager.create_queue(ORDERS, properties)
    with opened_for(manager, ORDERS + ";later"):
        assert manager.queue(ORDERS + ";later").properties == properties
    assert manager.queue(ORDERS + ";journal").properties == properties
