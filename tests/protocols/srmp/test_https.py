"""SRMP over HTTPS between two managers: whom it trusts, what it refuses, and certificates that change."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from tests.protocols.srmp.certificates import Authority, pem_of

from lanner.config import LoadedConfig, load_config
from lanner.model.errors import InvalidPropertyError
from lanner.model.message import Delivery, Message
from lanner.model.queue import OutgoingState, QueueProperties
from lanner.model.transfer import ConnectionStatus
from lanner.service import Service, running

ORDERS = r".\private$\orders"
SECONDS = 10.0
FAILURE = ConnectionStatus.CERTIFICATE_VALIDATION_FAILURE


def settings(directory: Path, name: str, certificate: Path, ca_file: Path, **flags: object) -> LoadedConfig:
    return load_config(
        environment={},
        flags={
            "manager.data": str(directory / name),
            "manager.name": name,
            "api.port": 0,
            "network.srmp_port": 0,
            "network.srmp_https_port": 0,
            "network.names": {"london": "127.0.0.1", "paris": "127.0.0.1"},
            "srmp.certificate": str(certificate),
            "srmp.ca_file": str(ca_file),
            "srmp.retransmission": 0.2,
            "srmp.coalescing": 0.05,
            **flags,
        },
    )


def https_port(started: list[str]) -> int:
    return int(started[1].rpartition("https://127.0.0.1:")[2])


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(SECONDS):
        while not condition():  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.01)


class World:
    """London sends to Paris over HTTPS."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.authority = Authority(directory, "authority")
        self.stranger = Authority(directory, "stranger")
        self.certificate = self.authority.issue("paris", "paris.pem")
        self._stack = AsyncExitStack()
        self.london: Service
        self.paris: Service
        self.orders = ""
        self.port = 0

    async def start(self, **flags: object) -> None:
        """Start both; ``flags`` are London's."""
        loaded = settings(self.directory, "paris", self.certificate, self.authority.file)
        self.paris, started = await self._stack.enter_async_context(running(loaded))
        self.port = https_port(started)
        self.orders = f"DIRECT=HTTPS://paris:{self.port}/msmq/private$/orders"
        own = self.authority.issue("london", "london.pem")
        loaded = settings(self.directory, "london", own, self.authority.file, **flags)
        self.london, _ = await self._stack.enter_async_context(running(loaded))

    async def stop(self) -> None:
        await self._stack.aclose()

    async def send(self, body: bytes = b"x") -> None:
        await self.london.manager.send(self.orders, Message(body=body, delivery=Delivery.RECOVERABLE))

    def statuses(self) -> list[ConnectionStatus]:
        return [one.status for one in self.london.manager.queue(self.orders).connections]

    def waiting(self) -> int:
        return self.london.manager.queue(self.orders).messages

    def reload(self) -> list[str]:
        """What SIGHUP does, in Paris."""
        return self.paris.reload(settings(self.directory, "paris", self.certificate, self.authority.file))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


async def test_messages_and_a_stream_with_its_receipts_go_over_https(world: World) -> None:
    await world.start()
    manager = world.paris.manager
    await manager.create_queue(ORDERS)
    await manager.create_queue(r".\private$\stream", QueueProperties(transactional=True))
    await world.send(b"y" * 100_000)
    received = await manager.receive(ORDERS, timeout=SECONDS)
    assert received.body == b"y" * 100_000
    stream = world.orders.replace("orders", "stream")
    async with world.london.manager.transaction() as transaction:
        for number in range(5):
            message = Message(label=str(number))
            await world.london.manager.send(stream, message, transaction=transaction)
    labels = [(await manager.receive(r".\private$\stream", timeout=SECONDS)).label for _ in range(5)]
    assert labels == ["0", "1", "2", "3", "4"]
    await until(lambda: world.london.manager.queue(stream).messages == 0)  # the receipt came, over HTTPS too
    receipts = [queue.path for queue in manager.outgoing_queues()]
    assert all(path.startswith("DIRECT=HTTPS://london:") for path in receipts)
    await world.stop()


@pytest.mark.parametrize("why", ["unknown authority", "another host", "expired"])
async def test_a_certificate_that_is_not_valid_keeps_the_message_here(world: World, why: str) -> None:
    if why == "unknown authority":
        world.certificate = world.stranger.issue("paris", "paris.pem")
    elif why == "another host":
        world.certificate = world.authority.issue("rome", "paris.pem")
    else:
        world.certificate = world.authority.issue("paris", "paris.pem", age=timedelta(days=10))
    await world.start()
    await world.paris.manager.create_queue(ORDERS)
    await world.send()
    await until(lambda: world.statuses().count(FAILURE) >= 2)  # it is tried again
    assert world.waiting() == 1
    shown = world.london.manager.queue(world.orders)
    assert shown.connections[-1].address == f"https://paris:{world.port}"
    assert "certificate" in shown.last_failure
    assert "srmp.ca_file" in (await world.london.manager.why.queue(world.orders)).advice[0]
    assert world.paris.manager.queue(ORDERS).messages == 0
    # As soon as Paris has a valid one, and has read it, the message goes.
    world.authority.issue("paris", "paris.pem")
    assert "the HTTPS certificate was read again" in world.reload()
    await until(lambda: world.waiting() == 0)
    assert world.paris.manager.queue(ORDERS).messages == 1
    await world.stop()


async def test_an_authority_that_is_trusted_later_is_trusted_after_a_reload(world: World) -> None:
    trusted = world.directory / "trusted.pem"
    trusted.write_bytes(world.stranger.file.read_bytes())
    await world.start(**{"srmp.ca_file": str(trusted)})
    await world.paris.manager.create_queue(ORDERS)
    await world.send()
    await until(lambda: FAILURE in world.statuses())
    trusted.write_bytes(world.authority.file.read_bytes())
    world.london.reload(world.london._loaded)
    await until(lambda: world.waiting() == 0)
    await world.stop()


def serial_at(port: int, world: World) -> int:
    """The serial number of the certificate that is served."""
    context = ssl.create_default_context(cafile=str(world.authority.file))
    with (
        socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as plain,
        context.wrap_socket(plain, server_hostname="paris") as secure,
    ):
        certificate: dict[str, Any] | None = secure.getpeercert()
        assert certificate is not None
        return int(certificate["serialNumber"], 16)


async def test_a_connection_that_is_there_outlives_a_change_of_the_certificate(world: World) -> None:
    await world.start()
    await world.paris.manager.create_queue(ORDERS)
    await world.send()
    await until(lambda: world.waiting() == 0)
    before = await asyncio.to_thread(serial_at, world.port, world)
    world.authority.issue("paris", "paris.pem")
    assert await asyncio.to_thread(serial_at, world.port, world) == before
    world.reload()
    assert await asyncio.to_thread(serial_at, world.port, world) != before
    await world.send()
    await until(lambda: world.waiting() == 0)
    assert world.statuses() == [ConnectionStatus.ESTABLISHED]
    await world.stop()


@pytest.mark.parametrize("mistake", ["nonsense", "another key", "no file"])
async def test_a_certificate_that_cannot_be_used_changes_nothing(world: World, mistake: str) -> None:
    await world.start()
    before = await asyncio.to_thread(serial_at, world.port, world)
    if mistake == "nonsense":
        world.certificate.write_text("nonsense")
    elif mistake == "no file":
        world.certificate.unlink()
    else:
        certificate = (
            world.authority.issue("paris", "paris.pem").read_bytes().partition(b"-----BEGIN PRIV")[0]
        )
        world.certificate.write_bytes(certificate + pem_of(ec.generate_private_key(ec.SECP256R1())))
    tokens = world.directory / "paris" / "tokens.json"
    kept = tokens.read_bytes()
    tokens.write_text("[]")  # had it been read, nobody would be let in
    with pytest.raises(InvalidPropertyError, match=r"srmp\.certificate"):
        world.reload()
    tokens.write_bytes(kept)
    assert await asyncio.to_thread(serial_at, world.port, world) == before
    await world.stop()


async def test_files_that_cannot_be_used_are_said_at_the_start(world: World) -> None:
    wrong = world.directory / "wrong.pem"
    wrong.write_text("wrong")
    for certificate, ca_file, name in (
        (wrong, world.authority.file, "srmp.certificate"),
        (world.certificate, wrong, "srmp.ca_file"),
        (world.certificate, world.directory / "none.pem", "srmp.ca_file"),
    ):
        with pytest.raises(InvalidPropertyError, match=name):
            async with running(settings(world.directory, "paris", certificate, ca_file)):
                pass


def old(context: ssl.SSLContext) -> ssl.SSLContext:
    """Make a context speak TLS 1.1 and nothing newer."""
    context.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    return context


def version_with(context: ssl.SSLContext, port: int) -> str | None:
    with (
        socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as plain,
        context.wrap_socket(plain, server_hostname="paris") as secure,
    ):
        return secure.version()


async def test_tls_1_1_is_refused_from_clients_and_from_servers(world: World) -> None:
    await world.start()
    authority = str(world.authority.file)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(world.certificate)
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0, ssl=old(context))
    old_port = server.sockets[0].getsockname()[1]
    old_client = old(ssl.create_default_context(cafile=authority))
    assert await asyncio.to_thread(version_with, old_client, old_port) == "TLSv1.1"  # they know each other
    with pytest.raises(ssl.SSLError):
        await asyncio.to_thread(version_with, old_client, world.port)
    modern = ssl.create_default_context(cafile=authority)
    modern.maximum_version = ssl.TLSVersion.TLSv1_2
    assert await asyncio.to_thread(version_with, modern, world.port) == "TLSv1.2"
    world.orders = world.orders.replace(str(world.port), str(old_port))
    await world.send()
    await until(lambda: world.london.manager.queue(world.orders).state is OutgoingState.INACTIVE)
    assert world.statuses()[-1] is ConnectionStatus.SOCKET_CONNECT_FAILURE
    assert "TLS 1.2" in world.london.manager.queue(world.orders).last_failure
    assert world.waiting() == 1
    server.close()
    await world.stop()


def test_a_process_serves_a_changed_certificate_after_sighup(world: World) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    file = world.directory / "lanner.toml"
    file.write_text(
        f"[manager]\nname = 'paris'\ndata = '{world.directory / 'process'}'\n[api]\nport = 0\n"
        f"[network]\nsrmp_port = 0\nsrmp_https_port = {port}\n[srmp]\ncertificate = '{world.certificate}'\n"
    )
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LANNER_")}
    log = world.directory / "log"
    with log.open("w") as out:
        command = [sys.executable, "-m", "lanner", "serve", "--config", str(file)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=out, env=clean)
    try:
        before = _eventually(lambda: serial_at(port, world))
        world.authority.issue("paris", "paris.pem")
        process.send_signal(signal.SIGHUP)
        assert _eventually(lambda: serial_at(port, world), unless=before) != before
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 0
        assert "reload: the HTTPS certificate was read again" in log.read_text()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _eventually(ask: Callable[[], int], *, unless: int = 0) -> int:
    deadline = time.monotonic() + 2 * SECONDS
    while True:
        try:
            found = ask()
            if found != unless:
                return found
        except OSError:
            pass
        assert time.monotonic() < deadline
        time.sleep(0.05)
