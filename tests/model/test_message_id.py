from __future__ import annotations

import contextlib
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanner.model.errors import InvalidPropertyError
from lanner.model.message_id import MessageId

LINEAGE = UUID("b6647b33-2870-471f-a78b-2e6b95f48b38")
TEXT = r"b6647b33-2870-471f-a78b-2e6b95f48b38\17"
WIRE = bytes.fromhex("337b64b6 7028 1f47 a78b2e6b95f48b38 11000000")


def test_the_wire_form_is_the_lineage_and_a_little_endian_number() -> None:
    identifier = MessageId.of(LINEAGE, 17)
    assert identifier == WIRE
    assert MessageId.from_bytes20(WIRE) == identifier
    assert (identifier.lineage, identifier.uniquifier) == (LINEAGE, 17)


def test_the_printed_form() -> None:
    assert str(MessageId(WIRE)) == TEXT
    assert repr(MessageId(WIRE)) == f"MessageId({TEXT!r})"


@pytest.mark.parametrize("text", [TEXT, TEXT.upper(), f" {TEXT} ", f"{{{LINEAGE}}}\\17", f"{{{TEXT}}}"])
def test_printed_forms_that_are_read(text: str) -> None:
    assert MessageId.parse(text) == WIRE


@pytest.mark.parametrize(
    "text",
    ["", "17", str(LINEAGE), f"{LINEAGE}\\", f"{LINEAGE}\\x", f"\\{LINEAGE}", f"{LINEAGE}17", "abc\\17"]
    + [f"{LINEAGE}\\{number}" for number in ("+1", "1_7", " 1", "\u0661")],
)
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidPropertyError, match="not a message identifier") as caught:
        MessageId.parse(text)
    assert MessageId.parse(caught.value.hint.rpartition(" ")[2]).uniquifier == 1


@pytest.mark.parametrize("number", [-1, 1 << 32])
def test_a_number_beyond_32_bits_is_refused(number: int) -> None:
    with pytest.raises(InvalidPropertyError, match="32 bits"):
        MessageId.of(LINEAGE, number)
    with pytest.raises(InvalidPropertyError):
        MessageId.parse(f"{LINEAGE}\\{number}")


@pytest.mark.parametrize("length", [0, 19, 21])
def test_a_wire_form_of_another_length_is_refused(length: int) -> None:
    with pytest.raises(InvalidPropertyError, match=f"20 bytes, not {length}"):
        MessageId.from_bytes20(bytes(length))


@given(st.uuids(), st.integers(0, 0xFFFFFFFF))
def test_every_identifier_comes_back(lineage: UUID, number: int) -> None:
    identifier = MessageId.of(lineage, number)
    assert MessageId.parse(str(identifier)) == identifier == MessageId.from_bytes20(bytes(identifier))
    assert (identifier.lineage, identifier.uniquifier) == (lineage, number)


@given(st.text(max_size=60))
def test_no_text_raises_anything_else(text: str) -> None:
    with contextlib.suppress(InvalidPropertyError):
        MessageId.parse(text)
