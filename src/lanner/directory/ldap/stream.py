"""Whole LDAP messages over a socket, in TLS or encrypted by Kerberos."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from lanner.directory.base import DirectoryOffline
from lanner.directory.ldap.ber import BerError, header_size
from lanner.directory.ldap.errors import InvalidLdapSettingsError, UntrustedServerError
from lanner.directory.ldap.sasl import KerberosLogin
from lanner.directory.ldap.settings import LdapServer

__all__ = ["MAX_MESSAGE_BYTES", "Stream", "tls_context"]

MAX_MESSAGE_BYTES = 16 * 1024 * 1024
"""One entry: a queue manager has keys, certificates (1 MB by the schema) and a descriptor."""

_CLOSING_SECONDS = 1.0
_WRAPPING = 256
"""More than encryption adds to a piece."""


def tls_context(ca_file: str) -> ssl.SSLContext:
    """Which certificates are accepted: of these authorities or the system's, with the right name."""
    try:
        return ssl.create_default_context(cafile=ca_file or None)
    except OSError as error:  # SSLError is one
        raise InvalidLdapSettingsError(
            f"no certificates can be read from {ca_file}: {error.strerror or error}",
            hint="check the setting ca_file: it is a file of certificates in PEM",
        ) from None


class Stream:
    """A connection that carries messages. All that goes wrong with it is a DirectoryOffline."""

    def __init__(
        self, server: LdapServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.server = server
        self.login: KerberosLogin | None = None
        """Encrypts everything from now on, if it does."""
        self._reader = reader
        self._writer = writer
        self._decrypted = bytearray()

    @classmethod
    async def connect(cls, server: LdapServer, context: ssl.SSLContext | None, seconds: float) -> Stream:
        """Connect, in TLS if a context is given; silence of that many seconds ends the connection."""
        with _reaching(server):
            reader, writer = await asyncio.open_connection(
                server.host, server.port, ssl=context, limit=MAX_MESSAGE_BYTES
            )
            # A server that vanished without a word is noticed before the patience for its answer ends.
            connected = writer.get_extra_info("socket")
            milliseconds = max(int(seconds * 1000), 1)
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        return cls(server, reader, writer)

    async def start_tls(self, context: ssl.SSLContext) -> None:
        """Begin TLS, to which the server has agreed."""
        # What came before would be taken for the server's afterwards; anybody can have sent it.
        if self._reader._buffer:  # type: ignore[attr-defined]  # there is no public way to look
            raise UntrustedServerError(f"{self.server} goes on in the open after it agreed to TLS")
        with _reaching(self.server):
            await self._writer.start_tls(context, server_hostname=self.server.host)

    @property
    def certificate(self) -> bytes | None:
        """The server's certificate; none without TLS."""
        tls = self._writer.get_extra_info("ssl_object")
        found: bytes | None = tls.getpeercert(binary_form=True) if tls is not None else None
        return found

    async def send(self, message: bytes) -> None:
        """Send a message."""
        if self.login is not None and self.login.encrypts:
            size = max(self.login.max_sent - _WRAPPING, 1)
            pieces = (message[start : start + size] for start in range(0, len(message), size))
            wrapped = (self.login.wrap(piece) for piece in pieces)
            message = b"".join(len(piece).to_bytes(4, "big") + piece for piece in wrapped)
        try:
            self._writer.write(message)
            await self._writer.drain()
        except OSError as error:
            raise self._lost(error) from None

    async def receive(self) -> bytes:
        """Wait for a whole message. Raises BerError too, if it is none."""
        head = await self._read(2)
        head += await self._read(header_size(head[1]) - 2)
        length = head[1] if head[1] < 0x80 else int.from_bytes(head[2:], "big")
        if length > MAX_MESSAGE_BYTES:
            raise BerError(f"a message of {length:,} bytes")
        return head + await self._read(length)

    async def close(self, last: bytes = b"") -> None:
        """Hang up with a last message, without waiting long for a server that does not."""
        with suppress(OSError, RuntimeError):
            if self.login is None:
                self._writer.write(last)
            self._writer.close()
            async with asyncio.timeout(_CLOSING_SECONDS):
                await self._writer.wait_closed()

    async def _read(self, count: int) -> bytes:
        if self.login is None or not self.login.encrypts:
            return await self._read_raw(count)
        while len(self._decrypted) < count:
            length = int.from_bytes(await self._read_raw(4), "big")
            if length > MAX_MESSAGE_BYTES:
                raise BerError(f"an encrypted piece of {length:,} bytes")
            self._decrypted += self.login.unwrap(await self._read_raw(length))
        found = bytes(self._decrypted[:count])
        del self._decrypted[:count]
        return found

    async def _read_raw(self, count: int) -> bytes:
        try:
            return await self._reader.readexactly(count)
        except asyncio.IncompleteReadError:
            raise DirectoryOffline(f"{self.server} has hung up") from None
        except OSError as error:
            raise self._lost(error) from None

    def _lost(self, error: OSError) -> DirectoryOffline:
        return DirectoryOffline(f"the connection to {self.server} broke: {error.strerror or error}")


@contextmanager
def _reaching(server: LdapServer) -> Iterator[None]:
    try:
        yield
    except ssl.SSLCertVerificationError as error:
        raise UntrustedServerError(
            f"the certificate of {server} is not accepted: {error.verify_message}",
            hint="set ca_file to its authority's certificate, and name the server as its own does",
        ) from None
    except ssl.SSLError as error:
        raise UntrustedServerError(
            f"{server} does not speak TLS: {error.reason or error}", hint="check the port"
        ) from None
    except TimeoutError:
        raise  # the caller's own patience
    except OSError as error:
        raise DirectoryOffline(f"{server} cannot be reached: {error.strerror or error}") from None
