"""The clients: messages, transactions, iteration, reconnecting, errors."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from tests.client.conftest import ServiceThread

from lanner.client import AsyncClient, Client, MessageIn
from lanner.client.address import find_address
from lanner.model.errors import (
    AccessDeniedError,
    ConnectionFailedError,
    QueueNotFoundError,
    TransactionUsageError,
)
from lanner.schema.srmp import RedirectionsRequest

QUEUE = r".\private$\orders"


@pytest.fixture
def client(service: ServiceThread) -> Client:
    return Client.connect(data=service.data)


def test_send_receive_and_browse(client: Client) -> None:
    client.create_queue(QUEUE, label="Orders")
    identifiers = [client.send(QUEUE, f"body {n}", label=str(n), durable=True) for n in range(5)]
    assert [message.label for message in client.browse(QUEUE)] == ["0", "1", "2", "3", "4"]
    assert [message.id for message in client.iterate(QUEUE, count=2, wait=0)] == identifiers
    assert client.receive(QUEUE) == ()
    client.close()


def test_a_transaction_commits_at_the_end_of_its_block_and_aborts_when_it_raises(client: Client) -> None:
    client.create_queue(QUEUE, transactional=True)
    with client.transaction() as transaction:
        transaction.send(QUEUE, b"one")
        assert client.queue(QUEUE).messages == 0
    assert transaction.outcome is not None
    assert len(transaction.outcome.ids) == 1
    with pytest.raises(ZeroDivisionError):
        _receive_send_and_fail(client)
    [message] = client.peek(QUEUE)
    assert (message.body, message.aborts) == (b"one", 1)
    client.close()


def _receive_send_and_fail(client: Client) -> None:
    with client.transaction() as transaction:
        [message] = transaction.receive(QUEUE)
        assert message.body == b"one"
        transaction.send(QUEUE, b"two")
        raise ZeroDivisionError


def test_a_transaction_outlives_its_lease_as_long_as_its_process_lives(client: Client) -> None:
    client.create_queue(QUEUE, transactional=True)
    with client.transaction(lease=0.3) as transaction:
        transaction.send(QUEUE, b"one")
        time.sleep(1)
    assert client.queue(QUEUE).messages == 1
    client.close()


def test_errors_are_the_managers_own(client: Client) -> None:
    with pytest.raises(QueueNotFoundError, match="no queue"):
        client.receive(QUEUE)
    client.create_queue(QUEUE, transactional=True)
    with pytest.raises(QueueNotFoundError, match=r"did you mean \.\\private\$\\orders"):
        client.receive(r".\private$\oders")
    with pytest.raises(TransactionUsageError):
        client.send(QUEUE, b"x")
    client.close()


def test_a_wrong_token_and_a_manager_that_is_away(service: ServiceThread) -> None:
    url = f"http://127.0.0.1:{service.port}"
    with Client.connect(api=url, token="wrong") as wrong, pytest.raises(AccessDeniedError):
        wrong.status()
    with (
        Client.connect(api="http://127.0.0.1:9", token="x", patience=0.1) as away,
        pytest.raises(ConnectionFailedError, match="does not answer"),
    ):
        away.status()


def test_a_client_reconnects_to_a_manager_that_was_restarted(service: ServiceThread) -> None:
    with Client.connect(data=service.data) as client:
        client.create_queue(QUEUE)
        client.send(QUEUE, b"before", durable=True)
        service.stop()
        restart = threading.Timer(0.5, service.start)
        restart.start()
        client.send(QUEUE, b"after", durable=True, key="after")
        restart.join()
        assert [message.body for message in client.browse(QUEUE)] == [b"before", b"after"]


async def test_the_async_client(service: ServiceThread) -> None:
    async with AsyncClient.connect(data=service.data) as client:
        await client.create_queue(QUEUE, transactional=True)
        async with client.transaction(key="once") as transaction:
            await transaction.send(QUEUE, "text", label="x")
        async with client.transaction(key="once") as again:
            await again.send(QUEUE, "text", label="x")
        assert again.outcome is not None
        assert again.outcome.replayed
        assert [message.label async for message in client.iterate(QUEUE, wait=0)] == ["x"]
        rows = [row.event async for row in client.history()]
        assert rows == ["sent", "received"]


def test_where_the_manager_is_found(tmp_path: Path) -> None:
    (tmp_path / "api.address").write_text("http://127.0.0.1:1\n")
    (tmp_path / "token").write_text("secret\n")
    environment = {"LANNER_API": "http://127.0.0.1:2/", "LANNER_TOKEN": "env"}
    assert find_address(data=tmp_path, environment=environment) == ("http://127.0.0.1:1", "secret")
    assert find_address(environment=environment) == ("http://127.0.0.1:2", "env")
    assert find_address(api="http://h:3", token="t", environment=environment) == ("http://h:3", "t")
    with pytest.raises(ConnectionFailedError, match="no token"):
        find_address(api="http://h:3", environment={})
    with pytest.raises(ConnectionFailedError, match="no queue manager is running"):
        find_address(data=tmp_path / "none", environment={})


def test_redirections_and_resets(client: Client) -> None:
    added = client.add_redirection("outbound", "http://paris/*", "http://proxy/")
    assert [(entry.from_, entry.to) for entry in added.outbound] == [("http://paris/*", "http://proxy/")]
    assert client.add_redirection("default-receipts", to="http://us/").default_receipts == "http://us/"
    assert client.remove_redirection("outbound", "http://paris/*") == client.redirections()
    assert client.replace_redirections(RedirectionsRequest()).default_receipts == ""
    far = "DIRECT=HTTP://127.0.0.1:9/msmq/private$/far"
    client.send_many(far, [MessageIn(body=b"x")] * 2, transactional=True)
    assert client.reset_stream(far) == 2
    client.close()
