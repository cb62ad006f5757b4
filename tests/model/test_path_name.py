from __future__ import annotations

import pickle
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lanner.model.errors import InvalidNameError
from lanner.model.format_name import DirectName, FormatName, MulticastName, QueueSuffix
from lanner.model.names import MAX_NAME_LENGTH
from lanner.model.path_name import LOCAL_COMPUTER, PathName, QueueKind, parse_name, parse_path_name

GUID = "2f0b2c8e-6f5d-4c58-9d6e-0a3b5c7d9e1f"
PUBLIC, PRIVATE, SYSTEM = QueueKind.PUBLIC, QueueKind.PRIVATE, QueueKind.SYSTEM

# Canonical text and the value it stands for: each is read, and written.
CANONICAL = [
    (r"LON-1\orders", PathName("LON-1", "orders")),
    (r".\orders;retry", PathName(".", "orders", subqueue="retry")),
    (r".\orders;journal", PathName(".", "orders", journal=True)),
    (r".\private$\orders", PathName(".", "orders", PRIVATE)),
    (r".\private$\orders;retry", PathName(".", "orders", PRIVATE, "retry")),
    (r"lon-1.example\private$\orders;journal", PathName("lon-1.example", "orders", PRIVATE, journal=True)),
    (r".\system$;journal", PathName(".", "journal", SYSTEM)),
    (r".\system$;deadletter", PathName(".", "deadletter", SYSTEM)),
    (r".\system$;deadxact", PathName(".", "deadxact", SYSTEM)),
    (r".\system$;other;retry", PathName(".", "other", SYSTEM, "retry")),
    (r".\private$\order_queue$", PathName(".", "order_queue$", PRIVATE)),
    (r".\a/b=c", PathName(".", "a/b=c")),
    (r"::1\orders", PathName("::1", "orders")),
]

# A wrong name, words that the message must have, and the suggestion.
WRONG = [
    ("", "the name is empty", ""),
    ("orders", "no backslash", r".\private$\orders"),
    ("orders;retry", "no backslash", r".\private$\orders;retry"),
    (".", "no backslash", ""),
    (r"private\orders", "'private' stands where the computer name belongs", r".\private$\orders"),
    (r"private$\orders", "'private$' stands where the computer name belongs", r".\private$\orders"),
    (r"\private$\orders", "computer name is empty", r".\private$\orders"),
    (r".\private\orders", "only 'private$' may stand, not 'private'", r".\private$\orders"),
    (r".\public$\orders", "not 'public$'", ""),
    (r"\\host\private$\orders", "computer name is empty", r"host\private$\orders"),
    (r".\\private$\\orders", "4 parts", r".\private$\orders"),
    ("./private$/orders", "no backslash", r".\private$\orders"),
    (r"./private$\orders", "'/' at position 2", r".\private$\orders"),
    ("private/orders", "no backslash", r".\private$\orders"),
    (r".\system$\journal", "not 'system$'", r".\system$;journal"),
    (r"system$\deadletter", "'system$' stands where", r".\system$;deadletter"),
    ("orders\\", "queue name is empty", ""),
    ("system$;journal", "no backslash", r".\system$;journal"),
    (r".\system$", "no queue name after 'system$'", ""),
    (r".\private$", "no queue name after 'private$'", ""),
    (".\\private$\\", "queue name is empty", ""),
    (r".\system$;", "queue name is empty", ""),
    (r".\system$;other;journal", "has no journal", ""),
    (r".\system$;journal;retry", "has no subqueues", ""),
    (r".\orders;", "nothing after the ';'", ""),
    (r".\orders;a;b", "one subqueue or journal", ""),
    (r".\a\b\c", "3 parts", ""),
    (r".\private$\my orders", "queue name 'my orders' has ' ' at position 3", r".\private$\my_orders"),
    (r".\private$\a,b", "',' at position 2", r".\private$\a_b"),
    ('".\\private$\\orders"', "queue name 'orders\"' has '\"' at position 7", r".\private$\orders"),
    (".\\private$\\caf\xe9", "'\xe9' at position 15", r".\private$\caf_"),
    (".\\private$\\\xe9", "only ASCII", ""),
    (r"a b\orders", "computer name 'a b' has ' ' at position 2", ""),
    (r"C:\orders", "':' but is not an IPv6 address", ""),
    (".\\" + "q" * 125, "125 characters; the limit is 124", ""),
    (".\\q;" + "s" * 33, "33 characters; the limit is 32", ""),
    ("h" * 257 + "\\q", "257 characters; the limit is 256", ""),
    (r"DIRECT=OS:host\private$\orders", "this is a format name", r"host\private$\orders"),
    (r"DIRCT=host\orders", "this is a format name", r"host\orders"),
    (f"PUBLIC={GUID}", "this is a format name", ""),
    ("http://host/msmq/q", "a URL alone is not a name", ""),
    ("x" * (MAX_NAME_LENGTH + 1), "65537 characters; the limit is 65536", ""),
]

WRONG_OF_EITHER_SORT = [
    ("orders", r".\private$\orders"),
    (r"private\orders", r".\private$\orders"),
    (r".\private\orders", r".\private$\orders"),
    ("./private$/orders", r".\private$\orders"),
    ("http://host/msmq/private$/q", "DIRECT=HTTP://host/msmq/private$/q"),
    (r"OS:host\orders", r"DIRECT=OS:host\orders"),
    (r"DIRCT=OS:host\orders", r"DIRECT=OS:host\orders"),
    (r"FormatName:DIRCT=OS:host\orders", r"DIRECT=OS:host\orders"),
    (r"FormatName: DIRECT=OS:host\orders", r"DIRECT=OS:host\orders"),
    (r"FormatName:.\private$\orders", r".\private$\orders"),
    (f"PUBLIC={{{GUID}}}", f"PUBLIC={GUID}"),
    (r"DIRECT=.\private$\orders", r"DIRECT=OS:.\private$\orders"),
]


@pytest.mark.parametrize(("text", "name"), CANONICAL)
def test_canonical_names_both_ways(text: str, name: PathName) -> None:
    parsed = parse_path_name(text)
    assert repr(parsed) == repr(name)
    assert str(name) == text
    assert parsed == name
    assert pickle.loads(pickle.dumps(name)) == name


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        (r"LON-1\PRIVATE$\Orders;JOURNAL", r"LON-1\private$\Orders;journal"),
        (r".\SYSTEM$;DeadLetter", r".\system$;DeadLetter"),
        (r"0:0::1\q", r"::1\q"),
    ],
)
def test_other_spellings_are_read(text: str, canonical: str) -> None:
    assert str(parse_path_name(text)) == canonical


@pytest.mark.parametrize(("text", "words", "suggestion"), WRONG)
def test_a_wrong_name_is_explained(text: str, words: str, suggestion: str) -> None:
    with pytest.raises(InvalidNameError) as caught:
        parse_path_name(text)
    assert words in caught.value.message
    assert caught.value.suggestion == suggestion
    assert parse_path_name(shown_in(caught.value))


@pytest.mark.parametrize(("text", "suggestion"), WRONG_OF_EITHER_SORT)
def test_a_wrong_name_of_either_sort_is_answered_with_the_nearest(text: str, suggestion: str) -> None:
    with pytest.raises(InvalidNameError) as caught:
        parse_name(text)
    assert caught.value.suggestion == suggestion
    assert parse_name(shown_in(caught.value))


def shown_in(error: InvalidNameError) -> str:
    """The name that a hint shows: the suggestion, or an example."""
    if error.suggestion:
        assert error.hint == f"did you mean {error.suggestion}"
        return error.suggestion
    assert error.hint.startswith("such a name looks like ")
    return error.hint.removeprefix("such a name looks like ")


def test_names_compare_without_case() -> None:
    upper, lower = parse_path_name(r"LON-1\Private$\Orders"), parse_path_name(r"lon-1\private$\orders")
    assert upper == lower
    assert len({upper, lower}) == 1
    assert upper.key == r"lon-1\private$\orders"
    assert upper != parse_path_name(r"lon-1\orders")
    assert upper != upper.to_direct_os()


@pytest.mark.parametrize(
    ("text", "suffix"),
    [
        (r".\q", QueueSuffix.NONE),
        (r".\q;retry", QueueSuffix.NONE),
        (r".\q;Journal", QueueSuffix.JOURNAL),
        (r".\system$;JOURNAL", QueueSuffix.JOURNAL),
        (r".\system$;deadletter", QueueSuffix.DEADLETTER),
        (r".\system$;deadxact", QueueSuffix.DEADXACT),
        (r".\system$;other", QueueSuffix.NONE),
    ],
)
def test_suffix(text: str, suffix: QueueSuffix) -> None:
    name = parse_path_name(text)
    assert name.suffix is suffix
    assert name.is_read_only is (suffix is not QueueSuffix.NONE)


def test_with_computer() -> None:
    local = parse_path_name(r".\private$\orders;retry")
    assert local.is_local
    assert local.is_private
    assert local.computer == LOCAL_COMPUTER
    moved = local.with_computer("LON-1")
    assert str(moved) == r"LON-1\private$\orders;retry"
    assert not moved.is_local
    with pytest.raises(InvalidNameError, match="computer name is empty"):
        local.with_computer("")


@pytest.mark.parametrize(
    ("path", "direct"),
    [
        (r"a\q", r"DIRECT=OS:a\q"),
        (r".\private$\q;retry", r"DIRECT=OS:.\private$\q;retry"),
        (r"a\q;journal", r"DIRECT=OS:a\q;JOURNAL"),
        (r"a\system$;deadxact", r"DIRECT=OS:a\SYSTEM$;DEADXACT"),
    ],
)
def test_to_direct_os(path: str, direct: str) -> None:
    assert str(parse_path_name(path).to_direct_os()) == direct


def test_other_system_queues_have_no_direct_name() -> None:
    with pytest.raises(InvalidNameError, match="'other' has no direct format name"):
        parse_path_name(r".\system$;other").to_direct_os()


def test_a_value_that_would_not_parse_cannot_be_made() -> None:
    makers: list[Callable[[], PathName]] = [
        lambda: PathName("", "q"),
        lambda: PathName("a", ""),
        lambda: PathName("a", "private$"),
        lambda: PathName("a", "q", subqueue="JOURNAL"),
        lambda: PathName("a", "q", subqueue="retry", journal=True),
        lambda: PathName("a", "other", SYSTEM, journal=True),
    ]
    for make in makers:
        with pytest.raises(InvalidNameError):
            make()


@pytest.mark.parametrize(
    ("text", "kind", "canonical"),
    [
        (r".\private$\orders", PathName, r".\private$\orders"),
        (r"LON-1\orders", PathName, r"LON-1\orders"),
        (r".\a=b", PathName, r".\a=b"),
        (r"FormatName:DIRECT=OS:a\q", DirectName, r"DIRECT=OS:a\q"),
        (r"formatname:direct=os:a\q", DirectName, r"DIRECT=OS:a\q"),
        (r"DIRECT=OS:a\q", DirectName, r"DIRECT=OS:a\q"),
        ("MULTICAST=234.1.1.1:8001", MulticastName, "MULTICAST=234.1.1.1:8001"),
    ],
)
def test_either_sort_of_name_is_read(text: str, kind: type, canonical: str) -> None:
    name = parse_name(text)
    assert type(name) is kind
    assert str(name) == canonical


@pytest.mark.parametrize("unit", [",", ";", "\\", "/", "=", ":", "a\\", " ", "private\\"])
def test_the_longest_hostile_names_are_refused(unit: str) -> None:
    for prefix in ("", ".\\", "a\\private$\\"):
        longest = (prefix + unit * MAX_NAME_LENGTH)[:MAX_NAME_LENGTH]
        for text in (longest, longest[:1000]):
            with pytest.raises(InvalidNameError):
                parse_path_name(text)
            with pytest.raises(InvalidNameError):
                parse_name(text)


QUEUE_CHARACTERS = "".join(chr(code) for code in range(0x21, 0x80) if chr(code) not in '"+,;\\')
COMPUTER_CHARACTERS = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in ",/:=\\")
RESERVED = {"private", "private$", "system$", "journal"}


def part(alphabet: str, longest: int) -> st.SearchStrategy[str]:
    return st.text(alphabet, min_size=1, max_size=longest).filter(lambda text: text.lower() not in RESERVED)


computers = st.just(".") | part(COMPUTER_CHARACTERS, 256) | st.ip_addresses().map(str)
queues = part(QUEUE_CHARACTERS, 124)
subqueues = st.just("") | part(QUEUE_CHARACTERS, 32)
kinds = st.sampled_from([PUBLIC, PRIVATE])
machine_queues = st.sampled_from(["journal", "deadletter", "deadxact"])
paths = st.one_of(
    st.builds(PathName, computers, queues, kinds, subqueues),
    st.builds(PathName, computers, queues, kinds, journal=st.just(True)),
    st.builds(PathName, computers, machine_queues, st.just(SYSTEM)),
)


@given(paths)
def test_every_name_survives_text(name: PathName) -> None:
    parsed = parse_path_name(str(name))
    assert repr(parsed) == repr(name)
    assert str(parsed) == str(name)
    assert parse_name(str(name)) == name
    assert parse_path_name(str(name).upper()) == name
    assert parse_path_name(name.key).key == name.key


@given(paths)
def test_the_direct_name_says_the_same(name: PathName) -> None:
    direct = name.to_direct_os()
    assert (direct.host, direct.kind, direct.subqueue) == (name.computer, name.kind, name.subqueue)
    assert (direct.suffix, direct.is_private) == (name.suffix, name.is_private)
    assert parse_name(str(direct)) == direct


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A right name of either sort with a few pieces cut out, doubled, or replaced by what people write."""
    name: PathName | FormatName = draw(paths)
    if isinstance(name, PathName) and draw(st.booleans()):
        name = name.to_direct_os()
    text = str(name)
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 3)))
        words = [
            *'\\/;,=:$. "+',
            "FormatName:",
            "DIRECT=",
            "private",
            "system$;",
            "journal",
            "http://",
            "\xe9",
        ]
        text = text[:start] + draw(st.sampled_from(words) | st.text(max_size=3)) + text[end:]
    return text


@settings(max_examples=500)
@given(mutated() | st.text(max_size=60))
def test_any_text_is_read_or_refused_with_a_hint_that_parses(text: str) -> None:
    for parse in (parse_path_name, parse_name):
        try:
            name = parse(text)
        except InvalidNameError as error:
            parse(shown_in(error))
        else:
            assert parse(str(name)) == name
