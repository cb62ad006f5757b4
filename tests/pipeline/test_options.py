"""Every option, what it may be, and what is said when it is something else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lanner.pipeline.errors import InvalidOptionError
from lanner.pipeline.options import SINK_OPTIONS, SOURCE_OPTIONS, ManagerAddress, SinkOptions, SourceOptions

URL = "http://127.0.0.1:8081"
BASE = {"managers": URL, "token": "t"}


def parse(**options: str) -> SourceOptions:
    return SourceOptions.parse(BASE | options)


def parse_stream(**options: str) -> SourceOptions:
    return SourceOptions.parse(BASE | options, streaming=True)


def test_defaults() -> None:
    options = parse()
    assert options.managers == (ManagerAddress(URL, "t"),)
    assert (options.what, options.starting_offsets, options.ending_offsets) == ("history", None, "latest")
    assert options.fail_on_data_loss
    assert options.include_body
    assert (options.max_offsets_per_trigger, options.min_partitions) == (None, 1)


def test_names_do_not_depend_on_case() -> None:
    options = SourceOptions.parse({"MANAGERS": URL, "Token": "t", "failondataloss": "FALSE"})
    assert not options.fail_on_data_loss


def test_every_option_is_read() -> None:
    options = parse_stream(
        queue=r".\private$\q",
        startingOffsets='{"LON-1": 3}',
        maxOffsetsPerTrigger="10",
        minPartitions="4",
        failOnDataLoss="false",
        includeBody="false",
        patience="1.5",
        reader="ingest",
    )
    assert options.queue == r".\private$\q"
    assert options.starting_offsets == {"LON-1": 3}
    assert (options.max_offsets_per_trigger, options.min_partitions) == (10, 4)
    assert not options.fail_on_data_loss
    assert not options.include_body
    assert (options.patience, options.reader) == (1.5, "ingest")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"what": "journal"}, "'what' is one of history, messages, queues, deadletters"),
        ({"minPartitions": "0"}, "'minPartitions' is a whole number of 1 or more, not '0'"),
        ({"maxOffsetsPerTrigger": "many"}, "'maxOffsetsPerTrigger' is a whole number"),
        ({"failOnDataLoss": "maybe"}, "'failOnDataLoss' is true or false"),
        ({"includeBody": "1"}, "'includeBody' is true or false"),
        ({"patience": "-1"}, "'patience' is seconds"),
        ({"startingOffsets": "first"}, "'startingOffsets' is earliest, latest or JSON by manager"),
        ({"startingOffsets": "[1]"}, "'startingOffsets' is earliest, latest or JSON by manager"),
        ({"startingOffsets": "latest"}, "a batch cannot begin at latest"),
        ({"endingOffsets": "earliest"}, "a batch cannot begin at latest or end at earliest"),
        ({"path": "x.parquet"}, "give either 'managers' or 'path'"),
        ({"managers": ""}, "give either 'managers' or 'path'"),
        ({"managers": "127.0.0.1:8081"}, "is no API address"),
        ({"managers": f"{URL},{URL}"}, "twice"),
        ({"token": "a,b"}, "1 managers and 2 tokens"),
        ({"tokenFile": "x"}, "give either 'token' or 'tokenFile'"),
        ({"queue": "a", "queuePattern": "b"}, "give either 'queue' or 'queuePattern'"),
        ({"queuPattern": "b"}, "do you mean 'queuePattern'"),
        ({"subscribe": "b"}, "there is no option 'subscribe'"),
        ({"reader": "r"}, "'reader' is for streams"),
    ],
)
def test_what_cannot_be_right_is_said(options: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidOptionError) as raised:
        parse(**options)
    assert words in str(raised.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"what": "messages"}, "a stream reads the history"),
        ({"endingOffsets": "latest"}, "a stream has no 'endingOffsets'"),
        ({"reader": "r" * 129}, "'reader' has at most 128"),
    ],
)
def test_what_a_stream_cannot(options: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidOptionError, match=words):
        parse_stream(**options)


@pytest.mark.parametrize(
    "options", [{"startingOffsets": "earliest"}, {"endingOffsets": "latest"}, {"what": "queues"}]
)
def test_what_files_cannot(options: dict[str, str]) -> None:
    with pytest.raises(InvalidOptionError):
        SourceOptions.parse({"path": "x.parquet"} | options)


def test_a_file_needs_no_token() -> None:
    assert SourceOptions.parse({"path": "x.parquet"}).managers == ()


def test_tokens_one_for_all_or_one_for_each(tmp_path: Path) -> None:
    two = f"{URL},http://127.0.0.1:8082"
    assert [manager.token for manager in parse(managers=two).managers] == ["t", "t"]
    assert [manager.token for manager in parse(managers=two, token="a, b").managers] == ["a", "b"]
    for name in ("a", "b"):
        (tmp_path / name).write_text(f"token-{name}\n")
    options = {"managers": two, "tokenFile": f"{tmp_path}/a,{tmp_path}/b"}
    assert [manager.token for manager in SourceOptions.parse(options).managers] == ["token-a", "token-b"]


def test_a_token_file_that_is_not_there() -> None:
    with pytest.raises(InvalidOptionError, match="cannot read the token file"):
        SourceOptions.parse({"managers": URL, "tokenFile": "/no/such/file"})


def test_no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LANNER_TOKEN", raising=False)
    with pytest.raises(InvalidOptionError, match="there is no token for"):
        SourceOptions.parse({"managers": URL})


def test_a_token_is_not_shown() -> None:
    options = parse(token="very-secret")
    assert "very-secret" not in repr(options)
    assert "very-secret" not in repr(SinkOptions.parse({"managers": URL, "token": "very-secret"}))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"managers": ""}, "give 'managers'"),
        ({"managers": f"{URL},http://127.0.0.1:1"}, "through one manager"),
        ({"delivery": "express"}, "'delivery' is one of durable, transactional"),
        ({"key": "k" * 257}, "'key' has at most 256"),
        ({"topic": "x"}, "there is no option 'topic'"),
    ],
)
def test_what_the_sink_cannot(options: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidOptionError, match=words):
        SinkOptions.parse(BASE | options)


def test_sink_options() -> None:
    options = SinkOptions.parse(
        BASE | {"queue": "q", "delivery": "transactional", "key": "k", "checkpointLocation": "/x"}
    )
    assert (options.queue, options.delivery, options.key) == ("q", "transactional", "k")


def test_every_option_is_documented() -> None:
    page = Path(__file__).parents[2] / "docs" / "pipeline.md"
    text = page.read_text()
    missing: list[Any] = [name for name in (*SOURCE_OPTIONS, *SINK_OPTIONS) if f"| `{name}` |" not in text]
    assert not missing
