"""One outgoing queue: its states, and the reaction to each answer (MC-MQSRM 3.1.7, 3.1.6)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.manager.conftest import full_disk, history
from tests.protocols.srmp.conftest import Opener
from tests.protocols.srmp.outbound import FAR, FakeLink, FakeNetwork, Outbound, outbound_of

from lanner.manager import ManualClock
from lanner.model.codes import MessageClass
from lanner.model.message import Acknowledgments, Message
from lanner.model.queue import OutgoingState, QueueProperties
from lanner.model.transfer import ConnectionStatus
from lanner.protocols.srmp.client import LinkOwner, Target
from lanner.protocols.srmp.line import IN_FLIGHT_BYTES
from lanner.protocols.srmp.redirection import Redirection, Redirections

DEAD_LETTER = r".\system$;deadletter"
JOURNAL = r".\system$;journal"

WAITING, CONNECTED = OutgoingState.WAITING, OutgoingState.CONNECTED
INACTIVE, DISCONNECTED = OutgoingState.INACTIVE, OutgoingState.DISCONNECTED
ON_HOLD = OutgoingState.ON_HOLD


@pytest.fixture
async def outbound(opened: Opener, clock: ManualClock) -> AsyncIterator[Outbound]:
    async with outbound_of(opened, clock) as outbound:
        yield outbound


def _statuses(outbound: Outbound) -> list[ConnectionStatus]:
    return [connection.status for connection in outbound.queue.connections]


# States.


async def test_nothing_to_send_nothing_to_connect(outbound: Outbound) -> None:
    assert outbound.state is DISCONNECTED
    assert outbound.network.targets == []
    assert outbound.queue.served_by == "SRMP"
    assert outbound.session.is_idle


async def test_a_message_connects(outbound: Outbound) -> None:
    outbound.network.gate = asyncio.Event()
    await outbound.send(b"one")
    assert outbound.state is WAITING
    assert _statuses(outbound) == [ConnectionStatus.IN_PROCESS]
    outbound.network.gate.set()
    await outbound.settle()
    assert outbound.state is CONNECTED
    assert _statuses(outbound) == [ConnectionStatus.ESTABLISHED]
    assert outbound.posted() == [b"one"]
    assert [str(target) for target in outbound.network.targets] == ["http://there:80"]


async def test_no_connection_is_tried_again_by_the_retransmission_timer(outbound: Outbound) -> None:
    outbound.network.is_down = True
    await outbound.send(b"one")
    assert outbound.state is INACTIVE
    assert _statuses(outbound) == [ConnectionStatus.CONNECTION_REFUSED]
    assert "nobody is there" in outbound.queue.explain()
    await outbound.send(b"two")
    await outbound.turn(19)
    assert len(outbound.network.targets) == 1
    await outbound.turn(1)
    assert len(outbound.network.targets) == 2
    outbound.network.is_down = False
    await outbound.turn(20)
    assert outbound.posted() == [b"one", b"two"]
    assert outbound.state is CONNECTED


async def test_an_idle_connection_is_closed_by_the_cleanup_timer(outbound: Outbound) -> None:
    await outbound.send(b"one")
    await outbound.answer(200)
    await outbound.turn(299)
    assert outbound.state is CONNECTED
    await outbound.turn(1)
    assert outbound.state is DISCONNECTED
    assert outbound.link.is_closed
    assert outbound.session.is_idle
    await outbound.send(b"two")
    assert len(outbound.network.links) == 2


async def test_each_answer_starts_the_cleanup_timer_anew(outbound: Outbound) -> None:
    for _ in range(3):
        await outbound.send(b"one")
        await outbound.answer(200)
        await outbound.turn(200)
    assert outbound.state is CONNECTED


async def test_a_connection_that_is_lost_while_idle_is_made_again_when_needed(outbound: Outbound) -> None:
    await outbound.send(b"one")
    await outbound.answer(200)
    await outbound.lose()
    assert outbound.state is DISCONNECTED
    await outbound.send(b"two")
    assert outbound.posted() == [b"one", b"two"]


async def test_lost_before_an_answer_waits_for_the_retransmission_timer(outbound: Outbound) -> None:
    await outbound.send(b"one")
    await outbound.lose()
    assert outbound.state is INACTIVE
    assert _statuses(outbound)[-1] is ConnectionStatus.SOCKET_SEND_FAILURE
    await outbound.turn(20)
    assert outbound.posted() == [b"one", b"one"]


async def test_lost_after_an_answer_goes_on_at_once(outbound: Outbound) -> None:
    """Some servers close a connection after so many answers."""
    await outbound.send(b"one", b"two", b"three")
    await outbound.answer(200)
    await outbound.lose()
    assert outbound.state is CONNECTED
    assert [srmp.body for srmp in outbound.link.posted] == [b"two", b"three"]
    assert await outbound.left() == [b"two", b"three"]


async def test_no_answer_in_time(outbound: Outbound) -> None:
    await outbound.send(b"one", b"two")
    await outbound.turn(50)
    await outbound.answer(200)
    await outbound.turn(59)
    assert outbound.state is CONNECTED, "each answer gives the next one its time"
    await outbound.turn(1)
    assert outbound.state is INACTIVE
    assert outbound.link.is_closed
    assert _statuses(outbound)[-1] is ConnectionStatus.UNKNOWN_FAILURE
    await outbound.turn(20)
    assert outbound.posted() == [b"one", b"two", b"two"]


async def test_the_retry_of_a_failure_that_is_over_changes_nothing(outbound: Outbound) -> None:
    outbound.network.is_down = True
    await outbound.send(b"one")
    outbound.network.is_down = False
    outbound.manager.bring_online()
    await outbound.settle()
    assert outbound.state is CONNECTED
    await outbound.turn(30)
    assert outbound.state is CONNECTED


# Pausing.


@pytest.mark.parametrize("before", ["idle", "sending", "inactive", "connecting"])
async def test_pause_and_resume_in_every_state(outbound: Outbound, before: str) -> None:
    network = outbound.network
    if before == "inactive":
        network.is_down = True
    if before == "connecting":
        network.gate = asyncio.Event()
    if before != "idle":
        await outbound.send(b"one")
    await outbound.manager.pause_queue(FAR)
    if network.gate is not None:
        network.gate.set()
    await outbound.settle()
    network.is_down = False
    assert outbound.state is ON_HOLD
    assert all(link.is_closed for link in network.links)
    posted = len(outbound.posted())
    await outbound.send(b"two")
    await outbound.turn(1000)
    assert (outbound.state, len(outbound.posted())) == (ON_HOLD, posted)
    await outbound.manager.resume_queue(FAR)
    await outbound.settle()
    assert outbound.state is CONNECTED
    expected = [b"two"] if before == "idle" else [b"one", b"two"]
    assert outbound.posted()[posted:] == expected
    await outbound.answer_all()
    assert await outbound.left() == []


async def test_another_host_is_tried_at_once_while_the_first_lets_us_wait(outbound: Outbound) -> None:
    network = outbound.network
    network.gate = asyncio.Event()
    await outbound.send(b"one")
    assert outbound.state is WAITING
    network.gate = None
    outbound.redirections = Redirections(outbound=(Redirection(from_="http://*", to="http://gate/"),))
    outbound.session.pause()
    outbound.session.resume()
    await outbound.settle()
    assert [str(target) for target in network.targets] == ["http://there:80", "http://gate:80"]
    assert outbound.posted() == [b"one"]
    assert _statuses(outbound) == [ConnectionStatus.ESTABLISHED]


async def test_an_attempt_that_takes_long_does_not_keep_a_session_from_ending(outbound: Outbound) -> None:
    outbound.network.gate = asyncio.Event()
    await outbound.send(b"one")
    outbound.session.stop()
    outbound.network.gate = None
    await outbound.settle()
    assert outbound.network.links == []
    assert outbound.queue.messages.available_count == 1


async def test_a_connection_that_is_closed_in_the_moment_in_which_it_is_made(
    outbound: Outbound, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = outbound.network

    async def connect(target: Target, owner: LinkOwner) -> FakeLink:
        link = await FakeNetwork.connect(network, target, owner)
        link.lose()
        return link

    with monkeypatch.context() as patch:
        patch.setattr(outbound.session._line, "_connector", connect)
        await outbound.send(b"one")
    assert outbound.state is INACTIVE
    assert _statuses(outbound) == [ConnectionStatus.SOCKET_CONNECT_FAILURE]
    await outbound.turn(20)
    assert outbound.posted() == [b"one"]


async def test_offline_and_online(outbound: Outbound) -> None:
    await outbound.send(b"one")
    outbound.manager.take_offline()
    await outbound.send(b"two")
    await outbound.turn(1000)
    assert outbound.state is DISCONNECTED
    assert outbound.link.is_closed
    assert outbound.posted() == [b"one"]
    outbound.manager.bring_online()
    await outbound.settle()
    assert outbound.posted() == [b"one", b"one", b"two"]


async def test_a_paused_queue_stays_paused_when_the_manager_comes_online(outbound: Outbound) -> None:
    await outbound.manager.pause_queue(FAR)
    outbound.manager.take_offline()
    outbound.manager.bring_online()
    await outbound.send(b"one")
    assert outbound.state is ON_HOLD
    assert outbound.posted() == []


# Answers.


@pytest.mark.parametrize("journaling", [False, True])
async def test_200_lets_a_message_go(outbound: Outbound, journaling: bool) -> None:
    await outbound.send(b"one", positive_journaling=journaling)
    assert await outbound.left() == [b"one"]
    await outbound.answer(200)
    assert await outbound.left() == []
    assert await outbound.kept(JOURNAL) == ([(b"one", 0)] if journaling else [])
    (row,) = [row for row in await history(outbound.manager) if row.event == "transmitted"]
    assert (row.queue, row.peer) == (outbound.queue.name, "http://there:80")


@pytest.mark.parametrize("status", [400, 413])
@pytest.mark.parametrize("journaling", [False, True])
async def test_a_refusal_dead_letters_or_drops(outbound: Outbound, status: int, journaling: bool) -> None:
    await outbound.send(b"one", negative_journaling=journaling)
    await outbound.send(b"two")
    await outbound.answer(status, 200)
    assert await outbound.left() == []
    dead = [(b"one", MessageClass.NACK_BAD_DESTINATION_QUEUE.value)]
    assert await outbound.kept(DEAD_LETTER) == (dead if journaling else [])
    assert outbound.state is CONNECTED
    (row,) = [row for row in await history(outbound.manager) if row.event == "rejected"]
    assert row.reason == f"it was answered {status}: status {status}"


@pytest.mark.parametrize("status", [500, 503, 404, 302, 401])
async def test_everything_else_is_tried_again(outbound: Outbound, status: int) -> None:
    await outbound.send(b"one", b"two", b"three")
    await outbound.answer(200, status, 200)
    assert outbound.state is INACTIVE
    assert outbound.link.is_closed
    assert _statuses(outbound)[-1] is ConnectionStatus.CONNECTION_NOT_READY
    assert await outbound.left() == [b"two", b"three"]
    await outbound.turn(20)
    assert [srmp.body for srmp in outbound.link.posted] == [b"two", b"three"]


async def test_an_answer_to_nothing_ends_the_connection(outbound: Outbound) -> None:
    await outbound.send(b"one")
    await outbound.answer(200, 200)
    assert outbound.state is INACTIVE
    assert await outbound.left() == []


async def test_any_2xx_is_yes(outbound: Outbound) -> None:
    await outbound.send(b"one")
    await outbound.answer(202)
    assert await outbound.left() == []


# How much at once.


async def test_in_flight_limits_and_order(opened: Opener, clock: ManualClock) -> None:
    async with outbound_of(opened, clock, in_flight=3) as outbound:
        texts = [b"%d" % number for number in range(10)]
        await outbound.send(*texts)
        assert outbound.posted() == texts[:3]
        await outbound.answer(200)
        assert outbound.posted() == texts[:4]
        await outbound.answer(200, 200)
        assert outbound.posted() == texts[:6]
        await outbound.answer_all()
        assert outbound.posted() == texts


async def test_large_messages_fill_it_sooner(outbound: Outbound) -> None:
    large = b"x" * (IN_FLIGHT_BYTES // 2)
    await outbound.send(large, large, large, large)
    assert len(outbound.posted()) == 2
    await outbound.answer(200)
    assert len(outbound.posted()) == 3


async def test_a_higher_priority_overtakes_what_is_not_sent_yet(opened: Opener, clock: ManualClock) -> None:
    async with outbound_of(opened, clock, in_flight=1) as outbound:
        await outbound.send(b"sent", b"low")
        await outbound.send(b"high", priority=7)
        await outbound.answer_all()
        assert outbound.posted() == [b"sent", b"high", b"low"]


# Time.


@pytest.mark.parametrize("journaling", [False, True])
async def test_an_expired_message_is_not_sent(outbound: Outbound, journaling: bool) -> None:
    outbound.network.is_down = True
    await outbound.send(b"one", time_to_reach_queue=10, negative_journaling=journaling)
    await outbound.send(b"two")
    outbound.network.is_down = False
    await outbound.turn(20)
    assert outbound.posted() == [b"two"]
    dead = [(b"one", MessageClass.NACK_REACH_QUEUE_TIMEOUT.value)]
    assert await outbound.kept(DEAD_LETTER) == (dead if journaling else [])


async def test_a_message_that_expires_between_two_attempts(outbound: Outbound) -> None:
    await outbound.send(b"one", time_to_reach_queue=70)
    await outbound.send(b"two")
    await outbound.turn(60)
    assert outbound.state is INACTIVE
    await outbound.turn(20)
    await outbound.turn(2)
    assert outbound.posted() == [b"one", b"two", b"two"]


async def test_the_wall_clock_that_passed_it_lets_it_not_be_sent(outbound: Outbound) -> None:
    outbound.network.is_down = True
    await outbound.send(b"one", time_to_reach_queue=100)
    outbound.network.is_down = False
    outbound.clock.jump(1000)
    await outbound.turn(20)
    assert outbound.posted() == []
    assert await outbound.left() == []


# What happens to the queue meanwhile.


async def test_purged_while_on_its_way(outbound: Outbound) -> None:
    await outbound.send(b"one", b"two")
    await outbound.manager.purge_queue(FAR)
    await outbound.answer(200, 500)
    assert await outbound.left() == []
    events = [row.event for row in await history(outbound.manager)]
    assert (events.count("transmitted"), events.count("purged")) == (1, 1)


@pytest.mark.parametrize("status", [200, 400])
async def test_the_queue_is_deleted_while_messages_are_on_their_way(
    outbound: Outbound, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    await outbound.send(b"one", positive_journaling=True, negative_journaling=True)
    await outbound.manager.delete_queue(FAR)
    held = outbound.manager.total_bytes
    outbound.link.is_closed = False  # the answer was there before
    outbound.link.answer(status)
    await outbound.settle()
    assert "failed" not in caplog.text
    assert outbound.manager.total_bytes == held
    assert await outbound.kept(JOURNAL) == []


async def test_what_cannot_be_settled_is_sent_again(outbound: Outbound) -> None:
    await outbound.send(b"one")
    async with full_disk(outbound.manager):
        await outbound.answer(200)
        assert await outbound.left() == [b"one"]
    await outbound.answer_all()
    assert await outbound.left() == []
    assert set(outbound.posted()) == {b"one"}


async def test_what_cannot_be_said_is_given_up_and_the_rest_goes_on(outbound: Outbound) -> None:
    await outbound.send(b"one", label="a \x01 b", negative_journaling=True)
    await outbound.send(b"two")
    assert outbound.posted() == [b"two"]
    assert [body for body, _ in await outbound.kept(DEAD_LETTER)] == [b"one"]


async def test_redirections_choose_the_host(opened: Opener, clock: ManualClock) -> None:
    async with outbound_of(opened, clock) as outbound:
        outbound.redirections = Redirections(
            outbound=(Redirection(from_="http://*", to="https://gate:8443/"),)
        )
        await outbound.send(b"one")
        assert [str(target) for target in outbound.network.targets] == ["https://gate:8443"]
        assert outbound.link.posted[0].envelope.path.to == "http://there/msmq/private$/orders"


async def test_a_restart_sends_what_was_not_answered(opened: Opener, clock: ManualClock) -> None:
    network = FakeNetwork()
    async with outbound_of(opened, clock, network) as outbound:
        await outbound.send(b"one", b"two")
        await outbound.manager.send(FAR, Message(body=b"in memory"))
        await outbound.settle()
        await outbound.answer(200)
        first = outbound.link.posted[1].envelope
    async with outbound_of(opened, clock, network) as outbound:
        assert [srmp.body for srmp in outbound.link.posted] == [b"two"]
        second = outbound.link.posted[0].envelope
        assert second == first, "the identifier and the time it was sent stay"


async def test_a_paused_queue_is_still_paused_after_a_restart(opened: Opener, clock: ManualClock) -> None:
    async with outbound_of(opened, clock) as outbound:
        await outbound.manager.pause_queue(FAR)
        await outbound.send(b"one")
    async with outbound_of(opened, clock) as outbound:
        assert outbound.state is ON_HOLD
        assert outbound.network.targets == []


async def test_an_acknowledgment_that_http_cannot_carry_is_not_asked_for(outbound: Outbound) -> None:
    await outbound.manager.create_queue(r".\private$\admin", QueueProperties())
    await outbound.send(
        b"one", administration_queue=r".\private$\admin", acknowledgments=Acknowledgments(0x0F)
    )
    services = outbound.link.posted[0].envelope.services
    assert services is not None
    assert (services.delivery_receipt_request, services.commitment_receipt_request) == (None, None)
    await outbound.answer(400)
    told = await outbound.kept(r".\private$\admin")
    assert told == [(b"one", MessageClass.NACK_BAD_DESTINATION_QUEUE.value)], "this machine tells itself"


async def test_a_defect_leaves_no_message_locked(
    outbound: Outbound, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a defect")

    with monkeypatch.context() as patch:
        patch.setattr(outbound.services.poster, "request", fail)
        await outbound.send(b"one")
        assert "background work failed" in caplog.text
        assert outbound.queue.messages.available_count == 1
    await outbound.send(b"two")
    assert outbound.posted() == [b"one", b"two"]
