"""The SRMP endpoint is attacked over sockets: it refuses or hangs up, goes on working, and does not grow."""

from __future__ import annotations

import asyncio
import itertools
import re
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.scenarios.srmp_process import SrmpProcess

from lanner.model.message import Delivery, Message
from lanner.model.message_id import MessageId
from lanner.protocols.srmp import wire
from lanner.protocols.srmp.mapping import from_message

QUEUE = "attacked"
SENDER = UUID(int=7)

FUZZ_SECONDS = 4.0
"""For each of the two random attacks: whatever is left of their examples is skipped then."""
EXAMPLES = 400
SILENCE = 0.03
"""Seconds without an answer after which a request is taken for one that is not whole."""
PATIENCE = 15.0
"""Seconds in which anything that is whole is answered, on a busy machine too."""

REFUSALS = {400, 404, 405, 408, 413, 414, 431}
GROWTH = 48 * 1024 * 1024
"""Bytes by which the process may grow under attack: some large bodies, still in the allocator's hands."""

_STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")
_numbers = itertools.count(1)


class Target:
    """A service of its own, and what is sent to it."""

    def __init__(self, process: SrmpProcess) -> None:
        self.process = process

    def exchange(self, data: bytes, *, is_whole: bool = True) -> tuple[list[int], bool]:
        """Send bytes; gives the statuses of the answers, and whether the connection was closed then.

        What is not whole gets no answer, and nobody waits for one.
        """
        answer, is_closed = b"", False
        with socket.create_connection(("127.0.0.1", self.process.port), timeout=PATIENCE) as connection:
            connection.settimeout(PATIENCE if is_whole else SILENCE)
            try:
                connection.sendall(data)
                while piece := connection.recv(65536):
                    answer += piece
                    connection.settimeout(SILENCE)
                is_closed = True
            except TimeoutError:
                pass
            except OSError:
                is_closed = True
        return [int(status) for status in _STATUS.findall(answer)], is_closed

    def check(self) -> None:
        """It still works."""
        started = time.monotonic()
        assert self.exchange(request())[0] == [200]
        assert time.monotonic() - started < PATIENCE
        assert self.process.complaints() == []

    def memory(self) -> int:
        """Bytes that it holds."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        assert found is not None
        return int(found[1]) * 1024


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    process = SrmpProcess(tmp_path_factory.mktemp("fuzz") / "manager", "attacked")
    process.configure("")

    async def start() -> None:
        await process.start()
        async with process.client() as client:
            await client.create_queue(rf".\private$\{QUEUE}")

    asyncio.run(start())
    yield Target(process)
    process.end()


def encoded(body: bytes = b"body") -> tuple[bytes, bytes]:
    """A good message: content type and body of its request."""
    message = Message(
        id=MessageId.of(SENDER, next(_numbers)),
        source_machine=SENDER,
        destination_queue=f"DIRECT=HTTP://attacked/msmq/private$/{QUEUE}",
        delivery=Delivery.EXPRESS,
        sent_time=time.time(),
        body=body,
    )
    made = wire.encode_request(from_message(message))
    return made.content_type.encode(), bytes(made.body)


def request(
    body: bytes | None = None,
    *headers: bytes,
    content_type: bytes | None = None,
    length: bytes | None = None,
    line: bytes = b"POST /msmq/private$/attacked HTTP/1.1",
) -> bytes:
    """A request; whatever is not said is as it should be."""
    good_type, good_body = encoded()
    body = good_body if body is None else body
    lines = [line, b"Host: attacked", b"Content-Type: " + (content_type or good_type)]
    if length is None:
        lines.append(b"Content-Length: %d" % len(body))
    elif length:
        lines.append(b"Content-Length: " + length)
    return b"\r\n".join([*lines, *headers]) + b"\r\n\r\n" + body


def xml(inside: bytes) -> bytes:
    return (
        b'<se:Envelope xmlns:se="http://schemas.xmlsoap.org/soap/envelope/"><se:Header>'
        + inside
        + b"</se:Header><se:Body></se:Body></se:Envelope>"
    )


def chunked(body: bytes) -> bytes:
    return b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)


# Attacks with a name.

HIDDEN = request()

SMUGGLING: dict[str, Callable[[], bytes]] = {
    "two lengths": lambda: request(None, b"Content-Length: 3"),
    "two lengths that agree": lambda: request(b"abc", b"Content-Length: 3"),
    "a list of lengths": lambda: request(b"abc", length=b"3, 3"),
    "a length with a sign": lambda: request(b"abc", length=b"+3"),
    "a negative length": lambda: request(b"abc", length=b"-3"),
    "a length in hexadecimal": lambda: request(b"abc", length=b"0x3"),
    "a length that is no number": lambda: request(b"abc", length=b"many"),
    "a length beyond 64 bits": lambda: request(b"abc", length=b"9" * 30),
    "a length beyond the limit": lambda: request(b"abc", length=b"999999999"),
    "encoding and length": lambda: request(chunked(b"abc"), b"Transfer-Encoding: chunked") + HIDDEN,
    "length and encoding, hidden": lambda: request(
        b"0\r\n\r\n" + HIDDEN, b"Transfer-Encoding: chunked", length=b"5"
    ),
    "an unknown encoding": lambda: request(b"abc", b"Transfer-Encoding: gzip", length=b""),
    "an encoding behind chunked": lambda: request(b"abc", b"Transfer-Encoding: chunked, gzip", length=b""),
    "chunked with a tab": lambda: request(b"abc", b"Transfer-Encoding:\x0bchunked"),
    "a bad chunk": lambda: request(b"zz\r\nabc\r\n", b"Transfer-Encoding: chunked", length=b""),
    "a chunk beyond 64 bits": lambda: request(b"f" * 20 + b"\r\n", b"Transfer-Encoding: chunked", length=b""),
    "a space before the colon": lambda: request(None, b"Content-Length : 3"),
    "a header that goes on": lambda: request(None, b"X-One: a\r\n b"),
    "a null in a header": lambda: request(None, b"X-One: a\x00b"),
    "a bare carriage return": lambda: request(None, b"X-One: a\rContent-Length: 3"),
    "two hosts": lambda: request(None, b"Host: another"),
    "no version": lambda: b"POST /msmq/private$/attacked\r\n\r\n",
    "another version": lambda: request(line=b"POST /msmq/private$/attacked HTTP/3.7"),
    "no HTTP": lambda: b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200),
    "HTTP/2": lambda: b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(50),
    "upgrade": lambda: request(None, b"Connection: Upgrade", b"Upgrade: h2c"),
}


@pytest.mark.parametrize("attack", SMUGGLING)
def test_what_two_could_read_in_two_ways_is_refused(target: Target, attack: str) -> None:
    statuses, is_closed = target.exchange(SMUGGLING[attack]())
    assert set(statuses) <= REFUSALS
    assert len(statuses) <= 1  # and nothing that hides behind it is read
    assert is_closed
    target.check()


HEADS = {
    "a method": (b"GET /msmq/private$/attacked HTTP/1.1\r\nHost: x\r\n\r\n", 405),
    "a path": (request(line=b"POST /elsewhere HTTP/1.1"), 404),
    "a path that climbs": (request(line=b"POST /msmq/../../etc/passwd HTTP/1.1"), 400),
    "a long target": (request(line=b"POST /msmq/" + b"a" * 100_000 + b" HTTP/1.1"), 414),
    "a long header": (request(None, b"X-One: " + b"a" * 100_000), 431),
    "many headers": (request(None, *(b"X-%d: a" % number for number in range(5_000))), 431),
    "a large body": (request(b"", length=b"50000000"), 413),
}


@pytest.mark.parametrize("attack", HEADS)
def test_heads_have_limits(target: Target, attack: str) -> None:
    data, status = HEADS[attack]
    statuses, _ = target.exchange(data)
    assert statuses in ([status], [200] if "climbs" in attack else [])
    target.check()


BOMB = (
    b'<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa">'
    + b"".join(b'<!ENTITY a%d "%b">' % (n + 1, b"&a%d;" % n * 10 if n else b"&a;" * 10) for n in range(10))
    + b"]><a>&a9;</a>"
)
XML: dict[str, Callable[[], bytes]] = {
    "an entity bomb": lambda: BOMB,
    "an external entity": lambda: b'<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>',
    "an external document type": lambda: b'<!DOCTYPE a SYSTEM "http://127.0.0.1:1/a.dtd"><a/>',
    "deep nesting": lambda: xml(b"<a>" * 20_000 + b"</a>" * 20_000),
    "nesting without an end": lambda: b"<a>" * 1_000_000,
    "many attributes": lambda: xml(b"<a " + b"".join(b'b%d="" ' % n for n in range(100_000)) + b"/>"),
    "a million attributes": lambda: xml(b"<a " + b"".join(b'b%d="" ' % n for n in range(1_000_000)) + b"/>"),
    "the same attribute": lambda: xml(b"<a " + b'b="" ' * 100_000 + b"/>"),
    "many namespaces": lambda: xml(b"<a " + b"".join(b'xmlns:b%d="c" ' % n for n in range(50_000)) + b"/>"),
    "many elements": lambda: xml(b"<a/>" * 500_000),
    "a long name": lambda: xml(b"<" + b"a" * 1_000_000 + b"/>"),
    "a long text": lambda: xml(b"<a>" + b"&lt;" * 500_000 + b"</a>"),
    "nothing": lambda: b"",
    "zeros": lambda: bytes(1_000_000),
    "UTF-16": lambda: xml(b"").decode().encode("utf-16"),
}


@pytest.mark.parametrize("attack", XML)
@pytest.mark.parametrize("content_type", [b"text/xml", b"multipart/related; boundary=a; type=text/xml"])
def test_documents_have_limits(target: Target, attack: str, content_type: bytes) -> None:
    document = XML[attack]()
    if content_type != b"text/xml":
        head = b"--a\r\nContent-Type: text/xml\r\nContent-Length: %d\r\n\r\n" % len(document)
        document = head + document + b"\r\n--a--\r\n"
    statuses, _ = target.exchange(request(document, content_type=content_type))
    assert statuses in ([400], [413], [])
    target.check()


def test_truncated_parts(target: Target) -> None:
    content_type, body = encoded(b"x" * 200)
    for length in range(0, len(body) - 1, 53):
        statuses, _ = target.exchange(request(body[:length], content_type=content_type))
        # What is missing may be the closing boundary alone, as in real requests.
        assert statuses == [400] or (statuses == [200] and length > len(body) - 80)
    target.check()


def test_garbage_behind_a_good_request(target: Target) -> None:
    for garbage in (
        b"garbage\r\n\r\n",
        bytes(100),
        b"POST",
        request(length=b"-1"),
        b"GET / HTTP/1.1\r\n\r\n",
    ):
        statuses, _ = target.exchange(request() + garbage)
        assert statuses[0] == 200
        assert set(statuses[1:]) <= REFUSALS
        target.check()


# Attacks by chance.

PIECES = [
    b"\r\n", b"\r\n\r\n", b"\n", b"\r", b"\x00", b"\xff", b" ", b":", b"Content-Length: 0\r\n", b"chunked",
    b"Content-Length: 99999999999999999999\r\n", b"Transfer-Encoding: chunked\r\n", b"%00", b"%", b"?",
    b"Expect: 100-continue\r\n", b"Connection: close\r\n", b"HTTP/1.1", b"HTTP/1.0", b"HTTP/9.9", b"POST ",
    b"GET / HTTP/1.1\r\n\r\n", b"<", b"&", b"<!DOCTYPE a>", b"--", b"9" * 40, b"a" * 5_000,
]  # fmt: skip

changes = st.lists(
    st.tuples(st.floats(0, 1), st.integers(0, 40), st.sampled_from(PIECES) | st.binary(max_size=8)),
    min_size=1,
    max_size=4,
)


def changed(data: bytes, what: list[tuple[float, int, bytes]]) -> bytes:
    for where, removed, inserted in what:
        position = int(where * len(data))
        data = data[:position] + inserted + data[position + removed :]
    return data


def attack_by_chance(target: Target, is_head: bool) -> None:
    """Mutated requests: refused, taken where the change was harmless, or waited for."""
    deadline = time.monotonic() + FUZZ_SECONDS

    @settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(changes)
    def attack(what: list[tuple[float, int, bytes]]) -> None:
        if time.monotonic() > deadline:
            return
        data = request()
        end = data.index(b"\r\n\r\n") + 4
        data = changed(data[:end], what) + data[end:] if is_head else request(changed(data[end:], what))
        statuses, _ = target.exchange(data, is_whole=False)
        assert set(statuses) <= REFUSALS | {100, 200}, data

    attack()
    target.check()


@pytest.mark.parametrize("is_head", [True, False])
def test_mutated_requests(target: Target, is_head: bool) -> None:
    attack_by_chance(target, is_head)


def test_it_does_not_grow(target: Target) -> None:
    """The same attacks again and again: the first round may leave buffers behind, the others nothing more."""

    def attack() -> None:
        for make in (*XML.values(), *SMUGGLING.values()):
            data = make()
            target.exchange(data if data.startswith(b"POST") else request(data), is_whole=False)

    attack()
    before = target.memory()
    for _ in range(2):
        attack()
    target.check()
    assert target.memory() < before + GROWTH
