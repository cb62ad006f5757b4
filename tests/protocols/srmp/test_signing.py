"""Signed messages from one manager to another, by the settings alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import dsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from lanner.client import AsyncClient
from lanner.config import load_config
from lanner.service import Service, running

ORDERS = r".\private$\orders"
SECONDS = 10.0


def make_signer(directory: Path, name: str) -> dict[str, Path]:
    """A DSA key, and its own certificate."""
    key = dsa.generate_private_key(2048)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    files = {"key": directory / f"{name}.key", "certificate": directory / f"{name}.crt"}
    files["key"].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    files["certificate"].write_bytes(certificate.public_bytes(Encoding.PEM))
    return files


@pytest.fixture(scope="module")
def signers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Path]]:
    directory = tmp_path_factory.mktemp("signers")
    return {name: make_signer(directory, name) for name in ("london", "stranger")}


class World:
    """London sends to Paris, which believes London's signatures."""

    def __init__(self, directory: Path, trusted: Path) -> None:
        self._directory = directory
        self._trusted = trusted
        self._stack = AsyncExitStack()
        self.paris: Service
        self.london: Service
        self.client: AsyncClient
        self.orders = ""

    async def start(self, flags: dict[str, object] | None = None, *, weak_digests: bool = True) -> None:
        believed = {"srmp.trusted_senders": str(self._trusted), "srmp.weak_digests": weak_digests}
        self.paris = await self._run("paris", **believed)
        paris = AsyncClient.connect(data=self._directory / "paris")
        await self._stack.enter_async_context(paris)
        self.at_paris = paris
        await paris.create_queue(ORDERS, authentication=True)
        self.london = await self._run("london", **(flags or {}))
        self.client = AsyncClient.connect(data=self._directory / "london")
        await self._stack.enter_async_context(self.client)

    async def _run(self, name: str, **flags: object) -> Service:
        flags = {
            "manager.data": str(self._directory / name),
            "manager.name": name,
            "api.port": 0,
            "network.srmp_port": 0,
            "network.names": {"paris": "127.0.0.1"},
            **flags,
        }
        loaded = load_config(environment={}, flags=flags)
        service, started = await self._stack.enter_async_context(running(loaded))
        if name == "paris":
            self.orders = f"DIRECT=HTTP://paris:{started[1].rpartition(':')[2]}/msmq/private$/orders"
        return service

    async def stop(self) -> None:
        await self._stack.aclose()

    async def dead_letter_reason(self) -> str:
        """Why London's message died: the history's words."""
        rows = [row async for row in self.client.history()]
        [reason] = [row.reason for row in rows if row.event == "rejected"]
        assert reason is not None
        return reason


@pytest.fixture
async def world(tmp_path: Path, signers: dict[str, dict[str, Path]]) -> AsyncIterator[World]:
    world = World(tmp_path, signers["london"]["certificate"])
    yield world
    await world.stop()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(SECONDS):
        while not condition():  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.01)


def signing(files: dict[str, Path]) -> dict[str, object]:
    return {"srmp.signing_key": str(files["key"]), "srmp.signing_certificate": str(files["certificate"])}


async def test_a_signed_message_arrives_as_authenticated(
    world: World, signers: dict[str, dict[str, Path]]
) -> None:
    await world.start(signing(signers["london"]))
    await world.client.send(world.orders, b"signed", durable=True, sign=True)
    [received] = await world.at_paris.receive(ORDERS, wait=SECONDS)
    assert (received.body, received.authenticated) == (b"signed", True)


async def test_an_unsigned_message_is_refused_and_dead(world: World) -> None:
    await world.start()
    await world.client.send(world.orders, b"x", label="unsigned", durable=True, dead_letter=True)
    await until(lambda: world.london.manager.queue(world.orders).messages == 0)
    assert "there is no Signature element" in await world.dead_letter_reason()
    [letter] = await world.client.dead_letters()
    assert letter.message.label == "unsigned"


async def test_the_digests_of_the_protocol_are_believed_only_if_that_is_set(
    world: World, signers: dict[str, dict[str, Path]]
) -> None:
    await world.start(signing(signers["london"]), weak_digests=False)
    await world.client.send(world.orders, b"x", durable=True, sign=True)
    await until(lambda: world.london.manager.queue(world.orders).messages == 0)
    assert "srmp.weak_digests" in await world.dead_letter_reason()


async def test_a_strangers_signature_is_refused(world: World, signers: dict[str, dict[str, Path]]) -> None:
    await world.start(signing(signers["stranger"]))
    await world.client.send(world.orders, b"x", durable=True, sign=True)
    await until(lambda: world.london.manager.queue(world.orders).messages == 0)
    assert "srmp.trusted_senders" in await world.dead_letter_reason()
    assert await world.at_paris.receive(ORDERS) == ()


async def test_without_a_key_nothing_is_signed_and_the_reason_names_the_setting(world: World) -> None:
    await world.start()
    await world.client.send(world.orders, b"x", durable=True, sign=True)
    await until(lambda: world.london.manager.queue(world.orders).messages == 0)
    assert "srmp.signing_key" in await world.dead_letter_reason()
