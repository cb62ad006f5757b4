"""What offsets mean, and every way in which history can be lost."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from lanner.pipeline.errors import DataLossError, InvalidOptionError
from lanner.pipeline.offsets import Position, Seen, advance, begin_of, from_json, resolve, to_json

LON = Seen("LON-1", "id-lon", 1, 101)
PAR = Seen("PAR-1", "id-par", 11, 51)


def test_earliest_and_latest() -> None:
    assert resolve("earliest", [LON, PAR], fail=True) == {
        "LON-1": Position("id-lon", 1),
        "PAR-1": Position("id-par", 11),
    }
    assert resolve("latest", [LON, PAR], fail=True)["PAR-1"].next == 51


@pytest.mark.parametrize(
    ("value", "lsn"),
    [
        (20, 20),
        ("earliest", 11),
        ("latest", 51),
        (-2, 11),
        (-1, 51),
        (51, 51),
        ({"id": "id-par", "next": 30}, 30),
    ],
)
def test_json_by_manager(value: Any, lsn: int) -> None:
    assert resolve({"PAR-1": value}, [PAR], fail=True)["PAR-1"].next == lsn


@pytest.mark.parametrize("value", ["soon", -3, 1.5, True, None, [], {"id": "x"}])
def test_json_that_means_nothing(value: Any) -> None:
    with pytest.raises(InvalidOptionError, match="the offset of PAR-1 is an LSN"):
        resolve({"PAR-1": value}, [PAR], fail=True)


def test_json_names_exactly_the_managers() -> None:
    with pytest.raises(InvalidOptionError, match="do not name PAR-1"):
        resolve({"LON-1": 1}, [LON, PAR], fail=True)
    with pytest.raises(InvalidOptionError, match="name ROM-1, which is not among the managers"):
        resolve({"LON-1": 1, "ROM-1": 1}, [LON], fail=True)
    assert resolve({"LON-1": 1, "ROM-1": 1}, [LON], fail=True, partly=True).keys() == {"LON-1"}


def test_an_offset_that_is_not_written_yet() -> None:
    with pytest.raises(InvalidOptionError, match="not written yet"):
        resolve({"PAR-1": 52}, [PAR], fail=False)


def test_an_offset_that_was_trimmed(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(DataLossError, match="LSN 5 to 10 were trimmed"):
        resolve({"PAR-1": 5}, [PAR], fail=True)
    with caplog.at_level(logging.WARNING, "lanner.pipeline"):
        assert resolve({"PAR-1": 5}, [PAR], fail=False)["PAR-1"].next == 11
    assert "LSN 5 to 10 were trimmed" in caplog.text


def test_an_offset_of_another_manager() -> None:
    wish = {"PAR-1": {"id": "another", "next": 30}}
    with pytest.raises(DataLossError, match="another manager has its name now"):
        resolve(wish, [PAR], fail=True)
    assert resolve(wish, [PAR], fail=False)["PAR-1"].next == 11


def test_json_and_back() -> None:
    offsets = {"LON-1": Position("id-lon", 7), "PAR-1": Position("id-par", 9, 3)}
    assert from_json(json.loads(json.dumps(to_json(offsets)))) == offsets


def test_nothing_new() -> None:
    start = {"LON-1": Position("id-lon", 101)}
    assert advance(start, [LON], fail=True) == start


def test_what_is_new() -> None:
    assert advance({"LON-1": Position("id-lon", 50)}, [LON], fail=True) == {"LON-1": Position("id-lon", 101)}


def test_a_manager_that_joins_is_read_from_its_beginning() -> None:
    start = {"LON-1": Position("id-lon", 101)}
    end = advance(start, [LON, PAR], fail=True)
    assert begin_of("PAR-1", start, end["PAR-1"]) == 11


LOSSES = [
    pytest.param({"PAR-1": Position("id-par", 5)}, [PAR], "LSN 5 to 10 were trimmed", id="trimmed"),
    pytest.param({"PAR-1": Position("former", 5)}, [PAR], "another manager has its name now", id="replaced"),
    pytest.param({"PAR-1": Position("id-par", 99)}, [PAR], "an older copy of its store", id="restored"),
    pytest.param(
        {"ROM-1": Position("id-rom", 9)}, [PAR], "ROM-1: no longer among the managers", id="removed"
    ),
]


@pytest.mark.parametrize(("start", "seen", "words"), LOSSES)
def test_loss_is_an_error(start: dict[str, Position], seen: list[Seen], words: str) -> None:
    with pytest.raises(DataLossError, match=words) as raised:
        advance(start, seen, fail=True)
    assert "failOnDataLoss" in str(raised.value)


@pytest.mark.parametrize(("start", "seen", "words"), LOSSES)
def test_loss_is_told(
    start: dict[str, Position], seen: list[Seen], words: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "lanner.pipeline"):
        end = advance(start, seen, fail=False)
    assert words in caplog.text
    assert end["PAR-1"].next == 51


def test_a_manager_that_is_away_stays_where_it_is() -> None:
    start = {"LON-1": Position("id-lon", 7), "PAR-1": Position("id-par", 20)}
    assert advance(start, [LON], fail=True, partly=True)["PAR-1"] == start["PAR-1"]


def test_after_a_replacement_everything_of_the_new_one_is_read() -> None:
    start = {"PAR-1": Position("former", 40)}
    end = advance(start, [PAR], fail=False)
    assert begin_of("PAR-1", start, end["PAR-1"]) == 11
    again = advance(end, [PAR._replace(end=60)], fail=True)
    assert begin_of("PAR-1", end, again["PAR-1"]) == 51
