"""Whose signatures are believed, and queues that want them (MC-MQSRM 3.1.5.1.6.1)."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import dsa, ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from tests.manager.conftest import bodies, contents
from tests.protocols.srmp.conftest import Inbound, inbound_of
from tests.protocols.srmp.envelopes import changed, message
from tests.protocols.srmp.test_signature import KEY, _certificate

from lanner.manager import QueueManager
from lanner.model.errors import InvalidPropertyError
from lanner.model.queue import QueueProperties
from lanner.protocols.srmp import wire
from lanner.protocols.srmp.settings import SrmpSettings
from lanner.protocols.srmp.signature import SignatureFault
from lanner.protocols.srmp.signers import MAX_TRUSTED, Signers

LOCAL = r".\private$\orders"
CERTIFICATE = _certificate(KEY)
OTHER_KEY = dsa.generate_private_key(2048)
OTHER = _certificate(OTHER_KEY)


def _signed(srmp: wire.SrmpMessage, *, with_certificate: bool = True) -> wire.SrmpMessage:
    own = Signers((), KEY, CERTIFICATE if with_certificate else None)
    return changed(srmp, signature=own.sign(srmp))


def _trusting(*certificates: x509.Certificate) -> Signers:
    return Signers(certificates, weak_digests=True)


@pytest.fixture
def strict(manager: QueueManager) -> Inbound:
    return inbound_of(manager, _trusting(OTHER, CERTIFICATE))


@pytest.mark.parametrize("with_certificate", [True, False])
def test_a_signer_who_is_believed(with_certificate: bool) -> None:
    signed = _signed(message(), with_certificate=with_certificate)
    assert _trusting(OTHER, CERTIFICATE).authenticate(signed) == CERTIFICATE.public_bytes(Encoding.DER)


@pytest.mark.parametrize("with_certificate", [True, False])
def test_a_signer_who_is_not(with_certificate: bool) -> None:
    signed = _signed(message(), with_certificate=with_certificate)
    for signers in (_trusting(), _trusting(OTHER)):
        with pytest.raises(SignatureFault):
            signers.authenticate(signed)


def test_no_signature() -> None:
    for signers in (_trusting(), _trusting(OTHER)):
        with pytest.raises(SignatureFault, match="Signature"):
            signers.authenticate(message())


def test_weak_digests_have_to_be_allowed() -> None:
    with pytest.raises(SignatureFault):
        Signers((CERTIFICATE,)).authenticate(_signed(message()))


def test_nobody_signs_without_a_key() -> None:
    with pytest.raises(SignatureFault, match=r"srmp\.signing_key"):
        Signers().sign(message())


# At the receiver.


async def test_a_signed_message_is_authenticated(strict: Inbound) -> None:
    await strict.manager.change_queue(LOCAL, QueueProperties(authentication=True))
    assert (await strict.post(_signed(message()))).status == 200
    (kept,) = await contents(strict.manager, LOCAL)
    assert kept.security is not None
    assert kept.security.authenticated
    assert kept.security.sender_certificate == CERTIFICATE.public_bytes(Encoding.DER)


async def test_an_unsigned_message_to_a_queue_that_wants_signed_ones(strict: Inbound) -> None:
    await strict.manager.change_queue(LOCAL, QueueProperties(authentication=True))
    answer = await strict.post(message())
    assert (answer.status, "Signature" in answer.reason) == (400, True)
    assert (await strict.told("rejected"))[0].reason == answer.reason
    assert await bodies(strict.manager, LOCAL) == []


async def test_a_signature_that_is_wrong_is_refused_everywhere(strict: Inbound) -> None:
    signed = _signed(message(1))
    other = msgspec.structs.replace(signed, body=b"other")
    answer = await strict.post(other)
    assert answer.status == 400
    assert (await strict.post(signed)).status == 200, "the forged one is not taken for the first"


async def test_the_signature_of_a_stranger_is_refused(manager: QueueManager) -> None:
    inbound = inbound_of(manager, _trusting(OTHER))
    answer = await inbound.post(_signed(message()))
    assert (answer.status, "trusted_senders" in answer.reason) == (400, True)


# Files.


def _pem(path: Path, *certificates: x509.Certificate) -> str:
    path.write_bytes(b"".join(each.public_bytes(Encoding.PEM) for each in certificates))
    return str(path)


def _key_pem(path: Path, key: dsa.DSAPrivateKey | ec.EllipticCurvePrivateKey) -> str:
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return str(path)


def test_loading(tmp_path: Path) -> None:
    settings = SrmpSettings(
        trusted_senders=_pem(tmp_path / "trusted", OTHER, CERTIFICATE),
        signing_key=_key_pem(tmp_path / "key", KEY),
        signing_certificate=_pem(tmp_path / "own", CERTIFICATE),
        weak_digests=True,
    )
    signers = Signers.load(settings)
    signed = changed(message(), signature=signers.sign(message()))
    assert signers.authenticate(signed) == CERTIFICATE.public_bytes(Encoding.DER)


def test_nothing_to_load() -> None:
    Signers.load(SrmpSettings())


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.write_bytes(b"nothing")
    missing = str(tmp_path / "missing")
    curve = _key_pem(tmp_path / "curve", ec.generate_private_key(ec.SECP256R1()))
    for settings in (
        SrmpSettings(trusted_senders=missing),
        SrmpSettings(trusted_senders=str(empty)),
        SrmpSettings(signing_key=missing),
        SrmpSettings(signing_key=str(empty)),
        SrmpSettings(signing_key=curve),
        SrmpSettings(signing_certificate=missing),
        SrmpSettings(trusted_senders=_pem(tmp_path / "many", *[CERTIFICATE] * (MAX_TRUSTED + 1))),
    ):
        with pytest.raises(InvalidPropertyError, match="srmp"):
            Signers.load(settings)
