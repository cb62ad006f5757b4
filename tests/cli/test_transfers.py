"""What ``lanner queue`` and ``lanner why`` show of messages between machines."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import UUID

import pytest
from tests.cli.test_commands import done, lines
from tests.client.conftest import ServiceThread
from typer.testing import CliRunner, Result

from lanner.cli.app import app
from lanner.manager.queues import OutgoingQueue
from lanner.model.transfer import IncomingTransfer, Sequence

ORDERS = r".\private$\orders"
FAR = "DIRECT=HTTP://127.0.0.1:9/msmq/private$/far"
FAILURE = "connection refused at http://127.0.0.1:9"
SENDER = UUID("dc1cd9a6-8130-4504-88d2-851707fe4632")
STREAM = 4839986701558349830

Run = Callable[..., Result]


@pytest.fixture
def service(tmp_path: Path) -> Iterator[ServiceThread]:
    thread = ServiceThread(tmp_path / "data")
    thread.start()
    yield thread
    thread.stop()


@pytest.fixture
def run(service: ServiceThread) -> Run:
    def run_command(*arguments: str) -> Result:
        return CliRunner().invoke(app, [*arguments, "--data", str(service.data)])

    return run_command


def wait_for_failure(run: Run) -> None:
    for _ in range(500):
        if lines(run("queue", "show", FAR, "--json"))[0]["state"] == "inactive":
            return
        time.sleep(0.01)
    raise AssertionError("it does not fail")


async def give_stream(service: ServiceThread) -> None:
    [queue] = service.service.manager.transfers.outgoing()
    assert isinstance(queue, OutgoingQueue)
    transfer = queue.transfer
    transfer.unacknowledged, transfer.unread, transfer.resends = 3, 2, 1
    transfer.first_unacknowledged = Sequence(STREAM, 5, 4)
    transfer.last_unacknowledged = Sequence(STREAM, 7, 6)
    transfer.last_acknowledged = Sequence(STREAM, 4, 3)
    transfer.next_sequence = Sequence(STREAM, 8, 7)
    transfer.last_acknowledgment_time = transfer.resend_time = 86_400.0


async def give_incoming(service: ServiceThread) -> None:
    queue = service.service.manager._core.queues.get(ORDERS)
    for sender, last_access in ((UUID(int=1), 1.0), (SENDER, 86_400.0)):
        queue.incoming_transfers[sender] = IncomingTransfer(
            format_name="", sender=sender, stream=STREAM, number=12, last_access=last_access, rejections=1
        )


def test_an_outgoing_queue_that_cannot_connect(run: Run) -> None:
    assert done(run("queue", "list", "--outgoing")) == "no outgoing queues\n"
    sent = lines(run("send", FAR, "--body", "x", "--durable", "--json"))[0]
    wait_for_failure(run)
    [listed] = [line for line in done(run("queue", "list", "--outgoing")).splitlines() if FAR in line]
    assert "inactive" in listed
    assert FAILURE in listed
    [queue] = lines(run("queue", "list", "--outgoing", "--json"))
    assert (queue["path"], queue["connections"]) == (FAR, [])
    assert queue["last_failure"].startswith(FAILURE)
    shown = done(run("queue", "show", FAR))
    assert re.search("^next hops +http://127.0.0.1:9$", shown, re.MULTILINE)
    assert "connection refused   http://127.0.0.1:9" in shown
    [connection] = lines(run("queue", "show", FAR, "--json"))[0]["connections"]
    assert connection["status"] == "connection-refused"
    for subject in (FAR, sent["id"]):
        told = done(run("why", subject))
        assert FAILURE in told
        assert "-> start the queue manager there" in told


def test_the_stream_of_an_outgoing_queue(run: Run, service: ServiceThread) -> None:
    done(run("send", FAR, "--body", "x"))
    wait_for_failure(run)
    assert lines(run("queue", "show", FAR, "--json"))[0]["transfer"] is None
    service.run(give_stream(service))
    shown = {line[:20].strip(): line[20:].strip() for line in done(run("queue", "show", FAR)).splitlines()}
    assert shown["stream"] == str(STREAM)
    assert shown["without a receipt"] == "3 (numbers 5 to 7)"
    assert shown["not received there"] == "2"
    assert shown["last receipt"].startswith("up to number 4 at 1970-01-0")
    assert shown["sent again"] == "1 times"
    assert shown["sent again next"].startswith("1970-01-0")
    transfer = lines(run("queue", "show", FAR, "--json"))[0]["transfer"]
    assert (transfer["unacknowledged"], transfer["next_sequence"]["number"]) == (3, 8)


def test_the_streams_that_come_into_a_queue(run: Run, service: ServiceThread) -> None:
    done(run("queue", "create", ORDERS))
    assert "stream from" not in done(run("queue", "show", ORDERS))
    service.run(give_incoming(service))
    shown = [line.split() for line in done(run("queue", "show", ORDERS)).splitlines() if str(STREAM) in line]
    assert [row[:3] for row in shown] == [
        [str(SENDER), str(STREAM), "12"],
        [str(UUID(int=1)), str(STREAM), "12"],
    ]
    assert [one["sender"] for one in lines(run("queue", "show", ORDERS, "--json"))[0]["incoming"]] == [
        str(SENDER),
        str(UUID(int=1)),
    ]
    assert all(not one["incoming"] for one in lines(run("queue", "list", "--json")))
