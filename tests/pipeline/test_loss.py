"""Managers that are down, restarted, replaced, restored or trimmed: an error or a report, never silence."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from tests.pipeline.machines import Machine

from lanner.pipeline.errors import DataLossError, InvalidOptionError, ManagerAwayError
from lanner.pipeline.options import SourceOptions
from lanner.pipeline.plan import HistoryRange
from lanner.pipeline.source import MsmqBatchReader, MsmqStreamReader

# These readers run without Spark, as its workers run them: what they say is seen at once.


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.WARNING, "lanner.pipeline"):
        yield caplog


def stream(machine: Machine, **options: str) -> MsmqStreamReader:
    chosen = machine.options | {"patience": "0.5"} | options
    return MsmqStreamReader(SourceOptions.parse(chosen, streaming=True))


def batch(machine: Machine, **options: str) -> MsmqBatchReader:
    return MsmqBatchReader(SourceOptions.parse(machine.options | {"patience": "0.5"} | options))


def rows(reader: MsmqStreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[int]:
    return [
        lsn
        for part in reader.partitions(start, end)
        for piece in reader.read(part)
        for lsn in piece.column("lsn").to_pylist()
    ]


def after(reader: MsmqStreamReader, start: dict[str, Any]) -> dict[str, Any]:
    return reader.latestOffset(start, ReadAllAvailable())


LENIENT = {"failOnDataLoss": "false", "startingOffsets": "earliest"}
STRICT = {"startingOffsets": "earliest"}


def test_trimmed_before_it_was_planned(machine: Machine, told: pytest.LogCaptureFixture) -> None:
    machine.send(10)
    start = stream(machine, **STRICT).initialOffset()
    assert machine.trim() == 10
    machine.send(5)
    with pytest.raises(DataLossError, match="LSN 1 to 10 were trimmed"):
        after(stream(machine, **STRICT), start)
    reader = stream(machine, **LENIENT)
    end = after(reader, start)
    assert rows(reader, start, end) == [11, 12, 13, 14, 15]
    assert "LON-1: LSN 1 to 10 were trimmed before they were read" in told.text


def test_trimmed_after_it_was_planned(machine: Machine, told: pytest.LogCaptureFixture) -> None:
    machine.send(10)
    readers = [stream(machine, **STRICT), stream(machine, **LENIENT)]
    start = readers[0].initialOffset()
    end = after(readers[0], start)
    machine.trim()
    machine.send(5)
    with pytest.raises(DataLossError, match="LSN 1 to 10 are not there any more"):
        rows(readers[0], start, end)
    assert rows(readers[1], start, end) == []
    assert "LSN 1 to 10 are not there any more" in told.text


def test_a_batch_of_trimmed_history(machine: Machine) -> None:
    machine.send(10)
    machine.trim()
    machine.send(2)
    with pytest.raises(DataLossError, match="LSN 3 to 10 were trimmed"):
        batch(machine, startingOffsets='{"LON-1": 3}').partitions()
    (part,) = batch(machine).partitions()  # earliest is what there is
    assert isinstance(part, HistoryRange)
    assert (part.first, part.end) == (11, 13)


def test_restarted(machine: Machine) -> None:
    machine.send(10)
    reader = stream(machine, **STRICT)
    start = reader.initialOffset()
    end = after(reader, start)
    machine.stop()
    machine.start()
    machine.send(3)
    assert rows(reader, start, end) == list(range(1, 11))
    assert rows(reader, end, after(reader, end)) == [11, 12, 13]


def test_restarted_while_it_is_read(machine: Machine) -> None:
    machine.send(3000)
    reader = stream(machine, patience="20", **STRICT)
    start = reader.initialOffset()
    (part,) = reader.partitions(start, after(reader, start))
    pieces = reader.read(part)
    found = next(pieces).column("lsn").to_pylist()
    machine.stop()
    machine.start()
    for piece in pieces:
        found += piece.column("lsn").to_pylist()
    assert found == list(range(1, 3001))


def test_down(machine: Machine, told: pytest.LogCaptureFixture) -> None:
    machine.send(10)
    strict, lenient = stream(machine, **STRICT), stream(machine, **LENIENT)
    start = strict.initialOffset()
    end = after(strict, start)
    machine.stop()
    with pytest.raises(ManagerAwayError, match=r"did not answer for 0\.5 seconds"):
        after(strict, end)
    assert after(lenient, end) == end  # it stays where it is
    assert "did not answer" in told.text
    with pytest.raises(ManagerAwayError):
        batch(machine).partitions()
    # A batch that was planned has its rows: to leave them out would be loss.
    with pytest.raises(ManagerAwayError, match="LON-1"):
        rows(stream(machine, **LENIENT), start, end)
    machine.start()
    machine.send(1)
    assert rows(lenient, end, after(lenient, end)) == [11]


def test_down_while_it_is_read(machine: Machine) -> None:
    machine.send(3000)
    reader = stream(machine, **LENIENT)
    start = reader.initialOffset()
    (part,) = reader.partitions(start, after(reader, start))
    pieces = reader.read(part)
    next(pieces)
    machine.stop()
    with pytest.raises(ManagerAwayError, match="LON-1"):
        list(pieces)


def test_one_of_several_is_down(make_machine: Callable[..., Machine], told: pytest.LogCaptureFixture) -> None:
    here, away = make_machine("LON-1"), make_machine("PAR-1")
    here.send(3)
    away.send(4)
    both = {"managers": f"{here.url},{away.url}", "token": f"{here.token},{away.token}"}
    reader = stream(here, **both, **LENIENT)
    start = reader.initialOffset()
    away.stop()
    middle = after(reader, start)
    assert rows(reader, start, middle) == [1, 2, 3]
    assert away.url in told.text
    away.start()
    assert rows(reader, middle, after(reader, middle)) == [1, 2, 3, 4]


def replaced(machine: Machine, make_machine: Callable[..., Machine]) -> Machine:
    machine.stop()
    return make_machine(machine.name, data="replacement", port=machine.port)


def test_replaced_by_another_with_the_same_name(
    machine: Machine, make_machine: Callable[..., Machine], told: pytest.LogCaptureFixture
) -> None:
    machine.send(10)
    before = stream(machine, **STRICT)
    start = before.initialOffset()
    end = after(before, start)
    other = replaced(machine, make_machine)
    other.send(20)
    with pytest.raises(DataLossError, match="another manager has its name now"):
        after(stream(other, **STRICT), end)
    # What was planned for the first is not read from the second.
    with pytest.raises(DataLossError, match="another manager answers"):
        rows(stream(other, **STRICT), start, end)
    reader = stream(other, **LENIENT)
    assert rows(reader, start, end) == []
    following = after(reader, end)
    assert rows(reader, end, following) == list(range(1, 21))
    other.send(1)
    assert rows(reader, following, after(reader, following)) == [21]
    assert "another manager has its name now" in told.text
    assert "LSN 1 to 10 were not read" in told.text


def test_an_older_copy_was_put_back(machine: Machine, told: pytest.LogCaptureFixture) -> None:
    machine.send(5)
    name = machine.client.backup("old").name
    copy = (machine.data / name).read_bytes()
    machine.send(5)
    reader = stream(machine, **STRICT)
    end = after(reader, reader.initialOffset())
    machine.stop()
    for file in machine.data.glob("lanner.db*"):
        file.unlink()
    (machine.data / "lanner.db").write_bytes(copy)
    machine.start()
    with pytest.raises(DataLossError, match="an older copy of its store was put back"):
        after(stream(machine, **STRICT), end)
    lenient = stream(machine, **LENIENT)
    following = after(lenient, end)
    assert rows(lenient, end, following) == []
    machine.send(2)
    assert len(rows(lenient, following, after(lenient, following))) >= 2
    assert "an older copy" in told.text


def test_removed_from_the_options(make_machine: Callable[..., Machine]) -> None:
    first, second = make_machine("LON-1"), make_machine("PAR-1")
    both = {"managers": f"{first.url},{second.url}", "token": f"{first.token},{second.token}"}
    start = stream(first, **both).initialOffset()
    with pytest.raises(DataLossError, match="PAR-1: no longer among the managers"):
        after(stream(first), start)
    assert after(stream(first, **LENIENT), start) == start


def test_added_to_the_options(make_machine: Callable[..., Machine]) -> None:
    first, second = make_machine("LON-1"), make_machine("PAR-1")
    second.send(4)
    both = {"managers": f"{first.url},{second.url}", "token": f"{first.token},{second.token}"}
    start = stream(first).initialOffset()
    reader = stream(first, **both)
    assert rows(reader, start, after(reader, start)) == [1, 2, 3, 4]


def test_two_with_the_same_name(make_machine: Callable[..., Machine]) -> None:
    first, second = make_machine("LON-1"), make_machine("LON-1", data="other")
    both = {"managers": f"{first.url},{second.url}", "token": f"{first.token},{second.token}"}
    with pytest.raises(InvalidOptionError, match="the same name"):
        stream(first, **both).initialOffset()


def test_a_limit_and_available_now(machine: Machine) -> None:
    machine.send(10)
    reader = stream(machine, **STRICT, maxOffsetsPerTrigger="4")
    limit = reader.getDefaultReadLimit()
    assert limit == ReadMaxRows(4)
    reader.prepareForTriggerAvailableNow()
    machine.send(10)  # too late for this run
    offset, found = reader.initialOffset(), []
    while (following := reader.latestOffset(offset, limit)) != offset:
        found.append(rows(reader, offset, following))
        offset = following
    assert found == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10]]


def test_a_reader_keeps_history_from_being_trimmed(machine: Machine, tmp_path: Path) -> None:
    machine.send(10)
    reader = stream(machine, **STRICT, reader="ingest")
    start = reader.initialOffset()
    end = after(reader, start)
    assert machine.trim() == 0
    assert rows(reader, start, end) == list(range(1, 11))
    reader.commit(end)
    (known,) = machine.client.history_status().readers
    assert (known.name, known.confirmed) == ("ingest", 10)
    assert machine.trim() == 10


def test_a_manager_that_always_breaks_off_is_given_up(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.send(3)
    reader = stream(machine, **STRICT)
    start = reader.initialOffset()
    (part,) = reader.partitions(start, after(reader, start))
    monkeypatch.setattr("lanner.pipeline.reading._fetch", lambda *_, **__: None)
    with pytest.raises(ManagerAwayError, match="does not answer"):
        list(reader.read(part))
