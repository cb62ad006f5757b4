"""The last good directory: kept as bytes, and used while the directory itself is away.

The bytes are a line that names the form, a checksum, and the snapshot in MessagePack. Whoever keeps them
decides where; a store's transaction or a file written whole both do.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable

import msgspec

from lanner.directory.base import Directory, DirectoryError, InvalidDirectoryError
from lanner.model.enterprise import (
    ConnectedNetwork,
    Enterprise,
    EnterpriseMap,
    Machine,
    PublicQueue,
    RoutingLink,
    Site,
)

__all__ = ["KnownDirectory", "decode", "encode"]

_FORM = b"lanner directory 1\n"
_CHECKSUM_LENGTH = 32


class _Snapshot(msgspec.Struct, frozen=True, array_like=True):
    enterprise: Enterprise
    sites: tuple[Site, ...]
    links: tuple[RoutingLink, ...]
    networks: tuple[ConnectedNetwork, ...]
    machines: tuple[Machine, ...]
    queues: tuple[PublicQueue, ...]


_encoder = msgspec.msgpack.Encoder(uuid_format="bytes")
_decoder = msgspec.msgpack.Decoder(_Snapshot)


def encode(source: EnterpriseMap) -> bytes:
    """Give the bytes to keep."""
    body = _encoder.encode(
        _Snapshot(
            source.enterprise, source.sites, source.links, source.networks, source.machines, source.queues
        )
    )
    return _FORM + hashlib.sha256(body).digest() + body


def decode(data: bytes) -> EnterpriseMap:
    """Read kept bytes. Raises InvalidDirectoryError if they are damaged or of another form."""
    if not data.startswith(_FORM):
        raise InvalidDirectoryError("the cached directory has an unknown form", hint="it will be read anew")
    start = len(_FORM) + _CHECKSUM_LENGTH
    checksum, body = data[len(_FORM) : start], data[start:]
    if hashlib.sha256(body).digest() != checksum:
        raise InvalidDirectoryError("the cached directory is damaged", hint="it will be read anew")
    try:
        found = _decoder.decode(body)
    except msgspec.MsgspecError as error:
        raise InvalidDirectoryError(f"the cached directory cannot be read: {error}") from None
    return EnterpriseMap(
        found.enterprise, found.sites, found.links, found.networks, found.machines, found.queues
    )


class KnownDirectory:
    """A directory with a memory: its newest good snapshot, whether it is away, and why.

    ``refresh`` is called when the directory may have changed, and by the timers of MS-MQDMPR 3.1.2.
    """

    def __init__(
        self,
        directory: Directory,
        *,
        cached: bytes | None = None,
        save: Callable[[bytes], Awaitable[None]] | None = None,
    ) -> None:
        self.directory = directory
        self.current: EnterpriseMap | None = None
        self.offline = False
        """QueueManager.DirectoryOffline (MS-MQDMPR 3.1.1.1)."""
        self.problem: DirectoryError | None = None
        """Why the newest reading failed."""
        self._save = save
        self._unsaved: bytes | None = None
        self._kept: bytes | None = None
        if cached is not None:
            try:
                self.current, self._kept = decode(cached), cached
            except InvalidDirectoryError as error:
                self.problem = error

    async def refresh(self) -> bool:
        """Read the directory, keep it durably, and tell whether it is another one than before.

        If the directory is away or cannot be understood, the last good one stays; ``problem`` says why.
        """
        try:
            found = await self.directory.read()
        except DirectoryError as error:
            self.problem, self.offline = error, True
            return False
        self.problem, self.offline = None, False
        changed = found is not self.current
        if changed:
            self.current = found
            self._unsaved = await asyncio.to_thread(encode, found)  # a large one takes 0.1 s
        if self._unsaved is not None:
            if self._save is not None and self._unsaved != self._kept:
                await self._save(self._unsaved)  # if it fails, the next refresh tries again
            self._kept, self._unsaved = self._unsaved, None
        return changed
