from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.protocols.srmp.wire import strategies

from lanner.model.message_id import MessageId
from lanner.protocols.srmp.wire import StreamId
from lanner.protocols.srmp.wire.values import (
    read_base64,
    read_correlation,
    read_guid,
    read_message_id,
    read_names,
    read_number,
    read_stream_id,
    write_base64,
    write_message_id,
)


@given(strategies.identifiers)
def test_message_ids(identifier: MessageId) -> None:
    assert read_message_id(write_message_id(identifier)) == identifier
    assert read_correlation(write_base64(identifier)) == identifier


@given(strategies.stream_ids)
def test_stream_ids(stream_id: StreamId) -> None:
    assert read_stream_id(str(stream_id)) == stream_id


@given(st.uuids())
def test_guids(guid: UUID) -> None:
    assert read_guid(str(guid)) == read_guid(str(guid).upper()) == guid


@given(st.binary())
def test_base64(data: bytes) -> None:
    assert read_base64(write_base64(data)) == data


def test_base64_may_be_broken_into_lines() -> None:
    assert read_base64(" QUJD\r\nREVG ") == b"ABCDEF"


@pytest.mark.parametrize("text", ["A", "QUJ", "QUJD=", "QU=D", "Q*JD", "QUJD\u00e9"])
def test_what_is_not_base64(text: str) -> None:
    with pytest.raises(ValueError, match="not base64"):
        read_base64(text)


def test_numbers() -> None:
    assert read_number("0") == 0
    assert read_number("+0007") == 7
    assert read_number("0" * 50 + "1") == 1
    assert read_number("18446744073709551615") == 2**64 - 1
    assert read_number("7", 7) == 7


@pytest.mark.parametrize(
    "text", ["", "-1", "1.0", "1e3", "0x10", "1_0", "\u0661", " 1", "1\n", "18446744073709551616", "9" * 5000]
)
def test_what_is_no_number(text: str) -> None:
    with pytest.raises(ValueError, match=r"number|more than"):
        read_number(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "caf195ea615c4264ae0811a4e60194c0",
        "{caf195ea-615c-4264-ae08-11a4e60194c0}",
        "urn:uuid:caf195ea-615c-4264-ae08-11a4e60194c0",
        "caf195ea6-15c-4264-ae08-11a4e60194c0",
        "gaf195ea-615c-4264-ae08-11a4e60194c0",
        "caf195ea-615c-4264-ae08-11a4e60194c0\n",
    ],
)
def test_what_is_no_guid(text: str) -> None:
    with pytest.raises(ValueError, match="not a GUID"):
        read_guid(text)


def test_lists_of_names() -> None:
    assert read_names("a\n b\tc ") == ("a", "b", "c")
    with pytest.raises(ValueError, match="no queue"):
        read_names(" \n")


def test_long_texts_are_shown_short() -> None:
    with pytest.raises(ValueError, match=r"x\.\.\.'") as caught:
        read_guid("x" * 100_000)
    assert len(str(caught.value)) < 200
