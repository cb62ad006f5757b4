"""Redirections on the way in, and transparent store-and-forward (MC-MQSRM 3.1.5.1.3, decision 14)."""

from __future__ import annotations

import pytest
from tests.manager.conftest import bodies, contents
from tests.protocols.srmp.conftest import PEER, Inbound, inbound_of
from tests.protocols.srmp.envelopes import (
    HERE,
    NOW,
    ORDERS,
    RECEIPTS,
    SENDER,
    STREAM,
    asking,
    changed,
    message,
    receipt,
    streamed,
)

from lanner.manager import QueueManager
from lanner.model.codes import MessageClass
from lanner.model.queue import QueueProperties
from lanner.protocols.srmp import wire
from lanner.protocols.srmp.client import Target
from lanner.protocols.srmp.posting import Poster
from lanner.protocols.srmp.redirection import Redirection, Redirections
from lanner.protocols.srmp.signers import Signers

LOCAL = r".\private$\orders"
THERE = "http://there/msmq/private$/orders"
TO_THERE = f"DIRECT={THERE}"


@pytest.fixture
def forwarding(manager: QueueManager) -> Inbound:
    return inbound_of(manager, forward=True)


async def _passed_on(manager: QueueManager, name: str) -> list[wire.SrmpMessage]:
    """What goes out, as the next machine reads it."""
    poster = Poster(lambda scheme: f"{scheme}://{HERE}", Signers(), Redirections)
    sent = []
    for waiting in await contents(manager, name):
        head, body = poster.request(waiting, None, Target("http", "there", 80))
        lines = dict(line.split(b": ", 1) for line in head.split(b"\r\n") if b": " in line)
        sent.append(wire.decode_request(lines[b"Content-Type"], body))
    return sent


async def test_a_message_is_passed_on_as_it_came(forwarding: Inbound) -> None:
    srmp = asking(message(9, THERE, b"far", app=7, journal=True), delivery=True, positive=True)
    assert (await forwarding.post(srmp)).status == 200
    (sent,) = await _passed_on(forwarding.manager, TO_THERE)
    assert sent.envelope == srmp.envelope
    assert sent.body == b"far"
    assert forwarding.manager.outgoing_queues()[0].messages == 1
    (row,) = await forwarding.told("arrived")
    assert row.peer == PEER


async def test_a_stream_stays_the_sources(forwarding: Inbound) -> None:
    to = "http://there/msmq/private$/ledger"
    for number in (1, 2):
        srmp = streamed(number)
        path = srmp.envelope.path
        away = changed(srmp, path=wire.Path(action=path.action, to=to, id=path.id))
        assert (await forwarding.post(away)).status == 200
    first, second = await _passed_on(forwarding.manager, f"DIRECT={to}")
    assert first.envelope.stream == streamed(1).envelope.stream
    assert second.envelope.stream == streamed(2).envelope.stream
    assert first.envelope.stream is not None
    assert first.envelope.stream.start is not None
    assert first.envelope.stream.start.send_receipts_to == RECEIPTS
    assert first.envelope.path.id == streamed(1).envelope.path.id


async def test_a_message_without_an_msmq_element_is_passed_on_without(forwarding: Inbound) -> None:
    bare = changed(message(1, THERE), msmq=None)
    assert (await forwarding.post(bare)).status == 200
    (sent,) = await _passed_on(forwarding.manager, TO_THERE)
    assert sent.envelope.msmq is None
    assert sent.envelope.properties.sent_at == NOW
    assert sent.body == b"hello"


async def test_receipts_are_passed_on(forwarding: Inbound) -> None:
    for number, srmp in enumerate(
        [
            receipt(MessageClass.ACK_REACH_QUEUE, delivery=True, to=THERE, number=1),
            receipt(
                MessageClass.ORDER_ACK,
                stream=STREAM,
                ordinal=4,
                to=THERE,
                number=2,
                action=wire.STREAM_RECEIPT_ACTION,
            ),
        ]
    ):
        assert (await forwarding.post(srmp)).status == 200
        sent = (await _passed_on(forwarding.manager, TO_THERE))[number]
        assert sent.envelope.delivery_receipt == srmp.envelope.delivery_receipt
        assert sent.envelope.stream_receipt == srmp.envelope.stream_receipt
        assert sent.envelope.msmq is not None
        assert sent.envelope.msmq.source_qm == SENDER
        assert sent.envelope.path == srmp.envelope.path
    assert forwarding.receipts.taken == []


async def test_a_name_that_leads_nowhere_is_refused(forwarding: Inbound) -> None:
    for to in ("http://there/msmq/private$/orders;sub", "http://there/msmq/private$/orders;journal"):
        assert (await forwarding.post(message(1, to))).status == 400
    assert forwarding.manager.total_bytes == 0


async def test_a_forwarder_that_is_full_leaves_the_message_with_its_sender(forwarding: Inbound) -> None:
    forwarding.manager.begin_flow_control()
    assert (await forwarding.post(message(1, THERE))).status == 500


# Redirections.


def _redirected(inbound: Inbound, *pairs: tuple[str, str]) -> None:
    redirections = Redirections(inbound=tuple(Redirection(from_=from_, to=to) for from_, to in pairs))
    redirections.check()
    inbound.redirections = redirections


async def test_a_message_for_one_queue_goes_into_another(inbound: Inbound) -> None:
    assert (await inbound.post(message(1))).status == 200
    await inbound.manager.create_queue(r".\private$\other")
    _redirected(inbound, (ORDERS, f"http://{HERE}/msmq/private$/other"))
    assert (await inbound.post(message(2, body=b"moved"))).status == 200
    assert await bodies(inbound.manager, r".\private$\other") == [b"moved"]
    _redirected(inbound)
    assert (await inbound.post(message(3, body=b"back"))).status == 200
    assert await bodies(inbound.manager, LOCAL) == [b"hello", b"back"]


async def test_a_queue_that_is_not_there_can_be_redirected(inbound: Inbound) -> None:
    _redirected(inbound, (f"http://{HERE}/msmq/public/*", ORDERS))
    assert (await inbound.post(message(1, f"http://{HERE}/MSMQ/Public/x"))).status == 400, "no queue's name"
    _redirected(inbound, (f"http://{HERE}/msmq/old*", ORDERS))
    assert (await inbound.post(message(1, f"http://{HERE}/MSMQ/Old-orders"))).status == 200
    assert await bodies(inbound.manager, LOCAL) == [b"hello"]


async def test_a_redirection_to_another_machine_needs_no_other_setting(inbound: Inbound) -> None:
    _redirected(inbound, (ORDERS, THERE))
    assert (await inbound.post(message(1))).status == 200
    (sent,) = await _passed_on(inbound.manager, TO_THERE)
    assert sent.envelope.path.to.lower() == THERE
    assert sent.envelope.msmq is not None
    assert sent.envelope.msmq.source_qm == SENDER
    assert (await inbound.post(message(2, "http://other/msmq/private$/q"))).status == 400


async def test_stream_receipts_are_redirected_too(inbound: Inbound) -> None:
    """Behind a gateway that receipts are sent to."""
    gate = f"http://{HERE}/msmq/inner-receipts"
    _redirected(inbound, (gate, "http://inner/msmq/private$/order_queue$"))
    srmp = receipt(
        MessageClass.ORDER_ACK, stream=STREAM, ordinal=1, to=gate, action=wire.STREAM_RECEIPT_ACTION
    )
    assert (await inbound.post(srmp)).status == 200
    assert inbound.receipts.taken == []
    assert len(await contents(inbound.manager, "DIRECT=http://inner/msmq/private$/order_queue$")) == 1


async def test_a_redirection_into_a_queue_that_does_not_fit(inbound: Inbound) -> None:
    await inbound.manager.create_queue(r".\private$\strict", QueueProperties(transactional=True))
    _redirected(inbound, (ORDERS, f"http://{HERE}/msmq/private$/strict"))
    assert (await inbound.post(message())).status == 400
    _redirected(inbound, (ORDERS, f"http://{HERE}/msmq/private$/missing"))
    assert (await inbound.post(message())).status == 400
