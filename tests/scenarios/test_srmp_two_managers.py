"""Messages between two queue managers over SRMP, from queue to queue, with all that follows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.scenarios.srmp_machines import Machine

from lanner.model.codes import MessageClass
from lanner.model.message import MAX_MESSAGE_SIZE, Acknowledgments, Delivery, Message
from lanner.model.queue import OutgoingState

DEAD_LETTER = r".\system$;deadletter"
DEADXACT = r".\system$;deadxact"
JOURNAL = r".\system$;journal"

DURABLE = Delivery.RECOVERABLE


@pytest.fixture
async def alpha(tmp_path: Path) -> AsyncIterator[Machine]:
    machine = Machine(tmp_path, "alpha")
    await machine.start()
    yield machine
    await machine.stop()


@pytest.fixture
async def beta(tmp_path: Path) -> AsyncIterator[Machine]:
    machine = Machine(tmp_path, "beta")
    await machine.start()
    yield machine
    await machine.stop()


def numbered(count: int, first: int = 0) -> list[Message]:
    return [Message(label=str(number)) for number in range(first, first + count)]


def labels(count: int) -> list[str]:
    return [str(number) for number in range(count)]


async def send(machine: Machine, address: str, *messages: Message, is_stream: bool) -> None:
    if is_stream:
        await machine.send_stream(address, *messages)
    else:
        await machine.manager.send_many(address, messages)


# The kinds of messages.


@pytest.mark.parametrize("delivery", Delivery)
async def test_a_message_arrives_with_all_it_says(alpha: Machine, beta: Machine, delivery: Delivery) -> None:
    orders = await beta.create("orders")
    sent = Message(
        body=b"\x00body\xff" * 10,
        body_type=8,
        extension=b"extension",
        label="Überweisung <1>",
        application_tag=77,
        priority=5,
        delivery=delivery,
        response_queue=alpha.address("answers"),
    )
    outcome = await alpha.manager.send(beta.address("orders"), sent)
    came = await beta.receive(orders)
    assert came.id == outcome.message_ids[0]
    assert came.source_machine == alpha.manager.identifier
    for name in ("body", "body_type", "extension", "label", "application_tag", "priority", "delivery"):
        assert getattr(came, name) == getattr(sent, name), name
    assert came.response_queue.casefold() == sent.response_queue.casefold()
    await alpha.until_count(beta.address("orders"), 0)


async def test_a_stream_arrives_in_order_and_is_let_go_when_the_receipt_comes(
    alpha: Machine, beta: Machine
) -> None:
    orders = await beta.create("orders", transactional=True)
    for first in range(0, 300, 100):
        await alpha.send_stream(beta.address("orders"), *numbered(100, first))
    await beta.until_count(orders, 300)
    assert await beta.labels(orders) == labels(300)
    await alpha.until_count(beta.address("orders"), 0)
    received = await beta.receive(orders)
    assert received.transaction is not None
    assert received.transaction.first


async def test_a_second_stream_follows_the_first(alpha: Machine, beta: Machine) -> None:
    orders = await beta.create("orders", transactional=True)
    for number in range(4):
        await alpha.send_stream(beta.address("orders"), *numbered(3, number * 3))
        await alpha.until_count(beta.address("orders"), 0)
    assert await beta.labels(orders) == labels(12)


@pytest.mark.parametrize("is_stream", [False, True])
async def test_several_destinations_of_one_message(
    alpha: Machine, beta: Machine, tmp_path: Path, is_stream: bool
) -> None:
    gamma = Machine(tmp_path, "gamma")
    await gamma.start()
    try:
        queues = [
            (beta, await beta.create("one", transactional=is_stream)),
            (beta, await beta.create("two", transactional=is_stream)),
            (gamma, await gamma.create("three", transactional=is_stream)),
        ]
        names = [beta.address("one"), beta.address("two"), gamma.address("three")]
        await send(alpha, ",".join(names), Message(delivery=DURABLE), is_stream=is_stream)
        for machine, queue in queues:
            came = await machine.receive(queue)
            assert sorted(came.destination_queues.casefold().split(",")) == sorted(
                name.casefold() for name in names
            )
        for name in names:
            await alpha.until_count(name, 0)
    finally:
        await gamma.stop()


async def test_the_largest_body_both_ways(alpha: Machine, beta: Machine) -> None:
    body = bytes(range(256)) * (MAX_MESSAGE_SIZE // 256)
    for source, target in ((alpha, beta), (beta, alpha)):
        queue = await target.create("large", transactional=True)
        await source.send_stream(target.address("large"), Message(body=body), Message(body=body))
        assert (await target.receive(queue)).body == body
        assert (await target.receive(queue)).body == body


# Receipts.


async def test_receipts_of_arrival_and_receive(alpha: Machine, beta: Machine) -> None:
    told = await alpha.create("told")
    orders = await beta.create("orders")
    outcome = await alpha.manager.send(
        beta.address("orders"),
        Message(
            label="order",
            delivery=DURABLE,
            administration_queue=alpha.address("told"),
            acknowledgments=Acknowledgments.POSITIVE_ARRIVAL | Acknowledgments.FULL_RECEIVE,
        ),
    )
    arrival = await alpha.receive(told)
    assert arrival.message_class == MessageClass.ACK_REACH_QUEUE
    assert arrival.correlation_id == outcome.message_ids[0]
    await beta.receive(orders)
    received = await alpha.receive(told)
    assert received.message_class == MessageClass.ACK_RECEIVE
    assert received.correlation_id == outcome.message_ids[0]
    await beta.until_count(alpha.address("told"), 0)


@pytest.mark.parametrize("reason", [MessageClass.NACK_QUEUE_DELETED, MessageClass.NACK_QUEUE_PURGED])
@pytest.mark.parametrize("is_stream", [False, True])
async def test_negative_receipts(
    alpha: Machine, beta: Machine, reason: MessageClass, is_stream: bool
) -> None:
    told = await alpha.create("told")
    orders = await beta.create("orders", transactional=is_stream)
    message = Message(
        delivery=DURABLE,
        administration_queue=alpha.address("told"),
        acknowledgments=Acknowledgments.NACK_RECEIVE,
    )
    await send(alpha, beta.address("orders"), message, is_stream=is_stream)
    await beta.until_count(orders, 1)
    if reason is MessageClass.NACK_QUEUE_PURGED:
        await beta.manager.purge_queue(orders)
    else:
        await beta.manager.delete_queue(orders)
    assert (await alpha.receive(told)).message_class == reason
    await alpha.until_count(beta.address("orders"), 0)


# What is kept.


async def test_a_refused_message_is_a_dead_letter(alpha: Machine, beta: Machine) -> None:
    await alpha.manager.send(
        beta.address("nowhere"), Message(label="lost", delivery=DURABLE, negative_journaling=True)
    )
    letter = await alpha.receive(DEAD_LETTER)
    assert (letter.label, letter.message_class) == ("lost", MessageClass.NACK_BAD_DESTINATION_QUEUE)
    assert alpha.count(beta.address("nowhere")) == 0


async def test_refused_messages_of_a_stream_are_transactional_dead_letters(
    alpha: Machine, beta: Machine
) -> None:
    messages = [Message(label=str(number), negative_journaling=True) for number in range(3)]
    await alpha.send_stream(beta.address("nowhere"), *messages)
    await alpha.until_count(DEADXACT, 3)
    assert await alpha.labels(DEADXACT) == labels(3)
    assert alpha.count(beta.address("nowhere")) == 0


async def test_a_dead_letter_queue_of_the_application(alpha: Machine, beta: Machine) -> None:
    own = await alpha.create("dead")
    await alpha.manager.send(
        beta.address("nowhere"),
        Message(label="lost", delivery=DURABLE, negative_journaling=True, dead_letter_queue=own),
    )
    assert (await alpha.receive(own)).label == "lost"


async def test_a_stream_message_that_is_received_is_let_go_finally(alpha: Machine, beta: Machine) -> None:
    orders = await beta.create("orders", transactional=True)
    await alpha.send_stream(beta.address("orders"), Message(label="kept", negative_journaling=True))
    await beta.until_count(orders, 1)
    await asyncio.sleep(0.5)  # the stream receipt alone lets nothing go
    assert alpha.count(beta.address("orders")) == 1
    await beta.receive(orders)
    await alpha.until_count(beta.address("orders"), 0)
    assert alpha.count(DEADXACT) == 0


async def test_a_stream_message_that_nobody_receives_is_a_dead_letter_of_its_sender(
    alpha: Machine, beta: Machine
) -> None:
    orders = await beta.create("orders", transactional=True)
    await alpha.send_stream(beta.address("orders"), Message(label="lost", negative_journaling=True))
    await beta.until_count(orders, 1)
    await beta.manager.purge_queue(orders)
    letter = await alpha.receive(DEADXACT)
    assert (letter.label, letter.message_class) == ("lost", MessageClass.NACK_QUEUE_PURGED)


@pytest.mark.parametrize("is_stream", [False, True])
async def test_a_message_that_does_not_get_there_in_time_is_a_dead_letter(
    alpha: Machine, beta: Machine, is_stream: bool
) -> None:
    orders = await beta.create("orders", transactional=is_stream)
    address = beta.address("orders")
    await beta.stop()
    late = Message(label="late", delivery=DURABLE, negative_journaling=True, time_to_reach_queue=1)
    await send(alpha, address, late, is_stream=is_stream)
    await send(alpha, address, Message(label="patient", delivery=DURABLE), is_stream=is_stream)
    letter = await alpha.receive(DEADXACT if is_stream else DEAD_LETTER)
    assert (letter.label, letter.message_class) == ("late", MessageClass.NACK_REACH_QUEUE_TIMEOUT)
    await beta.start()
    assert (await beta.receive(orders)).label == "patient"
    await alpha.until_count(address, 0)


@pytest.mark.parametrize("is_stream", [False, True])
async def test_a_message_that_arrived_is_journaled(alpha: Machine, beta: Machine, is_stream: bool) -> None:
    await beta.create("orders", transactional=is_stream)
    message = Message(label="kept", body=b"whole", delivery=DURABLE, positive_journaling=True)
    await send(alpha, beta.address("orders"), message, is_stream=is_stream)
    kept = await alpha.receive(JOURNAL)
    assert (kept.label, kept.body) == ("kept", b"whole")
    assert alpha.count(beta.address("orders")) == 0


# Standing still, and starting again.


@pytest.mark.parametrize("is_stream", [False, True])
async def test_pause_and_resume(alpha: Machine, beta: Machine, is_stream: bool) -> None:
    orders = await beta.create("orders", transactional=is_stream)
    address = beta.address("orders")
    await send(alpha, address, *numbered(10), is_stream=is_stream)
    await beta.until_count(orders, 10)
    await alpha.until_count(address, 0)
    await alpha.manager.pause_queue(address)
    await send(alpha, address, *numbered(10, 10), is_stream=is_stream)
    await asyncio.sleep(0.5)
    assert beta.count(orders) == 10
    assert alpha.manager.queue(address).state == OutgoingState.ON_HOLD
    await alpha.manager.resume_queue(address)
    await beta.until_count(orders, 20)
    assert await beta.labels(orders) == labels(20)
    await alpha.until_count(address, 0)


@pytest.mark.parametrize("is_sender", [False, True])
async def test_offline_and_online(alpha: Machine, beta: Machine, is_sender: bool) -> None:
    orders = await beta.create("orders", transactional=True)
    address = beta.address("orders")
    manager = alpha.manager if is_sender else beta.manager
    await alpha.send_stream(address, *numbered(10))
    await beta.until_count(orders, 10)
    manager.take_offline()
    await alpha.send_stream(address, *numbered(10, 10))
    await asyncio.sleep(0.5)
    assert beta.count(orders) == 10
    manager.bring_online()
    await beta.until_count(orders, 20)
    assert await beta.labels(orders) == labels(20)
    await alpha.until_count(address, 0)


@pytest.mark.parametrize("restarted", ["alpha", "beta", "both"])
async def test_a_restart_half_way(alpha: Machine, beta: Machine, restarted: str) -> None:
    orders = await beta.create("orders", transactional=True)
    address = beta.address("orders")
    await alpha.send_stream(address, *numbered(1_000))
    await beta.until(lambda: beta.count(orders) > 100)
    if restarted in ("alpha", "both"):
        await alpha.restart()
    await alpha.send_stream(address, *numbered(1_000, 1_000))
    if restarted in ("beta", "both"):
        await beta.restart()
    await beta.until_count(orders, 2_000)
    assert await beta.labels(orders) == labels(2_000)
    await alpha.until_count(address, 0)
