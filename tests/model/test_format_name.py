from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError
from ipaddress import IPv4Address
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lanner.model.errors import InvalidNameError
from lanner.model.format_name import (
    MAX_ELEMENTS,
    ConnectorName,
    DirectName,
    DirectProtocol,
    DistributionListName,
    FormatName,
    MachineName,
    MulticastName,
    MultipleName,
    PrivateName,
    PublicName,
    QueueKind,
    QueueSuffix,
    SingleQueueName,
    parse_format_name,
)
from lanner.model.names import MAX_NAME_LENGTH

TEXT = "2f0b2c8e-6f5d-4c58-9d6e-0a3b5c7d9e1f"
GUID = UUID(TEXT)
OS, TCP, HTTP, HTTPS, IPX = (DirectProtocol(name) for name in ("OS", "TCP", "HTTP", "HTTPS", "IPX"))
JOURNAL, DEADLETTER, DEADXACT = QueueSuffix.JOURNAL, QueueSuffix.DEADLETTER, QueueSuffix.DEADXACT

# Canonical text and the value it stands for: each is read, and written.
CANONICAL: list[tuple[str, FormatName]] = [
    (r"DIRECT=OS:lon-1\orders", DirectName(OS, "lon-1", "orders")),
    (r"DIRECT=OS:.\private$\orders", DirectName(OS, ".", "orders", is_private=True)),
    (r"DIRECT=OS:lon-1\orders;retry", DirectName(OS, "lon-1", "orders", subqueue="retry")),
    (r"DIRECT=OS:lon-1\orders;JOURNAL", DirectName(OS, "lon-1", "orders", suffix=JOURNAL)),
    (r"DIRECT=OS:lon-1\SYSTEM$;JOURNAL", DirectName(OS, "lon-1", suffix=JOURNAL)),
    (r"DIRECT=OS:lon-1\SYSTEM$;DEADLETTER", DirectName(OS, "lon-1", suffix=DEADLETTER)),
    (r"DIRECT=OS:lon-1\SYSTEM$;DEADXACT", DirectName(OS, "lon-1", suffix=DEADXACT)),
    (r"DIRECT=OS:lon-1\private$\private$", DirectName(OS, "lon-1", "private$", is_private=True)),
    (r"DIRECT=OS:lon-1\a/b%20c", DirectName(OS, "lon-1", "a/b%20c")),
    (r"DIRECT=TCP:10.0.0.1\private$\orders", DirectName(TCP, "10.0.0.1", "orders", is_private=True)),
    (r"DIRECT=TCP:fe80::1\orders", DirectName(TCP, "fe80::1", "orders")),
    (r"DIRECT=TCP:::1\orders", DirectName(TCP, "::1", "orders")),
    (r"DIRECT=IPX:0000000a:00a0c9112233\orders", DirectName(IPX, "0000000a:00a0c9112233", "orders")),
    ("DIRECT=HTTP://host/msmq/orders", DirectName(HTTP, "host", "orders")),
    ("DIRECT=HTTP://host/msmq/private$/orders", DirectName(HTTP, "host", "orders", is_private=True)),
    ("DIRECT=HTTP://host:8080/msmq/orders", DirectName(HTTP, "host", "orders", port=8080)),
    ("DIRECT=HTTPS://host:80/msmq/orders", DirectName(HTTPS, "host", "orders", port=80)),
    ("DIRECT=HTTP://[::1]/msmq/orders", DirectName(HTTP, "::1", "orders")),
    (
        "DIRECT=HTTPS://[fe80::1]:8443/msmq/q;JOURNAL",
        DirectName(HTTPS, "fe80::1", "q", port=8443, suffix=JOURNAL),
    ),
    ("DIRECT=HTTP://host/msmq/q;a%2Fb", DirectName(HTTP, "host", "q", subqueue="a/b")),
    ("DIRECT=HTTP://host/msmq/a%2Fb%25%3F%23", DirectName(HTTP, "host", "a/b%?#")),
    ("DIRECT=HTTP://host/msmq/SYSTEM$;DEADXACT", DirectName(HTTP, "host", suffix=DEADXACT)),
    (f"PUBLIC={TEXT}", PublicName(GUID)),
    (f"PUBLIC={TEXT};JOURNAL", PublicName(GUID, suffix=JOURNAL)),
    (f"PUBLIC={TEXT};retry", PublicName(GUID, subqueue="retry")),
    (rf"PRIVATE={TEXT}\1a", PrivateName(GUID, 0x1A)),
    (rf"PRIVATE={TEXT}\ffffffff;JOURNAL", PrivateName(GUID, 0xFFFFFFFF, suffix=JOURNAL)),
    (rf"PRIVATE={TEXT}\0;retry", PrivateName(GUID, 0, subqueue="retry")),
    (f"DL={TEXT}", DistributionListName(GUID)),
    (f"DL={TEXT}@sales.example", DistributionListName(GUID, "sales.example")),
    (f"MACHINE={TEXT}", MachineName(GUID)),
    (f"MACHINE={TEXT};JOURNAL", MachineName(GUID, JOURNAL)),
    (f"MACHINE={TEXT};DEADLETTER", MachineName(GUID, DEADLETTER)),
    (f"MACHINE={TEXT};DEADXACT", MachineName(GUID, DEADXACT)),
    (f"CONNECTOR={TEXT}", ConnectorName(GUID)),
    (f"CONNECTOR={TEXT};XACTONLY", ConnectorName(GUID, is_transactional=True)),
    ("MULTICAST=224.0.0.0:0", MulticastName(IPv4Address("224.0.0.0"), 0)),
    ("MULTICAST=239.255.255.255:65535", MulticastName(IPv4Address("239.255.255.255"), 65535)),
    (
        rf"DIRECT=OS:a\q,PUBLIC={TEXT},MULTICAST=234.1.1.1:8001",
        MultipleName(
            (DirectName(OS, "a", "q"), PublicName(GUID), MulticastName(IPv4Address("234.1.1.1"), 8001))
        ),
    ),
]

# Other ways to write a name, and its canonical text.
VARIANTS = [
    (r"direct=os:LON-1\PRIVATE$\Orders;Journal", r"DIRECT=OS:LON-1\private$\Orders;JOURNAL"),
    (r"Direct=Os:a\system$;DeadLetter", r"DIRECT=OS:a\SYSTEM$;DEADLETTER"),
    (r"DIRECT=TCP:0:0:0:0:0:0:0:1\q", r"DIRECT=TCP:::1\q"),
    (r"DIRECT=http://host/MSMQ/PRIVATE$/q", "DIRECT=HTTP://host/msmq/private$/q"),
    (r"DIRECT=HTTP://host/MSMQ\private$\q", "DIRECT=HTTP://host/msmq/private$/q"),
    (r"DIRECT=HTTP://host/msmq/private$\q", "DIRECT=HTTP://host/msmq/private$/q"),
    ("DIRECT=HTTP://host:80/msmq/q", "DIRECT=HTTP://host/msmq/q"),
    ("DIRECT=HTTPS://host:0443/msmq/q", "DIRECT=HTTPS://host/msmq/q"),
    ("DIRECT=HTTP://host:/msmq/q", "DIRECT=HTTP://host/msmq/q"),
    ("DIRECT=HTTP://host/msmq/private%24/%71%21", "DIRECT=HTTP://host/msmq/private$/q!"),
    ("DIRECT=HTTP://host/msmq/q;JOURNA%4c", "DIRECT=HTTP://host/msmq/q;JOURNAL"),
    (f"public={TEXT.upper()};journal", f"PUBLIC={TEXT};JOURNAL"),
    (rf"PRIVATE={TEXT}\0000001A", rf"PRIVATE={TEXT}\1a"),
    (f"connector={TEXT};xactonly", f"CONNECTOR={TEXT};XACTONLY"),
]

# A wrong name, words that the message must have, and the suggestion.
WRONG = [
    ("", "empty", ""),
    ("=", "begins with one of", ""),
    (r"DIRCT=OS:host\private$\orders", "'DIRCT='", r"DIRECT=OS:host\private$\orders"),
    (r"DIRECT:OS:host\orders", "begins with one of", r"DIRECT=OS:host\orders"),
    (rf"PUBLC={TEXT}", "'PUBLC='", f"PUBLIC={TEXT}"),
    (r"OS:host\orders", "begins with one of", r"DIRECT=OS:host\orders"),
    (r".\private$\orders", "begins with one of", r"DIRECT=OS:.\private$\orders"),
    (r"private\orders", "begins with one of", r"DIRECT=OS:.\private$\orders"),
    ("orders", "begins with one of", r"DIRECT=OS:.\private$\orders"),
    ("http://host/msmq/private$/q", "begins with one of", "DIRECT=HTTP://host/msmq/private$/q"),
    (r"FormatName:DIRECT=OS:a\q", "'FormatName:DIRECT='", r"DIRECT=OS:a\q"),
    (r" DIRECT=OS:a\q ", "' DIRECT='", r"DIRECT=OS:a\q"),
    (r"DIRECT=TPC:10.0.0.1\q", "'TPC:' is none of them", r"DIRECT=TCP:10.0.0.1\q"),
    (r"DIRECT=host\q", "protocol must stand", r"DIRECT=OS:host\q"),
    ("DIRECT=//host/msmq/q", "protocol must stand", "DIRECT=HTTP://host/msmq/q"),
    (r"DIRECT=TCP:lon-1\q", "IP address must stand, not 'lon-1'", r"DIRECT=OS:lon-1\q"),
    (r"DIRECT=TCP:10.0.0.256\q", "IP address must stand", r"DIRECT=OS:10.0.0.256\q"),
    (r"DIRECT=TCP:[::1]\q", "'[::1]'", r"DIRECT=TCP:::1\q"),
    (r"DIRECT=IPX:12:34\q", "IPX address '12:34'", ""),
    ("DIRECT=OS:host", "no backslash", ""),
    ("DIRECT=OS:host/private$/q", "no backslash", r"DIRECT=OS:host\private$\q"),
    (r"DIRECT=OS:host\private\q", "not 'private'", r"DIRECT=OS:host\private$\q"),
    (r"DIRECT=OS:private$\q", "'private$' stands where the computer name", r"DIRECT=OS:.\private$\q"),
    (r"DIRECT=OS:a=b\q", "'=' at position 2", ""),
    (r"DIRECT=OS:C:\q", "':' but is not an IPv6 address", ""),
    (r"DIRECT=OS:host\a\b\c", "3 parts", ""),
    ("DIRECT=OS:host\\", "queue name is empty", ""),
    (r"DIRECT=OS:host\;journal", "queue name is empty", ""),
    (r"DIRECT=OS:host\private$\;journal", "queue name is empty", ""),
    (r"DIRECT=OS:host\private$", "no queue name after 'private$'", ""),
    (r"DIRECT=OS:host\system$", "no queue name after 'system$'", ""),
    (r"DIRECT=OS:host\system$;orders", "not 'orders'", ""),
    (r"DIRECT=OS:host\system$;journal;journal", "no journal of its own", ""),
    (r"DIRECT=OS:host\system$;journal;retry", "has no subqueues", ""),
    (r"DIRECT=OS:host\q;", "nothing after the ';'", ""),
    (r"DIRECT=OS:host\q;retry;journal", "one subqueue or journal", ""),
    (
        r"DIRECT=OS:host\my orders",
        "queue name 'my orders' has ' ' at position 3",
        r"DIRECT=OS:host\my_orders",
    ),
    (r"DIRECT=OS:host\a+b", "'+' at position 2", r"DIRECT=OS:host\a_b"),
    (r"DIRECT=OS:host\caf" + "\xe9", "'\xe9' at position 19", r"DIRECT=OS:host\caf_"),
    (r"DIRECT=OS:host\q;" + "s" * 33, "33 characters; the limit is 32", ""),
    ("DIRECT=OS:host\\" + "q" * 125, "125 characters; the limit is 124", ""),
    ("DIRECT=OS:" + "h" * 257 + r"\q", "257 characters; the limit is 256", ""),
    ("DIRECT=HTTP:host/msmq/q", "two slashes", "DIRECT=HTTP://host/msmq/q"),
    (r"DIRECT=HTTP:\\host\msmq\q", "two slashes", "DIRECT=HTTP://host/msmq/q"),
    ("DIRECT=HTTP:///msmq/q", "host name is empty", ""),
    ("DIRECT=HTTP://./msmq/q", "not in URLs", "DIRECT=HTTP://localhost/msmq/q"),
    ("DIRECT=HTTP://a@b/msmq/q", "'@' at position 2", ""),
    ("DIRECT=HTTP://host/private/q", "'/msmq/' must stand", "DIRECT=HTTP://host/msmq/private$/q"),
    ("DIRECT=HTTP://host/mq/private$/q", "'/msmq/' must stand", "DIRECT=HTTP://host/msmq/private$/q"),
    ("DIRECT=HTTP://host/msmqx/q", "'/msmq/' must stand", "DIRECT=HTTP://host/msmq/msmqx%2Fq"),
    ("DIRECT=HTTP://host/msmq/a/b", "not 'a'", "DIRECT=HTTP://host/msmq/a%2Fb"),
    ("DIRECT=HTTP://host/msmq/q?x=1", "has '?'", "DIRECT=HTTP://host/msmq/q"),
    ("DIRECT=HTTP://host/msmq/a%zz", "'%' at position 2", "DIRECT=HTTP://host/msmq/a%25zz"),
    ("DIRECT=HTTP://host/msmq/a%3Bb", "';' at position 2", ""),
    ("DIRECT=HTTP://host/msmq/a%ffb", "at position 2", ""),
    ("DIRECT=HTTP://host:0/msmq/q", "port 0 is not between 1 and 65535", ""),
    ("DIRECT=HTTP://host:65536/msmq/q", "port 65536", ""),
    ("DIRECT=HTTP://host:8o/msmq/q", "port '8o'", ""),
    ("DIRECT=HTTP://host:999999/msmq/q", "port '999999'", ""),
    ("DIRECT=HTTP://::1/msmq/q", "port ':1'", "DIRECT=HTTP://[::1]/msmq/q"),
    ("DIRECT=HTTP://[::1/msmq/q", "in brackets", ""),
    ("DIRECT=HTTP://[::1]x/msmq/q", "in brackets", ""),
    ("DIRECT=HTTP://[host]/msmq/q", "do not hold an IPv6 address", ""),
    ("DIRECT=HTTP://[fe80::1%eth0]/msmq/q", "':' at position 5", ""),
    (f"PUBLIC={{{TEXT}}}", "is not a GUID", f"PUBLIC={TEXT}"),
    (f"PUBLIC={TEXT.replace('-', '')}", "is not a GUID", f"PUBLIC={TEXT}"),
    ("PUBLIC=orders", "'orders' is not a GUID", ""),
    (f"PUBLIC={TEXT};a;b", "one subqueue or journal", ""),
    (f"PUBLIC={TEXT};JOURNAL;b", "one subqueue or journal", ""),
    (f"PRIVATE={TEXT}", "a backslash and the queue's number", ""),
    (f"PRIVATE={TEXT}/1a", "is not a GUID", rf"PRIVATE={TEXT}\1a"),
    (rf"PRIVATE={TEXT}\1g", "number '1g'", ""),
    (rf"PRIVATE={TEXT}\123456789", "number '123456789'", ""),
    (f"DL={TEXT}@", "no domain name", ""),
    (f"DL={TEXT}@" + "d" * 256, "256 characters; the limit is 255", ""),
    (f"MACHINE={TEXT};retry", "not ';retry'", ""),
    (f"MACHINE={TEXT};", "not ';'", ""),
    (f"CONNECTOR={TEXT};JOURNAL", "not ';JOURNAL'", ""),
    ("MULTICAST=234.1.1.1", "a colon and a port", ""),
    ("MULTICAST=223.1.1.1:80", "not a multicast address", ""),
    ("MULTICAST=240.1.1.1:80", "not a multicast address", ""),
    ("MULTICAST=234.1.1:80", "'234.1.1' is not an IPv4 address", ""),
    ("MULTICAST=234.1.1.1:080", "port '080'", ""),
    ("MULTICAST=234.1.1.1:65536", "port 65536", ""),
    (r"DIRECT=OS:a\q,", "element 2 of 2: the format name is empty", r"DIRECT=OS:a\q"),
    (r"DIRECT=OS:a\q, DIRCT=OS:b\q", "element 2 of 2: ", r"DIRECT=OS:a\q,DIRECT=OS:b\q"),
    (rf"DIRECT=OS:a\q,MACHINE={TEXT}", "element 2 of 2", ""),
    (r"DIRECT=OS:a\q;JOURNAL,DIRECT=OS:b\q", "element 1 of 2", ""),
    (r"DIRECT=OS:a\q,DIRECT=OS:b\system$;deadletter", "read-only", ""),
]


@pytest.mark.parametrize(("text", "name"), CANONICAL)
def test_canonical_names_both_ways(text: str, name: FormatName) -> None:
    parsed = parse_format_name(text)
    assert type(parsed) is type(name)
    assert repr(parsed) == repr(name)
    assert parsed == name
    assert str(name) == text
    assert pickle.loads(pickle.dumps(name)) == name


@pytest.mark.parametrize(("text", "canonical"), VARIANTS)
def test_other_spellings_are_read(text: str, canonical: str) -> None:
    assert str(parse_format_name(text)) == canonical


@pytest.mark.parametrize(("text", "words", "suggestion"), WRONG)
def test_a_wrong_name_is_explained(text: str, words: str, suggestion: str) -> None:
    with pytest.raises(InvalidNameError) as caught:
        parse_format_name(text)
    assert words in caught.value.message
    assert caught.value.suggestion == suggestion
    check_hint(caught.value)


def check_hint(error: InvalidNameError) -> None:
    """The hint shows a name that parses: the suggestion, or an example."""
    words = "did you mean " if error.suggestion else "such a name looks like "
    assert error.hint.startswith(words)
    shown = error.hint.removeprefix(words)
    assert str(parse_format_name(shown)) == shown
    if error.suggestion:
        assert shown == error.suggestion


def test_names_compare_without_case() -> None:
    upper, lower = parse_format_name(r"DIRECT=OS:LON-1\Orders"), parse_format_name(r"DIRECT=OS:lon-1\orders")
    assert upper == lower
    assert len({upper, lower}) == 1
    assert upper.key == lower.key == r"direct=os:lon-1\orders"
    assert upper != parse_format_name(r"DIRECT=OS:lon-1\private$\orders")
    assert upper != r"DIRECT=OS:LON-1\Orders"


def test_a_name_does_not_change() -> None:
    name = PublicName(GUID)
    with pytest.raises(FrozenInstanceError):
        name.subqueue = "retry"  # type: ignore[misc]


def test_suffix_numbers_are_those_of_the_wire() -> None:
    assert [(suffix.name, suffix.value) for suffix in QueueSuffix] == [
        ("NONE", 0),
        ("JOURNAL", 1),
        ("DEADLETTER", 2),
        ("DEADXACT", 3),
        ("XACTONLY", 4),
        ("SUBQUEUE", 5),
    ]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (r"DIRECT=OS:a\q", QueueKind.PUBLIC),
        (r"DIRECT=OS:a\private$\q", QueueKind.PRIVATE),
        (r"DIRECT=OS:a\system$;journal", QueueKind.SYSTEM),
    ],
)
def test_kind_of_a_direct_name(text: str, kind: QueueKind) -> None:
    name = parse_format_name(text)
    assert isinstance(name, DirectName)
    assert name.kind is kind
    assert name.is_private is (kind is QueueKind.PRIVATE)


@pytest.mark.parametrize(
    ("text", "port", "effective"),
    [
        ("DIRECT=HTTP://a/msmq/q", None, 80),
        ("DIRECT=HTTPS://a/msmq/q", None, 443),
        ("DIRECT=HTTP://a:443/msmq/q", 443, 443),
        (r"DIRECT=OS:a\q", None, None),
    ],
)
def test_port_of_a_direct_name(text: str, port: int | None, effective: int | None) -> None:
    name = parse_format_name(text)
    assert isinstance(name, DirectName)
    assert (name.port, name.effective_port) == (port, effective)


@pytest.mark.parametrize(
    ("text", "read_only"),
    [
        (r"DIRECT=OS:a\q", False),
        (r"DIRECT=OS:a\q;retry", False),
        (r"DIRECT=OS:a\q;JOURNAL", True),
        (r"DIRECT=OS:a\system$;deadxact", True),
        (f"PUBLIC={TEXT};JOURNAL", True),
        (f"MACHINE={TEXT};DEADLETTER", True),
        (f"CONNECTOR={TEXT};XACTONLY", False),
        ("MULTICAST=234.1.1.1:8001", False),
        (r"DIRECT=OS:a\q,DIRECT=OS:b\q", False),
    ],
)
def test_journals_and_dead_letter_queues_are_read_only(text: str, read_only: bool) -> None:
    assert parse_format_name(text).is_read_only is read_only


@pytest.mark.parametrize(
    "text", [r"DIRECT=OS:a\q", f"PUBLIC={TEXT}", rf"PRIVATE={TEXT}\1", "DIRECT=HTTP://a/msmq/q"]
)
def test_subqueue_and_journal_of_a_queue(text: str) -> None:
    name = parse_format_name(text)
    assert isinstance(name, SingleQueueName)
    assert name.subqueue == ""
    assert str(name.with_subqueue("retry")) == f"{text};retry"
    assert name.with_subqueue("retry").with_subqueue("poison").subqueue == "poison"
    assert name.with_subqueue("retry").without_subqueue() == name
    assert str(name.journal()) == f"{text};JOURNAL"
    with pytest.raises(InvalidNameError, match="has no journal"):
        name.journal().journal()
    with pytest.raises(InvalidNameError, match="has no subqueues"):
        name.journal().with_subqueue("retry")
    with pytest.raises(InvalidNameError, match="has no subqueues"):
        name.with_subqueue("retry").journal()
    with pytest.raises(InvalidNameError, match="'Journal' names the queue's journal"):
        name.with_subqueue("Journal")
    with pytest.raises(InvalidNameError, match="subqueue name is empty"):
        name.with_subqueue("")


def test_a_machine_queue_has_no_journal() -> None:
    with pytest.raises(InvalidNameError, match="has no journal"):
        DirectName(OS, "a", suffix=DEADLETTER).journal()


def test_elements() -> None:
    one = parse_format_name(r"DIRECT=OS:a\q")
    other = parse_format_name("MULTICAST=234.1.1.1:8001")
    assert one.elements == (one,)
    assert parse_format_name(f"{one},{other}").elements == (one, other)


def test_a_value_that_would_not_parse_cannot_be_made() -> None:
    queue = DirectName(OS, "a", "q")
    for make in (
        lambda: DirectName(OS, "a"),
        lambda: DirectName(OS, "a", is_private=True, suffix=JOURNAL),
        lambda: DirectName(OS, "a", "q", suffix=DEADLETTER),
        lambda: DirectName(OS, "a", "q", port=80),
        lambda: DirectName(HTTP, "a", "q", port=70000),
        lambda: DirectName(OS, "a", "system$"),
        lambda: PublicName(GUID, suffix=DEADXACT),
        lambda: PrivateName(GUID, 1 << 32),
        lambda: MachineName(GUID, QueueSuffix.XACTONLY),
        lambda: DistributionListName(GUID, "a,b"),
        lambda: MulticastName(IPv4Address("234.1.1.1"), -1),
        lambda: MultipleName((queue,)),
        lambda: MultipleName((queue, MultipleName((queue, queue)))),
        lambda: MultipleName((queue,) * (MAX_ELEMENTS + 1)),
        lambda: MultipleName((DirectName(OS, "h" * 256, "q"),) * 300),
    ):
        with pytest.raises(InvalidNameError):
            make()


def test_the_number_of_elements_is_limited() -> None:
    assert len(parse_format_name(",".join([r"DIRECT=OS:a\q"] * MAX_ELEMENTS)).elements) == MAX_ELEMENTS
    with pytest.raises(InvalidNameError, match="1001 elements; the limit is 1000"):
        parse_format_name(",".join([r"DIRECT=OS:a\q"] * (MAX_ELEMENTS + 1)))


@pytest.mark.parametrize(
    "unit", [",", ";", "\\", "/", "=", "%", "DIRECT=", r"DIRECT=OS:a\q,", "a;", "[", "{"]
)
def test_the_longest_hostile_names_are_refused(unit: str) -> None:
    for prefix in ("", "DIRECT=OS:a\\", "DIRECT=HTTP://a/msmq/", "PUBLIC=", "MULTICAST="):
        longest = (prefix + unit * MAX_NAME_LENGTH)[:MAX_NAME_LENGTH]
        for text in (longest, longest[:1000]):
            with pytest.raises(InvalidNameError) as caught:
                parse_format_name(text)
            assert len(caught.value.message) < 400
    with pytest.raises(InvalidNameError, match="65537 characters; the limit is 65536"):
        parse_format_name("x" * (MAX_NAME_LENGTH + 1))


QUEUE_CHARACTERS = "".join(chr(code) for code in range(0x21, 0x80) if chr(code) not in '"+,;\\')
COMPUTER_CHARACTERS = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in ",/:=\\")
RESERVED = {"private", "private$", "system$", "journal"}


def part(alphabet: str, longest: int) -> st.SearchStrategy[str]:
    return st.text(alphabet, min_size=1, max_size=longest).filter(lambda text: text.lower() not in RESERVED)


queues = part(QUEUE_CHARACTERS, 124)
suffixes: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.just({}),
    st.just({"suffix": JOURNAL}),
    part(QUEUE_CHARACTERS, 32).map(lambda subqueue: {"subqueue": subqueue}),
)
addresses = st.ip_addresses().map(str)
url_hosts = part("abcXYZ019-._~", 256).filter(lambda host: host != ".")
hosts = st.one_of(
    st.tuples(st.just(OS), part(COMPUTER_CHARACTERS, 256) | addresses, st.none()),
    st.tuples(st.just(TCP), addresses, st.none()),
    st.tuples(st.just(IPX), st.from_regex(r"[0-9a-fA-F]{8}:[0-9a-fA-F]{12}", fullmatch=True), st.none()),
    st.tuples(st.sampled_from([HTTP, HTTPS]), url_hosts | addresses, st.none() | st.integers(1, 65535)),
)
machine_suffixes = st.sampled_from([JOURNAL, DEADLETTER, DEADXACT])
directs = st.builds(
    lambda host, queue, private, suffix: DirectName(host[0], host[1], queue, private, host[2], **suffix),
    hosts,
    queues,
    st.booleans(),
    suffixes,
)
machine_directs = st.builds(
    lambda host, suffix: DirectName(host[0], host[1], port=host[2], suffix=suffix), hosts, machine_suffixes
)
publics = st.builds(lambda guid, suffix: PublicName(guid, **suffix), st.uuids(), suffixes)
privates = st.builds(
    lambda guid, number, suffix: PrivateName(guid, number, **suffix),
    st.uuids(),
    st.integers(0, 0xFFFFFFFF),
    suffixes,
)
domains = st.just("") | part(COMPUTER_CHARACTERS, 255)
multicasts = st.builds(MulticastName, st.ip_addresses(network="224.0.0.0/4"), st.integers(0, 65535))
singles: st.SearchStrategy[FormatName] = st.one_of(
    directs,
    machine_directs,
    publics,
    privates,
    st.builds(DistributionListName, st.uuids(), domains),
    st.builds(MachineName, st.uuids(), st.just(QueueSuffix.NONE) | machine_suffixes),
    st.builds(ConnectorName, st.uuids(), st.booleans()),
    multicasts,
)
elements = singles.filter(lambda name: not name.is_read_only and not isinstance(name, MachineName))
multiples = st.lists(elements, min_size=2, max_size=5).map(lambda names: MultipleName(tuple(names)))
names = singles | multiples


@given(names)
def test_every_name_survives_text(name: FormatName) -> None:
    parsed = parse_format_name(str(name))
    assert repr(parsed) == repr(name)
    assert str(parsed) == str(name)
    assert parsed == name
    assert hash(parsed) == hash(name)


@given(names)
def test_case_does_not_matter(name: FormatName) -> None:
    assert parse_format_name(str(name).upper()) == name
    assert parse_format_name(name.key).key == name.key


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A right name with a few pieces cut out, doubled, or replaced by what people and attackers write."""
    text = str(draw(names))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 3)))
        piece = draw(
            st.sampled_from(
                [*'\\/;,=:%[]{}?#$. "+@', "DIRECT=", "private", "system$;", "JOURNAL", "msmq", "\xe9", "%2F"]
            )
            | st.text(max_size=3)
        )
        text = text[:start] + piece + text[end:]
    return text


@settings(max_examples=500)
@given(mutated() | st.text(max_size=60))
def test_any_text_is_read_or_refused_with_a_hint_that_parses(text: str) -> None:
    try:
        name = parse_format_name(text)
    except InvalidNameError as error:
        check_hint(error)
    else:
        assert parse_format_name(str(name)) == name
