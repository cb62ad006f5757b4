"""Messages that do not go the straight way: redirected, passed on, with receipts that go elsewhere."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.scenarios.lossy_proxy import CALM, LossyProxy, Weather
from tests.scenarios.srmp_machines import Machine
from tests.scenarios.srmp_process import free_port

from lanner.model.message import MAX_MESSAGE_SIZE, Acknowledgments, Delivery, Message
from lanner.protocols.srmp.redirection import Redirection, Redirections

DURABLE = Delivery.RECOVERABLE


class Machines(NamedTuple):
    alpha: Machine
    beta: Machine
    gamma: Machine
    """It passes on what is for others."""


@pytest.fixture
async def machines(tmp_path: Path) -> AsyncIterator[Machines]:
    made = Machines(
        Machine(tmp_path, "alpha", manager_aliases=("elsewhere",)),
        Machine(tmp_path, "beta"),
        Machine(tmp_path, "gamma", srmp_forward=True),
    )
    async with AsyncExitStack() as stack:
        for machine in made:
            await machine.start()
            stack.push_async_callback(machine.stop)
        yield made


async def through_gamma(machines: Machines, *exceptions: str) -> None:
    """Let alpha reach beta through gamma."""
    alpha, beta, gamma = machines
    way = Redirection(from_=f"{beta.root}/*", to=f"{gamma.root}/msmq/")
    await alpha.srmp.redirect(Redirections(outbound=(way,), outbound_exceptions=exceptions))


async def test_a_durable_message_is_passed_on(machines: Machines) -> None:
    alpha, beta, gamma = machines
    await through_gamma(machines)
    orders = await beta.create("orders")
    told = await alpha.create("told")
    outcome = await alpha.manager.send(
        beta.address("orders"),
        Message(
            label="order",
            body=b"body",
            delivery=DURABLE,
            administration_queue=alpha.address("told"),
            acknowledgments=Acknowledgments.POSITIVE_ARRIVAL,
        ),
    )
    came = await beta.receive(orders)
    assert (came.label, came.body, came.id) == ("order", b"body", outcome.message_ids[0])
    assert came.source_machine == alpha.manager.identifier
    assert gamma.manager.is_outgoing(beta.address("orders"))
    assert (await alpha.receive(told)).correlation_id == came.id


async def test_a_stream_is_passed_on_and_its_receipts_go_to_its_source(machines: Machines) -> None:
    alpha, beta, gamma = machines
    await through_gamma(machines)
    orders = await beta.create("orders", transactional=True)
    for first in range(0, 100, 20):
        messages = [Message(label=str(number)) for number in range(first, first + 20)]
        await alpha.send_stream(beta.address("orders"), *messages)
    await beta.until_count(orders, 100)
    assert await beta.labels(orders) == [str(number) for number in range(100)]
    await alpha.until_count(beta.address("orders"), 0)
    await gamma.until_count(beta.address("orders"), 0)


async def test_a_stream_is_passed_on_while_the_forwarder_restarts(machines: Machines) -> None:
    alpha, beta, gamma = machines
    await through_gamma(machines)
    orders = await beta.create("orders", transactional=True)
    messages = [Message(label=str(number)) for number in range(500)]
    await alpha.send_stream(beta.address("orders"), *messages)
    await beta.until(lambda: beta.count(orders) > 20)
    await gamma.restart()
    await beta.until_count(orders, 500)
    assert await beta.labels(orders) == [str(number) for number in range(500)]
    await alpha.until_count(beta.address("orders"), 0)


async def test_one_that_passes_nothing_on_refuses(machines: Machines) -> None:
    alpha, beta, gamma = machines
    way = Redirection(from_=f"{gamma.root}/*", to=f"{beta.root}/msmq/")
    await alpha.srmp.redirect(Redirections(outbound=(way,)))
    await gamma.create("orders")
    await alpha.manager.send(
        gamma.address("orders"), Message(label="lost", delivery=DURABLE, negative_journaling=True)
    )
    assert (await alpha.receive(r".\system$;deadletter")).label == "lost"


async def test_an_exception_goes_the_straight_way(machines: Machines) -> None:
    alpha, beta, gamma = machines
    await through_gamma(machines, beta.url("direct"))
    for name in ("orders", "direct"):
        queue = await beta.create(name)
        await alpha.manager.send(beta.address(name), Message(label=name, delivery=DURABLE))
        await beta.receive(queue)
    assert gamma.manager.is_outgoing(beta.address("orders"))
    assert not gamma.manager.is_outgoing(beta.address("direct"))


async def test_redirections_last_over_a_restart(machines: Machines) -> None:
    alpha, beta, gamma = machines
    await through_gamma(machines)
    await alpha.restart()
    orders = await beta.create("orders")
    await alpha.manager.send(beta.address("orders"), Message(delivery=DURABLE))
    await beta.receive(orders)
    assert gamma.manager.is_outgoing(beta.address("orders"))


async def test_receipts_go_where_an_administrator_says(machines: Machines) -> None:
    alpha, beta, _ = machines
    proxy = LossyProxy(alpha.port, 1, CALM)
    url = f"http://elsewhere:{await proxy.start()}/msmq/private$/order_queue$"
    try:
        await alpha.srmp.redirect(Redirections(receipts=(Redirection(from_=f"{beta.root}/*", to=url),)))
        orders = await beta.create("orders", transactional=True)
        await alpha.send_stream(beta.address("orders"), Message(label="order"))
        await beta.receive(orders)
        await alpha.until_count(beta.address("orders"), 0)
        assert proxy.met["CLEAN"] == 1
    finally:
        await proxy.stop()


@pytest.mark.parametrize("is_stream", [False, True])
async def test_a_message_is_put_into_another_queue_than_it_names(machines: Machines, is_stream: bool) -> None:
    alpha, beta, _ = machines
    new = await beta.create("new", transactional=is_stream)
    way = Redirection(from_=beta.url("old"), to=beta.url("new"))
    await beta.srmp.redirect(Redirections(inbound=(way,)))
    if is_stream:
        await alpha.send_stream(beta.address("old"), Message(label="order"))
    else:
        await alpha.manager.send(beta.address("old"), Message(label="order", delivery=DURABLE))
    assert (await beta.receive(new)).label == "order"
    await alpha.until_count(beta.address("old"), 0)


async def test_a_message_is_redirected_to_another_machine(machines: Machines) -> None:
    alpha, beta, gamma = machines
    orders = await beta.create("orders")
    way = Redirection(from_=gamma.url("old"), to=beta.url("orders"))
    await gamma.srmp.redirect(Redirections(inbound=(way,)))
    await alpha.manager.send(gamma.address("old"), Message(label="order", delivery=DURABLE))
    assert (await beta.receive(orders)).label == "order"


async def test_a_large_body_takes_longer_than_an_answer_may(tmp_path: Path) -> None:
    alpha = Machine(tmp_path, "alpha", srmp_response_timeout=0.5)
    beta = Machine(tmp_path, "beta")
    slow = Weather(weights=(0, 0, 0, 0, 0, 1), longest_delay=0.1, duplicates=0)
    proxy = LossyProxy(beta.port, 1, slow)
    address = f"DIRECT=http://beta:{await proxy.start()}/msmq/private$/large"
    async with AsyncExitStack() as stack:
        for machine in (alpha, beta):
            await machine.start()
            stack.push_async_callback(machine.stop)
        stack.push_async_callback(proxy.stop)
        large = await beta.create("large")
        began = time.monotonic()
        await alpha.manager.send(address, Message(body=bytes(MAX_MESSAGE_SIZE), delivery=DURABLE))
        assert len((await beta.receive(large)).body) == MAX_MESSAGE_SIZE
        assert time.monotonic() - began > 0.5
        assert proxy.met["DELAYED"] == 1  # the first attempt was the last


async def test_a_receipt_for_what_was_sent_before_a_restart_counts(tmp_path: Path) -> None:
    back_port = free_port()
    alpha = Machine(tmp_path, "alpha", srmp_url=f"http://alpha:{back_port}", srmp_resend=(60.0,))
    beta = Machine(tmp_path, "beta")
    there, back = LossyProxy(beta.port, 1, CALM), LossyProxy(alpha.port, 2, CALM)
    address = f"DIRECT=http://beta:{await there.start()}/msmq/private$/orders"
    async with AsyncExitStack() as stack:
        for machine in (alpha, beta):
            await machine.start()
            stack.push_async_callback(machine.stop)
        stack.push_async_callback(there.stop)
        orders = await beta.create("orders", transactional=True)
        await alpha.send_stream(address, *(Message(label=str(number)) for number in range(300)))
        await beta.until_count(orders, 300)
        await there.stop()
        await alpha.restart()
        assert alpha.count(address) == 300
        await back.start(back_port)  # now the receipt comes through
        stack.push_async_callback(back.stop)
        await alpha.until_count(address, 0)
