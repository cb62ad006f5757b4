"""One connection to one LDAP server: TLS, login, and one operation at a time.

Deviation from MS-MQDSSM 3.1.6.18, which connects to port 389 and binds as the platform likes: the server
shows a certificate first, or both sides a Kerberos ticket, and no password goes over an open connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from lanner.directory.base import DirectoryError, DirectoryOffline, InvalidDirectoryError
from lanner.directory.ldap import wire
from lanner.directory.ldap.ber import BerError
from lanner.directory.ldap.entry import Entry
from lanner.directory.ldap.errors import ResultCode, refuse
from lanner.directory.ldap.sasl import MECHANISM, KerberosLogin
from lanner.directory.ldap.settings import LdapServer, LdapSettings
from lanner.directory.ldap.stream import Stream, tls_context
from lanner.directory.ldap.wire import Attributes, Control, Filter, Kind, Response, Scope

__all__ = ["Connection"]

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
        self._stream: Stream

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
        """Hang up."""
        stream = getattr(self, "_stream", None)
        if stream is not None:
            await stream.close(wire.unbind(self._next()))

    # Opening.

    async def _open(self) -> None:
        settings = self._settings
        context = None if settings.plain else tls_context(settings.ca_file)
        at_once = None if settings.start_tls else context
        self._stream = await Stream.connect(self.server, at_once, settings.connect_seconds)
        if context is not None and settings.start_tls:
            request = wire.start_tls(self._next())
            await self._ask(request, Kind.EXTENDED, f"asking {self.server} for TLS")
            await self._stream.start_tls(context)
        if settings.gssapi:
            await self._log_in_by_ticket()
        else:
            request = wire.bind_simple(self._next(), settings.user, settings.password())
            await self._ask(request, Kind.BIND, f"logging in to {self.server} as {settings.user}")

    async def _log_in_by_ticket(self) -> None:
        login = KerberosLogin(self.server.host, self._stream.certificate)
        what = f"logging in to {self.server} with Kerberos"
        token: bytes | None = None
        for _ in range(MAX_LOGIN_STEPS):
            step = await login.step(token)
            await self._stream.send(wire.bind_sasl(self._next(), MECHANISM, step))
            answer = await self._receive(Kind.BIND)
            if answer.result.code == ResultCode.SUCCESS:
                self._stream.login = login
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
            await self._stream.send(request)
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
            await self._stream.send(request)
            answer = await self._receive(kind)
        if answer.result.code != ResultCode.SUCCESS:
            refuse(what, answer.result)

    def _patience(self) -> _Patience:
        return _Patience(self.server, self._settings.answer_seconds)

    async def _receive(self, kind: Kind | None = None) -> Response:
        try:
            answer = wire.decode(await self._stream.receive())
        except BerError as error:
            raise self._garbled(error) from None
        # One operation at a time; number 0 is a server that says why it hangs up (RFC 2251 4.4).
        if answer.message_id == 0:
            words = answer.result.diagnostics or f"LDAP result {answer.result.code}"
            raise DirectoryOffline(f"{self.server} hangs up: {words[:200]}")
        if answer.message_id != self._number or kind not in (None, answer.kind):
            raise self._garbled(f"message {answer.message_id} of kind {answer.kind:#04x}, unasked")
        return answer

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
