"""What discovery found, kept over a restart.

QueueManager.DirectoryServerList is a persistent attribute, ConnectedNetworkIdentifierList and
SiteIdentifierList are directory attributes: all MUST survive a restart (MS-MQDMPR 3.1.1, 3.1.1.1). The sites
and the enterprise come back with the last good directory; the two lists that discovery populates (MS-MQSD
3.1.7) are kept here. What is private to the protocol is volatile: after a restart no network is a successful
one (3.1.3), so that it is asked again.

The lists belong to the identity that they were found for. If the directory says something else after the
restart, they count no more than they would if it had changed while the manager ran.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from typing import Protocol
from uuid import UUID

import msgspec

from lanner.protocols.discovery.identity import Identity

__all__ = ["FoundLists", "Memory", "Storage"]

log = logging.getLogger(__name__)

_FORM = b"lanner discovery 1\n"
_CHECKSUM_LENGTH = 32


class Storage(Protocol):
    """Where the bytes are: one value that is there whole or not at all."""

    async def read(self) -> bytes | None:
        """What was kept last."""

    def write(self, data: bytes | None, failed: Callable[[str], None]) -> None:
        """Keep this some time soon, or nothing any more; tells why if that fails."""


class FoundLists(msgspec.Struct, frozen=True, array_like=True):
    """What a client found, and the identity that it was found for."""

    enterprise_id: UUID
    site_ids: tuple[UUID, ...]
    known_servers: tuple[str, ...]
    known_networks: tuple[UUID, ...]
    directory_servers: tuple[str, ...]
    connected_networks: tuple[UUID, ...]

    @classmethod
    def of(cls, identity: Identity, servers: tuple[str, ...], networks: tuple[UUID, ...]) -> FoundLists:
        """The lists of an identity."""
        return cls(
            identity.enterprise_id,
            identity.site_ids,
            identity.directory_servers,
            identity.connected_networks,
            servers,
            networks,
        )

    def belongs_to(self, identity: Identity) -> bool:
        """Whether the directory says what it said when these were found."""
        return self == self.of(identity, self.directory_servers, self.connected_networks)


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(FoundLists)


class Memory:
    """The lists of one manager, in a storage."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._kept: bytes | None = None
        self._has_failed = False

    async def recall(self) -> FoundLists | None:
        """What was found before; nothing where that is damaged."""
        self._kept = await self._storage.read()
        if self._kept is None:
            return None
        try:
            return decode(self._kept)
        except ValueError as error:
            log.warning("discovery: what was found before cannot be read, and is looked for anew: %s", error)
            return None

    def keep(self, found: FoundLists | None) -> None:
        """Keep what is known now; nothing of a directory server, whose lists the directory has (3.2.1.1)."""
        data = encode(found) if found is not None else None
        if data != self._kept or self._has_failed:
            self._kept, self._has_failed = data, False
            self._storage.write(data, self._not_kept)

    def _not_kept(self, reason: str) -> None:
        log.warning("discovery: what was found is not kept: %s", reason)
        self._has_failed = True  # the next time that something is found, it is tried again


def encode(found: FoundLists) -> bytes:
    """The bytes to keep: a line that names the form, a checksum, MessagePack."""
    body = _encoder.encode(found)
    return _FORM + hashlib.sha256(body).digest() + body


def decode(data: bytes) -> FoundLists:
    """Read kept bytes; a ValueError says what is wrong with them."""
    if not data.startswith(_FORM):
        raise ValueError("it has an unknown form")
    start = len(_FORM) + _CHECKSUM_LENGTH
    body = data[start:]
    if hashlib.sha256(body).digest() != data[len(_FORM) : start]:
        raise ValueError("it is damaged")
    try:
        return _decoder.decode(body)
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from None
