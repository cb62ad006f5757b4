"""Directory files that somebody mangled: a clear error or a directory, never a crash."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.directory.test_local_file import CONTOSO

from lanner.directory.base import InvalidDirectoryError
from lanner.directory.check import check
from lanner.directory.export import dump
from lanner.directory.local_file import load
from lanner.routing.explain import explain
from lanner.routing.topology import Topology

WHOLE = CONTOSO.encode()

WORDS = rb"""[[ ]] [ ] " ' = # . \ { } [] {} -1 true inf nan 0x7 1979-05-27 [[site]] [[manager]] [site]"""
PIECES = st.sampled_from(
    [*WORDS.split(), b"\n", b"\r", b"\x00", b"\xff", b"9" * 30, b'"' * 3, b"sites = []", b"\n[[link]]\n"]
)

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=6,
)


def swallow(data: bytes) -> None:
    """Do with a file whatever a command does."""
    try:
        loaded = load(data, "f")
    except InvalidDirectoryError:
        return
    check(*loaded)
    load(dump(loaded.map).encode())
    topology = Topology(loaded.map)
    for one in loaded.map.machines[:3]:
        for other in loaded.map.machines[:3]:
            explain(topology, one.id, other.id)


@given(st.lists(st.tuples(st.integers(0, len(WHOLE)), st.integers(0, 12), PIECES), min_size=1, max_size=4))
@settings(max_examples=600, deadline=None)
def test_pieces_replaced(changes: list[tuple[int, int, bytes]]) -> None:
    data = WHOLE
    for start, length, piece in changes:
        data = data[:start] + piece + data[start + length :]
    swallow(data)


@given(st.binary(max_size=200))
@settings(max_examples=300, deadline=None)
@example(b"x = " + b"[" * 5000)
@example(b"x = " + b"9" * 10_000)
@example(b"\xef\xbb\xbf")
@example(b'[enterprise]\nname = "\\ud800"')
def test_any_bytes(data: bytes) -> None:
    swallow(data)


@given(st.sampled_from(["site", "link", "manager", "network", "queue", "enterprise"]), st.data())
@settings(max_examples=500, deadline=None)
def test_any_value_anywhere(table: str, data: st.DataObject) -> None:
    from lanner.directory.file_schema import TABLES

    key = data.draw(st.sampled_from(sorted(TABLES[table])))
    header = f"[{table}]" if table == "enterprise" else f"[[{table}]]"
    text = f"{header}\n{key} = {_toml(data.draw(VALUES))}\n"
    if table != "enterprise":
        text = '[enterprise]\nname = "x"\n' + text
    swallow(text.encode("utf-8", "surrogatepass"))


def _toml(value: object) -> str:
    match value:
        case None:
            return '""'
        case bool():
            return str(value).lower()
        case str():
            return '"' + "".join(f"\\U{ord(letter):08x}" for letter in value) + '"'
        case list():
            return f"[{', '.join(map(_toml, value))}]"
        case dict():
            return "{" + ", ".join(f"{_toml(name)} = {_toml(inner)}" for name, inner in value.items()) + "}"
        case _:
            return str(value)
