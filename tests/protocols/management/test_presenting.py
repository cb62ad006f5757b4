"""Values as Python values, also those of servers that use other types than the specification's."""

from __future__ import annotations

import struct
from typing import Any
from uuid import UUID

import pytest

from lanner.model.transfer import ConnectionStatus, Sequence
from lanner.protocols.management.presenting import Attempt, Source, understand
from lanner.protocols.management.properties import QUEUE_PROPERTIES, Property
from lanner.protocols.management.values import CONNECTION_CODES
from lanner.protocols.management.variant import NULL, VECTOR, Variant, VariantType

T = VariantType
GUID = UUID(int=7)


def named(name: str) -> Property:
    return next(each for each in QUEUE_PROPERTIES.values() if each.name == name)


def columns(*values: tuple[int, list[Any]]) -> Variant:
    return Variant(VECTOR | T.VARIANT, [Variant(VECTOR | kind, value) for kind, value in values])


@pytest.mark.parametrize(
    ("name", "variant", "expected"),
    [
        ("message-count", Variant(T.UI4, 5), 5),
        ("message-count", NULL, None),
        ("path-name", Variant(T.LPWSTR, None), None),
        ("state", Variant(T.LPWSTR, "WAITING"), "WAITING"),
        ("next-hops", Variant(VECTOR | T.LPWSTR, ["IP=1.2.3.4"]), ["IP=1.2.3.4"]),
        ("next-sequence", Variant(T.BLOB, struct.pack("<qII", 5, 6, 7)), Sequence(5, 6, 7)),
        ("next-sequence", Variant(T.BLOB, b"short"), b"short"),
        ("sources", NULL, None),
        ("subqueues", columns((T.LPWSTR, ["a"])), [["a"]]),
        ("sources", columns((T.UI4, [1])), [[1]]),
        ("sources", Variant(T.UI4, 3), 3),
    ],
)
def test_plain_values_and_what_does_not_fit(name: str, variant: Variant, expected: Any) -> None:
    assert understand(named(name), variant) == expected


def test_sources() -> None:
    variant = columns(
        (T.LPWSTR, ["DIRECT=OS:a\\b"]),
        (T.CLSID, [GUID]),
        (T.UI8, [1 << 40]),
        (T.UI4, [2]),
        (T.I4, [3]),
        (T.UI4, [4]),
    )
    assert understand(named("sources"), variant) == (Source("DIRECT=OS:a\\b", GUID, 1 << 40, 2, 3, 4),)


def test_connections() -> None:
    addresses = Variant(
        VECTOR | T.VARIANT, [Variant(VECTOR | T.LPWSTR, ["1.2.3.4", None]), Variant(VECTOR | T.LPWSTR, [])]
    )
    variant = Variant(
        VECTOR | T.VARIANT,
        [
            Variant(VECTOR | T.UI4, [0x80000008, 0x99]),
            Variant(VECTOR | T.I4, [10, 20]),
            Variant(VECTOR | T.I4, [-1, 0]),
            addresses,
        ],
    )
    assert understand(named("connection-history"), variant) == (
        Attempt("dns failure", 10, 0xFFFFFFFF, ("1.2.3.4",)),
        Attempt("0x00000099", 20, 0, ()),
    )
    flat = columns((T.UI4, [2]), (T.I4, [10]), (T.I4, [0]), (T.LPWSTR, ["1.2.3.4"]))
    assert understand(named("connection-history"), flat) == (Attempt("established", 10, 0, ("1.2.3.4",)),)


@pytest.mark.parametrize("status", ConnectionStatus)
def test_every_status_of_a_connection_comes_back_in_words(status: ConnectionStatus) -> None:
    code = CONNECTION_CODES[status]
    variant = columns((T.UI4, [code]), (T.I4, [0]), (T.I4, [0]), (T.LPWSTR, ["a"]))
    [attempt] = understand(named("connection-history"), variant)
    assert attempt.status == status.words
