from __future__ import annotations

import pytest
from hypothesis import given
from tests.protocols.srmp.wire import strategies

from lanner.model.message import INFINITE
from lanner.protocols.srmp.wire import NEVER, WireFault, read_date, span_until, time_after, write_date


@given(strategies.dates)
def test_round_trip(seconds: int) -> None:
    assert read_date(write_date(seconds)) == seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("19700101T000000", 0),
        ("20070609T164419", 1181407459),
        ("20380119T031407", NEVER),
        ("00010101T000000", -62135596800),
        ("99991231T235959", 253402300799),
        ("20000229T120000", 951825600),
    ],
)
def test_known_dates(text: str, seconds: int) -> None:
    assert read_date(text) == seconds
    assert write_date(seconds) == text


@pytest.mark.parametrize(
    "text",
    ["", "20070609", "20070609T1644", "20070609T164419Z", "20070609t164419", "2007-06-09T16:44:19",
     " 0070609T164419",
     "20070609T16441\u0661", "20071309T164419", "20070631T164419", "20010229T000000", "20070609T244419",
     "20070609T166019", "20070609T164460", "00000101T000000", "+0070609T164419", "2007060_T164419"],
)  # fmt: skip
def test_what_is_no_date(text: str) -> None:
    with pytest.raises(ValueError, match="date"):
        read_date(text)


@pytest.mark.parametrize("seconds", [-62135596801, 253402300800, 10**30])
def test_what_cannot_be_written(seconds: int) -> None:
    with pytest.raises(WireFault):
        write_date(seconds)


def test_spans() -> None:
    assert span_until(NEVER, 1000) == INFINITE
    assert span_until(1500, 1000) == 500
    assert span_until(500, 1000) == 0
    assert span_until(1 << 40, 0) == INFINITE - 1
    assert time_after(1000, INFINITE) == NEVER
    assert time_after(1000, 500) == 1500
