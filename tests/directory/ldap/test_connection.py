"""One connection, and several servers as one, against servers that misbehave."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from lanner.directory.base import DirectoryOffline, InvalidDirectoryError, ObjectNotFound
from lanner.directory.ldap import sasl, wire
from lanner.directory.ldap.ber import integer, octets, sequence
from lanner.directory.ldap.connection import Connection
from lanner.directory.ldap.errors import InvalidLdapSettingsError, LoginRefusedError, UntrustedServerError
from lanner.directory.ldap.servers import Servers
from lanner.directory.ldap.settings import LdapServer, LdapSettings, parse_url
from lanner.directory.ldap.wire import Present, Scope

Reply = Callable[[int, int], bytes | None]
"""What to say to a message of this number and kind; none is to hang up."""

BIND, SEARCH, DELETE, UNBIND, EXTENDED = 0x60, 0x63, 0x4A, 0x42, 0x77
RESULTS = {BIND: 0x61, EXTENDED: 0x78, SEARCH: 0x65, DELETE: 0x6B}


def result(number: int, kind: int, code: int = 0, words: str = "") -> bytes:
    body = sequence(integer(code, 0x0A), octets(""), octets(words), tag=RESULTS[kind])
    return sequence(integer(number), body)


def entry(number: int, name: str) -> bytes:
    return sequence(integer(number), sequence(octets(name), sequence(), tag=0x64))


def agreeable(number: int, kind: int) -> bytes | None:
    return (entry(number, "CN=one") if kind == SEARCH else b"") + result(number, kind)


@asynccontextmanager
async def serving(reply: Reply) -> AsyncIterator[int]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readexactly(2)
                body = await reader.readexactly(
                    head[1]
                    if head[1] < 0x80
                    else int.from_bytes(await reader.readexactly(head[1] & 0x7F), "big")
                )
                kind = body[2 + body[1]]
                answer = reply(int.from_bytes(body[2 : 2 + body[1]], "big"), kind) if kind != UNBIND else None
                if answer is None:
                    break
                writer.write(answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


class OpenSettings(LdapSettings, frozen=True, kw_only=True):
    """For these tests alone: what is said to a test's server may be read by anybody."""

    def check(self) -> None:
        pass


@pytest.fixture
def settings(tmp_path: Path) -> Callable[..., LdapSettings]:
    (tmp_path / "password").write_text("secret")

    def make(*ports: int, **others: Any) -> LdapSettings:
        options = {"connect_seconds": 2.0, "answer_seconds": 2.0} | others
        return OpenSettings(
            servers=tuple(f"127.0.0.1:{port}" for port in ports),
            user="u",
            password_file=str(tmp_path / "password"),
            plain=True,
            **options,
        )

    return make


async def opened(made: LdapSettings) -> Connection:
    return await Connection.open(made, made.listed[0])


async def search(on: Connection | Servers, limit: int = 10) -> list[str]:
    return [one.dn for one in await on.search("DC=t", Scope.SUBTREE, Present("objectClass"), [], limit=limit)]


async def test_asks_and_is_answered(settings: Callable[..., LdapSettings]) -> None:
    async with serving(agreeable) as port:
        connection = await opened(settings(port))
        assert await search(connection) == ["CN=one"]
        await connection.delete("CN=one")
        await connection.close()


async def test_no_connection_without_safe_settings() -> None:
    unsafe = LdapSettings(servers=("127.0.0.1",), user="u", password_file="p", plain=True)
    with pytest.raises(InvalidLdapSettingsError, match="never sent without TLS"):
        Servers(unsafe)


async def test_pages(settings: Callable[..., LdapSettings]) -> None:
    pages = iter([b"1", b"2", b""])

    def reply(number: int, kind: int) -> bytes:
        if kind != SEARCH:
            return result(number, kind)
        control = sequence(octets(wire.PAGED_RESULTS), octets(sequence(integer(0), octets(next(pages)))))
        body = sequence(integer(0, 0x0A), octets(""), octets(""), tag=0x65)
        reference = sequence(integer(number), sequence(octets("ldap://elsewhere"), tag=0x73))
        done = sequence(integer(number), body, sequence(control, tag=0xA0))
        return entry(number, f"CN={number}") + reference + done

    async with serving(reply) as port:
        connection = await opened(settings(port))
        assert await search(connection) == ["CN=2", "CN=3", "CN=4"]
        await connection.close()


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"\x30\x84\x7f\xff\xff\xff",
        b"\x30\x80",
        b"\x30\x03\x02\x01\x01",
        sequence(integer(77), sequence(integer(0, 0x0A), octets(""), octets(""), tag=0x65)),
        sequence(integer(2), sequence(integer(0, 0x0A), octets(""), octets(""), tag=0x61)),
        sequence(integer(0), sequence(integer(52, 0x0A), octets(""), octets("bye"), tag=0x78)),
        b"",
    ],
)
async def test_answers_that_are_none(settings: Callable[..., LdapSettings], answer: bytes) -> None:
    def reply(number: int, kind: int) -> bytes | None:
        return result(number, kind) if kind == BIND else answer

    async with serving(reply) as port:
        connection = await opened(settings(port, answer_seconds=0.3))
        with pytest.raises(DirectoryOffline, match=str(port)):
            await search(connection)
        await connection.close()


async def test_more_entries_than_the_limit(settings: Callable[..., LdapSettings]) -> None:
    def reply(number: int, kind: int) -> bytes:
        return entry(number, "CN=x") * 5 + result(number, kind) if kind == SEARCH else result(number, kind)

    async with serving(reply) as port:
        servers = Servers(settings(port))
        with pytest.raises(InvalidDirectoryError, match="more than 3"):
            await search(servers, limit=3)
        # What was left unread is no answer to the next question.
        assert len(await search(servers)) == 5
        await servers.close()


async def test_an_answer_that_says_no_keeps_the_connection(settings: Callable[..., LdapSettings]) -> None:
    logins = []

    def reply(number: int, kind: int) -> bytes:
        if kind == BIND:
            logins.append(number)
        return result(number, kind, 32 if kind == DELETE else 0)

    async with serving(reply) as port:
        servers = Servers(settings(port))
        for _ in range(3):
            with pytest.raises(ObjectNotFound, match="deleting CN=x"):
                await servers.delete("CN=x")
        assert len(logins) == 1
        await servers.close()


async def test_a_search_goes_on_with_the_next_server(settings: Callable[..., LdapSettings]) -> None:
    def dying(number: int, kind: int) -> bytes | None:
        return result(number, kind) if kind == BIND else None

    async with serving(dying) as one, serving(agreeable) as two:
        servers = Servers(settings(one, two))
        assert await search(servers) == ["CN=one"]
        assert await search(servers) == ["CN=one"]
        await servers.close()


async def test_a_change_is_never_made_twice(settings: Callable[..., LdapSettings]) -> None:
    seen: list[str] = []

    def dying(number: int, kind: int) -> bytes | None:
        if kind == DELETE:
            seen.append("one")
        return result(number, kind) if kind == BIND else None

    def other(number: int, kind: int) -> bytes:
        if kind == DELETE:
            seen.append("two")
        return result(number, kind)

    async with serving(dying) as one, serving(other) as two:
        servers = Servers(settings(one, two))
        with pytest.raises(DirectoryOffline, match="hung up"):
            await servers.delete("CN=x")
        assert seen == ["one"]
        await servers.delete("CN=x")
        assert seen == ["one", "two"]
        await servers.close()


async def test_nobody_answers(settings: Callable[..., LdapSettings]) -> None:
    servers = Servers(settings(1, 2))
    with pytest.raises(DirectoryOffline, match=r"127.0.0.1:1 .*; 127.0.0.1:2 "):
        await search(servers)


async def test_a_refused_login_is_not_tried_elsewhere(settings: Callable[..., LdapSettings]) -> None:
    asked = []

    def refusing(number: int, kind: int) -> bytes:
        asked.append(kind)
        return result(number, kind, 49, "data 52e")

    async with serving(refusing) as one, serving(refusing) as two:
        with pytest.raises(LoginRefusedError, match="data 52e"):
            await search(Servers(settings(one, two)))
    assert asked == [BIND]


@pytest.mark.parametrize("others", [{"plain": True}, {}, {"start_tls": True}])
async def test_a_mute_server_stops_nobody(
    settings: Callable[..., LdapSettings], others: dict[str, Any]
) -> None:
    """It accepts and says nothing, in TLS or without; meanwhile the loop goes on."""
    end = asyncio.Event()

    async def listen(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await end.wait()
        writer.close()

    mute = await asyncio.start_server(listen, "127.0.0.1", 0)
    made = OpenSettings(
        servers=(f"127.0.0.1:{mute.sockets[0].getsockname()[1]}",),
        user="u",
        password_file=settings(1).password_file,
        connect_seconds=0.3,
        **others,
    )
    asked = asyncio.create_task(opened(made))
    ticks = 0
    while not asked.done():
        await asyncio.sleep(0.01)
        ticks += 1
    with pytest.raises(DirectoryOffline, match=r"does not answer within 0\.3 seconds"):
        await asked
    assert ticks > 10
    end.set()
    mute.close()


async def test_a_question_that_nobody_waits_for(settings: Callable[..., LdapSettings]) -> None:
    calls = 0

    def slow_once(number: int, kind: int) -> bytes | None:
        nonlocal calls
        calls += kind == SEARCH
        return b"" if kind == SEARCH and calls == 1 else agreeable(number, kind)

    async with serving(slow_once) as port:
        servers = Servers(settings(port))
        asked: Awaitable[list[str]] = search(servers)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asked, 0.2)
        assert await search(servers) == ["CN=one"]
        await servers.close()


async def test_tls_where_there_is_none(settings: Callable[..., LdapSettings]) -> None:
    async with serving(lambda _number, _kind: b"no TLS here, sorry") as port:
        made = parse_url(
            f"ldaps://127.0.0.1:{port}",
            user="u",
            password_file=settings(1).password_file,
            connect_seconds=1.0,
        )
        with pytest.raises((UntrustedServerError, DirectoryOffline)):
            await opened(made)


async def test_words_that_were_slipped_in_before_tls(settings: Callable[..., LdapSettings]) -> None:
    def reply(number: int, kind: int) -> bytes:
        return result(number, kind) + result(number + 1, BIND)

    async with serving(reply) as port:
        made = parse_url(
            f"ldap://127.0.0.1:{port}", user="u", password_file=settings(1).password_file, start_tls=True
        )
        with pytest.raises(UntrustedServerError, match="in the open"):
            await opened(made)


async def test_tls_refused(settings: Callable[..., LdapSettings]) -> None:
    async with serving(lambda number, kind: result(number, kind, 52, "no certificate")) as port:
        made = parse_url(
            f"ldap://127.0.0.1:{port}", user="u", password_file=settings(1).password_file, start_tls=True
        )
        with pytest.raises(DirectoryOffline, match="no certificate"):
            await opened(made)


async def test_a_file_without_certificates(tmp_path: Path) -> None:
    for name in ("missing", "empty"):
        (tmp_path / "empty").write_text("nothing")
        made = parse_url("ldaps://127.0.0.1:1", gssapi=True, ca_file=str(tmp_path / name))
        with pytest.raises(InvalidLdapSettingsError, match="no certificates"):
            await opened(made)


def test_kerberos_names_the_extra_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "spnego", None)
    with pytest.raises(InvalidLdapSettingsError, match=r"lanner\[kerberos\]"):
        sasl.KerberosLogin(str(LdapServer("dc1", 389)), None)
