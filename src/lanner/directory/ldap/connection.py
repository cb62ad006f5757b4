"""One connection to one LDAP server: TLS, login, and one operation at a time.

Deviation from MS-MQDSSM 3.1.6.18, which connects to port 389 and binds as the platform likes: the server
shows a certificate first, or both sides a Kerberos ticket, and no password goes over an open connection.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Sequence
from contextlib import suppress

from lanner.directory.base import DirectoryError, DirectoryOffline, InvalidDirectoryError
from lanner.directory.ldap import wire
from lanner.directory.ldap.ber import BerError, header_size
from lanner.directory.ldap.entry import Entry
from lanner.directory.ldap.errors import (
    InvalidLdapSettingsError,
    ResultCode,
    UntrustedServerError,
    refuse,
)
from lanner.directory.ldap.sasl import MECHANISM, KerberosLogin
from lanner.directory.ldap.settings import LdapServer, LdapSettings
from lanner.directory.ldap.wire import Attributes, Control, Filter, Kind, Response, Scope

__all__ = ["MAX_MESSAGE_BYTES", "Connection"]

MAX_MESSAGE_BYTES = 16 * 1024 * 1024
"""One entry: a public queue manager has keys, certificates (1 MB by the schema) and a descriptor."""

MAX_LOGIN_STEPS = 8
"""Kerberos needs three."""

_SECURITY_PARTS = 0x07
"""Owner, group and discretionary list; the system list is for administrators alone."""


class Connection:
    """A connection that is open. After anything but a DirectoryError of an answer, close it."""

    def __init__(self, settings: LdapSettings, server: LdapServer) -> None:
        self.server = server
        self._settings = settings
        self._number = 0
        self._login: KerberosLogin | None = None
        self._decrypted = bytearray()
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter

    @classmethod
    async def open(cls, settings: LdapSettings, server: LdapServer) -> Connection:
        """Connect and log in. Raises DirectoryOffline, UntrustedServerError, LoginRefusedError."""
        connection = cls(settings, server)
        try:
            async with asyncio.timeout(settings.connect_seconds):
                await connection._open()
        except BaseException as error:
            await connection.close()
            if isinstance(error, TimeoutError):
                raise DirectoryOffline(
                    f"{server} does not answer within {settings.connect_seconds:g} seconds"
                ) from None
            raise
        return connection

    async def search(
        self, base: str, scope: Scope, wanted: Filter, attributes: Sequence[str], *, limit: int
    ) -> list[Entry]:
        """All entries that match, page by page; more than ``limit`` are an error."""
        found: list[Entry] = []
        cookie = b""
        while True:
            controls = [wire.sd_flags(_SECURITY_PARTS)]
            if scope is not Scope.BASE:
                controls.append(wire.paging(self._settings.page_size, cookie))
            done = await self._search_page(base, scope, wanted, attributes, controls, found, limit)
            paging = done.controls.get(wire.PAGED_RESULTS)
            try:
                cookie = wire.read_cookie(paging) if paging is not None else b""
            except BerError as error:
                raise self._garbled(error) from None
            if not cookie:
                return found

    async def add(self, dn: str, attributes: Attributes) -> None:
        """Make an entry."""
        await self._ask(wire.add(self._next(), dn, attributes), Kind.ADD, f"adding {dn}")

    async def modify(self, dn: str, attributes: Attributes) -> None:
        """Replace attributes of an entry."""
        await self._ask(wire.modify(self._next(), dn, attributes), Kind.MODIFY, f"changing {dn}")

    async def delete(self, dn: str) -> None:
        """Take an entry away."""
        await self._ask(wire.delete(self._next(), dn), Kind.DELETE, f"deleting {dn}")

    async def close(self) -> None:
        """Hang up, without waiting for a server that does not."""
        writer = getattr(self, "_writer", None)
        if writer is None:
            return
        with suppress(OSError, RuntimeError):
            if self._login is None:
                writer.write(wire.unbind(self._next()))
            writer.close()
            async with asyncio.timeout(1):
                await writer.wait_closed()

    # Opening.

    async def _open(self) -> None:
        context = None if self._settings.plain else self._context()
        try:
            self._reader, self._writer = await asyncio.open_connection(
                self.server.host,
                self.server.port,
                ssl=context if not self._settings.start_tls else None,
                limit=MAX_MESSAGE_BYTES,
            )
            self._notice_silence()
            if context is not None and self._settings.start_tls:
                request = wire.start_tls(self._next())
                await self._ask(request, Kind.EXTENDED, f"asking {self.server} for TLS")
                self._refuse_early_words()
                await self._writer.start_tls(context, server_hostname=self.server.host)
        except ssl.SSLCertVerificationError as error:
            raise UntrustedServerError(
                f"the certificate of {self.server} is not accepted: {error.verify_message}",
                hint="set ca_file to its authority's certificate, and name the server as its own does",
            ) from None
        except ssl.SSLError as error:
            raise UntrustedServerError(
                f"{self.server} does not speak TLS: {error.reason or error}", hint="check the port"
            ) from None
        except OSError as error:
            raise DirectoryOffline(f"{self.server} cannot be reached: {error.strerror or error}") from None
        if self._settings.gssapi:
            await self._log_in_by_ticket()
        else:
            request = wire.bind_simple(self._next(), self._settings.user, self._settings.password())
            await self._ask(request, Kind.BIND, f"logging in to {self.server} as {self._settings.user}")

    def _notice_silence(self) -> None:
        """A server that vanished without a word is noticed before the patience for its answer ends."""
        connected = self._writer.get_extra_info("socket")
        milliseconds = max(int(self._settings.connect_seconds * 1000), 1)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    def _refuse_early_words(self) -> None:
        """What came before TLS began would be taken for the server's afterwards; anybody can have sent it."""
        if self._reader._buffer:  # type: ignore[attr-defined]  # there is no public way to look
            raise UntrustedServerError(f"{self.server} goes on in the open after it agreed to TLS")

    def _context(self) -> ssl.SSLContext:
        try:
            return ssl.create_default_context(cafile=self._settings.ca_file or None)
        except OSError as error:  # SSLError is one
            raise InvalidLdapSettingsError(
                f"no certificates can be read from {self._settings.ca_file}: {error.strerror or error}",
                hint="check the setting ca_file: it is a file of certificates in PEM",
            ) from None

    async def _log_in_by_ticket(self) -> None:
        tls = self._writer.get_extra_info("ssl_object")
        login = KerberosLogin(self.server.host, tls.getpeercert(binary_form=True) if tls else None)
        what = f"logging in to {self.server} with Kerberos"
        token: bytes | None = None
        for _ in range(MAX_LOGIN_STEPS):
            request = wire.bind_sasl(self._next(), MECHANISM, await login.step(token))
            await self._send(request)
            answer = await self._receive(Kind.BIND)
            if answer.result.code == ResultCode.SUCCESS:
                self._login = login
                return
            if answer.result.code != ResultCode.SASL_BIND_IN_PROGRESS:
                refuse(what, answer.result)
            token = answer.credentials
        raise DirectoryError(f"{what}: it never ends")

    # Messages.

    def _next(self) -> int:
        self._number += 1
        return self._number

    async def _search_page(
        self,
        base: str,
        scope: Scope,
        wanted: Filter,
        attributes: Sequence[str],
        controls: Sequence[Control],
        found: list[Entry],
        limit: int,
    ) -> Response:
        time_limit = int(self._settings.answer_seconds)
        request = wire.search(
            self._next(), base, scope, wanted, attributes, time_limit=time_limit, controls=controls
        )
        async with self._patience():
            await self._send(request)
            while (answer := await self._receive()).kind != Kind.SEARCH_DONE:
                if answer.kind == Kind.ENTRY:
                    if len(found) >= limit:
                        raise InvalidDirectoryError(
                            f"{base or 'the root'} holds more than {limit:,} entries of a kind",
                            hint="set base to the part of the directory that is meant",
                        )
                    found.append(Entry(answer.dn, answer.attributes))
                elif answer.kind != Kind.REFERENCE:
                    raise self._garbled(f"answer {answer.kind:#04x} to a search")
        if answer.result.code != ResultCode.SUCCESS:
            refuse(f"searching {base or 'the root'}", answer.result)
        return answer

    async def _ask(self, request: bytes, kind: Kind, what: str) -> None:
        async with self._patience():
            await self._send(request)
            answer = await self._receive(kind)
        if answer.result.code != ResultCode.SUCCESS:
            refuse(what, answer.result)

    def _patience(self) -> _Patience:
        return _Patience(self.server, self._settings.answer_seconds)

    async def _send(self, message: bytes) -> None:
        if self._login is not None and self._login.encrypts:
            # A margin for what encryption adds to each piece.
            size = max(self._login.max_sent - 256, 1)
            pieces = (message[start : start + size] for start in range(0, len(message), size))
            wrapped = (self._login.wrap(piece) for piece in pieces)
            message = b"".join(len(piece).to_bytes(4, "big") + piece for piece in wrapped)
        try:
            self._writer.write(message)
            await self._writer.drain()
        except OSError as error:
            raise self._lost(error) from None

    async def _receive(self, kind: Kind | None = None) -> Response:
        head = await self._read(2)
        try:
            head += await self._read(header_size(head[1]) - 2)
            length = head[1] if head[1] < 0x80 else int.from_bytes(head[2:], "big")
            if length > MAX_MESSAGE_BYTES:
                raise BerError(f"a message of {length:,} bytes")
            answer = wire.decode(head + await self._read(length))
        except BerError as error:
            raise self._garbled(error) from None
        # One operation at a time; number 0 is a server that says why it hangs up (RFC 2251 4.4).
        if answer.message_id == 0:
            words = answer.result.diagnostics or f"LDAP result {answer.result.code}"
            raise DirectoryOffline(f"{self.server} hangs up: {words[:200]}")
        if answer.message_id != self._number or kind not in (None, answer.kind):
            raise self._garbled(f"message {answer.message_id} of kind {answer.kind:#04x}, unasked")
        return answer

    async def _read(self, count: int) -> bytes:
        if self._login is None or not self._login.encrypts:
            return await self._read_raw(count)
        while len(self._decrypted) < count:
            length = int.from_bytes(await self._read_raw(4), "big")
            if length > MAX_MESSAGE_BYTES:
                raise self._garbled(f"an encrypted piece of {length:,} bytes")
            self._decrypted += self._login.unwrap(await self._read_raw(length))
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

    def _garbled(self, what: object) -> DirectoryOffline:
        return DirectoryOffline(f"{self.server} does not speak LDAP as it should: {what}")


class _Patience:
    """A time-out that says who did not answer."""

    def __init__(self, server: LdapServer, seconds: float) -> None:
        self._server = server
        self._timeout = asyncio.timeout(seconds)
        self._seconds = seconds

    async def __aenter__(self) -> None:
        await self._timeout.__aenter__()

    async def __aexit__(self, *error: object) -> None:
        try:
            await self._timeout.__aexit__(*error)  # type: ignore[arg-type]
        except TimeoutError:
            raise DirectoryOffline(
                f"{self._server} does not answer within {self._seconds:g} seconds"
            ) from None
