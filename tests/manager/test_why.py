"""Why: what is told of messages and queues in every state."""

from __future__ import annotations

from uuid import uuid4

import pytest
from tests.manager.conftest import settle

from lanner.manager import ManualClock, QueueManager
from lanner.manager.queues import OutgoingQueue
from lanner.model.errors import QueueNotFoundError
from lanner.model.format_name import DirectName, parse_format_name
from lanner.model.message import Delivery, Message
from lanner.model.message_id import MessageId
from lanner.model.queue import QueueAccess, QueueProperties
from lanner.model.transfer import FORGOTTEN_AFTER, Connection, ConnectionStatus, IncomingTransfer, Sequence

ORDERS = r".\private$\orders"
REMOTE = "DIRECT=HTTP://paris/msmq/private$/orders"


async def sent(manager: QueueManager, queue: str = ORDERS, **attributes: object) -> MessageId:
    message = Message(delivery=Delivery.RECOVERABLE, **attributes)  # type: ignore[arg-type]
    return (await manager.send(queue, message)).message_ids[0]


@pytest.fixture(autouse=True)
async def queue(manager: QueueManager) -> None:
    await manager.create_queue(ORDERS, QueueProperties(max_aborts=1, quota=1))


async def test_a_message_that_waits(manager: QueueManager) -> None:
    told = await manager.why.message(await sent(manager))
    assert told.summary == rf"it waits in {ORDERS} to be received"
    assert told.findings[0].endswith(rf"sent {ORDERS}")
    assert told.advice == (f"receive it: lanner receive '{ORDERS}'",)


async def test_a_message_that_somebody_holds(manager: QueueManager) -> None:
    identifier = await sent(manager)
    transaction = manager.create_transaction()
    await manager.receive(ORDERS, timeout=0, transaction=transaction)
    assert "held by a receive or transaction" in (await manager.why.message(identifier)).summary


async def test_a_message_that_was_received(manager: QueueManager) -> None:
    identifier = await sent(manager)
    await manager.receive(ORDERS, timeout=0)
    told = await manager.why.message(identifier)
    assert told.summary.startswith("it is done: received")
    assert len(told.findings) == 2


async def test_a_dead_letter(manager: QueueManager, clock: ManualClock) -> None:
    identifier = await sent(manager, time_to_be_received=1, negative_journaling=True)
    clock.advance(2)
    await settle(manager)
    told = await manager.why.message(identifier)
    assert "dead letter" in told.summary
    assert any("lanner deadletter replay" in advice for advice in told.advice)


async def test_a_message_that_expired_without_a_trace(manager: QueueManager, clock: ManualClock) -> None:
    identifier = await sent(manager, time_to_be_received=1)
    clock.advance(2)
    await settle(manager)
    told = await manager.why.message(identifier)
    assert told.summary == "it is gone: expired (the time to be received ran out)"
    assert "--deadletter" in told.advice[0]


async def test_an_outgoing_message_and_its_queue(manager: QueueManager) -> None:
    identifier = await sent(manager, REMOTE)
    told = await manager.why.message(identifier)
    assert told.summary == f"it waits to be sent to {REMOTE}"
    assert "no protocol" in told.findings[-1]
    await manager.pause_queue(REMOTE)
    told = await manager.why.queue(REMOTE)
    assert told.summary.startswith("paused")
    assert told.advice == (f"lanner queue resume '{REMOTE}'",)


def outgoing(manager: QueueManager, *statuses: ConnectionStatus) -> OutgoingQueue:
    """The outgoing queue after attempts to connect, as a protocol leaves it."""
    [queue] = manager.transfers.outgoing()
    queue.served_by = "SRMP"
    queue.next_hops = ("http://paris:80",)
    for status in statuses:
        connection = Connection(status=status, time=1.0, address="http://paris:80", detail="it is so")
        queue.connections.append(connection)
    return queue


FAILURES = (
    ConnectionStatus.DNS_FAILURE,
    ConnectionStatus.CONNECTION_REFUSED,
    ConnectionStatus.SOCKET_CONNECT_FAILURE,
    ConnectionStatus.SOCKET_SEND_FAILURE,
    ConnectionStatus.SOCKET_BIND_FAILURE,
    ConnectionStatus.CONNECTION_NOT_READY,
    ConnectionStatus.CERTIFICATE_VALIDATION_FAILURE,
    ConnectionStatus.LOW_RESOURCE,
    ConnectionStatus.UNKNOWN_FAILURE,
)


@pytest.mark.parametrize("status", FAILURES)
async def test_a_queue_that_cannot_connect(manager: QueueManager, status: ConnectionStatus) -> None:
    identifier = await sent(manager, REMOTE)
    outgoing(manager, ConnectionStatus.ESTABLISHED, status, ConnectionStatus.IN_PROCESS)
    words = f"{status.value.replace('-', ' ')} at http://paris:80: it is so"
    told = await manager.why.queue(REMOTE)
    assert told.summary.endswith(f"the last attempt failed: {words}")
    assert "the next hop is http://paris:80" in told.findings
    assert f"1970-01-01 00:00:01.000Z {words}" in told.findings
    assert len(told.advice) == 1
    of_message = await manager.why.message(identifier)
    assert of_message.summary == f"it waits to be sent to {REMOTE}"
    assert set(told.findings[2:]) <= set(of_message.findings)
    assert of_message.advice == (*told.advice, f"look at the queue: lanner why '{REMOTE}'")


async def test_a_failure_that_was_overcome_is_no_matter(manager: QueueManager) -> None:
    await sent(manager, REMOTE)
    queue = outgoing(manager, ConnectionStatus.DNS_FAILURE, ConnectionStatus.ESTABLISHED)
    told = await manager.why.queue(REMOTE)
    assert told.summary == f"{queue.state.value}, served by SRMP"
    assert told.advice == ()


async def test_a_stream_without_receipts(manager: QueueManager) -> None:
    identifier = await sent(manager, REMOTE)
    queue = outgoing(manager, ConnectionStatus.ESTABLISHED)
    manager.transfers.take(queue, 1)
    queue.transfer.unacknowledged = 1
    assert (await manager.why.queue(REMOTE)).advice == ()
    queue.transfer.resends = 2
    queue.transfer.resend_time = 60.0
    queue.transfer.unread = 3
    told = await manager.why.queue(REMOTE)
    assert any("sent again 2 times; the next time is 1970-01-01 00:01" in one for one in told.findings)
    assert any("3 messages have arrived" in one for one in told.findings)
    assert "srmp.url" in told.advice[0]
    assert f"lanner srmp reset '{REMOTE}'" in told.advice[1]
    assert "not acknowledged yet" in (await manager.why.message(identifier)).summary


async def test_a_stream_that_may_be_forgotten(manager: QueueManager) -> None:
    await sent(manager, REMOTE)
    transfer = outgoing(manager, ConnectionStatus.ESTABLISHED).transfer
    transfer.unacknowledged = transfer.resends = 1
    transfer.last_acknowledged = Sequence(1, 5, 4)
    transfer.fruitless_resends = FORGOTTEN_AFTER - 1
    assert "srmp.url" in (await manager.why.queue(REMOTE)).advice[0]
    transfer.fruitless_resends = FORGOTTEN_AFTER
    told = await manager.why.queue(REMOTE)
    assert any(f"the last {FORGOTTEN_AFTER} without a receipt" in one for one in told.findings)
    look, reset, receipts = told.advice
    assert "lanner why" in look
    assert f"lanner srmp reset '{REMOTE}'" in reset
    assert "srmp.url" in receipts


async def test_a_stream_that_comes_in_without_its_beginning(manager: QueueManager) -> None:
    queue = manager.transfers.find(ORDERS)
    assert queue is not None
    queue.incoming_transfers[uuid4()] = IncomingTransfer(
        format_name="", sender=uuid4(), stream=0, number=0, last_access=1.0, rejections=2
    )
    told = await manager.why.queue(ORDERS)
    assert any("its first message never came" in one for one in told.findings)
    assert any("lanner srmp reset" in one for one in told.advice)


async def test_a_stream_that_comes_in_and_is_stuck(manager: QueueManager) -> None:
    name = parse_format_name(REMOTE)
    assert isinstance(name, DirectName)
    queue = manager.transfers.local_queue(name)
    assert queue is not None
    for rejections in (0, 4):
        sender = uuid4()
        queue.incoming_transfers[sender] = IncomingTransfer(
            format_name="", sender=sender, stream=1, number=7, last_access=1.0, rejections=rejections
        )
    findings = [one for one in (await manager.why.queue(ORDERS)).findings if "stream from" in one]
    assert len(findings) == 1
    assert f"the last 4 messages of the stream from {sender} were not taken" in findings[0]


async def test_a_message_that_nobody_knows(manager: QueueManager) -> None:
    told = await manager.why.message(MessageId.of(manager.identifier, 12345))
    assert told.summary == "nothing is known of it here"


async def test_a_queue_with_poison_no_reader_and_no_room(manager: QueueManager, clock: ManualClock) -> None:
    await sent(manager, label="poison")
    transaction = manager.create_transaction()
    await manager.receive(ORDERS, timeout=0, transaction=transaction)
    await manager.transaction_abort(transaction)
    await sent(manager, body=bytes(700))
    clock.advance(3600)
    told = await manager.why.queue(ORDERS)
    assert told.summary == "1 messages wait"
    assert "the oldest came 60 minutes ago" in told.findings
    assert any("kept aborting" in finding for finding in told.findings)
    assert any("it is full" in advice for advice in told.advice)
    assert any("nobody has the queue open" in advice for advice in told.advice)


async def test_an_empty_queue_and_one_that_is_not_there(manager: QueueManager) -> None:
    assert (await manager.why.queue(ORDERS)).summary == "it is empty"
    with pytest.raises(QueueNotFoundError, match="did you mean"):
        await manager.why.queue(r".\private$\oders")


async def test_the_oldest_message_counts_whatever_its_priority(
    manager: QueueManager, clock: ManualClock
) -> None:
    await sent(manager, priority=0)
    oldest = clock.time()
    clock.advance(100)
    await sent(manager, priority=7)
    assert await manager.oldest_arrival(ORDERS) == oldest
    manager.open_queue(ORDERS, QueueAccess.PEEK)
